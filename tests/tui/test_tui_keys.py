"""A key means one thing, does something, and can be found in the help."""

from __future__ import annotations

import inspect
from collections import defaultdict
from pathlib import Path

import pytest

from tests.tui.demo import app_on, crashed, drive, write
from triage.tui import keys
from triage.tui.accept_screen import AcceptScreen
from triage.tui.app import TriageApp
from triage.tui.choice import CHOICE, ChoiceScreen
from triage.tui.done_screen import DoneScreen
from triage.tui.editor import editor_command
from triage.tui.errors_screen import ErrorsScreen
from triage.tui.picker_screen import PickerScreen
from triage.tui.rows import Rows
from triage.tui.text_screen import EvidenceScreen, TextScreen
from triage.tui.triage_screen import TriageScreen

TABLES = {
    TriageScreen: keys.TRIAGE,
    EvidenceScreen: keys.EVIDENCE,
    AcceptScreen: keys.ANSWERS,
    TextScreen: keys.TEXT,
    ErrorsScreen: keys.ERRORS,
    PickerScreen: keys.PICKER,
    DoneScreen: keys.DONE,
    ChoiceScreen: CHOICE,
}


@pytest.mark.parametrize(
    ("screen", "table"), TABLES.items(), ids=lambda value: getattr(value, "__name__", "")
)
def test_each_command_has_an_action(screen: type, table: tuple[keys.Command, ...]) -> None:
    for command in table:
        owner = TriageApp if command.action.startswith("app.") else screen
        name = command.action.removeprefix("app.").partition("(")[0]
        assert inspect.isfunction(getattr(owner, f"action_{name}", None)), command


def test_each_move_is_one_of_the_list() -> None:
    for command in keys.MOVES:
        assert inspect.isfunction(getattr(Rows, f"action_{command.action.partition('(')[0]}"))


def test_no_key_means_two_things_on_one_screen() -> None:
    for table in TABLES.values():
        bound = [key for command in (*table, *keys.MOVES) for key in command.keys.split(",") if key]
        assert len(bound) == len(set(bound)), sorted(key for key in bound if bound.count(key) > 1)


def test_the_answer_keys_mean_nothing_anywhere_else() -> None:
    used = defaultdict(set)
    for screen, table in TABLES.items():
        for command in (*table, *keys.MOVES):
            for key in command.keys.split(","):
                used[key].add(screen)
    for key in "RDUA":
        assert used[key] == {AcceptScreen}


def test_no_command_answers_all_at_once() -> None:
    answers = [command for command in keys.ANSWERS if command.action.startswith("answer")]
    assert {command.keys for command in answers} == {"R", "D", "U"}


@pytest.mark.parametrize("key", ["a", "z", "R", "F", "slash", "f", "2", "A"])
def test_a_key_of_another_screen_says_so_in_the_evidence(key: str, tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    shown = drive(app, ["enter", key])
    name = {"slash": "/"}.get(key, key)
    screen = "accept" if key in "RA" else "triage"
    assert f" {name} is a key of the {screen} screen: it does nothing here" in shown
    assert "R Ran" not in shown and app.desk.answers == {}


def test_a_key_that_means_nothing_anywhere_or_moves_says_nothing(tmp_path: Path) -> None:
    for key in ("Q", "j", "ctrl+u", "escape", "f9"):
        shown = drive(app_on(write(tmp_path, crashed())), ["enter", key])
        assert "does nothing here" not in shown


def test_an_answer_key_says_on_the_triage_screen_where_it_belongs(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    assert " R is a key of the accept screen" in drive(app, ["R"]) and app.desk.answers == {}


def test_text_that_is_wrapped_says_why_it_does_not_move(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, crashed())), ["enter", "l"])
    assert "long lines are wrapped: w cuts them" in shown
    assert "long lines are wrapped" not in drive(app_on(write(tmp_path, crashed())), ["enter", "w", "l"])


def test_the_end_of_the_log_has_no_raw_record_and_says_so(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, crashed())), ["G", "enter", "enter"])
    assert "the end of the log is no record" in shown


def test_the_evidence_can_be_exported_and_its_summary_copied(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    assert "Markdown" in drive(app, ["enter", "x"])
    app = app_on(write(tmp_path, crashed()))
    assert "copied" in drive(app, ["enter", "Y"])


@pytest.mark.parametrize(
    ("editor", "words"),
    [
        ("vim", ["vim", "-R", "+7"]),
        ("/usr/bin/nvim -u NONE", ["/usr/bin/nvim", "-u", "NONE", "-R", "+7"]),
        ("nano", ["nano", "-v", "+7"]),
        ("emacs -nw", ["emacs", "-nw", "+7"]),
        ("", ["vi", "-R", "+7"]),
        ("un'closed", ["un'closed", "+7"]),
    ],
)
def test_an_editor_opens_at_the_line_and_read_only_where_it_can(editor: str, words: list[str]) -> None:
    assert editor_command("/logs/a.jsonl", 7, {"EDITOR": editor}) == [*words, "/logs/a.jsonl"]


def test_an_editor_that_takes_file_and_line_gets_both() -> None:
    assert editor_command("/logs/a.jsonl", 7, {"VISUAL": "code -w"}) == [
        "code",
        "-w",
        "--goto",
        "/logs/a.jsonl:7",
    ]


def test_the_help_names_every_key_of_the_screen(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    shown = drive(app, ["question_mark"], size=(100, 120))
    for command in (*keys.TRIAGE, *keys.MOVES):
        if command.shown:
            assert f" {command.shown} " in shown, command
            assert command.says[:40] in shown, command
