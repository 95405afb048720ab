"""A log that moves between its plan and the append, or that has more names than one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.child import Outcome, triage
from tests.faults.converge import Owing, acks, complete, expect_repaired
from tests.faults.tracer import traced
from triage.session import open_session

OTHER = b'{"seq":90,"type":"user_message","time":"2026-05-20T10:00:00.000Z","data":{"content":"on we go"}}\n'


@pytest.fixture
def owing(log: Path) -> Owing:
    return Owing.of(str(log))


def grow(log: Path) -> None:
    with log.open("ab") as file:
        file.write(OTHER)


def truncate(log: Path) -> None:
    os.truncate(log, log.read_bytes().rfind(b"\n", 0, -1) + 1)


def replace(log: Path) -> None:
    other = log.with_name("other")
    other.write_bytes(log.read_bytes())
    other.rename(log)


def rewrite_the_end(log: Path) -> None:
    with log.open("r+b") as file:
        file.seek(-30, os.SEEK_END)
        file.write(b"x")


def rewrite_the_start(log: Path) -> None:
    with log.open("r+b") as file:
        file.write(b" ")


def empty(log: Path) -> None:
    os.truncate(log, 0)


MOVES = [grow, truncate, replace, rewrite_the_end, empty]
Move = Callable[[Path], None]


def expect_moved(outcome: Outcome, log: Path, owing: Owing) -> None:
    """Refused, nothing written, and both states named."""
    assert outcome.code == 4, outcome
    refusal = json.loads(outcome.out)
    assert refusal["code"] == "log_moved" and refusal["retryable"]
    before = f"from {len(owing.log):,} bytes, last seq 89"
    assert before in outcome.err and f"to {log.stat().st_size:,} bytes, last seq " in outcome.err
    assert "Nothing was written: look at the new plan" in outcome.err


@pytest.mark.parametrize("move", MOVES)
def test_a_plan_of_a_log_that_moved_is_refused_with_both_states(log: Path, owing: Owing, move: Move) -> None:
    plan = log.with_name("plan.json")
    plan.write_text(triage("plan", log, "--json").out)
    move(log)
    found = log.read_bytes()
    outcome = triage("apply", log, "--json", "--plan", plan, *acks(owing.plan))
    expect_moved(outcome, log, owing)
    assert log.read_bytes() == found


@pytest.mark.parametrize("move", [*MOVES, rewrite_the_start])
def test_a_log_that_moves_between_its_plan_and_the_lock_is_refused(
    log: Path, owing: Owing, move: Move
) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("flock", log))
        move(log)
        found = log.read_bytes()
        outcome = child.finish()
    expect_moved(outcome, log, owing)
    assert log.read_bytes() == found


@pytest.mark.parametrize(
    ("move", "says"),
    [
        (replace, "the file was replaced by another one"),
        (rewrite_the_end, "; it was rewritten"),
        (rewrite_the_start, "; it was rewritten"),
    ],
)
def test_how_it_moved_is_said_where_its_size_does_not_show_it(
    log: Path, owing: Owing, move: Move, says: str
) -> None:
    with traced("apply", log, *acks(owing.plan)) as child:
        child.until(child.at("flock", log))
        move(log)
        assert says in child.finish().err


def test_a_log_that_is_replaced_under_the_lock_is_refused(log: Path, owing: Owing) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("openat", log))
        replace(log)
        outcome = child.finish()
    assert outcome.code == 4 and json.loads(outcome.out)["code"] == "log_moved"
    assert "was replaced just now. Nothing was written" in outcome.err
    assert log.read_bytes() == owing.log


def test_a_log_that_vanishes_before_the_lock_cannot_be_read(log: Path, owing: Owing) -> None:
    kept = log.with_name("kept")
    with traced("apply", log, *acks(owing.plan)) as child:
        child.until(child.at("flock", log))
        log.rename(kept)
        outcome = child.finish()
    assert outcome.code == 3 and "does not exist (any more)" in outcome.err
    assert kept.read_bytes() == owing.log and not log.exists()


def test_a_writer_that_comes_after_the_last_look_loses_nothing_and_is_said(log: Path, owing: Owing) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("write", log))
        grow(log)
        outcome = child.finish()
    assert outcome.code == 4 and json.loads(outcome.out)["code"] == "read_back"
    assert "another process wrote too" in outcome.err
    text = log.read_bytes()
    assert text.startswith(owing.log + OTHER)
    expect_repaired(text[len(owing.log + OTHER) :], owing.plan)


@pytest.mark.parametrize("rewrite", [rewrite_the_start, rewrite_the_end])
def test_a_log_that_is_rewritten_after_the_last_look_is_no_success(
    log: Path, owing: Owing, rewrite: Move
) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("write", log))
        rewrite(log)
        outcome = child.finish()
    assert outcome.code == 4 and json.loads(outcome.out)["code"] == "read_back"
    assert "another process wrote too" in outcome.err


def vanish(log: Path) -> Path:
    return log.rename(log.with_name("kept"))


def vanish_behind_another(log: Path) -> Path:
    kept = vanish(log)
    log.write_bytes(kept.read_bytes())
    return kept


@pytest.mark.parametrize("move", [vanish, vanish_behind_another])
def test_a_log_that_goes_right_after_the_write_is_not_said_to_be_as_it_was(
    log: Path, owing: Owing, move: Callable[[Path], Path]
) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("fsync", log))
        kept = move(log)
        outcome = child.finish()
    assert outcome.code == 4 and json.loads(outcome.out)["code"] == "read_back"
    assert "the repair was written" in outcome.err
    expect_repaired(kept.read_bytes()[len(owing.log) :], owing.plan)


def test_a_log_that_is_cut_right_after_the_write_is_no_success(log: Path, owing: Owing) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("fsync", log))
        os.truncate(log, len(owing.log) + 200)
        outcome = child.finish()
    assert outcome.code == 4 and json.loads(outcome.out)["code"] == "read_back"
    complete(open_session(str(log)), owing)


def test_a_log_that_owes_again_right_after_the_append_is_no_success(log: Path, owing: Owing) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("fsync", log))
        child.until(lambda stop: stop.entry and stop.name == "openat" and child.opened(stop) == str(log))
        with log.open("ab") as agent:
            agent.write(b'{"seq":94,"type":"turn_start","data":{"turn":5}}\n')
        outcome = child.finish()
    assert outcome.code == 4 and json.loads(outcome.out)["code"] == "read_back"
    assert "still owes something after the append: open it again" in outcome.err


def test_what_is_appended_through_a_symlink_lands_in_the_file_that_it_names(log: Path, owing: Owing) -> None:
    link = log.with_name("link.jsonl")
    link.symlink_to(log.name)
    assert triage("apply", link, *acks(owing.plan)).code == 0
    assert os.readlink(link) == log.name
    expect_repaired(log.read_bytes()[len(owing.log) :], owing.plan)


def test_a_symlink_that_is_turned_to_another_file_is_a_replaced_log(log: Path, owing: Owing) -> None:
    other = log.with_name("other.jsonl")
    other.write_bytes(owing.log)
    link = log.with_name("link.jsonl")
    link.symlink_to(log.name)
    with traced("apply", link, "--json", *acks(owing.plan)) as child:
        child.until(child.at("flock", log))
        link.unlink()
        link.symlink_to(other.name)
        expect_moved(child.finish(), other, owing)
    assert log.read_bytes() == other.read_bytes() == owing.log


def test_every_name_of_a_log_with_hard_links_shows_the_repair(log: Path, owing: Owing) -> None:
    other = log.with_name("other.jsonl")
    other.hardlink_to(log)
    assert triage("apply", log, *acks(owing.plan)).code == 0
    assert os.path.samefile(log, other) and log.stat().st_nlink == 2
    expect_repaired(other.read_bytes()[len(owing.log) :], owing.plan)
