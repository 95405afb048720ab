"""A line that can't be read may have been anything: what it takes from the rules, and when it is a doubt."""

from typing import Any

import pytest

from tests.helpers import (
    GARBAGE,
    Happening,
    asks,
    codes,
    denies,
    dispatch,
    encoded,
    event,
    evidence,
    ids,
    log,
    names,
    owed,
    plan_of,
    plan_of_text,
    request_header,
    result,
    row,
    rule,
    speaks,
    step_end,
    step_start,
    torn,
    turn_end,
    turn_start,
    user,
)

RULE_2 = [names("a", "b"), dispatch("b")]
RULE_3 = [step_start(), names("a"), step_end()]
UNREADABLE = [GARBAGE, b"\0" * 80, b'{"seq":3,"ty', b"[]", b"7", b'"text"', b"{}", b'{"data":{}}', b"{" * 300]
HARMLESS = [
    turn_start(),
    turn_end(),
    step_start(),
    step_end(),
    speaks(),
    user(),
    event("system_message"),
    request_header(),
]
MOVES = [
    dispatch("a"),
    result("a"),
    event("approval_requested", request_id="r"),
    event("approval_decided", request_id="r"),
    event("input_requested", request_id="r"),
    event("input_resolved", request_id="r"),
    event("heartbeat"),  # of a newer emitter: who knows what it means
]


def name(happening: Happening) -> str:
    return happening.decode("latin-1")[:12] if isinstance(happening, bytes) else str(happening["type"])


# ---- rules 2 and 3 don't fire past a line that may have been the dispatch


@pytest.mark.parametrize("line", UNREADABLE, ids=name)
@pytest.mark.parametrize("events", [RULE_2, RULE_3], ids=["rule 2", "rule 3"])
def test_a_corrupt_line_after_a_call_was_named_makes_it_unknown(
    events: list[dict[str, Any]], line: bytes
) -> None:
    assert rule(plan_of(turn_start(), *events), "a") in (2, 3)
    for at in range(len(events), 0, -1):
        if events[at - 1]["type"] == "step_start":
            break
        assert rule(plan_of(turn_start(), *events[:at], line, *events[at:]), "a") == 4


@pytest.mark.parametrize("events", [RULE_2, RULE_3], ids=["rule 2", "rule 3"])
def test_the_trace_and_the_evidence_name_the_corrupt_line(events: list[dict[str, Any]]) -> None:
    plan = plan_of(turn_start(), *events, GARBAGE)
    line = len(events) + 2
    asked = 2 if events is RULE_2 else 3
    assert row(plan, "a", asked).lines == (line,)  # type: ignore[arg-type]
    assert f"line {line}" in row(plan, "a", asked).says  # type: ignore[arg-type]
    assert line in evidence(plan, "a")


def test_a_corrupt_line_before_the_call_was_named_takes_nothing_from_it() -> None:
    assert rule(plan_of(turn_start(), GARBAGE, *RULE_2), "a") == 2
    assert rule(plan_of(turn_start(), GARBAGE, *RULE_3), "a") == 3


def test_a_corrupt_line_outside_the_calls_open_turn_takes_nothing_from_it() -> None:
    assert rule(plan_of(GARBAGE, turn_start(), *RULE_2), "a") == 2
    assert rule(plan_of(turn_start(), names("x"), GARBAGE, turn_end(), turn_start(), *RULE_2), "a") == 2


def test_a_corrupt_line_in_an_inner_turn_lies_in_the_outer_one_too() -> None:
    assert rule(plan_of(turn_start(), *RULE_2, turn_start(), GARBAGE), "a") == 4
    assert rule(plan_of(turn_start(), *RULE_2, turn_start(), GARBAGE, turn_end()), "a") == 4


def test_a_corrupt_line_counts_against_the_calls_before_it_only() -> None:
    plan = plan_of(turn_start(), names("a", "b"), dispatch("b"), GARBAGE, names("c"), dispatch("b"))
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [("a", 4), ("b", 1), ("c", 2)]


def test_damage_on_the_very_line_that_names_the_call_counts_against_it() -> None:
    named = encoded(names("a", "b"), 1)
    assert rule(plan_of(turn_start(), named + b"\0\0", dispatch("b")), "a") == 4
    assert rule(plan_of(turn_start(), b"\0\0" + named, dispatch("b")), "a") == 4


def test_a_dispatched_call_stays_with_rule_1_whatever_is_corrupt() -> None:
    assert rule(plan_of(turn_start(), names("a"), dispatch("a"), GARBAGE), "a") == 1


def test_a_torn_result_is_no_answer_and_means_that_the_call_did_run() -> None:
    plan = plan_of(turn_start(), *RULE_2, torn(result("a")))
    assert rule(plan, "a") == 4
    plan = plan_of(turn_start(), names("a"), dispatch("a"), torn(result("a")))
    assert rule(plan, "a") == 1


def test_no_flood_of_corrupt_lines_makes_one_of_them_be_forgotten() -> None:
    for before, after in [(0, 60), (49, 1), (60, 1)]:
        lines = [GARBAGE] * before
        later = [GARBAGE, *[torn(user())] * after]
        plan = plan_of(turn_start(), *lines, names("a", "b"), dispatch("b"), *later)
        assert rule(plan, "a") == 4, (before, after)


# ---- harmless fragments


@pytest.mark.parametrize("happening", HARMLESS, ids=name)
@pytest.mark.parametrize("events", [RULE_2, RULE_3], ids=["rule 2", "rule 3"])
@pytest.mark.parametrize("ending", [b"", b"\n"], ids=["torn tail", "corrupt line"])
def test_a_fragment_that_was_certainly_no_dispatch_result_or_decision_is_harmless(
    events: list[dict[str, Any]], happening: dict[str, object], ending: bytes
) -> None:
    text = log(turn_start(), *events) + torn(happening) + ending
    plan = plan_of_text(text)
    assert rule(plan, "a") in (2, 3)
    assert codes(plan) == ["corrupt_line" if ending else "torn_tail"]


@pytest.mark.parametrize("happening", MOVES, ids=name)
@pytest.mark.parametrize("events", [RULE_2, RULE_3], ids=["rule 2", "rule 3"])
def test_a_fragment_of_a_dispatch_result_or_decision_is_not_harmless(
    events: list[dict[str, Any]], happening: dict[str, object]
) -> None:
    assert rule(plan_of_text(log(turn_start(), *events) + torn(happening)), "a") == 4


def test_a_fragment_is_harmless_from_the_byte_on_from_which_its_type_is_certain() -> None:
    line = encoded(user("a long word"), 4)
    certain = line.index(b'"time"') - 1
    for stop in range(1, len(line)):
        plan = plan_of_text(log(turn_start(), *RULE_2) + line[:stop])
        assert rule(plan, "a") == (2 if stop >= certain else 4), line[:stop]


@pytest.mark.parametrize(
    "line",
    [
        b'{"seq":3,"type":"user_message","data":{"content":"x"}}{"seq":4,"type":"tool_c',
        b'\0\0{"seq":3,"type":"user_message","da',
        b'{"seq":3,"type":"user_message" \xff ,"data":{',
        b'{"seq":3,"data":{"type":"user_message","content":"x',
        b'{"seq":3,"type":"user_message","data":{"v":[{"seq":9,"type":"tool_call"',
        b'{"seq":3,"type":"user_mess',
        b'{"seq":3,"type":["user_message"],"da',
        b'["type","user_message"',
    ],
)
def test_a_type_that_is_not_the_fragments_own_with_certainty_makes_nothing_harmless(line: bytes) -> None:
    assert rule(plan_of_text(log(turn_start(), *RULE_2) + line), "a") == 4


def test_a_dispatch_after_an_unreadable_turn_boundary_may_be_another_turns() -> None:
    """The fragment moved no call, but what follows it may lie in a turn of its own."""
    for boundary in (turn_start(), turn_end()):
        plan = plan_of(turn_start(), names("a"), torn(boundary), dispatch("b"))
        assert rule(plan, "a") == 4
        assert row(plan, "a", 2).lines == (3,)
        assert rule(plan_of(turn_start(), *RULE_2, torn(boundary), dispatch("b")), "a") == 2
        closed = plan_of(turn_start(), step_start(), names("a"), torn(boundary), dispatch("b"), step_end())
        assert rule(closed, "a") == 4


def test_a_step_end_after_an_unreadable_step_start_may_be_that_steps() -> None:
    plan = plan_of(turn_start(), step_start(), names("a"), torn(step_start()), step_end())
    assert rule(plan, "a") == 4
    assert row(plan, "a", 3).lines == (4,)
    assert rule(plan_of(turn_start(), *RULE_3, torn(step_start()), step_end()), "a") == 3


# ---- doubtful: nothing to repair, and still not clean


DOUBTS = [GARBAGE, torn(turn_start()), b'{"seq":1,"type":"turn_st', torn(event("turn_begin"))]


@pytest.mark.parametrize("line", DOUBTS, ids=name)
def test_calls_owed_outside_every_turn_after_a_line_that_may_have_opened_one_are_a_doubt(line: bytes) -> None:
    plan = plan_of(user(), line, names("a"))
    assert (plan.status, plan.repairs, plan.open_turns) == ("doubtful", (), ())
    assert "line 2" in plan.doubt
    assert "line 3" in plan.doubt


@pytest.mark.parametrize(
    "line", [torn(user()), torn(turn_end()), torn(result("x")), torn(speaks())], ids=name
)
def test_a_line_that_certainly_opened_no_turn_is_no_doubt(line: bytes) -> None:
    assert plan_of(user(), line, names("a")).status == "clean"


@pytest.mark.parametrize(
    "events",
    [
        [names("a"), GARBAGE],  # the call was named before
        [GARBAGE, names("a"), result("a")],  # and this one owes nothing
        [GARBAGE, turn_start(), names("a"), turn_end()],  # this one's turn was closed
        [GARBAGE, turn_start(), turn_end()],
        [GARBAGE, user()],
        [names("a")],  # without a corrupt line
    ],
)
def test_nothing_owed_outside_after_the_line_is_no_doubt(events: list[dict[str, Any]]) -> None:
    plan = plan_of(user(), *events)
    assert (plan.status, plan.doubt) == ("clean", "")


def test_a_crashed_log_is_crashed_and_not_doubtful() -> None:
    assert plan_of(GARBAGE, names("a"), turn_start()).status == "crashed"
    assert plan_of(turn_start(), GARBAGE).status == "crashed"


def test_the_doubt_names_the_nearest_line_before_the_call() -> None:
    assert "line 3" in plan_of(GARBAGE, user(), GARBAGE, names("a"), GARBAGE).doubt


def test_a_corrupt_turn_end_leaves_its_turn_open_rather_than_guessed_closed() -> None:
    plan = plan_of(turn_start(), names("a"), dispatch("a"), result("a"), torn(turn_end()))
    assert (plan.status, ids(plan)) == ("crashed", [])


def test_a_corrupt_result_leaves_its_call_owed() -> None:
    plan = plan_of(turn_start(), names("a", "b"), dispatch("b"), torn(result("b")), result("a"))
    assert [(e.tool_call_id, e.rule) for e in plan.owed] == [("b", 1)]


def test_a_denied_or_waiting_call_past_a_corrupt_line_needs_a_person() -> None:
    plan = plan_of(turn_start(), names("a"), asks("r", "a"), denies("r"), GARBAGE)
    assert owed(plan, "a").needs_acknowledgement
