"""The accept screen: nothing is appended before each question has its answer, and nothing by accident."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import dispatch, log, result
from tests.tui.demo import NAME, app_on, clean_log, crashed, drive, settle, two_unknown, write
from triage import draft
from triage.session import open_session

ANSWERED = ["a", "R", "n", "U", "n", "D"]


def size_of(folder: Path) -> int:
    return (folder / NAME).stat().st_size


def metadata(folder: Path) -> dict[str, Any]:
    """What was recorded for each call, by its id."""
    records = [json.loads(line) for line in (folder / NAME).read_bytes().splitlines()]
    found = {}
    for record in records:
        meta = record["data"].get("metadata", {})
        if record["type"] == "tool_result" and meta.get("synthetic"):
            found[record["data"]["tool_call_id"]] = meta
    return found


def test_the_whole_way_from_open_to_clean(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    before = (tmp_path / NAME).read_bytes()
    shown = drive(app, ["n", "enter", "escape", "a", "R", "A", "~"])
    assert "appended 4 records" in shown and "CLEAN" in shown
    assert (tmp_path / NAME).read_bytes().startswith(before)
    assert open_session(NAME).plan.status == "clean"
    assert app.desk.said.startswith(f"{NAME}: appended 4 records")


def test_each_finding_is_recorded_for_its_own_entry(tmp_path: Path) -> None:
    drive(app_on(write(tmp_path, two_unknown())), [*ANSWERED, "A", "~"])
    found = {id: meta.get("acknowledged", {}).get("finding") for id, meta in metadata(tmp_path).items()}
    assert found == {"call_1": "ran", "call_2": "could-not-tell", "call_3": "deny", "call_4": None}


def test_the_append_is_locked_while_an_answer_is_missing(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    size = size_of(tmp_path)
    shown = drive(app, ["a", "R", "n", "U", "A", "enter", "escape", "A", "~"])
    assert "2 of 3 answered · append is locked" in shown
    assert size_of(tmp_path) == size


def test_no_key_for_moving_records_a_finding(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    drive(app, ["a", *"jknNruddgG", "space", "h", "l", "d"])
    assert app.desk.answers == {}


def test_neither_enter_nor_a_appends(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    size = size_of(tmp_path)
    drive(app, [*ANSWERED, "enter", "enter", "escape", "a", "~"])
    assert size_of(tmp_path) == size and len(app.desk.answers) == 3


def test_n_goes_to_the_next_unanswered_also_after_an_answer(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))

    async def steps(pilot: Any) -> None:
        await pilot.press("a")
        seen = [app.screen._owed.key]
        for keys in (["n"], ["n"], ["n"], ["R", "n"], ["N"], ["R", "n"], ["R", "n"]):
            await pilot.press(*keys)
            seen.append(app.screen._owed.key)
        assert seen == ["call_1", "call_2", "call_3", "call_1", "call_2", "call_3", "call_2", "call_3"]

    drive(app, steps)


def test_an_answer_can_be_changed(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    drive(app, ["a", "R", "D", "U", "D"])
    assert app.desk.answers["call_0a92"].finding == "did-not-run"


def test_a_waiting_call_takes_only_deny(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    shown = drive(app, ["a", "n", "n", "R", "U"])
    assert "call_3" not in app.desk.answers
    assert "it waits, it did not run" in shown
    drive(app_on(NAME), ["a", "n", "n", "D"])


def test_a_call_that_did_not_run_takes_no_answer(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    assert "no answer needed" in drive(app, ["a", "j", "R"])
    assert app.desk.answers == {}


def test_a_note_is_part_of_the_answer_whichever_came_first(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    drive(app, ["a", "c", *"seen", "enter", "R", "n", "R", "c", *"RDUA", "enter", "n", "D", "A", "~"])
    acknowledged = {id: meta.get("acknowledged") for id, meta in metadata(tmp_path).items()}
    noted = {id: found["note"] for id, found in acknowledged.items() if found}
    assert noted == {"call_1": "seen", "call_2": "RDUA", "call_3": ""}


def test_the_preview_is_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(write(tmp_path, crashed()))
    monkeypatch.setattr("triage.log.append.utc_now", lambda: None)
    size = size_of(tmp_path)

    async def steps(pilot: Any) -> None:
        from triage.tui.preview import preview

        await pilot.press("a", "R")
        expected = preview(app.desk)
        await pilot.press("A")
        await settle(pilot)
        assert (tmp_path / NAME).read_bytes()[size:] == expected

    drive(app, steps)


def test_a_log_that_moved_is_planned_again_and_fitting_answers_stay(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))

    async def steps(pilot: Any) -> None:
        await pilot.press(*ANSWERED)
        with (tmp_path / NAME).open("ab") as file:
            file.write(log(dispatch("call_3", "bash")))
        size = size_of(tmp_path)
        await pilot.press("A")
        await settle(pilot)
        assert size_of(tmp_path) == size
        assert set(app.desk.answers) == {"call_1", "call_2"}
        assert app.screen._owed.key == "call_3"
        await pilot.press("R", "A")
        await settle(pilot)

    assert "CLEAN" in drive(app, steps)


def test_a_log_that_was_finished_meanwhile_needs_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, [*crashed()[:-2]])
    app = app_on(path)

    async def steps(pilot: Any) -> None:
        await pilot.press("a")
        with (tmp_path / NAME).open("ab") as file:
            file.write(log({"type": "step_end", "data": {}}, {"type": "turn_end", "data": {}}))
        await pilot.press("A")
        await settle(pilot)

    shown = drive(app, steps, size=(100, 30))
    assert "CLEAN" in shown


def test_leaving_with_answers_asks_once_and_keeps_them_for_the_next_person(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    shown = drive(app, ["a", "R", "escape"])
    assert "nothing appended yet" in shown
    drive(app_on(NAME), ["a", "R", "escape", "j", "enter", "q", "~"])
    (kept,) = draft.load(open_session(NAME))
    assert kept.operator == "ann" and kept.answers["call_1"].finding == "ran"
    shown = drive(app_on(NAME, operator="ben"), ["a", "~"])
    assert "Draft: ann gave 2 answers" in shown and "it ran (ann" in shown


def test_drafts_are_gone_after_the_append(tmp_path: Path) -> None:
    drive(app_on(write(tmp_path, crashed())), ["a", "R", "A", "~"])
    assert draft.load(open_session(NAME)) == []


def test_staying_is_the_first_choice(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    shown = drive(app, ["a", "R", "escape", "enter"])
    assert "1 of 3 answered" in shown


def test_quitting_with_answers_asks_too(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    assert "nothing appended yet" in drive(app, ["a", "R", "ctrl+q"])


def test_a_log_that_cannot_be_appended_to_says_why_and_what_to_do(tmp_path: Path) -> None:
    events = [json.loads(line) for line in log(*crashed()).splitlines()]
    (tmp_path / NAME).write_text(json.dumps({"version": 2, "events": events}))
    app = app_on(NAME)
    before = (tmp_path / NAME).read_bytes()
    shown = drive(app, ["a", "R", "A", "~"], size=(100, 30))
    assert "CAN'T BE APPENDED" in shown and "append is locked" in shown
    assert (tmp_path / NAME).read_bytes() == before


def test_a_log_that_cannot_be_appended_to_offers_no_key_that_does_nothing(tmp_path: Path) -> None:
    events = [json.loads(line) for line in log(*crashed()).splitlines()]
    (tmp_path / NAME).write_text(json.dumps({"version": 2, "events": events}))
    for keys, size in ((["a"], (80, 24)), (["a", "question_mark"], (100, 60))):
        shown = drive(app_on(NAME), keys, size)
        assert "Preview" in shown or "The exact bytes" in shown
        for word in ("R Ran", "D Did not", "U Could not", "c Comment", "It ran", "Write a note"):
            assert word not in shown, (keys, word)
    for key in "RDUc":
        shown = drive(app_on(NAME), ["a", key])
        assert "needed: this log can't be appended to" in shown, key
    assert "append is locked: sess_7f3.jsonl is one JSON document" in drive(app_on(NAME), ["a", "A"])


def test_read_only_has_no_accept(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()), read_only=True)
    shown = drive(app, ["a", "R", "A", "~"])
    assert "read-only" in shown and app.desk.answers == {}


def test_a_clean_log_has_nothing_to_accept(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, clean_log())), ["a"])
    assert "nothing to append" in shown


def test_an_answer_that_landed_meanwhile_is_no_question_any_more(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))

    async def steps(pilot: Any) -> None:
        with (tmp_path / NAME).open("ab") as file:
            file.write(log(result("call_1")))
        await pilot.press("r")
        await settle(pilot)
        await pilot.press("a")

    assert "0 of 2 answered" in drive(app, steps)


def test_keys_typed_ahead_reach_the_screen_they_were_meant_for(tmp_path: Path) -> None:
    """All keys lie in the queue before the first is done, as after a paste or on a slow line."""
    app = app_on(write(tmp_path, two_unknown()))

    async def steps(pilot: Any) -> None:
        from textual.events import Key

        for key in [*ANSWERED, "A"]:
            app.post_message(Key(key, key))
        await settle(pilot)

    assert "appended 6 records" in drive(app, steps)
    found = {id: meta.get("acknowledged", {}).get("finding") for id, meta in metadata(tmp_path).items()}
    assert found == {"call_1": "ran", "call_2": "could-not-tell", "call_3": "deny", "call_4": None}


def test_a_note_typed_ahead_stays_a_note(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))

    async def steps(pilot: Any) -> None:
        from textual.events import Key

        for key in ["a", "c", "R", "D", "A", "enter", "R", "n", "c", "escape", "U"]:
            app.post_message(Key(key, key if len(key) == 1 else None))
        await settle(pilot)

    drive(app, steps)
    assert {key: (a.finding, a.note) for key, a in app.desk.answers.items()} == {
        "call_1": ("ran", "RDA"),
        "call_2": ("could-not-tell", ""),
    }


def test_the_playbook_says_how_to_check(tmp_path: Path) -> None:
    (tmp_path / "triage.toml").write_text(
        '[[tool]]\nname = "http_post"\ncheck = "lookup {id}"\nnote = "ask ops"\n'
    )
    app = app_on(write(tmp_path, crashed()))
    shown = drive(app, ["a"])
    assert "check: lookup re_91" in shown and "playbook: ask ops" in shown
    assert "playbook (shown, never run)" in drive(app_on(NAME), ["enter"])


def test_a_broken_playbook_is_said_and_locks_nothing(tmp_path: Path) -> None:
    (tmp_path / "triage.toml").write_text("[[tool]]\nnonsense = 1\n")
    path = write(tmp_path, crashed())
    drive(app_on(path, operator="bea"), ["a", "R"])
    opened = drive(app_on(path), [], (400, 24)).splitlines()[-1]
    assert opened.startswith(" draft: bea gave 1 answer")
    assert "no hints on how to check: " in opened and "triage.toml, tool 1: it needs a name" in opened
    shown = drive(app_on(path), ["a", "R", "A", "~"])
    assert "appended 4 records" in shown
    assert "no hints" not in drive(app_on(path), []), "nothing is owed"


def test_when_every_answer_is_given_n_goes_through_them_once_more(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    shown = drive(app, [*ANSWERED, "n", "U"])
    assert app.desk.answers["call_1"].finding == "could-not-tell"
    assert app.desk.answers["call_3"].finding == "deny" and "A Append" in shown


def test_a_note_without_an_answer_is_not_lost_without_a_word(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    shown = drive(app, ["a", "c", *"asked", "enter", "escape", "q"])
    assert "1 note given" in shown and app.is_running is False


def test_what_is_appended_besides_the_results_is_counted_and_named(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[1] / "fixtures" / "claude" / "two-first-answered.jsonl"
    shutil.copy(fixture, tmp_path)
    shown = drive(app_on(fixture.name), ["a"], (120, 40))
    assert "Appends 2 records" in shown and "1 copy of recorded results" in shown
    applied = drive(app_on(fixture.name), ["a", "U", "A", "~"], (120, 40))
    assert "appended 2 records" in applied


def test_two_calls_of_one_id_are_told_apart_by_their_turns(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "sample_logs" / "same-id-two-open-turns.jsonl"
    shutil.copy(sample, tmp_path)
    shown = drive(app_on(sample.name), ["a"], (120, 40))
    owed = open_session(sample.name).plan.owed
    assert all(f"turn of line {entry.turn_line}" in shown for entry in owed if entry.needs_acknowledgement)


def test_what_was_found_stands_in_the_timeline_and_is_no_success(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, two_unknown()))
    drive(app, [*ANSWERED, "A", "~"])
    shown = drive(app_on(NAME), ["g", "l", *"jjjl"], (120, 40))
    for found in ("it ran", "could not tell", "denied", "it did not start"):
        assert f"synthetic: {found}" in shown


def test_headings_out_of_view_are_counted_and_g_brings_them_back(tmp_path: Path) -> None:
    path = write(tmp_path, two_unknown())
    shown = drive(app_on(path), ["a", "G"], (60, 9))
    assert "↑ " in shown and "Appends" not in shown
    assert "Appends" in drive(app_on(path), ["a", "G", "g"], (60, 9))
