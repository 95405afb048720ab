"""Claude Code sessions: which calls a killed one owes, what its records prove, and what is left alone."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.formats.claude_logs import (
    call,
    hook,
    hook_attachment,
    interrupted,
    log,
    plain,
    progress,
    prompt,
    reply,
    result,
    says,
    system,
    use,
    user,
    uuid,
)
from tests.formats.repairs import (
    applied,
    corpus,
    log_of,
    plan_of_log,
    records_of,
    says_of,
    session_of,
    why_left,
)
from tests.helpers import codes, evidence, ids, owed, recognise, risk, rule
from triage.log.formats import claude

DEEP = "deep: later messages follow it; every version drops it from the request by itself, so resuming works"


def fixture(name: str) -> list[dict[str, Any]]:
    return records_of("claude", name)


def plan_of(tmp_path: Path, *happenings: dict[str, Any]) -> Any:
    return plan_of_log(tmp_path, log(*happenings))


# ---- what is owed


def test_a_killed_session_owes_its_last_call_and_nothing_proves_that_it_did_not_run(tmp_path):
    """Stands for any version without hooks, killed in a Bash call: it records nothing of a start."""
    plan = plan_of_log(tmp_path, fixture("killed-one"))
    assert (plan.status, ids(plan), rule(plan, "a"), risk(plan, "a")) == ("crashed", ["a"], 4, "unknown")
    assert owed(plan, "a").name == "Bash"
    assert owed(plan, "a").arguments == {"command": "./deploy.sh prod"}
    assert [turn.line for turn in plan.open_turns] == [1]
    assert (plan.boundary.name, plan.boundary.line) == ("tool_open", 3)
    assert [repair.type for repair in plan.repairs] == ["tool_result"]


def test_the_records_around_a_conversation_are_shown_and_change_nothing(tmp_path):
    """Stands for 2.1.332, which ends its log on records without a time."""
    session = session_of(tmp_path, fixture("killed-one-bookkeeping"))
    assert (ids(session.plan), rule(session.plan, "a"), codes(session.plan)) == (["a"], 4, [])
    assert session.last_time == "2026-03-02T10:00:04.000Z"


def test_a_record_of_a_type_that_nobody_knows_yet_is_counted(tmp_path):
    plan = plan_of(tmp_path, prompt(), call("a"), plain("from-the-future"))
    assert (ids(plan), codes(plan)) == (["a"], ["unknown_type"])


@pytest.mark.parametrize("reason", [None, "tool_use", "end_turn", "max_tokens"])
def test_no_stop_reason_changes_that_a_call_is_owed(tmp_path, reason):
    named = call("a")
    named["message"]["stop_reason"] = reason
    assert ids(plan_of(tmp_path, prompt(), named)) == ["a"]


def test_an_answered_call_is_not_owed_and_the_model_is_asked_next(tmp_path):
    plan = plan_of(tmp_path, prompt(), call("a"), result("a"))
    assert (plan.status, plan.open_turns, plan.left) == ("clean", (), ())
    assert (plan.boundary.name, plan.boundary.line) == ("model_attempt_open", 3)


def test_a_log_that_ends_on_a_prompt_owes_nothing_and_the_model_was_being_asked(tmp_path):
    plan = plan_of(tmp_path, prompt(), says(), prompt("and now?"), plain("last-prompt"))
    assert (plan.status, plan.boundary.name, plan.boundary.line) == ("clean", "model_attempt_open", 3)


def test_a_log_that_ends_on_the_models_words_is_at_its_end(tmp_path):
    plan = plan_of(tmp_path, prompt(), says(), system("turn_duration"))
    assert (plan.status, plan.boundary.name) == ("clean", "terminal")


@pytest.mark.parametrize(
    "later",
    [
        says("go on", "msg_2"),
        prompt("and now?"),
        user([{"type": "text", "text": "and now?"}]),
        interrupted(),
        interrupted("[Request interrupted by user for tool use]"),
        system("compact_boundary", logicalParentUuid="x"),
    ],
)
def test_a_call_that_later_messages_follow_is_left_as_it_is(tmp_path, later):
    plan = plan_of(tmp_path, prompt(), call("a"), later)
    assert (plan.status, ids(plan), why_left(plan, "a")) == ("clean", [], DEEP)


@pytest.mark.parametrize(
    "beside",
    [
        prompt("a skill", isMeta=True),
        prompt("what happened so far", isCompactSummary=True),
        prompt("<command-name>/clear</command-name>"),
        prompt("<local-command-stdout>done</local-command-stdout>"),
        prompt("<bash-input>ls</bash-input>"),
        {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and now?"}},
        system("api_error"),
        plain("queue-operation", operation="enqueue", content="and now?"),
    ],
)
def test_what_is_no_prompt_leaves_a_call_owed(tmp_path, beside):
    assert ids(plan_of(tmp_path, prompt(), call("a"), beside)) == ["a"]


def test_a_slash_command_with_a_message_is_a_prompt(tmp_path):
    text = "<command-message>review</command-message>\n<command-name>/review</command-name>"
    assert ids(plan_of(tmp_path, prompt(), call("a"), prompt(text))) == []


def test_each_call_of_the_last_reply_is_owed_whatever_lines_it_is_spread_over(tmp_path):
    """Stands for 2.1.5x, which writes results between the lines of one reply."""
    plan = plan_of(tmp_path, prompt(), call("a"), result("a"), says("so", "msg_1"), call("b"), call("c"))
    assert ids(plan) == ["b", "c"]


def test_without_message_ids_the_lines_up_to_the_next_result_are_one_reply(tmp_path):
    plan = plan_of(tmp_path, prompt(), call("a", id=None), call("b", id=None))
    assert ids(plan) == ["a", "b"]
    plan = plan_of(tmp_path, prompt(), call("a", id=None), call("b", id=None), result("b"), says("ok", None))
    assert (ids(plan), [left.tool_call_id for left in plan.left]) == ([], ["a"])


def test_a_log_that_begins_in_the_middle_opens_a_turn_with_the_reply(tmp_path):
    """Stands for a checkpoint that was cut out of a longer session."""
    plan = plan_of(tmp_path, result("z", under=0), call("a"))
    assert (ids(plan), [turn.line for turn in plan.open_turns], codes(plan)) == (["a"], [2], [])


def test_a_result_answers_its_call_wherever_it_stands(tmp_path):
    astray = result("a", isSidechain=True)
    assert ids(plan_of(tmp_path, prompt(), call("a"), astray)) == []
    assert ids(plan_of(tmp_path, prompt(), result("a"), call("a"))) == []


def test_a_reply_that_is_logged_again_after_a_prompt_owes_nothing_anew(tmp_path):
    plan = plan_of(tmp_path, prompt(), call("a"), result("a"), prompt("and now?"), call("a"))
    assert (ids(plan), plan.left) == ([], ())


def test_an_unanswered_reply_that_is_logged_again_owes_its_call(tmp_path):
    """Stands for a log that two processes wrote: the first reply's line stands behind the second's."""
    plan = plan_of(tmp_path, prompt(), call("a"), says("so", "msg_2"), call("a"))
    assert (ids(plan), plan.left) == (["a"], ())


def test_an_id_that_a_later_reply_uses_again_is_a_call_of_its_own(tmp_path):
    """Stands for models behind a gateway that count their calls from 0 in each reply."""
    plan = plan_of(tmp_path, prompt(), call("a"), result("a"), prompt("and now?"), call("a", id="msg_2"))
    assert ids(plan) == ["a"]


def test_an_unanswered_call_without_an_id_is_named(tmp_path):
    plan = plan_of(tmp_path, prompt(), reply({"type": "tool_use", "name": "Bash", "input": {}}))
    assert (plan.status, codes(plan)) == ("clean", ["call_without_id"])


# ---- lanes


def test_a_running_sidechain_owes_its_call_beside_the_task_that_started_it(tmp_path):
    """Stands for 1.0.x, which writes sub-agents into the same log."""
    plan = plan_of_log(tmp_path, fixture("sidechain-open"))
    assert (ids(plan), [turn.line for turn in plan.open_turns]) == (["x", "t"], [3, 1])


def test_a_sidechain_whose_task_is_answered_owes_nothing(tmp_path):
    plan = plan_of_log(tmp_path, fixture("sidechain-answered"))
    assert (plan.status, ids(plan)) == ("clean", [])
    assert why_left(plan, "x").startswith("deep") and "Task" in why_left(plan, "x")


def test_a_sidechain_that_an_agent_call_started_is_over_as_well(tmp_path):
    """Stands for versions in which the tool that starts a sub-agent is called Agent."""
    happenings = [
        prompt(),
        call("t", "Agent", input={"prompt": "one"}),
        started("one"),
        call("x", id="msg_s1", side=True),
    ]
    assert ids(plan_of(tmp_path, *happenings)) == ["x", "t"]
    assert ids(plan_of(tmp_path, *happenings, result("t", under=2))) == []


def test_a_compaction_in_a_sidechain_settles_that_sidechains_calls_alone(tmp_path):
    boundary = system("compact_boundary", logicalParentUuid=uuid(4), under=0, **SIDE)
    plan = plan_of(
        tmp_path, prompt(), task("t", "one"), started("one"), call("x", id="msg_s1", side=True), boundary
    )
    assert (ids(plan), why_left(plan, "x")) == (["t"], DEEP)


SIDE: dict[str, Any] = {"isSidechain": True}


def task(id: str, text: str) -> dict[str, Any]:
    return call(id, "Task", input={"prompt": text})


def started(text: str, **more: Any) -> dict[str, Any]:
    return prompt(text, under=0, **SIDE, **more)


def test_a_lane_goes_on_whatever_the_others_do(tmp_path):
    records = log(
        prompt(),
        task("t", "one"),
        started("one"),
        call("x", id="msg_s1", side=True),
        call("b"),
        result("b", under=5),
        call("y", id="msg_s1", side=True, under=4),
    )
    assert ids(plan_of_log(tmp_path, records)) == ["x", "y", "t"]


def test_sidechains_of_parallel_tasks_are_told_apart_by_their_prompts(tmp_path):
    records = log(
        prompt(),
        task("t", "one"),
        task("u", "two"),
        started("two"),
        call("y", id="msg_s2", side=True, under=4),
        started("one"),
        call("x", id="msg_s1", side=True, under=6),
        result("u", under=3),
    )
    plan = plan_of_log(tmp_path, records)
    assert (ids(plan), [left.tool_call_id for left in plan.left]) == (["x", "t"], ["y"])


def test_where_the_prompts_are_alike_a_sidechain_owes_until_each_such_task_is_answered(tmp_path):
    happenings = [
        prompt(),
        task("t", "same"),
        task("u", "same"),
        started("same"),
        call("x", id="msg_s1", side=True),
        result("u", under=3),
    ]
    assert ids(plan_of(tmp_path, *happenings)) == ["x", "t"]
    assert ids(plan_of(tmp_path, *happenings, result("t", under=2))) == []


def test_a_sidechain_whose_prompt_is_no_tasks_own_owes_until_each_task_is_answered(tmp_path):
    happenings = [
        prompt(),
        task("t", "one"),
        started("rewritten"),
        call("x", id="msg_s1", side=True),
    ]
    assert ids(plan_of(tmp_path, *happenings)) == ["x", "t"]
    assert ids(plan_of(tmp_path, *happenings, result("t", under=2))) == []


def test_the_agent_that_a_result_names_counts_for_more_than_a_prompt(tmp_path):
    happenings = [
        prompt(),
        task("t", "one"),
        task("u", "two"),
        started("one", agentId="g7"),
        call("x", id="msg_s1", side=True, agentId="g7"),
        result("u", under=3, toolUseResult={"agentId": "g7"}),
    ]
    assert ids(plan_of(tmp_path, *happenings)) == ["t"]


def test_a_sidechain_is_over_when_the_result_of_a_task_names_its_agent(tmp_path):
    happenings = [
        prompt(),
        task("t", "one"),
        task("u", "two"),
        started("rewritten", agentId="g7"),
        call("x", id="msg_s1", side=True, agentId="g7"),
    ]
    answer = result("u", under=3, toolUseResult={"agentId": "g7"})
    assert ids(plan_of(tmp_path, *happenings)) == ["x", "t", "u"]
    assert ids(plan_of(tmp_path, *happenings, answer)) == ["t"]


def test_a_sidechain_that_goes_on_after_its_task_was_answered_owes_nothing(tmp_path):
    records = [*fixture("sidechain-answered")[:5], *log(*[prompt()] * 5, call("z", side=True, under=4))[5:]]
    plan = plan_of_log(tmp_path, records)
    assert (ids(plan), [left.tool_call_id for left in plan.left]) == ([], ["x", "z"])


def test_a_log_of_a_sub_agent_alone_owes_its_own_call(tmp_path):
    """Stands for the `agent-….jsonl` files beside a session."""
    plan = plan_of(tmp_path, started("one", agentId="g7"), call("x", side=True, agentId="g7"))
    assert (ids(plan), plan.status) == (["x"], "crashed")


def test_a_line_of_a_sidechain_without_its_parent_is_found_by_its_agent(tmp_path):
    lost = call("y", side=True, agentId="g7", under=9)
    plan = plan_of(tmp_path, started("one", agentId="g7"), call("x", side=True, agentId="g7"), lost)
    assert len(plan.open_turns) == 1


# ---- evidence: each row of the table alone


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("bash-progress", 4, "after 3 s, with the output 'uploading'"),
        ("mcp-progress", 4, "mcp progress: started"),
        ("agent-progress", 4, "agent_progress"),
        ("hook-before", 4, "PreToolUse hook ran: it reached the executor"),
        ("hook-attachment-before", 4, "PreToolUse hook ran (exit code 0): it reached the executor"),
    ],
)
def test_a_record_of_a_call_at_work_says_that_it_was_dispatched(tmp_path, name, line, words):
    records = fixture(name)
    plan = plan_of_log(tmp_path, records)
    assert (rule(plan, "a"), owed(plan, "a").finished) == (1, None)
    assert owed(plan, "a").trace[0].lines[0] == line
    assert any(words in said for said in says_of(plan, "a"))
    assert rule(plan_of_log(tmp_path, records[: line - 1]), "a") == 4


@pytest.mark.parametrize("name", ["hook-after", "hook-attachment-after", "mcp-completed"])
def test_a_record_of_a_finished_call_says_that_only_its_result_was_lost(tmp_path, name):
    records = fixture(name)
    plan = plan_of_log(tmp_path, records)
    assert rule(plan, "a") == 1
    assert any("only its result was lost" in said for said in says_of(plan, "a"))
    assert "The log shows that it finished" in plan.repairs[0].data["content"]
    assert owed(plan_of_log(tmp_path, records[:-1]), "a").finished is None


@pytest.mark.parametrize(
    "ended",
    [
        hook("a", "PostToolUse"),
        hook("a", "PostToolUseFailure"),
        hook_attachment("a", "PostToolUse"),
        hook_attachment("a", "PostToolUseFailure"),
        progress("a", type="mcp_progress", status="completed"),
        progress("a", type="mcp_progress", status="failed"),
    ],
)
def test_one_record_of_an_end_is_enough_to_know_that_a_call_was_dispatched_and_finished(tmp_path, ended):
    plan = plan_of(tmp_path, prompt(), call("a"), ended)
    assert rule(plan, "a") == 1
    assert any("only its result was lost" in said for said in says_of(plan, "a"))
    assert owed(plan, "a").finished is not None


def test_a_hook_after_a_failed_call_says_that_it_failed(tmp_path):
    plan = plan_of(tmp_path, prompt(), call("a"), hook("a", "PostToolUseFailure"))
    assert any("it failed, and only its result was lost" in said for said in says_of(plan, "a"))


def test_the_calls_and_results_of_a_sub_agent_are_quoted(tmp_path):
    """Stands for a killed Task of 2.1.14 whose sub-agent had committed."""
    said = says_of(plan_of_log(tmp_path, fixture("agent-progress")), "a")
    assert 'its sub-agent called Bash {"command":"git commit -m test"}' in said
    assert "its sub-agent's Bash call returned: [main 40893d7] test" in said


def test_a_failed_call_of_a_sub_agent_is_said_to_have_failed(tmp_path):
    inner = {"message": {"content": [{"type": "tool_result", "content": "no", "is_error": True}]}}
    plan = plan_of(tmp_path, prompt(), call("a", "Task"), progress("a", type="agent_progress", message=inner))
    assert "its sub-agent's  call failed: no" in says_of(plan, "a")


@pytest.mark.parametrize("name", ["question", "plan-to-approve"])
def test_a_question_waits_for_a_person_and_nothing_but_its_result_is_planned(tmp_path, name):
    plan = plan_of_log(tmp_path, fixture(name))
    assert (rule(plan, "a"), risk(plan, "a"), plan.boundary.name) == ("W1", "not started", "awaiting_input")
    assert owed(plan, "a").needs_acknowledgement
    assert [repair.type for repair in plan.repairs] == ["tool_result"]


def test_a_hook_before_a_question_does_not_mean_that_it_was_answered(tmp_path):
    plan = plan_of_log(tmp_path, fixture("question-behind-a-hook"))
    assert rule(plan, "a") == "W1"
    assert any("before the question is shown" in said for said in says_of(plan, "a"))


def test_a_hook_after_a_question_means_that_it_was_answered(tmp_path):
    plan = plan_of_log(tmp_path, [*fixture("question"), *log(*[prompt()] * 3, hook("a", "PostToolUse"))[3:]])
    assert rule(plan, "a") == 1


@pytest.mark.parametrize(
    "beside", [hook("a", "PermissionRequest"), hook("b", "PreToolUse"), hook("z", "Stop")]
)
def test_other_hooks_prove_no_dispatch(tmp_path, beside):
    assert rule(plan_of(tmp_path, prompt(), call("a"), call("b"), beside), "a") == 4


def test_an_attachment_that_is_no_hook_says_nothing_of_the_call_that_it_names(tmp_path):
    beside = {"type": "attachment", "attachment": {"type": "edited_text_file", "toolUseID": "a"}}
    plan = plan_of(tmp_path, prompt(), call("a", "Write"), beside)
    assert (rule(plan, "a"), says_of(plan, "a")) == (4, ["named"])


def test_a_call_of_a_sub_agent_alone_shows_that_its_task_was_dispatched(tmp_path):
    inner = {"message": {"content": [use("s", "Read")]}}
    plan = plan_of(tmp_path, prompt(), call("a", "Task"), progress("a", type="agent_progress", message=inner))
    assert rule(plan, "a") == 1


def test_of_a_running_commands_output_the_whole_is_preferred_to_its_end(tmp_path):
    tick = progress("a", type="bash_progress", fullOutput="one two", output="two", elapsedTimeSeconds=2)
    said = says_of(plan_of(tmp_path, prompt(), call("a"), tick), "a")
    assert any("after 2 s, with the output 'one two'" in line for line in said)


def test_that_a_sibling_was_dispatched_never_proves_that_a_call_was_not(tmp_path):
    plan = plan_of(tmp_path, prompt(), call("a"), call("b"), hook_attachment("a", "PreToolUse"))
    assert [(rule(plan, id), risk(plan, id)) for id in ("a", "b")] == [(1, "unknown"), (4, "unknown")]


def test_a_killed_shell_command_may_live_on(tmp_path):
    plan = plan_of(tmp_path, prompt(), call("a"), call("b", "Write"))
    assert any("lives on" in said for said in says_of(plan, "a"))
    assert says_of(plan, "b") == ["named"]


def test_of_many_progress_records_the_first_and_the_latest_are_shown(tmp_path):
    ticks = [progress("a", type="bash_progress", output=f"step {n}", elapsedTimeSeconds=n) for n in range(90)]
    plan = plan_of(tmp_path, prompt(), call("a"), *ticks)
    said = says_of(plan, "a")
    assert sum("bash progress" in line for line in said) == 1
    assert any("after 89 s, with the output 'step 89'" in line for line in said)
    assert 3 in evidence(plan, "a")


def test_of_many_calls_of_a_sub_agent_the_first_and_the_last_are_quoted(tmp_path):
    happenings = [
        progress("a", type="agent_progress", message={"message": {"content": [use(f"s{n}", "Read", n=n)]}})
        for n in range(200)
    ]
    said = says_of(plan_of(tmp_path, prompt(), call("a", "Task"), *happenings), "a")
    assert 'its sub-agent called Read {"n":0}' in said
    assert 'its sub-agent called Read {"n":199}' in said


# ---- how the agent closes calls by itself


@pytest.mark.parametrize("name", ["rejected-by-text", "rejected-by-kind"])
def test_a_rejected_call_of_the_last_turn_may_have_run(tmp_path, name):
    records = fixture(name)
    plan = plan_of_log(tmp_path, records)
    assert (plan.status, codes(plan), plan.anomalies[0].line) == ("clean", ["closed_as_rejected"], 4)
    assert "closed as rejected; may have run" in plan.anomalies[0].says
    later = log(*[prompt()] * len(records), prompt("and now?"))[len(records) :]
    assert codes(plan_of_log(tmp_path, [*records, *later])) == []


def test_a_call_that_the_agent_closed_on_resuming_was_never_checked(tmp_path):
    """Stands for 2.1.33x, which answers an owed call itself; it stays unchecked whatever follows."""
    plan = plan_of_log(tmp_path, fixture("closed-generically"))
    assert (plan.status, codes(plan)) == ("clean", ["closed_generically"])
    assert "closed generically, outcome never checked" in plan.anomalies[0].says


@pytest.mark.parametrize(
    "closed",
    [
        result("a", "ok", toolDenialKind="interrupted"),
        result("a", "[Tool call interrupted: its outcome is unknown.]", error=True),
        result("a", "[Tool call result not in this copy: see the other one.]", error=True),
        result("a", "Lost: the session ended before this call's result was written.", error=True),
    ],
)
def test_the_kind_and_the_words_of_a_generic_result_are_each_enough(tmp_path, closed):
    assert codes(plan_of(tmp_path, prompt(), call("a"), closed)) == ["closed_generically"]


@pytest.mark.parametrize("text", ["Exit code 1", "ls: cannot access", "[Request denied]"])
def test_an_error_of_the_tool_itself_is_no_rejection(tmp_path, text):
    assert codes(plan_of(tmp_path, prompt(), call("a"), result("a", text, error=True))) == []


def test_an_output_that_merely_quotes_a_rejection_is_none(tmp_path):
    assert codes(plan_of(tmp_path, prompt(), call("a"), result("a", "[Request interrupted by user]"))) == []


# ---- damage


def torn(record: dict[str, Any], end: str) -> bytes:
    """The line of a record up to and with `end`."""
    line = log_of([record])
    return line[: line.index(end.encode()) + len(end)]


def test_a_torn_call_at_the_end_may_hide_what_nothing_else_shows(tmp_path):
    records = log(prompt(), call("a"), result("a"), call("b", id="msg_2"))
    plan = plan_of_log(tmp_path, log_of(records[:3]) + torn(records[3], '"tool_use"'))
    assert (plan.status, codes(plan)) == ("doubtful", ["torn_tail"])


def test_a_torn_progress_record_at_the_end_hides_no_call(tmp_path):
    records = log(prompt(), call("a"), result("a"), {**hook("a", "PostToolUse")})
    plan = plan_of_log(tmp_path, log_of(records[:3]) + torn(records[3], '"progress","data"'))
    assert plan.status == "clean"


def test_a_torn_result_keeps_its_call_owed_and_a_question_is_unknown_then(tmp_path):
    records = [*fixture("question"), *log(*[prompt()] * 3, result("a"))[3:]]
    plan = plan_of_log(tmp_path, log_of(records[:3]) + torn(records[3], '"tool_result"'))
    assert (ids(plan), rule(plan, "a"), risk(plan, "a")) == (["a"], 4, "unknown")


@pytest.mark.parametrize(
    ("record", "weight"),
    [
        ({}, (False, True, True)),
        ({"parentUuid": "x", "isSidechain": False}, (False, True, True)),
        ({"message": {"model": "m", "content": [{"type": "text"}]}}, (True, True, True)),
        (
            {"message": {"model": "m", "content": [{"type": "text"}], "stop_reason": None}},
            (True, False, True),
        ),
        ({"type": "assistant"}, (True, True, True)),
        ({"type": "user", "message": {"role": "user", "content": "hello"}}, (True, False, True)),
        ({"type": "user", "message": {"role": "user", "content": []}}, (False, False, True)),
        ({"type": "progress"}, (False, False, False)),
        ({"type": "attachment"}, (False, False, False)),
        ({"type": "last-prompt"}, (True, False, False)),
        ({"type": "from-the-future"}, (False, True, True)),
    ],
)
def test_a_cut_record_counts_for_no_more_than_what_can_be_read_of_it(record, weight):
    assert claude.weigh(record) == weight


def test_glued_records_a_bom_and_foreign_line_ends_are_read(tmp_path):
    lines = log_of(fixture("two-first-answered")).split(b"\n")
    glued = b"\xef\xbb\xbf" + lines[0] + b"\r\n" + lines[1] + lines[2] + b"\n\n" + lines[3] + b"\n"
    assert ids(plan_of_log(tmp_path, glued)) == ["b"]
    separator = log(prompt("one\u2028two"), call("a", input={"command": "\u2028"}))
    assert ids(plan_of_log(tmp_path, separator)) == ["a"]


def test_a_whole_record_behind_a_cut_one_is_read(tmp_path):
    records = log(prompt(), call("a"), result("a"), call("b", id="msg_2"))
    text = log_of(records[:2]) + torn(records[2], '"tool_result"') + log_of(records[3:])
    assert ids(plan_of_log(tmp_path, text)) == ["b"]


@pytest.mark.parametrize("odd", [7, None, "x", [], {}, [None, 7, {"type": "tool_use"}, {"type": 5}]])
def test_odd_values_in_any_place_of_a_record_are_survived(tmp_path, odd):
    for record in (
        *fixture("agent-progress"),
        *fixture("two-first-answered"),
        *fixture("hook-attachment-after"),
    ):
        for key in record:
            if key != "type":
                plan_of_log(tmp_path, [*fixture("killed-one"), {**record, key: odd}])
        if "message" in record:
            plan_of_log(tmp_path, [{**record, "message": {**record["message"], "content": odd, "id": odd}}])
        if "data" in record:
            plan_of_log(
                tmp_path, [*fixture("killed-one"), {**record, "data": {**record["data"], "message": odd}}]
            )


# ---- recognition and facts


@pytest.mark.parametrize(
    "record",
    [
        plain("summary", summary="Deploying", leafUuid="x"),
        plain("file-history-snapshot", messageId="x", snapshot={}),
        plain("queue-operation", operation="dequeue"),
        {"type": "user", "message": {"content": "hello"}, "cwd": "/srv/app"},
        {"parentUuid": None, "isSidechain": True, "type": "system", "subtype": "local_command"},
    ],
)
def test_any_one_record_is_enough_to_recognise_a_log(record):
    assert recognise([record]) is claude


@pytest.mark.parametrize("folder", ["codex", "copilot", "dsh", "klbr", "maka", "pi"])
def test_no_record_of_another_format_is_taken_for_one(folder):
    for path in sorted((Path(__file__).parent.parent / "fixtures" / folder).glob("**/*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            with suppress(ValueError):
                assert not claude.recognise(json.loads(line)), (path.name, line)


def test_the_facts_are_the_latest_that_the_log_says(tmp_path):
    records = log(prompt("deploy\nit"), {**says(), "version": "2.1.61"}, call("a"))
    assert session_of(tmp_path, records).journal.decoder.facts() == {
        "agent": "Claude Code",
        "version": "2.1.60",
        "cwd": "/srv/app",
        "model": "claude-opus-4-6",
        "started": "2026-03-02T10:00:01.000Z",
        "title": "deploy\nit",
    }


def test_a_given_title_wins_over_the_agents_and_that_over_the_first_prompt(tmp_path):
    made, given = plain("ai-title", aiTitle="Deployment"), plain("custom-title", customTitle="Friday")
    for more, title in (((made,), "Deployment"), ((given, made), "Friday")):
        session = session_of(tmp_path, log(prompt(), *more))
        assert session.journal.decoder.facts()["title"] == title


# ---- real logs


# The rules of the owed calls of each log, by how its name begins; each was checked against the file.
OWED: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("kill9_one", "kill9_two"), (4,)),
    "kill9_three": (4, 4),
    **dict.fromkeys(("sigint_one_2.0.76", "sigint_one_2.1.42"), (4,)),
    **dict.fromkeys(("sigterm_one_2.1.42", "sigterm_one_2.1.235"), (4,)),
    **dict.fromkeys(("sigint_one_2.1.332", "sigterm_one_2.1.332"), ()),
    "entire_10": (1,),
    **dict.fromkeys(("entire_38", "entire_60", "agentsview_tool_call_pending", "happy_task_sdk"), (4,)),
    "packmind_5ed6fd": (4, 4),
    "packmind_20b41b": ("W1",),
    **dict.fromkeys(("entire_11", "entire_7e", "nomos", "ccviewer", "sniffly", "happy_task_non_sdk"), ()),
}


@pytest.mark.parametrize("path", corpus("claude", "*/*.jsonl"))
def test_a_real_log_is_repaired_on_a_copy_or_clean(tmp_path, path):
    session = session_of(tmp_path, path.read_bytes())
    plan = session.plan
    assert session.journal.format is claude
    rules = tuple(entry.rule for entry in plan.owed)
    assert next((owed for name, owed in OWED.items() if path.name.startswith(name)), rules) == rules
    assert not any(entry.risk == "tool_not_started" and entry.rule != "W1" for entry in plan.owed)
    if path.name.startswith(("kill9", "sigterm_one_2.1.42", "sigterm_one_2.1.235")):
        assert plan.status == "crashed"
    if plan.refusal is not None:
        assert plan.refusal.code == "call_without_uuid"
    elif plan.repairs:
        again = applied(session).plan
        assert (again.status, again.repairs) == ("clean", ())
    else:
        assert plan.status in ("clean", "doubtful")
