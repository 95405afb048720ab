"""Calls that wait for a person: which evidence contradicts itself, and what a plan closes."""

from typing import Any

import pytest

from tests.helpers import (
    allows,
    asks,
    asks_input,
    codes,
    denies,
    dispatch,
    evidence,
    gives_input,
    ids,
    kinds,
    log,
    names,
    owed,
    plan_of,
    plan_of_text,
    result,
    risk,
    row,
    rule,
    step_end,
    step_start,
    turn_end,
    turn_start,
    user,
    with_repair,
)
from triage.recovery.plan import Plan

# ---- consistent evidence, so that the table below shows what is wrong and not that all is


@pytest.mark.parametrize(
    "events",
    [
        [asks("r", "a")],
        [asks("r", "a"), denies("r")],
        [asks("r", "a"), denies("r", command_id="k")],
        [asks("r", "a"), allows("r")],
        [asks("r", "a"), allows("r", tool_call_id="a", capability={"sig": 1})],
        [asks_input("r", "a")],
        [asks_input("r", "a"), gives_input("r")],
        [asks_input("r", "a"), gives_input("r", None)],
        [asks("r", "a"), denies("r"), asks("s", "a"), denies("s")],
        [asks("r", "a"), allows("r"), asks_input("s", "a")],
        [asks("r", "a"), allows("r"), dispatch("a"), result("a")],
        [asks("r", "a"), asks("r", "a"), allows("r")],
        [asks(7, "a"), denies("7")],
    ],
)
def test_a_request_with_one_fitting_decision_or_none_is_no_anomaly(events: list[dict[str, Any]]) -> None:
    assert codes(plan_of(turn_start(), names("a", "b"), *events)) == []


# ---- inconsistent evidence is an anomaly and makes the call unknown, whatever rule 2 or 3 would say


INCONSISTENT: dict[str, list[dict[str, Any]]] = {
    "an allow without capability": [asks("r", "a"), allows("r", None)],
    "an allow with a null capability": [asks("r", "a"), {**allows("r", None), "data": {
        "request_id": "r", "decision": "allow", "capability": None}}],
    "a deny with a capability": [asks("r", "a"), denies("r", capability="signed")],
    "two decisions, allow and deny": [asks("r", "a"), allows("r"), denies("r")],
    "two decisions, deny and allow": [asks("r", "a"), denies("r"), allows("r")],
    "the same decision twice": [asks("r", "a"), denies("r"), denies("r")],
    "two answers to one question": [asks_input("r", "a"), gives_input("r"), gives_input("r")],
    "a decision for a request that was never opened": [denies("r")],
    "one for a request that was never opened, naming the call": [denies("r", tool_call_id="a")],
    "an answer for a request that was never opened": [gives_input("r")],
    "a decision without a request id": [asks("r", "a"), denies(None)],
    "a request that is opened again after its decision": [asks("r", "a"), denies("r"), asks("r", "a")],
    "an input answer that carries a capability": [asks_input("r", "a"), gives_input("r", capability="s")],
    "an input answer for an approval": [asks("r", "a"), gives_input("r")],
    "an approval decision for an input": [asks_input("r", "a"), denies("r")],
    "an allow for an input": [asks_input("r", "a"), allows("r")],
    "a decision that names another call": [asks("r", "a"), denies("r", tool_call_id="b")],
    "a decision that is neither allow nor deny": [asks("r", "a"), {
        "type": "approval_decided", "data": {"request_id": "r", "decision": "perhaps"}}],
    "one request for two calls": [asks("r", "a"), asks("r", "b")],
    "one request id for an approval and an input": [asks("r", "a"), asks_input("r", "a")],
}  # fmt: skip


@pytest.mark.parametrize("events", INCONSISTENT.values(), ids=INCONSISTENT)
@pytest.mark.parametrize(
    "otherwise",
    [
        [dispatch("c"), result("c")],  # rule 2 would hold
        [step_end()],  # rule 3 would hold
        [asks("t", "a")],  # W1 would hold
        [asks("t", "a"), denies("t")],  # W2 would hold
        [],
    ],
    ids=["rule 2", "rule 3", "W1", "W2", "rule 4"],
)
def test_inconsistent_evidence_makes_its_call_unknown(
    events: list[dict[str, Any]], otherwise: list[dict[str, Any]]
) -> None:
    plan = plan_of(turn_start(), step_start(), names("a", "c"), *events, *otherwise)
    assert (rule(plan, "a"), risk(plan, "a")) == (4, "unknown")
    assert "inconsistent_approval" in codes(plan)


@pytest.mark.parametrize("events", INCONSISTENT.values(), ids=INCONSISTENT)
def test_inconsistent_evidence_before_the_call_is_named_counts_as_well(events: list[dict[str, Any]]) -> None:
    plan = plan_of(turn_start(), *events, names("a", "c"), dispatch("c"))
    nameless = not any("a" in (e["data"].get("tool_call_id") or "") for e in events)
    assert rule(plan, "a") == (2 if nameless else 4)


@pytest.mark.parametrize("events", INCONSISTENT.values(), ids=INCONSISTENT)
def test_the_trace_and_the_evidence_name_the_line_that_contradicts(events: list[dict[str, Any]]) -> None:
    plan = plan_of(turn_start(), names("a", "c"), *events, dispatch("c"))
    contradicting = {a.line for a in plan.anomalies if a.code == "inconsistent_approval"}
    assert contradicting <= set(row(plan, "a", 2).lines)
    assert contradicting <= set(evidence(plan, "a"))


def test_inconsistent_evidence_about_one_call_leaves_the_others_alone() -> None:
    plan = plan_of(turn_start(), names("a", "b", "c"), asks("r", "a"), allows("r", None), dispatch("c"))
    assert (rule(plan, "a"), rule(plan, "b")) == (4, 2)


def test_a_decision_of_which_nothing_tells_the_call_makes_every_waiting_call_unknown() -> None:
    plan = plan_of(turn_start(), names("a", "b", "c", "d"), result("d"), dispatch("c"), denies("r"))
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [("a", 4), ("b", 4), ("c", 1)]


def test_a_decision_for_another_calls_request_makes_both_unknown() -> None:
    plan = plan_of(
        turn_start(), names("a", "b", "c"), asks("r", "a"), denies("r", tool_call_id="b"), dispatch("c")
    )
    assert (rule(plan, "a"), rule(plan, "b")) == (4, 4)


def test_one_request_for_two_calls_makes_both_unknown() -> None:
    plan = plan_of(turn_start(), names("a", "b", "c"), asks("r", "a"), asks("r", "b"), dispatch("c"))
    assert (rule(plan, "a"), rule(plan, "b")) == (4, 4)


# ---- a dispatch or a result always wins


def test_a_dispatch_wins_over_an_open_request() -> None:
    plan = plan_of(turn_start(), names("a"), dispatch("a"), asks("r", "a"))
    assert (rule(plan, "a"), codes(plan)) == (1, [])


def test_a_dispatch_wins_over_a_denial() -> None:
    assert rule(plan_of(turn_start(), names("a"), asks("r", "a"), denies("r"), dispatch("a")), "a") == 1


def test_a_request_both_pending_and_already_applied_is_an_anomaly() -> None:
    plan = plan_of(turn_start(), names("a"), asks("r", "a"), dispatch("a"))
    assert (rule(plan, "a"), codes(plan)) == (1, ["inconsistent_approval"])


def test_a_result_wins_over_an_open_request() -> None:
    plan = plan_of(turn_start(), names("a"), asks("r", "a"), result("a"))
    assert (ids(plan), kinds(plan)) == ([], [("turn_end", None)])


# ---- a request that is logged again, and requests before their call


def test_a_request_that_is_logged_again_is_the_same_request() -> None:
    waiting = plan_of(turn_start(), names("a"), asks("r", "a"), asks("r", "a"))
    assert kinds(waiting) == [("approval_decided", "r"), ("tool_result", "a"), ("turn_end", None)]
    allowed = plan_of(turn_start(), names("a"), asks("r", "a"), asks("r", "a"), allows("r"))
    assert rule(allowed, "a") == 4


def test_a_request_logged_again_in_an_inner_turn_is_the_same_request() -> None:
    plan = plan_of(turn_start(), names("a"), asks("r", "a"), turn_start(), asks("r", "a"), allows("r"))
    assert rule(plan, "a") == 4
    assert kinds(plan) == [("turn_end", None), ("tool_result", "a"), ("turn_end", None)]


def test_a_request_before_its_call_was_named_is_the_calls_request() -> None:
    assert rule(plan_of(turn_start(), asks("r", "a"), names("a")), "a") == "W1"
    assert rule(plan_of(turn_start(), asks("r", "a"), denies("r"), names("a")), "a") == "W2"
    assert rule(plan_of(turn_start(), asks("r", "a"), names("a"), denies("r")), "a") == "W2"


def test_a_request_id_may_be_used_again_in_the_next_turn() -> None:
    first = [turn_start(), names("a"), asks("r0", "a"), denies("r0"), result("a"), turn_end()]
    plan = plan_of(*first, turn_start(), names("b"), asks("r0", "b"))
    assert (rule(plan, "b"), codes(plan)) == ("W1", [])


def test_a_request_without_a_call_makes_no_call_wait() -> None:
    plan = plan_of(turn_start(), names("a"), asks("r"))
    assert rule(plan, "a") == 4


def test_a_request_may_name_a_call_of_the_turn_around() -> None:
    plan = plan_of(turn_start(), names("a"), turn_start(), asks("r", "a"))
    assert rule(plan, "a") == "W1"
    assert kinds(plan) == [
        ("turn_end", None),
        ("approval_decided", "r"),
        ("tool_result", "a"),
        ("turn_end", None),
    ]


def test_a_decision_may_follow_after_the_inner_turn_that_asked_has_ended() -> None:
    around = [turn_start(), names("a"), turn_start(), asks("r", "a"), turn_end()]
    denied = plan_of(*around, denies("r"))
    assert (rule(denied, "a"), codes(denied)) == ("W2", [])
    assert kinds(plan_of(*around))[:2] == [("approval_decided", "r"), ("tool_result", "a")]
    ended = [*around, turn_end(), turn_start(), names("b"), asks("r", "b")]
    assert (rule(plan_of(*ended), "b"), codes(plan_of(*ended))) == ("W1", [])


# ---- what the plan closes


def data_of(plan: Plan, type: str) -> list[dict[str, Any]]:
    return [dict(repair.data) for repair in plan.repairs if repair.type == type]


def test_an_open_approval_is_denied_before_the_result_of_its_call() -> None:
    plan = plan_of(turn_start(), names("a", "b"), asks("r", "b"))
    assert kinds(plan) == [
        ("tool_result", "a"),
        ("approval_decided", "r"),
        ("tool_result", "b"),
        ("turn_end", None),
    ]
    assert data_of(plan, "approval_decided") == [
        {"request_id": "r", "decision": "deny", "metadata": {"synthetic": True}}
    ]


def test_an_open_input_is_resolved_with_null_before_the_result_of_its_call() -> None:
    plan = plan_of(turn_start(), names("a"), asks_input("r", "a"))
    assert kinds(plan) == [("input_resolved", "r"), ("tool_result", "a"), ("turn_end", None)]
    assert data_of(plan, "input_resolved") == [
        {"request_id": "r", "value": None, "metadata": {"synthetic": True}}
    ]


def test_every_open_request_of_a_call_is_closed_and_no_decided_one() -> None:
    plan = plan_of(
        turn_start(), names("a"), asks("r", "a"), denies("r"), asks("s", "a"), asks_input("t", "a")
    )
    assert kinds(plan)[:3] == [("approval_decided", "s"), ("input_resolved", "t"), ("tool_result", "a")]


def test_a_request_id_is_closed_once_in_however_many_places_it_was_opened() -> None:
    one_turn = plan_of(turn_start(), names("a", "b"), asks("r", "a"), asks("r", "b"))
    nested = plan_of(turn_start(), asks("r", "a"), turn_start(), asks("r", "a"))
    for plan in (one_turn, nested):
        assert [repair.data["request_id"] for repair in plan.repairs if "request_id" in repair.data] == ["r"]


def test_an_open_request_is_closed_whatever_the_risk_of_its_call() -> None:
    plan = plan_of(turn_start(), names("a"), dispatch("a"), asks("r", "a"))
    assert kinds(plan) == [("approval_decided", "r"), ("tool_result", "a"), ("turn_end", None)]


def test_an_open_request_of_no_call_is_closed_before_its_turn() -> None:
    plan = plan_of(turn_start(), names("a"), asks("r"), asks_input("s", "nobody"), asks("t"), denies("t"))
    assert kinds(plan) == [
        ("tool_result", "a"),
        ("approval_decided", "r"),
        ("input_resolved", "s"),
        ("turn_end", None),
    ]


def test_a_request_outside_every_open_turn_is_left_alone() -> None:
    closed = [turn_start(), names("a"), asks("r", "a"), turn_end()]
    assert kinds(plan_of(asks("q"), *closed, turn_start())) == [("turn_end", None)]


@pytest.mark.parametrize("events", INCONSISTENT.values(), ids=INCONSISTENT)
def test_a_repaired_log_has_nothing_left_to_repair_however_odd_its_requests(
    events: list[dict[str, Any]],
) -> None:
    text = log(turn_start(), names("a", "b"), user(), *events)
    assert plan_of_text(with_repair(text, plan_of_text(text).repairs)).repairs == ()


def test_a_waiting_call_needs_a_person_and_its_words_say_that_the_request_was_denied() -> None:
    entry = owed(plan_of(turn_start(), names("a"), asks("r", "a")), "a")
    assert entry.needs_acknowledgement
    assert entry.risk == "tool_not_started"


# ---- lines that can't be read among them


@pytest.mark.parametrize("lost", [b"\0" * 40, b"{torn"], ids=["NULs", "torn"])
def test_neither_w1_nor_w2_holds_past_a_line_that_may_have_been_the_allow(lost: bytes) -> None:
    assert rule(plan_of(turn_start(), names("a"), asks("r", "a"), lost), "a") == 4
    assert rule(plan_of(turn_start(), names("a"), lost, asks("r", "a")), "a") == 4
    assert rule(plan_of(turn_start(), names("a"), asks("r", "a"), denies("r"), lost), "a") == 4
    assert rule(plan_of(turn_start(), asks("r", "a"), lost, names("a")), "a") == 4


def test_w1_holds_past_a_line_from_before_the_call_and_its_request() -> None:
    assert rule(plan_of(turn_start(), b"{torn", names("a"), asks("r", "a")), "a") == "W1"
