"""Maka run ledgers: the verdict of the app's own recovery, the calls beside it, and never an append."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.formats.repairs import FIXTURES, log_of
from tests.helpers import codes, ids, owed, recognise, risk, rule
from triage.cli import main
from triage.contract import plan_row
from triage.log.formats import maka
from triage.session import Session, open_session

RUNS = FIXTURES / "maka"
CASES = FIXTURES / "cases" / "run_decisions.jsonl"
DECISIONS = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line]
REASONS = (
    "model_stream_completed_without_runtime_terminal",
    "stale_user_wait",
    "tool_interrupted",
    "run_interrupted",
    "non_terminal_run_recovered",
)


def session(name: str) -> Session:
    return open_session(str(RUNS / name))


def header(status: str = "running", **more: Any) -> dict[str, Any]:
    return {"runId": "run-1", "sessionId": "session-1", "turnId": "turn-1", "status": status, **more}


def event(type: str, **data: Any) -> dict[str, Any]:
    ids = {"id": f"ev-{type}", "runId": "run-1", "sessionId": "session-1", "turnId": "turn-1"}
    return {"type": type, **ids, "ts": 1779267600000, "data": data}


def written(
    folder: Path, head: Any, events: list[Any] | bytes | None, beside: dict[str, bytes] | None = None
) -> Session:
    """A run's folder with this header and these events (None: no file), opened."""
    run = folder / "sessions" / "session-1" / "runs" / "run-1"
    run.mkdir(parents=True, exist_ok=True)
    if head is not None:
        (run / "run.json").write_bytes(head if isinstance(head, bytes) else json.dumps(head).encode())
    if events is not None:
        (run / "events.jsonl").write_bytes(events if isinstance(events, bytes) else log_of(events))
    for name, content in (beside or {}).items():
        (run / name).write_bytes(content)
    return open_session(str(run if head is not None else run / "events.jsonl"))


# ---- the verdict


def lines_of(events: list[dict[str, Any]]) -> bytes:
    """The events as the app writes them: what reads as `event_corrupt` is a line that does not parse."""
    broken = b'{"type":"tool_started","id":\n'
    return b"".join(broken if e["type"] == "event_corrupt" else log_of([e]) for e in events)


@pytest.mark.parametrize("case", DECISIONS)
@pytest.mark.parametrize("named", ["folder", "events file"])
def test_the_verdict_of_a_run_is_exactly_the_decision(
    tmp_path: Path, case: dict[str, Any], named: str
) -> None:
    rows = json.dumps(case["closures"]).encode()
    opened = written(tmp_path, case["header"], lines_of(case["events"]), {"sandbox-boundary.json": rows})
    path = opened.path if named == "folder" else os.path.join(opened.path, "events.jsonl")
    row = plan_row(open_session(path))
    assert row["verdict"] == case["decision"]
    assert row["log"]["format"] == "maka"
    assert (row["verdict"] is not None) <= (row["status"] != "clean")


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_has_a_run_that_shows_it(reason: str) -> None:
    verdict = session(reason).plan.verdict
    assert verdict is not None
    assert verdict["diagnostic"]["recoveryReason"] == reason
    assert (verdict["status"], verdict["failureClass"]) == ("failed", "app_restarted")


def test_the_verdict_carries_the_lineage_that_the_header_has() -> None:
    verdict = session("tool_interrupted").plan.verdict
    assert verdict is not None
    assert verdict["lineage"] == {"parentRunId": "run-0"}


def test_an_older_header_that_waits_for_a_permission_waits_for_the_user() -> None:
    verdict = session("waiting_permission").plan.verdict
    assert verdict is not None
    assert verdict["diagnostic"] == {"recoveryReason": "stale_user_wait", "lastEventType": "skill_loaded"}


def test_a_request_that_the_restart_closed_is_named_and_others_are_not() -> None:
    verdict = session("sandbox_boundary_closed_by_restart").plan.verdict
    assert verdict is not None
    assert verdict["failureClass"] == "sandbox_boundary_closed_by_restart"
    assert verdict["diagnostic"]["sandboxBoundaryRequestIds"] == ["sb-1"]


@pytest.mark.parametrize("place", ["run", "session"])
@pytest.mark.parametrize("shape", ["array", "object", "lines", "latest line"])
def test_sandbox_requests_are_read_beside_the_run_or_in_its_session(
    tmp_path: Path, place: str, shape: str
) -> None:
    row = {"requestId": "sb-1", "status": "denied", "outcomeReason": "host_restarted", "turnId": "turn-1"}
    pending = {**row, "status": "pending"}
    name, content = {
        "array": ("sandbox-boundary.json", json.dumps([row]).encode()),
        "object": ("sandbox-boundary.json", json.dumps({"requests": [row]}).encode()),
        "lines": ("sandbox-boundary.jsonl", log_of([row, {"requestId": "sb-2", "status": "pending"}])),
        "latest line": ("sandbox-boundary.jsonl", log_of([pending, row])),
    }[shape]
    opened = written(tmp_path, header(), [event("run_started")])
    folder = Path(opened.path) if place == "run" else Path(opened.path).parent.parent
    (folder / name).write_bytes(content)
    verdict = open_session(opened.path).plan.verdict
    assert verdict is not None
    assert verdict["diagnostic"]["sandboxBoundaryRequestIds"] == ["sb-1"]


def test_a_sandbox_file_with_a_torn_line_is_read_and_said_to_be_damaged(tmp_path: Path) -> None:
    row = {"requestId": "sb-1", "status": "denied", "outcomeReason": "host_restarted", "runId": "run-1"}
    torn = log_of([row]) + b'{"requestId":"sb'
    plan = written(tmp_path, header(), [event("run_started")], {"sandbox-boundary.jsonl": torn}).plan
    assert plan.verdict is not None
    assert plan.verdict["failureClass"] == "sandbox_boundary_closed_by_restart"
    assert codes(plan) == ["sandbox_boundary_unreadable"]


def test_a_line_that_does_not_parse_counts_as_corrupt_and_a_torn_last_line_does_not(tmp_path: Path) -> None:
    whole = log_of([event("run_started"), event("tool_started", toolCallId="c1")])
    corrupt = written(tmp_path, header(), whole + b'{"type":\n').plan.verdict
    torn = written(tmp_path, header(), whole + b'{"type":"tool_completed","id"').plan.verdict
    assert corrupt is not None and torn is not None
    assert corrupt["diagnostic"]["eventCorrupt"] is True
    assert torn["diagnostic"] == {"recoveryReason": "tool_interrupted", "lastEventType": "tool_started"}


def test_a_run_without_its_header_is_judged_by_its_events(tmp_path: Path) -> None:
    events = [event("run_started"), event("tool_started", toolCallId="c1")]
    plan = written(tmp_path, None, events).plan
    assert plan.verdict is not None
    assert (plan.verdict["runId"], plan.verdict["turnId"]) == ("run-1", "turn-1")
    assert plan.verdict["diagnostic"]["recoveryReason"] == "tool_interrupted"
    assert written(tmp_path, None, [*events, event("run_failed")]).plan.verdict is None


def test_a_header_that_is_no_json_is_said_to_be_damaged(tmp_path: Path) -> None:
    plan = written(tmp_path, b'{"runId":"run-1","sta', [event("run_started")]).plan
    assert "header_unreadable" in codes(plan)
    assert plan.verdict is not None


# ---- the folder


def test_a_run_that_wrote_no_event_is_a_log_without_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(RUNS / "no_events"), "--json"]) == 1
    captured = capsys.readouterr()
    row = json.loads(captured.out)
    assert (row["log"]["events"], row["log"]["bytes"], row["status"]) == (0, 0, "doubtful")
    assert row["verdict"]["diagnostic"] == {"recoveryReason": "run_interrupted"}
    assert "is empty" in captured.err


def test_a_run_with_an_empty_events_file_is_one_too(tmp_path: Path) -> None:
    opened = written(tmp_path, header("created"), b"")
    assert (opened.plan.status, opened.journal.format.NAME) == ("doubtful", "maka")


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_folder_and_its_events_file_are_the_same_log(slash: str) -> None:
    folder = str(RUNS / "tool_interrupted")
    by_folder, by_file = open_session(folder + slash), open_session(os.path.join(folder, "events.jsonl"))
    assert by_folder.plan == by_file.plan
    assert by_folder.path == folder + slash


def test_a_run_folder_is_one_session_for_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--plain", str(RUNS / "tool_interrupted")]) == 1
    assert "call-2" in capsys.readouterr().out


def test_a_folder_that_is_no_run_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"scripts": {}}')
    assert main(["plan", str(tmp_path)]) == 3


def test_the_lines_of_a_run_can_be_read_again() -> None:
    journal = session("tool_interrupted").journal
    assert journal.raw(9).endswith(b"\n")
    assert [e.type for e in journal.events(9)] == ["turn_start", "tool_call"]


# ---- the calls


def test_a_started_tool_without_a_result_may_have_run() -> None:
    plan = session("tool_interrupted").plan
    assert (ids(plan), risk(plan, "call-2"), rule(plan, "call-2")) == (["call-2"], "unknown", 1)
    assert owed(plan, "call-2").name == "http_post"
    assert owed(plan, "call-2").arguments == {"url": "https://pay.example/v1/refunds"}
    assert plan.boundary.name == "tool_open"


def test_a_parallel_call_that_the_verdict_misses_is_owed_beside_it() -> None:
    plan = session("parallel").plan
    assert plan.verdict is not None
    assert plan.verdict["diagnostic"]["lastEventType"] == "tool_completed"
    assert ids(plan) == ["call-1"]


def test_a_call_that_waits_for_a_permission_waits() -> None:
    plan = session("stale_user_wait").plan
    assert (rule(plan, "call-1"), plan.boundary.name) == ("W1", "awaiting_approval")
    assert plan.boundary.request_id == "perm-1"
    assert [r.type for r in plan.repairs] == ["approval_decided", "tool_result", "turn_end"]


def test_a_call_whose_permission_was_denied_did_not_run() -> None:
    assert rule(session("permission_denied").plan, "call-1") == "W2"


def test_a_call_that_was_allowed_and_never_started_is_not_called_safe() -> None:
    plan = session("permission_allowed").plan
    assert (rule(plan, "call-1"), risk(plan, "call-1")) == (4, "unknown")
    assert codes(plan) == []


def test_a_call_beside_a_started_one_did_not_start(tmp_path: Path) -> None:
    events = [
        event("run_started"),
        event("permission_requested", toolCallId="c1", requestId="p1"),
        event("permission_decided", requestId="p1", decision="allow"),
        event("tool_started", toolCallId="c2"),
    ]
    plan = written(tmp_path, header(), events).plan
    assert {id: rule(plan, id) for id in ids(plan)} == {"c1": 2, "c2": 1}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"decision": "allow_always"}, 4),
        ({"decision": "approved"}, 4),
        ({"approved": True}, 4),
        ({"decision": "denied"}, "W2"),
        ({"decision": {"behavior": "deny"}}, "W2"),
        ({"allowed": False}, "W2"),
        ({"decision": "perhaps"}, 4),
    ],
)
def test_the_words_of_a_decision_are_understood(tmp_path: Path, data: dict[str, Any], expected: Any) -> None:
    asked = event("permission_requested", toolCallId="c1", requestId="p1")
    decided = event("permission_decided", requestId="p1", **data)
    assert rule(written(tmp_path, header(), [event("run_started"), asked, decided]).plan, "c1") == expected


def test_a_permission_without_a_request_id_is_that_of_its_call(tmp_path: Path) -> None:
    asked = event("permission_requested", callId="c1")
    plan = written(tmp_path, header(), [event("run_started"), asked]).plan
    assert rule(plan, "c1") == "W1"
    denied = event("permission_decided", callId="c1", decision="deny")
    assert rule(written(tmp_path, header(), [event("run_started"), asked, denied]).plan, "c1") == "W2"


def test_the_model_request_that_was_open_is_described() -> None:
    boundary = session("run_interrupted").plan.boundary
    assert (boundary.name, boundary.round) == ("model_attempt_open", 1)
    assert (boundary.request_id, boundary.output_tokens_reserved) == ("req-1", 4096)


def test_a_run_and_its_turn_open_one_turn_and_the_end_of_the_run_closes_it() -> None:
    assert len(session("run_interrupted").plan.open_turns) == 1
    assert session("completed").plan.open_turns == ()


@pytest.mark.parametrize("start", ["run_started", "turn_started"])
def test_the_start_of_a_run_and_that_of_a_turn_each_open_the_turn(tmp_path: Path, start: str) -> None:
    assert [turn.line for turn in written(tmp_path, header(), [event(start)]).plan.open_turns] == [1]


def test_a_call_in_a_turn_whose_start_was_lost_is_owed(tmp_path: Path) -> None:
    plan = written(tmp_path, header(), [event("tool_started", toolCallId="c1")]).plan
    assert ids(plan) == ["c1"]


def test_a_result_that_came_after_the_end_of_the_run_opens_no_turn(tmp_path: Path) -> None:
    events = [
        event("run_started"),
        event("tool_started", toolCallId="c1"),
        event("run_cancelled"),
        event("tool_failed", toolCallId="c1"),
    ]
    assert written(tmp_path, header(), events).plan.open_turns == ()
    plan = written(tmp_path, header("cancelled"), events).plan
    assert (plan.status, plan.left) == ("clean", ())


def test_a_corrupt_line_makes_the_calls_before_it_unknown() -> None:
    plan = session("corrupt_line").plan
    assert rule(plan, "call-2") == "W1"  # named after the line
    assert "corrupt_line" in codes(plan)
    assert plan.verdict is not None
    assert plan.verdict["diagnostic"]["eventCorrupt"] is True


def test_types_of_the_app_are_known_and_others_are_counted() -> None:
    assert codes(session("waiting_permission").plan) == []


def test_a_type_that_nobody_knows_is_counted(tmp_path: Path) -> None:
    assert codes(written(tmp_path, header(), [event("run_started"), event("something_new")]).plan) == [
        "unknown_type"
    ]


# ---- header and events together


def test_a_run_that_ended_is_clean() -> None:
    plan = session("completed").plan
    assert (plan.status, plan.verdict, plan.refusal) == ("clean", None, None)


def test_a_run_that_ended_by_its_header_alone_is_clean_where_nothing_is_owed() -> None:
    assert session("completed_without_event").plan.status == "clean"


def test_a_run_that_its_app_closed_over_a_started_call_still_owes_the_check() -> None:
    plan = session("failed_owing").plan
    assert (plan.status, plan.verdict) == ("crashed", None)
    assert risk(plan, "call-1") == "unknown"
    assert [r.type for r in plan.repairs] == ["tool_result"]


def test_a_header_that_lags_behind_its_events_is_doubtful_and_says_why() -> None:
    plan = session("header_behind").plan
    assert plan.status == "doubtful"
    assert "run.json says that the run is running" in plan.doubt
    assert plan.verdict is not None
    assert plan.verdict["diagnostic"]["recoveryReason"] == "run_interrupted"


# ---- the append


def test_an_append_is_refused_because_the_app_rewrites_the_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(RUNS / "tool_interrupted")
    assert main(["plan", folder, "--json"]) == 1
    refusal = json.loads(capsys.readouterr().out)["refusal"]
    assert refusal["code"] == "run_header_owned"
    assert refusal["ids"] == ["call-2"]
    assert "run.json is rewritten in place by Maka" in refusal["says"]
    before = Path(folder, "events.jsonl").read_bytes()
    assert main(["apply", folder, "--ack", "call-2=ran"]) == 4
    assert Path(folder, "events.jsonl").read_bytes() == before


def test_nothing_is_planned_to_be_written() -> None:
    row = plan_row(session("tool_interrupted"))
    assert [r["type"] for r in row["repairs"]] == ["tool_result", "turn_end"]
    assert row["lines"] == []
    assert session("tool_interrupted").preview() == b""


# ---- the rest


def test_the_run_is_described_by_its_header() -> None:
    facts = session("completed").journal.decoder.facts()
    known = {"agent": "Maka", "model": "large-2", "cwd": "/srv/pay", "started": "1779267600000"}
    assert facts == known


def test_a_failed_tool_carries_its_error() -> None:
    events = session("non_terminal_run_recovered").journal.events(8)
    assert (events[-1].data["is_error"], events[-1].data["error"]) == (True, "exit code 1")


def test_events_of_a_run_are_recognised_and_no_others_are() -> None:
    assert recognise([event("run_started")]) is maka
    assert not maka.recognise({"type": "session.start", "data": {}, "id": "1", "timestamp": "t"})
    assert not maka.recognise({"seq": 0, "type": "turn_start", "data": {}})


@pytest.mark.parametrize("odd", [None, 7, "x", [], {"toolCallId": 3}, {"toolCallId": None}])
def test_odd_data_stops_nothing(tmp_path: Path, odd: Any) -> None:
    kinds = ("tool_started", "permission_requested", "permission_decided", "model_stream_started")
    events = [event("run_started"), *({**event(kind), "data": odd} for kind in kinds)]
    assert written(tmp_path, header(), events).plan.status == "crashed"


@pytest.mark.parametrize("odd", [{}, {"status": 3}, {"status": None, "turnId": ["x"]}])
def test_an_odd_header_stops_nothing(tmp_path: Path, odd: dict[str, Any]) -> None:
    opened = written(tmp_path, {**header(), **odd}, [event("run_started")])
    assert opened.plan.status == "crashed"
