"""DeepSeek Harness sessions: which calls a killed session owes, and the lines or the frame that close it."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.repairs import (
    appended,
    appended_lines,
    applied,
    assert_converges,
    corpus,
    log_of,
    plan_of_log,
    planned_lines,
    records_of,
    session_of,
    why_left,
)
from tests.helpers import codes, ids, kinds, owed, recognise, risk, rule
from triage.log.append import Refused
from triage.log.formats import dsh
from triage.log.source import Unreadable
from triage.session import open_session

NOT_STARTED_TEXT = (
    "The tool call was interrupted before the Harness recorded it as started. Retry it if it is still needed."
)


def log(name: str) -> list[dict[str, Any]]:
    return records_of("dsh", name)


def after(records: list[dict[str, Any]], type: str, **data: Any) -> list[dict[str, Any]]:
    """The log with one more event, its seq and time counted on."""
    last = records[-1]
    event = {"type": type, "seq": last["seq"] + 1, "time": last["time"] + 10, "data": data}
    return [*records, event]


def stripped(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The log as the harness's own fixtures keep it: without seq and time."""
    stamps = ("seq", "time", "seq0", "time0")
    return [{key: value for key, value in record.items() if key not in stamps} for record in records]


def code(session) -> str | None:
    return session.plan.refusal.code if session.plan.refusal else None


# ---- what a session owes


def test_a_recorded_start_is_unknown_and_its_unstarted_sibling_never_ran(tmp_path):
    """Stands for a session that was killed with one of three calls in flight."""
    plan = plan_of_log(tmp_path, log("killed"))
    assert ids(plan) == ["deploy", "report"]
    assert [(rule(plan, id), risk(plan, id)) for id in ids(plan)] == [(1, "unknown"), (2, "not started")]
    assert (plan.boundary.name, codes(plan)) == ("tool_open", [])
    assert owed(plan, "report").arguments == '{"command": "make report"}'


def test_without_the_dispatch_of_a_sibling_the_open_step_leaves_each_call_unknown(tmp_path):
    """Stands for a session that was killed between the model's answer and the first start."""
    plan = plan_of_log(tmp_path, without(log("killed-before-any-start"), "tool/call", "tool/result"))
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("build", 3), ("deploy", 4), ("notify", 4)]


def without(records: list[dict[str, Any]], *types: str) -> list[dict[str, Any]]:
    """The log without the events of some types, its seqs counted anew."""
    kept = [record for record in records if record["type"] not in types]
    for seq, record in enumerate(kept[1:]):
        record["seq"] = seq
    return kept


def test_a_dispatch_in_an_earlier_step_of_the_turn_shows_that_the_later_calls_did_not_start(tmp_path):
    plan = plan_of_log(tmp_path, log("killed-before-any-start"))
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("deploy", 2), ("notify", 2)]


def test_a_closed_step_without_any_start_shows_that_its_call_did_not_run(tmp_path):
    plan = plan_of_log(tmp_path, log("step-closed-without-a-start"))
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("build", 3)]
    open_step = without(log("step-closed-without-a-start"), "step/end")
    assert rule(plan_of_log(tmp_path, open_step), "build") == 4


def test_a_call_of_a_closed_turn_is_left_because_no_append_can_mend_it(tmp_path):
    plan = plan_of_log(tmp_path, log("left-in-a-closed-turn"))
    assert (plan.status, plan.repairs) == ("clean", ())
    assert "inside the turn: no append can mend it" in why_left(plan, "lint")
    assert "line 11" in why_left(plan, "lint")


def test_the_end_of_an_inner_turn_settles_nothing_of_the_turn_around_it(tmp_path):
    """Stands for a session that was killed and went on with its next turn, the killed one still open."""
    records = after(after(log("killed"), "turn/start", turn=2), "step/start", turn=2, step=1)
    call = {"type": "tool-call", "id": "deploy", "name": "bash", "arguments": "{}"}
    records = after(records, "assistant/message", turn=2, step=1, message={"content": [call]})
    records = after(records, "turn/end", turn=2, reason={"kind": "aborted"})
    plan = plan_of_log(tmp_path, records)
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("deploy", 1), ("report", 2)]
    assert "line 20" in why_left(plan, "deploy")


def test_a_result_with_an_error_failed_and_one_without_did_not(tmp_path):
    failed = {"name": "Error", "message": "no such host"}
    records = [
        {**record, "data": {**record["data"], "error": failed}} if record["type"] == "tool/result" else record
        for record in log("killed")
    ]
    for given, expected in ((records, True), (log("killed"), False)):
        journal = session_of(tmp_path, given).journal
        results = [
            event.data["is_error"]
            for line in range(1, journal.lines + 1)
            for event in journal.events(line)
            if event.type == "tool_result"
        ]
        assert results and set(results) == {expected}


def test_a_result_that_rewrites_another_answers_nothing_and_is_no_second_result(tmp_path):
    records = log("killed")
    result = next(r for r in records if r["type"] == "tool/result")
    rewrite = {**result, "surfaceOp": {"op": "replace", "start": 8, "end": 8}}
    rewrite["data"] = {**result["data"], "message": {"source": {"kind": "tool", "callId": "deploy"}}}
    records = after(records, "tool/result", **rewrite["data"])
    records[-1]["surfaceOp"] = rewrite["surfaceOp"]
    plan = plan_of_log(tmp_path, records)
    assert (ids(plan), codes(plan)) == (["deploy", "report"], [])


def test_a_start_that_asks_for_an_approval_is_a_start_all_the_same(tmp_path):
    plan = plan_of_log(tmp_path, log("asked"))
    assert (rule(plan, "deploy"), risk(plan, "deploy")) == (1, "unknown")


def test_a_call_that_only_asked_waits_for_a_person_and_a_denied_one_did_not_run(tmp_path):
    records = without(log("asked"), "tool/call")
    assert rule(plan_of_log(tmp_path, records), "deploy") == "W1"
    denied = after(records, "approval/decided", id="ask-1", outcome="rejected")
    assert rule(plan_of_log(tmp_path, denied), "deploy") == "W2"
    allowed = plan_of_log(tmp_path, after(records, "approval/decided", id="ask-1", outcome="allowed-once"))
    assert (rule(allowed, "deploy"), codes(allowed)) == (4, [])
    odd = plan_of_log(tmp_path, after(records, "approval/decided", id="ask-1", outcome=7))
    assert (rule(odd, "deploy"), codes(odd)) == (4, ["inconsistent_approval"])


def test_a_clean_session_has_nothing_to_repair(tmp_path):
    session = session_of(tmp_path, log("clean"))
    assert (session.plan.status, codes(session.plan), session.plan.refusal) == ("clean", [], None)


# ---- packed rows


def test_the_chunks_of_a_packed_row_count_as_the_events_that_they_are(tmp_path):
    session = session_of(tmp_path, log("killed"))
    assert session.journal.scan.events == log("killed")[-1]["seq"] + 1
    assert [event.seq for event in session.journal.events(7)] == [5, 6, 7]
    times = [event.time for event in session.journal.events(7)]
    assert times == [1775120400050, 1775120400060, 1775120400070]


def test_a_row_that_carries_a_seq_of_its_own_counts_as_one_event(tmp_path):
    records = log("killed")
    for seq, record in enumerate(records[1:]):
        if "seq0" in record:
            del record["seq0"], record["time0"]
            record["time"] = 1775120400050
        record["seq"] = seq
    assert code(session_of(tmp_path, records)) is None


@pytest.mark.parametrize("texts", [None, [], "abc", {"a": 1}])
def test_a_row_that_can_not_be_unpacked_leaves_a_gap(tmp_path, texts):
    records = log("killed")
    records[6]["data"]["texts"] = texts
    assert code(session_of(tmp_path, records)) == "seq_gap"


# ---- the lines of a repair


def test_a_repair_is_a_result_for_each_call_then_the_step_end_then_the_turn_end(tmp_path):
    session = session_of(tmp_path, log("killed"))
    unknown, not_started, step, turn = appended_lines(session, "did-not-run", "no host has it")
    last = log("killed")[-1]
    assert [line["seq"] for line in (unknown, not_started, step, turn)] == [
        last["seq"] + n for n in (1, 2, 3, 4)
    ]
    assert {line["time"] for line in (unknown, not_started, step, turn)} == {last["time"]}
    assert list(unknown) == ["type", "seq", "time", "data", "sourceEventSeqs", "surfaceOp"]
    seq = last["seq"] + 1
    data = unknown["data"]
    text = data["message"]["content"][0]["content"][0].pop("text")
    assert "An operator (ana) checked: it did not run. Note: no host has it" in text
    assert data == {
        "turn": 1,
        "step": 2,
        "message": {
            "source": {"kind": "tool", "callId": "deploy"},
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "deploy",
                    "content": [{"type": "text"}],
                    "isError": True,
                }
            ],
            "role": "user",
            "id": f"interrupted-tool-result-deploy-{seq}",
        },
        "error": {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"},
    }
    dispatch = next(r for r in log("killed") if r["type"] == "tool/call" and r["data"]["callId"] == "deploy")
    assert unknown["sourceEventSeqs"] == [dispatch["seq"]]
    assert unknown["surfaceOp"] == "append"
    assert list(not_started) == ["type", "seq", "time", "data", "surfaceOp"]
    assert not_started["data"]["error"] == {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"}
    assert not_started["data"]["message"]["content"][0]["content"] == [
        {"type": "text", "text": NOT_STARTED_TEXT}
    ]
    assert (step["type"], step["data"]) == ("step/end", {"turn": 1, "step": 2})
    assert (turn["type"], turn["data"]) == ("turn/end", {"turn": 1, "reason": {"kind": "interrupted"}})
    assert list(turn) == ["type", "seq", "time", "data"]


def test_a_plan_shows_the_very_lines_for_nothing_is_made_up_at_the_append(tmp_path):
    session = session_of(tmp_path, log("killed-before-any-start"))
    assert planned_lines(session) == appended_lines(session)


def test_a_result_names_the_step_that_named_its_call(tmp_path):
    (result, turn) = planned_lines(session_of(tmp_path, log("step-closed-without-a-start")))
    assert (result["data"]["turn"], result["data"]["step"]) == (1, 1)
    assert turn["type"] == "turn/end"


def test_version_4_wants_the_result_as_a_message_of_role_tool(tmp_path):
    lines = planned_lines(session_of(tmp_path, log("killed-version-4")))
    message = lines[0]["data"]["message"]
    assert list(message) == ["source", "toolCallId", "content", "isError", "role", "id"]
    assert (message["role"], message["toolCallId"], message["isError"]) == ("tool", "deploy", True)
    assert message["content"][0]["type"] == "text"


def test_a_log_whose_own_results_are_messages_of_role_tool_gets_more_of_them(tmp_path):
    """Stands for a log whose header is older than the build that wrote its results."""
    records = log("killed")
    recorded = [record for record in records if record["type"] == "tool/result"][-1]
    recorded["data"]["message"] = {"role": "tool", "toolCallId": "notify", "content": [], "isError": False}
    message = planned_lines(session_of(tmp_path, records))[0]["data"]["message"]
    assert (message["role"], message["toolCallId"]) == ("tool", "deploy")


def test_an_open_approval_is_closed_by_the_result_and_by_no_line_of_its_own(tmp_path):
    session = session_of(tmp_path, log("asked"))
    assert ("approval_decided", "ask-1") in kinds(session.plan)
    assert [line["type"] for line in appended_lines(session)] == ["tool/result", "step/end", "turn/end"]


def test_of_two_open_turns_the_inner_one_is_closed_first(tmp_path):
    records = after(after(log("killed"), "turn/start", turn=2), "step/start", turn=2, step=1)
    ends = [line["data"] for line in planned_lines(session_of(tmp_path, records)) if "/end" in line["type"]]
    assert [(data["turn"], data.get("step")) for data in ends] == [(2, 1), (2, None), (1, 2), (1, None)]


NAMES = [
    "killed",
    "killed-version-4",
    "killed-before-any-start",
    "step-closed-without-a-start",
    "asked",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_repaired_log_has_nothing_left_to_repair(tmp_path, name):
    again = applied(session_of(tmp_path, log(name)))
    assert (again.plan.status, again.plan.repairs, again.plan.anomalies) == ("clean", (), ())


@pytest.mark.parametrize("name", ["killed", "killed-version-4"])
def test_a_repair_that_was_cut_anywhere_is_planned_on_from_there(tmp_path, name):
    assert_converges(tmp_path, log_of(log(name)), step=7)


def test_a_last_line_without_its_newline_is_an_event_and_gets_one(tmp_path):
    session = session_of(tmp_path, log_of(log("killed"))[:-1])
    assert appended(session).startswith(b"\n{")
    assert applied(session).plan.status == "clean"


# ---- refusals


def refused(folder: Path, data: bytes | list[dict[str, Any]], name: str = "log.jsonl") -> str:
    """The code and sentence of the refusal; nothing was written."""
    session = session_of(folder, data, name)
    before = Path(session.path).read_bytes()
    refusal = session.plan.refusal
    assert refusal is not None
    assert session.plan.repairs
    assert session.path in refusal.says
    assert refusal.ids == tuple(ids(session.plan))
    with pytest.raises(Refused):
        applied(session)
    assert Path(session.path).read_bytes() == before
    return f"{refusal.code}: {refusal.says}"


@pytest.mark.parametrize("version", [5, 99, -1, "4", None, 1.5])
def test_a_newer_version_is_read_and_never_appended_to(tmp_path, version):
    records = log("killed")
    records[0]["version"] = version
    assert ids(plan_of_log(tmp_path, records)) == ["deploy", "report"]
    assert refused(tmp_path, records).startswith("newer_version: ")


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_a_known_version_is_appended_to(tmp_path, version):
    records = log("killed")
    records[0]["version"] = version
    assert applied(session_of(tmp_path, records)).plan.status == "clean"


def test_a_snapshot_without_seq_and_time_is_read_and_not_appended_to(tmp_path):
    records = stripped(log("killed"))
    plan = plan_of_log(tmp_path, records)
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("deploy", 1), ("report", 2)]
    assert refused(tmp_path, records).startswith("snapshot: ")
    lines = planned_lines(session_of(tmp_path, records))
    last = log("killed")[-1]["seq"]
    assert [(line["seq"], line["time"]) for line in lines] == [(last + n, None) for n in (1, 2, 3, 4)]
    assert [line.get("sourceEventSeqs") for line in lines] == [[14], None, None, None]


@pytest.mark.parametrize("shift", [-1, 1, 5])
def test_a_gap_in_the_seqs_is_refused(tmp_path, shift):
    records = log("killed")
    for record in records[9:]:
        record["seq"] += shift
    assert refused(tmp_path, records).startswith("seq_gap: ")


def test_a_log_whose_first_seq_is_not_0_is_refused(tmp_path):
    records = log("killed-version-4")
    for record in records[1:]:
        record["seq"] += 1
    assert "carries seq 1 where 0 belongs" in refused(tmp_path, records)


def test_an_empty_call_id_is_refused(tmp_path):
    records = log("killed")
    text = log_of(records).decode().replace('"callId":"deploy"', '"callId":""')
    text = text.replace('"id":"deploy"', '"id":""')
    assert "empty_call_id: " in refused(tmp_path, text.encode())
    answered = log_of(log("killed")).decode().replace('"build"', '""')
    assert code(session_of(tmp_path, answered.encode())) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [*lines[:8], lines[8][:40], *lines[9:]],
        lambda lines: [*lines[:8], b"\0" * 80, *lines[9:]],
        lambda lines: [*lines[:8], lines[8] + lines[9], *lines[10:]],
        lambda lines: [*lines[:8], b"", *lines[8:]],
        lambda lines: [lines[0][:30], *lines[1:]],
        lambda lines: lines[1:],
        lambda lines: [*lines[1:3], lines[0], *lines[3:]],
    ],
)
def test_a_corrupt_committed_line_is_refused(tmp_path, damage):
    lines = log_of(log("killed")).split(b"\n")
    assert refused(tmp_path, b"\n".join(damage(lines))).startswith("corrupt_line: ")


def test_a_torn_tail_is_refused_because_the_harness_drops_it_and_closes_the_turn_itself(tmp_path):
    """An append behind it would turn it into a committed line, for which the loader refuses the log."""
    data = log_of(log("killed")) + b'{"type":"tool/result","seq":18,"ti'
    assert refused(tmp_path, data).startswith("corrupt_line: ")


def test_an_unreadable_line_may_have_been_the_dispatch_of_a_call(tmp_path):
    data = log_of(log("killed")) + b"\xff nothing\n"
    plan = plan_of_log(tmp_path, data)
    assert (rule(plan, "report"), risk(plan, "report")) == (4, "unknown")
    harmless = log_of(log("killed")) + b'{"type":"session/title","seq":18,"time":1,"data":{"ti'
    assert rule(plan_of_log(tmp_path, harmless), "report") == 2
    for type in ("tool/call", "turn/end", "step/start", "approval/decided"):
        cut = log_of(log("killed")) + f'{{"type":"{type}","seq":18,"time":1,"data":{{"ti'.encode()
        assert rule(plan_of_log(tmp_path, cut), "report") == 4


# ---- zstd frames


def frames(records: list[dict[str, Any]]) -> bytes:
    """The log as the harness writes it: a frame for the header, then one for each batch."""
    parts = [records[:1], records[1:5], records[5:]]
    return b"".join(dsh.frame(log_of(part)) for part in parts)


def test_a_compressed_session_is_repaired_by_one_new_frame(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    plain = session_of(tmp_path, log("killed"))
    session = session_of(tmp_path, frames(log("killed")), "session.jsonl.zstd")
    assert session.plan == plain.plan
    assert session.journal.base.size == len(frames(log("killed")))
    assert session.journal.raw(1) == plain.journal.raw(1)
    before = Path(session.path).read_bytes()
    again = applied(session)
    assert (again.plan.status, again.plan.repairs) == ("clean", ())
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    text = unpacker.decompress(Path(session.path).read_bytes()[len(before) :])
    assert unpacker.eof
    assert unpacker.unused_data == b""
    assert [json.loads(line)["type"] for line in text.splitlines()] == [
        "tool/result",
        "tool/result",
        "step/end",
        "turn/end",
    ]


def test_the_name_of_a_compressed_file_does_not_matter(tmp_path):
    pytest.importorskip("zstandard")
    assert session_of(tmp_path, frames(log("killed")), "log.txt").journal.format is dsh


def test_a_frame_that_is_cut_short_is_read_as_far_as_it_goes_and_refused(tmp_path):
    pytest.importorskip("zstandard")
    records = log("killed")
    for torn in (dsh.frame(b"x" * 200)[:-3], dsh.frame(log_of(after(records, "hook/result")[-1:]))[:-3]):
        data = frames(records) + torn
        session = session_of(tmp_path, data, "session.jsonl.zstd")
        assert any("cut short" in a.says for a in session.plan.anomalies)
        assert refused(tmp_path, data, "session.jsonl.zstd").startswith("corrupt_line: ")
    assert session.journal.scan.events == records[-1]["seq"] + 2


def test_a_frame_that_can_not_be_unpacked_is_refused(tmp_path):
    pytest.importorskip("zstandard")
    data = bytearray(frames(log("killed")))
    data[-1] ^= 0xFF
    session = session_of(tmp_path, bytes(data), "session.jsonl.zstd")
    assert any("can't be unpacked" in a.says for a in session.plan.anomalies)
    data = frames(log("killed")) + b"nothing that is a frame"
    assert "corrupt_line" in refused(tmp_path, data, "session.jsonl.zstd")


def test_a_compressed_log_without_its_last_newline_gets_it_in_the_new_frame(tmp_path):
    pytest.importorskip("zstandard")
    data = dsh.frame(log_of(log("killed"))[:-1])
    again = applied(session_of(tmp_path, data, "session.jsonl.zstd"))
    assert (again.plan.status, again.plan.anomalies) == ("clean", ())


def test_without_the_package_one_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(b"\x28\xb5\x2f\xfd rest")
    real = builtins.__import__

    def lacking(name, *args, **kwargs):
        if name == "zstandard":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(Unreadable) as unreadable:
        open_session(str(path))
    assert unreadable.value.code == "needs_zstd"
    assert "pip install 'triage[zstd]'" in str(unreadable.value)


# ---- recognising, facts, odd records


def test_the_format_is_recognised_from_any_record_and_from_no_other_formats(tmp_path):
    for one in [*log("killed"), *stripped(log("killed"))]:
        assert recognise([one]) is dsh
    strangers = [
        {"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/"},
        {"type": "session.start", "data": {}},
        {"type": "turn_start", "data": {}},
        {"timestamp": "t", "type": "event_msg", "payload": {}},
        {"type": "user", "message": {}},
        {"type": "text", "text": "a/b"},
    ]
    assert not any(dsh.recognise(stranger) for stranger in strangers)


def test_the_header_facts_are_those_of_the_session(tmp_path):
    assert session_of(tmp_path, log("killed")).journal.decoder.facts() == {
        "agent": "DeepSeek Harness",
        "version": "session format 0",
        "cwd": "/srv/app",
        "started": "2026-04-02T09:00:00.000Z",
        "model": "deepseek-v4-flash",
        "title": "Deploy it",
    }
    untitled = without(log("killed-version-4"), "session/title")
    assert session_of(tmp_path, untitled).journal.decoder.facts()["title"] == "deploy it"


ODD = [None, 7, "text", [], {"message": 7}, {"message": {"content": [7, None, {}]}}]


@pytest.mark.parametrize("odd", ODD)
def test_odd_data_stops_nothing(tmp_path, odd):
    records = log("killed")
    types = [
        "turn/start", "step/start", "assistant/message", "tool/call", "tool/result", "approval/asked",
        "approval/decided", "user/message", "session/title", "step/end", "turn/end", "text-chunks",
        "brand/new",
    ]  # fmt: skip
    for type in types:
        records.append({"type": type, "data": odd})
    session = session_of(tmp_path, records)
    assert planned_lines(session)


def test_an_unknown_type_is_counted_unless_it_may_be_ignored(tmp_path):
    records = after(log("killed"), "brand/new", value=1)
    assert codes(plan_of_log(tmp_path, records)) == ["unknown_type"]
    records[-1]["ignorable"] = True
    assert codes(plan_of_log(tmp_path, records)) == []


# ---- real logs


@pytest.mark.parametrize("path", corpus("dsh", "*.jsonl"))
def test_a_real_snapshot_is_read_cut_anywhere_and_never_appended_to(tmp_path, path):
    lines = path.read_bytes().splitlines(keepends=True)
    session = session_of(tmp_path, b"".join(lines))
    assert session.journal.format is dsh
    assert (session.plan.status, codes(session.plan)) == ("clean", [])
    for cut in range(2, len(lines), 5):
        plan = plan_of_log(tmp_path, b"".join(lines[:cut]))
        if plan.repairs:
            assert plan.refusal is not None
            assert plan.refusal.code == "snapshot"
