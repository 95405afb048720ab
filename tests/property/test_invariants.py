"""What holds for every log: random ones, with turns that nest, ids that come again, and damage."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.helpers import (
    allows,
    asks,
    asks_input,
    denies,
    dispatch,
    encoded,
    event,
    gives_input,
    log,
    names,
    plan_of_text,
    read,
    request_header,
    result,
    speaks,
    step_end,
    step_start,
    torn,
    turn_end,
    turn_start,
    user,
    with_repair,
)
from tests.property.oracle import Oracle
from triage.log.events import Event
from triage.log.formats.native import RECORDS
from triage.log.source import Unreadable
from triage.recovery.acknowledge import Answer, findings_for
from triage.recovery.board import KEPT_PER_CODE
from triage.recovery.plan import Owed, Plan, make_plan
from triage.recovery.rules import NOT_STARTED, OUTCOME_UNKNOWN
from triage.recovery.scan import Scan
from triage.session import open_session

Line = Mapping[str, Any] | bytes

PLAIN: list[dict[str, Any]] = [
    *[turn_start(), turn_start(7), turn_end(), turn_end()],
    *[step_start(), step_start(), step_end(), step_end()],
    *[names("a"), names("b", "a"), names(("a", "other")), names(3, "a", "b"), names({"tool_call_id": "c"})],
    *[dispatch("a"), dispatch("b"), dispatch(3), event("tool_call", id="c"), event("tool_call", name="bash")],
    *[result("a"), result("b"), result("3"), event("tool_result", id="c"), event("tool_result")],
    *[speaks(), user(), request_header(), event("heartbeat", tool_call_id="a")],
]
WAITING: list[dict[str, Any]] = [
    *[asks("r", "a"), asks("s", "b"), asks("r", "b"), asks("t"), asks_input("i", "a")],
    *[allows("r"), denies("r"), denies("s"), allows("s", None), gives_input("i"), gives_input("r")],
    *[denies("i"), denies("t", tool_call_id="a"), denies("never")],
]
CORRUPT = [b"\0" * 30, b"{", b"[]", b"not json", torn(user()), torn(dispatch("a")), torn(result("b"))]

plain_logs = st.lists(st.sampled_from(PLAIN), max_size=22)
waiting_logs = st.lists(st.sampled_from(PLAIN + WAITING), max_size=22)
any_logs = st.lists(st.one_of(st.sampled_from(PLAIN + WAITING), st.sampled_from(CORRUPT)), max_size=22)


def lines_of(events: Sequence[Line]) -> list[bytes]:
    return [encoded(happening, seq) for seq, happening in enumerate(events)]


def plan_of_lines(lines: Sequence[bytes]) -> Plan | None:
    """The plan of a log of these lines; None where nothing in them shows that it is a log."""
    try:
        return plan_of_text(b"".join(line + b"\n" for line in lines))
    except Unreadable:
        return None


def entries(plan: Plan) -> dict[tuple[int, str, int], Owed]:
    """The owed calls by their identity: the line of their turn, their id, the line that named them."""
    return {(owed.turn_line, owed.tool_call_id, owed.line): owed for owed in plan.owed}


# ---- the rules


@settings(max_examples=1500)
@given(plain_logs)
def test_the_plan_is_the_one_that_the_rules_give_when_they_are_read_out_plainly(
    events: list[dict[str, Any]],
) -> None:
    plan = plan_of_events(events)
    owed = iter(plan.owed)
    planned: list[dict[str, Any]] = []
    for repair in plan.repairs:
        if repair.type == "tool_result":
            entry = next(owed)
            planned.append(
                {"type": "tool_result", "id": entry.tool_call_id, "name": entry.name, "rule": entry.rule}
            )
        else:
            planned.append(
                {"type": repair.type, "steps": repair.data["steps"], "turn": repair.data.get("turn")}
            )
    oracle = Oracle(events)
    assert planned == oracle.plan()
    assert [(left.tool_call_id, left.line - 1) for left in plan.left] == oracle.left()


def plan_of_events(events: Sequence[Mapping[str, Any]]) -> Plan:
    return make_plan(scanned(events).state(), RECORDS)


def scanned(events: Sequence[Mapping[str, Any]]) -> Scan:
    scan = Scan()
    for line, happening in enumerate(events, start=1):
        scan.feed(Event(happening["type"], happening["data"], line, line - 1))
    return scan


@settings(max_examples=300)
@given(any_logs)
def test_every_risk_is_proven_by_lines_of_the_log(events: list[Line]) -> None:
    plan = plan_of_lines(lines_of(events))
    assume(plan is not None)
    assert plan is not None
    for owed in plan.owed:
        assert [row.rule for row in owed.trace if row.held] == [owed.rule]
        assert owed.risk == (OUTCOME_UNKNOWN if owed.rule in (1, 4) else NOT_STARTED)
        assert owed.needs_acknowledgement == (owed.rule in (1, 4, "W1"))
        proof = next(row.lines for row in owed.trace if row.held)
        assert proof
        assert set(proof) <= {line.line for line in owed.evidence}
        named = {line for row in owed.trace for line in row.lines} | {e.line for e in owed.evidence}
        assert all(1 <= line <= len(events) for line in named)
        assert owed.line in {line.line for line in owed.evidence}


# ---- the plan


@settings(max_examples=400)
@given(any_logs, st.booleans())
def test_planning_a_repaired_log_gives_an_empty_plan(events: list[Line], newline: bool) -> None:
    text = b"\n".join(lines_of(events)) + (b"\n" if newline and events else b"")
    plan = plan_or_none(text)
    assume(plan is not None)
    assert plan is not None
    repaired = plan_of_text(with_repair(text, plan.repairs))
    assert (repaired.repairs, repaired.owed, repaired.open_turns) == ((), (), ())
    assert repaired.boundary.name == "terminal"
    assert repaired.left == plan.left
    # A repair adds nothing that is wrong with a log: only a torn last line is now one in the middle.
    codes, before = (Counter(a.code for a in p.anomalies if a.line is not None) for p in (repaired, plan))
    more = codes - before
    if before["inconsistent_approval"]:  # one that contradicted before may do so again when it is closed
        del more["inconsistent_approval"]
    assert more <= Counter(corrupt_line=1)


def plan_or_none(text: bytes) -> Plan | None:
    try:
        return plan_of_text(text)
    except Unreadable:
        return None


@settings(max_examples=300)
@given(any_logs)
def test_every_owed_call_is_answered_exactly_once_and_every_open_turn_ended_once(events: list[Line]) -> None:
    plan = plan_of_lines(lines_of(events))
    assume(plan is not None)
    assert plan is not None
    assert [r.key for r in plan.repairs if r.type == "tool_result"] == [owed.key for owed in plan.owed]
    assert len({owed.key for owed in plan.owed}) == len(plan.owed)
    assert sum(r.type == "turn_end" for r in plan.repairs) == len(plan.open_turns)
    closed = [r.data["request_id"] for r in plan.repairs if r.type in ("approval_decided", "input_resolved")]
    asked = Counter(
        e["data"]["request_id"] for e in events if isinstance(e, Mapping) and e["type"].endswith("_requested")
    )
    assert Counter(closed) <= asked


@settings(max_examples=80)
@given(any_logs, st.booleans())
def test_a_repair_on_disk_keeps_every_byte_and_answers_every_owed_call(
    events: list[Line], newline: bool
) -> None:
    text = b"\n".join(lines_of(events)) + (b"\n" if newline and events else b"")
    assume(plan_or_none(text) is not None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_bytes(text)
        session = open_session(str(path))
        answers = {
            owed.key: Answer(findings_for(owed)[0])
            for owed in session.plan.owed
            if owed.needs_acknowledgement
        }
        session.apply(answers)
        after = path.read_bytes()
        assert after.startswith(text)
        assert open_session(str(path)).plan.repairs == ()
    records = [json.loads(line) for line in after[len(text) :].split(b"\n") if line]
    results = [record["data"] for record in records if record["type"] == "tool_result"]
    assert [(data["tool_call_id"], data["metadata"]["risk"]) for data in results] == [
        (owed.tool_call_id, owed.risk) for owed in session.plan.owed
    ]
    assert [record["type"] for record in records] == [repair.type for repair in session.plan.repairs]


# ---- one pass, asked at any time


@settings(max_examples=150)
@given(st.lists(st.sampled_from(PLAIN + WAITING), max_size=14))
def test_the_state_in_the_middle_of_a_log_is_the_state_of_that_much_of_it(
    events: list[dict[str, Any]],
) -> None:
    scan = Scan()
    for line, happening in enumerate(events, start=1):
        scan.feed(Event(happening["type"], happening["data"], line, line - 1))
        asked = make_plan(scan.state(), RECORDS)
        assert asked == make_plan(scan.state(), RECORDS) == plan_of_events(events[:line])


@settings(max_examples=300)
@given(waiting_logs, st.integers(0, 22))
def test_what_was_asked_in_between_does_not_change_what_comes_out(
    events: list[dict[str, Any]], stop: int
) -> None:
    asked, quiet = scanned(events[:stop]), scanned(events)
    asked.state()
    for line, happening in enumerate(events[stop:], start=min(stop, len(events)) + 1):
        asked.feed(Event(happening["type"], happening["data"], line, line - 1))
    assert make_plan(asked.state(), RECORDS) == make_plan(quiet.state(), RECORDS)


# ---- damage: never less pessimistic
#
# A damaged line is compared with the whole one, call by call: the same turn, id and first sighting. Two
# kinds of log are left out, where what follows the damage means another thing: a step_end that closes
# nothing in the whole log closes a step when the end of that one is lost; and a call that was
# dispatched before it was named is first seen where it was dispatched.

DAMAGES = ["nul", "cut", "cut before its type", "garbage", "flip"]


def damaged(line: bytes, how: str, at: int) -> bytes:
    if how == "nul":
        return b"\0" * len(line)
    if how == "cut":  # its own type can still be read
        return line[: len(line) - 1 - at % 12]
    if how == "cut before its type":
        return line[: 1 + at % line.index(b'"type"')]
    if how == "garbage":
        return line[: at % len(line)] + b"\0\xff}" + line[at % len(line) + 1 :]
    flipped = at % len(line)
    return line[:flipped] + bytes([line[flipped] ^ 1 << at % 7]).replace(b"\n", b"\0") + line[flipped + 1 :]


def is_seen(damage: bytes) -> bool:
    """Whether the damage can be seen at all: a flipped letter of an id makes another valid record."""
    return bool(read(encoded(turn_start()) + b"\n" + damage + b"\n").scan.state().corrupt)


def without_stray_step_ends(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept, steps = [], 0
    for happening in events:
        steps += {"step_start": 1, "step_end": -1}.get(happening["type"], 0)
        if steps >= 0:
            kept.append(happening)
        steps = max(steps, 0)
    return kept


def first_seen_dispatched(line: Line, id: str) -> bool:
    return (
        isinstance(line, Mapping)
        and line["type"] == "tool_call"
        and id in map(str, (line["data"].get("tool_call_id"), line["data"].get("id")))
    )


@settings(max_examples=700)
@given(
    st.sampled_from([[], [turn_start()], [turn_start(), step_start(), names("a", "b")]]),
    st.lists(st.sampled_from(PLAIN), min_size=2, max_size=16),
    st.integers(0, 18),
    st.sampled_from(DAMAGES),
    st.integers(0, 200),
)
def test_a_damaged_line_never_turns_an_unknown_outcome_into_one_that_did_not_start(
    start: list[dict[str, Any]], random: list[dict[str, Any]], where: int, how: str, at: int
) -> None:
    events = without_stray_step_ends([*start, *random])
    assume(events)
    where %= len(events)
    lines = lines_of(events)
    bad = damaged(lines[where], how, at)
    if not is_seen(bad):
        bad = damaged(lines[where], "garbage", at)
    whole, after = plan_of_lines(lines), plan_of_lines([*lines[:where], bad, *lines[where + 1 :]])
    assume(whole is not None and after is not None)
    assert whole is not None
    assert after is not None
    before = entries(whole)
    for identity, owed in entries(after).items():
        if identity in before and before[identity].risk == OUTCOME_UNKNOWN:
            seen_before = owed.line > where + 1 and first_seen_dispatched(events[where], owed.tool_call_id)
            assert owed.risk == OUTCOME_UNKNOWN or seen_before, (owed, bad)


@settings(max_examples=400)
@given(any_logs, st.integers(0, 22), st.sampled_from([b"\0" * 20, b"{", b"{}", b'{"seq":1,"type":"tool_']))
@example([turn_start(), asks("r", "a"), names("a", "b"), dispatch("b")], 2, b"{")
def test_no_call_that_was_named_before_an_unreadable_line_in_its_turn_is_said_not_to_have_started(
    events: list[Line], where: int, bad: bytes
) -> None:
    where = min(where, len(events))
    lines = lines_of(events)
    plan = plan_of_lines([*lines[:where], bad, *lines[where:]])
    assume(plan is not None)
    assert plan is not None
    for owed in plan.owed:
        if owed.turn_line <= where and owed.line <= where:
            assert owed.risk == OUTCOME_UNKNOWN
            assert where + 1 in {line.line for line in owed.evidence}


@settings(max_examples=400)
@given(plain_logs, st.integers(0, 22))
def test_an_unreadable_line_takes_nothing_from_the_calls_that_were_named_after_it(
    events: list[dict[str, Any]], where: int
) -> None:
    where = min(where, len(events))
    lines = lines_of(events)
    plan, after = plan_of_lines(lines), plan_of_lines([*lines[:where], b"{", *lines[where:]])
    assume(plan is not None and after is not None)
    assert plan is not None
    assert after is not None
    assert [owed.tool_call_id for owed in after.owed] == [owed.tool_call_id for owed in plan.owed]
    for before, now in zip(plan.owed, after.owed, strict=True):
        if before.line > where:
            assert now.rule == before.rule
        elif before.turn_line <= where:
            assert now.rule == (1 if before.rule == 1 else 4)


@settings(max_examples=150)
@given(any_logs, st.data())
def test_a_log_that_is_cut_anywhere_is_read_up_to_the_cut(events: list[Line], data: st.DataObject) -> None:
    text = log(*events)
    stop = data.draw(st.integers(0, len(text)))
    plan = plan_or_none(text[:stop])
    last_whole = text[:stop].rfind(b"\n") + 1
    whole = plan_or_none(text[:last_whole])
    assume(plan is not None and whole is not None)
    assert plan is not None
    assert whole is not None
    rest = text[last_whole:stop]
    if not any(rest == line for line in lines_of(events)):  # torn in the middle: it is no event
        assert [(t.line, t.turn) for t in plan.open_turns] == [(t.line, t.turn) for t in whole.open_turns]
        assert entries(plan).keys() == entries(whole).keys()
        for identity, owed in entries(plan).items():
            assert owed.risk in (OUTCOME_UNKNOWN, entries(whole)[identity].risk)


# ---- any bytes at all


PIECES = [
    *[encoded(happening, seq) for seq, happening in enumerate(PLAIN)],
    *[b"\n", b"\n", b"\r\n", b"\0" * 9, b"\xff", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b'"', b"\\", b","],
    *[
        b'{"seq":',
        b'{"type":"turn_start"',
        b'"data":{',
        b'{"version":2,"events":[',
        b"]}",
        b"1e999",
        b"\\ud800",
    ],
    *[b'{"seq":1,"type":["turn_end"],"data":', b'{"type":{"a":1},"da', b'{"events":', b"null", b" "],
]
glued = st.lists(st.sampled_from(PIECES), max_size=16).map(b"".join)
any_bytes = st.one_of(st.binary(max_size=200), glued, st.tuples(glued, st.binary(max_size=20)).map(b"".join))
ZSTD = b"\x28\xb5\x2f\xfd"  # what begins so is unpacked, and has other lines than its bytes


@settings(max_examples=900)
@given(any_bytes.filter(lambda text: not text.startswith(ZSTD)))
@example(b'{"seq":1,"type":["user_message"],"da')
@example(b'{"events":[{"type":"turn_start"}')
@example(b'{"version":2,"events":[]}' + b"\n" + b"{" * 9)
def test_reading_any_bytes_raises_nothing_but_unreadable_and_stays_in_bounds(text: bytes) -> None:
    try:
        journal = read(text)
    except Unreadable as error:
        assert error.code == "not_a_log"
        return
    plan = make_plan(journal.scan.state(), journal.format.RECORDS)
    assert journal.lines == len(journal.codes) == len(journal.depths) == len(journal.mates)
    assert len(journal.offsets) == journal.lines + 1
    if not journal.one_document:
        assert journal.offsets[-1] == len(text)
        assert journal.lines == text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
        for stretch in journal.scan.state().corrupt:
            line = stretch.line - 1
            assert journal.offsets[line] <= stretch.start <= stretch.stop <= journal.offsets[line + 1]
    assert all(mate == 0 or mate > line for line, mate in enumerate(journal.mates))
    listed = Counter(anomaly.code for anomaly in plan.anomalies if anomaly.line is not None)
    assert all(count <= KEPT_PER_CODE for count in listed.values())
    assert plan.status in ("clean", "crashed", "doubtful")
    assert (plan.status == "crashed") == bool(plan.open_turns)
    json.dumps([dict(repair.data) for repair in plan.repairs])


@settings(max_examples=300)
@given(any_logs, st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6))
def test_any_bytes_of_a_log_may_be_damaged_and_it_is_still_planned(
    events: list[Line], damage: list[tuple[int, int]]
) -> None:
    text = bytearray(log(*events))
    for at, byte in damage:
        if text:
            text[at % len(text)] = byte
    plan = plan_or_none(bytes(text))
    if plan is not None:
        repaired = plan_of_text(with_repair(bytes(text), plan.repairs))
        assert repaired.repairs == ()


@settings(max_examples=200)
@given(any_logs)
def test_line_ends_and_blank_lines_change_nothing_but_the_lines(events: list[Line]) -> None:
    text = log(*events)
    plan = plan_or_none(text)
    assume(plan is not None)
    assert plan is not None
    for other in (text.replace(b"\n", b"\r\n"), text.replace(b"\n", b"\n\n"), b"\xef\xbb\xbf" + text):
        again = plan_of_text(other)
        assert [(owed.key, owed.rule) for owed in again.owed] == [(owed.key, owed.rule) for owed in plan.owed]
        assert again.repairs == plan.repairs
        assert again.status == plan.status
