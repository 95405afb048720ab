"""kill -9 at every system call of an append, as the call is entered and as it returns."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.faults.child import elsewhere
from tests.faults.converge import SAMPLES, Owing, acks, complete, converge, expect_repaired
from tests.faults.namespaces import own_processes
from tests.faults.tracer import Traced, places_to_try, reach, traced
from triage.session import open_session

Count = Callable[[str, int], None]
LOGS = ("crashed-dispatched", "no-final-newline", "torn-tail", "same-id-two-open-turns", "waiting")
PARTS = 2  # processes that share the stops of one log


def kill_at_each_stop(owing: Owing, path: Path, part: int) -> tuple[int, int, set[bool]]:
    """Kill an append at one stop after the other, every second of them.

    Returns how many stops were left out and at how many it was killed, and whether the repair was in the
    log by then: False, True or both.
    """
    tried, written = 0, set()
    path.write_bytes(owing.log)
    with append(owing, path) as child:
        total, chosen = places_to_try(child)
    for place in chosen[part::PARTS]:
        path.write_bytes(owing.log)
        with append(owing, path) as child:
            if reach(child, place) is None:
                continue
            child.kill()
        tried += 1
        try:
            written.add(expect_all_or_nothing(owing, path))
        except Exception as error:
            raise AssertionError(f"killed at {place}") from error
    return total - len(chosen), tried, written


def append(owing: Owing, path: Path) -> AbstractContextManager[Traced]:
    return traced("apply", path, "--operator", "mara", *acks(owing.plan))


def expect_all_or_nothing(owing: Owing, path: Path) -> bool:
    """Nothing was written, and the log is repaired now; or all of it was, and nothing is left to repair."""
    found = path.read_bytes()
    if found == owing.log:
        converge(path, owing)
        return False
    assert found.startswith(owing.log)
    expect_repaired(found[len(owing.log) :], owing.plan)
    assert open_session(str(path)).plan.repairs == ()
    return True


@pytest.mark.parametrize("name", LOGS)
def test_an_append_that_is_killed_at_any_system_call_has_written_all_or_nothing(
    name: str, tmp_path: Path, count: Count
) -> None:
    owing = Owing.of(str(SAMPLES / f"{name}.jsonl"))
    parts = [
        elsewhere(kill_at_each_stop, owing, tmp_path / f"{part}.jsonl", part, prepare=own_processes)
        for part in range(PARTS)
    ]
    found = [part() for part in parts]
    left_out, tried = found[0][0], sum(tried for _, tried, _ in found)
    assert set.union(*(written for _, _, written in found)) == {False, True}
    count("kills of `triage apply`, one at each entry and each return of a system call", tried)
    if left_out:
        count("entries and returns in its searches that were left out, for they were too many", left_out)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_stop_does_not_fall_between_two_parts_of_a_repair(
    log: Path, stop: signal.Signals
) -> None:
    owing = Owing.of(str(log))
    with append(owing, log) as child:
        child.until(child.at("write", log))
        child.shorten(100)
        os.kill(child.pid, stop)
        outcome = child.finish()
    assert outcome.code in (-stop, 130)
    if stop == signal.SIGINT:
        assert "`triage plan` shows whether the repair has landed" in outcome.err
    assert expect_all_or_nothing(owing, log), "only a part of the repair is in the log"


def test_a_kill_between_two_parts_of_a_repair_leaves_a_part_that_the_next_completes(log: Path) -> None:
    owing = Owing.of(str(log))
    with append(owing, log) as child:
        child.until(child.at("write", log))
        child.shorten(100)
        child.until(child.at("write", log))
        child.kill()
    assert len(log.read_bytes()) == len(owing.log) + 100
    session = open_session(str(log))
    assert [repair.type for repair in session.plan.repairs] == [repair.type for repair in owing.plan.repairs]
    complete(session, owing)
