"""Logs that need no repair, may need none, or can't be repaired here; and a screen that only looks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.e2e.conftest import SAMPLES, Run, Sample, Start
from tests.e2e.steps import accept, moved


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
def test_a_clean_log_opens_and_there_is_nothing_to_append(
    size: tuple[int, int], sample: Sample, start: Start
) -> None:
    log = sample("clean.jsonl")
    before = log.read_bytes()
    screen = start(log, size=size)
    assert screen.lines[0] == " ✓ CLEAN  nothing to repair"
    screen.wait_for("nothing to append", "next: No turn is open")
    screen.press("a")
    screen.wait_for("nothing to append: this log owes nothing")
    screen.press("n")
    screen.wait_for("no problem in this log")
    screen.press("A", "R", "D", "U")
    moved(screen, "g")
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert screen.said == ""
    assert log.read_bytes() == before


def test_a_call_that_a_closed_turn_left_is_shown_and_left(sample: Sample, start: Start) -> None:
    log = sample("dangling-closed-turn.jsonl")
    screen = start(log)
    assert screen.lines[0] == " ✓ CLEAN  nothing to repair"
    screen.wait_for("left as they are: 1 call that no crash owes", "○ LEFT")
    moved(screen, "g")
    assert "○" in moved(screen, "n")


def test_a_doubtful_log_says_so_and_is_not_called_clean(sample: Sample, start: Start, run: Run) -> None:
    log = sample("doubtful.jsonl")
    screen = start(log)
    assert screen.lines[0].startswith(" ? DOUBTFUL")
    assert "CLEAN" not in screen.text
    screen.wait_for("corrupt_line", "1 corrupt line")
    screen.press("a")
    screen.wait_for("nothing to append")
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert run("plan", log).returncode == 1


def test_a_crashed_log_with_a_corrupt_line_says_so_where_the_answers_are_given(
    sample: Sample, start: Start
) -> None:
    screen = start(sample("corrupt-middle.jsonl"), size=(80, 24))
    screen.wait_for("Line 34 can't be read and may have been anything")
    accept(screen)
    screen.wait_for("Line 34 can't be read and may have been anything")


def test_read_only_has_no_accept(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log, "--read-only")
    screen.wait_for("✖ CRASHED  turn 4", "· read-only", "a Accept… (read-only)")
    screen.press("a")
    screen.wait_for("opened read-only: nothing can be appended")
    assert "─ accept ─" not in screen.text
    screen.press("R", "A", "ctrl+p")
    screen.wait_for("commands of triage")
    screen.type("answer the open")
    screen.wait_until(lambda: "One row down" not in screen.text, "the list")
    screen.press("enter")
    screen.wait_for("[1] timeline")
    screen.press("y")
    screen.wait_until(lambda: screen.copied == ["call_0a92"], "the rest works")
    assert "─ accept ─" not in screen.text
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert log.read_bytes() == before


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A serialized context: one JSON document, which nothing can be appended to."""
    lines = (SAMPLES / "crashed-dispatched.jsonl").read_bytes().splitlines()
    path = tmp_path / "context.json"
    path.write_text(json.dumps({"version": 2, "events": [json.loads(line) for line in lines]}))
    return path


def test_a_log_that_cant_be_appended_to_shows_why_in_red_and_stays_locked(
    document: Path, start: Start, run: Run
) -> None:
    before = document.read_bytes()
    screen = start(document, colours=True)
    screen.wait_for("✖ CRASHED  turn 4", "✖ can't be appended: ")
    red = screen.foreground(1, 0)
    assert red != screen.foreground(12, 0)
    accept(screen)
    screen.wait_for("CAN'T BE APPENDED: ", "is one JSON document", "append is locked", "A Append (locked)")
    row = screen.row_of("CAN'T BE APPENDED: ")
    assert screen.foreground(screen.lines[row].index("CAN'T"), row) == red
    screen.press("R", "A")
    screen.wait_until(lambda: "append is locked: " in screen.told, "the refusal")
    screen.press("Y")
    screen.wait_until(lambda: screen.copied, "the summary")
    assert "call_0a92" in screen.copied[0]
    screen.press("n", "j")
    screen.wait_for("A Append (locked)")
    screen.press("v")  # the records can be looked at, and handed to the log's owner
    screen.wait_for("preview of the append")
    screen.press("esc")
    screen.wait_for("append is locked")
    assert document.read_bytes() == before

    row_of_plan = json.loads(run("plan", "--json", document).stdout)
    assert row_of_plan["refusal"]["code"] == "not_append_only"
    assert row_of_plan["repairs"]
    assert run("plan", document).returncode == 1
    done = run("apply", document, "--ack", "call_0a92=ran")
    assert done.returncode == 4
    assert "is one JSON document" in done.stderr
    assert document.read_bytes() == before


@pytest.mark.parametrize("kind", ["gone", "binary", "fifo"])
def test_what_is_no_log_opens_no_screen(kind: str, start: Start, tmp_path: Path) -> None:
    path = tmp_path / kind
    if kind == "binary":
        path.write_bytes(bytes(range(256)) * 64)
    elif kind == "fifo":
        os.mkfifo(path)
    screen = start(path, ready="")
    assert screen.wait_for_exit() == 3
    assert not screen.sequences
    says = screen.raw.decode()
    assert says.startswith("triage: ")
    assert says.count("\n") == 1
    assert kind in says


def test_an_empty_log_opens(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "empty.jsonl"
    log.touch()
    screen = start(log)
    assert screen.lines[0] == " ✓ CLEAN  nothing to repair"
    for key in ("n", "enter", "esc", "f", "G", "g", "y", "l", "h"):
        screen.press(key)
        if key == "enter":
            screen.wait_until(lambda: screen.frames > 2, "a frame")
    screen.press("?")
    screen.wait_for("help: ")
    screen.press("esc")
    screen.wait_gone("help: ")
    screen.press("q")
    if "[1] timeline" not in screen.text:
        screen.press("q")
    assert screen.wait_for_exit() == 0
    assert log.read_bytes() == b""


def test_a_file_that_vanishes_while_it_is_open_is_said_and_nothing_breaks(
    sample: Sample, start: Start
) -> None:
    log = sample("crashed-dispatched.jsonl")
    screen = start(log)
    log.unlink()
    screen.wait_for("the file has gone")
    screen.press("enter")
    screen.wait_for("evidence call_0a92")
    screen.press("enter")
    screen.wait_for("raw record")
    screen.press("esc")
    screen.wait_for("[1] timeline")
    screen.press("r")
    screen.wait_for("can't be read")
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert not log.exists()
