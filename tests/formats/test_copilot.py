"""Copilot CLI event logs: which calls a killed session owes, by the evidence ladder, and what closes them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import jsonschema
import pytest

from tests.formats.copilot_logs import (
    HEAD,
    ONE_DONE,
    TALK,
    agent_ends,
    agent_starts,
    arguments,
    asks,
    completes,
    decides,
    external,
    finished,
    hook,
    hook_end,
    later,
    log,
    names,
    note,
    record,
    resume,
    session,
    shutdown,
    speaks,
    starts,
    step,
    step_end,
    user,
)
from tests.formats.repairs import (
    FIXTURES,
    NOW,
    answers_for,
    appended,
    appended_lines,
    applied,
    assert_converges,
    corpus,
    log_of,
    plan_of_log,
    planned_lines,
    records_of,
    says_of,
    session_of,
    why_left,
)
from tests.helpers import codes, ids, owed, recognise, risk, row, rule
from triage.log.append import Refused
from triage.log.formats import copilot
from triage.recovery.plan import Plan
from triage.session import open_session

SCHEMA = FIXTURES / "copilot" / "session-events.trimmed.schema.json"
BASE = (*HEAD, names("done", "ship"), *ONE_DONE)
PRE = hook("p1", input={"toolName": "bash"})


def plan_of(folder: Path, *happenings: Any) -> Plan:
    return plan_of_log(folder, log(*happenings))


def label(plan: Plan, id: str) -> str:
    return owed(plan, id).label


def fails(record: Any, schema: Path = SCHEMA) -> list[str]:
    """What the vendor's schema has against a record."""
    validator = jsonschema.Draft7Validator(
        json.loads(schema.read_text("utf-8")), format_checker=jsonschema.FormatChecker()
    )
    return [error.message for error in validator.iter_errors(record)]


def types_of(lines: list[dict[str, Any]]) -> list[str]:
    return [line["type"] for line in lines]


# ---- the ladder. Each fixture differs from its neighbour in the one record that moves the call.

LADDER = {
    "named": (2, "not started", "NOT STARTED", False),
    "named-in-the-hole": (4, "unknown", "UNKNOWN", True),
    "named-in-a-step-that-closed": (3, "not started", "NOT STARTED", False),
    "named-and-nothing-started": (4, "unknown", "UNKNOWN", True),
    "hook-open": (2, "not started", "NOT STARTED", False),
    "hook-open-in-the-hole": (4, "unknown", "UNKNOWN", True),
    "asked": ("W1", "not started", "WAITING", True),
    "denied": ("W2", "not started", "DENIED", False),
    "cancelled": ("W2", "not started", "DENIED", False),
    "approved": (1, "unknown", "UNKNOWN", True),
    "started": (1, "unknown", "UNKNOWN", True),
    "hook-ended": (1, "unknown", "UNKNOWN", True),
    "external": (1, "unknown", "UNKNOWN", True),
    "finished": (1, "unknown", "UNKNOWN", True),
}


@pytest.mark.parametrize("name", LADDER)
def test_each_row_of_the_ladder_gives_its_risk_its_rule_and_its_word(name, tmp_path):
    """Stands for sessions of 1.0.70 that were killed with one call at each stage, the other answered."""
    plan = plan_of_log(tmp_path, records_of("copilot", name))
    entry = owed(plan, "ship")
    found = (entry.rule, risk(plan, "ship"), entry.label, entry.needs_acknowledgement)
    assert (found, plan.status) == (LADDER[name], "crashed")


def test_a_request_to_an_external_tool_is_a_dispatch_whatever_was_recorded_before_it(tmp_path):
    quiet = (later(1500), note())
    for before, without in (((), 2), ((starts("ship"), PRE), 2)):
        assert rule(plan_of(tmp_path, *BASE, *before, *quiet), "ship") == without
        plan = plan_of(tmp_path, *BASE, *before, external("ship"), *quiet)
        assert rule(plan, "ship") == 1
        assert "handed to an external tool, no completion" in says_of(plan, "ship")


def test_an_answered_call_is_not_owed_even_with_its_permission_still_open(tmp_path):
    """Stands for a session that was killed between a result and the record that its prompt is gone."""
    session = session_of(tmp_path, records_of("copilot", "answered-while-asked"))
    assert (session.plan.status, session.plan.owed) == ("crashed", ())
    assert types_of(planned_lines(session)) == ["permission.completed", "assistant.turn_end", "abort"]


def test_a_session_that_ended_owes_nothing(tmp_path):
    plan = plan_of_log(tmp_path, records_of("copilot", "clean"))
    assert (plan.status, plan.owed, plan.left, plan.anomalies) == ("clean", (), (), ())


def test_evidence_and_trace_speak_the_words_of_the_format(tmp_path):
    plan = plan_of_log(tmp_path, records_of("copilot", "approved"))
    said = [(line.line, line.says) for line in owed(plan, "ship").evidence]
    assert said == [
        (4, "named"),
        (7, "tool.execution_start: its hook and its permission come after this"),
        (
            8,
            "permission requested (shell: ./renew ship > out.txt; ./renew may write; cat only reads; "
            "writes a file by redirection; paths: out.txt)",
        ),
        (9, "permission approved, no completion"),
    ]
    assert row(plan, "ship", 1).says == "dispatched on line 9, and no result follows"
    assert plan.boundary.name == "tool_open"
    assert plan.boundary.line == 9


def test_a_waiting_call_dies_waiting_and_a_denied_one_names_who_denied_it(tmp_path):
    asked = plan_of_log(tmp_path, records_of("copilot", "asked"))
    assert (asked.boundary.name, asked.boundary.request_id) == ("awaiting_approval", "r1")
    denied = plan_of_log(tmp_path, records_of("copilot", "denied"))
    assert "permission denied (denied-interactively-by-user)" in says_of(denied, "ship")
    assert "permission cancelled (cancelled)" not in says_of(denied, "ship")


def test_a_finished_call_quotes_what_its_hook_was_given(tmp_path):
    session = session_of(tmp_path, records_of("copilot", "finished"))
    assert owed(session.plan, "ship").finished == "renewed"
    assert appended_lines(session)[0]["data"]["error"]["message"].count("renewed") == 1


@pytest.mark.parametrize(
    ("input", "text"),
    [
        ({"toolName": "bash", "toolResult": {"resultType": "failure"}}, "does not hold its result"),
        ({"toolName": "bash", "error": "exit 2"}, "exit 2"),
        ({"toolName": "bash", "toolResult": "plain"}, "plain"),
        (None, "does not hold its result"),
    ],
)
def test_a_hook_that_holds_no_result_text_still_shows_that_the_call_finished(input, text, tmp_path):
    after = hook("h1", "postToolUseFailure", input=input)
    plan = plan_of(tmp_path, *BASE, starts("ship"), PRE, after)
    assert (rule(plan, "ship"), text in (owed(plan, "ship").finished or "")) == (1, True)


# ---- the guard


@pytest.mark.parametrize(("pause", "expected"), [(960, 4), (979, 4), (980, 4), (981, 2)])
def test_more_than_a_second_has_to_pass_after_the_naming_for_its_silence_to_count(pause, expected, tmp_path):
    plan = plan_of(
        tmp_path, *HEAD, names("done", "ship"), starts("done"), later(pause - 20), completes("done")
    )
    assert rule(plan, "ship") == expected


def test_the_trace_of_a_call_in_the_hole_says_why_it_is_unknown(tmp_path):
    plan = plan_of_log(tmp_path, records_of("copilot", "named-in-the-hole"))
    assert row(plan, "ship", 2).says.endswith(
        "but no record was written more than 1,000 ms later, and the writer buffers"
    )
    assert row(plan, "ship", 2).held is False


def test_for_a_call_before_an_open_hook_the_time_counts_from_the_hook(tmp_path):
    slow = (*BASE, later(5000), starts("ship"), PRE)
    assert rule(plan_of(tmp_path, *slow), "ship") == 4
    assert rule(plan_of(tmp_path, *slow, later(1500), note()), "ship") == 2


def test_without_times_nothing_proves_that_a_call_did_not_start(tmp_path):
    records = log(*BASE, later(1500), note())
    for one in records:
        one["timestamp"] = "yesterday"
    assert rule(plan_of_log(tmp_path, records), "ship") == 4


def test_a_time_without_an_offset_is_utc(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        records = log(*BASE, later(1500), note())
        records[-1]["timestamp"] = records[-1]["timestamp"].removesuffix("Z")
        assert rule(plan_of_log(tmp_path, records), "ship") == 2
    finally:
        monkeypatch.undo()
        time.tzset()


def test_records_of_another_process_say_nothing_of_what_the_killed_one_still_had_to_write(tmp_path):
    killed = (*BASE, later(300), note())
    assert rule(plan_of(tmp_path, *killed, later(9000), resume(), note()), "ship") == 4
    attached = resume(sessionWasActive=True)
    assert rule(plan_of(tmp_path, *killed, later(9000), attached, note()), "ship") == 2


def test_what_a_process_wrote_before_another_went_on_keeps_counting(tmp_path):
    plan = plan_of(tmp_path, *BASE, later(1500), note(), later(9000), resume())
    assert rule(plan, "ship") == 2


def test_a_repair_that_was_cut_off_makes_no_other_call_safer(tmp_path):
    records = log(*HEAD, names("done", "ship", "mail"), *ONE_DONE, later(300), note())
    session = session_of(tmp_path, records)
    first = appended(session).split(b"\n")[0] + b"\n"
    plan = plan_of_log(tmp_path, log_of(records) + first)
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("mail", 4)]


# ---- rule 2 counts what reached its tool


def test_a_start_alone_is_no_dispatch_of_another_call(tmp_path):
    waiting = (starts("other"), asks("r1", "other"), later(1500), note())
    plan = plan_of(tmp_path, *HEAD, names("other", "ship"), *waiting)
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("other", "W1"), ("ship", 4)]


def test_an_approved_call_shows_that_its_silent_sibling_was_not_started(tmp_path):
    other = (starts("other"), asks("r1", "other"), decides("r1", "other"), later(1500), note())
    plan = plan_of(tmp_path, *HEAD, names("other", "ship"), *other)
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("other", 1), ("ship", 2)]


# ---- permissions


def test_every_kind_of_approval_lets_a_call_through_and_every_kind_of_denial_stops_it(tmp_path):
    for kind, expected in {
        "approved": 1,
        "approved-for-session": 1,
        "approved-for-location": 1,
        "denied-by-rules": "W2",
        "denied-no-approval-rule-and-could-not-request-from-user": "W2",
        "cancelled": "W2",
        "something-new": 1,
    }.items():
        plan = plan_of(tmp_path, *BASE, starts("ship"), asks("r1", "ship"), decides("r1", "ship", kind))
        assert (kind, rule(plan, "ship")) == (kind, expected)


def test_a_decision_that_says_nothing_is_taken_for_an_approval(tmp_path):
    silent = record("permission.completed", requestId="r1")
    plan = plan_of(tmp_path, *BASE, starts("ship"), asks("r1", "ship"), silent)
    assert rule(plan, "ship") == 1


def test_an_approved_call_that_is_asked_for_again_may_have_run_in_part(tmp_path):
    twice = (asks("r1", "ship"), decides("r1", "ship"), asks("r2", "ship"))
    session = session_of(tmp_path, log(*BASE, starts("ship"), *twice))
    assert rule(session.plan, "ship") == 1
    closed = planned_lines(session)[1]["data"]
    assert closed == {"requestId": "r2", "toolCallId": "ship", "result": {"kind": "cancelled"}}


def test_a_denial_after_an_approval_does_not_take_it_back(tmp_path):
    both = (
        asks("r1", "ship"),
        decides("r1", "ship"),
        asks("r2", "ship"),
        decides("r2", "ship", "denied-by-rules"),
    )
    assert rule(plan_of(tmp_path, *BASE, starts("ship"), *both, later(1500), note()), "ship") == 1


def test_an_approval_after_a_denial_wins(tmp_path):
    both = (
        asks("r1", "ship"),
        decides("r1", "ship", "denied-by-rules"),
        asks("r2", "ship"),
        decides("r2", "ship"),
    )
    assert rule(plan_of(tmp_path, *BASE, starts("ship"), *both), "ship") == 1


def test_a_decision_without_its_request_is_contradictory(tmp_path):
    plan = plan_of(
        tmp_path, *BASE, starts("ship"), decides("r9", "ship", "denied-by-rules"), later(1500), note()
    )
    assert (risk(plan, "ship"), "inconsistent_approval" in codes(plan)) == ("unknown", True)


def test_a_request_that_a_hook_resolved_waits_for_nobody(tmp_path):
    resolved = asks("r1", "ship", resolvedByHook=True)
    assert rule(plan_of(tmp_path, *BASE, starts("ship"), resolved), "ship") == 1
    denied = decides("r1", "ship", "denied-by-permission-request-hook")
    assert rule(plan_of(tmp_path, *BASE, starts("ship"), resolved, denied), "ship") == "W2"


def test_a_request_without_a_call_is_given_to_the_only_call_that_it_can_be_for(tmp_path):
    command = {"kind": "shell", "fullCommandText": "./renew ship"}
    asked = record("permission.requested", requestId="r1", permissionRequest=command)
    plan = plan_of(tmp_path, *HEAD, names("ship", "mail"), starts("ship"), starts("mail"), asked)
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("ship", "W1"), ("mail", 1)]
    unclear = record("permission.requested", requestId="r1", permissionRequest={"kind": "write"})
    plan = plan_of(tmp_path, *HEAD, names("ship", "mail"), starts("ship"), starts("mail"), unclear)
    assert [rule(plan, id) for id in ids(plan)] == [1, 1]


def test_a_start_that_is_logged_after_its_permission_prompt_is_no_dispatch(tmp_path):
    plan = plan_of(tmp_path, *BASE, asks("r1", "ship"), starts("ship"))
    assert rule(plan, "ship") == "W1"


# ---- hooks


def test_a_hook_that_names_its_calls_gates_exactly_those(tmp_path):
    both = {"toolCalls": [{"id": "ship", "name": "bash", "args": "{}"}]}
    gate = (starts("ship"), starts("mail"), hook("p1", input=both), later(1500), note())
    plan = plan_of(tmp_path, *HEAD, names("ship", "mail"), *gate)
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("ship", 2), ("mail", 1)]


def test_a_hook_without_an_id_is_told_by_its_arguments(tmp_path):
    input = {"toolName": "bash", "toolArgs": json.dumps(arguments("mail"))}
    gate = (starts("ship"), starts("mail"), hook("p1", input=input), later(1500), note())
    plan = plan_of(tmp_path, *HEAD, names("ship", "mail"), *gate)
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("ship", 1), ("mail", 2)]


def test_a_hook_without_any_input_belongs_to_the_only_open_call(tmp_path):
    plan = plan_of(tmp_path, *BASE, starts("ship"), hook("p1"), later(1500), note())
    assert rule(plan, "ship") == 2


def test_a_hook_that_could_be_one_of_two_calls_gates_neither(tmp_path):
    gate = (starts("ship"), starts("mail"), PRE, later(1500), note())
    plan = plan_of(tmp_path, *HEAD, names("ship", "mail"), *gate)
    assert [rule(plan, id) for id in ids(plan)] == [1, 1]


def test_a_hook_whose_arguments_are_another_calls_gates_nothing(tmp_path):
    other = hook("p1", input={"toolName": "bash", "toolArgs": {"command": "ls"}})
    assert rule(plan_of(tmp_path, *BASE, starts("ship"), other, later(1500), note()), "ship") == 1


def test_a_hook_that_can_never_be_seen_to_end_gates_nothing(tmp_path):
    nameless = record("hook.start", hookType="preToolUse", input={"toolName": "bash"})
    assert rule(plan_of(tmp_path, *BASE, starts("ship"), nameless, later(1500), note()), "ship") == 1


def test_a_call_is_through_only_when_the_last_of_its_hooks_has_ended(tmp_path):
    two = (starts("ship"), PRE, hook_end("p1"), hook("p2", input={"toolName": "bash"}), later(1500), note())
    assert rule(plan_of(tmp_path, *BASE, *two), "ship") == 2
    assert rule(plan_of(tmp_path, *BASE, *two, hook_end("p2")), "ship") == 1


def test_of_two_hooks_that_run_at_once_the_end_of_one_does_not_let_the_call_through(tmp_path):
    both = (starts("ship"), PRE, hook("p2", input={"toolName": "bash"}), hook_end("p1"), later(1500), note())
    assert rule(plan_of(tmp_path, *BASE, *both), "ship") == 2
    assert rule(plan_of(tmp_path, *BASE, *both, hook_end("p2")), "ship") == 1


def test_a_hook_that_failed_has_ended_too(tmp_path):
    assert rule(plan_of(tmp_path, *BASE, starts("ship"), PRE, hook_end("p1", success=False)), "ship") == 1


def test_a_hook_after_the_approval_does_not_make_a_call_unstarted_again(tmp_path):
    approved = (starts("ship"), asks("r1", "ship"), decides("r1", "ship"), PRE, later(1500), note())
    assert rule(plan_of(tmp_path, *BASE, *approved), "ship") == 1


def test_a_hook_of_a_waiting_or_denied_call_changes_nothing(tmp_path):
    own = hook("p1", input={"toolCalls": [{"id": "ship"}]})
    asked = (starts("ship"), asks("r1", "ship"))
    for before, expected in (
        (asked, "W1"),
        ((*asked, decides("r1", "ship", "denied-by-rules")), "W2"),
        ((*asked, decides("r1", "ship")), 1),
    ):
        for after in ((own,), (own, hook_end("p1"))):
            assert rule(plan_of(tmp_path, *BASE, *before, *after, later(1500), note()), "ship") == expected


def test_hooks_of_other_kinds_say_nothing_about_a_call(tmp_path):
    other = (hook("s1", "sessionStart"), hook("u1", "userPromptSubmitted", input={"toolName": "bash"}))
    assert rule(plan_of(tmp_path, *BASE, later(1500), *other), "ship") == 2


def test_a_result_hook_that_fits_two_running_calls_quotes_neither(tmp_path):
    both = (starts("ship"), starts("mail"), finished("h1"))
    plan = plan_of(tmp_path, *HEAD, names("ship", "mail"), *both)
    assert [owed(plan, id).finished for id in ids(plan)] == [None, None]
    assert [rule(plan, id) for id in ids(plan)] == [1, 1]


def test_a_result_hook_is_the_running_calls_and_not_the_waiting_ones(tmp_path):
    waits = (starts("ship"), starts("mail"), asks("r1", "mail"), finished("h1"))
    plan = plan_of(tmp_path, *HEAD, names("ship", "mail"), *waits)
    assert [(id, rule(plan, id), owed(plan, id).finished) for id in ids(plan)] == [
        ("ship", 1, "renewed"),
        ("mail", "W1", None),
    ]


def test_a_result_hook_that_fits_only_waiting_calls_makes_them_unknown(tmp_path):
    waits = (starts("ship"), starts("mail"), asks("r1", "ship"), asks("r2", "mail"), finished("h1"))
    plan = plan_of(tmp_path, *HEAD, names("ship", "mail"), *waits)
    assert [rule(plan, id) for id in ids(plan)] == [1, 1]


def test_a_sibling_that_was_answered_takes_its_hooks_with_it(tmp_path):
    plan = plan_of(tmp_path, *BASE, starts("ship"), finished("h1", toolArgs=arguments("done")))
    assert (rule(plan, "ship"), owed(plan, "ship").finished) == (1, None)


# ---- interactions are turns


def test_an_interaction_is_one_turn_over_all_its_steps(tmp_path):
    plan = plan_of_log(tmp_path, records_of("copilot", "followed"))
    assert [turn.line for turn in plan.open_turns] == [2]


@pytest.mark.parametrize(
    "closer",
    [
        user("and now?", talk="5d9f0f6e-8f58-4a38-8a45-9a5f6e1c0d22"),
        user("and now?"),
        shutdown(),
        record("session.task_complete", success=True, summary="done"),
        record("abort", reason="user_initiated"),
        record("abort", reason="user initiated"),
    ],
    ids=["next prompt", "next prompt, same interaction", "shutdown", "task", "abort", "old abort"],
)
def test_a_call_whose_interaction_is_over_is_left(closer, tmp_path):
    plan = plan_of(tmp_path, *BASE, starts("ship"), closer)
    assert (ids(plan), [entry.tool_call_id for entry in plan.left]) == ([], ["ship"])
    assert "its turn (line 2) was closed" in why_left(plan, "ship")
    assert plan.status == ("crashed" if closer["type"] == "user.message" else "clean")


def test_a_step_that_ends_owing_nothing_ends_the_interaction(tmp_path):
    assert plan_of(tmp_path, *BASE, starts("ship"), completes("ship"), step_end()).status == "clean"
    assert plan_of(tmp_path, *BASE, starts("ship"), completes("ship")).status == "crashed"
    assert plan_of(tmp_path, *BASE, starts("ship"), step_end()).status == "crashed"
    assert plan_of(tmp_path, *BASE, starts("ship"), step_end(), completes("ship")).status == "clean"


def test_a_repair_that_was_cut_after_the_last_result_still_gets_its_end(tmp_path):
    text = log_of(log(*BASE, starts("ship"), asks("r1", "ship"), step_end()))
    first = appended(session_of(tmp_path, text)).split(b"\n")[0] + b"\n"
    session = session_of(tmp_path, text + first)
    assert types_of(planned_lines(session)) == ["permission.completed", "abort"]


def test_an_interaction_goes_on_with_its_next_step(tmp_path):
    quiet = (*HEAD, speaks(), step_end())
    assert plan_of(tmp_path, *quiet).status == "clean"
    plan = plan_of(tmp_path, *quiet, step("1"))
    assert (plan.status, plan.boundary.name) == ("crashed", "model_attempt_open")
    plan = plan_of(tmp_path, *quiet, note(), step("1"), names("ship", turn="1"), starts("ship"))
    assert [turn.line for turn in plan.open_turns] == [2]
    assert rule(plan, "ship") == 1
    plan = plan_of(tmp_path, *quiet, step("1"), names("ship", turn="1"), starts("ship"), completes("ship"))
    assert (plan.status, plan.boundary.name) == ("crashed", "stable")


def test_hooks_at_the_end_of_an_interaction_do_not_open_it_again(tmp_path):
    quiet = (*HEAD, speaks(), step_end(), hook("s1", "agentStop"))
    assert plan_of(tmp_path, *quiet).repairs == ()


def test_a_prompt_alone_is_an_open_turn(tmp_path):
    plan = plan_of(tmp_path, session(), user())
    assert (plan.status, plan.boundary.name) == ("crashed", "prepared")


def test_a_log_that_begins_in_the_middle_owes_what_its_messages_name(tmp_path):
    plan = plan_of(tmp_path, step("4"), names("ship", turn="4"), starts("ship"))
    assert (plan.status, rule(plan, "ship")) == ("crashed", 1)
    assert plan_of(tmp_path, step("4")).status == "clean"


def test_a_message_that_nobody_typed_does_not_end_an_interaction(tmp_path):
    skill = user("<skill-context name=certs>", source="skill-certs")
    assert ids(plan_of(tmp_path, *BASE, starts("ship"), skill)) == ["ship"]


def test_a_call_that_a_user_started_outside_any_turn_is_left(tmp_path):
    requested = record("tool.user_requested", toolCallId="mine", toolName="bash", arguments={"command": "ls"})
    plan = plan_of(tmp_path, session(), requested, starts("mine"))
    assert (plan.status, [entry.tool_call_id for entry in plan.left]) == ("clean", ["mine"])


def test_a_late_answer_settles_a_call_of_an_interaction_that_is_over(tmp_path):
    abort = record("abort", reason="user_initiated")
    plan = plan_of(tmp_path, *BASE, starts("ship"), abort, completes("ship"), step_end())
    assert (plan.status, plan.left) == ("clean", ())


def test_an_id_that_comes_back_in_the_next_interaction_is_owed_again(tmp_path):
    again = (user("again"), step(), names("done"), starts("done"))
    plan = plan_of(tmp_path, *BASE, starts("ship"), completes("ship"), step_end(), *again)
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("done", 1)]


def test_a_call_that_later_messages_follow_is_owed_and_says_that_old_builds_stay_stuck(tmp_path):
    """Stands for a session that went on over an orphan and then got the same error again and again."""
    session = session_of(tmp_path, records_of("copilot", "followed"))
    assert [(id, rule(session.plan, id)) for id in ids(session.plan)] == [("ship", 1)]
    (said,) = [line for line in owed(session.plan, "ship").evidence if "1.0.77" in line.says]
    assert (said.line, "update the agent" in said.says) == (10, True)
    assert types_of(planned_lines(session)) == ["tool.execution_complete", "assistant.turn_end", "abort"]


def test_a_message_that_is_logged_again_after_its_answer_owes_nothing(tmp_path):
    plan = plan_of(tmp_path, *HEAD, names("done"), *ONE_DONE, names("done"), step_end())
    assert (plan.status, plan.owed) == ("clean", ())


def test_a_message_that_is_logged_in_two_records_does_not_follow_itself(tmp_path):
    plan = plan_of(tmp_path, *HEAD, names("ship"), starts("ship"), names("ship"))
    assert not [says for says in says_of(plan, "ship") if "1.0.77" in says]


# ---- sub-agents are lanes


def test_a_sub_agents_call_and_the_call_that_started_it_are_both_owed(tmp_path):
    """Stands for a session that was killed while a sub-agent ran a command."""
    plan = plan_of_log(tmp_path, records_of("copilot", "sub-agent"))
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("inner", 1), ("task", 1)]
    assert "its sub-agent was started" in says_of(plan, "task")
    assert [turn.line for turn in plan.open_turns] == [6, 2]


def test_a_call_whose_sub_agent_ran_is_dispatched_whatever_is_asked_for_later(tmp_path):
    begun = (*HEAD, names("task:task"), starts("task", "task"), agent_starts("task", "task"))
    assert rule(plan_of(tmp_path, *begun, asks("r1", "task")), "task") == 1


def test_a_sub_agent_that_began_shows_that_its_call_had_been_let_through(tmp_path):
    asked = (*HEAD, names("task:task"), starts("task", "task"), asks("r1", "task"))
    assert rule(plan_of(tmp_path, *asked), "task") == "W1"
    assert rule(plan_of(tmp_path, *asked, agent_starts("task", "task")), "task") == 1


def test_the_messages_of_a_sub_agent_do_not_follow_the_calls_around_it(tmp_path):
    plan = plan_of_log(tmp_path, records_of("copilot", "sub-agent"))
    assert not [says for says in says_of(plan, "task") if "1.0.77" in says]


def test_a_sub_agent_of_an_older_version_is_told_by_its_parent_call(tmp_path):
    records = records_of("copilot", "sub-agent")
    for one in records:
        one.pop("agentId", None)
    session = session_of(tmp_path, records)
    assert [(id, rule(session.plan, id)) for id in ids(session.plan)] == [("inner", 1), ("task", 1)]
    first, *_, failed, _, _ = planned_lines(session)
    assert (first["data"]["parentToolCallId"], "agentId" in first) == ("task", False)
    assert (failed["data"]["toolCallId"], "agentId" in failed) == ("task", False)


def test_a_result_without_its_agent_still_answers_the_sub_agents_call(tmp_path):
    records = [*records_of("copilot", "sub-agent"), *log(completes("inner"))]
    assert ids(plan_of_log(tmp_path, records)) == ["task"]


def test_a_sub_agent_that_ended_owes_nothing(tmp_path):
    inner = (names("inner", agent="task"), starts("inner", agent="task"))
    begun = (*HEAD, names("task:task"), starts("task", "task"), agent_starts("task", "task"), *inner)
    for end in (agent_ends("task", "task"), agent_ends("task", "task", "failed", error="out of tokens")):
        plan = plan_of(tmp_path, *begun, end)
        assert (ids(plan), [entry.tool_call_id for entry in plan.left]) == (["task"], ["inner"])


def test_a_sub_agent_in_the_background_outlives_the_interaction_that_started_it(tmp_path):
    inner = (names("inner", agent="task"), starts("inner", agent="task"))
    begun = (*HEAD, names("task:task"), starts("task", "task"), agent_starts("task", "task"))
    background = (*begun, completes("task"), *inner, step_end(), user("next"), step(), speaks(), step_end())
    session = session_of(tmp_path, log(*background))
    assert [(id, rule(session.plan, id)) for id in ids(session.plan)] == [("inner", 1)]
    assert types_of(planned_lines(session)) == ["tool.execution_complete", "subagent.failed", "abort"]
    assert applied(session).plan.status == "clean"
    held = (*background[:-5], hook("p1", input={"toolCalls": [{"id": "inner"}]}), *background[-5:])
    lines = planned_lines(session_of(tmp_path, log(*held)))
    assert types_of(lines) == ["tool.execution_complete", "subagent.failed", "hook.end", "abort"]
    waited_for = (*begun, *inner, user("next"), step(), speaks(), step_end())
    assert plan_of(tmp_path, *waited_for).status == "clean"
    assert plan_of(tmp_path, *background, shutdown()).status == "clean"
    assert (
        plan_of(tmp_path, *background, resume(), user("on"), step(), speaks(), step_end()).status == "clean"
    )


def test_the_same_id_in_a_sub_agent_and_around_it_is_two_calls(tmp_path):
    both = (names("task:task", "same"), starts("task", "task"), starts("same"), agent_starts("task", "task"))
    inner = (names("same", agent="task"), starts("same", agent="task"))
    session = session_of(tmp_path, log(*HEAD, *both, *inner))
    assert len(session.plan.owed) == 3
    first, *_ = [line for line in appended_lines(session) if line["data"].get("toolCallId") == "same"]
    assert first["agentId"] == "task"
    assert applied(session).plan.status == "clean"


# ---- the repair


def test_a_repair_closes_all_that_is_open_in_the_order_of_the_page(tmp_path):
    """Stands for a session that was killed with a prompt, a sub-agent, a hook and a step open."""
    session = session_of(tmp_path, records_of("copilot", "everything-open"))
    last = records_of("copilot", "everything-open")[-1]["id"]
    lines = appended_lines(session, note="looked at the host")
    assert types_of(lines) == [
        "tool.execution_complete",
        "tool.execution_complete",
        "tool.execution_complete",
        "permission.completed",
        "subagent.failed",
        "hook.end",
        "assistant.turn_end",
        "abort",
    ]
    inner, ship, task, asked, agent, gate, end, abort = (line["data"] for line in lines)
    answer = {"finding": "could-not-tell", "note": "looked at the host", "operator": "ana", "at": NOW}
    told = {"synthetic": True, "risk": "tool_outcome_unknown", "rule": 4, "acknowledged": answer}
    assert inner == {
        "toolCallId": "inner",
        "success": False,
        "interactionId": TALK,
        "turnId": "0",
        "error": {"message": inner["error"]["message"], "code": "tool_outcome_unknown"},
        "toolTelemetry": told,
        "parentToolCallId": "agent-7",
    }
    assert inner["error"]["message"].endswith(
        "An operator (ana) checked: whether it ran could not be told. Note: looked at the host"
    )
    assert set(ship) == {"toolCallId", "success", "interactionId", "turnId", "error", "toolTelemetry"}
    assert (ship["toolCallId"], ship["error"]["code"]) == ("ship", "tool_not_started")
    assert (ship["toolTelemetry"]["rule"], ship["toolTelemetry"]["acknowledged"]["finding"]) == ("W1", "deny")
    assert (task["toolCallId"], task["error"]["code"]) == ("task", "tool_outcome_unknown")
    assert asked == {"requestId": "r1", "toolCallId": "ship", "result": {"kind": "cancelled"}}
    assert agent == {
        "toolCallId": "task",
        "agentName": "task",
        "agentDisplayName": "Task Agent",
        "error": "The session ended while this sub-agent was running.",
    }
    assert gate == {"hookInvocationId": "p2", "hookType": "preToolUse", "success": False}
    assert end == {"turnId": "0"}
    assert abort == {"reason": "user_initiated"}
    assert [line.get("agentId") for line in lines] == [
        "agent-7",
        *[None] * 3,
        "agent-7",
        "agent-7",
        None,
        None,
    ]
    assert [line["parentId"] for line in lines] == [last, *(line["id"] for line in lines[:-1])]
    assert all(UUID(line["id"]).version == 4 for line in lines)
    assert {line["timestamp"] for line in lines} == {NOW}
    assert len({line["id"] for line in lines}) == len(lines)


def test_a_plan_shows_the_same_lines_with_null_for_what_the_append_makes(tmp_path):
    session = session_of(tmp_path, records_of("copilot", "everything-open"))
    last = records_of("copilot", "everything-open")[-1]["id"]
    planned = planned_lines(session)
    assert types_of(planned) == types_of(appended_lines(session))
    assert [list(line)[:5] for line in planned] == [["type", "data", "id", "timestamp", "parentId"]] * len(
        planned
    )
    assert {(line["id"], line["timestamp"]) for line in planned} == {(None, None)}
    assert [line["parentId"] for line in planned] == [last, *[None] * (len(planned) - 1)]


@pytest.mark.parametrize("name", sorted(path.stem for path in (FIXTURES / "copilot").glob("*.jsonl")))
def test_the_vendors_schema_takes_every_line_that_a_repair_appends(name, tmp_path):
    session = session_of(tmp_path, records_of("copilot", name))
    lines = appended_lines(session)
    assert bool(lines) == (name != "clean")
    whole = Path(os.environ.get("TRIAGE_CORPUS", ""), "copilot", "session-events.schema.json")
    for line in lines:
        assert fails(line) == []
        if os.environ.get("TRIAGE_CORPUS"):
            assert fails(line, whole) == []


def test_the_schema_that_the_tests_keep_would_notice_a_foreign_key(tmp_path):
    line = appended_lines(session_of(tmp_path, records_of("copilot", "approved")))[0]
    assert fails({**line, "triage": True})
    assert fails({**line, "data": {**line["data"], "synthetic": True}})
    assert fails({**line, "id": None})


def test_lines_are_valid_even_where_the_log_is_odd(tmp_path):
    odd = [
        *log(session()),
        {"type": "user.message", "data": None, "id": 7, "timestamp": 12, "parentId": []},
        {"type": "assistant.turn_start", "data": {"turnId": 3}},
        {"type": "assistant.message", "data": {"toolRequests": [{"toolCallId": 41, "name": 5}], "turnId": 3}},
        {"type": "permission.requested", "data": {"requestId": 9, "permissionRequest": {"toolCallId": 41}}},
        {"type": "subagent.started", "data": {"toolCallId": "s"}},
        {"type": "hook.start", "data": {"hookInvocationId": "h", "hookType": 3}},
    ]
    session_ = session_of(tmp_path, odd)
    lines = appended_lines(session_)
    assert [fails(line) for line in lines] == [[]] * len(lines)
    assert lines[0]["data"]["toolCallId"] == "41"
    assert applied(session_).plan.repairs == ()


@pytest.mark.parametrize(
    "requests",
    [None, {}, "x", [None, 3, {}], [{"toolCallId": None}], [{"toolCallId": "a", "arguments": "{"}]],
)
def test_odd_tool_requests_are_no_crash(requests, tmp_path):
    message = record("assistant.message", messageId="m", content="", toolRequests=requests)
    assert plan_of(tmp_path, *HEAD, message).status == "crashed"


@pytest.mark.parametrize("name", sorted(path.stem for path in (FIXTURES / "copilot").glob("*.jsonl")))
def test_a_repaired_log_owes_nothing_and_its_old_bytes_are_its_first(name, tmp_path):
    session = session_of(tmp_path, records_of("copilot", name))
    after = applied(session)
    assert (after.plan.repairs, after.plan.open_turns, after.plan.status) == ((), (), "clean")
    assert session.plan.repairs == () or after.holds(
        session.journal.base, [{"type": r.type, "data": r.data} for r in session.plan.repairs]
    )


@pytest.mark.parametrize("name", ["approved", "asked", "followed", "everything-open", "answered-while-asked"])
def test_a_repair_that_was_cut_anywhere_is_completed(name, tmp_path):
    assert_converges(tmp_path, log_of(records_of("copilot", name)), step=7)


def test_a_session_that_went_on_after_a_repair_is_read_as_usual(tmp_path):
    path = applied(session_of(tmp_path, records_of("copilot", "approved"))).path
    more = log(resume(), user("go on"), step(), names("next"), starts("next"))
    Path(path).write_bytes(Path(path).read_bytes() + log_of(more))
    plan = open_session(path).plan
    assert [(id, rule(plan, id)) for id in ids(plan)] == [("next", 1)]
    assert plan.left == ()


def test_what_an_earlier_interaction_left_open_is_not_closed_by_a_later_repair(tmp_path):
    killed = (*BASE, starts("ship"), PRE, hook("u1", "userPromptSubmitted"), asks("r1", "ship"))
    session = session_of(tmp_path, log(*killed, resume(), user("go on"), step("1"), names("next")))
    assert types_of(planned_lines(session)) == ["tool.execution_complete", "assistant.turn_end", "abort"]
    assert planned_lines(session)[1]["data"] == {"turnId": "1"}


def test_a_log_whose_records_have_no_usable_id_gets_lines_without_a_parent(tmp_path):
    records = [{**one, "id": "?"} for one in records_of("copilot", "approved")]
    assert planned_lines(session_of(tmp_path, records))[0]["parentId"] is None


# ---- damaged logs


def test_a_record_that_raw_newlines_broke_into_lines_refuses_the_append(tmp_path):
    """Stands for a session of 1.0.24 whose fetched page was written with its newlines as they were."""
    page = completes("done")
    page["data"]["result"]["content"] = "Contents of\n\n the page:\n}\n{}\nend"
    records = log(*HEAD, names("done", "ship"), starts("done"), page, starts("ship"))
    text = log_of(records).replace(b"\\n", b"\n")
    session = session_of(tmp_path, text)
    assert session.plan.refusal is not None
    assert (session.plan.refusal.code, session.plan.refusal.retryable) == ("split_record", False)
    assert "raw newlines break a record into lines 6 to 11" in session.plan.refusal.says
    assert session.path in session.plan.refusal.says
    assert session.plan.refusal.ids == ("done", "ship")
    assert [risk(session.plan, id) for id in ids(session.plan)] == ["unknown", "unknown"]
    with pytest.raises(Refused):
        session.apply(answers_for(session.plan))
    assert Path(session.path).read_bytes() == text


def test_a_record_that_was_printed_over_several_lines_refuses_the_append_too(tmp_path):
    records = log(*BASE, starts("ship"))
    text = log_of(records[:-1]) + json.dumps(records[-1], indent=1).encode() + b"\n"
    refusal = session_of(tmp_path, text).plan.refusal
    assert refusal is not None
    assert refusal.code == "split_record"


def test_other_damage_is_no_broken_record(tmp_path):
    records = log(*BASE, starts("ship"))
    for middle in (
        b'{"type":"tool.execution_complete","data":{"toolCa\n',
        b"\x00" * 64 + b"\n",
        b"]}\n}\n",
        b'{"type":"a.b",\n"data":{}}\n',
    ):
        text = log_of(records[:6]) + middle + log_of(records[6:])
        plan = plan_of_log(tmp_path, text)
        assert (plan.refusal, risk(plan, "ship"), "corrupt_line" in codes(plan)) == (None, "unknown", True)


def test_a_torn_tail_keeps_its_bytes_and_the_repair_begins_on_a_line_of_its_own(tmp_path):
    text = log_of(records_of("copilot", "approved"))[:-40]
    session = session_of(tmp_path, text)
    assert codes(session.plan) == ["torn_tail"]
    after = applied(session)
    assert Path(after.path).read_bytes().startswith(text + b"\n{")
    assert after.plan.repairs == ()


def test_a_torn_record_that_may_have_moved_the_call_makes_it_unknown(tmp_path):
    named = log_of(records_of("copilot", "named"))
    for cut, expected in {
        b'{"type":"tool.execution_start","data":{"toolC': 4,
        b'{"type":"permission.completed","data":{"requ': 4,
        b'{"type":"hook.end","data":{"hookInvocationId":"p1"': 4,
        b'{"type":"hook.end","data":{"hookInvocationId":"p1","hookType":"agentStop"': 2,
        b'{"type":"session.info","data":{"mess': 2,
        b'{"type":"something.new","data":{"mess': 4,
    }.items():
        assert (cut, rule(plan_of_log(tmp_path, named + cut), "ship")) == (cut, expected)


def test_a_run_of_nul_bytes_at_the_end_is_a_torn_tail(tmp_path):
    """Stands for a session whose machine lost power."""
    session = session_of(tmp_path, log_of(records_of("copilot", "named")) + b"\x00" * 512)
    assert (codes(session.plan), rule(session.plan, "ship")) == (["torn_tail"], 4)
    assert applied(session).plan.repairs == ()


def test_a_cut_prefix_that_a_whole_record_follows_is_read(tmp_path):
    """Stands for a session of 1.0.71 that was resumed and wrote on where a record had been cut."""
    records = records_of("copilot", "approved")
    whole = json.dumps(log(*BASE, starts("ship"), completes("ship"))[-1], separators=(",", ":")).encode()
    plan = plan_of_log(tmp_path, log_of(records) + whole[:70] + whole + b"\n")
    assert (ids(plan), codes(plan)) == ([], ["corrupt_line"])


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path):
    """Stands for a session whose tool answered with U+2028."""
    answered = completes("ship")
    answered["data"]["result"]["content"] = "a\u2028b\u2029c\x85d"
    plan = plan_of(tmp_path, *BASE, starts("ship"), answered, step_end())
    assert (plan.status, plan.anomalies) == ("clean", ())


def test_two_records_on_one_line_a_mark_at_the_start_and_crlf_are_read(tmp_path):
    glued = log_of(records_of("copilot", "asked")).replace(b"}\n{", b"}{", 1)
    plan = plan_of_log(tmp_path, b"\xef\xbb\xbf" + glued.replace(b"\n", b"\r\n"))
    assert (rule(plan, "ship"), codes(plan)) == ("W1", ["glued_records"])


def test_an_unreadable_line_after_the_last_word_makes_a_log_doubtful(tmp_path):
    quiet = log_of(log(*HEAD, speaks(), step_end()))
    assert plan_of_log(tmp_path, quiet + b"\x00" * 64 + b"\n").status == "doubtful"
    assert plan_of_log(tmp_path, quiet + b'{"type":"assistant.message","data":{"mess').status == "doubtful"
    assert plan_of_log(tmp_path, quiet + b'{"type":"session.info","data":{"mess').status == "clean"
    before = log_of(log(*HEAD, speaks()))
    assert plan_of_log(tmp_path, before + b"\x00\n" + log_of(log(step_end()))).status == "clean"
    ended = log_of(log(*HEAD, speaks(), step_end(), shutdown()))
    assert plan_of_log(tmp_path, ended + b"\x00\n").status == "clean"


# ---- what a log says of itself


def test_the_session_says_which_agent_wrote_it_where_and_about_what(tmp_path):
    changed = record("session.model_change", newModel="model-y", previousModel="model-z")
    opened = session_of(tmp_path, log(session(), changed, user("rotate\x1b[31m it"), user("and then", "t2")))
    assert opened.journal.decoder.facts() == {
        "agent": "Copilot CLI",
        "version": "1.0.70",
        "cwd": "/srv/certs",
        "model": "model-y",
        "started": "2026-07-01T10:00:00.000Z",
        "title": "rotate\x1b[31m it",
    }


def test_types_that_the_vendor_knows_are_no_anomaly_and_newer_ones_are(tmp_path):
    known = record("session.info", infoType="note", message="hi")
    new = record("session.teleported", to="mars")
    assert codes(plan_of(tmp_path, *HEAD, known)) == []
    assert codes(plan_of(tmp_path, *HEAD, new)) == ["unknown_type"]


def test_types_of_our_own_vocabulary_mean_nothing_here(tmp_path):
    plan = plan_of(
        tmp_path, *BASE, starts("ship"), record("turn_end"), record("tool_result", tool_call_id="ship")
    )
    assert (rule(plan, "ship"), codes(plan)) == (1, ["unknown_type", "unknown_type"])
    for internal in ("evidence", "settle"):
        assert ids(plan_of(tmp_path, *BASE, starts("ship"), record(internal, tool_call_id="ship"))) == [
            "ship"
        ]


@pytest.mark.parametrize(
    "foreign",
    [
        {"seq": 0, "type": "session.start", "time": "", "data": {}},
        {"type": "session_meta", "timestamp": "", "payload": {"id": "a"}},
        {"type": "user", "uuid": "u", "message": {"role": "user"}, "timestamp": ""},
        {"type": "turn/start", "seq": 0, "time": 1, "data": {}},
        {"type": "message", "id": "0123abcd", "parentId": None, "timestamp": "", "message": {}},
        {"id": 1, "session_id": "s", "kind": "execution.completed", "payload": {}},
        {"type": "tool_started", "id": "e", "runId": "r", "ts": 1, "data": {}},
        {"type": "function"},
        {"type": "assistant.message", "data": "text"},
    ],
)
def test_records_of_other_formats_are_not_taken_for_this_one(foreign):
    assert not copilot.recognise(foreign)


def test_every_record_of_this_format_is_known_for_what_it_is():
    for one in records_of("copilot", "everything-open"):
        assert recognise([one]) is copilot
        assert recognise([{"type": one["type"], "data": one["data"]}]) is copilot


# ---- real logs

OWED = {
    "issue-2927-nul-tail.events.jsonl": {"call_2": 1},
    "issue-3366-mid-orphan.events.jsonl": {"call_1": 1},
    "ladder-approved.events.jsonl": {"call_2": 1},
    "ladder-asked.events.jsonl": {"call_2": "W1"},
    "ladder-denied.events.jsonl": {"call_2": "W2"},
    "ladder-prehook.events.jsonl": {"call_2": 4},
    "ladder-requested.events.jsonl": {"call_1": 4, "call_2": 4},
    "torn-tail.events.jsonl": {"call_2": 1},
}
CLEAN = (
    "all-persisted-types.events.jsonl",
    "ladder-clean.events.jsonl",
    "session-medium.trimmed.events.jsonl",
)


@pytest.mark.parametrize("path", corpus("copilot", "*.jsonl"))
def test_a_real_log_is_judged_and_repaired_on_a_copy(path, tmp_path):
    session = session_of(tmp_path, path.read_bytes())
    assert {entry.tool_call_id: entry.rule for entry in session.plan.owed} == OWED.get(path.name, {})
    assert session.plan.status == ("clean" if path.name in CLEAN else "crashed")
    whole = path.with_name("session-events.schema.json")
    for line in appended_lines(session):
        assert (fails(line), fails(line, whole)) == ([], [])
    after = applied(session)
    assert (after.plan.repairs, after.plan.status) == ((), "clean")
