"""A log that attacks its viewer: nothing of it moves the terminal, runs an action or forges a line.

`Terminal` itself fails on every control sequence and invisible character that the screens have no business
to send; here the hostile log goes through all of them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.conftest import SAMPLES, TIMELINE, Run, Sample, Start
from tests.e2e.steps import accept, appended, moved, to_line
from tests.e2e.terminal import Terminal, tokens

NAME = (
    "log\x1b[2J\x1b]0;all is well\x07\n ✓ CLEAN  nothing to repair [@click=app.quit]ok[red] \u202egnp.jsonl"
)
STATUS = re.compile(r"\s*(✖ CRASHED|✓ CLEAN|\? DOUBTFUL)\b")
MARKUP = "[@click=app.quit]"
BOTH_SIZES = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])


def watched(screen: Terminal, status: str = "✖ CRASHED") -> None:
    """From now on each frame is looked at: one line says how the log is, and every frame is closed."""

    def look() -> None:
        for row, line in enumerate(screen.lines):
            if STATUS.match(line):
                assert row == 0, f"row {row} looks like the header\n{screen.text}"
                assert line.startswith(f" {status}"), f"the header lies\n{screen.text}"
            if line.startswith("│"):
                right = screen.cell(screen.width - 1, row)
                assert right in "│╮╯ ", f"row {row} is out of its frame\n{screen.text}"

    screen.each_frame = look


def answers(screen: Terminal) -> None:
    """The screen still does what its keys say."""
    title = screen.lines[0].partition("──")[0]
    screen.press("?")
    screen.wait_for("─ help: ")
    screen.press("esc")
    screen.wait_until(lambda: screen.lines[0].startswith(title), f"back to {title}")


def click_on(screen: Terminal, text: str, first: int = 0) -> int:
    """Click on a text wherever it stands, from a row on. Returns how often it was seen."""
    seen = 0
    for row, line in list(enumerate(screen.lines))[first:]:
        for match in re.finditer(re.escape(text), line):
            seen += 1
            for column in (match.start(), match.start() + len(text) // 2, match.end() + 1):
                screen.click(column, row)
    return seen


def to_timeline(screen: Terminal) -> None:
    """Back to the main screen: a second click on a row opens its evidence."""
    while TIMELINE not in screen.text:
        title = screen.lines[0]
        screen.press("esc")
        screen.wait_until(lambda title=title: screen.lines[0] != title, "back")


def page_through(screen: Terminal, pages: int) -> None:
    """Page down to the end, or so many pages."""
    for _ in range(pages):
        title = screen.lines[0]
        shown = re.search(r"-([\d,]+) of ([\d,]+) ", title)
        if shown is None or shown[1] == shown[2]:
            return
        screen.press("space")
        screen.wait_until(lambda title=title: screen.lines[0] != title, "the next page")


@BOTH_SIZES
def test_nothing_of_a_hostile_log_reaches_the_terminal_from_any_screen(
    size: tuple[int, int], sample: Sample, start: Start, run: Run, tmp_path: Path
) -> None:
    log = sample("hostile.jsonl", NAME)
    before = log.read_bytes()
    here = tmp_path / "here"
    here.mkdir()
    screen = start(log, size=size, cwd=here)
    watched(screen)
    assert screen.lines[0].startswith(" ✖ CRASHED  the turn of line 19")

    for line in (8, 10, 11, 14, 16, 19, 23, 24) if size == (120, 40) else (8, 10, 16, 24):
        to_line(screen, line)  # the timeline, and the evidence beside it
        screen.press("enter")
        screen.wait_for(f"evidence line {line}")
        page_through(screen, 1)
        screen.press("enter")
        screen.wait_for(f"raw record of line {line}")
        page_through(screen, 1)
        screen.press("esc")
        screen.wait_for("[1] timeline")
    moved(screen, "g")
    screen.press("enter")
    screen.wait_for("evidence line 1")
    for _ in range(12):  # from problem to problem: the owed calls are among them
        title = screen.lines[0]
        screen.press("n")
        screen.wait_until(lambda title=title: screen.lines[0] != title, "the next problem")
    screen.press("w")
    screen.wait_for("long lines are cut")
    screen.press("right", "right", "esc")
    screen.wait_for("[1] timeline")
    screen.press("/")
    screen.wait_for("search")
    screen.type("all is well")
    screen.press("enter")
    screen.wait_for("/all is well 1/")
    screen.press("esc")
    screen.wait_gone("/all is well 1/")

    to_line(screen, 23)
    moved(screen, "j")
    for count in (1, 2, 3):
        screen.press("y")
        screen.wait_until(lambda count=count: len(screen.copied) == count, "a copy")
    assert screen.copied[0] == "call = 7: refund\n✓ CLEAN  nothing to repair"
    assert screen.copied[2].encode() == before.split(b"\n")[22]
    screen.press("Y")
    screen.wait_until(lambda: len(screen.copied) == 4, "the summary")
    assert_harmless(screen.copied[3])
    for kind in range(3):
        screen.press("x")
        screen.wait_for("Which kind?")
        screen.press(*["down"] * kind, "enter")
        screen.wait_until(lambda kind=kind: len(list(here.iterdir())) == kind + 1, "a file")
    for path in here.iterdir():
        assert_harmless(path.read_text("utf-8"))
        assert_harmless(path.name)
        if path.suffix == ".svg":
            assert not re.search(
                r"<(?!/?(?:svg|style|defs|clipPath|rect|text|g|circle)\b)(?!!--)", path.read_text()
            )
    for key, says in (("ctrl+p", "commands of triage"), ("4", "[4] errors")):
        screen.press(key)
        screen.wait_for(says)
        screen.press("esc")
        screen.wait_for("[1] timeline")

    accept(screen)
    page_through(screen, 3)
    screen.press("g")
    screen.wait_until(lambda: screen.marked.startswith("[   ]  ▲ call = 7: refund⏎✓"), "the first entry")
    screen.press("c")
    screen.wait_for("note on call = 7: refund⏎✓")
    screen.type("[@click=app.quit]ok[/red]")
    screen.press("enter")
    screen.wait_for("note: [@click=app.quit]ok[/red]")
    for done, key in enumerate("RUD", 1):
        screen.press(key)
        screen.wait_for(f"{done} of 3 answered")
        if done < 3:
            moved(screen, "n")
    screen.press("enter")
    screen.wait_until(lambda: screen.lines[0].startswith("╭─ evidence "), "the evidence")
    screen.press("esc")
    screen.wait_for("3 of 3 answered")
    screen.press("v")
    screen.wait_for("preview of the append")
    page_through(screen, 6)
    screen.press("esc")
    screen.wait_for("3 of 3 answered")
    screen.each_frame = lambda: None  # from here on the log is clean
    screen.press("A")
    screen.wait_for("read again: ✓ CLEAN")
    page_through(screen, 6)
    screen.press("enter")
    screen.wait_for("[1] timeline")
    watched(screen, "✓ CLEAN")
    answers(screen)
    screen.press("q")
    assert screen.wait_for_exit() == 0

    assert screen.said.count("\n") == 1
    assert len(screen.copied) == 4
    assert all(
        not sequence.startswith("\x1b]") or sequence.startswith(("\x1b]22;", "\x1b]52;c;"))
        for sequence in screen.sequences
    )
    assert len(appended(log, before)) == 13
    assert run("plan", log).returncode == 0


def assert_harmless(text: str) -> None:
    """Lines of text, and nothing in them that a terminal obeys or that doesn't show."""
    for line in text.split("\n"):
        assert list(tokens(line)) in ([], [line])


def test_clicks_on_what_looks_like_markup_run_nothing(sample: Sample, start: Start) -> None:
    log = sample("hostile.jsonl")
    before = log.read_bytes()
    screen = start(log)
    watched(screen)
    seen = 0

    def click() -> None:
        nonlocal seen
        seen += click_on(screen, MARKUP)
        answers(screen)

    for line in (11, 23, 25):
        to_line(screen, line)
        click()
        to_timeline(screen)
        to_line(screen, line)
        screen.press("enter")
        screen.wait_until(lambda: screen.lines[0].startswith("╭─ evidence "), "the evidence")
        click()
        screen.press("enter")
        screen.wait_until(lambda: screen.lines[0].startswith("╭─ raw record "), "the record")
        click()
        screen.press("esc")
        screen.wait_for("[1] timeline")
    screen.press("/")
    screen.wait_for("search")
    screen.type(MARKUP)
    screen.wait_until(lambda: MARKUP in screen.lines[-1], "the words")
    seen += click_on(screen, MARKUP, len(screen.lines) - 1)
    screen.press("enter")
    screen.wait_for(f"/{MARKUP} ")
    click()
    to_timeline(screen)
    to_line(screen, 23)
    for _ in range(3):
        moved(screen, "j")
    screen.press("y", "y")
    screen.wait_until(lambda: len(screen.copied) == 2, "the copies")
    click()
    to_timeline(screen)
    accept(screen)
    click()
    screen.press("R")
    screen.press("v")
    screen.wait_for("preview of the append")
    click()
    assert seen > 12
    assert screen.alive
    assert log.read_bytes() == before


def test_what_is_pasted_into_a_question_is_shown_cleaned(sample: Sample, start: Start) -> None:
    """Text of the log comes back through the clipboard: `y`, then a paste into a search or a note."""
    pasted = "a \x1b[31mb \x9b2Jc \u202ed \u200be \x07f"
    screen = start(sample("crashed-dispatched.jsonl"), size=(80, 24))
    screen.press("/")
    screen.wait_for("search")
    screen.type(f"\x1b[200~{pasted}\x1b[201~")
    screen.type(" and so on")
    screen.wait_until(lambda: "and so on" in screen.lines[-1], "the pasted words")
    screen.press("enter")
    screen.wait_for("no match for")
    accept(screen)
    screen.press("c")
    screen.wait_for("note on call_0a92")
    screen.type(f"\x1b[200~{pasted}\x1b[201~")
    screen.type(" and so on")
    screen.wait_until(lambda: "and so on" in screen.lines[-1], "the pasted words")
    screen.press("enter")
    screen.wait_until(lambda: re.search("note: .*and so on", screen.text), "the note")
    screen.press("c")  # the same text once more, as it was kept
    screen.wait_until(lambda: "and so on" in screen.lines[-1], "the note again")


def test_a_click_on_a_word_of_the_key_bar_does_what_its_key_does(sample: Sample, start: Start) -> None:
    screen = start(sample("double-started.jsonl"))
    row = len(screen.lines) - 1
    screen.click(screen.lines[row].index("Accept…"), row)
    screen.wait_for("0 of 2 answered")
    row = screen.row_of("Append (locked)")
    screen.click(screen.lines[row].index("Append (locked)"), row)
    screen.wait_for("append is locked: ")
    screen.wait_for("0 of 2 answered")
    screen.press("n")  # the next key takes the message away
    screen.wait_for("esc Back")
    row = screen.row_of("esc Back")
    screen.click(screen.lines[row].index("Back"), row)
    screen.wait_for("[1] timeline")


COMMANDS = (
    ["plan"],
    ["plan", "--json"],
    ["plan", "--redact"],
    ["--plain"],
    ["--plain", "--redact"],
    ["apply"],
    ["apply", "--json"],
    ["apply", "--ack", "call \x1b[2J\u202e=ran"],
    ["history"],
    ["history", "--json"],
)


def test_nothing_of_a_hostile_log_is_printed_raw_by_a_command(run: Run, tmp_path: Path) -> None:
    log = tmp_path / NAME
    log.write_bytes((SAMPLES / "hostile.jsonl").read_bytes())
    for command in COMMANDS:
        done = run(*command, log)
        assert done.returncode in (0, 1, 2, 4), command
        assert "Traceback" not in done.stderr
        for printed in (done.stdout, done.stderr):
            assert_harmless(printed)
            for line in printed.splitlines():
                assert not STATUS.match(line) or line.startswith("✖ CRASHED  the turn of line 19"), line
    keys = [owed["key"] for owed in json.loads(run("plan", "--json", log).stdout)["owed"]]
    acks = [
        f"--ack={keys[0]}=ran:\x1b[2Jno\u202ete",
        f"--ack={keys[1]}=did-not-run",
        f"--ack={keys[-1]}=deny",
    ]
    done = run("apply", log, *acks, "--operator", "ev\x1b[2Jil\n✓ CLEAN")
    assert done.returncode == 0, done.stderr
    for printed in (done.stdout, done.stderr, run("history", log).stdout, run("plan", log).stdout):
        assert_harmless(printed)
