"""Codex CLI rollouts: which calls a killed session owes, and the lines that close it."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.formats.repairs import (
    NOW,
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
from tests.helpers import codes, ids, owed, recognise, risk, rule
from triage.log import append as appending
from triage.log.append import Refused
from triage.log.formats import codex

LEFT = "the agent answers them as aborted by itself"


def log(name: str) -> list[dict[str, Any]]:
    return records_of("codex", name)


def item(type: str, **payload: Any) -> dict[str, Any]:
    return record("response_item", type=type, **payload)


def event(type: str, **payload: Any) -> dict[str, Any]:
    return record("event_msg", type=type, **payload)


def record(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-04-02T09:01:00.000Z", "type": kind, "payload": payload}


def call(id: str, kind: str = "function_call", **payload: Any) -> dict[str, Any]:
    return item(kind, name="exec_command", arguments="{}", call_id=id, **payload)


def output(id: str, kind: str = "function_call_output") -> dict[str, Any]:
    return item(kind, call_id=id, output="ok")


def marker() -> dict[str, Any]:
    text = "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>"
    return item("message", role="user", content=[{"type": "input_text", "text": text}])


# ---- turns and what they owe


def test_a_killed_turn_owes_each_call_of_it_without_an_output_and_none_was_proven_not_to_start(tmp_path):
    """Stands for a session of 0.142 that was killed with two calls in flight."""
    session = session_of(tmp_path, log("killed"))
    plan = session.plan
    assert (plan.status, ids(plan)) == ("crashed", ["call_b", "call_c"])
    assert [(rule(plan, id), risk(plan, id)) for id in ids(plan)] == [(4, "unknown"), (4, "unknown")]
    assert [turn.line for turn in plan.open_turns] == [2]
    assert plan.boundary.name == "tool_open"
    assert owed(plan, "call_b").name == "exec_command"
    assert owed(plan, "call_b").arguments == '{"cmd": "make deploy"}'


def test_a_call_whose_sibling_is_known_to_have_run_is_still_unknown(tmp_path):
    records = [*log("killed"), event("exec_command_end", call_id="call_c", exit_code=0)]
    plan = plan_of_log(tmp_path, records)
    assert (rule(plan, "call_b"), risk(plan, "call_b")) == (4, "unknown")


def test_before_any_task_started_a_user_message_opens_a_turn_that_is_open_only_while_it_owes(tmp_path):
    """Stands for a session of 0.80, which records no turn ends."""
    records = log("killed-without-task-started")
    plan = plan_of_log(tmp_path, records)
    assert (ids(plan), [turn.line for turn in plan.open_turns]) == (["call_b"], [3])
    answered = plan_of_log(tmp_path, [*records, output("call_b")])
    assert (answered.status, answered.open_turns) == ("clean", ())


def test_the_turn_context_beside_a_user_message_opens_no_second_turn(tmp_path):
    records = log("killed-without-task-started")
    context = next(r for r in records if r["type"] == "turn_context")
    plan = plan_of_log(tmp_path, [*records, context, call("call_z")])
    assert ids(plan) == ["call_b", "call_z"]


def test_without_a_user_message_a_call_opens_the_turn(tmp_path):
    """Stands for exports that keep the items and drop the events."""
    plan = plan_of_log(tmp_path, [log("killed")[0], call("call_a"), call("call_b")])
    assert (ids(plan), [turn.line for turn in plan.open_turns]) == (["call_a", "call_b"], [2])


def test_once_a_task_started_was_seen_a_user_message_opens_no_turn(tmp_path):
    records = [*log("killed"), event("user_message", message="go on"), call("call_z")]
    plan = plan_of_log(tmp_path, records)
    assert ids(plan) == ["call_b", "call_c", "call_z"]
    assert [turn.line for turn in plan.open_turns] == [2]


def test_a_second_user_message_before_any_task_started_begins_the_next_turn(tmp_path):
    records = [*log("killed-without-task-started"), event("user_message", message="again"), call("call_z")]
    plan = plan_of_log(tmp_path, records)
    assert ids(plan) == ["call_z"]
    assert LEFT in why_left(plan, "call_b")


@pytest.mark.parametrize("start", ["task_started", "turn_started"])
def test_the_next_start_closes_a_turn_and_its_unanswered_calls_are_left(tmp_path, start):
    records = [*log("killed"), event(start, turn_id="turn-2"), call("call_z")]
    plan = plan_of_log(tmp_path, records)
    assert ids(plan) == ["call_z"]
    assert [left.tool_call_id for left in plan.left] == ["call_b", "call_c"]
    assert LEFT in why_left(plan, "call_b")
    assert "turn_end_without_start" not in codes(plan)


def test_an_unanswered_call_of_an_earlier_turn_alone_leaves_the_log_clean(tmp_path):
    """Stands for a session that was killed, resumed and finished."""
    plan = plan_of_log(tmp_path, log("left-in-an-earlier-turn"))
    assert (plan.status, plan.repairs, ids(plan)) == ("clean", (), [])
    assert LEFT in why_left(plan, "call_a")


@pytest.mark.parametrize("end", ["task_complete", "turn_complete", "turn_aborted"])
def test_an_end_of_the_same_turn_closes_it_and_one_of_another_does_not(tmp_path, end):
    closed = plan_of_log(tmp_path, [*log("killed"), event(end, turn_id="turn-1")])
    assert (closed.status, ids(closed)) == ("clean", [])
    assert LEFT in why_left(closed, "call_b")
    other = plan_of_log(tmp_path, [*log("killed"), event(end, turn_id="turn-0")])
    assert ids(other) == ["call_b", "call_c"]


def test_an_end_without_a_turn_id_closes_the_open_turn(tmp_path):
    """Stands for versions whose turn_aborted carries only a reason."""
    plan = plan_of_log(tmp_path, [*log("killed"), event("turn_aborted", reason="interrupted")])
    assert plan.status == "clean"


def test_a_turn_that_lacks_only_its_task_complete_after_a_final_answer_is_no_crash(tmp_path):
    """Stands for a session whose process was closed right after its last answer."""
    records = log("finished-without-task-complete")
    assert plan_of_log(tmp_path, records).status == "clean"
    final = next(r for r in records if r["payload"].get("phase") == "final_answer")
    final["payload"]["phase"] = "commentary"
    assert plan_of_log(tmp_path, records).status == "crashed"


def test_an_item_after_the_final_answer_opens_the_turn_again(tmp_path):
    records = log("finished-without-task-complete")
    for more in (item("reasoning", summary=[]), item("message", role="user", content=[])):
        assert plan_of_log(tmp_path, [*records, more]).status == "crashed"
    assert ids(plan_of_log(tmp_path, [*records, call("call_z")])) == ["call_z"]
    again = [*records, item("reasoning", summary=[]), *records[-2:]]
    assert plan_of_log(tmp_path, again).status == "clean"


def test_a_final_answer_does_not_finish_a_turn_that_still_owes(tmp_path):
    records = log("finished-without-task-complete")
    records = [r for r in records if r["payload"].get("type") != "function_call_output"]
    assert ids(plan_of_log(tmp_path, records)) == ["call_a"]


def test_an_unreadable_line_after_the_final_answer_makes_the_log_doubtful(tmp_path):
    data = log_of(log("finished-without-task-complete"))
    assert plan_of_log(tmp_path, data + b"\xff\x00 nothing\n").status == "doubtful"
    torn_end = b'{"timestamp":"2026-04-02T09","type":"event_msg","payload":{"type":"task_complete"'
    assert plan_of_log(tmp_path, data + torn_end).status == "clean"
    torn_call = (
        b'{"timestamp":"2026-04-02T09:01:00.000Z","type":"response_item","payload":{"type":"function_call"'
    )
    assert plan_of_log(tmp_path, data + torn_call).status == "doubtful"
    ended = log_of([*log("finished-without-task-complete"), event("task_complete", turn_id="turn-1")])
    assert plan_of_log(tmp_path, ended + b"\xff\x00 nothing\n").status == "clean"


def test_an_implicit_turn_with_an_unreadable_line_at_its_end_is_doubtful(tmp_path):
    records = [*log("killed-without-task-started"), output("call_b")]
    assert plan_of_log(tmp_path, log_of(records) + b'{"timestamp":"2026').status == "doubtful"


def test_a_final_answer_takes_no_doubt_from_a_turn_that_has_no_end_record(tmp_path):
    records = [*log("killed-without-task-started"), output("call_b")]
    answer = item("message", role="assistant", content=[], phase="final_answer")
    data = log_of(records) + b"\xff\x00 nothing\n" + log_of([answer])
    assert plan_of_log(tmp_path, data).status == "doubtful"


def test_a_step_is_one_run_of_the_models_items(tmp_path):
    session = session_of(tmp_path, log("killed"))
    assert session.plan.repairs[-1].data["steps"] == 2
    starts = [
        line
        for line in range(1, session.journal.lines + 1)
        if any(e.type == "step_start" for e in _decoded(session, line))
    ]
    assert starts == [6, 10]


def _decoded(session, last: int) -> list[Any]:
    decoder = codex.decoder()
    events: list[Any] = []
    for line in range(1, last + 1):
        events = [e for r in session.journal.records(line) for e in decoder.decode(r, line) or ()]
    return events


# ---- what names a call, and what answers it


def test_four_kinds_of_item_name_a_call_and_no_other_does(tmp_path):
    plan = plan_of_log(tmp_path, log("four-kinds"))
    assert ids(plan) == ["call_f", "call_c", "call_l", "call_s"]
    names = [entry.name for entry in plan.owed]
    assert names == ["exec_command", "apply_patch", "local_shell", "tool_search"]


def test_a_message_with_tool_calls_and_an_item_named_as_a_native_dispatch_name_nothing(tmp_path):
    records = [
        *log("killed")[:5],
        item("message", role="assistant", content=[], tool_calls=[{"id": "x", "name": "bash"}]),
        item("tool_call", tool_call_id="y", name="bash"),
        event("tool_call", tool_call_id="z", name="bash"),
    ]
    plan = plan_of_log(tmp_path, records)
    assert ids(plan) == []
    assert codes(plan) == ["unknown_type"]


def test_an_output_of_the_wrong_kind_answers_nothing_and_shows_that_the_call_ran(tmp_path):
    records = [*log("four-kinds"), output("call_c", "function_call_output"), output("call_l")]
    plan = plan_of_log(tmp_path, records)
    assert ids(plan) == ["call_f", "call_c", "call_s"]
    assert rule(plan, "call_c") == 1
    assert "wrong_output_kind" in codes(plan)


def test_a_call_without_an_id_is_an_anomaly_and_a_search_that_the_provider_ran_is_no_call(tmp_path):
    records = log("killed")[:5]
    plan = plan_of_log(tmp_path, [*records, item("function_call", name="x", arguments="{}")])
    assert codes(plan) == ["call_without_id"]
    plan = plan_of_log(tmp_path, [*records, item("tool_search_call", execution="server", call_id=None)])
    assert (codes(plan), ids(plan)) == ([], [])


@pytest.mark.parametrize("kind", ["compacted", "thread_rolled_back"])
def test_a_compaction_and_a_rollback_settle_the_calls_before_them_and_no_later_one(tmp_path, kind):
    settling = (
        record("compacted", message="", replacement_history=[call("call_b")["payload"]])
        if kind == "compacted"
        else event(kind, num_turns=1)
    )
    plan = plan_of_log(tmp_path, [*log("killed"), settling, call("call_z")])
    assert ids(plan) == ["call_z"]
    assert "settled by the" in why_left(plan, "call_b")
    assert f"line {len(log('killed')) + 1}" in why_left(plan, "call_b")


@pytest.mark.parametrize("kind", ["compacted", "thread_rolled_back"])
def test_a_call_that_is_named_again_after_it_was_settled_is_owed_anew(tmp_path, kind):
    """Stands for models that count their calls from 0 again once their history was cut."""
    settling = record(kind, message="") if kind == "compacted" else event(kind, num_turns=1)
    plan = plan_of_log(tmp_path, [*log("killed"), settling, call("call_b")])
    assert (ids(plan), [left.tool_call_id for left in plan.left]) == (["call_b"], ["call_c"])


def test_a_shell_call_without_a_call_id_is_known_by_its_items_id(tmp_path):
    """Stands for items that carry only an id of their own; no real log of these was at hand."""
    shell = item("local_shell_call", id="lsh_1", call_id=None, action={"type": "exec", "command": ["ls"]})
    session = session_of(tmp_path, [*log("killed")[:5], shell])
    assert (ids(session.plan), codes(session.plan)) == (["lsh_1"], [])
    assert planned_lines(session)[0]["payload"]["type"] == "function_call_output"
    assert ids(plan_of_log(tmp_path, [*log("killed")[:5], shell, output("lsh_1")])) == []


# ---- evidence


def test_a_completed_item_with_the_calls_id_shows_that_it_finished_and_how(tmp_path):
    """Stands for a paginated session that was killed between a command's end and its output."""
    before, after = plan_of_log(tmp_path, log("killed-paginated")), session_of(tmp_path, log("finished-item"))
    assert (rule(before, "call_a"), rule(after.plan, "call_a")) == (4, 1)
    assert risk(after.plan, "call_a") == "unknown"
    assert "finished: item_completed" in says_of(after.plan, "call_a")
    text = planned_lines(after)[0]["payload"]["output"]
    assert "exit code 0" in text
    assert "deployed 3 hosts" in text


@pytest.mark.parametrize(
    ("end", "quoted"),
    [
        (
            event("exec_command_end", call_id="call_b", exit_code=3, aggregated_output="no host"),
            "exit code 3",
        ),
        (event("exec_command_end", call_id="call_b", formatted_output="no route"), "no route"),
        (event("patch_apply_end", call_id="call_b", success=True, stdout="Success."), "Success."),
        (event("patch_apply_end", call_id="call_b", success=False), "success false"),
        (event("patch_apply_end", call_id="call_b", stdout="", stderr="no such file"), "no such file"),
        (event("mcp_tool_call_end", call_id="call_b", result={"Err": "refused"}), "refused"),
        (event("collab_agent_spawn_end", call_id="call_b", status="failed"), "status failed"),
    ],
)
def test_any_end_event_with_the_calls_id_shows_that_it_finished_and_how(tmp_path, end, quoted):
    session = session_of(tmp_path, [*log("killed"), end])
    assert (rule(session.plan, "call_b"), rule(session.plan, "call_c")) == (1, 4)
    assert quoted in planned_lines(session)[0]["payload"]["output"]


def test_an_end_event_names_no_call(tmp_path):
    records = [*log("killed"), event("exec_command_end", call_id="call_other", exit_code=0)]
    assert ids(plan_of_log(tmp_path, records)) == ["call_b", "call_c"]


def test_an_end_record_after_the_turns_end_still_tells_how_the_call_ended(tmp_path):
    """Stands for an interrupted session, in which the command's end is written last."""
    records = [
        *log("killed"),
        event("turn_aborted", turn_id="turn-1", reason="interrupted"),
        event("item_completed", item={"type": "CommandExecution", "id": "call_b", "exit_code": -1}),
    ]
    why = why_left(plan_of_log(tmp_path, records), "call_b")
    assert LEFT in why
    assert "exit code -1" in why
    assert plan_of_log(tmp_path, log("interrupted")).status == "clean"


def test_a_long_outcome_is_quoted_in_part(tmp_path):
    end = event("exec_command_end", call_id="call_b", exit_code=0, aggregated_output="x" * 5000)
    text = planned_lines(session_of(tmp_path, [*log("killed"), end]))[0]["payload"]["output"]
    assert "5,000 characters in all" in text
    assert len(text) < 3000


# ---- the lines of a repair


def test_a_legacy_repair_is_an_output_for_each_call_then_the_message_then_the_end(tmp_path):
    session = session_of(tmp_path, log("killed"))
    first, second, message, end = appended_lines(session, "ran", "it is on all hosts")
    for line, id in ((first, "call_b"), (second, "call_c")):
        assert list(line) == ["timestamp", "type", "payload"]
        assert (line["timestamp"], line["type"]) == (NOW, "response_item")
        assert list(line["payload"]) == ["type", "call_id", "output"]
        assert (line["payload"]["type"], line["payload"]["call_id"]) == ("function_call_output", id)
        assert "it is on all hosts" in line["payload"]["output"]
        assert "Added by triage" in line["payload"]["output"]
        assert "tool_outcome_unknown, rule 4" in line["payload"]["output"]
    assert list(message["payload"]) == ["type", "role", "content"]
    assert (message["type"], message["payload"]["type"]) == ("response_item", "message")
    assert message["payload"]["role"] == "user"
    (part,) = message["payload"]["content"]
    assert part["type"] == "input_text"
    lines = part["text"].split("\n")
    assert (lines[0], lines[-1]) == ("<turn_aborted>", "</turn_aborted>")
    assert end == {
        "timestamp": NOW,
        "type": "event_msg",
        "payload": {
            "type": "turn_aborted",
            "turn_id": "turn-1",
            "reason": "interrupted",
            "completed_at": 1779267600,
        },
    }


def test_in_a_plan_the_times_are_null(tmp_path):
    lines = planned_lines(session_of(tmp_path, log("killed")))
    assert [line["timestamp"] for line in lines] == [None] * 4
    assert lines[-1]["payload"]["completed_at"] is None


def test_each_call_is_answered_by_the_kind_of_output_that_its_own_kind_wants(tmp_path):
    lines = planned_lines(session_of(tmp_path, log("four-kinds")))
    kinds = [(line["payload"]["type"], line["payload"].get("call_id")) for line in lines[:4]]
    assert kinds == [
        ("function_call_output", "call_f"),
        ("custom_tool_call_output", "call_c"),
        ("function_call_output", "call_l"),
        ("tool_search_output", "call_s"),
    ]
    assert lines[3]["payload"] == {
        "type": "tool_search_output",
        "call_id": "call_s",
        "status": "completed",
        "execution": "client",
        "tools": [],
    }


def test_a_turn_that_no_start_record_opened_is_closed_by_its_outputs_alone(tmp_path):
    lines = appended_lines(session_of(tmp_path, log("killed-without-task-started")))
    assert [line["payload"]["type"] for line in lines] == ["function_call_output"]


def test_a_paginated_repair_counts_the_ordinals_on_and_a_legacy_one_has_none(tmp_path):
    records = log("killed-paginated")
    lines = appended_lines(session_of(tmp_path, records))
    assert [line["ordinal"] for line in lines] == [7, 8, 9]
    assert list(lines[0]) == ["timestamp", "ordinal", "type", "payload"]
    records[0]["payload"]["history_mode"] = "default"
    assert "ordinal" not in appended_lines(session_of(tmp_path, records))[0]


def test_the_ordinals_go_on_from_the_last_line_that_can_be_read(tmp_path):
    data = log_of(log("killed-paginated"))
    torn = b'{"timestamp":"2026-04-02T09:00:07.000Z","ordinal":7,"type":"response_item","payl'
    session = session_of(tmp_path, data + torn)
    assert [line["ordinal"] for line in appended_lines(session)] == [7, 8, 9]
    assert appended(session).startswith(b"\n{")
    assert "seq_gap" not in codes(session.plan)


def test_a_last_record_without_an_ordinal_does_not_restart_the_count(tmp_path):
    records = log("killed-paginated")
    del records[-1]["ordinal"]
    assert [line["ordinal"] for line in appended_lines(session_of(tmp_path, records))] == [6, 7, 8]


def test_records_that_decode_to_several_events_are_no_gap_and_no_duplicate_in_the_ordinals(tmp_path):
    records = log("killed-paginated")
    assert codes(plan_of_log(tmp_path, records)) == []
    del records[5]["ordinal"]
    (missing,) = plan_of_log(tmp_path, records).anomalies
    assert (missing.code, missing.says.split()[0]) == ("seq_missing", "1")


def test_no_line_of_a_type_of_its_own_is_ever_appended(tmp_path):
    for name in ("killed", "killed-paginated", "killed-without-task-started", "four-kinds", "forked"):
        types = {line["type"] for line in appended_lines(session_of(tmp_path, log(name)))}
        assert types <= {"response_item", "event_msg"}


def test_the_message_is_not_written_twice(tmp_path):
    lines = appended_lines(
        session_of(tmp_path, [*log("killed"), output("call_b"), output("call_c"), marker()])
    )
    assert [line["payload"]["type"] for line in lines] == ["turn_aborted"]


def test_a_message_that_another_record_follows_is_written_again(tmp_path):
    answered = [*log("killed"), output("call_b"), output("call_c"), marker()]
    lines = appended_lines(session_of(tmp_path, [*answered, event("token_count", info=None)]))
    assert [line["payload"]["type"] for line in lines] == ["message", "turn_aborted"]


def test_a_turn_without_an_id_ends_with_the_message(tmp_path):
    """Stands for a start record that carries no turn id: an end record could name nothing."""
    records = [r for r in log("killed") if r["type"] != "turn_context"]
    del records[1]["payload"]["turn_id"]
    session = session_of(tmp_path, records)
    assert [line["payload"]["type"] for line in appended_lines(session)][-1] == "message"
    again = applied(session)
    assert (again.plan.status, again.plan.repairs) == ("clean", ())


def test_the_turn_context_lends_its_id_to_a_turn_that_started_without_one(tmp_path):
    records = log("killed")
    del records[1]["payload"]["turn_id"]
    assert appended_lines(session_of(tmp_path, records))[-1]["payload"]["turn_id"] == "turn-1"


NAMES = [
    "killed",
    "killed-paginated",
    "killed-without-task-started",
    "four-kinds",
    "forked",
    "finished-item",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_repaired_log_has_nothing_left_to_repair(tmp_path, name):
    again = applied(session_of(tmp_path, log(name)))
    assert (again.plan.status, again.plan.repairs, again.plan.anomalies) == ("clean", (), ())


@pytest.mark.parametrize("name", ["killed-paginated", "four-kinds"])
def test_a_repair_that_was_cut_anywhere_is_completed_by_the_next_one(tmp_path, name):
    assert_converges(tmp_path, log_of(log(name)), step=1 if name == "killed-paginated" else 7)


# ---- damage


def test_a_record_glued_onto_a_torn_one_is_read(tmp_path):
    """Stands for older versions, which glue their next record onto a torn tail."""
    lines = log_of(log("killed")).split(b"\n")
    lines[9] = lines[9][:60] + lines[9]
    session = session_of(tmp_path, b"\n".join(lines))
    assert ids(session.plan) == ["call_b", "call_c"]
    assert codes(session.plan) == ["corrupt_line"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"deploy it", "deploy\u2028it".encode()),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data + b"\0" * 64,
        lambda data: data + b"\n\n",
        lambda data: data[:-1],
    ],
)
def test_a_damaged_log_is_repaired_behind_its_own_bytes(tmp_path, damage):
    session = session_of(tmp_path, damage(log_of(log("killed"))))
    assert ids(session.plan) == ["call_b", "call_c"]
    again = applied(session)
    assert (again.plan.repairs, again.plan.open_turns) == ((), ())


@pytest.mark.parametrize("odd", [None, 7, "text", [], {"type": 7}, {"type": None, "role": []}])
def test_odd_payloads_stop_nothing(tmp_path, odd):
    kinds = ["session_meta", "turn_context", "response_item", "event_msg", "compacted", "brand_new"]
    strange = [{"timestamp": 5, "ordinal": "x", "type": kind, "payload": odd} for kind in kinds]
    ends = [event("item_completed", item=odd), event("exec_command_end", call_id=odd, exit_code=odd)]
    messages = [item("message", role=odd, content=odd), item("function_call", call_id=odd, name=odd)]
    session = session_of(tmp_path, [*log("killed"), *strange, *ends, *messages])
    assert set(ids(session.plan)) <= {"call_b", "call_c", "7", "text"}
    assert appended_lines(session)


# ---- recognising and refusing


def test_the_format_is_recognised_from_any_record_and_from_no_other_formats(tmp_path):
    for records in (log("killed"), log("killed-paginated")):
        for one in records:
            assert recognise([one]) is codex
    strangers = [
        {"type": "session", "version": 0, "id": "x", "createdAt": 1},
        {"type": "user", "message": {"role": "user"}},
        {"type": "session.start", "data": {}},
        {"kind": "execution.started", "payload": {}},
        {"seq": 0, "type": "turn_start", "data": {}},
        {"type": "session_meta"},
    ]
    assert not any(codex.recognise(stranger) for stranger in strangers)


def test_a_rollout_whose_first_record_is_no_session_meta_is_planned_and_refused(tmp_path):
    whole = log_of(log("killed"))
    without_id = log("killed")
    del without_id[0]["payload"]["id"]
    broken = whole[:60] + b"\0" * 8 + whole[whole.index(b"\n") :]
    glued = whole[:60] + whole
    for data in (broken, glued, log_of(without_id), log_of(log("killed")[1:])):
        session = session_of(tmp_path, data)
        assert ids(session.plan) == ["call_b", "call_c"]
        refusal = session.plan.refusal
        assert refusal is not None
        assert refusal.code == "broken_session_meta"
        assert refusal.ids == ("call_b", "call_c")
        assert session.path in refusal.says
        assert "line" in refusal.says
        with pytest.raises(Refused):
            applied(session)
        assert Path(session.path).read_bytes() == data


def test_a_later_session_meta_is_a_forks_and_changes_nothing(tmp_path):
    session = session_of(tmp_path, log("forked"))
    assert session.plan.refusal is None
    assert dict(session.journal.decoder.facts())["cwd"] == "/srv/fork"
    assert dict(session.journal.decoder.facts())["version"] == "0.142.5"


def test_a_compressed_rollout_is_planned_and_refused(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    data = zstandard.ZstdCompressor().compress(log_of(log("killed")))
    session = session_of(tmp_path, data, "rollout.jsonl.zst")
    assert ids(session.plan) == ["call_b", "call_c"]
    assert session.plan.refusal is not None
    assert session.plan.refusal.code == "compressed"
    with pytest.raises(Refused):
        applied(session)
    assert Path(session.path).read_bytes() == data


# ---- facts, and an agent that is alive


def test_the_header_facts_are_those_of_the_session(tmp_path):
    assert session_of(tmp_path, log("killed")).journal.decoder.facts() == {
        "agent": "Codex CLI",
        "version": "0.142.5",
        "cwd": "/srv/app",
        "started": "2026-04-02T08:59:59.500Z",
        "model": "gpt-5.2-codex",
        "title": "deploy it",
    }
    assert session_of(tmp_path, log("killed-paginated")).journal.decoder.facts()["title"] == "deploy it"


def test_a_thread_name_is_the_title(tmp_path):
    records = [*log("killed"), event("thread_name_updated", thread_name="Deployment")]
    assert session_of(tmp_path, records).journal.decoder.facts()["title"] == "Deployment"


@pytest.mark.parametrize("beside", [True, False])
def test_a_session_whose_agent_holds_its_lock_is_not_appended_to(tmp_path, monkeypatch, beside):
    home = tmp_path / "home"
    folder = home / "sessions" / "2026" if beside else tmp_path
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "elsewhere" if beside else home))
    folder.mkdir(parents=True, exist_ok=True)
    (home / "thread-writer-locks").mkdir(parents=True)
    lock = home / "thread-writer-locks" / f"{log('killed')[0]['payload']['id']}.lock"
    lock.touch()
    session = session_of(folder, log("killed"))
    descriptor = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(Refused) as refused:
            applied(session)
    finally:
        os.close(descriptor)
    assert (refused.value.refusal.code, refused.value.refusal.retryable) == ("live_writer", True)
    assert applied(session).plan.status == "clean"


def test_the_agents_lock_is_held_while_the_repair_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (tmp_path / "thread-writer-locks").mkdir()
    lock = tmp_path / "thread-writer-locks" / f"{log('killed')[0]['payload']['id']}.lock"
    lock.touch()
    write, refused = appending._write, []

    def while_the_agent_tries(*args):
        descriptor = os.open(lock, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            refused.append(lock)
        finally:
            os.close(descriptor)
        write(*args)

    monkeypatch.setattr(appending, "_write", while_the_agent_tries)
    assert applied(session_of(tmp_path, log("killed"))).plan.status == "clean"
    assert refused == [lock]


def test_an_id_that_is_no_file_name_leads_to_no_lock(tmp_path):
    records = log("killed")
    records[0]["payload"]["id"] = "../../etc/passwd"
    assert session_of(tmp_path, records).journal.decoder.locks("/x/log.jsonl") == ()


# ---- real logs


# How many calls each log owes, by how its name begins; each was checked against the file.
OWED = {
    **dict.fromkeys(("kill9_one", "sigint_one_0.80", "sigterm_one", "agentv_3c", "agentsview_f"), 1),
    **dict.fromkeys(("kill9_parallel", "kill9_two", "agentv_33", "agentv_a3"), 2),
    **dict.fromkeys(("sigint_one_0.171", "agentv_0b", "agentv_8d", "agentv_a8", "agentv_b9"), 0),
}


@pytest.mark.parametrize("path", corpus("codex", "*/*.jsonl"))
def test_a_real_log_is_repaired_on_a_copy_or_clean(tmp_path, path):
    data = path.read_bytes()
    session = session_of(tmp_path, data)
    assert session.journal.format is codex
    owing = len(session.plan.owed)
    assert next((count for name, count in OWED.items() if path.name.startswith(name)), owing) == owing
    assert not any(entry.risk == "tool_not_started" for entry in session.plan.owed)
    if path.name.startswith(("kill9", "sigterm", "sigint_one_0.80")):
        assert session.plan.status == "crashed"
    if not session.plan.repairs:
        assert session.plan.status in ("clean", "doubtful")
        return
    again = applied(session)
    assert (again.plan.status, again.plan.repairs) == ("clean", ())
    for line in Path(again.path).read_bytes()[len(data) :].decode().split("\n"):
        assert not line or set(json.loads(line)) <= {"timestamp", "ordinal", "type", "payload"}
