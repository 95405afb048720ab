"""Every prefix of an append converges: the power may go after any byte of it."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.faults.child import elsewhere
from tests.faults.converge import SAMPLES, WITH_PLAN, Owing, answers, converge
from tests.faults.namespaces import own_processes
from triage.session import open_session

PARTS = 2  # processes that share the cuts of one log
Count = Callable[[str, int], None]


def converge_each(counts: Sequence[int], owing: Owing, folder: Path) -> int:
    """Cut the append after each of `counts` bytes and repair that. Returns how many were tried."""
    parts = [
        elsewhere(_converge_each, counts[part::PARTS], owing, folder / f"{part}.jsonl", prepare=own_processes)
        for part in range(PARTS)
    ]
    return sum(part() for part in parts)


def _converge_each(counts: Sequence[int], owing: Owing, path: Path) -> int:
    gc.disable()  # a fifth of the time
    for count in counts:
        path.write_bytes(owing.log + owing.text[:count])
        try:
            converge(path, owing)
        except Exception as error:
            raise AssertionError(f"cut after byte {count:,}: …{owing.text[:count][-200:]!r}") from error
    return len(counts)


@pytest.mark.parametrize("name", [name for name in WITH_PLAN if name != "large.jsonl"])
def test_an_append_that_is_cut_after_any_byte_is_completed_by_the_next(
    name: str, tmp_path: Path, count: Count
) -> None:
    owing = Owing.of(str(SAMPLES / name))
    tried = converge_each(range(len(owing.text) + 1), owing, tmp_path)
    count("prefixes of the appended text of the sample logs, each converged", tried)


def test_the_last_turn_of_the_large_log_converges_from_every_byte(tmp_path: Path, count: Count) -> None:
    path = tmp_path / "last-turn.jsonl"
    lines = (SAMPLES / "large.jsonl").read_bytes().splitlines(keepends=True)
    start = open_session(str(SAMPLES / "large.jsonl")).plan.open_turns[-1].line
    path.write_bytes(b"".join(lines[start - 1 :]))
    owing = Owing.of(str(path))
    assert owing.text == Owing.of(str(SAMPLES / "large.jsonl")).text
    tried = converge_each(range(len(owing.text) + 1), owing, tmp_path)
    count("prefixes of the appended text of the sample logs, each converged", tried)


def test_the_large_log_converges_whole_from_the_ends_of_each_record(tmp_path: Path, count: Count) -> None:
    owing = Owing.of(str(SAMPLES / "large.jsonl"))
    ends = [at + 1 for at, byte in enumerate(owing.text) if byte == ord("\n")]
    near = sorted({at for end in [0, *ends] for at in range(end - 2, end + 3) if 0 <= at <= len(owing.text)})
    count(
        "prefixes of the appended text of the large log at its full size",
        converge_each(near, owing, tmp_path),
    )


def test_a_repair_of_a_cut_repair_may_be_cut_after_any_byte_too(tmp_path: Path, count: Count) -> None:
    first = Owing.of(str(SAMPLES / "double-started.jsonl"))
    ends = [at + 1 for at, byte in enumerate(first.text) if byte == ord("\n")]
    tried = 0
    for cut in [end // 2 + start // 2 for start, end in zip([0, *ends], ends, strict=False)]:
        path = tmp_path / "cut.jsonl"
        path.write_bytes(first.log + first.text[:cut])
        second = Owing.of(str(path))
        tried += converge_each(range(0, len(second.text) + 1, 7), second, tmp_path)
    count("prefixes of a second repair, after a first one was cut", tried)


def test_a_half_written_record_stays_as_it_is_and_is_shown_as_a_line_that_cannot_be_read(log: Path) -> None:
    owing = Owing.of(str(log))
    half = owing.log + owing.text[: len(owing.text) // 3]
    log.write_bytes(half)
    session = open_session(str(log))
    assert session.plan.anomalies[-1].code == "torn_tail"
    session.apply(answers(session.plan))
    text = log.read_bytes()
    assert text.startswith(half + b"\n"), "the next record begins on a line of its own"
    assert open_session(str(log)).plan.anomalies[-1].code == "corrupt_line"
    assert json.loads(text[len(half) :].splitlines()[1])["type"] == "tool_result"


def test_a_torn_record_of_ours_makes_the_calls_before_it_doubtful_and_that_is_said(log: Path) -> None:
    owing = Owing.of(str(log))
    safe = next(owed for owed in owing.plan.owed if not owed.needs_acknowledgement)
    log.write_bytes(owing.log + owing.text[:100])
    session = open_session(str(log))
    (owed,) = [owed for owed in session.plan.owed if owed.key == safe.key]
    assert owed.needs_acknowledgement and owed.rule == 4
    assert f"line {session.journal.lines} can't be read" in owed.trace[3].says.replace(",", "")
    assert f"Line {session.journal.lines} can't be read" in session.corrupt_in_the_way.replace(",", "")


def test_a_record_that_lacks_only_its_newline_has_landed(log: Path) -> None:
    owing = Owing.of(str(log))
    log.write_bytes(owing.log + owing.text[: owing.text.index(b"\n")])
    assert len(converge(log, owing).plan.repairs) == len(owing.plan.repairs) - 1
    assert b"\n\n" not in log.read_bytes()
