"""Two operators at one log: one repair lands, and the other is told."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.child import Outcome, start, triage
from tests.faults.converge import SAMPLES, Owing, acks, complete, expect_repaired
from tests.faults.tracer import traced
from triage.log import append
from triage.session import open_session

PAIRS = 100
NAMES = ("crashed-dispatched", "double-started", "torn-tail", "no-final-newline", "waiting")
Count = Callable[[str, int], None]


@pytest.fixture
def owing(log: Path) -> Owing:
    return Owing.of(str(log))


def race(log: Path, owing: Owing, tmp_path: Path) -> list[Outcome]:
    """Two real `triage apply`, let go at the same moment."""
    gate, go = os.pipe()

    def wait() -> None:
        os.close(go)
        os.read(gate, 1)

    pair = [start("apply", log, "--operator", name, *acks(owing.plan), first=wait) for name in ("ann", "ben")]
    os.close(gate)
    os.close(go)
    return [child.wait() for child in pair]


def test_of_a_hundred_pairs_of_appends_one_of_each_lands(tmp_path: Path, count: Count) -> None:
    told: Counter[str] = Counter()
    for number in range(PAIRS):
        owing = Owing.of(str(SAMPLES / f"{NAMES[number % len(NAMES)]}.jsonl"))
        log = tmp_path / f"{number}.jsonl"
        log.write_bytes(owing.log)
        outcomes = race(log, owing, tmp_path)
        text = log.read_bytes()
        assert text.startswith(owing.log)
        expect_repaired(text[len(owing.log) :], owing.plan)
        assert open_session(str(log)).plan.repairs == ()
        (winner,) = [name for name, o in zip(("ann", "ben"), outcomes, strict=True) if "appended" in o.out]
        (loser,) = [outcome for outcome in outcomes if "appended" not in outcome.out]
        told[expect_told(loser, winner, owing, text)] += 1
    assert told.total() == PAIRS
    count("pairs of appends at the same moment: one repair each", PAIRS)
    for says, number in told.items():
        count(f"of those, the other one {says}", number)


def expect_told(loser: Outcome, winner: str, owing: Owing, text: bytes) -> str:
    """The loser found nothing to repair, or was refused with both states and by whom."""
    if loser.code == 0:
        assert "nothing to repair, nothing written" in loser.out, loser
        return "found nothing left to repair"
    assert loser.code == 4 and loser.out == "", loser
    assert f"from {len(owing.log):,} bytes, last seq " in loser.err
    assert f"to {len(text):,} bytes, last seq " in loser.err
    assert f"{winner} repaired it" in loser.err
    return "was refused, with the log's size and seq before and after"


def test_the_one_who_comes_second_is_told_both_states_and_by_whom(log: Path, owing: Owing) -> None:
    with traced("apply", log, "--json", "--operator", "ann", *acks(owing.plan)) as ann:
        ann.until(ann.at("flock", log))
        assert triage("apply", log, "--operator", "ben", *acks(owing.plan)).code == 0
        text = log.read_bytes()
        outcome = ann.finish()
    assert outcome.code == 4 and json.loads(outcome.out)["code"] == "log_moved"
    before, after = f"{len(owing.log):,} bytes, last seq 89", f"{len(text):,} bytes, last seq 93"
    assert f"from {before}, to {after}; ben repaired it" in outcome.err
    assert log.read_bytes() == text


@pytest.mark.parametrize("before", ["the gate", "the log is opened", "a plan is asked for"])
def test_of_two_who_disagree_the_second_is_told_what_each_one_found(
    before: str, log: Path, owing: Owing, plan: Path
) -> None:
    mine, theirs = "--ack=call_0a92=ran:seen=could-not-tell:x", "--ack=call_0a92=did-not-run"
    if before == "the gate":
        with traced("apply", log, "--json", "--operator", "ann", mine) as ann:
            ann.until(ann.at("flock", log))
            assert triage("apply", log, "--operator", "ben", theirs).code == 0
            outcome = ann.finish()
        assert outcome.code == 4
        assert "You disagree" in json.loads(outcome.out)["says"]
    else:
        assert triage("apply", log, "--operator", "ben", theirs).code == 0
        bound = ["--plan", plan] if before == "a plan is asked for" else []
        outcome = triage("apply", log, "--operator", "ann", *bound, mine)
        assert outcome.code == 0
    assert "You disagree on call_0a92: ben found “it did not run” (line 92), you “it ran”" in outcome.err


def test_two_who_found_the_same_do_not_disagree(log: Path, owing: Owing, plan: Path) -> None:
    assert triage("apply", log, *acks(owing.plan)).code == 0
    for bound in ([], ["--plan", plan]):
        assert "disagree" not in triage("apply", log, *bound, *acks(owing.plan)).err


def test_a_triage_that_waits_for_the_lock_is_no_agent(log: Path, owing: Owing) -> None:
    with traced("apply", log, *acks(owing.plan)) as waiting:
        waiting.until(waiting.at("flock", log))
        assert triage("apply", log, *acks(owing.plan)).code == 0


def test_a_triage_that_holds_the_lock_is_waited_for_and_then_named(
    log: Path, owing: Owing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append, "LOCK_SECONDS", 0.0)
    with traced("apply", log, *acks(owing.plan)) as first:
        first.until(first.at("write", log))
        outcome = triage("apply", log, "--json", *acks(owing.plan))
        assert outcome.code == 4 and json.loads(outcome.out)["code"] == "locked"
        assert f"(pid {first.pid})" in outcome.err and "try again when it is done" in outcome.err
        assert log.read_bytes() == owing.log
        assert first.finish().code == 0
    expect_repaired(log.read_bytes()[len(owing.log) :], owing.plan)


def test_a_triage_that_is_killed_with_the_lock_in_hand_leaves_it_free(log: Path, owing: Owing) -> None:
    with traced("apply", log, *acks(owing.plan)) as first:
        first.until(first.at("write", log))
        first.kill()
    assert triage("apply", log, *acks(owing.plan)).code == 0


# ---- apply --plan


@pytest.fixture
def plan(log: Path) -> Path:
    path = log.with_name("plan.json")
    path.write_text(triage("plan", log, "--json").out)
    return path


def test_a_plan_that_has_landed_already_is_a_success_that_writes_nothing(
    log: Path, owing: Owing, plan: Path
) -> None:
    assert triage("apply", log, "--plan", plan, *acks(owing.plan)).code == 0
    text = log.read_bytes()
    for _ in range(2):
        outcome = triage("apply", log, "--json", "--plan", plan, *acks(owing.plan))
        assert outcome.code == 0, outcome
        assert json.loads(outcome.out)["appended"] == []
    assert log.read_bytes() == text


def test_a_plan_of_which_a_part_has_landed_is_refused(log: Path, owing: Owing, plan: Path) -> None:
    for end in owing.ends[:-1]:
        log.write_bytes(owing.log + owing.text[: end + 1])
        outcome = triage("apply", log, "--json", "--plan", plan, *acks(owing.plan))
        assert outcome.code == 4 and json.loads(outcome.out)["code"] == "log_moved"
        assert log.read_bytes() == owing.log + owing.text[: end + 1]
    complete(open_session(str(log)), owing)


def test_a_plan_whose_calls_were_answered_by_another_hand_has_not_landed(
    log: Path, owing: Owing, plan: Path
) -> None:
    with log.open("ab") as agent:
        for seq, owed in enumerate(owing.plan.owed, 90):
            data = {"tool_call_id": owed.tool_call_id, "content": "done"}
            agent.write(json.dumps({"seq": seq, "type": "tool_result", "data": data}).encode() + b"\n")
        agent.write(b'{"seq":93,"type":"turn_end","data":{"turn":4}}\n')
    outcome = triage("apply", log, "--json", "--plan", plan)
    assert outcome.code == 4 and json.loads(outcome.out)["code"] == "log_moved"


def test_a_plan_of_which_a_part_landed_and_the_rest_was_answered_by_another_hand_has_not_landed(
    log: Path, owing: Owing, plan: Path
) -> None:
    log.write_bytes(owing.log + owing.text[: owing.ends[1] + 1])
    data = {"tool_call_id": owing.plan.owed[2].tool_call_id, "content": "done"}
    with log.open("ab") as agent:
        agent.write(json.dumps({"seq": 92, "type": "tool_result", "data": data}).encode() + b"\n")
        agent.write(owing.text[owing.ends[2] + 1 :])
    assert open_session(str(log)).plan.repairs == ()
    outcome = triage("apply", log, "--json", "--plan", plan)
    assert outcome.code == 4 and json.loads(outcome.out)["code"] == "log_moved"


def test_a_plan_that_landed_in_a_log_whose_older_lines_were_changed_since_has_not_landed(
    log: Path, owing: Owing, plan: Path
) -> None:
    assert triage("apply", log, "--plan", plan, *acks(owing.plan)).code == 0
    with log.open("r+b") as file:
        file.seek(len(owing.log) - 40)
        file.write(b"#")
    assert triage("apply", log, "--plan", plan).code == 4


BASE = {"device": 1, "inode": 1, "size": 1, "tail": "", "ends_with_newline": True, "last_seq": 1}


@pytest.mark.parametrize(
    "row",
    [
        *({}, [], None, {"base": None}, {"base": {}}, {"base": {**BASE, "more": 1}}),
        *({"base": {**BASE, "size": "1"}}, {"base": {**BASE, "size": -1}}, {"base": {**BASE, "inode": None}}),
        *({"base": BASE, "repairs": 7}, {"base": BASE, "repairs": [7]}),
        *(
            {"base": BASE, "repairs": [{"type": "turn_end"}]},
            {"base": BASE, "repairs": [{"type": 1, "data": {}}]},
        ),
    ],
)
def test_a_file_that_holds_no_plan_is_wrong_usage(log: Path, owing: Owing, row: object) -> None:
    plan = log.with_name("plan.json")
    plan.write_text(json.dumps(row))
    outcome = triage("apply", log, "--plan", plan, *acks(owing.plan))
    assert outcome.code == 2 and "is no plan" in outcome.err
    assert log.read_bytes() == owing.log
