"""A log that grows is read on from where it was read: the same as reading all of it again."""

from __future__ import annotations

import gc
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import dispatch, log, names, result, turn_end, turn_start, user
from triage.log import fast
from triage.log import journal as journal_module
from triage.log.journal import Journal, extend_journal, read_journal
from triage.log.source import Unreadable
from triage.recovery.acknowledge import Answer
from triage.recovery.plan import make_plan
from triage.session import open_session

ROOT = Path(__file__).parents[2]
CUTS = 12  # prefixes of one log
LOGS = [
    *sorted((ROOT / "sample_logs").glob("*.jsonl")),
    *(
        path
        for path in sorted((ROOT / "tests" / "fixtures").rglob("*.jsonl"))
        if path.parent.name not in ("cases", "fuzz")
    ),
]


def facts(journal: Journal) -> tuple[object, ...]:
    """Everything that a plan or a screen takes from a journal."""
    state = journal.scan.state()
    plan = make_plan(state, journal.format.RECORDS)
    rows = (journal.offsets, bytes(journal.codes), bytes(journal.depths), journal.mates, journal.base)
    known = (dict(journal.decoder.facts()), journal.size, journal.scan.events, state.last_time)
    lines = journal.decoder.encode(plan.repairs, journal.base.last_seq + 1, None, journal.records)
    refusal = journal.decoder.refusal(plan) if plan.repairs else None
    return (*rows, *known, plan, journal.decoder.complete(plan, state), refusal, lines)


def new_lines(journal: Journal | None, since: Journal | None = None) -> tuple[object, ...]:
    """What a journal says of the lines that are new in it, or new since another one."""
    if journal is None:
        return ()
    before = journal.index.before
    if since is not None and since.mark is not None:
        before = since.mark.lines
    skip = before - journal.index.before
    new = [journal.raw(line) for line in range(before + 1, journal.lines + 1)]
    rows = (journal.codes[skip:], journal.depths[skip:], journal.mates[skip:], journal.offsets[skip:])
    return (journal.lines, new, *rows, journal.base, make_plan(journal.scan.state(), journal.format.RECORDS))


@pytest.mark.parametrize("source", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_log_that_grows_is_as_if_it_had_been_read_whole(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "ANEW", 0)
    text = source.read_bytes()
    dice = random.Random(source.name)
    ends = [at + 1 for at, byte in enumerate(text) if byte == 10]
    cuts = {
        *dice.sample(ends, min(CUTS // 2, len(ends))),
        *(dice.randrange(len(text)) for _ in range(CUTS // 2)),
    }
    path = tmp_path / source.name
    for cut in sorted(cuts):
        path.write_bytes(text[:cut])
        try:
            journal = read_journal(str(path))
        except Unreadable:
            continue
        before = facts(journal)
        with path.open("ab") as file:  # in two steps, so that what grew grows again
            middle = dice.randrange(cut, len(text) + 1)
            file.write(text[cut:middle])
            file.flush()
            grown = extend_journal(journal)
            assert new_lines(extend_journal(journal, whole=False)) == new_lines(grown, journal)
            file.write(text[middle:])
        again = None if grown is None else extend_journal(grown)
        if again is None:
            assert journal.mark is None or read_journal(str(path)).format is not journal.format
            continue
        assert facts(again) == facts(read_journal(str(path)))
        path.write_bytes(text[:cut])  # and the one before is as it was
        assert facts(journal) == before


def bytes_read(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> int:
    """How many bytes of files were read while something was done."""
    read, pread = [0], os.pread

    def counting(descriptor: int, size: int, at: int) -> bytes:
        found = pread(descriptor, size, at)
        read[0] += len(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", counting)
        act()
    return read[0]


def long_log(path: Path, turns: int) -> Path:
    """A native log whose last turn owes one unknown call, behind so many healthy ones."""
    healthy = [
        happening
        for turn in range(turns)
        for happening in (
            turn_start(turn),
            names(f"c{turn}"),
            result(f"c{turn}", "x" * 2000),
            turn_end(turn=turn),
        )
    ]
    path.write_bytes(log(*healthy, turn_start(turns), names("last"), dispatch("last")))
    return path


def test_what_is_read_of_a_grown_log_and_of_an_appended_one_does_not_depend_on_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for turns in (200, 2000):
        path = long_log(tmp_path / f"{turns}.jsonl", turns)
        session = open_session(str(path))
        with path.open("ab") as file:
            file.write(b'{"type": "user_message", "data": {"content": "are you there?"}}\n')
        grown = bytes_read(monkeypatch, session.read_on)
        session = session.read_on()
        appended = bytes_read(monkeypatch, lambda: session.apply({"last": Answer("ran")}))  # noqa: B023
        found.append((grown, appended))
        assert session.read_on().plan.status == "clean"
    assert abs(found[0][0] - found[1][0]) < 100 and abs(found[0][1] - found[1][1]) < 100  # longer numbers
    assert max(found[0]) < 200_000


def test_what_an_append_keeps_in_memory_does_not_depend_on_the_logs_size(tmp_path: Path) -> None:
    peaks = []
    for turns in (200, 8000):
        session = open_session(str(long_log(tmp_path / f"{turns}.jsonl", turns)))
        tracemalloc.start()
        session.apply({"last": Answer("ran")})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert abs(peaks[0] - peaks[1]) < 100_000, "the index of the larger one has 480,000 bytes"


def test_a_turn_of_very_many_calls_is_read_anew_rather_than_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "ANEW", 0)
    monkeypatch.setattr(journal_module, "COPIED_CALLS", 2)
    path = tmp_path / "log.jsonl"
    path.write_bytes(log(turn_start(1), names("a", "b", "c")) + b'{"type": "to')
    journal = read_journal(str(path))
    assert journal.mark is None and extend_journal(journal) is None
    path.write_bytes(log(turn_start(1), names("a")))
    journal = read_journal(str(path))
    assert journal.mark is not None and extend_journal(journal) is not None


def test_a_small_log_that_ended_amid_a_line_is_read_anew_once_it_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(log(turn_start(1), names("a"))[:-4])
    session = open_session(str(path))
    assert session.journal.mark is None
    path.write_bytes(log(turn_start(1), names("a"), result("a", "text"), turn_end(turn=1)))
    assert session.read_on().plan.status == "clean"


def test_a_small_log_that_was_rewritten_ahead_of_its_end_is_read_anew_when_it_grew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.jsonl"
    text = log(turn_start(1), names("a"), *[user("x" * 900)] * 8)
    path.write_bytes(text)
    session = open_session(str(path))
    with path.open("r+b") as file:
        file.write(text.replace(b'"a"', b'"b"') + log(dispatch("b")))
    assert extend_journal(session.journal) is None
    assert [owed.tool_call_id for owed in session.read_on().plan.owed] == ["b"]


def test_damage_that_no_glance_saw_makes_a_log_doubtful_once_it_owes_something_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast, "GLANCE_FROM", 0)
    turn = log(turn_start(1), names("a"), result("a", "text"), turn_end(turn=1))
    path = tmp_path / "log.jsonl"
    path.write_bytes(turn.replace(b'"text"', b'"te\x01xt' + b"x" * 2000 + b'"'))
    session = open_session(str(path))
    assert session.plan.status == "clean"
    with path.open("ab") as file:
        file.write(log(names("b")))
    assert extend_journal(session.journal) is None
    assert session.read_on().plan.status == open_session(str(path)).plan.status == "doubtful"


def test_following_for_long_keeps_nothing_of_what_was_read_before(tmp_path: Path) -> None:
    path = long_log(tmp_path / "log.jsonl", 50)
    session = open_session(str(path))

    def follow(times: int) -> int:
        nonlocal session
        for _ in range(times):
            with path.open("ab") as file:
                file.write(b'{"type": "note", "data": {}}\n')
            session = session.read_on()
        gc.collect()
        return len(gc.get_objects())

    follow(20)
    before = follow(20)
    assert follow(500) - before < 100
