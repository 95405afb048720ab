"""What real files bring: torn, damaged, odd, huge, or no log at all."""

import errno
import json
import os
import random
import re
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.helpers import (
    asks,
    codes,
    denies,
    dispatch,
    encoded,
    event,
    evidence,
    ids,
    log,
    names,
    owed,
    plan_of,
    plan_of_text,
    read,
    result,
    rule,
    speaks,
    step_end,
    step_start,
    torn,
    turn_end,
    turn_start,
    user,
    with_repair,
)
from triage.log import blocks as blocks_module
from triage.log import journal as journal_module
from triage.log.codes import TYPES
from triage.log.events import Corrupt, Event
from triage.log.journal import Journal, read_journal
from triage.log.source import Unreadable
from triage.recovery.plan import Plan
from triage.recovery.scan import Scan
from triage.session import open_session

CRASHED = [turn_start(1), step_start(), names("a", "b"), dispatch("a")]


def corrupt(text: bytes) -> list[Corrupt]:
    return list(read(text).scan.state().corrupt)


def planned(text: bytes) -> tuple[Any, ...]:
    """The heart of a plan: what is owed by which rule, and what a repair would append."""
    plan = plan_of_text(text)
    return [(e.tool_call_id, e.rule) for e in plan.owed], [(r.type, r.data) for r in plan.repairs]


def says(plan: Plan, code: str) -> str:
    return next(anomaly.says for anomaly in plan.anomalies if anomaly.code == code)


# ---- a torn last line


def test_every_cut_of_the_last_line_is_kept_and_shown_as_corrupt() -> None:
    before, last = log(*CRASHED), encoded(result("a", "a result"), 4)
    for stop in range(1, len(last)):
        text = before + last[:stop]
        (stretch,) = corrupt(text)
        assert (stretch.line, stretch.start, stretch.stop, stretch.torn) == (5, len(before), len(text), True)
        plan = plan_of_text(text)
        assert codes(plan) == ["torn_tail"]
        assert plan.anomalies[0].line == 5
        assert f"bytes {len(before):,} to {len(text):,} ({stop:,} bytes, kept)" in plan.anomalies[0].says
        assert rule(plan, "a") == 1


def test_a_half_written_result_is_never_an_answer() -> None:
    last = encoded(result("a"), 4)
    assert ids(plan_of_text(log(*CRASHED) + last)) == ["b"]
    for stop in range(len(last)):
        assert ids(plan_of_text(log(*CRASHED) + last[:stop])) == ["a", "b"]


def test_the_repair_of_a_torn_log_starts_on_a_new_line_and_the_torn_bytes_stay() -> None:
    text = log(*CRASHED) + b'{"seq":4,"type":"tool_re'
    repaired = with_repair(text, plan_of_text(text).repairs)
    assert repaired.startswith(text + b'\n{"seq":4,')
    assert plan_of_text(repaired).repairs == ()
    assert corrupt(repaired)[0].torn is False


def test_a_log_that_is_one_torn_line_is_recognised_by_its_type() -> None:
    assert plan_of_text(torn(turn_start())).status == "clean"
    assert codes(plan_of_text(torn(turn_start()))) == ["torn_tail"]


# ---- a complete last line without a newline


def test_a_complete_last_line_without_a_newline_is_an_event() -> None:
    text = log(*CRASHED, result("a")).removesuffix(b"\n")
    assert planned(text) == planned(text + b"\n")
    assert codes(plan_of_text(text)) == []
    assert read(text).base.ends_with_newline is False
    assert read(text + b"\n").base.ends_with_newline is True


def test_its_repair_starts_with_a_newline() -> None:
    text = log(*CRASHED).removesuffix(b"\n")
    repaired = with_repair(text, plan_of_text(text).repairs)
    assert repaired.startswith(text + b"\n")
    assert codes(plan_of_text(repaired)) == []


# ---- damage in the middle


@pytest.mark.parametrize(
    "damage",
    [
        b"\0" * 64,
        b"\xff\xfe\xfd",
        b"not json",
        b'{"seq":4,"type":"tool_',
        b"[1,2,3]",
        b"17",
        b'"x"',
        b"null",
        b"}",
    ],
)
def test_a_corrupt_line_is_an_anomaly_with_line_and_byte_range(damage: bytes) -> None:
    before, after = log(*CRASHED), encoded(result("a"), 5) + b"\n"
    text = before + damage + b"\n" + after
    (stretch,) = corrupt(text)
    assert (stretch.line, stretch.start, stretch.stop) == (5, len(before), len(before) + len(damage))
    plan = plan_of_text(text)
    assert [(a.code, a.line) for a in plan.anomalies] == [("corrupt_line", 5)]
    assert f"{len(before):,} to {len(before) + len(damage):,}" in plan.anomalies[0].says
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [("b", 4)]
    assert 5 in evidence(plan, "b")


def test_an_object_that_is_no_event_is_an_anomaly() -> None:
    for odd in (b"{}", b'{"data":{}}', b'{"type":7}', b'{"type":null,"data":{"tool_call_id":"a"}}'):
        plan = plan_of(*CRASHED, odd)
        assert codes(plan) == ["corrupt_line"]
        assert rule(plan, "b") == 4


def test_nul_runs_of_a_power_loss_are_named_as_such_and_hide_no_event_beside_them() -> None:
    line = encoded(result("a"), 4)
    for text in (b"\0" * 512 + line, line + b"\0" * 512, b"\0" * 512 + line + b"\0\0"):
        plan = plan_of(*CRASHED, text)
        assert ids(plan) == ["b"]
        assert "NUL" in says(plan, "corrupt_line")
        assert rule(plan, "b") == 4


def test_a_nul_run_over_several_lines_is_one_corrupt_line() -> None:
    text = bytearray(log(*CRASHED, result("a"), user(), user()))
    start = text.index(b'"tool_call"')
    text[start : start + 200] = b"\0" * 200
    plan = plan_of_text(bytes(text))
    assert len(plan.anomalies) == 1
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [("a", 4), ("b", 4)]


def test_two_records_glued_on_one_line_are_both_read() -> None:
    glued = encoded(result("a"), 4) + encoded(result("b"), 5)
    plan = plan_of(*CRASHED, glued)
    assert ids(plan) == []
    assert [(a.code, a.line) for a in plan.anomalies] == [("glued_records", 5)]
    assert planned(log(*CRASHED) + glued)[1] == planned(log(*CRASHED, result("a"), result("b")))[1]


def test_glued_records_take_effect_in_their_order() -> None:
    ended = encoded(turn_end(), 4) + encoded(turn_start(2), 5) + encoded(names("c"), 6)
    plan = plan_of(*CRASHED, ended)
    assert [(e.tool_call_id, e.turn_seq) for e in plan.owed] == [("c", 5)]


def test_a_record_glued_to_a_torn_one_is_read_where_the_torn_one_breaks_on_the_way() -> None:
    prefix = encoded(user("half a sen"), 4)[:-5]  # cut inside its text: the next quote ends it
    text = log(*CRASHED) + prefix + encoded(result("a"), 5) + b"\n"
    assert ids(plan_of_text(text)) == ["b"]
    (stretch,) = corrupt(text)
    assert (stretch.start, stretch.stop) == (len(log(*CRASHED)), len(log(*CRASHED)) + len(prefix))
    assert codes(plan_of_text(text)) == ["corrupt_line"]  # and no seq gap: seq 4 is what was torn


def test_a_record_glued_to_a_torn_one_is_not_read_where_it_may_be_a_part_of_it() -> None:
    prefix = b'{"seq":4,"type":"tool_result","time":"","data":'
    text = log(*CRASHED) + prefix + encoded(result("a"), 5) + b"\n"
    assert ids(plan_of_text(text)) == ["a", "b"]
    (stretch,) = corrupt(text)
    assert stretch.stop == len(text) - 1


def test_nothing_in_a_corrupt_line_counts_as_evidence_that_a_call_did_not_run() -> None:
    looks_like = [torn(dispatch("x")), torn(step_end()), b"\0" + torn(dispatch("x")), torn(result("b"))]
    for line in looks_like:
        assert rule(plan_of(turn_start(), step_start(), names("b"), line), "b") == 4


# ---- unknown types


def test_an_unknown_type_is_kept_counted_and_ignored_by_the_rules() -> None:
    events = [*CRASHED, event("turn_ended"), event("tool_outcome", tool_call_id="a"), event("heartbeat")]
    plan = plan_of(*events, event("heartbeat"))
    assert planned(log(*events, event("heartbeat"))) == planned(log(*CRASHED, user(), user(), user(), user()))
    assert [(a.code, a.line, a.says.split(":")[0]) for a in plan.anomalies] == [
        ("unknown_type", None, "2 of type 'heartbeat'"),
        ("unknown_type", None, "1 of type 'tool_outcome'"),
        ("unknown_type", None, "1 of type 'turn_ended'"),
    ]
    assert read(log(*events)).scan.state().events == len(events)


def test_a_log_of_unknown_types_is_still_a_log_where_it_has_seq_and_data() -> None:
    assert plan_of(event("heartbeat")).status == "clean"


# ---- seq


def with_seqs(*seqs: Any) -> bytes:
    rows: list[dict[str, Any]] = [
        {"type": "turn_start", "data": {}},
        *[{"type": "user_message", "data": {}}] * 9,
    ]
    return b"".join(
        orjson.dumps(row if seq is None else {"seq": seq, **row}, option=orjson.OPT_APPEND_NEWLINE)
        if seq is None or seq < 2**63
        else json.dumps({"seq": seq, **row}).encode() + b"\n"
        for seq, row in zip(seqs, rows, strict=False)
    )


@pytest.mark.parametrize(
    ("seqs", "found", "line", "next_seq"),
    [
        ((0, 1, 2), [], None, 3),
        ((7, 8, 9), [], None, 10),
        ((0, 1, 1), ["seq_duplicate"], 3, 2),
        ((0, 1, 5), ["seq_gap"], 3, 6),
        ((0, 9, 1), ["seq_gap", "seq_out_of_order"], 2, 10),
        ((2, 1, 0), ["seq_out_of_order", "seq_out_of_order"], 2, 3),
        ((None, None, None), [], None, 3),
        ((0, None, 2), ["seq_missing"], 2, 3),
        ((0, None, 1), ["seq_duplicate", "seq_missing"], 3, 2),
        ((None, 4, None), ["seq_missing"], 1, 5),
        ((0, 1, 2**70), ["seq_missing"], 3, 2),
        ((0, 1, 2**63), ["seq_missing"], 3, 2),
        ((-1, 0, 1), ["seq_missing"], 1, 2),
        ((2**63 - 2,), [], None, 2**63 - 1),
    ],
)
def test_the_order_of_the_file_counts_and_the_repair_goes_on_after_the_largest_seq(
    seqs: tuple[Any, ...], found: list[str], line: int | None, next_seq: int
) -> None:
    text = with_seqs(*seqs)
    plan = plan_of_text(text)
    assert codes(plan) == found
    assert not found or plan.anomalies[0].line == line
    assert read(text).scan.state().next_seq == next_seq
    assert plan.status == "crashed"


@pytest.mark.parametrize("seq", ["3", 3.5, True, None, [3], {}])
def test_a_seq_that_is_no_integer_is_missing(seq: object) -> None:
    line = json.dumps({"seq": seq, "type": "user_message", "data": {}}).encode()
    assert codes(plan_of(turn_start(), line)) == ["seq_missing"]


def test_an_event_without_a_seq_goes_by_its_index() -> None:
    start = b'{"type":"turn_start","data":{}}'
    assert plan_of(user(), user(), start).open_turns[0].seq == 2
    assert plan_of(b"garbage", user(), start).open_turns[0].seq == 1


def test_a_corrupt_line_explains_the_gap_that_it_leaves() -> None:
    assert codes(plan_of(turn_start(), b"garbage", user())) == ["corrupt_line"]
    lines = [encoded(turn_start(), 0), b"garbage", encoded(user(), 4), encoded(user(), 6)]
    plan = plan_of(*lines)
    assert [(a.code, a.line) for a in plan.anomalies] == [("corrupt_line", 2), ("seq_gap", 4)]


# ---- the same id under another name is in test_rules; odd times


@pytest.mark.parametrize("time", [None, 0, "yesterday", "", [1], {"a": 1}, "2026-13-99T99:99:99Z", 1e300])
def test_a_missing_or_odd_time_is_kept_as_it_is(time: object) -> None:
    line = json.dumps(
        {"seq": 1, "type": "assistant_message", "time": time, "data": {"tool_calls": [{"id": "a"}]}}
    )
    plan = plan_of(turn_start(), line.encode())
    assert (owed(plan, "a").time, codes(plan)) == (time, [])
    assert owed(plan_of(turn_start(), b'{"seq":1,"type":"tool_call","data":{"id":"a"}}'), "a").time is None


# ---- spellings of a file


def test_crlf_bom_and_blank_lines_change_nothing() -> None:
    plain = log(*CRASHED)
    for text in (
        plain.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + plain,
        b"\n\n" + plain.replace(b"\n", b"\n \t\r\n"),
        plain.replace(b"{", b" { ", 1),
    ):
        assert planned(text) == planned(plain)
        assert codes(plan_of_text(text)) == []


def test_blank_lines_keep_their_place_in_the_count_of_lines() -> None:
    plan = plan_of_text(b"\n\r\n" + log(*CRASHED))
    assert plan.open_turns[0].line == 3
    assert evidence(plan, "a") == [5, 6]


def test_a_record_that_newlines_broke_is_told_also_where_one_of_its_lines_is_an_object_by_itself() -> None:
    broken = b'{"seq":1,"type":"user_message","time":null,"data":\n{"content":"hi"}\n}\n'
    found = [(a.code, a.line) for a in read(log(turn_start(1)) + broken).scan.state().anomalies]
    assert ("split_record", 2) in found


def test_lines_are_split_on_the_byte_newline_alone() -> None:
    for separator in ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"):
        text = json.dumps(
            {"seq": 4, "type": "user_message", "data": {"content": separator}}, ensure_ascii=False
        )
        if separator < "\x20":
            text = text.replace("\\u000b", "\\f").replace("\\u001c", "\\f")
        plan = plan_of_text(log(*CRASHED) + text.encode() + b"\n" + log(result("a")))
        assert ids(plan) == ["b"], repr(separator)
        assert "corrupt_line" not in codes(plan)
    assert read(log(*CRASHED).replace(b"\n", b"\r")).lines == 1


@pytest.mark.parametrize(
    "bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\\ud800", b"\\udc00\\ud800"]
)
def test_bytes_that_are_no_utf_8_and_lone_surrogates_are_no_damage(bad: bytes) -> None:
    line = b'{"seq":4,"type":"tool_result","data":{"tool_call_id":"a","content":"' + bad + b'"}}'
    plan = plan_of(*CRASHED, line)
    assert (ids(plan), codes(plan)) == (["b"], [])


@pytest.mark.parametrize("bad", [b"\xff", b"\\ud800", b"\xed\xa0\x80"])
def test_an_id_that_is_no_text_is_an_id_all_the_same(bad: bytes) -> None:
    named = b'{"type":"assistant_message","data":{"tool_calls":[{"id":"' + bad + b'"},{"id":"z"}]}}'
    sent = b'{"type":"tool_call","data":{"tool_call_id":"' + bad + b'"}}'
    plan = plan_of(turn_start(), named, sent)
    assert [entry.rule for entry in plan.owed] == [1, 2]


@pytest.mark.parametrize("big", [2**64, 2**64 + 1, -(2**63) - 1, 10**400])
def test_an_integer_id_beyond_64_bits_is_exact(big: int) -> None:
    plan = plan_of(turn_start(), names(big, big + 1), dispatch(big), result(big + 1))
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [(str(big), 1)]
    for field in ("id", "tool_call_id"):
        call = {field: big, "name": "bash"}
        assert rule(plan_of(turn_start(), names(call), event("tool_call", **call)), str(big)) == 1


def test_a_number_that_no_float_holds_is_no_damage() -> None:
    line = (
        b'{"seq":4,"type":"tool_result","data":{"tool_call_id":"a","n":1e999,"m":-1e-999,"i":'
        + b"9" * 5000
        + b"}}"
    )
    assert (ids(plan_of(*CRASHED, line)), codes(plan_of(*CRASHED, line))) == (["b"], [])


def test_the_last_of_two_equal_keys_wins_on_every_path() -> None:
    fast = b'{"seq":9,"seq":4,"type":"turn_end","type":"tool_result","data":{"id":"b","id":"a"}}'
    slow = fast.replace(b'"b"', b'"\xff"')
    for line in (fast, slow):
        assert ids(plan_of(*CRASHED, line)) == ["b"]


def test_data_that_is_no_object_is_an_event_without_data() -> None:
    for data in (b"null", b"[]", b'"a"', b"7"):
        plan = plan_of(*CRASHED, b'{"seq":4,"type":"tool_result","data":' + data + b"}")
        assert (ids(plan), codes(plan)) == (["a", "b"], ["result_without_id"])
    assert ids(plan_of(*CRASHED, b'{"seq":4,"type":"turn_end"}')) == []


def test_a_line_of_50_mb_is_a_line() -> None:
    content = "x" * 50_000_000
    text = log(*CRASHED, result("a", content), user())
    journal = read(text)
    assert journal.offsets[5] - journal.offsets[4] > len(content)
    assert [(e.tool_call_id, e.rule) for e in plan_of_text(text).owed] == [("b", 2)]


def test_a_damaged_line_of_50_mb_is_one_corrupt_line() -> None:
    text = log(*CRASHED) + log(result("a", '{"seq":1,' * 5_000_000))[:-3] + b"\0\n" + log(user())
    plan = plan_of_text(text)
    assert [anomaly.line for anomaly in plan.anomalies if anomaly.code == "corrupt_line"] == [5]
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [("a", 1), ("b", 4)]


def test_nesting_100_000_deep_is_read() -> None:
    deep = b'{"seq":2,"type":"assistant_message","data":{"tool_calls":[{"id":"a","arguments":%s}]}}'
    nested = deep % (b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
    plan = plan_of(turn_start(), step_start(), nested, dispatch("a"))
    assert (rule(plan, "a"), codes(plan)) == (1, [])


def test_nesting_that_never_ends_is_a_corrupt_line() -> None:
    assert codes(plan_of(*CRASHED, b'{"a":' * 100_000)) == ["corrupt_line"]
    assert codes(plan_of(*CRASHED, b"[" * 300_000)) == ["corrupt_line"]


# ---- what is listed stays bounded


def test_a_flood_of_one_anomaly_is_listed_up_to_a_point_and_then_counted() -> None:
    plan = plan_of(*[b"garbage"] * 500, turn_start())
    listed = [anomaly for anomaly in plan.anomalies if anomaly.line is not None]
    assert [anomaly.line for anomaly in listed] == list(range(1, 21))
    assert [a.says for a in plan.anomalies if a.line is None] == ["and 480 more like these"]


def test_what_is_kept_follows_what_is_open_and_not_the_length_of_the_log() -> None:
    turn = [turn_start(), names("a", "b"), asks("r", "a"), denies("r"), result("a"), result("b"), turn_end()]
    scan = Scan()
    for line, happening in enumerate([*turn * 300, *CRASHED], start=1):
        scan.feed(Event(happening["type"], happening["data"], line, line))
    assert [call.id for calls in scan._by_id.values() for call in calls] == ["a", "b"]
    assert scan._requests == {}
    assert len(scan.state().open_turns) == 1


# ---- the index


def test_the_index_has_the_offset_of_every_line_and_of_the_end() -> None:
    for text in (log(*CRASHED), log(*CRASHED)[:-1], b"\n" + log(*CRASHED) + b"\r\n\0\0\n{", b""):
        journal = read(text)
        pieces = text.split(b"\n")
        lines = [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
        assert journal.lines == len(lines) == len(journal.depths) == len(journal.mates)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        assert list(journal.offsets) == starts


def test_the_index_says_what_each_line_is() -> None:
    journal = read(
        log(
            turn_start(),
            b"",
            b"garbage",
            encoded(user(), 3) + encoded(user(), 4),
            b"\0" + encoded(user(), 5),
            event("heartbeat"),
            names("a"),
            b"{}",
        )
        + torn(result("a"))
    )
    assert [TYPES[code] for code in journal.codes] == [
        "turn_start",
        "blank",
        "corrupt",
        "damaged",
        "damaged",
        "other",
        "assistant_message",
        "corrupt",
        "corrupt",
    ]


def test_the_index_says_how_deep_each_line_lies() -> None:
    journal = read(
        log(
            user(),
            turn_start(),
            user(),
            step_start(),
            user(),
            step_end(),
            turn_start(),
            user(),
            turn_end(),
            turn_end(),
        )
    )
    assert list(journal.depths) == [0, 0, 1, 1, 2, 1, 1, 2, 1, 0]


def test_the_index_knows_which_line_closes_what() -> None:
    journal = read(
        log(
            turn_start(),
            step_start(),
            user(),
            step_end(),
            turn_start(),
            turn_end(),
            step_start(),
            turn_end(),
            turn_end(),
        )
    )
    assert list(journal.mates) == [8, 4, 0, 0, 6, 0, 0, 0, 0]


def test_a_mate_on_its_own_line_is_found() -> None:
    assert list(read(encoded(turn_start(), 0) + encoded(turn_end(), 1)).mates) == [1]


def on_disk(folder: Path, text: bytes) -> Journal:
    path = folder / "log.jsonl"
    path.write_bytes(text)
    return read_journal(str(path))


def test_each_line_can_be_read_again_byte_by_byte_as_it_is(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + log(*CRASHED).replace(b"\n", b"\r\n") + b"\xff\0\n\n" + torn(user())
    journal = on_disk(tmp_path, text)
    assert b"".join(journal.raw(line) for line in range(1, journal.lines + 1)) == text


def test_the_events_of_a_line_can_be_read_again(tmp_path: Path) -> None:
    journal = on_disk(
        tmp_path, log(turn_start(3), encoded(user(), 1) + encoded(names("a"), 2), b"garbage", b"")
    )
    found = [[event.type for event in journal.events(line)] for line in range(1, 5)]
    assert found == [["turn_start"], ["user_message", "assistant_message"], [], []]
    assert journal.events(1)[0].data == {"turn": 3}
    assert journal.events(1)[0].line == 1


def test_a_line_of_a_large_log_that_shrank_or_vanished_meanwhile_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK", 64)
    journal = on_disk(tmp_path, log(*CRASHED))
    os.truncate(journal.path, journal.offsets[2] + 5)
    assert journal.raw(1) == encoded(CRASHED[0], 0) + b"\n"
    with pytest.raises(Unreadable) as shrank:
        journal.raw(3)
    assert shrank.value.code == "log_moved"
    os.unlink(journal.path)
    with pytest.raises(Unreadable) as vanished:
        journal.raw(1)
    assert vanished.value.code == "not_found"


def test_a_line_of_a_small_log_is_there_as_it_was_read_whatever_became_of_the_file(tmp_path: Path) -> None:
    journal = on_disk(tmp_path, log(*CRASHED))
    os.unlink(journal.path)
    lines = [encoded(happening, seq) + b"\n" for seq, happening in enumerate(CRASHED)]
    assert [journal.raw(line) for line in range(1, journal.lines + 1)] == lines


def test_a_log_of_many_blocks_is_read_as_one_of_a_single_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    events = [user("x" * rng.randint(0, 60)) for _ in range(60)]
    text = log(*events, *CRASHED, b"garbage")[:-1]
    whole = read(text)
    for block in (1, 2, 7, 64, 97, 1000):
        monkeypatch.setattr(blocks_module, "BLOCK", block)
        again = read(text)
        assert (again.offsets, again.codes, again.mates) == (whole.offsets, whole.codes, whole.mates)
        assert again.scan.state().anomalies == whole.scan.state().anomalies


def test_progress_is_told_in_bytes_up_to_the_size_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK", 100)
    path = tmp_path / "log.jsonl"
    path.write_bytes(log(*CRASHED * 5))
    told: list[tuple[int, int]] = []
    read_journal(str(path), lambda done, total: told.append((done, total)))
    size = path.stat().st_size
    assert len(told) > 5
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert {total for _, total in told} == {size}
    assert told[-1][0] <= size


# ---- the base: the exact state that a plan was made from


def test_two_states_of_a_log_never_have_the_same_base(tmp_path: Path) -> None:
    text = log(*CRASHED)
    journal = on_disk(tmp_path, text)
    assert (journal.base.size, journal.base.last_seq) == (len(text), 3)
    assert read_journal(journal.path).base == journal.base
    changed = text[:-10] + b"#" + text[-9:]
    for other in (text + b"\n", text[:-1], changed):
        assert on_disk(tmp_path, other).base != journal.base
    assert on_disk(tmp_path, text).base == journal.base


def test_the_last_seq_of_a_log_without_seqs_is_that_of_its_last_event() -> None:
    assert read(with_seqs(None, None, None)).base.last_seq == 2
    assert read(b"").base.last_seq == -1


# ---- no log at all


@pytest.mark.parametrize("text", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_an_empty_file_is_a_native_log_without_events(text: bytes) -> None:
    journal = read(text)
    assert journal.format.NAME == "native"
    plan = plan_of_text(text)
    assert (plan.status, plan.repairs, plan.anomalies, plan.boundary.name) == ("clean", (), (), "terminal")


def unreadable(path: Path | str) -> str:
    with pytest.raises(Unreadable) as caught:
        read_journal(str(path))
    says = str(caught.value)
    assert str(path) in says
    assert "\n" not in says
    return caught.value.code


@pytest.mark.parametrize(
    "text",
    [
        b"hello\nworld\n",
        b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 40,
        b"\0" * 5000,
        b"<html></html>",
        b"[1,2,3]\n",
        b'{"name":"x","version":"1.0.0"}\n',
        b"{}\n",
        b"a,b\n1,2\n",
    ],
)
def test_a_file_that_is_no_log_is_said_to_be_none(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(text)
    assert unreadable(path) == "not_a_log"


def test_a_directory_is_no_log(tmp_path: Path) -> None:
    assert unreadable(tmp_path) == "is_directory"


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    assert unreadable(tmp_path / "missing") == "not_found"
    (tmp_path / "file").write_bytes(b"")
    assert unreadable(tmp_path / "file" / "below") == "not_found"
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    assert unreadable(tmp_path / "dangling") == "not_found"


def test_a_link_to_a_log_is_the_log(tmp_path: Path) -> None:
    journal = on_disk(tmp_path, log(*CRASHED))
    (tmp_path / "link").symlink_to(journal.path)
    assert read_journal(str(tmp_path / "link")).base == journal.base


def test_a_link_to_itself_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert unreadable(tmp_path / "loop") == "io_error"


def test_a_fifo_is_refused_at_once_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    caught: list[str] = []
    reader = threading.Thread(target=lambda: caught.append(unreadable(tmp_path / "fifo")), daemon=True)
    reader.start()
    reader.join(timeout=30)
    assert caught == ["not_a_file"]


def test_a_device_and_a_socket_are_refused(tmp_path: Path) -> None:
    assert unreadable("/dev/null") == "not_a_file"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        assert unreadable(tmp_path / "s") == "not_a_file"


@contextmanager
def as_a_user_without_rights() -> Iterator[None]:
    """Root may read everything; so as nobody, for a moment, where the tests run as root."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_without_permission_is_said_to_be_so() -> None:
    with tempfile.TemporaryDirectory() as folder:  # and not tmp_path, which is closed to others as a whole
        os.chmod(folder, 0o755)
        path = Path(folder, "log.jsonl")
        path.write_bytes(log(*CRASHED))
        with as_a_user_without_rights():
            assert read_journal(str(path)).lines == 4
        path.chmod(0)
        with as_a_user_without_rights():
            assert unreadable(path) == "no_permission"


@pytest.mark.parametrize("good", [0, 1, 2, 3], ids="after {} reads".format)
def test_an_error_of_the_disk_while_reading_is_unreadable(
    good: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(log(*CRASHED))
    monkeypatch.setattr(blocks_module, "BLOCK", 64)
    read, left = os.pread, iter([None] * good)

    def failing(*args: Any) -> bytes:
        for _ in left:
            return read(*args)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", failing)
    assert unreadable(path) == "io_error"


@pytest.mark.parametrize("block", [64, 1 << 18], ids=["large", "small"])
def test_a_disk_that_gives_less_than_it_is_asked_for_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    text, read = log(*CRASHED * 3), os.pread
    monkeypatch.setattr(blocks_module, "BLOCK", block)
    whole = on_disk(tmp_path, text)
    monkeypatch.setattr(os, "pread", lambda descriptor, size, at: read(descriptor, min(size, 50), at))
    again = read_journal(whole.path)
    assert (again.offsets, again.codes) == (whole.offsets, whole.codes)


def test_a_log_that_is_cut_while_it_is_read_is_said_to_have_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(log(*CRASHED * 50))
    monkeypatch.setattr(blocks_module, "BLOCK", 1000)
    with pytest.raises(Unreadable) as caught:
        read_journal(str(path), lambda *_: os.truncate(path, 1500))
    assert caught.value.code == "log_moved"


def test_a_log_that_grows_while_it_is_read_is_read_up_to_where_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(log(*CRASHED * 50))
    size = path.stat().st_size
    monkeypatch.setattr(blocks_module, "BLOCK", 1000)

    def grow(done: int, total: int) -> None:
        with path.open("ab") as file:
            file.write(encoded(turn_end()) + b"\n")

    journal = read_journal(str(path), grow)
    assert (journal.size, journal.base.size, journal.offsets[-1]) == (size, size, size)
    assert read_journal(str(path)).base != journal.base


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else None
    if before is None:
        pytest.skip("this system does not list a process's descriptors")
    on_disk(tmp_path, log(*CRASHED)).raw(1)
    unreadable(tmp_path)
    (tmp_path / "text").write_bytes(b"hello")
    unreadable(tmp_path / "text")
    assert len(os.listdir("/proc/self/fd")) == before


# ---- one JSON document that holds the events


def document(*happenings: Any, **extra: Any) -> dict[str, Any]:
    return {
        "version": 2,
        **extra,
        "events": [json.loads(encoded(h, seq)) for seq, h in enumerate(happenings)],
    }


COMPACT = json.dumps(document(*CRASHED, result("b")), separators=(",", ":")).encode()
PRETTY = json.dumps(document(*CRASHED, result("b")), indent=2).encode() + b"\n"


@pytest.mark.parametrize(
    "text",
    [COMPACT, PRETTY, b"\xef\xbb\xbf" + PRETTY, b"\n " + COMPACT + b"\r\n"],
    ids=["compact", "pretty", "with a BOM", "among blanks"],
)
def test_a_document_is_read_and_planned_like_its_events_one_a_line(text: bytes) -> None:
    journal = read(text)
    assert (journal.one_document, journal.lines) == (True, 5)
    assert planned(text) == planned(log(*CRASHED, result("b")))
    assert codes(plan_of_text(text)) == []
    assert evidence(plan_of_text(text), "a") == [3, 4]  # the records' indices from 1


def test_an_append_to_a_document_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "context.json"
    path.write_bytes(COMPACT)
    plan = open_session(str(path)).plan
    assert plan.refusal is not None
    assert (plan.refusal.code, plan.refusal.ids) == ("not_append_only", ("a",))
    assert "not an append-only log" in plan.refusal.says
    path.write_bytes(json.dumps(document(user())).encode())
    assert open_session(str(path)).plan.refusal is None


@pytest.mark.parametrize("text", [COMPACT, PRETTY], ids=["compact", "pretty"])
def test_every_cut_of_a_document_is_planned_from_the_records_that_are_certainly_whole(text: bytes) -> None:
    begins = [match.start() for match in re.finditer(rb'\{\s*"seq"', text)]
    ends = [start + json.JSONDecoder().raw_decode(text[start:].decode())[1] for start in begins]
    for stop in range(text.index(b"[") + 1, len(text.rstrip())):
        journal = read(text[:stop])
        assert journal.one_document
        assert journal.lines == sum(end <= stop for end in ends), text[:stop]
        assert [stretch.torn for stretch in journal.scan.state().corrupt] == [True]


def test_a_record_of_a_document_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "context.json"
    path.write_bytes(PRETTY)
    journal = read_journal(str(path))
    assert [json.loads(journal.raw(line)) for line in range(1, 6)] == document(*CRASHED, result("b"))[
        "events"
    ]
    assert [event.type for event in journal.events(3)] == ["assistant_message"]


def test_odd_records_of_a_document_are_corrupt_and_the_others_are_read() -> None:
    text = json.dumps({"events": [json.loads(encoded(turn_start())), None, 7, [], {}, "x"]}).encode()
    journal = read(text)
    assert [TYPES[code] for code in journal.codes] == ["turn_start", *["corrupt"] * 5]
    assert [stretch.line for stretch in journal.scan.state().corrupt] == [2, 3, 4, 5, 6]
    assert [journal.raw(line) for line in (2, 3)] == [
        b'{"type":null,"record":null}',
        b'{"type":null,"record":7}',
    ]


def test_what_the_fast_parser_can_not_read_in_a_document_is_read_exactly(tmp_path: Path) -> None:
    big = 2**70
    deep = json.loads("[" * 500 + "]" * 500)
    text = json.dumps(document(turn_start(), names((big, "\ud800", deep)), dispatch(big))).encode()
    path = tmp_path / "context.json"
    path.write_bytes(text)
    session = open_session(str(path))
    assert [(e.tool_call_id, e.rule) for e in session.plan.owed] == [(str(big), 1)]
    assert str(big).encode() in session.journal.raw(2)


def test_an_integer_id_beyond_64_bits_is_exact_in_a_document_too() -> None:
    text = json.dumps(document(turn_start(), names(2**64, 2**64 + 1), dispatch(2**64))).encode()
    assert [(e.tool_call_id, e.rule) for e in plan_of_text(text).owed] == [
        (str(2**64), 1),
        (str(2**64 + 1), 2),
    ]


@pytest.mark.parametrize("damage", [b"\0", b"}", b"x"])
def test_a_damaged_document_is_read_up_to_the_damage_and_says_so(damage: bytes) -> None:
    at = COMPACT.index(b'{"seq":4')
    text = COMPACT[:at] + damage + COMPACT[at:]
    plan = plan_of_text(text)
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [("a", 1), ("b", 4)]
    assert codes(plan) == ["torn_tail"]


def test_what_follows_a_document_is_not_silently_dropped() -> None:
    assert codes(plan_of_text(COMPACT + b"\n" + log(turn_end()))) == ["torn_tail"]


@pytest.mark.parametrize("events", [b"5", b"null", b"{}"])
def test_a_document_whose_events_are_replaced_by_something_else_later_is_damaged(events: bytes) -> None:
    padded = COMPACT[:-1] + b',"pad":"' + b"x" * 70_000 + b'","events":' + events + b"}"
    plan = plan_of_text(padded)
    assert (plan.owed, codes(plan)) == ((), ["torn_tail"])


def test_a_document_that_is_too_large_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(journal_module, "LARGEST_DOCUMENT", 100)
    path = tmp_path / "context.json"
    path.write_bytes(COMPACT)
    assert unreadable(path) == "document_too_large"


def test_an_event_that_merely_carries_events_is_no_document() -> None:
    line = b'{"seq":0,"type":"turn_start","data":{"events":[1]}}\n'
    assert read(line).one_document is False
    assert plan_of_text(line).status == "crashed"


def test_speaking_of_a_turn_end_is_none() -> None:
    quoted = json.dumps({"seq": 9, "type": "turn_end", "data": {}})
    assert plan_of(*CRASHED, speaks(quoted + "\n" + quoted), user(quoted)).status == "crashed"
