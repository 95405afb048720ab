"""Nothing is appended while an answer is missing, and no key that is meant for moving answers anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.e2e.conftest import Run, Sample, Start
from tests.e2e.steps import accept, appended
from tests.e2e.terminal import Terminal

LOCKED = "append is locked: "


def refused(screen: Terminal) -> None:
    """Press A, and see it refused."""
    screen.press("A")
    screen.wait_until(lambda: LOCKED in screen.told, "the refusal")


def test_an_append_with_an_answer_missing_changes_no_byte(
    sample: Sample, start: Start, tmp_path: Path
) -> None:
    log = sample("double-started.jsonl")
    before = log.read_bytes()
    was = os.stat(log)
    screen = start(log, size=(80, 24))
    screen.press("R", "D", "U", "A")  # they mean nothing here
    accept(screen)
    screen.wait_for("0 of 2 answered · append is locked", "A Append (locked)")
    screen.wait_until(lambda: "▲ n5" in screen.marked, "the first unanswered entry, not the append")

    for keys in ("n", "N", "r", "u", "d", "j", "k", "g", "G", "space", "y", "ran", "z", "2"):
        for key in [keys] if keys == "space" else keys:
            screen.press(key)
        refused(screen)
        assert "0 of 2 answered" in screen.text, keys
    screen.press("g", "enter")
    screen.wait_for("evidence n5", "rule 1 ✓ held")
    screen.press("R", "D", "U", "A", "n", "?")  # nor in the evidence
    screen.wait_for("help: evidence")
    screen.press("esc")
    screen.wait_gone("help: evidence")
    screen.press("esc")
    screen.wait_for("0 of 2 answered · append is locked")
    refused(screen)

    screen.press("R")
    screen.wait_for("1 of 2 answered · append is locked")
    refused(screen)
    screen.wait_for("1 answer still missing")
    assert "1 of 2 answered" in screen.text

    assert log.read_bytes() == before
    assert (os.stat(log).st_ino, os.stat(log).st_mtime_ns) == (was.st_ino, was.st_mtime_ns)
    assert {path.name for path in tmp_path.iterdir()} == {"home", "log.jsonl"}


def test_only_capitals_on_an_entry_that_needs_an_answer_record_one(sample: Sample, start: Start) -> None:
    log = sample("double-started.jsonl")
    before = log.read_bytes()
    screen = start(log, size=(80, 24))
    accept(screen)
    screen.press("G")  # the last entry: it was not started, and needs no answer
    screen.wait_until(lambda: "● n3" in screen.marked, "the last entry")
    for key in "RDU":
        screen.press(key)
        screen.wait_for("no answer needed here")
    assert "0 of 2 answered" in screen.text
    screen.press("n", "U")
    screen.wait_for("1 of 2 answered")
    assert screen.marked.startswith("[ ? ]  ▲ n5")
    screen.press("D")  # an answer can be changed
    screen.wait_until(lambda: screen.marked.startswith("[not]  ▲ n5"), "the other answer")
    screen.press("N", "R")
    screen.wait_for("2 of 2 answered · A appends")
    assert screen.marked.startswith("[ran]  ▲ n2")
    screen.press("n")
    screen.wait_for("every answer is given")
    screen.press("enter")  # enter never appends
    screen.wait_for("evidence n5")
    screen.press("esc")
    screen.wait_for("2 of 2 answered · A appends")
    assert log.read_bytes() == before


def test_appending_twice_in_a_row_appends_once(sample: Sample, start: Start, run: Run) -> None:
    log = sample("parallel-two-started.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 1 answered · A appends")
    screen.type("AAAA")  # an impatient finger
    screen.wait_for("the log is clean now")
    screen.press("A", "q")
    assert screen.wait_for_exit() == 0
    assert [record["type"] for record in appended(log, before)] == ["tool_result", "turn_end"]
    assert run("plan", log).returncode == 0


def test_leaving_with_answers_asks_once_and_keeps_them_for_the_next_person(
    sample: Sample, start: Start, home: Path
) -> None:
    log = sample("double-started.jsonl")
    before = log.read_bytes()
    screen = start(log, "--operator", "ann", size=(80, 24))
    accept(screen)
    screen.press("esc")  # no answer given: nothing is asked
    screen.wait_for("[1] timeline")
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 2 answered")
    screen.press("esc")
    screen.wait_for("1 answer given, nothing appended yet", "Stay", "Leave")
    screen.press("esc")  # back to the answers
    screen.wait_for("1 of 2 answered")
    screen.press("esc")
    screen.wait_for("1 answer given, nothing appended yet")
    screen.press("enter")  # the first choice is the harmless one
    screen.wait_for("1 of 2 answered")
    screen.press("esc")
    screen.wait_for("1 answer given, nothing appended yet")
    screen.press("down", "enter")
    screen.wait_for("[1] timeline", "[ran] rule 1")
    screen.press("q")  # it was asked already
    assert screen.wait_for_exit() == 0
    assert screen.said == ""
    assert log.read_bytes() == before

    (kept,) = (path for path in (home / "state").rglob("*") if path.is_file())
    assert kept.stat().st_mode & 0o777 == 0o600
    assert json.loads(kept.read_text())["operator"] == "ann"

    screen = start(log, "--operator", "bob", size=(80, 24))
    accept(screen)
    screen.wait_for("1 of 2 answered · append is locked", "ann gave 1 answer at")
    screen.press("n", "D")
    screen.wait_for("2 of 2 answered")
    screen.press("A")
    screen.wait_for("the log is clean now")
    screen.press("q")
    assert screen.wait_for_exit() == 0
    found = {
        record["data"]["tool_call_id"]: record["data"]["metadata"]["acknowledged"]
        for record in appended(log, before)
        if "acknowledged" in record["data"].get("metadata", {})
    }
    assert {id: (found[id]["finding"], found[id]["operator"]) for id in found} == {
        "n5": ("ran", "ann"),
        "n2": ("did-not-run", "bob"),
    }
    assert not [path for path in (home / "state").rglob("*") if path.is_file()]


def test_letters_that_are_typed_ahead_into_a_note_answer_nothing(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.type("cDid it Run? Ask U")  # faster than the question can appear
    screen.wait_for("note on call_0a92")
    screen.press("enter")
    screen.wait_for("note: Did it Run? Ask U")
    assert "0 of 1 answered" in screen.text
    assert log.read_bytes() == before


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_quitting_with_answers_asks_too(key: str, sample: Sample, start: Start) -> None:
    log = sample("double-started.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 2 answered")
    screen.press(key)
    screen.wait_for("1 answer given, nothing appended yet")
    screen.press("down", "enter")
    if key == "q":  # that led back to the log
        screen.wait_for("[1] timeline")
        screen.press("q")
    assert screen.wait_for_exit() == 0
    assert log.read_bytes() == before
