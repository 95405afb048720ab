"""The order of the timeline under folds and filters."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers import GARBAGE, dispatch, names, result, speaks, step_end, step_start, turn_end, turn_start
from tests.tui.demo import app_on, clean_log, crashed, drive, says, two_unknown, write
from triage.cli import main
from triage.log.codes import TYPES
from triage.session import open_session
from triage.tui.calls import Calls
from triage.tui.timeline import Timeline, call_of, following, key, line_of
from triage.tui.timeline_rows import TimelineRows


def timeline(path: str) -> Timeline:
    return Timeline(Calls(open_session(path)))


def lines(shown: Timeline) -> list[tuple[int, int]]:
    return [(line_of(row), call_of(row)) for row in shown.rows]


def test_what_is_closed_is_folded_and_what_is_open_is_not(tmp_path: Path) -> None:
    shown = timeline(write(tmp_path, crashed()))
    assert lines(shown) == [
        (1, 0), (2, 0), (13, 0),  # the prompt and two closed turns
        (21, 0), (22, 0), (23, 0),  # the open turn, its prompt, its closed step
        (28, 0), (29, 0), (29, 1), (29, 2), (29, 3), (30, 0),  # the open step, its calls, the dispatch
        (31, 0),  # the end of the log
    ]  # fmt: skip


def test_unfolding_a_turn_shows_its_steps_folded(tmp_path: Path) -> None:
    shown = timeline(write(tmp_path, clean_log()))
    shown.unfold(key(1))
    assert lines(shown) == [(1, 0), (2, 0), (3, 0), (8, 0), (11, 0), (12, 0), (23, 0)]


def test_folding_again_gives_the_rows_of_before(tmp_path: Path) -> None:
    shown = timeline(write(tmp_path, crashed()))
    before = list(shown.rows)
    shown.unfold(key(2))
    shown.unfold(key(4))
    shown.fold(key(4))
    assert shown.fold(key(3)) == key(2)
    assert list(shown.rows) == before


def test_folding_inside_folds_what_lies_around(tmp_path: Path) -> None:
    shown = timeline(write(tmp_path, crashed()))
    assert shown.fold(key(29, 2)) == key(29)
    assert shown.fold(key(29)) == key(28)
    assert shown.fold(key(28)) == key(21)


def test_each_line_can_be_revealed(tmp_path: Path) -> None:
    path = write(tmp_path, crashed())
    for line in range(1, 31):
        shown = timeline(path)
        index = shown.reveal(key(line))
        assert shown.rows[index] == key(line)


def test_revealing_leaves_a_filter_that_hides_the_row(tmp_path: Path) -> None:
    shown = timeline(write(tmp_path, crashed()))
    shown.set_filter("problems")
    index = shown.reveal(key(8))
    assert shown.rows[index] == key(8)
    assert shown.filter == "all"


def test_problems_are_owed_and_left_calls_and_what_cannot_be_read(tmp_path: Path) -> None:
    left = [turn_start(1), names("a"), turn_end(), GARBAGE]
    shown = timeline(write(tmp_path, [*left, turn_start(2), names("b", "c")]))
    assert [(line_of(row), call_of(row)) for row in shown.problems] == [(2, 1), (4, 0), (6, 1), (6, 2)]


def test_an_open_turn_that_owes_nothing_is_a_problem_itself(tmp_path: Path) -> None:
    shown = timeline(write(tmp_path, [turn_start(1), says("go")]))
    assert list(shown.problems) == [key(1)]


def test_next_goes_round_the_end(tmp_path: Path) -> None:
    shown = timeline(write(tmp_path, crashed()))
    first, last = shown.problems[0], shown.problems[-1]
    assert shown.next_problem(last, 1) == first
    assert shown.next_problem(first, -1) == last
    assert following(type(shown.problems)("q"), 5, 1) is None


def test_the_filter_for_calls_shows_only_calls(tmp_path: Path) -> None:
    path = write(tmp_path, crashed())
    shown = timeline(path)
    shown.set_filter("calls")
    types = {TYPES[shown.journal.codes[line_of(row) - 1]] for row in shown.rows[:-1] if not call_of(row)}
    assert types == {
        "turn_start",
        "tool_call",
        "tool_result",
        "assistant_message",
    }


def test_an_unclosed_step_ends_with_its_turn(tmp_path: Path) -> None:
    path = write(tmp_path, [turn_start(1), step_start(), speaks(), turn_end(), says("next")])
    assert timeline(path).last_of(2) == 3


@pytest.mark.parametrize("filter", ["all", "calls", "problems"])
def test_an_empty_log_has_one_row(tmp_path: Path, filter: str) -> None:
    shown = timeline(write(tmp_path, []))
    shown.set_filter(filter)
    assert lines(shown) == [(1, 0)]


def test_a_call_that_is_named_again_is_the_same_call(tmp_path: Path) -> None:
    path = write(tmp_path, [turn_start(1), names("a"), names("a"), dispatch("a")])
    calls = Calls(open_session(path))
    assert calls.owed_at(3, "a") is calls.owed_at(2, "a") is not None


def test_an_id_of_an_earlier_turn_is_not_the_one_that_is_owed(tmp_path: Path) -> None:
    first = [turn_start(1), names("call_0"), dispatch("call_0"), result("call_0"), step_end(), turn_end()]
    path = write(tmp_path, [*first, turn_start(2), names("call_0")])
    calls = Calls(open_session(path))
    assert calls.owed_at(2, "call_0") is None
    assert calls.owed_at(8, "call_0") is not None


@pytest.mark.parametrize(
    "fixture", ["claude/killed-one", "codex/killed", "copilot/started", "dsh/killed", "pi/killed", ""]
)
def test_a_call_and_its_result_that_no_tool_gave_are_no_success_in_any_format(
    fixture: str, tmp_path: Path
) -> None:
    path = write(tmp_path, two_unknown())
    if fixture:
        shutil.copy(Path(__file__).parents[1] / "fixtures" / f"{fixture}.jsonl", path)
    plan = open_session(path).plan
    given = {"W1": "deny"}
    acks = [f"--ack={o.key}={given.get(str(o.rule), 'ran')}" for o in plan.owed if o.needs_acknowledgement]
    assert main(["apply", path, *acks]) == 0
    rows = TimelineRows(Timeline(Calls(open_session(path))))
    for owed in plan.owed:
        number = [call.id for call in rows.calls.named(owed.line)].index(owed.tool_call_id) + 1
        answered = rows.calls.after(owed.line, "tool_result", owed.tool_call_id)
        assert answered
        for row in (key(owed.line, number), key(answered)):
            said = "".join(text for text, _ in rows._make(row, False).spans)
            assert " + " in said and "✓" not in said and "synthetic: " in said, said


def test_an_earlier_call_whose_result_no_tool_gave_is_shown_as_such(tmp_path: Path) -> None:
    closed = result("c1", "…", metadata={"synthetic": True, "risk": "tool_outcome_unknown", "rule": 1})
    shown = drive(
        app_on(write(tmp_path, [turn_start(1), names("c1"), closed, names("c2"), dispatch("c2")])),
        ["enter"],
        (100, 40),
    )
    assert "+ synthetic: outcome unknown" in shown and "✓ …" not in shown
