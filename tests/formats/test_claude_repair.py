"""The chain of results that a repair appends to a Claude Code log, line by line and field by field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.formats.claude_logs import (
    ENVELOPE,
    block,
    call,
    log,
    plain,
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
    NOW,
    appended,
    appended_lines,
    applied,
    assert_converges,
    log_of,
    plan_of_log,
    planned_lines,
    records_of,
    session_of,
)
from tests.helpers import ids

KEYS = [
    *("parentUuid", "isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "type", "message"),
    *("uuid", "timestamp", "toolUseResult", "sourceToolAssistantUUID"),
]
MADE_AT_THE_APPEND = ("parentUuid", "uuid", "timestamp")


def fixture(name: str) -> list[dict[str, Any]]:
    return records_of("claude", name)


def lines_of(tmp_path: Path, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return appended_lines(session_of(tmp_path, records))


def calls_of(lines: list[dict[str, Any]]) -> list[str]:
    """The calls that the lines answer, in order."""
    return [block["tool_use_id"] for line in lines for block in line["message"]["content"]]


def chain_of(records: list[dict[str, Any]]) -> list[str]:
    """The calls whose results the agent finds on the way up from the last line to the last call, reversed."""
    by_uuid = {record["uuid"]: record for record in records if "uuid" in record}
    found: list[str] = []
    at = records[-1]
    while at is not None and at["type"] == "user" and isinstance(at["message"]["content"], list):
        found += calls_of([at])
        at = by_uuid.get(at["parentUuid"])
    return found[::-1]


def assert_chained(lines: list[dict[str, Any]], under: str) -> None:
    """Each line hangs under the one before it, the first under `under`."""
    for line in lines:
        assert line["parentUuid"] == under
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", line["uuid"])
        under = line["uuid"]


# ---- one line


def test_a_result_has_exactly_the_shape_that_the_agent_itself_writes(tmp_path):
    (line,) = lines_of(tmp_path, fixture("killed-one"))
    assert list(line) == KEYS
    content = line["toolUseResult"]
    assert line["message"] == {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": True}],
    }
    assert list(line["message"]["content"][0]) == ["type", "tool_use_id", "content", "is_error"]
    assert {key: line[key] for key in ENVELOPE} == ENVELOPE
    assert (line["isSidechain"], line["type"], line["timestamp"]) == (False, "user", NOW)
    assert line["sourceToolAssistantUUID"] == uuid(3)
    assert_chained([line], uuid(3))
    assert "could not be told" in content


def test_a_plan_shows_the_line_with_what_is_made_at_the_append_left_open(tmp_path):
    session = session_of(tmp_path, fixture("killed-one"))
    (planned,), (line,) = planned_lines(session), appended_lines(session)
    assert (planned["parentUuid"], planned["uuid"], planned["timestamp"]) == (uuid(3), None, None)
    assert list(planned) == KEYS
    assert {key: planned[key] for key in KEYS[:7]} == {key: line[key] for key in KEYS[:7]}


def test_in_a_plan_only_the_first_line_knows_what_it_hangs_under(tmp_path):
    planned = planned_lines(session_of(tmp_path, fixture("three-second-answered")))
    assert [line["parentUuid"] for line in planned] == [uuid(4), None, None]


def test_what_the_calls_line_does_not_say_is_left_out(tmp_path):
    """Stands for 1.0.5x, whose records have no branch."""
    records = [{key: r[key] for key in r if key != "gitBranch"} for r in fixture("killed-one")]
    (line,) = lines_of(tmp_path, records)
    assert list(line) == [key for key in KEYS if key != "gitBranch"]


def test_the_envelope_is_that_of_the_calls_line(tmp_path):
    records = log(
        prompt(), {**call("a"), "cwd": "/srv/other", "version": "2.1.70"}, says("x", isSidechain=True)
    )
    (line,) = lines_of(tmp_path, records)
    assert (line["cwd"], line["version"]) == ("/srv/other", "2.1.70")


def test_a_denied_question_is_a_result_like_the_others(tmp_path):
    (line,) = lines_of(tmp_path, fixture("question"))
    assert (list(line), calls_of([line])) == (KEYS, ["a"])


def test_a_repair_in_a_sidechain_stays_in_it(tmp_path):
    lines = lines_of(tmp_path, fixture("sidechain-open"))
    assert [(calls_of([line]), line["isSidechain"]) for line in lines] == [(["x"], True), (["t"], False)]
    assert [line["parentUuid"] for line in lines] == [uuid(5), uuid(2)]


# ---- the chain


def test_a_recorded_result_is_copied_into_the_chain_before_ours(tmp_path):
    """Stands for 2.1.x, killed while the second of two calls ran: the first result hangs elsewhere."""
    records = fixture("two-first-answered")
    copy, ours = lines_of(tmp_path, records)
    assert list(copy) == list(records[3])
    kept = [key for key in copy if key not in MADE_AT_THE_APPEND]
    assert {key: copy[key] for key in kept} == {key: records[3][key] for key in kept}
    assert copy["uuid"] != records[3]["uuid"]
    assert calls_of([copy, ours]) == ["a", "b"]
    assert_chained([copy, ours], uuid(3))


def test_a_result_under_the_last_call_is_copied_all_the_same(tmp_path):
    """Stands for 1.0.108 and 2.0.76, which hang each record under the one before it."""
    lines = lines_of(tmp_path, fixture("linear-first-answered"))
    assert calls_of(lines) == ["a", "b"]
    assert_chained(lines, uuid(3))


def test_the_chain_is_in_the_order_of_the_calls_whichever_was_answered(tmp_path):
    """Stands for calls that run side by side: the second was done before the first."""
    lines = lines_of(tmp_path, fixture("three-second-answered"))
    assert calls_of(lines) == ["a", "b", "c"]
    assert [line["message"]["content"][0]["is_error"] for line in lines] == [True, False, True]
    assert [line["sourceToolAssistantUUID"] for line in lines] == [uuid(2), uuid(3), uuid(4)]
    assert_chained(lines, uuid(4))


def test_a_result_above_the_last_call_is_not_copied(tmp_path):
    """Stands for 2.1.3x to 2.1.5x, which run calls while the reply still comes in."""
    lines = lines_of(tmp_path, fixture("interleaved"))
    assert calls_of(lines) == ["b", "c"]  # a's result is an ancestor of c's line, b's hangs beside it
    assert_chained(lines, uuid(6))


def test_the_way_up_leads_through_records_of_other_kinds(tmp_path):
    records = log(
        prompt(), call("a"), result("a"), system("stop_hook_summary"), says("so", "msg_1"), call("b")
    )
    assert calls_of(lines_of(tmp_path, records)) == ["b"]


def test_the_chain_starts_at_the_last_call_line_even_when_only_an_earlier_call_is_owed(tmp_path):
    records = log(prompt(), call("a"), call("b"), result("b", under=3), says("so", "msg_1", under=3))
    lines = lines_of(tmp_path, records)
    assert calls_of(lines) == ["a", "b"]
    assert_chained(lines, uuid(3))


def test_of_a_line_that_holds_several_results_each_copy_holds_one(tmp_path):
    records = log(
        prompt(),
        call("a"),
        call("b"),
        call("c"),
        user([block("a", "one"), {"type": "text", "text": "and"}, block("b", "two")], under=3),
    )
    lines = lines_of(tmp_path, records)
    assert calls_of(lines) == ["a", "b", "c"]
    assert [line["message"]["content"][0]["content"] for line in lines[:2]] == ["one", "two"]


def test_a_result_that_went_astray_into_another_lane_is_copied_as_well(tmp_path):
    records = log(prompt(), call("a"), call("b"), result("a", isSidechain=True))
    assert calls_of(lines_of(tmp_path, records)) == ["a", "b"]


def test_several_calls_on_one_line_are_chained_under_it(tmp_path):
    lines = lines_of(tmp_path, log(prompt(), reply(use("a"), use("b", "Write"))))
    assert calls_of(lines) == ["a", "b"]
    assert {line["sourceToolAssistantUUID"] for line in lines} == {uuid(2)}
    assert_chained(lines, uuid(2))


def test_the_result_of_an_earlier_reply_is_no_part_of_the_chain(tmp_path):
    records = log(prompt(), call("a"), result("a"), call("b", id="msg_2"))
    assert calls_of(lines_of(tmp_path, records)) == ["b"]


@pytest.mark.parametrize(
    "ahead",
    [
        plain("queue-operation", timestamp="2031-01-01T00:00:00.000Z"),
        {
            "type": "user",
            "message": {"content": "x"},
            "isMeta": True,
            "timestamp": "2031-01-01T00:00:00.000Z",
        },
        plain("file-history-snapshot", snapshot={"timestamp": "2030-12-31T23:00:00.0009-01:00"}),
    ],
)
def test_the_times_of_a_repair_are_later_than_every_time_in_the_log(tmp_path, ahead):
    """Stands for a log that was written on a machine whose clock is ahead of ours."""
    lines = lines_of(tmp_path, [*fixture("three-second-answered"), ahead])
    times = [line["timestamp"] for line in lines]
    assert times == [f"2031-01-01T00:00:00.00{n}Z" for n in (1, 2, 3)]


def test_a_time_at_the_end_of_all_times_is_survived(tmp_path):
    late = plain("queue-operation", timestamp="9999-12-31T23:59:59.999Z")
    assert len(lines_of(tmp_path, [*fixture("killed-one"), late])) == 1


# ---- again


@pytest.mark.parametrize(
    "name",
    [
        *(
            "killed-one",
            "two-first-answered",
            "linear-first-answered",
            "three-second-answered",
            "interleaved",
        ),
        *("sidechain-open", "question", "agent-progress"),
    ],
)
def test_a_repaired_log_owes_nothing_and_its_chain_holds_every_result(tmp_path, name):
    records = fixture(name)
    again = applied(session_of(tmp_path, records))
    assert (again.plan.status, again.plan.repairs, again.plan.left) == ("clean", (), ())
    assert not again.plan.anomalies
    whole = [json.loads(line) for line in Path(again.path).read_text().splitlines()]
    assert chain_of(whole)[-1] in calls_of(whole[len(records) :])


@pytest.mark.parametrize(
    "name", ["two-first-answered", "linear-first-answered", "three-second-answered", "sidechain-open"]
)
def test_however_much_of_a_repair_landed_the_rest_is_planned(tmp_path, name):
    assert_converges(tmp_path, log_of(fixture(name)), step=13)


@pytest.mark.parametrize("name", ["two-first-answered", "linear-first-answered", "three-second-answered"])
def test_a_chain_that_was_cut_off_is_continued_and_not_begun_again(tmp_path, name):
    data = log_of(fixture(name))
    repair = appended(session_of(tmp_path, data)).splitlines(keepends=True)
    for landed in range(1, len(repair)):
        text = data + b"".join(repair[:landed])
        rest = appended_lines(session_of(tmp_path, text))
        assert len(rest) == len(repair) - landed
        assert rest[0]["parentUuid"] == json.loads(repair[landed - 1])["uuid"]
        records = [json.loads(line) for line in text.splitlines()] + rest
        assert chain_of(records) == calls_of([json.loads(line) for line in repair])


def test_a_copy_that_a_cut_off_repair_still_lacks_is_appended_without_asking_again(tmp_path):
    records = log(prompt(), call("a"), call("b"), result("b", under=3))
    data = log_of(records)
    first = appended(session_of(tmp_path, data)).splitlines(keepends=True)[0]
    session = session_of(tmp_path, data + first)
    assert (session.plan.status, session.plan.owed) == ("crashed", ())
    assert [repair.data["tool_call_id"] for repair in session.plan.repairs] == ["b"]
    again = applied(session)
    assert (again.plan.status, again.plan.repairs) == ("clean", ())


@pytest.mark.parametrize("goes_on", [prompt("and now?"), says("Fine.", "msg_2")])
def test_a_chain_that_was_cut_off_is_forgotten_once_the_session_went_on(tmp_path, goes_on):
    data = log_of(log(prompt(), call("a"), call("b"), result("b", under=3)))
    first = appended(session_of(tmp_path, data)).splitlines(keepends=True)[0]
    later = log_of(log(*[prompt()] * 4, goes_on)[4:])
    plan = plan_of_log(tmp_path, data + first + later)
    assert (plan.status, plan.repairs) == ("clean", ())


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (
            "The user doesn't want to take this action right now.",
            "The user doesn't want to take this action right now.",
        ),
        ("Exit code 1", "Error: Exit code 1"),
    ],
)
def test_the_agents_own_error_under_the_last_call_is_not_taken_for_the_start_of_a_chain(
    tmp_path, text, outcome
):
    own = result("a", text, error=True, under=3, toolUseResult=outcome, sourceToolAssistantUUID=uuid(2))
    lines = lines_of(tmp_path, log(prompt(), call("a"), call("b"), own))
    assert calls_of(lines) == ["a", "b"]
    assert_chained(lines, uuid(3))


def test_a_result_out_of_the_order_of_the_calls_is_not_taken_for_the_start_of_a_chain(tmp_path):
    other = result("b", "lost", error=True, under=3, toolUseResult="lost", sourceToolAssistantUUID=uuid(3))
    lines = lines_of(tmp_path, log(prompt(), call("a"), call("b"), other))
    assert calls_of(lines) == ["a", "b"]
    assert_chained(lines, uuid(3))


def test_behind_a_torn_tail_the_repair_starts_on_a_line_of_its_own(tmp_path):
    data = log_of(fixture("two-first-answered"))
    user_line = b'{"parentUuid":"x","isSidechain":false,"type":"user","mess'
    for cut, status in (
        (user_line, "clean"),
        (b'{"parentUuid":"x","isSide', "doubtful"),
        (b"\0" * 40, "doubtful"),
    ):
        session = session_of(tmp_path, data + cut)
        assert (session.plan.status, ids(session.plan)) == ("crashed", ["b"])
        assert appended(session).startswith(b"\n")
        again = applied(session)
        assert (again.plan.status, again.plan.repairs) == (status, ())  # the others may hide one more call


# ---- refusals


def test_a_call_on_a_line_without_a_uuid_can_not_be_answered(tmp_path):
    """Stands for exports that keep the messages and drop the envelope."""
    plan = plan_of_log(tmp_path, fixture("no-uuid"))
    assert (plan.status, ids(plan)) == ("crashed", ["a"])
    assert plan.refusal is not None
    assert (plan.refusal.code, plan.refusal.ids, plan.refusal.retryable) == (
        "call_without_uuid",
        ("a",),
        False,
    )
    assert "line 2 " in plan.refusal.says


def test_a_uuid_that_any_other_line_lacks_is_no_reason_to_refuse(tmp_path):
    records = fixture("two-first-answered")
    del records[0]["uuid"], records[3]["uuid"]
    session = session_of(tmp_path, records)
    assert session.plan.refusal is None
    assert applied(session).plan.status == "clean"


def test_each_owed_call_has_to_stand_on_a_line_with_a_uuid(tmp_path):
    records = fixture("three-second-answered")
    del records[1]["uuid"]
    plan = plan_of_log(tmp_path, records)
    assert plan.refusal is not None
    assert (plan.refusal.code, plan.refusal.ids) == ("call_without_uuid", ("a", "c"))


def test_the_last_call_line_has_to_have_a_uuid_even_when_its_call_is_answered(tmp_path):
    records = fixture("three-second-answered")
    del records[3]["uuid"]
    plan = plan_of_log(tmp_path, [*records, *log(*[prompt()] * 5, result("c", under=2))[5:]])
    assert (ids(plan), plan.refusal is not None and plan.refusal.code) == (["a"], "call_without_uuid")
