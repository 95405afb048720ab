"""pi sessions: which calls the way to the leaf owes, and the entries that answer them."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.formats.pi_logs import (
    assistant,
    compaction,
    entry,
    id_of,
    linear,
    log,
    message,
    result,
    use,
    user,
)
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
from triage.log.formats import pi


def fixture(name: str) -> list[dict[str, Any]]:
    return records_of("pi", name)


def plan_of(tmp_path: Path, *happenings: dict[str, Any]) -> Any:
    return plan_of_log(tmp_path, log(*happenings))


# ---- what is owed


def test_a_killed_session_owes_each_unanswered_call_and_none_is_proven_not_started(tmp_path):
    """Stands for any version, killed while the second of three calls ran."""
    plan = plan_of_log(tmp_path, fixture("killed"))
    assert (plan.status, ids(plan)) == ("crashed", ["b", "c"])
    assert [(rule(plan, id), risk(plan, id)) for id in ids(plan)] == [(4, "unknown"), (4, "unknown")]
    assert (owed(plan, "b").name, owed(plan, "b").arguments) == ("bash", {"command": "make b"})
    assert says_of(plan, "b") == ["named", "this format does not record starts"]
    assert [turn.line for turn in plan.open_turns] == [3]
    assert [repair.type for repair in plan.repairs] == ["tool_result", "tool_result"]


def test_a_session_of_version_1_owes_the_same(tmp_path):
    """Stands for sessions up to 0.2x, which are linear and have no ids."""
    assert ids(plan_of_log(tmp_path, fixture("killed-version-1"))) == ["b"]


def test_a_turn_closes_with_a_message_that_names_no_call(tmp_path):
    session = session_of(tmp_path, log(user(), assistant("a"), result("a"), assistant(reason="stop")))
    plan = session.plan
    assert (plan.status, plan.open_turns, plan.boundary.name) == ("clean", (), "terminal")
    assert session.journal.mates[1] == 5  # the turn that line 2 opens closes on line 5


def test_a_message_that_stopped_for_tools_closes_no_turn_even_without_a_call(tmp_path):
    session = session_of(tmp_path, log(user(), assistant(reason="toolUse"), assistant(reason="stop")))
    assert session.journal.mates[1] == 4


def test_a_command_that_the_user_ran_opens_no_turn_and_is_no_prompt(tmp_path):
    session = session_of(tmp_path, log(message("bashExecution", "ls", command="ls"), user()))
    assert (session.journal.mates[1], session.journal.decoder.facts()["title"]) == (0, "deploy it")


@pytest.mark.parametrize("reason", ["toolUse", "stop", "length", "from the future", None])
def test_a_message_that_names_a_call_owes_it_whatever_it_says_of_its_end(tmp_path, reason):
    assert ids(plan_of(tmp_path, user(), assistant("a", reason=reason))) == ["a"]


def test_calls_of_an_aborted_or_failed_message_are_not_owed(tmp_path):
    plan = plan_of_log(tmp_path, fixture("aborted"))
    assert (plan.status, ids(plan)) == ("clean", [])
    assert "aborted" in why_left(plan, "a") and "error" in why_left(plan, "b")


def test_after_a_failed_message_the_next_one_opens_the_turn_again(tmp_path):
    plan = plan_of(tmp_path, user(), assistant("a", reason="error"), assistant("b"))
    assert ids(plan) == ["b"]


@pytest.mark.parametrize(
    "later",
    [
        user("and now?"),
        assistant(reason="stop"),
        message("bashExecution", "", command="ls"),
        message("custom", "a hook"),
        entry("custom_message", customType="x", content="steer", display=True),
        entry("branch_summary", fromId="x", summary="so far"),
    ],
)
def test_a_call_that_a_later_message_follows_is_left_as_it_is(tmp_path, later):
    plan = plan_of(tmp_path, user(), assistant("a"), later)
    assert (plan.status, ids(plan)) == ("clean", [])
    assert why_left(plan, "a").startswith("deep: later messages follow it")


@pytest.mark.parametrize(
    "beside",
    [
        entry("model_change", provider="x", modelId="y"),
        entry("thinking_level_change", thinkingLevel="high"),
        entry("label", targetId="x", label="here"),
        entry("custom", customType="x", data={}),
        entry("session_info", name="Deployment"),
    ],
)
def test_an_entry_that_is_no_message_leaves_a_call_owed(tmp_path, beside):
    plan = plan_of(tmp_path, user(), assistant("a"), beside)
    assert (ids(plan), codes(plan)) == (["a"], [])


def test_an_entry_of_a_type_that_nobody_knows_yet_is_counted(tmp_path):
    plan = plan_of(tmp_path, user(), assistant("a"), entry("from-the-future"))
    assert (ids(plan), codes(plan)) == (["a"], ["unknown_type"])


def test_an_id_that_a_later_message_uses_again_is_a_call_of_its_own(tmp_path):
    plan = plan_of(tmp_path, user(), assistant("a"), result("a"), user("and now?"), assistant("a"))
    assert ids(plan) == ["a"]


def test_a_message_that_is_logged_twice_owes_its_call_once(tmp_path):
    """Stands for version 1, in which nothing but the order tells what follows what."""
    session = session_of(tmp_path, linear(user(), assistant("a"), assistant("a")))
    assert (ids(session.plan), session.plan.left) == (["a"], ())
    assert applied(session).plan.status == "clean"


# ---- the tree


def test_a_call_on_a_branch_that_was_left_is_not_owed(tmp_path):
    """Stands for a session that was killed and then taken up again further above."""
    plan = plan_of_log(tmp_path, fixture("branch-left"))
    assert (plan.status, ids(plan)) == ("clean", [])
    assert "only the way from the leaf to the root counts" in why_left(plan, "a")


def test_a_result_on_a_branch_that_was_left_answers_nothing(tmp_path):
    label = entry("label", targetId=id_of(3), label="again", under=3)
    plan = plan_of(tmp_path, user(), assistant("a", "b"), result("a"), result("b"), label)
    assert ids(plan) == ["a", "b"]
    assert (owed(plan, "a").line, owed(plan, "a").arguments) == (3, {"command": "make a"})
    assert "its result on a branch that was left (line 4)" in says_of(plan, "a")


def test_a_fork_under_one_of_the_results_owes_the_others(tmp_path):
    label = entry("label", targetId=id_of(4), label="again", under=4)
    plan = plan_of(tmp_path, user(), assistant("a", "b"), result("a"), result("b"), label)
    assert ids(plan) == ["b"]


def test_a_message_on_another_branch_does_not_follow_a_call_of_this_one(tmp_path):
    records = log(user(), assistant("a"), user("another way", under=2), entry("label", label="x", under=3))
    assert ids(plan_of_log(tmp_path, records)) == ["a"]


def test_a_fork_goes_on_as_usual(tmp_path):
    plan = plan_of(tmp_path, user(), assistant("a"), result("a"), user("so", under=2), assistant("b"))
    assert (ids(plan), [turn.line for turn in plan.open_turns]) == (["b"], [5])


def test_a_call_that_was_deep_at_a_fork_stays_so(tmp_path):
    fork = entry("label", targetId=id_of(4), label="here", under=4)
    plan = plan_of(tmp_path, user(), assistant("a"), user("go on"), assistant(reason="stop"), fork)
    assert (plan.status, ids(plan)) == ("clean", [])


def test_an_entry_whose_parent_was_lost_goes_on_after_the_leaf(tmp_path):
    records = log(user(), assistant("a"), assistant("b"))
    records[-1]["parentId"] = "ffffffff"
    plan = plan_of_log(tmp_path, records)
    assert ids(plan) == ["b"]
    assert not why_left(plan, "a").startswith("on a branch")


# ---- repairs


def test_a_result_has_exactly_the_shape_that_the_agent_itself_writes(tmp_path):
    records = fixture("killed")
    lines = appended_lines(session_of(tmp_path, records))
    assert [list(line) for line in lines] == [["type", "id", "parentId", "timestamp", "message"]] * 2
    assert [line["message"]["toolCallId"] for line in lines] == ["b", "c"]
    parent = records[-1]["id"]
    for line in lines:
        assert re.fullmatch("[0-9a-f]{8}", line["id"])
        assert (line["type"], line["parentId"], line["timestamp"]) == ("message", parent, NOW)
        said = line["message"]
        assert list(said) == ["role", "toolCallId", "toolName", "content", "isError", "timestamp"]
        assert (said["role"], said["toolName"], said["isError"]) == ("toolResult", "bash", True)
        assert [list(block) for block in said["content"]] == [["type", "text"]]
        assert "could not be told" in said["content"][0]["text"]
        assert said["timestamp"] == 1779267600250
        parent = line["id"]


def test_the_first_result_hangs_under_the_leaf_whatever_entry_that_is(tmp_path):
    records = log(user(), assistant("a"), entry("label", targetId=id_of(2), label="here"))
    (line,) = appended_lines(session_of(tmp_path, records))
    assert line["parentId"] == id_of(4)


def test_from_version_2_on_a_result_has_ids(tmp_path):
    (line,) = appended_lines(session_of(tmp_path, log(user(), assistant("a"), version=2)))
    assert line["parentId"] == id_of(3)


def test_in_version_1_a_result_has_no_ids(tmp_path):
    (line,) = appended_lines(session_of(tmp_path, fixture("killed-version-1")))
    assert list(line) == ["type", "timestamp", "message"]


def test_a_plan_shows_the_lines_with_what_is_made_at_the_append_left_open(tmp_path):
    first, second = planned_lines(session_of(tmp_path, fixture("killed")))
    assert (first["id"], first["parentId"], second["parentId"]) == (None, id_of(5), None)
    assert (first["timestamp"], first["message"]["timestamp"]) == (None, None)


@pytest.mark.parametrize("name", ["killed", "killed-version-1"])
def test_a_repaired_session_owes_nothing(tmp_path, name):
    again = applied(session_of(tmp_path, fixture(name))).plan
    assert (again.status, again.repairs, again.anomalies) == ("clean", (), ())


@pytest.mark.parametrize("name", ["killed", "killed-version-1"])
def test_however_much_of_a_repair_landed_the_rest_is_planned(tmp_path, name):
    assert_converges(tmp_path, log_of(fixture(name)), step=5)


def test_a_repair_that_was_cut_off_is_continued_under_its_own_last_entry(tmp_path):
    data = log_of(fixture("killed"))
    first = appended(session_of(tmp_path, data)).splitlines(keepends=True)[0]
    (line,) = appended_lines(session_of(tmp_path, data + first))
    assert (line["message"]["toolCallId"], line["parentId"]) == ("c", json.loads(first)["id"])


# ---- refusals


def test_a_call_that_a_compaction_dropped_can_not_be_answered(tmp_path):
    plan = plan_of_log(tmp_path, fixture("compacted-away"))
    assert (ids(plan), plan.refusal is not None and plan.refusal.code) == (["b"], "compacted_away")
    assert plan.refusal.ids == ("b",) and "line 3 " in plan.refusal.says


@pytest.mark.parametrize(("first", "refused"), [(2, False), (3, False), (4, True), (9, True)])
def test_a_compaction_that_keeps_the_calls_message_is_no_reason_to_refuse(tmp_path, first, refused):
    kept = compaction(firstKeptEntryId=id_of(first))
    session = session_of(tmp_path, log(user(), assistant("a", "b"), result("a"), kept))
    assert (session.plan.refusal is not None) == refused


@pytest.mark.parametrize(("first", "refused"), [(1, False), (2, False), (3, True)])
def test_in_version_1_a_compaction_counts_entries(tmp_path, first, refused):
    records = linear(user(), assistant("a", "b"), result("a"), compaction(firstKeptEntryIndex=first))
    assert (session_of(tmp_path, records).plan.refusal is not None) == refused


def test_a_compaction_before_the_call_is_no_reason_to_refuse(tmp_path):
    records = log(user(), compaction(firstKeptEntryId=id_of(2)), assistant("a"))
    assert applied(session_of(tmp_path, records)).plan.status == "clean"


def test_a_call_with_null_arguments_can_not_be_answered(tmp_path):
    plan = plan_of_log(tmp_path, fixture("null-arguments"))
    assert (ids(plan), plan.refusal is not None and plan.refusal.code) == (["b"], "null_arguments")
    assert plan.refusal.ids == ("b",) and "line 3 " in plan.refusal.says


def test_null_arguments_of_an_answered_call_are_no_reason_to_refuse(tmp_path):
    records = log(user(), assistant(use("a", arguments=None), "b"), result("a"))
    assert session_of(tmp_path, records).plan.refusal is None


# ---- damage, recognition, facts


def test_a_torn_message_at_the_end_may_hide_a_call(tmp_path):
    records = log(user(), assistant("a"), result("a"), assistant("b"))
    text = log_of(records)
    plan = plan_of_log(tmp_path, text[: text.rindex(b'"toolCall"') + 10])
    assert (plan.status, ids(plan), codes(plan)) == ("doubtful", [], ["torn_tail"])


def test_a_torn_setting_at_the_end_hides_nothing(tmp_path):
    text = log_of(log(user(), assistant("a"), result("a"))) + b'{"type":"model_change","id":"0000'
    assert plan_of_log(tmp_path, text).status == "clean"


def test_behind_a_torn_tail_the_repair_starts_on_a_line_of_its_own(tmp_path):
    session = session_of(tmp_path, log_of(fixture("killed")) + b'{"type":"label","id":"00')
    assert appended(session).startswith(b"\n")
    again = applied(session).plan
    assert (again.status, again.repairs) == ("clean", ())


@pytest.mark.parametrize(
    ("record", "weight"),
    [
        ({}, (False, True, True)),
        ({"type": "message"}, (False, True, True)),
        ({"type": "message", "message": {"role": "assistant"}}, (True, True, True)),
        ({"type": "message", "message": {"role": "user"}}, (True, False, True)),
        ({"type": "message", "message": {"role": "toolResult"}}, (False, False, False)),
        ({"type": "compaction"}, (True, False, False)),
        ({"type": "from-the-future"}, (False, True, True)),
    ],
)
def test_a_cut_record_counts_for_no_more_than_what_can_be_read_of_it(record, weight):
    assert pi.weigh(record) == weight


@pytest.mark.parametrize("odd", [7, None, "x", [], {}, [None, 7, {"type": "toolCall"}]])
def test_odd_values_in_any_place_of_a_record_are_survived(tmp_path, odd):
    killed = fixture("killed")
    for record in (*killed, *fixture("compacted-away")):
        for key in record:
            if key != "type":
                plan_of_log(tmp_path, [*killed, {**record, key: odd}])
        for key in record.get("message", ()):
            changed = {**record, "message": {**record["message"], key: odd}}
            session = session_of(tmp_path, [*killed[:-1], changed])
            appended(session)


@pytest.mark.parametrize("records", [log(user()), linear(user()), log(assistant("a"))[1:]])
def test_any_one_record_is_enough_to_recognise_a_session(records):
    assert all(recognise([record]) is pi for record in records)


@pytest.mark.parametrize("folder", ["claude", "codex", "copilot", "dsh", "klbr", "maka"])
def test_no_record_of_another_format_is_taken_for_one(folder):
    for path in sorted((Path(__file__).parent.parent / "fixtures" / folder).glob("**/*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            with suppress(ValueError):
                assert not pi.recognise(json.loads(line)), (path.name, line)


def test_the_facts_are_those_of_the_header_the_models_and_the_first_prompt(tmp_path):
    facts = {
        "agent": "pi",
        "cwd": "/srv/app",
        "started": "2026-03-02T10:00:00.000Z",
        "model": "claude-sonnet-4-5",
        "title": "deploy it",
    }
    assert session_of(tmp_path, fixture("killed")).journal.decoder.facts() == facts
    named = [*fixture("killed"), *log(entry("session_info", name="Friday"))[1:]]
    assert session_of(tmp_path, named).journal.decoder.facts() == {**facts, "title": "Friday"}


# ---- real logs


@pytest.mark.parametrize("path", corpus("pi", "*.jsonl"))
def test_a_real_session_is_clean_and_owes_its_calls_where_it_is_cut_after_them(tmp_path, path):
    lines = path.read_bytes().splitlines(keepends=True)
    session = session_of(tmp_path, b"".join(lines))
    assert (session.journal.format, session.plan.status, session.plan.owed) == (pi, "clean", ())
    asked = [n for n, line in enumerate(lines, 1) if b'"stopReason":"toolUse"' in line]
    for cut in asked[:: len(asked) // 4]:
        killed = session_of(tmp_path, b"".join(lines[:cut]))
        assert killed.plan.owed
        assert applied(killed).plan.status == "clean"
