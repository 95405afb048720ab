"""Where in the loop it died: each row of the table, which row wins, and the figures beside it."""

import pytest

from tests.helpers import (
    Happening,
    allows,
    asks,
    asks_input,
    denies,
    dispatch,
    event,
    gives_input,
    log,
    names,
    plan_of,
    plan_of_text,
    request_header,
    result,
    speaks,
    step_end,
    step_start,
    turn_end,
    turn_start,
    user,
    with_repair,
)
from triage.recovery.boundary import Boundary


def boundary(*happenings: Happening) -> Boundary:
    return plan_of(*happenings).boundary


def died(*happenings: Happening) -> tuple[str, int | None]:
    """The boundary's name and the line that proves it."""
    found = boundary(*happenings)
    return found.name, found.line


# ---- each row


def test_terminal_when_no_turn_is_open() -> None:
    assert died(turn_start(), names("a"), turn_end(), user()) == ("terminal", 4)
    assert died() == ("terminal", None)


def test_tool_open_when_an_owed_outcome_is_unknown_by_whatever_rule() -> None:
    assert died(turn_start(), names("a"), dispatch("a")) == ("tool_open", 3)  # rule 1
    assert died(turn_start(), names("a")) == ("tool_open", 2)  # rule 4


def test_awaiting_approval_while_an_approval_is_open() -> None:
    assert died(turn_start(), names("a"), asks("r", "a")) == ("awaiting_approval", 3)
    assert boundary(turn_start(), names("a"), asks("r", "a")).request_id == "r"


def test_awaiting_input_while_a_question_is_open() -> None:
    assert died(turn_start(), names("a"), asks_input("r", "a")) == ("awaiting_input", 3)


def test_awaiting_for_a_request_that_names_no_call() -> None:
    assert died(turn_start(), speaks(), asks("r")) == ("awaiting_approval", 3)


def test_not_awaiting_once_the_call_was_answered() -> None:
    assert boundary(turn_start(), names("a"), asks("r", "a"), result("a")).name == "stable"
    nested = [turn_start(), names("a"), turn_start(), asks("r", "a"), result("a")]
    assert boundary(*nested).name == "prepared"


def test_resolution_pending_when_nothing_shows_that_a_denial_was_applied() -> None:
    found = boundary(turn_start(), names("a"), asks("r", "a"), denies("r", command_id="k7"))
    assert (found.name, found.line, found.request_id, found.command_id) == (
        "resolution_pending",
        4,
        "r",
        "k7",
    )


def test_resolution_pending_when_an_allowed_call_was_never_dispatched() -> None:
    events = [turn_start(), names("a", "b"), dispatch("b"), result("b"), asks("r", "a"), allows("r")]
    assert died(*events) == ("resolution_pending", 6)


def test_resolution_pending_when_an_answer_was_given_and_nothing_followed() -> None:
    assert died(turn_start(), speaks(), asks_input("r"), gives_input("r")) == ("resolution_pending", 4)


def test_not_resolution_pending_once_the_decision_was_applied() -> None:
    applied = [turn_start(), names("a"), asks("r", "a"), allows("r"), dispatch("a"), result("a")]
    assert boundary(*applied).name == "stable"
    denied = [turn_start(), names("a"), asks("r", "a"), denies("r"), result("a", "denied")]
    assert boundary(*denied).name == "stable"
    assert boundary(turn_start(), asks_input("r"), gives_input("r"), speaks()).name == "stable"


def test_an_event_before_the_decision_does_not_show_that_it_was_applied() -> None:
    assert boundary(turn_start(), asks_input("r"), speaks(), gives_input("r")).name == "resolution_pending"


def test_model_attempt_open_after_a_request_that_no_message_answered() -> None:
    assert died(turn_start(), step_start(), request_header()) == ("model_attempt_open", 3)


def test_model_attempt_open_after_a_step_start_in_a_log_without_request_headers() -> None:
    assert died(turn_start(), user(), step_start()) == ("model_attempt_open", 3)


def test_a_step_start_is_no_attempt_in_a_log_that_records_requests_anywhere() -> None:
    first = [turn_start(), step_start(), request_header(), speaks(), step_end(), turn_end()]
    assert boundary(*first, turn_start(), step_start()).name == "prepared"


def test_not_model_attempt_open_once_the_model_spoke_or_the_step_ended() -> None:
    assert boundary(turn_start(), step_start(), request_header(), speaks()).name == "stable"
    assert boundary(turn_start(), step_start(), request_header(), step_end()).name == "prepared"


def test_calls_named_when_each_owed_call_did_not_start() -> None:
    assert died(turn_start(), step_start(), names("a", "b"), step_end()) == ("calls_named", 3)


def test_stable_when_the_model_spoke_and_nothing_is_owed() -> None:
    assert died(turn_start(), speaks(), user()) == ("stable", 2)


def test_prepared_when_the_turn_opened_and_nothing_happened() -> None:
    assert died(turn_start(), user()) == ("prepared", 1)


# ---- which row wins


UNKNOWN = [names("u"), dispatch("u")]
WAITING = [names("w"), asks("r", "w")]
DENIED = [names("d"), asks("q", "d"), denies("q")]
ATTEMPT = [step_start(), request_header()]
NAMED = [step_start(), names("n"), step_end()]


@pytest.mark.parametrize(
    ("events", "name"),
    [
        ([*UNKNOWN, *WAITING, *DENIED, *ATTEMPT], "tool_open"),
        ([*DENIED, *WAITING, *ATTEMPT], "awaiting_approval"),
        ([*DENIED, *ATTEMPT], "resolution_pending"),
        ([*NAMED, *ATTEMPT], "model_attempt_open"),
        ([*NAMED], "calls_named"),
        ([*NAMED, result("n")], "stable"),
    ],
)
def test_the_first_row_that_holds_wins(events: list[Happening], name: str) -> None:
    assert boundary(turn_start(), *events).name == name


@pytest.mark.parametrize(
    ("outer", "name"),
    [
        (UNKNOWN, "tool_open"),
        (WAITING, "awaiting_approval"),
        ([names("w"), asks_input("r", "w")], "awaiting_input"),
        (DENIED, "resolution_pending"),
    ],
)
@pytest.mark.parametrize("inner", [[], [speaks()], ATTEMPT], ids=["quiet", "spoke", "asked the model"])
def test_a_quiet_inner_turn_never_hides_what_is_open_in_an_outer_one(
    outer: list[Happening], name: str, inner: list[Happening]
) -> None:
    assert boundary(turn_start(), *outer, turn_start(), *inner).name == name


@pytest.mark.parametrize("outer", [ATTEMPT, NAMED, [speaks()]])
def test_the_other_rows_look_at_the_innermost_turn_only(outer: list[Happening]) -> None:
    headers = [request_header()]  # so that a step_start is no attempt
    assert boundary(*headers, turn_start(), *outer, turn_start()).name == "prepared"
    assert boundary(*headers, turn_start(), *outer, turn_start(), speaks()).name == "stable"


def test_a_decision_in_an_inner_turn_for_a_call_around_is_applied_by_that_call() -> None:
    around = [turn_start(), names("a"), turn_start(), asks("r", "a"), denies("r")]
    assert boundary(*around).name == "resolution_pending"
    assert boundary(*around, speaks()).name == "resolution_pending"  # of the inner turn: no sign of it
    assert boundary(*around, result("a")).name == "prepared"


def test_a_repaired_log_is_terminal() -> None:
    text = log(turn_start(), *WAITING, turn_start(), *UNKNOWN, *ATTEMPT)
    assert plan_of_text(with_repair(text, plan_of_text(text).repairs)).boundary.name == "terminal"


# ---- the figures


def test_the_round_counts_the_requests_to_the_model_in_this_turn() -> None:
    first = [turn_start(), request_header(), speaks(), turn_end()]
    rounds = [boundary(*first, turn_start(), *[request_header(), speaks()] * n).round for n in range(3)]
    assert rounds == [0, 1, 2]


def test_there_is_no_round_in_a_log_that_records_no_requests() -> None:
    assert boundary(turn_start(), step_start(), speaks()).round is None


def test_an_open_request_carries_its_id_and_what_it_reserved() -> None:
    found = boundary(turn_start(), request_header(request_id="q1", max_output_tokens=4096))
    assert (found.request_id, found.output_tokens_reserved) == ("q1", 4096)


def test_nothing_reserved_is_not_recorded_rather_than_zero() -> None:
    assert boundary(turn_start(), request_header()).output_tokens_reserved is None
    assert boundary(turn_start(), request_header(max_output_tokens=0)).output_tokens_reserved == 0


@pytest.mark.parametrize("odd", ["4096", 4096.0, True, None, [4096]])
def test_a_figure_that_is_no_integer_is_absent(odd: object) -> None:
    found = boundary(turn_start(max_input_tokens=odd), request_header(max_output_tokens=odd))
    assert (found.output_tokens_reserved, found.input_tokens_left) == (None, None)


def test_an_answered_request_reserves_nothing_any_more() -> None:
    found = boundary(turn_start(), request_header(request_id="q1", max_output_tokens=4096), speaks())
    assert (found.request_id, found.output_tokens_reserved) == (None, None)


def test_input_tokens_left_is_the_limit_minus_what_this_turn_used() -> None:
    used = [request_header(max_input_tokens=1000), speaks(usage={"input_tokens": 300})]
    assert boundary(turn_start(), *used, *used).input_tokens_left == 400
    earlier = [turn_start(), *used, turn_end()]
    assert boundary(*earlier, turn_start(), *used).input_tokens_left == 700
    assert (
        boundary(turn_start(max_input_tokens=500), speaks(usage={"input_tokens": 20})).input_tokens_left
        == 480
    )


def test_input_tokens_left_is_never_below_zero() -> None:
    used = [request_header(max_input_tokens=1000), speaks(usage={"input_tokens": 1001})]
    assert boundary(turn_start(), *used).input_tokens_left == 0


def test_no_limit_recorded_means_none() -> None:
    assert boundary(turn_start(), speaks(usage={"input_tokens": 300})).input_tokens_left is None


@pytest.mark.parametrize("usage", [None, 5, [], {}, {"input_tokens": "9"}, {"input_tokens": -9}])
def test_odd_usage_counts_as_none(usage: object) -> None:
    events = [turn_start(), request_header(max_input_tokens=1000), speaks(usage=usage)]
    assert boundary(*events).input_tokens_left == 1000


def test_a_deadline_is_carried_along_as_the_log_wrote_it() -> None:
    assert boundary(turn_start(deadline="2026-05-20T10:00:00Z")).deadline == "2026-05-20T10:00:00Z"
    assert boundary(turn_start()).deadline is None


def test_every_sequence_of_events_has_a_boundary() -> None:
    events = [step_start(), *NAMED, *ATTEMPT, *DENIED, *WAITING, *UNKNOWN, event("heartbeat"), turn_end()]
    for stop in range(len(events)):
        assert boundary(turn_start(), *events[:stop]).name
