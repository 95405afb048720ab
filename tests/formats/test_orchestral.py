"""Orchestral checkpoints: the phase that the records prove, and what recovery may do or refuses there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.formats.repairs import FIXTURES, planned_lines
from tests.helpers import codes, evidence, ids, owed, recognise, risk, rule
from triage.cli import main
from triage.contract import plan_row
from triage.log.formats import orchestral
from triage.log.formats.orchestral_effects import FILES
from triage.recovery.plan import Plan
from triage.session import Session, open_session

RUN = "run-1"
APPROVAL = f"approval:{RUN}:1:c1"
CLOSING = f"generic-{RUN}-model-attempt-interrupted-1"
NAME = f"generic-checkpoint-{hashlib.sha256(RUN.encode()).hexdigest()}.json"


def fixture(name: str) -> Session:
    return open_session(str(FIXTURES / "orchestral" / name / NAME))


# ---- builders of checkpoints


def boundary(next_round: int = 1, **more: Any) -> dict[str, Any]:
    return {"type": "loop_boundary_committed", "next_model_round": next_round, "tool_call_count": 0, **more}


def attempt(round: int = 1, **more: Any) -> dict[str, Any]:
    payload = {"round": round, "request_id": f"q{round}", "request_digest": "0", "max_output_tokens": 500}
    return {"type": "model_attempt_started", **payload, **more}


def observed(*calls: Any, round: int = 1, finish: str = "tool_calls", **more: Any) -> dict[str, Any]:
    named = [
        call
        if isinstance(call, dict)
        else {"call_id": call, "name": "shell", "arguments": "{}", "ended": True}
        for call in calls
    ]
    observation = {"finish_reason": finish, "response": "ok", "tool_calls": named, **more}
    return {
        "type": "model_attempt_observed",
        "round": round,
        "request_id": f"q{round}",
        "observation": observation,
    }


def workflow(call: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "workflow_attempt_started", "round": 1, "request_id": "q1", "call_id": call, **more}


def events(*payloads: Mapping[str, Any], id: str = "p", causation: str | None = None) -> dict[str, Any]:
    made = [
        {"event_id": f"{id}-{n}", "run_id": RUN, "causation_id": causation, "payload": payload}
        for n, payload in enumerate(payloads)
    ]
    return {"type": "provider_events_committed", "events": made}


def delivered() -> dict[str, Any]:
    return events({"type": "delivery_committed", "delivery": {}}, id="end")


def asks(request: str = APPROVAL, kind: str = "approval", **more: Any) -> dict[str, Any]:
    payload = {"type": kind, **({"reason": "post a refund?"} if kind == "approval" else {}), **more}
    return events(
        {"type": "request_opened", "request": {"request_id": request, "payload": payload}}, id="ask"
    )


def resolves(
    decision: str | None,
    capability: Any = None,
    *,
    request: str | None = APPROVAL,
    id: str = "cmd-1",
    outcome: Any = "accepted",
) -> dict[str, Any]:
    response = {"type": "input", "content": []}
    if decision is not None:
        response = {"type": "approval", "decision": decision, "grant_ref": None}
    command = {
        "command_id": id,
        "run_id": RUN,
        "request_id": request,
        "payload": {"type": "resolve_request", "response": response},
    }
    outcome = {"outcome": outcome} if isinstance(outcome, str) else outcome
    record = {"type": "command_committed", "command": command, "outcome": outcome}
    return {**record, "approval_capability": capability}


def command(type: str, id: str = "cmd-9") -> dict[str, Any]:
    return {
        "type": "command_committed",
        "command": {"command_id": id, "run_id": RUN, "payload": {"type": type}},
        "outcome": {"outcome": "accepted"},
    }


def checkpoint(*payloads: Mapping[str, Any], **limits: Any) -> dict[str, Any]:
    spec = {"run_id": RUN, "session_id": "s", "limits": limits}
    registration = {
        "request": {"run": {"spec": spec}},
        "execution": {"run_id": RUN},
        "admission": {},
        "config_digest": "0",
    }
    records = [
        {"checkpoint_seq": n, "event_id": f"e{n}", "run_id": RUN, "payload": payload}
        for n, payload in enumerate(payloads, 1)
    ]
    return {"registration": registration, "records": records}


Stages = Mapping[str, tuple[str, ...]]


def written(folder: Path, document: Mapping[str, Any], effects: Stages | None = None) -> Session:
    """A checkpoint with effects beside it (call → stages), opened."""
    (folder / NAME).write_text(json.dumps(document))
    for call, stages in (effects or {}).items():
        key = {"run_id": RUN, "call_id": call}
        records = [
            {"effect_seq": n, "event_id": f"{call}-{n}", "key": key, "payload": {"type": stage}}
            for n, stage in enumerate(stages, 1)
        ]
        name = hashlib.sha256(f"{RUN}\0{call}".encode()).hexdigest()
        (folder / f"effect-{name}.json").write_text(json.dumps(records))
    return open_session(str(folder / NAME))


def plan_of(folder: Path, *payloads: Mapping[str, Any], effects: Stages | None = None, **limits: Any) -> Plan:
    return written(folder, checkpoint(*payloads, **limits), effects).plan


def refused(plan: Plan) -> tuple[str, tuple[str, ...]]:
    assert plan.refusal is not None
    return plan.refusal.code, plan.refusal.ids


ONE_CALL = (boundary(), attempt(), observed("c1"))


# ---- the phases


@pytest.mark.parametrize(
    ("name", "status", "at", "line", "code"),
    [
        ("prepared", "crashed", "prepared", 1, "not_append_only"),
        ("stable", "crashed", "stable", 4, "not_append_only"),
        ("model-attempt-open", "crashed", "model_attempt_open", 2, "not_append_only"),
        ("model-attempt-observed", "crashed", "calls_named", 3, "not_append_only"),
        ("workflow-attempt-open", "crashed", "tool_open", 1, "unsupported"),
        ("workflow-output", "crashed", "stable", 3, "not_append_only"),
        ("terminal", "clean", "terminal", 4, None),
        ("closed", "clean", "terminal", 3, "provider_unavailable"),
        ("awaiting-approval", "crashed", "awaiting_approval", 4, "not_append_only"),
    ],
)
def test_each_phase_has_its_boundary_the_record_that_proves_it_and_its_refusal(
    name: str, status: str, at: str, line: int, code: str | None
) -> None:
    plan = fixture(name).plan
    assert (plan.status, plan.boundary.name, plan.boundary.line) == (status, at, line)
    assert (plan.refusal and plan.refusal.code) == code


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("prepared", "Phase Prepared (by the registration): nothing has happened yet"),
        ("stable", "Phase Stable (record 4): the loop stands between two rounds"),
        ("model-attempt-open", "Phase ModelAttemptOpen (record 2): the model's answer was never observed"),
        ("model-attempt-observed", "Phase ModelAttemptObserved (record 3): the model's one call is whole"),
        ("workflow-attempt-open", "Phase WorkflowAttemptOpen (record 4, round 1, request 'q1')"),
        ("workflow-output", "Phase WorkflowAttemptOpen (record 4): the workflow's output is durable"),
    ],
)
def test_the_operator_is_told_what_recovery_may_do_at_the_phase(name: str, says: str) -> None:
    refusal = fixture(name).plan.refusal
    assert refusal is not None
    assert says in refusal.says
    assert "replaced whole by Orchestral" in refusal.says


def test_a_run_that_ended_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(FIXTURES / "orchestral" / "terminal" / NAME)
    assert main(["plan", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["refusal"] is None
    assert main(["apply", path]) == 0


def test_an_append_is_refused_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    path = FIXTURES / "orchestral" / "effects" / NAME
    before = path.read_bytes()
    assert main(["plan", str(path), "--json"]) == 1
    capsys.readouterr()
    assert main(["apply", str(path), "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["code"] == "unsupported"
    assert path.read_bytes() == before


def test_a_run_without_records_shows_its_registration() -> None:
    session = fixture("prepared")
    assert session.journal.lines == 1
    assert [e.type for e in session.journal.events(1)] == ["turn_start"]


def test_a_record_that_is_shown_by_itself_is_no_other_phase() -> None:
    journal = fixture("stable").journal
    assert [e.type for e in journal.events(3)] == ["assistant_message"]
    assert journal.events(3)[0].seq == 3


# ---- the figures


def test_an_open_attempt_has_its_round_its_request_and_its_reserved_tokens() -> None:
    at = fixture("model-attempt-open").plan.boundary
    assert (at.round, at.request_id, at.output_tokens_reserved, at.input_tokens_left) == (1, "q1", 1000, 1000)
    assert at.deadline == 1779267600000


def test_the_tokens_left_follow_what_was_used() -> None:
    assert fixture("stable").plan.boundary.input_tokens_left == 840


def test_usage_is_added_after_a_boundary_and_never_below_nothing(tmp_path: Path) -> None:
    spent = (boundary(usage={"input_tokens": 30}), attempt(), observed("c1", usage={"input_tokens": 50}))
    assert plan_of(tmp_path, *spent, max_input_tokens=100).boundary.input_tokens_left == 20
    assert plan_of(tmp_path, *spent, max_input_tokens=60).boundary.input_tokens_left == 0
    assert plan_of(tmp_path, *spent).boundary.input_tokens_left is None


def test_no_cap_on_the_output_is_recorded_as_null_and_is_no_figure(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, boundary(), attempt(max_output_tokens=None))
    assert plan.boundary.output_tokens_reserved is None
    assert refused(plan)[0] == "not_append_only"


# ---- invalid sequences


@pytest.mark.parametrize(
    ("payloads", "code"),
    [
        ((boundary(2),), "phase_skipped"),
        ((attempt(),), "phase_skipped"),
        ((boundary(), boundary()), "phase_skipped"),
        ((boundary(), attempt(2)), "phase_skipped"),
        ((boundary(), observed("c1")), "phase_skipped"),
        ((boundary(), attempt(), observed("c1", round=2)), "phase_skipped"),
        ((boundary(), attempt(), boundary(1)), "phase_skipped"),
        ((*ONE_CALL, workflow("c9")), "phase_skipped"),
        ((*ONE_CALL, workflow(request_id="q9")), "phase_skipped"),
        ((*ONE_CALL, workflow("c1"), workflow("c1")), "phase_skipped"),
        ((boundary(), delivered(), boundary(2)), "record_after_terminal"),
        ((boundary(), delivered(), command("steer")), "record_after_terminal"),
        ((boundary(), command("steer"), command("steer")), "command_repeated"),
        ((boundary(), events({"type": "a"}), events({"type": "a"})), "event_id_repeated"),
        ((boundary(), events({"type": "run_failed"}, {"type": "run_started"})), "terminal_not_last"),
    ],
)
def test_a_record_that_can_not_stand_there_is_said_so(
    tmp_path: Path, payloads: tuple[dict[str, Any], ...], code: str
) -> None:
    plan = plan_of(tmp_path, *payloads)
    found = [(a.code, a.line) for a in plan.anomalies if a.code != "steering_undelivered"]
    assert found == [(code, len(payloads))]
    assert plan.status != "clean"
    assert refused(plan)[0] == "invalid_digest"


@pytest.mark.parametrize(
    "payloads",
    [
        (boundary(), attempt(), boundary(2)),
        (*ONE_CALL, boundary(2), attempt(2)),
        (*ONE_CALL, workflow(), boundary(2)),
        (*ONE_CALL, command("steer")),
        (boundary(), attempt(), boundary(3), attempt(3)),
    ],
)
def test_a_sequence_that_is_allowed_is_no_anomaly(
    tmp_path: Path, payloads: tuple[dict[str, Any], ...]
) -> None:
    assert set(codes(plan_of(tmp_path, *payloads))) <= {"steering_undelivered"}


def test_a_gap_in_the_sequence_is_said_and_the_calls_before_it_are_unknown(tmp_path: Path) -> None:
    document = checkpoint(*ONE_CALL, command("steer"))
    document["records"][3]["checkpoint_seq"] = 6
    plan = written(tmp_path, document, {"c1": ("prepared",)}).plan
    assert ("seq_gap", 4) in [(a.code, a.line) for a in plan.anomalies]
    assert risk(plan, "c1") == "unknown"  # the missing record may have been anything
    assert refused(plan)[0] == "invalid_digest"


def test_a_sequence_that_does_not_begin_at_one_is_said(tmp_path: Path) -> None:
    document = checkpoint(boundary())
    document["records"][0]["checkpoint_seq"] = 2
    assert codes(written(tmp_path, document).plan) == ["seq_gap"]


def test_an_event_id_that_comes_again_is_said(tmp_path: Path) -> None:
    document = checkpoint(boundary(), attempt())
    document["records"][1]["event_id"] = "e1"
    assert codes(written(tmp_path, document).plan) == ["event_id_repeated"]


def test_a_record_of_another_run_is_said(tmp_path: Path) -> None:
    document = checkpoint(boundary(), attempt())
    document["records"][1]["run_id"] = "run-2"
    assert codes(written(tmp_path, document).plan) == ["other_run"]


# ---- refusals


@pytest.mark.parametrize(
    "observation",
    [
        observed(finish="stop"),
        observed("c1", "c2"),
        observed("c1", finish="length"),
        observed({"call_id": "c1", "name": "shell", "arguments": '{"a"', "ended": False}),
    ],
)
def test_an_answer_that_is_not_one_whole_call_is_unsupported(
    tmp_path: Path, observation: dict[str, Any]
) -> None:
    assert refused(plan_of(tmp_path, boundary(), attempt(), observation))[0] == "unsupported"


@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
def test_one_whole_call_may_be_resumed_by_its_owner(tmp_path: Path, finish: str) -> None:
    plan = plan_of(tmp_path, boundary(), attempt(), observed("c1", finish=finish))
    assert refused(plan)[0] == "not_append_only"


def test_a_call_whose_effect_is_unknown_is_never_said_to_be_run_again(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_CALL, effects={"c1": ("prepared", "invoked")})
    assert plan.refusal is not None
    assert "never run again" in plan.refusal.says


def test_an_open_attempt_without_a_recorded_output_budget_is_refused(tmp_path: Path) -> None:
    started = attempt()
    del started["max_output_tokens"]
    session = written(tmp_path, checkpoint(boundary(), started))
    assert refused(session.plan) == ("invalid_digest", ("q1",))
    assert planned_lines(session) == []


def test_a_workflow_that_was_started_without_a_durable_output_is_unsupported(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_CALL, workflow())
    assert refused(plan) == ("unsupported", ("c1",))
    assert (rule(plan, "c1"), plan.boundary.name) == (1, "tool_open")


def test_an_accepted_answer_that_was_not_applied_is_refused_by_its_command(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_CALL, asks(), resolves("deny"), effects={"c1": ("prepared",)})
    assert refused(plan) == ("invalid_transition", ("cmd-1",))
    assert plan.refusal is not None and "'cmd-1'" in plan.refusal.says
    assert (plan.boundary.name, plan.boundary.command_id) == ("resolution_pending", "cmd-1")


def test_an_answer_that_was_applied_is_refused_no_more(tmp_path: Path) -> None:
    applied = events({"type": "request_resolved", "request_id": APPROVAL}, id="done", causation="cmd-1")
    plan = plan_of(tmp_path, *ONE_CALL, asks(), resolves("deny"), applied, effects={"c1": ("prepared",)})
    assert refused(plan)[0] == "not_append_only"
    assert (plan.boundary.name, rule(plan, "c1")) == ("calls_named", "W2")


def test_a_cancellation_that_was_accepted_is_refused_by_its_command(tmp_path: Path) -> None:
    assert refused(plan_of(tmp_path, boundary(), command("cancel"))) == ("invalid_transition", ("cmd-9",))


@pytest.mark.parametrize(
    "answer",
    [
        resolves("allow"),
        resolves("deny", {"claims": {}}),
        resolves(None, {"claims": {}}),
        resolves("deny", request=f"approval:{RUN}:1:c9"),
        resolves("deny", request=None),
    ],
)
def test_an_answer_that_does_not_fit_is_an_invalid_digest(tmp_path: Path, answer: dict[str, Any]) -> None:
    plan = plan_of(tmp_path, *ONE_CALL, asks(), answer, effects={"c1": ("prepared",)})
    assert refused(plan) == ("invalid_digest", ("cmd-1",))
    assert risk(plan, "c1") == "unknown"


def test_two_accepted_answers_to_one_request_are_an_invalid_digest(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_CALL, asks(), resolves("deny"), resolves("deny", id="cmd-2"))
    assert refused(plan)[0] == "invalid_digest"


@pytest.mark.parametrize("outcome", ["rejected", {"outcome": "unsupported"}, None, 3])
def test_an_answer_that_was_not_accepted_decides_nothing(tmp_path: Path, outcome: Any) -> None:
    rejected = resolves("allow", {"claims": {}}, outcome=outcome)
    plan = plan_of(tmp_path, *ONE_CALL, asks(), rejected, effects={"c1": ("prepared",)})
    assert (plan.boundary.name, rule(plan, "c1")) == ("awaiting_approval", "W1")


def test_a_steering_message_that_was_never_delivered_is_said(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, boundary(), command("steer"))
    assert [(a.code, a.line) for a in plan.anomalies] == [("steering_undelivered", 2)]
    given = events({"type": "input_committed", "content": []}, causation="cmd-9")
    assert plan_of(tmp_path, boundary(), command("steer"), given).anomalies == ()


# ---- the closing event


def test_the_closing_event_of_an_open_attempt_is_exported_with_its_fixed_id() -> None:
    (line,) = planned_lines(fixture("model-attempt-open"))
    assert (line["event_id"], line["run_id"], line["expected_previous"]) == (CLOSING, RUN, 2)
    assert list(line) == ["expected_previous", "event_id", "run_id", "payload"]
    (event,) = line["payload"]["events"]
    assert (event["event_id"], event["run_id"]) == (CLOSING, RUN)
    assert event["payload"] == {
        "type": "run_incomplete",
        "reason": {
            "type": "interrupted",
            "reason": "Host restarted before the model attempt outcome was observed",
        },
        "partial_delivery": None,
    }


@pytest.mark.parametrize("name", ["prepared", "stable", "model-attempt-observed", "workflow-attempt-open"])
def test_no_other_phase_exports_a_line(name: str) -> None:
    assert planned_lines(fixture(name)) == []


def test_a_closing_that_its_owner_took_leaves_nothing_to_do(tmp_path: Path) -> None:
    document = checkpoint(boundary(), attempt())
    (line,) = planned_lines(written(tmp_path, document))
    taken = {key: line[key] for key in ("event_id", "run_id", "payload")}
    document["records"].append({"checkpoint_seq": line["expected_previous"] + 1, **taken})
    plan = written(tmp_path, document).plan
    assert (plan.status, plan.repairs, plan.anomalies) == ("clean", (), ())


def test_a_closing_that_landed_while_nobody_listened_may_be_asked_for_again() -> None:
    refusal = fixture("closed").plan.refusal
    assert refusal is not None
    assert (refusal.code, refusal.retryable, refusal.boundary) == (
        "provider_unavailable",
        True,
        "model_attempt_open",
    )
    assert refusal.ids == ("q1",)
    assert "round 1" in refusal.says and CLOSING in refusal.says


def test_a_closing_that_the_host_has_in_its_journal_was_heard(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "orchestral" / "closed" / NAME).read_text())
    journal = {"registration": {}, "records": [{"event": {"event_id": CLOSING}}]}
    (tmp_path / f"run-{hashlib.sha256(RUN.encode()).hexdigest()}.json").write_text(json.dumps(journal))
    assert written(tmp_path, document).plan.refusal is None


# ---- effects


def test_an_effect_decides_what_is_known_of_its_call() -> None:
    plan = fixture("effects").plan
    assert {id: rule(plan, id) for id in ids(plan)} == {"c1": 2, "c2": 1, "c5": 1}  # c3 and c4 are settled
    assert risk(plan, "c1") == "not started"
    assert (risk(plan, "c2"), risk(plan, "c5")) == ("unknown", "unknown")


def test_an_effect_is_shown_as_evidence() -> None:
    entry = owed(fixture("effects").plan, "c2")
    assert any("its effect is Invoked (effect-" in line.says for line in entry.evidence)
    assert set(evidence(fixture("effects").plan, "c2")) == {3}


def test_a_call_without_any_effect_is_not_called_safe(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_CALL)
    assert (rule(plan, "c1"), plan.boundary.name) == (4, "tool_open")


def test_an_effect_of_another_run_says_nothing(tmp_path: Path) -> None:
    record = {"key": {"run_id": "run-2", "call_id": "c1"}, "payload": {"type": "committed"}}
    (tmp_path / "effect-1.json").write_text(json.dumps([record]))
    assert rule(plan_of(tmp_path, *ONE_CALL), "c1") == 4


@pytest.mark.parametrize("damaged", ["{", "[]", '[{"payload":{"type":"new_stage"}}]', '"x"'])
def test_an_effect_that_can_not_be_read_makes_the_calls_without_one_unknown(
    tmp_path: Path, damaged: str
) -> None:
    (tmp_path / "effect-1.json").write_text(damaged)
    answer = observed("c1", "c2")
    plan = plan_of(tmp_path, boundary(), attempt(), answer, effects={"c1": ("prepared", "invoked")})
    assert {id: rule(plan, id) for id in ids(plan)} == {"c1": 1, "c2": 4}


def test_an_outcome_without_an_invocation_is_no_result(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *ONE_CALL, effects={"c1": ("prepared", "committed")})
    assert risk(plan, "c1") == "unknown"


def test_among_the_effects_of_many_runs_those_of_this_one_are_found_by_their_names(tmp_path: Path) -> None:
    for n in range(FILES + 1):
        (tmp_path / f"effect-{n}.json").write_text("{")  # reading one would make every call unknown
    plan = plan_of(tmp_path, *ONE_CALL, effects={"c1": ("prepared",)})
    assert (rule(plan, "c1"), risk(plan, "c1")) == (2, "not started")


def test_the_open_effect_of_a_workflows_own_call_is_owed() -> None:
    plan = fixture("workflow-attempt-open").plan
    assert ids(plan) == ["c1-step-1", "c1"]
    assert owed(plan, "c1-step-1").name == "shell"
    assert owed(plan, "c1-step-1").arguments == {"a": 1}


def test_a_round_that_was_closed_owes_only_what_was_invoked(tmp_path: Path) -> None:
    answer = observed("c1", "c2")
    plan = plan_of(
        tmp_path, boundary(), attempt(), answer, boundary(2), effects={"c1": ("prepared", "invoked")}
    )
    assert ids(plan) == ["c1"]
    assert plan.boundary.name == "tool_open"


@pytest.mark.parametrize(
    "value",
    [
        {"run_id": RUN, "call_id": "c1", "phase": "Invoked"},
        {"key": {"run_id": RUN, "call_id": "c1"}, "records": [{"type": "prepared"}, {"type": "invoked"}]},
        {"call_id": "c1", "state": {"Invoked": {"attempt_id": "a"}}},
    ],
)
def test_an_effect_is_understood_in_other_spellings_too(tmp_path: Path, value: dict[str, Any]) -> None:
    (tmp_path / "effect-1.json").write_text(json.dumps(value))
    assert rule(plan_of(tmp_path, *ONE_CALL), "c1") == 1


# ---- requests


def test_a_call_that_waits_for_an_approval_waits() -> None:
    plan = fixture("awaiting-approval").plan
    assert (rule(plan, "c1"), plan.boundary.request_id) == ("W1", APPROVAL)


def test_a_call_that_waits_for_an_input_waits(tmp_path: Path) -> None:
    prompt = [{"media_type": "text/plain", "body": {"kind": "inline", "value": "which account?"}}]
    plan = plan_of(tmp_path, *ONE_CALL, asks(f"input:{RUN}:1:c1", "input", prompt=prompt))
    assert (rule(plan, "c1"), plan.boundary.name) == ("W1", "awaiting_input")


def test_a_request_that_was_closed_without_an_answer_is_unknown(tmp_path: Path) -> None:
    closed = events({"type": "request_closed", "request_id": APPROVAL, "reason": "gone"}, id="x")
    plan = plan_of(tmp_path, *ONE_CALL, asks(), closed, effects={"c1": ("prepared",)})
    assert risk(plan, "c1") == "unknown"


# ---- the rest


def test_a_cut_checkpoint_is_never_clean(tmp_path: Path) -> None:
    text = json.dumps(checkpoint(*ONE_CALL, boundary(2), delivered())).encode()
    start = text.index(b'"records"')
    for cut in (*range(start, len(text), 7), len(text) - 2, len(text) - 1):
        (tmp_path / NAME).write_bytes(text[:cut])
        plan = open_session(str(tmp_path / NAME)).plan
        assert plan.status != "clean", f"cut after {cut} bytes"
        assert plan.refusal is not None


def test_a_checkpoint_with_a_long_registration_is_still_one(tmp_path: Path) -> None:
    document = checkpoint(*ONE_CALL)
    document["registration"]["request"]["run"]["spec"]["input"] = ["x" * 100_000]
    assert written(tmp_path, document).plan.boundary.name == "tool_open"


def test_the_hosts_own_journal_of_a_run_is_no_checkpoint(tmp_path: Path) -> None:
    journal = {
        "schema_version": 1,
        "registration": {"request": {}, "execution": {"run_id": RUN}},
        "records": [{"event": {"event_id": "e"}, "draft_digest": "0"}],
    }
    log = tmp_path / "run-1.json"
    log.write_text(json.dumps(journal))
    assert main(["plan", str(log)]) == 3
    del journal["schema_version"]
    log.write_text(json.dumps(journal))
    assert main(["plan", str(log)]) == 3


def test_the_run_is_described_by_its_registration() -> None:
    facts = fixture("stable").journal.decoder.facts()
    assert (facts["agent"], facts["version"], facts["title"]) == ("Orchestral", "1.0", "refund it")
    assert facts["phase"] == "Stable"


def test_a_plan_of_a_checkpoint_counts_records() -> None:
    row = plan_row(fixture("model-attempt-observed"))
    assert row["log"]["next_seq"] == 4
    assert row["open_turns"] == [{"seq": 1, "line": 1, "turn": None}]
    assert [r["type"] for r in row["repairs"]] == ["tool_result", "turn_end"]


def test_records_of_a_checkpoint_are_recognised() -> None:
    assert recognise([checkpoint(boundary())["records"][0]]) is orchestral
    assert not orchestral.recognise({"type": "turn_start", "data": {}, "seq": 0})


@pytest.mark.parametrize("odd", [None, 3, "x", [], {}, {"type": None}, {"type": "new_kind"}])
def test_an_odd_payload_stops_nothing(tmp_path: Path, odd: Any) -> None:
    document = checkpoint(boundary(), boundary())
    document["records"][1]["payload"] = odd
    assert written(tmp_path, document).plan.status == "crashed"


@pytest.mark.parametrize(
    "kind", [boundary()["type"], attempt()["type"], observed()["type"], "command_committed"]
)
def test_a_payload_without_its_fields_stops_nothing(tmp_path: Path, kind: str) -> None:
    assert plan_of(tmp_path, {"type": kind}).status == "crashed"
    assert plan_of(tmp_path, {"type": kind, "observation": 3, "command": 3, "events": 3}).status == "crashed"
