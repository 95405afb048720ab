"""From opening a crashed log to a clean one, with the keyboard alone."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.conftest import Run, Sample, Start
from tests.e2e.steps import TIME, accept, appended, moved
from tests.e2e.terminal import Terminal

BOTH_SIZES = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
RECORDS = b"""\
{"seq":90,"type":"tool_result","time":"TIME","data":{"tool_call_id":"call_0a91","name":"bash",\
"content":"The session was interrupted before this call was handed to its tool. It did not run and had no \
effect.","metadata":{"synthetic":true,"risk":"tool_not_started","rule":2}}}
{"seq":91,"type":"tool_result","time":"TIME","data":{"tool_call_id":"call_0a92","name":"http_post",\
"content":"The session was interrupted while this call may have been running. It may have taken effect: do \
not run it again before its effect has been checked. An operator (ann) checked: it did run. Note: refund \
re_91 is in the dashboard","metadata":{"synthetic":true,"risk":"tool_outcome_unknown","rule":1,\
"acknowledged":{"finding":"ran","note":"refund re_91 is in the dashboard","operator":"ann","at":"TIME"}}}}
{"seq":92,"type":"tool_result","time":"TIME","data":{"tool_call_id":"call_0a93","name":"read_file",\
"content":"The session was interrupted before this call was handed to its tool. It did not run and had no \
effect.","metadata":{"synthetic":true,"risk":"tool_not_started","rule":2}}}
{"seq":93,"type":"turn_end","time":"TIME","data":{"reason":"interrupted","steps":2,"turn":4}}
"""


def to_the_unknown_call(screen: Terminal) -> None:
    """From the top of the log with `n` to the first call whose outcome is unknown."""
    moved(screen, "g", "1 ")
    for _ in range(20):
        if "▲" in moved(screen, "n"):
            return
    raise AssertionError(f"n finds no unknown call\n{screen.text}")


@BOTH_SIZES
def test_open_find_read_answer_and_append(
    size: tuple[int, int], sample: Sample, start: Start, run: Run
) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log, "--operator", "ann", size=size)
    assert screen.lines[0].startswith(" ✖ CRASHED  turn 4 · 3 owed: 1 OUTCOME UNKNOWN, 2 not started")
    assert "died in tool_open" in screen.words

    to_the_unknown_call(screen)
    assert "http_post" in screen.marked
    screen.press("enter")
    screen.wait_for("evidence call_0a92 http_post", "rule 1 ✓ held", "dispatched on line 90", "re_91")
    screen.press("esc")
    screen.wait_for("[1] timeline")
    accept(screen)
    screen.wait_for("Appends 4 records", "0 of 1 answered · append is locked", "A Append (locked)")
    assert screen.marked.startswith("[   ]  ▲ call_0a92")
    screen.press("R")
    screen.wait_for("1 of 1 answered", "found: it ran (ann")
    assert screen.marked.startswith("[ran]")
    screen.press("c")
    screen.wait_for("note on call_0a92")
    screen.type("refund re_91 is in the dashboard")
    screen.press("enter")
    screen.wait_for("note: refund re_91 is in the dashboard")
    assert log.read_bytes() == before
    screen.press("A")
    screen.wait_for("appended 4 records", "the log is clean now", "read again: ✓ CLEAN")
    screen.press("enter")
    screen.wait_for("[1] timeline")
    assert screen.lines[0] == " ✓ CLEAN  nothing to repair"
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert re.fullmatch(
        rf"{log}: appended 4 records \(1\.\d kB\) from line 91 on; the log is clean now\n", screen.said
    )

    after = log.read_bytes()
    assert after.startswith(before)
    assert TIME.sub(b"TIME", after[len(before) :]) == RECORDS
    plan = run("plan", log, "--json")
    assert plan.returncode == 0
    assert json.loads(plan.stdout)["status"] == "clean"


OWED = {
    "double-started.jsonl": 2,
    "same-id-two-open-turns.jsonl": 2,
    "ids-reused.jsonl": 1,
    "corrupt-middle.jsonl": 2,
    "no-final-newline.jsonl": 1,
    "waiting.jsonl": 2,
    "waiting-input.jsonl": 1,
    "hostile.jsonl": 3,
    "boundary-stable.jsonl": 0,
}


@pytest.mark.parametrize("name", OWED)
def test_somebody_who_knows_only_the_keys_repairs(name: str, sample: Sample, start: Start, run: Run) -> None:
    """`a`, then `n` and `R`, `D` or `U` until all is answered, then `A`."""
    log = sample(name)
    before = log.read_bytes()
    planned = json.loads(run("plan", log, "--json").stdout)
    screen = start(log, size=(80, 24))
    accept(screen)
    given = answer_all(screen, OWED[name])
    screen.press("A")
    screen.wait_for("the log is clean now", "read again: ✓ CLEAN")
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert screen.said.count("\n") == 1

    records = appended(log, before)
    assert [r["type"] for r in records] == [r["type"] for r in planned["repairs"]]
    assert run("plan", log).returncode == 0
    asked = [owed for owed in planned["owed"] if owed["needs_acknowledgement"]]
    answers = {
        (r["data"]["tool_call_id"], r["data"]["metadata"]["acknowledged"]["finding"])
        for r in records
        if "acknowledged" in r["data"].get("metadata", {})
    }
    assert len(given) == len(asked) == OWED[name]
    assert {id for id, _ in answers} == {owed["tool_call_id"] for owed in asked}
    assert {finding for _, finding in answers} == set(given)


def answer_all(screen: Terminal, asked: int) -> list[str]:
    """Answer the entries in turn with R, D and U; a waiting one takes D alone, and the other keys say so."""
    findings = {"R": "ran", "D": "did-not-run", "U": "could-not-tell"}
    given = []
    for done in range(asked):
        key = "RDU"[done % 3]
        screen.press(key)
        if "◆" in screen.marked and key != "D":
            screen.wait_for("D denies the request, nothing else fits", f"{done} of {asked} answered")
            screen.press("D")
        screen.wait_for(f"{done + 1} of {asked} answered")
        given.append("deny" if "[deny]" in screen.marked else findings[key])
        if done + 1 < asked:
            moved(screen, "n")
    return given
