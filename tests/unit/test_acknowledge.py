"""The gate: who needs a person, what an answer is, and when a plan may be applied."""

import pytest

from tests.helpers import (
    Happening,
    asks,
    asks_input,
    denies,
    dispatch,
    ids,
    kinds,
    names,
    owed,
    plan_of,
    step_start,
    turn_start,
    user,
)
from triage.recovery.acknowledge import (
    Answer,
    BadAnswer,
    Unanswered,
    answered,
    check_answer,
    findings_for,
    found_in_words,
    keep_valid,
    missing,
    parse_answer,
)
from triage.recovery.plan import Plan

RAN = Answer("ran", "charge 7 is in the ledger", "kim", "2026-05-20T09:00:00.000Z")
DENIED = Answer("deny")

# u: unknown by its dispatch; n: not started; w: waits; d: denied
MIXED = [
    turn_start(),
    names("u", "n", "w", "d"),
    dispatch("u"),
    asks("r", "w"),
    asks("q", "d"),
    denies("q"),
]


def mixed() -> Plan:
    return plan_of(*MIXED)


# ---- who needs a person


def test_every_unknown_outcome_and_every_waiting_call_needs_a_person_and_no_other_does() -> None:
    plan = mixed()
    assert [e.tool_call_id for e in plan.owed if e.needs_acknowledgement] == ["u", "w"]
    assert missing(plan, {}) == ("u", "w")


@pytest.mark.parametrize("events", [[names("u")], [names("u"), dispatch("u")], [step_start(), names("u")]])
def test_an_unknown_outcome_needs_a_person_by_whatever_rule(events: list[Happening]) -> None:
    assert missing(plan_of(turn_start(), *events), {}) == ("u",)


# ---- the gate


def test_nothing_is_given_out_while_an_entry_that_needs_a_person_has_no_answer() -> None:
    for answers in ({}, {"u": RAN}, {"w": DENIED}, {"n": RAN}):
        with pytest.raises(Unanswered) as caught:
            answered(mixed(), answers)
        assert caught.value.missing == tuple(key for key in ("u", "w") if key not in answers)
        for key in caught.value.missing:
            assert key in str(caught.value)


def test_the_whole_plan_is_given_out_in_order_once_each_was_answered() -> None:
    plan = mixed()
    repairs = answered(plan, {"u": RAN, "w": DENIED})
    assert [(r.type, r.key) for r in repairs] == [(r.type, r.key) for r in plan.repairs]


def test_an_answer_never_counts_for_another_call_with_the_same_id() -> None:
    plan = plan_of(turn_start(1), names("a"), turn_start(2), names("a"))
    assert missing(plan, {"2/a": RAN}) == ("0/a",)
    with pytest.raises(BadAnswer):
        answered(plan, {"a": RAN})
    assert len(answered(plan, {"2/a": RAN, "0/a": RAN})) == 4


def test_a_log_that_needs_no_person_has_an_open_gate() -> None:
    plan = plan_of(turn_start(), names("n", "d"), asks("q", "d"), denies("q"), dispatch("x", "bash"), user())
    assert answered(plan_of(turn_start()), {}) == plan_of(turn_start()).repairs
    assert missing(plan, {"x": RAN}) == ()


def test_an_answer_for_no_entry_is_refused_although_all_others_are_there() -> None:
    with pytest.raises(BadAnswer, match="nobody"):
        answered(mixed(), {"u": RAN, "w": DENIED, "nobody": RAN})


@pytest.mark.parametrize("key", ["u", "n", "d"])
def test_deny_is_a_finding_for_waiting_calls_only(key: str) -> None:
    with pytest.raises(BadAnswer, match="deny"):
        answered(mixed(), {"u": RAN, "w": DENIED, key: DENIED})


@pytest.mark.parametrize("finding", ["ran", "did-not-run", "could-not-tell", "yes", ""])
def test_a_waiting_call_takes_no_other_finding_than_deny(finding: str) -> None:
    with pytest.raises(BadAnswer):
        answered(mixed(), {"u": RAN, "w": Answer(finding)})


@pytest.mark.parametrize("finding", ["Ran", "ran ", "", "acknowledged", "did_not_run"])
def test_an_unknown_finding_is_refused(finding: str) -> None:
    with pytest.raises(BadAnswer):
        check_answer(mixed(), "u", finding)


def test_each_entry_says_which_findings_it_takes() -> None:
    plan = mixed()
    assert findings_for(owed(plan, "w")) == ("deny",)
    for id in ("u", "n", "d"):
        assert findings_for(owed(plan, id)) == ("ran", "did-not-run", "could-not-tell")


def test_a_question_is_closed_with_deny_too() -> None:
    plan = plan_of(turn_start(), names("a"), asks_input("r", "a"))
    assert len(answered(plan, {"a": DENIED})) == len(plan.repairs)


# ---- what an answer does to the repair


def test_an_answer_is_recorded_in_the_metadata_of_its_result_and_nowhere_else() -> None:
    plan = mixed()
    repairs = {r.key: r.data for r in answered(plan, {"u": RAN, "w": DENIED}) if r.type == "tool_result"}
    assert repairs["u"]["metadata"] == {
        "synthetic": True,
        "risk": "tool_outcome_unknown",
        "rule": 1,
        "acknowledged": {
            "finding": "ran",
            "note": "charge 7 is in the ledger",
            "operator": "kim",
            "at": "2026-05-20T09:00:00.000Z",
        },
    }
    assert set(repairs["u"]) == {"tool_call_id", "name", "content", "metadata"}
    assert "acknowledged" not in repairs["n"]["metadata"]


@pytest.mark.parametrize("finding", ["ran", "did-not-run", "could-not-tell"])
def test_an_answer_never_changes_the_risk_or_the_rule(finding: str) -> None:
    plan = mixed()
    for repair in answered(plan, {"u": Answer(finding), "n": Answer(finding), "w": DENIED}):
        if repair.type == "tool_result":
            entry = owed(plan, repair.data["tool_call_id"])
            assert repair.data["metadata"]["risk"] == entry.risk
            assert repair.data["metadata"]["rule"] == entry.rule


def test_the_content_says_what_the_operator_found() -> None:
    plan = plan_of(turn_start(), names("u"))
    contents = {
        finding: answered(plan, {"u": Answer(finding)})[0].data["content"]
        for finding in ("ran", "did-not-run", "could-not-tell")
    }
    assert len(set(contents.values())) == 3
    assert all(content.startswith(str(plan.repairs[0].data["content"])) for content in contents.values())
    noted = answered(plan, {"u": RAN})[0].data["content"]
    assert "kim" in noted
    assert "charge 7 is in the ledger" in noted


def test_found_in_words_leaves_out_what_was_not_given() -> None:
    assert found_in_words(Answer("ran")) == "An operator checked: it did run."
    assert "Note" not in found_in_words(Answer("ran", note="  "))


def test_the_plan_itself_is_not_changed_by_answers() -> None:
    plan = mixed()
    before = [dict(r.data) for r in plan.repairs]
    answered(plan, {"u": RAN, "w": DENIED})
    assert [dict(r.data) for r in plan.repairs] == before


def test_the_events_that_close_a_request_are_unchanged_by_the_answer() -> None:
    plan = mixed()
    assert [r for r in answered(plan, {"u": RAN, "w": DENIED}) if r.type != "tool_result"] == [
        r for r in plan.repairs if r.type != "tool_result"
    ]
    assert ("approval_decided", "r") in kinds(plan)


# ---- KEY=FINDING[:NOTE]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u=ran", ("u", "ran", "")),
        ("u=did-not-run:asked the bank", ("u", "did-not-run", "asked the bank")),
        ("u=could-not-tell:", ("u", "could-not-tell", "")),
        ("u=ran:a=ran:b", ("u", "ran", "a=ran:b")),
        ("u=ran:see https://x/?a=ran", ("u", "ran", "see https://x/?a=ran")),
        ("w=deny", ("w", "deny", "")),
        ("w=deny:not on a Friday", ("w", "deny", "not on a Friday")),
    ],
)
def test_an_answer_is_split_at_its_key_and_finding(text: str, expected: tuple[str, str, str]) -> None:
    assert parse_answer(text, mixed()) == expected


@pytest.mark.parametrize(
    "id",
    ["a=b", "a=b=c", "a:b", "a=b:c", "=", ":", "", "a=running", "a=ran-1", "ran", "a=ran=", "é=ö", "1/a"],
)
def test_an_id_may_hold_equal_signs_and_colons(id: str) -> None:
    plan = plan_of(turn_start(), names(id))
    assert parse_answer(f"{id}=ran:it=ran:x", plan) == (id, "ran", "it=ran:x")
    assert parse_answer(f"{id}=could-not-tell", plan) == (id, "could-not-tell", "")


def test_the_key_ends_at_the_first_equal_sign_that_a_finding_follows() -> None:
    plan = plan_of(turn_start(), names("a", "a=ran:b"))
    assert parse_answer("a=ran:b=ran", plan) == ("a", "ran", "b=ran")


def test_an_id_that_looks_like_an_answer_can_be_answered_where_no_shorter_key_is_meant() -> None:
    plan = plan_of(turn_start(), names("a=ran:b"))
    assert parse_answer("a=ran:b=did-not-run:c", plan) == ("a=ran:b", "did-not-run", "c")


def test_an_id_that_the_plan_holds_twice_is_named_with_the_seq_of_its_turn() -> None:
    plan = plan_of(turn_start(1), names("a"), turn_start(2), names("a", "b"))
    assert [entry.key for entry in plan.owed] == ["2/a", "b", "0/a"]
    assert parse_answer("2/a=ran", plan) == ("2/a", "ran", "")
    with pytest.raises(BadAnswer, match="2/a, b, 0/a"):
        parse_answer("a=ran", plan)


@pytest.mark.parametrize(
    "text", ["", "u", "u:ran", "u=", "u=maybe", "u= ran", "u=ran-ish", "u=RAN", "=", "ran"]
)
def test_what_holds_no_finding_is_no_answer_and_it_is_said_how_one_looks(text: str) -> None:
    with pytest.raises(BadAnswer, match="KEY=FINDING"):
        parse_answer(text, mixed())


@pytest.mark.parametrize("text", ["nobody=ran", "=ran", "U=ran", "0/u=ran", " u=ran"])
def test_an_unknown_key_is_refused_with_the_keys_that_there_are(text: str) -> None:
    with pytest.raises(BadAnswer, match="u, n, w, d"):
        parse_answer(text, mixed())


@pytest.mark.parametrize("text", ["u=deny", "n=deny", "w=ran", "w=could-not-tell:x"])
def test_a_finding_that_its_entry_does_not_take_is_refused(text: str) -> None:
    with pytest.raises(BadAnswer, match="does not take"):
        parse_answer(text, mixed())


# ---- a plan that was rebuilt


ANSWERS = {"u": RAN, "w": DENIED}


def test_answers_hold_when_the_log_moved_and_their_entries_did_not() -> None:
    grown = plan_of(*MIXED, user("still alive"))
    assert keep_valid(ANSWERS, mixed().owed, grown.owed) == ANSWERS


def test_an_answer_is_dropped_when_its_call_was_answered_meanwhile() -> None:
    grown = plan_of(*MIXED, {"type": "tool_result", "data": {"tool_call_id": "u"}})
    assert keep_valid(ANSWERS, mixed().owed, grown.owed) == {"w": DENIED}


def test_an_answer_is_dropped_when_the_rule_of_its_call_changed() -> None:
    grown = plan_of(*MIXED, dispatch("w"))
    assert keep_valid(ANSWERS, mixed().owed, grown.owed) == {"u": RAN}


@pytest.mark.parametrize("field", ["risk", "rule", "name", "arguments", "line", "turn_line"])
def test_an_answer_is_dropped_when_its_entry_is_not_the_same(field: str) -> None:
    plan = mixed()
    other = owed(plan, "u")._replace(**{field: "another"})  # type: ignore[arg-type]
    entries = [other if entry.key == "u" else entry for entry in plan.owed]
    assert keep_valid(ANSWERS, plan.owed, entries) == {"w": DENIED}


def test_an_answer_for_an_entry_that_was_in_no_earlier_plan_is_dropped() -> None:
    plan = mixed()
    assert keep_valid(ANSWERS, [e for e in plan.owed if e.key != "u"], plan.owed) == {"w": DENIED}
    assert keep_valid({"x": RAN}, plan.owed, plan.owed) == {}


def test_arguments_that_are_nested_too_deep_to_compare_drop_an_answer_and_raise_nothing() -> None:
    def nested() -> Plan:
        deep = b'{"type":"assistant_message","data":{"tool_calls":[{"id":"a","arguments":%s}]}}'
        return plan_of(turn_start(), deep % (b"[" * 50_000 + b"]" * 50_000))

    assert ids(nested()) == ["a"]
    assert keep_valid({"a": RAN}, nested().owed, nested().owed) == {}
