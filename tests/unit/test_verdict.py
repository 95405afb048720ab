"""What a restart makes of a run, and why."""

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.recovery.verdict import (
    FAILURE_SENTENCES,
    LINEAGE,
    REASON_SENTENCES,
    Reason,
    decide,
    reason_for_native,
)

CASES = Path(__file__).parents[1] / "fixtures" / "cases" / "run_decisions.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line]
CLOSED = {"requestId": "q1", "status": "denied", "outcomeReason": "host_restarted"}


def header(status="running", **fields):
    return {"runId": "r", "turnId": "t", "status": status, **fields}


def decided(status, *types, closures=(), **fields):
    return decide(header(status, **fields), [{"type": kind} for kind in types], closures)


def reason(status, *types):
    return decided(status, *types)["diagnostic"]["recoveryReason"]


@pytest.mark.parametrize("row", ROWS)
def test_each_recorded_case_gets_its_decision(row):
    assert decide(row["header"], row["events"], row["closures"]) == row["decision"]


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_run_that_had_ended_by_its_header_gets_no_decision(status):
    closures = [{**CLOSED, "runId": "r"}]
    assert decided(status, "tool_started", "event_corrupt", closures=closures) is None


def test_a_decision_fails_the_run_because_the_app_was_restarted():
    assert decided("running", "run_started") == {
        "runId": "r",
        "turnId": "t",
        "status": "failed",
        "failureClass": "app_restarted",
        "diagnostic": {"recoveryReason": "run_interrupted", "lastEventType": "run_started"},
        "lineage": {},
    }


@pytest.mark.parametrize("status", ["created", "running", "waiting_for_user", "odd"])
def test_a_finished_stream_without_a_run_end_goes_before_everything(status):
    assert (
        reason(status, "run_started", "model_stream_completed")
        == "model_stream_completed_without_runtime_terminal"
    )


@pytest.mark.parametrize("end", ["run_completed", "run_failed", "run_cancelled"])
def test_a_run_end_anywhere_takes_the_finished_stream_out_of_the_first_rule(end):
    assert reason("running", end, "model_stream_completed") == "run_interrupted"
    assert reason("odd", end, "model_stream_completed") == "non_terminal_run_recovered"


@pytest.mark.parametrize("status", ["waiting_for_user", "waiting_permission"])
def test_a_header_that_waits_is_a_stale_wait_by_its_old_name_too(status):
    assert reason(status, "tool_started") == "stale_user_wait"
    assert reason(status) == "stale_user_wait"


@pytest.mark.parametrize("last", ["permission_requested", "permission_failed"])
def test_a_permission_asked_or_failed_last_is_a_stale_wait(last):
    assert reason("running", last) == "stale_user_wait"
    assert reason("running", last, "permission_decided") == "run_interrupted"


def test_a_tool_started_last_is_an_interrupted_tool_whatever_the_header_says():
    assert reason("running", "tool_started") == "tool_interrupted"
    assert reason("odd", "tool_started") == "tool_interrupted"
    assert reason("running", "tool_started", "tool_started", "tool_completed") == "run_interrupted"


@pytest.mark.parametrize("status", ["created", "running"])
def test_a_header_under_way_is_an_interrupted_run_whatever_came_last(status):
    assert reason(status, "something_new") == "run_interrupted"


@pytest.mark.parametrize(
    "last",
    [
        "run_created",
        "run_started",
        "turn_started",
        "model_resolved",
        "model_stream_started",
        "run_status_changed",
    ],
)
def test_a_last_event_before_the_answer_is_an_interrupted_run_whatever_the_header_says(last):
    assert reason("odd", "tool_completed", last) == "run_interrupted"


@pytest.mark.parametrize("types", [(), ("event_corrupt",)])
def test_a_run_without_a_readable_event_is_interrupted_and_names_no_last_event(types):
    diagnostic = decided("odd", *types)["diagnostic"]
    assert diagnostic["recoveryReason"] == "run_interrupted"
    assert "lastEventType" not in diagnostic


def test_anything_else_is_a_recovered_run_that_had_no_end():
    assert reason("odd", "run_started", "tool_completed") == "non_terminal_run_recovered"
    assert decide({}, [{"type": "tool_failed"}], []) == {
        "runId": None,
        "turnId": None,
        "status": "failed",
        "failureClass": "app_restarted",
        "diagnostic": {
            "recoveryReason": "non_terminal_run_recovered",
            "lastEventType": "tool_failed",
        },
        "lineage": {},
    }


def test_a_corrupt_event_is_said_and_never_the_last_event():
    diagnostic = decided("odd", "event_corrupt", "tool_started", "event_corrupt")["diagnostic"]
    assert diagnostic == {
        "recoveryReason": "tool_interrupted",
        "lastEventType": "tool_started",
        "eventCorrupt": True,
    }
    assert "eventCorrupt" not in decided("odd", "tool_started")["diagnostic"]


def test_the_lineage_is_the_fields_of_the_header_that_are_not_empty():
    fields = dict.fromkeys(LINEAGE, "x")
    assert decided("running", **fields)["lineage"] == fields
    assert decided("running", **dict.fromkeys(LINEAGE, ""), other="x")["lineage"] == {}
    assert len(LINEAGE) == 6


# --- sandbox requests


@pytest.mark.parametrize(
    ("provenance", "claims"),
    [
        ({"runId": "r"}, True),
        ({"runId": "r", "turnId": "elsewhere"}, True),
        ({"runId": "elsewhere", "turnId": "t"}, False),
        ({"turnId": "t"}, True),
        ({"runId": None, "turnId": "t"}, True),
        ({"turnId": "elsewhere"}, False),
        ({}, False),
    ],
)
def test_a_closed_request_claims_by_its_run_else_by_its_turn_else_nothing(provenance, claims):
    decision = decided("running", closures=[{**CLOSED, **provenance}])
    assert (decision["failureClass"] == "sandbox_boundary_closed_by_restart") is claims
    assert ("sandboxBoundaryRequestIds" in decision["diagnostic"]) is claims


def test_a_closed_request_without_any_id_claims_no_run_without_ids():
    assert decide({}, [], [CLOSED])["failureClass"] == "app_restarted"


@pytest.mark.parametrize(
    "other", [{"status": "pending"}, {"status": "approved"}, {"outcomeReason": "turn_stopped"}]
)
def test_a_request_that_the_restart_did_not_close_claims_nothing(other):
    decision = decided("running", closures=[{**CLOSED, "runId": "r", **other}])
    assert decision["failureClass"] == "app_restarted"


def test_a_claimed_decision_names_every_request_and_keeps_its_reason():
    closures = [{**CLOSED, "runId": "r"}, {**CLOSED, "requestId": "q2", "turnId": "t"}]
    assert decided("running", "tool_started", closures=closures)["diagnostic"] == {
        "recoveryReason": "tool_interrupted",
        "lastEventType": "tool_started",
        "sandboxBoundaryClosureReason": "host_restarted",
        "sandboxBoundaryRequestIds": ["q1", "q2"],
    }


# --- the native log


def native(last, *, owes=False, waiting=False, request_open=False):
    return reason_for_native(last, owes=owes, waiting=waiting, request_open=request_open)


def test_a_native_log_whose_model_spoke_last_and_owes_nothing_had_finished_its_answer():
    finished = "model_stream_completed_without_runtime_terminal"
    assert native("assistant_message") == finished
    assert native("assistant_message", waiting=True) == finished
    assert native("assistant_message", owes=True) == "non_terminal_run_recovered"


@pytest.mark.parametrize("last", ["approval_requested", "tool_call", "tool_result", None])
def test_a_native_log_with_an_open_request_waited_for_a_person(last):
    assert native(last, owes=True, waiting=True, request_open=True) == "stale_user_wait"


def test_a_native_log_that_ends_in_a_dispatch_has_an_interrupted_tool():
    assert native("tool_call", owes=True) == "tool_interrupted"
    assert native("tool_call", owes=True, request_open=True) == "tool_interrupted"


@pytest.mark.parametrize(
    "last",
    [None, "system_message", "user_message", "turn_start", "step_start", "request_header"],
)
def test_a_native_log_that_ends_before_the_answer_is_an_interrupted_run(last):
    assert native(last) == "run_interrupted"


def test_a_native_log_with_an_open_model_request_is_an_interrupted_run():
    assert native("tool_result", request_open=True) == "run_interrupted"


@pytest.mark.parametrize("last", ["tool_result", "approval_decided", "input_resolved"])
def test_any_other_native_log_is_a_recovered_run_that_had_no_end(last):
    assert native(last) == "non_terminal_run_recovered"


# --- what the operator reads


def test_each_reason_and_failure_class_has_a_sentence_of_its_own():
    assert set(REASON_SENTENCES) == set(get_args(Reason))
    sentences = [*REASON_SENTENCES.values(), *FAILURE_SENTENCES.values()]
    assert len(set(sentences)) == len(sentences)
    assert all(text.endswith(".") and text.count(". ") == 0 for text in sentences)
    assert set(FAILURE_SENTENCES) == {"app_restarted", "sandbox_boundary_closed_by_restart"}


TYPES = st.sampled_from(
    sorted({event["type"] for row in ROWS for event in row["events"]} | {"event_corrupt"})
)


@given(st.sampled_from(["created", "running", "waiting_for_user", "odd"]), st.lists(TYPES))
def test_corrupt_events_never_change_the_reason(status, types):
    readable = [kind for kind in types if kind != "event_corrupt"]
    assert reason(status, *types) == reason(status, *readable)
    assert reason(status, *types) in REASON_SENTENCES
