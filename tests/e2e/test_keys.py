"""Each key of the screens, and what it changes: on the screen, on the clipboard or on disk."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from tests.e2e.conftest import Run, Sample, Start
from tests.e2e.steps import TIME, accept, appended, moved, to_line
from tests.e2e.terminal import Terminal


def owed_marked(screen: Terminal) -> str:
    """The row under the cursor of the owed pane, where it stands at the right."""
    return next((line.partition("││▶")[2] for line in screen.lines if "││▶" in line), "")


def titles(screen: Terminal) -> list[str]:
    """The numbers of the panes in view."""
    return re.findall(r"─ \[(\d)\] ", screen.text)


def test_the_keys_that_move_the_cursor(sample: Sample, start: Start) -> None:
    screen = start(sample("large.jsonl"), size=(80, 24))
    first = moved(screen, "g", "1 ")
    second = moved(screen, "j")
    third = moved(screen, "down")
    assert len({first, second, third}) == 3
    assert moved(screen, "k") == second
    assert moved(screen, "up") == first
    rows = [line[2:].partition("│")[0].rstrip() for line in screen.lines[3:12]]
    half = moved(screen, "ctrl+d")
    assert half in rows[2:7]
    assert moved(screen, "ctrl+u") == first
    page = moved(screen, "pagedown")
    assert page not in rows[:7]
    assert moved(screen, "pageup") == first
    assert moved(screen, "space") == page
    assert "end of log" in moved(screen, "G")
    assert moved(screen, "home") == first
    assert "end of log" in moved(screen, "end")


def test_the_keys_that_fold_and_the_one_that_goes_to_a_line(sample: Sample, start: Start) -> None:
    screen = start(sample("crashed-dispatched.jsonl"), size=(80, 24))
    to_line(screen, 2)
    for unfold, fold in (("l", "h"), ("right", "left")):
        assert "▸ turn 1" in screen.marked
        assert "▾ turn 1" in moved(screen, unfold)
        screen.wait_for("step 1  2 calls: bash, grep")
        assert "▸ turn 1" in moved(screen, fold)
        assert "step 1  2 calls: bash, grep" not in screen.text
    to_line(screen, 30)  # it lies in a folded turn: what hides it opens
    assert "dispatch edit_file" in screen.marked
    assert "▸ step 1" in moved(screen, "h")  # from a row that can't be folded to what it lies in
    screen.press(":")
    screen.wait_for("go to line")
    screen.type("91")
    screen.press("enter")
    screen.wait_for("'91' is no line of this log: it has 90")
    assert "▸ step 1" in screen.marked
    screen.press(":")
    screen.wait_for("go to line")
    screen.press("esc")
    screen.wait_gone("go to line")
    screen.press("ctrl+o")
    screen.wait_until(lambda: "turn 1" in screen.marked, "back where the jump started")


def test_the_keys_that_go_to_problems_matches_and_back(sample: Sample, start: Start) -> None:
    screen = start(sample("corrupt-middle.jsonl"))
    moved(screen, "g")
    problems = [14, 16, 21, 24]
    for line in problems:
        moved(screen, "n", f"{line} ")
    assert "bash" in moved(screen, "]")
    moved(screen, "[", "24 ")
    moved(screen, "N", "21 ")
    moved(screen, "ctrl+o", "24 ")
    screen.press("/")
    screen.wait_for("search")
    screen.type("heartbeat")
    screen.press("enter")
    screen.wait_for("/heartbeat 1/")
    match = screen.marked
    assert "heartbeat" in match
    screen.press("esc")  # the search is off, n means problems again
    screen.wait_gone("/heartbeat 1/")
    moved(screen, "N", "34 ")

    screen.press("/")
    screen.wait_for("search (empty: heartbeat)")
    screen.press("enter")  # the last search
    screen.wait_for("/heartbeat 1/")
    assert screen.marked == match
    screen.press("/")
    screen.wait_for("search")
    screen.type("volctl snapshot")
    screen.press("enter")
    screen.wait_for("/volctl snapshot")
    matches = {moved(screen, "n") for _ in range(2)}
    assert len(matches) == 2
    assert all("snapshot" in row or "model" in row for row in matches)
    assert moved(screen, "N") in matches
    for line in ("34 ", "14 "):  # always problems, round the end too
        for _ in range(8):
            if moved(screen, "]").lstrip().startswith(line):
                break
        else:
            raise AssertionError(f"] finds no problem on line {line}")
    screen.press("/")
    screen.wait_for("search")
    screen.type("no such words")
    screen.press("enter")
    screen.wait_for("no match for no such words")


def test_the_key_that_filters(sample: Sample, start: Start) -> None:
    screen = start(sample("corrupt-middle.jsonl"), size=(80, 24))
    screen.press("f")
    screen.wait_for("[1] timeline · calls only")
    moved(screen, "g")
    assert "user" not in "".join(screen.lines[3:10])
    screen.press("f")
    screen.wait_for("[1] timeline · problems only")
    assert screen.lines[3].startswith(("│  14 ", "│▶ 14 "))
    screen.press("f")
    screen.wait_for("[1] timeline ─")
    moved(screen, "g")
    assert screen.marked.lstrip().startswith("1 ")
    screen.press("f")
    screen.wait_for("[1] timeline · calls only")
    screen.press("esc")
    screen.wait_for("[1] timeline ─")


def test_the_keys_that_go_from_pane_to_pane(sample: Sample, start: Start) -> None:
    screen = start(sample("crashed-dispatched.jsonl"), ready="[3] evidence", colours=True)
    assert titles(screen) == ["1", "2", "3"]
    here = screen.marked
    top = "│ ▲ UNKNOWN  rule 1  line 89"
    assert top in screen.text

    edges = {1: (0, 5), 2: (72, 5), 3: (72, 30)}
    bright = screen.foreground(*edges[1])

    def goes_to(pane: int, key: str) -> None:
        """The pane that has the keys has a bright frame, and j moves what is in it."""
        screen.press(key)
        screen.wait_until(lambda: screen.foreground(*edges[pane]) == bright, f"{key} goes to pane {pane}")
        assert [other for other in edges if screen.foreground(*edges[other]) == bright] == [pane]
        if pane == 1:
            assert "read_file" in moved(screen, "j")
            screen.wait_until(lambda: owed_marked(screen).startswith("● NOT STARTED read_file"), "it follows")
            assert moved(screen, "k") == here
            screen.wait_for(top)
        elif pane == 2:
            screen.press("j")
            screen.wait_until(lambda: owed_marked(screen).startswith("● NOT STARTED bash"), "the next entry")
            screen.wait_until(lambda: "bash" in screen.marked, "the timeline follows")
            screen.press("k")
            screen.wait_until(lambda: owed_marked(screen).startswith("▲ UNKNOWN"), "the first entry")
            screen.wait_for(top)
        else:
            screen.press("j")
            screen.wait_gone(top)
            screen.press("k")
            screen.wait_for(top)
            assert screen.marked == here

    for key, pane in (
        ("tab", 2),
        ("tab", 3),
        ("tab", 1),
        ("shift+tab", 3),
        ("shift+tab", 2),
        ("shift+tab", 1),
    ):
        goes_to(pane, key)
    for key in "3212":
        goes_to(int(key), key)
    goes_to(1, "esc")

    screen.press("z")
    screen.wait_until(lambda: titles(screen) == ["1"], "the timeline alone")
    screen.press("3")
    screen.wait_until(lambda: titles(screen) == ["3"], "the evidence alone")
    screen.press("z")
    screen.wait_until(lambda: titles(screen) == ["1", "2", "3"], "all panes")
    goes_to(2, "2")
    screen.press("z")
    screen.wait_until(lambda: titles(screen) == ["2"], "the owed calls alone")
    screen.press("esc")
    screen.wait_until(lambda: titles(screen) == ["1", "2", "3"], "all panes")

    wrapped = "││ rule 1  ✓ held  dispatched on line 90, and   │"
    assert wrapped in screen.text
    screen.press("w")
    screen.wait_gone(wrapped)
    screen.wait_until(
        lambda: any("│ rule 1  ✓ held" in line and line.endswith("… │") for line in screen.lines), "cut lines"
    )
    screen.press("w")
    screen.wait_for(wrapped)


def test_on_a_small_screen_a_zoomed_pane_is_all_there_is(sample: Sample, start: Start) -> None:
    screen = start(sample("crashed-dispatched.jsonl"), size=(80, 24), colours=True)
    assert titles(screen) == ["1", "2"]
    screen.press("3")  # evidence has no pane here: it is a screen
    screen.wait_for("evidence call_0a92 http_post", "rule 1 ✓ held")
    assert screen.lines[22].startswith("╰")
    screen.press("esc")
    screen.wait_for("[1] timeline")
    bright = screen.foreground(0, 5)
    for pane, row in (("2", 17), ("1", 5)):
        screen.press(pane)
        screen.wait_until(lambda row=row: screen.foreground(0, row) == bright, f"pane {pane}")
        screen.press("z")
        screen.wait_until(lambda pane=pane: titles(screen) == [pane], "one pane")
        assert screen.lines[22].startswith("╰"), screen.text
        screen.press("z")
        screen.wait_until(lambda: titles(screen) == ["1", "2"], "both panes")


def test_the_key_that_shows_what_failed_goes_on_to_the_line(sample: Sample, start: Start) -> None:
    screen = start(sample("errors-recurring.jsonl"), size=(80, 24))
    screen.press("4")
    screen.wait_for("[4] errors 3", "4× sync.http.Timeout")
    assert "2× fatal" in moved(screen, "j")
    screen.press("enter")
    screen.wait_until(lambda: screen.marked.lstrip().startswith("53 "), "the last line of that error")
    screen.press("4")
    screen.wait_for("[4] errors 3")
    screen.press("esc")
    screen.wait_for("[1] timeline")


def test_the_keys_of_the_evidence(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    record = log.read_text().splitlines()[88]
    screen = start(log)
    screen.press("enter")
    screen.wait_for("evidence call_0a92 http_post")
    screen.press("enter")  # the record as it is
    screen.wait_for("raw record of line 89")
    shown = "".join(line[2:-1].strip() for line in screen.lines[1:-1] if line.startswith("│"))
    assert "".join(shown.split()) == "".join(record.split())
    screen.press("w")
    screen.wait_for("long lines are cut")
    assert '{"seq":88,' in screen.lines[1]
    before = screen.lines[1]
    screen.press("right")
    screen.wait_until(lambda: screen.lines[1] != before, "the text moved")
    assert '{"seq":88,' not in screen.lines[1]
    screen.press("left")
    screen.wait_until(lambda: screen.lines[1] == before, "and back")
    screen.press("w", "enter")
    screen.wait_for("evidence call_0a92 http_post")
    screen.press("n")
    screen.wait_for("evidence call_0a93 read_file")
    screen.press("N")
    screen.wait_for("evidence call_0a92 http_post")
    screen.press("G")
    screen.wait_for("earlier calls of http_post")
    screen.press("q")
    screen.wait_for("[1] timeline")
    assert screen.alive


def test_the_key_that_copies_sends_the_id_then_the_arguments_then_the_record(
    sample: Sample, start: Start
) -> None:
    log = sample("crashed-dispatched.jsonl")
    record = log.read_text().splitlines()[88]
    arguments = json.loads(record)["data"]["tool_calls"][1]["arguments"]
    screen = start(log)
    for count, words in enumerate(
        ("copied id: call_0a92", "copied arguments", "copied record of line 89"), 1
    ):
        screen.press("y")
        screen.wait_until(lambda count=count: len(screen.copied) == count, words)
        screen.wait_for(words)
    assert screen.copied[0] == "call_0a92"
    assert json.loads(screen.copied[1]) == arguments
    assert screen.copied[2] == record
    screen.press("Y")
    screen.wait_for("copied the incident summary as Markdown")
    assert screen.copied[3].startswith("#")
    assert "call_0a92" in screen.copied[3]
    assert "line 90" in screen.copied[3]
    assert len(screen.copied) == 4


def script(folder: Path, name: str) -> Path:
    """An editor that keeps the arguments it was given."""
    path = folder / name
    path.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$HOME/arguments"\n')
    path.chmod(0o755)
    return path


def test_the_key_that_opens_an_editor_names_the_line(
    sample: Sample, start: Start, home: Path, tmp_path: Path
) -> None:
    log = sample("crashed-dispatched.jsonl")
    kept = home / "arguments"

    def edited(screen: Terminal) -> list[str]:
        before = screen.raw.count(b"\x1b[?1049h")
        bar = screen.lines[-1]
        screen.press("e")
        screen.wait_until(lambda: screen.raw.count(b"\x1b[?1049h") > before, "the screen is back")
        screen.wait_for(bar)
        words = kept.read_text().splitlines()
        kept.unlink()
        return words

    screen = start(log, env={"EDITOR": f"{script(tmp_path, 'ed')} --flag"})
    assert edited(screen) == ["--flag", "+89", str(log)]
    to_line(screen, 30)
    assert edited(screen) == ["--flag", "+30", str(log)]
    screen.press("enter")
    screen.wait_for("evidence line 30", "esc Back")
    assert edited(screen) == ["--flag", "+30", str(log)]
    screen.press("esc")
    screen.wait_for("[1] timeline")
    screen.press("q")
    assert screen.wait_for_exit() == 0

    screen = start(log, env={"EDITOR": "nothing", "VISUAL": str(script(tmp_path, "vi"))})
    assert edited(screen) == ["-R", "+89", str(log)]


def test_an_editor_that_is_not_there_is_said_and_the_screen_stays(sample: Sample, start: Start) -> None:
    screen = start(sample("crashed-dispatched.jsonl"), env={"EDITOR": "/no/such/editor"})
    screen.press("e")
    screen.wait_for("/no/such/editor can't be started", "set EDITOR")
    screen.press("j")
    screen.wait_until(lambda: "read_file" in screen.marked, "it goes on")


def test_the_key_that_exports_writes_new_files_that_only_their_owner_reads(
    sample: Sample, start: Start, run: Run, tmp_path: Path
) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    here = tmp_path / "here"
    here.mkdir()
    screen = start(log, cwd=here)
    for number, suffix in enumerate((".md", ".json", ".svg", ".md")):
        screen.press("x")
        screen.wait_for("Which kind? Nothing is overwritten.")
        screen.press(*["down"] * (number % 3), "enter")
        screen.wait_for("[1] timeline", f"{suffix} (only you may read it)")
    found = {path.name: path for path in here.iterdir()}
    assert sorted(found) == ["triage-log-2.md", "triage-log.json", "triage-log.md", "triage-log.svg"]
    assert {path.stat().st_mode & 0o777 for path in found.values()} == {0o600}
    assert "call_0a92" in found["triage-log.md"].read_text()
    assert json.loads(found["triage-log.json"].read_text()) == json.loads(run("plan", log, "--json").stdout)
    picture = found["triage-log.svg"].read_text()
    assert picture.startswith("<svg")
    assert "call_0a92" in picture
    screen.press("x")
    screen.wait_for("Which kind?")
    screen.press("esc")
    screen.wait_for("[1] timeline")
    assert len(list(here.iterdir())) == 4
    assert log.read_bytes() == before


def test_the_help_has_every_key_and_the_palette_runs_commands_by_name(sample: Sample, start: Start) -> None:
    screen = start(sample("crashed-dispatched.jsonl"), size=(80, 24), colours=True)
    screen.press("?")
    screen.wait_for("help: triage")
    rows: set[str] = set()
    while True:
        rows |= {line.strip("│ ") for line in screen.lines if line.startswith("│")}
        last, of = re.search(r"-(\d+) of (\d+)", screen.lines[0]).groups()  # type: ignore[union-attr]
        if last == of:
            break
        here = screen.lines[0]
        screen.press("space")
        screen.wait_until(lambda here=here: screen.lines[0] != here, "the next page")
    keys = {row.partition("  ")[0] for row in rows}
    wanted = (
        "j ↓", "k ↑", "g", "G", "^d", "^u", "PgDn space", "PgUp", "h ←", "l →", ":", "n", "N", "]", "[", "^o",
        "tab", "1", "2", "3", "4", "enter", "z", "w", "esc", "/", "f", "y", "Y", "e", "x", "a", "F", "r", "?",
        "^p", "q",
    )  # fmt: skip
    assert set(wanted) <= keys
    screen.press("esc")
    screen.wait_for("[1] timeline")

    screen.press("ctrl+p")
    screen.wait_for("commands of triage", "type a few letters")
    screen.type("light colours")
    screen.wait_for("▶            Switch between the dark and the light colours")
    dark = screen.background(5, 5)
    screen.press("enter")
    screen.wait_for("[1] timeline")
    screen.wait_until(lambda: screen.background(5, 5) != dark, "light colours")
    screen.press("ctrl+p")
    screen.wait_for("commands of triage")
    screen.type("answer the open")
    screen.press("enter")  # at once: what was typed counts, not what is listed so far
    screen.wait_for("0 of 1 answered")
    screen.press("ctrl+p")
    screen.wait_for("commands of accept")
    screen.type("evidence of")
    screen.press("enter")
    screen.wait_for("evidence call_0a92 http_post")
    screen.press("esc")
    screen.wait_for("0 of 1 answered")
    screen.press("ctrl+p")
    screen.wait_for("commands of accept")
    screen.press("esc")
    screen.wait_gone("commands of accept")
    screen.press("?")
    screen.wait_for("help: accept", "It did not run")
    screen.press("q")
    screen.wait_for("0 of 1 answered")
    screen.press("q")
    screen.wait_for("[1] timeline")
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert screen.said == ""


def test_the_keys_of_the_accept_screen(sample: Sample, start: Start) -> None:
    log = sample("parallel-two-started.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.wait_for("0 of 1 answered")
    screen.press("c")
    screen.wait_for("note on q2")
    screen.type("seen in the ledger")
    screen.press("enter")
    screen.wait_for("note: seen in the ledger", "0 of 1 answered")  # a note is no answer
    screen.press("c")
    screen.wait_for("note on q2")
    screen.press("esc")
    screen.wait_gone("note on q2")
    screen.press("U")
    screen.wait_for("1 of 1 answered", "note: seen in the ledger", "found: could not tell")
    screen.press("y")
    screen.wait_until(lambda: screen.copied == ["q2"], "the id")
    screen.press("v")
    screen.wait_for("preview of the append", "as planned", "line 11")
    shown = "".join(line[2:-1].strip() for line in screen.lines if line.startswith("│"))
    screen.press("esc")
    screen.wait_for("1 of 1 answered")
    screen.press("A")
    screen.wait_for("the log is clean now")
    added = log.read_bytes()[len(before) :]
    assert appended(log, before)[0]["data"]["metadata"]["acknowledged"]["note"] == "seen in the ledger"
    for line in added.decode().splitlines():
        wanted = re.sub(rf'"time":"{TIME.pattern.decode()}"', '"time":null', line)
        assert "".join(wanted.split()) in "".join(shown.split())
    assert os.path.getsize(log) == len(before) + len(added)
