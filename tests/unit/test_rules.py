"""The rule table, row by row: each with the nearest log on which it does not hold."""

import json

import pytest

from tests.helpers import (
    allows,
    asks,
    asks_input,
    codes,
    denies,
    dispatch,
    event,
    evidence,
    gives_input,
    ids,
    kinds,
    log,
    names,
    owed,
    plan_of,
    plan_of_text,
    request_header,
    result,
    risk,
    row,
    rule,
    speaks,
    step_end,
    step_start,
    turn_end,
    turn_start,
    user,
    with_repair,
)
from triage.log.events import Event
from triage.recovery.plan import Plan, make_plan
from triage.recovery.rules import Records
from triage.recovery.scan import Scan

# ---- rule 1: a dispatch for this id, and no result


def test_rule_1_a_dispatched_call_without_a_result_is_unknown() -> None:
    plan = plan_of(turn_start(), names("a"), dispatch("a"))
    assert (rule(plan, "a"), risk(plan, "a")) == (1, "unknown")


def test_rule_1_does_not_hold_once_the_result_is_there() -> None:
    assert ids(plan_of(turn_start(), names("a"), dispatch("a"), result("a"))) == []


def test_rule_1_does_not_hold_without_the_dispatch() -> None:
    assert rule(plan_of(turn_start(), names("a")), "a") != 1


def test_rule_1_does_not_hold_for_a_dispatch_of_another_id() -> None:
    assert rule(plan_of(turn_start(), names("a"), dispatch("b")), "a") != 1


@pytest.mark.parametrize("more", [[step_end()], [dispatch("b"), result("b")], [denies("r")]])
def test_rule_1_wins_over_every_other_rule(more: list[dict[str, object]]) -> None:
    plan = plan_of(turn_start(), step_start(), names("a", "b"), asks("r", "a"), dispatch("a"), *more)
    assert rule(plan, "a") == 1


# ---- rule 2: no dispatch for this id, but this turn recorded one for another id


def test_rule_2_a_call_whose_sibling_alone_was_dispatched_did_not_start() -> None:
    plan = plan_of(turn_start(), names("a", "b"), dispatch("b"))
    assert (rule(plan, "a"), risk(plan, "a")) == (2, "not started")
    assert rule(plan, "b") == 1


def test_rule_2_holds_whether_or_not_the_other_call_was_answered() -> None:
    assert rule(plan_of(turn_start(), names("a", "b"), dispatch("b"), result("b")), "a") == 2


def test_rule_2_holds_for_a_dispatch_before_the_call_was_named() -> None:
    assert rule(plan_of(turn_start(), names("b"), dispatch("b"), result("b"), names("a")), "a") == 2


def test_rule_2_does_not_hold_where_nothing_was_dispatched() -> None:
    assert rule(plan_of(turn_start(), names("a", "b")), "a") == 4


def test_rule_2_does_not_hold_for_the_dispatch_of_an_earlier_turn() -> None:
    earlier = [turn_start(), names("b"), dispatch("b"), result("b"), turn_end()]
    assert rule(plan_of(*earlier, turn_start(), names("a")), "a") == 4


def test_rule_2_does_not_hold_for_a_dispatch_outside_every_turn() -> None:
    assert rule(plan_of(names("b"), dispatch("b"), turn_start(), names("a")), "a") == 4


def test_rule_2_does_not_hold_for_a_dispatch_that_carries_no_id() -> None:
    assert rule(plan_of(turn_start(), names("a"), event("tool_call", name="bash")), "a") == 4


def test_a_dispatch_without_an_id_does_not_keep_rule_2_from_holding() -> None:
    plan = plan_of(turn_start(), names("a", "b"), dispatch("b"), event("tool_call", name="bash"))
    assert rule(plan, "a") == 2
    assert "call_without_id" in codes(plan)


# ---- rule 3: this turn recorded no dispatch at all, and the step around the call closed


def test_rule_3_a_call_whose_step_closed_in_a_turn_without_dispatches_did_not_start() -> None:
    plan = plan_of(turn_start(), step_start(), names("a"), step_end())
    assert (rule(plan, "a"), risk(plan, "a")) == (3, "not started")


@pytest.mark.parametrize("outcome", ["ok", "error", "cancelled", None, 7])
def test_rule_3_a_step_end_closes_its_step_whatever_its_outcome(outcome: object) -> None:
    assert rule(plan_of(turn_start(), step_start(), names("a"), step_end(outcome=outcome)), "a") == 3


def test_rule_3_does_not_hold_while_the_step_is_open() -> None:
    assert rule(plan_of(turn_start(), step_start(), names("a")), "a") == 4


def test_rule_3_does_not_hold_without_a_step_around_the_call() -> None:
    plan = plan_of(turn_start(), step_start(), step_end(), names("a"))
    assert (rule(plan, "a"), owed(plan, "a").step_seq) == (4, None)


def test_rule_3_does_not_hold_when_another_step_closed_and_its_own_did_not() -> None:
    assert rule(plan_of(turn_start(), step_start(), step_end(), step_start(), names("a")), "a") == 4
    assert rule(plan_of(turn_start(), step_start(), names("a"), step_start(), step_end()), "a") == 4


def test_rule_3_does_not_hold_for_a_call_whose_turn_recorded_any_dispatch() -> None:
    plan = plan_of(turn_start(), step_start(), names("a", "b"), dispatch("b"), step_end())
    assert rule(plan, "a") == 2


def test_rule_3_does_not_hold_beside_a_dispatch_that_carries_no_id() -> None:
    plan = plan_of(turn_start(), step_start(), names("a"), event("tool_call", name="bash"), step_end())
    assert rule(plan, "a") == 4
    assert row(plan, "a", 3).lines == (4,)


def test_rule_3_holds_when_only_an_earlier_turn_recorded_a_dispatch() -> None:
    earlier = [turn_start(), names("b"), dispatch("b"), result("b"), turn_end()]
    assert rule(plan_of(*earlier, turn_start(), step_start(), names("a"), step_end()), "a") == 3


# ---- rule 4: anything else


def test_rule_4_a_call_of_which_nothing_is_proven_is_unknown() -> None:
    plan = plan_of(turn_start(), names("a"))
    assert (rule(plan, "a"), risk(plan, "a")) == (4, "unknown")


# ---- W1, W2, W3: calls that wait for a person (test_waiting has the inconsistent ones)


def test_rule_w1_an_approval_that_nobody_decided_means_waiting() -> None:
    plan = plan_of(turn_start(), names("a"), asks("r", "a"))
    assert (rule(plan, "a"), risk(plan, "a"), owed(plan, "a").label) == ("W1", "not started", "WAITING")
    assert owed(plan, "a").needs_acknowledgement


def test_rule_w1_an_input_that_nobody_gave_means_waiting() -> None:
    assert rule(plan_of(turn_start(), names("a"), asks_input("r", "a")), "a") == "W1"


def test_rule_w1_does_not_hold_for_the_request_of_another_call() -> None:
    plan = plan_of(turn_start(), names("a", "b"), asks("r", "b"))
    assert (rule(plan, "a"), rule(plan, "b")) == (4, "W1")


def test_rule_w1_is_asked_before_rule_2_and_rule_3() -> None:
    assert rule(plan_of(turn_start(), names("a", "b"), asks("r", "a"), dispatch("b")), "a") == "W1"
    assert rule(plan_of(turn_start(), step_start(), names("a"), asks("r", "a"), step_end()), "a") == "W1"


def test_rule_w2_a_denied_call_did_not_start_and_needs_nobody() -> None:
    plan = plan_of(turn_start(), names("a"), asks("r", "a"), denies("r"))
    assert (rule(plan, "a"), risk(plan, "a"), owed(plan, "a").label) == ("W2", "not started", "DENIED")
    assert not owed(plan, "a").needs_acknowledgement


def test_rule_w2_does_not_hold_for_an_allow() -> None:
    assert rule(plan_of(turn_start(), names("a"), asks("r", "a"), allows("r")), "a") == 4


def test_rule_w2_does_not_hold_where_a_second_request_was_allowed() -> None:
    plan = plan_of(turn_start(), names("a"), asks("r", "a"), denies("r"), asks("s", "a"), allows("s"))
    assert rule(plan, "a") == 4


def test_rule_w3_an_allowed_call_is_never_better_than_unknown_although_its_step_closed() -> None:
    events = [turn_start(), step_start(), names("a"), asks("r", "a"), allows("r"), step_end()]
    assert rule(plan_of(*events), "a") == 4
    answered = [turn_start(), step_start(), names("a"), asks_input("r", "a"), gives_input("r"), step_end()]
    assert rule(plan_of(*answered), "a") == 4


def test_rule_w3_an_allowed_call_did_not_start_where_rule_2_applies() -> None:
    plan = plan_of(turn_start(), names("a", "b"), asks("r", "a"), allows("r"), dispatch("b"))
    assert rule(plan, "a") == 2


# ---- what a row of the trace says


def test_a_trace_asks_the_rules_in_their_order_and_stops_at_the_first_that_holds() -> None:
    trace = owed(plan_of(turn_start(), names("a", "b"), dispatch("b")), "a").trace
    assert [row.rule for row in trace] == [1, "W1", "W2", 2, 3, 4]
    assert [row.asked for row in trace] == [True, True, True, True, False, False]
    assert [row.held for row in trace] == [False, False, False, True, False, False]
    assert all(row.lines == () for row in trace if not row.asked)


def test_a_trace_of_rule_4_asked_every_rule() -> None:
    trace = owed(plan_of(turn_start(), names("a")), "a").trace
    assert all(row.asked for row in trace)
    assert [row.rule for row in trace if row.held] == [4]


def test_each_row_of_a_trace_names_the_lines_that_it_looked_at() -> None:
    plan = plan_of(turn_start(), names("a", "b"), dispatch("b"), dispatch("b"))
    assert row(plan, "b", 1).lines == (3, 4)
    assert row(plan, "a", 1).lines == (2,)
    assert row(plan, "a", 2).lines == (3, 4)
    closed = plan_of(turn_start(), step_start(), names("a"), step_end())
    assert row(closed, "a", 2).lines == (1,)
    assert row(closed, "a", 3).lines == (2, 4)
    waits = plan_of(turn_start(), names("a"), asks("r", "a"))
    assert row(waits, "a", "W1").lines == (3,)
    denied = plan_of(turn_start(), names("a"), asks("r", "a"), denies("r"))
    assert row(denied, "a", "W2").lines == (3, 4)
    allowed = plan_of(turn_start(), step_start(), names("a"), asks("r", "a"), allows("r"), step_end())
    assert row(allowed, "a", 3).lines == (5,)
    assert row(plan_of(turn_start(), step_start(), names("a")), "a", 3).lines == (2,)


def test_every_row_that_was_asked_says_why() -> None:
    plan = plan_of(turn_start(), step_start(), names("a", "b"), dispatch("b"))
    says = [row.says for entry in plan.owed for row in entry.trace if row.asked]
    assert all(says)
    assert owed(plan, "b").why == "dispatched on line 4, and no result follows"


def test_a_trace_names_no_more_lines_than_a_reader_can_use() -> None:
    plan = plan_of(turn_start(), names("a"), *[dispatch("a")] * 1000)
    assert row(plan, "a", 1).lines == tuple(range(3, 23))


# ---- evidence: the lines that prove a risk


def test_the_evidence_of_a_dispatched_call_is_its_naming_and_its_dispatches() -> None:
    plan = plan_of(turn_start(), names("a"), dispatch("a"), user(), dispatch("a"))
    assert evidence(plan, "a") == [2, 3, 5]


def test_the_evidence_of_a_call_that_did_not_start_is_the_dispatch_of_another() -> None:
    plan = plan_of(turn_start(), user(), names("a", "b"), dispatch("b"))
    assert [(e.line, e.says) for e in owed(plan, "a").evidence] == [
        (3, "named"),
        (4, "another call was dispatched"),
    ]


def test_the_evidence_of_a_closed_step_is_where_it_began_and_ended() -> None:
    assert evidence(plan_of(turn_start(), step_start(), names("a"), user(), step_end()), "a") == [2, 3, 5]


def test_the_evidence_of_a_waiting_or_denied_call_is_its_request_and_the_decision() -> None:
    assert evidence(plan_of(turn_start(), names("a"), user(), asks("r", "a")), "a") == [2, 4]
    assert evidence(plan_of(turn_start(), names("a"), asks("r", "a"), user(), denies("r")), "a") == [2, 3, 5]


def test_evidence_says_of_a_call_that_nothing_named_that_it_was_dispatched_only() -> None:
    (line,) = owed(plan_of(turn_start(), dispatch("a")), "a").evidence[:1]
    assert (line.line, line.says) == (2, "dispatched, and never named before")


# ---- what is owed, and by whom


def test_a_closed_turn_that_owes_a_result_is_no_crash_and_shown_as_left() -> None:
    plan = plan_of(turn_start(), names("a"), dispatch("a"), turn_end())
    assert (plan.status, plan.owed, plan.repairs) == ("clean", (), ())
    assert [(left.tool_call_id, left.line) for left in plan.left] == [("a", 2)]


def test_a_call_outside_every_turn_is_shown_and_not_repaired() -> None:
    plan = plan_of(names("a"), dispatch("a"), turn_start())
    assert plan.owed == ()
    assert kinds(plan) == [("turn_end", None)]
    assert [(left.tool_call_id, left.line) for left in plan.left] == [("a", 1)]
    assert "outside any turn" in plan.left[0].why


def test_a_streamed_log_without_turns_is_clean() -> None:
    plan = plan_of(user(), step_start(), names("a", "b"), dispatch("a"), result("a"), step_end())
    assert (plan.status, plan.repairs, [left.tool_call_id for left in plan.left]) == ("clean", (), ["b"])


def test_the_type_alone_decides_and_never_the_reason_or_the_risk_metadata() -> None:
    synthetic = {"synthetic": True, "risk": "tool_not_started", "rule": 2}
    events = [
        turn_start(reason="interrupted"),
        names("a", "b", metadata=synthetic, reason="tool_result"),
        dispatch("b", metadata=synthetic, reason="interrupted"),
    ]
    assert [(e.tool_call_id, e.rule) for e in plan_of(*events).owed] == [("a", 2), ("b", 1)]
    closed = plan_of(*events, result("a", metadata=synthetic), turn_end(reason="anything at all"))
    assert closed.status == "clean"
    alive = plan_of(*events, user("turn_end"), event("turn_ended", reason="interrupted"))
    assert alive.status == "crashed"


def test_a_result_answers_its_call_although_it_says_that_it_is_synthetic() -> None:
    plan = plan_of(turn_start(), names("a"), result("a", metadata={"synthetic": True}, is_error=True))
    assert plan.owed == ()


def test_turns_and_steps_are_paired_by_a_stack_and_never_by_their_numbers() -> None:
    plan = plan_of(turn_start(1), turn_start(2), turn_end(turn=1))
    assert [turn.turn for turn in plan.open_turns] == [1]
    steps = plan_of(turn_start(), step_start(step=1), step_start(step=2), names("a"), step_end(step=1))
    assert rule(steps, "a") == 3


def test_a_turn_end_that_closes_nothing_is_an_anomaly_and_closes_nothing_later() -> None:
    plan = plan_of(turn_end(), step_end(), turn_start(), step_start(), names("a"))
    assert codes(plan) == ["turn_end_without_start", "step_end_without_start"]
    assert (plan.status, rule(plan, "a")) == ("crashed", 4)


# ---- the plan: which events, in which order


def test_open_turns_come_innermost_first_and_each_owes_its_own_calls() -> None:
    plan = plan_of(turn_start(1), names("a", "b"), turn_start(2), names("c"), dispatch("c"))
    assert [(turn.turn, turn.line) for turn in plan.open_turns] == [(2, 3), (1, 1)]
    assert kinds(plan) == [
        ("tool_result", "c"),
        ("turn_end", None),
        ("tool_result", "a"),
        ("tool_result", "b"),
        ("turn_end", None),
    ]
    assert [repair.data.get("turn") for repair in plan.repairs if repair.type == "turn_end"] == [2, 1]


def test_results_come_in_the_order_in_which_their_calls_were_first_seen() -> None:
    plan = plan_of(turn_start(), dispatch("z"), names("c", "a"), names("a", "b"), dispatch("b"))
    assert ids(plan) == ["z", "c", "a", "b"]
    assert [id for _, id in kinds(plan)] == ["z", "c", "a", "b", None]


def test_a_turn_end_counts_the_steps_that_began_while_its_turn_was_the_innermost() -> None:
    plan = plan_of(
        step_start(),
        turn_start(),
        *[step_start(), step_end()] * 2,
        *[turn_start(), step_start(), turn_end()],
        *[turn_start(), step_start()],
        *[turn_start()],
    )
    ends = [repair.data for repair in plan.repairs]
    assert [end["steps"] for end in ends] == [0, 1, 2]
    assert {end["reason"] for end in ends} == {"interrupted"}


@pytest.mark.parametrize("number", [0, 7, -1, 2**70])
def test_a_turn_end_carries_the_turn_where_the_orphan_carried_an_integer(number: int) -> None:
    plan = plan_of(turn_start(number))
    assert plan.repairs[0].data == {"reason": "interrupted", "steps": 0, "turn": number}
    assert plan.open_turns[0].turn == number


@pytest.mark.parametrize("number", ["1", 1.5, True, None, [1], {}])
def test_a_turn_end_carries_no_turn_where_the_orphan_carried_anything_else(number: object) -> None:
    plan = plan_of(event("turn_start", turn=number))
    assert plan.repairs[0].data == {"reason": "interrupted", "steps": 0}
    assert plan.open_turns[0].turn is None


# ---- ids


@pytest.mark.parametrize("spelling", ["id", "tool_call_id"])
@pytest.mark.parametrize("id", ["c1", 7, "", " ", "7.0", "=", "/", -3, 2**70, "é\u2028", "\ud800"])
def test_no_call_is_dropped_for_the_spelling_of_its_id(spelling: str, id: str | int) -> None:
    call = {spelling: id, "name": "bash"}
    assert ids(plan_of(turn_start(), names(call))) == [str(id)]
    assert rule(plan_of(turn_start(), names(call), event("tool_call", **call)), str(id)) == 1
    assert ids(plan_of(turn_start(), names(call), event("tool_result", **call))) == []


def test_an_integer_id_is_the_same_as_its_text() -> None:
    plan = plan_of(turn_start(), names(7, "8"), dispatch("7"), result(8))
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [("7", 1)]


def test_the_tool_call_id_of_a_dispatch_or_result_is_meant_rather_than_its_own_id() -> None:
    plan = plan_of(turn_start(), names("a", "b"), event("tool_result", id="b", tool_call_id="a"))
    assert ids(plan) == ["b"]


@pytest.mark.parametrize("id", [None, True, 1.5, [], {}])
def test_what_is_no_id_names_nothing_and_is_an_anomaly(id: object) -> None:
    plan = plan_of(turn_start(), names({"id": id, "name": "bash"}, "a"), event("tool_result", id=id))
    assert ids(plan) == ["a"]
    assert codes(plan) == ["call_without_id", "result_without_id"]


@pytest.mark.parametrize("calls", ["a", {"id": "a"}, 3])
def test_tool_calls_that_are_no_list_are_an_anomaly(calls: object) -> None:
    plan = plan_of(turn_start(), event("assistant_message", tool_calls=calls))
    assert (plan.owed, codes(plan)) == ((), ["odd_data"])


@pytest.mark.parametrize("entry", [None, "a", 3, ["a"]])
def test_an_entry_of_tool_calls_that_is_no_object_does_not_hide_the_others(entry: object) -> None:
    plan = plan_of(turn_start(), event("assistant_message", tool_calls=[entry, {"id": "a"}]))
    assert ids(plan) == ["a"]
    assert codes(plan) == ["call_without_id"]


# ---- first sighting wins


def test_a_call_that_is_logged_again_is_the_same_call_by_its_first_sighting() -> None:
    plan = plan_of(
        turn_start(),
        names(("a", "bash", {"command": "ls"})),
        step_start(),
        names(("a", "bash", {"command": "rm"})),
        step_end(),
    )
    entry = owed(plan, "a")
    assert (entry.line, entry.arguments, entry.rule) == (2, {"command": "ls"}, 4)


def test_a_call_logged_again_under_another_name_keeps_the_first_and_both_lines_are_named() -> None:
    plan = plan_of(turn_start(), names(("a", "bash")), names(("a", "charge")))
    assert owed(plan, "a").name == "bash"
    (anomaly,) = plan.anomalies
    assert (anomaly.code, anomaly.line) == ("id_reused", 3)
    assert "line 3" in anomaly.says
    assert "line 2" in anomaly.says


def test_a_call_dispatched_under_another_name_is_still_that_call() -> None:
    plan = plan_of(turn_start(), names(("a", "bash")), dispatch("a", "charge"))
    assert (rule(plan, "a"), owed(plan, "a").name) == (1, "bash")


def test_a_call_that_was_first_seen_dispatched_keeps_the_name_of_its_dispatch() -> None:
    plan = plan_of(turn_start(), dispatch("a", "bash", arguments={"x": 1}), names(("a", "bash", {"x": 2})))
    entry = owed(plan, "a")
    assert (entry.line, entry.rule, entry.arguments) == (2, 1, {"x": 1})


# ---- identity: (turn, id)


def test_an_id_that_an_earlier_turn_had_answered_is_owed_again_now() -> None:
    earlier = [turn_start(), names("call_0"), dispatch("call_0"), result("call_0"), turn_end()]
    plan = plan_of(*earlier, turn_start(), names("call_0"))
    assert [(e.tool_call_id, e.line, e.rule) for e in plan.owed] == [("call_0", 7, 4)]


def test_an_id_that_an_earlier_turn_dispatched_is_not_dispatched_now() -> None:
    earlier = [turn_start(), names("call_0"), dispatch("call_0"), turn_end()]
    plan = plan_of(*earlier, turn_start(), names("call_0", "b"), dispatch("b"))
    assert rule(plan, "call_0") == 2
    assert [left.line for left in plan.left] == [2]


def test_an_id_that_was_answered_outside_every_turn_is_owed_by_the_turn_that_names_it() -> None:
    assert ids(plan_of(names("a"), result("a"), turn_start(), names("a"))) == ["a"]


def test_two_open_turns_owe_the_same_id_each_under_a_key_of_its_own() -> None:
    plan = plan_of(turn_start(1), names("a"), dispatch("a"), turn_start(2), names("a"))
    assert [(e.key, e.turn_seq, e.rule) for e in plan.owed] == [("3/a", 3, 4), ("0/a", 0, 1)]


def test_a_result_answers_the_call_of_its_own_turn_and_not_the_one_around() -> None:
    plan = plan_of(turn_start(1), names("a"), turn_start(2), names("a"), result("a"))
    assert [(e.tool_call_id, e.line) for e in plan.owed] == [("a", 2)]


def test_a_result_whose_turn_knows_no_such_call_answers_the_latest_with_that_id() -> None:
    around = [turn_start(1), names("a"), turn_start(2), names("a"), turn_start(3), result("a")]
    assert [e.line for e in plan_of(*around).owed] == [2]
    after = [turn_start(), names("a"), turn_end(), turn_start(), names("a"), turn_end(), result("a")]
    assert [left.line for left in plan_of(*after).left] == [2]


def test_a_result_that_precedes_its_call_in_the_same_turn_answers_it() -> None:
    plan = plan_of(turn_start(), names("b"), result("a"), names("a"), dispatch("a"))
    assert ids(plan) == ["b"]


def test_a_result_that_precedes_its_call_is_taken_from_the_turn_around() -> None:
    plan = plan_of(turn_start(1), names("a"), turn_start(2), result("a"), names("a"))
    assert [(e.tool_call_id, e.line) for e in plan.owed] == [("a", 2)]


def test_a_result_of_an_earlier_turn_does_not_answer_a_later_call() -> None:
    assert ids(plan_of(turn_start(), result("a"), turn_end(), turn_start(), names("a"))) == ["a"]


def test_a_result_for_an_answered_call_does_not_fall_through_to_an_older_one() -> None:
    events = [turn_start(), names("a"), turn_end(), turn_start(), names("a"), result("a"), turn_end()]
    plan = plan_of(*events, result("a"))
    assert [left.line for left in plan.left] == [2]


def test_a_result_reaches_an_older_call_when_the_younger_was_named_after_it() -> None:
    inner = [turn_start(), names("a"), result("a"), turn_end()]
    plan = plan_of(turn_start(), names("a"), turn_start(), result("a"), *inner)
    assert plan.owed == ()
    closed = plan_of(turn_start(), names("a"), turn_start(), result("a"), *inner, turn_end(), turn_end())
    assert closed.left == ()


def test_each_of_two_early_results_answers_the_call_that_was_the_latest_then() -> None:
    plan = plan_of(
        *[turn_start(), result("a"), turn_start(), names("a"), turn_end(), result("a"), turn_end()],
    )
    assert plan.left == ()


def test_a_second_result_is_an_anomaly_that_names_the_first() -> None:
    plan = plan_of(turn_start(), names("a"), result("a"), result("a"))
    (anomaly,) = plan.anomalies
    assert (anomaly.code, anomaly.line) == ("duplicate_result", 4)
    assert "line 3" in anomaly.says


# ---- whose dispatch it is


def test_a_dispatch_belongs_to_the_call_of_its_own_turn_first() -> None:
    plan = plan_of(turn_start(1), names("a"), turn_start(2), names("a"), dispatch("a"))
    assert [(e.line, e.rule) for e in plan.owed] == [(4, 1), (2, 4)]


def test_a_dispatch_belongs_to_an_unanswered_call_of_a_turn_around_else() -> None:
    plan = plan_of(turn_start(1), names("a"), turn_start(2), dispatch("a"))
    assert [(e.tool_call_id, e.line, e.rule) for e in plan.owed] == [("a", 2, 1)]


def test_a_dispatch_belongs_to_the_nearest_of_the_turns_around() -> None:
    plan = plan_of(turn_start(1), names("a"), turn_start(2), names("a"), turn_start(3), dispatch("a"))
    assert [(e.line, e.rule) for e in plan.owed] == [(4, 1), (2, 4)]


def test_a_dispatch_belongs_to_an_unanswered_call_outside_every_turn_else() -> None:
    plan = plan_of(names("a"), turn_start(), dispatch("a"))
    assert plan.owed == ()
    assert [left.tool_call_id for left in plan.left] == ["a"]


def test_a_dispatch_that_nothing_named_is_a_call_of_its_own_turn() -> None:
    plan = plan_of(turn_start(1), turn_start(2), dispatch("a", "charge"))
    assert [(e.tool_call_id, e.name, e.turn_seq, e.rule) for e in plan.owed] == [("a", "charge", 1, 1)]


@pytest.mark.parametrize(
    "before",
    [
        [turn_start(), names("a"), result("a")],  # the call around was answered
        [names("a"), result("a"), turn_start()],  # so was the one outside
        [turn_start(), turn_start(), names("a"), turn_end()],  # its turn is not open any more
    ],
)
def test_a_dispatch_is_no_second_life_for_a_call_that_is_done(before: list[dict[str, object]]) -> None:
    plan = plan_of(*before, turn_start(9), dispatch("a"))
    assert [(e.tool_call_id, e.turn_line, e.rule) for e in plan.owed] == [("a", len(before) + 1, 1)]


def test_rule_2_counts_the_turn_in_which_the_dispatch_lies() -> None:
    plan = plan_of(turn_start(1), names("a", "b"), turn_start(2), names("c"), dispatch("b"))
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [("c", 2), ("a", 4), ("b", 1)]


def test_a_dispatch_for_a_call_around_counts_for_a_call_of_its_id_named_later_too() -> None:
    plan = plan_of(turn_start(1), names("a"), turn_start(2), dispatch("a"), names("a"))
    assert [(e.line, e.rule) for e in plan.owed] == [(5, 1), (2, 1)]


# ---- what a format records decides which rules may fire


def events_for(rule: object) -> list[dict[str, object]]:
    return {
        1: [turn_start(), names("a"), dispatch("a")],
        2: [turn_start(), names("a", "b"), dispatch("b")],
        3: [turn_start(), step_start(), names("a"), step_end()],
        "W1": [turn_start(), names("a"), asks("r", "a")],
        "W2": [turn_start(), names("a"), asks("r", "a"), denies("r")],
    }[rule]


@pytest.mark.parametrize("dispatches", ["all", "some", "none"])
@pytest.mark.parametrize("step_ends", [True, False])
@pytest.mark.parametrize("rule_that_holds", [1, 2, 3, "W1", "W2"])
def test_absence_is_evidence_only_where_the_format_records_the_thing(
    dispatches: str, step_ends: bool, rule_that_holds: object
) -> None:
    records = Records(dispatches=dispatches, step_ends=step_ends)  # type: ignore[arg-type]
    needs = {2: dispatches == "all", 3: dispatches == "all" and step_ends}
    expected = rule_that_holds if needs.get(rule_that_holds, True) else 4  # type: ignore[call-overload]
    assert rule(plan_of(*events_for(rule_that_holds), records=records), "a") == expected


def test_a_rule_that_does_not_apply_to_the_format_says_so_in_the_trace() -> None:
    plan = plan_of(*events_for(2), records=Records("some", step_ends=False))
    assert [(row.held, row.says[:14]) for row in owed(plan, "a").trace[3:5]] == [
        (False, "does not apply")
    ] * 2


def timed(*events: tuple[int, dict[str, object]], hole_ms: int) -> Plan:
    scan = Scan()
    for line, (ms, happening) in enumerate(events, start=1):
        scan.feed(Event(happening["type"], happening["data"], line, line, ms=ms))  # type: ignore[arg-type]
    return make_plan(scan.state(), Records(hole_ms=hole_ms))


@pytest.mark.parametrize(("later", "expected"), [(400, 4), (500, 4), (501, 2)])
def test_silence_means_nothing_within_the_time_that_a_writer_may_have_buffered(
    later: int, expected: int
) -> None:
    start, named, sent = turn_start(), names("a", "b"), dispatch("b")
    plan = timed((0, start), (1000, named), (1000, sent), (1000 + later, user()), hole_ms=500)
    assert rule(plan, "a") == expected
    assert rule(plan, "b") == 1


# ---- recovery is idempotent, and what it writes


CRASHED = [
    turn_start(1),
    names("a", ("b", None)),
    turn_start(),
    step_start(),
    names("a", 7),
    asks("r", "a"),
    dispatch("b"),
    asks_input("s", 7),
    denies("r"),
]


def test_planning_a_repaired_log_gives_an_empty_plan() -> None:
    text = log(*CRASHED)
    repaired = plan_of_text(with_repair(text, plan_of_text(text).repairs))
    assert (repaired.status, repaired.repairs, repaired.owed, repaired.left) == ("clean", (), (), ())


def test_a_synthetic_result_carries_these_fields_and_nothing_else() -> None:
    plan = plan_of(turn_start(), names(("a", "charge", {"eur": 5})), dispatch("a"))
    repair = plan.repairs[0]
    assert repair.type == "tool_result"
    assert dict(repair.data) == {
        "tool_call_id": "a",
        "name": "charge",
        "content": repair.data["content"],
        "metadata": {"synthetic": True, "risk": "tool_outcome_unknown", "rule": 1},
    }
    assert list(repair.data) == ["tool_call_id", "name", "content", "metadata"]


def test_a_synthetic_result_has_a_null_name_where_the_log_has_none() -> None:
    assert plan_of(turn_start(), names({"id": "a"})).repairs[0].data["name"] is None
    assert plan_of(turn_start(), names({"id": "a", "name": 3})).repairs[0].data["name"] is None


def test_the_content_of_a_synthetic_result_is_plain_words_and_another_for_each_kind() -> None:
    plans = [
        plan_of(turn_start(), names("a")),
        plan_of(turn_start(), names("a", "b"), dispatch("b")),
        plan_of(turn_start(), names("a"), asks("r", "a")),
        plan_of(turn_start(), names("a"), asks("r", "a"), denies("r")),
    ]
    contents = [next(r.data["content"] for r in p.repairs if r.key == "a") for p in plans[:2]]
    contents += [p.repairs[-2].data["content"] for p in plans[2:]]
    assert len(set(contents)) == 4
    assert "may have taken effect" in contents[0]
    assert all("did not run" in content.replace("\n", " ") for content in contents[1:])


@pytest.mark.parametrize(("rule", "risk"), [(2, "tool_not_started"), (4, "tool_outcome_unknown")])
def test_the_metadata_of_a_synthetic_result_says_the_risk_and_the_rule(rule: int, risk: str) -> None:
    events = [turn_start(), names("a", "b"), *([dispatch("b")] if rule == 2 else [])]
    metadata = plan_of(*events).repairs[0].data["metadata"]
    assert metadata == {"synthetic": True, "risk": risk, "rule": rule}


def test_a_plan_can_be_written_as_json() -> None:
    for repair in plan_of(*CRASHED).repairs:
        json.dumps(repair.data)


def test_a_log_that_owes_nothing_but_a_turn_end_gets_just_that() -> None:
    plan = plan_of(turn_start(4), request_header(), speaks())
    assert kinds(plan) == [("turn_end", None)]
    assert plan.status == "crashed"


def test_keys_are_never_shared_however_the_ids_are_spelled() -> None:
    """One answer must never pass for two calls: not even where an id looks like another one's key."""
    same_seq = b'{"seq":5,"type":"turn_start","data":{}}'

    def naming(*calls: str) -> bytes:
        return json.dumps(
            {"type": "assistant_message", "data": {"tool_calls": [{"id": c} for c in calls]}}
        ).encode()

    logs = [
        [same_seq, naming("a"), same_seq, naming("a", "5/a", "5@1/a")],
        [same_seq, naming("a", "5/a"), same_seq, naming("a", "5/a", "5@3/a", "@5@3/a")],
        [same_seq + same_seq, naming("a")],
        [same_seq + naming("a") + same_seq + naming("a"), naming("5/a", "5@1/a")],
    ]
    for lines in logs:
        keys = [entry.key for entry in plan_of(*lines).owed]
        assert len(keys) == len(set(keys)), keys


def test_keys_of_turns_that_carry_one_seq_tell_them_apart_by_their_lines() -> None:
    same_seq = b'{"seq":5,"type":"turn_start","data":{}}'
    plan = plan_of(same_seq, names("a"), same_seq, names("a", "b"))
    assert [entry.key for entry in plan.owed] == ["5@3/a", "b", "5@1/a"]


def test_two_turns_that_begin_on_one_line_owe_their_own_calls() -> None:
    both = b'{"seq":0,"type":"turn_start","data":{}}{"seq":1,"type":"turn_start","data":{}}'
    plan = plan_of(both, names("a"), dispatch("a"))
    assert kinds(plan) == [("tool_result", "a"), ("turn_end", None), ("turn_end", None)]


def test_a_log_cannot_write_the_words_that_formats_use_among_themselves() -> None:
    calls = (turn_start(1, implicit=True, asks=True), names("c1"), dispatch("c1"))
    plan = plan_of(
        *calls, event("settle", says="owes nothing"), event("evidence", tool_call_id="c1", stage="withdrawn")
    )
    assert rule(plan, "c1") == 1
    assert [repair.type for repair in plan.repairs] == ["tool_result", "turn_end"]
    assert "unknown_type" in codes(plan)
