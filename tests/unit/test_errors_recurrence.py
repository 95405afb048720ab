"""When a failure that came back is worth an issue."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.errors.recurrence import ACTIONS, Key, Occurrence, Policy, Row, Sighting, decide, fold

CASES = Path(__file__).parents[1] / "fixtures" / "cases" / "recurrence.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line]
KEY = Key("tool.execution", "r1", "Error: x", "ExecutionFailure")


def seen(time_ms, line=1, path="a.jsonl"):
    return Sighting(path, line, None if time_ms is None else f"t{time_ms}", time_ms)


def occurrences(*times, key=KEY):
    return [Occurrence(key, f"/w{n}", seen(time, n)) for n, time in enumerate(times, 1)]


def last_decision(*times, policy=None):
    return fold(occurrences(*times))[KEY].decision(policy or Policy())


@pytest.mark.parametrize("row", ROWS)
def test_each_recorded_case_gets_its_decision_and_action(row):
    policy = Policy(**row["policy"])
    decision = decide(policy, row["current_count"], row["last_seen_ms"], row["now_ms"])
    assert (decision, ACTIONS[decision]) == (row["decision"], row["action"])


def test_the_policy_is_two_within_a_minute_unless_told():
    assert Policy() == Policy(min_recurrence=2, grouping_window_ms=60_000, max_per_turn=5)


def test_the_most_a_turn_may_ask_for_limits_no_decision():
    assert decide(Policy(max_per_turn=0), 9, 0, 0) == "BurstThresholdReached"


@pytest.mark.parametrize(
    ("policy", "count", "last", "now", "decision"),
    [
        (Policy(0), 0, None, 0, "Reject"),
        (Policy(0), 9, 0, 1, "Reject"),
        (Policy(-1), 9, 0, 1, "Reject"),
        (Policy(1), 0, None, 5, "BurstThresholdReached"),
        (Policy(2), 0, None, 5, "BurstCoalesced"),
        (Policy(3), 1, 0, 1, "BurstCoalesced"),
        (Policy(3), 2, 0, 1, "BurstThresholdReached"),
        (Policy(2), 1, 1000, 61_000, "BurstThresholdReached"),
        (Policy(2), 1, 1000, 61_001, "ChronicRecurrence"),
        (Policy(3), 1, 1000, 61_001, "BurstCoalesced"),
        (Policy(2), 1, 1000, 999, "ChronicRecurrence"),
        (Policy(2), 1, 1000, 0, "ChronicRecurrence"),
        (Policy(2), 1, 1000, 1000, "BurstThresholdReached"),
        (Policy(2, 0), 1, 1000, 1000, "ChronicRecurrence"),
        (Policy(2, 0), 1, None, 1000, "BurstThresholdReached"),
        (Policy(2), 1, 1000, None, "BurstThresholdReached"),
    ],
)
def test_each_line_of_the_recurrence_rules_decides(policy, count, last, now, decision):
    assert decide(policy, count, last, now) == decision


def test_the_same_failure_is_one_row_with_its_first_and_its_last_sighting():
    rows = fold(occurrences(0, 10, 20))
    assert rows == {KEY: Row(KEY, "/w1", 3, seen(0, 1), seen(20, 3), previous_ms=10)}


@pytest.mark.parametrize("field", Key._fields)
def test_failures_that_differ_in_one_part_of_the_key_are_separate_rows(field):
    other = KEY._replace(**{field: "RecoveredError"})
    rows = fold([*occurrences(0, 1), *occurrences(2, key=other)])
    assert {key: row.count for key, row in rows.items()} == {KEY: 2, other: 1}


def test_rows_are_in_the_order_in_which_their_failures_were_first_seen():
    other = KEY._replace(revision="r0")
    assert list(fold([*occurrences(5), *occurrences(1, key=other), *occurrences(6)])) == [
        KEY,
        other,
    ]


def test_a_row_is_decided_by_its_last_occurrence():
    assert last_decision(0) == "BurstCoalesced"
    assert last_decision(0, 60_000) == "BurstThresholdReached"
    assert last_decision(0, 60_001) == "ChronicRecurrence"
    assert last_decision(0, 100_000, 100_001) == "BurstThresholdReached"
    assert last_decision(5, 4) == "ChronicRecurrence"


def test_an_occurrence_after_one_without_a_time_is_not_called_chronic():
    assert last_decision(0, None, 999_999) == "BurstThresholdReached"


def test_the_same_row_can_be_decided_again_under_another_policy():
    assert last_decision(0, 99_999, policy=Policy(3)) == "BurstCoalesced"
    assert last_decision(0, 99_999, policy=Policy(2, 99_999)) == "BurstThresholdReached"
    assert last_decision(0, 99_999, policy=Policy(0)) == "Reject"


def test_folding_leaves_the_rows_it_was_given_as_they_are():
    given_rows = fold(occurrences(0))
    fold(occurrences(1), given_rows)
    assert given_rows[KEY].count == 1


KEYS = st.sampled_from([KEY, KEY._replace(signature="other"), KEY._replace(revision="r2")])
STREAMS = st.lists(
    st.builds(
        Occurrence,
        KEYS,
        st.sampled_from(["/a", "/b"]),
        st.builds(seen, st.none() | st.integers(0, 200_000), st.integers(1, 9)),
    )
)


@given(STREAMS)
def test_the_counts_add_up_to_the_occurrences(stream):
    assert sum(row.count for row in fold(stream).values()) == len(stream)


@given(STREAMS, st.integers(0, 20))
def test_reading_in_pages_counts_the_same_as_reading_at_once(stream, page):
    assert fold(stream[page:], fold(stream[:page])) == fold(stream)


@given(STREAMS)
def test_each_failure_is_counted_in_its_own_order_whatever_lies_between(stream):
    rows = fold(stream)
    for key, row in rows.items():
        assert fold(o for o in stream if o.key == key) == {key: row}


@given(st.integers(1, 5), st.integers(0, 9), st.none() | st.integers(0), st.integers(0))
def test_work_is_created_from_the_policys_count_on_and_never_before(minimum, count, last, now):
    action = ACTIONS[decide(Policy(minimum), count, last, now)]
    assert action == ("CreateWork" if count + 1 >= minimum else "GroupOnly")
