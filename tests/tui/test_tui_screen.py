"""The main screen under its keys."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import GARBAGE, log, names, result, speaks, step_start, turn_end, turn_start, user
from tests.tui.demo import (
    NAME,
    app_on,
    clean_log,
    crashed,
    drive,
    says,
    screen_text,
    settle,
    two_unknown,
    write,
)
from triage.cli import main
from triage.session import open_session
from triage.tui.timeline import call_of, key, line_of


def row_after(path: str, *keys: str, size: tuple[int, int] = (80, 24)) -> int:
    """The timeline's row under the cursor after some keys."""
    app = app_on(path)
    rows = []

    async def steps(pilot: Any) -> None:
        for one in keys:
            await (settle(pilot) if one == "~" else pilot.press(one))
        await pilot.pause()
        rows.append(app.screen.row)

    drive(app, steps, size)
    return rows[0]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_the_first_second_tells_what_happened(tmp_path: Path, size: tuple[int, int]) -> None:
    shown = drive(app_on(write(tmp_path, crashed())), [], size)
    first = shown.splitlines()[0]
    assert first.startswith(" ✖ CRASHED  turn 3 · 3 owed: 1 OUTCOME UNKNOWN, 2 not started")
    assert "died in tool_open" in "".join(shown.splitlines()[:2])


def test_the_cursor_starts_on_the_most_dangerous_call(tmp_path: Path) -> None:
    assert row_after(write(tmp_path, crashed())) == key(29, 2)


def test_problems_are_gone_through_in_the_order_of_the_log(tmp_path: Path) -> None:
    path = write(tmp_path, crashed())
    assert row_after(path, "n") == key(29, 3)
    assert row_after(path, "N") == key(29, 1)
    assert row_after(path, "n", "n") == key(29, 1)
    assert row_after(path, "right_square_bracket") == key(29, 3)


def test_jumping_back_goes_where_the_jump_started(tmp_path: Path) -> None:
    path = write(tmp_path, crashed())
    assert row_after(path, "n", "N", "ctrl+o", "ctrl+o") == key(29, 2)


def test_moving_and_folding(tmp_path: Path) -> None:
    path = write(tmp_path, crashed())
    assert row_after(path, "g") == key(1)
    assert row_after(path, "G") == key(31)
    assert row_after(path, "g", "j", "l", "j", "j", "l", "j") == key(5)
    assert row_after(path, "g", "j", "l", "j", "j", "l", "j", "h", "h", "h") == key(2)


def test_a_line_can_be_gone_to_wherever_it_is_folded_away(tmp_path: Path) -> None:
    path = write(tmp_path, crashed())
    assert row_after(path, "colon", "7", "enter") == key(7)
    assert row_after(path, "colon", "9", "9", "enter") == key(29, 2)
    assert row_after(path, "colon", *"nonsense", "enter") == key(29, 2)


def test_a_search_goes_to_its_matches_and_n_goes_on(tmp_path: Path) -> None:
    path = write(tmp_path, [*crashed()])
    search = ["slash", *"re_90", "enter", "~"]
    search = ["underscore" if one == "_" else one for one in search]
    assert row_after(path, *search) == key(16)
    assert row_after(path, *search, "n") == key(17)
    assert row_after(path, *search, "n", "n", "n") == key(16)
    assert row_after(path, *search, "escape", "n") == key(29, 1)


def test_an_empty_search_is_the_last_one_again(tmp_path: Path) -> None:
    path = write(tmp_path, crashed())
    keys = ["slash", *"VERSION", "enter", "~", "escape", "g", "slash", "enter", "~"]
    assert row_after(path, *keys) == key(24)


def test_a_search_without_a_match_says_so(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, crashed())), ["slash", *"zzz", "enter", "~"])
    assert "no match for zzz" in shown


def test_the_filter_goes_round(tmp_path: Path) -> None:
    path = write(tmp_path, crashed())
    for presses, title in ((1, "calls only"), (2, "problems only"), (3, "[1] timeline ──")):
        assert title in drive(app_on(path), ["f"] * presses)


def test_enter_opens_the_row_under_the_cursor_even_when_typed_ahead(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))

    async def steps(pilot: Any) -> None:
        from textual.events import Key

        for one in ["g", "j", "j", "enter"]:
            app.post_message(Key(one, one if len(one) == 1 else None))
        await settle(pilot)

    assert "evidence  line 13" in drive(app, steps)


def test_evidence_shows_each_rule_and_the_earlier_calls_of_the_tool(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, crashed())), ["enter"], size=(100, 60))
    for part in (
        "rule 1  ✓ held  dispatched on line 30, and no result follows",
        "not asked: W1, W2, 2, 3, 4",
        "re_91",
        "dispatched   09:00:29Z",
        "earlier calls of http_post",
        "re_90",
        "succeeded",
    ):
        assert part in shown, part


def test_enter_once_more_shows_the_bytes_of_the_record(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, crashed())), ["enter", "enter"])
    assert '{"seq":28,"type":"assistant_message"' in shown
    assert "rules, in the order" in drive(app_on(NAME), ["enter", "enter", "enter"])


def test_evidence_goes_on_to_the_next_problem(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, crashed())), ["enter", "n"])
    assert "call_0a93" in shown


def test_no_byte_of_a_large_record_is_out_of_reach(tmp_path: Path) -> None:
    path = write(tmp_path, [turn_start(1), result("x", "0123456789" * 20_000 + "THE END")])
    app = app_on(path)

    async def steps(pilot: Any) -> None:
        await pilot.press("colon", "2", "enter", "enter")
        assert "more, space to page" in screen_text(app) or "of" in screen_text(app)
        for _ in range(3):
            await pilot.press("G")

    assert "THE END" in drive(app, steps)


def test_panes_are_gone_through_with_tab(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))

    async def steps(pilot: Any) -> None:
        seen = []
        for _ in range(4):
            await pilot.press("tab")
            seen.append(app.screen.focused.id)
        await pilot.press("2", "j", "j")
        assert app.screen.row == key(29, 3)
        assert seen == ["owed", "evidence", "timeline", "owed"]

    drive(app, steps, size=(120, 40))


def test_a_zoomed_pane_has_the_screen_to_itself(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    shown = drive(app, ["3", "z"], size=(120, 40))
    assert "[3] evidence" in shown and "[1] timeline" not in shown
    assert "[1] timeline" in drive(app_on(NAME), ["3", "z", "escape"], size=(120, 40))


def test_a_log_that_grew_is_said_and_read_again(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))

    async def steps(pilot: Any) -> None:
        with (tmp_path / NAME).open("ab") as file:
            file.write(log(result("call_0a92")))
        app.screen._watch()
        await pilot.pause()
        assert "grew by" in screen_text(app)
        await pilot.press("r")
        await settle(pilot)

    shown = drive(app, steps)
    assert "2 owed: 2 not started" in shown and "grew" not in shown


@pytest.mark.parametrize("then", ["as it was", "longer", "another", "shorter", "empty"])
def test_a_log_that_is_read_again_keeps_the_call_under_the_cursor_as_long_as_there_is_one(
    tmp_path: Path, then: str
) -> None:
    path = tmp_path / write(tmp_path, crashed())
    app = app_on(NAME)

    async def steps(pilot: Any) -> None:
        row = app.screen.row
        assert call_of(row)
        new = {
            "as it was": path.read_bytes(),
            "longer": path.read_bytes() + log(user("are you there?")),
            "another": log(*[user("hello")] * 60),
            "shorter": log(turn_start(1), user("go"), turn_end()),
            "empty": b"",
        }[then]
        path.write_bytes(new)
        await pilot.press("r")
        await settle(pilot)
        assert (app.screen.row == row) == (then in ("as it was", "longer"))
        assert line_of(app.screen.row) == min(line_of(row), app.screen.timeline.journal.lines or 1)

    drive(app, steps)


def test_an_answer_that_a_repair_of_somebody_else_contradicts_is_said_when_it_is_read(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))

    async def steps(pilot: Any) -> None:
        await pilot.press("a", "U", "escape", "down", "enter")
        assert main(["apply", NAME, "--operator", "bob", "--ack=call_0a92=ran"]) == 0
        await pilot.press("r")
        await settle(pilot)

    shown = " ".join(drive(app, steps, (120, 40)).split())
    assert "You disagree on call_0a92: bob found “it ran” (line 32), you “could not tell”" in shown


def test_following_reads_on_by_itself(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, clean_log()))

    async def steps(pilot: Any) -> None:
        await pilot.press("F")
        with (tmp_path / NAME).open("ab") as file:
            file.write(log(turn_start(9), says("more")))
        app.screen._watch()
        await settle(pilot)
        assert app.screen.row == app.screen.timeline.end

    assert "24/24" in drive(app, steps)


def test_a_log_that_has_gone_is_said(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))

    async def steps(pilot: Any) -> None:
        (tmp_path / NAME).unlink()
        app.screen._watch()
        await pilot.press("g", "j", "l", "enter", "escape", "r")
        await settle(pilot)

    assert "can't be read" in drive(app, steps)


@pytest.mark.parametrize(("down", "suffix"), [(0, ".md"), (1, ".json"), (2, ".svg")])
def test_an_export_is_a_new_file_for_its_owner_only(tmp_path: Path, down: int, suffix: str) -> None:
    keys = ["x", *["j"] * down, "enter"]
    drive(app_on(write(tmp_path, crashed())), [*keys, *keys], size=(120, 40))
    made = sorted(path.name for path in tmp_path.glob(f"*{suffix}"))
    assert made == [f"triage-sess_7f3-2{suffix}", f"triage-sess_7f3{suffix}"]
    assert all(stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600 for name in made)


def test_copying_goes_through_id_arguments_and_record(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))

    async def steps(pilot: Any) -> None:
        copied = []
        for _ in range(4):
            await pilot.press("y")
            copied.append(app.clipboard)
        assert copied[0] == copied[3] == "call_0a92"
        assert '"re_91"' in copied[1]
        assert copied[2].startswith('{"seq":28')

    drive(app, steps)


def test_the_summary_is_copied_as_markdown(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))

    async def steps(pilot: Any) -> None:
        await pilot.press("Y")
        assert app.clipboard.startswith("# ")

    assert "copied the incident summary" in drive(app, steps)


def test_q_goes_back_and_then_quits(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    assert "CRASHED" in drive(app, ["enter", "q"])
    assert drive(app_on(NAME), ["q"]) == ""


def test_the_palette_runs_a_command(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, crashed())), ["ctrl+p", *"answer", "enter", "~"])
    assert "append is locked" in shown


def test_the_colours_can_be_switched(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    drive(app, ["ctrl+p", *"light", "enter", "~"])
    assert app.theme == "triage-light"


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (1, 30), (30, 1), (7, 4), (19, 9), (79, 15), (300, 3)])
def test_no_size_is_too_small(tmp_path: Path, size: tuple[int, int]) -> None:
    path = write(tmp_path, two_unknown(), GARBAGE)
    keys = ["n", "enter", "enter", "escape", "2", "j", "z", "3", "escape", "z", "question_mark", "G", "q"]
    app = app_on(path)

    async def steps(pilot: Any) -> None:
        await pilot.press(*keys, "a", "R", "n", "v", "escape", "ctrl+p", "escape", "slash", "x", "enter")
        await settle(pilot)
        await pilot.resize_terminal(120, 40)
        await pilot.resize_terminal(*size)

    drive(app, steps, size)


NASTY = "[@click=app.quit]x[/] [/red] \x1b[2J\x1b]0;t\x07\x9b1m \u202egpj \u2028✓ CLEAN\n\ud800\x00"


def test_hostile_text_stays_text_on_every_screen(tmp_path: Path) -> None:
    lines = [
        turn_start(NASTY),
        says(NASTY),
        step_start(step=NASTY),
        names((NASTY, NASTY, {NASTY: NASTY, "command": [NASTY]})),
        speaks(NASTY),
        {"type": NASTY, "data": {NASTY: NASTY}, "time": NASTY},
    ]
    app = app_on(write(tmp_path, lines), operator=NASTY.replace("\ud800", ""))
    seen: list[str] = []

    async def steps(pilot: Any) -> None:
        for one in [*"nyyy", "enter", "enter", "escape", *"23fff1gjj"]:
            await pilot.press(one)
            seen.append(screen_text(app))
        for one in [*"aRcx", "enter", "v", "escape", "escape", "escape", "question_mark", "escape"]:
            await pilot.press(one)
            seen.append(screen_text(app))

    drive(app, steps, size=(120, 40))
    for text in seen:
        assert not [char for char in text if char != "\n" and (ord(char) < 32 or 0x7F <= ord(char) < 0xA0)]
        assert not set(text) & set("\u202e\u2028\ud800")
    assert any("[@click=app.quit]x[/]" in text for text in seen)


def test_a_million_rows_cost_what_is_in_view(tmp_path: Path) -> None:
    path = write(tmp_path, [turn_start(1), *[speaks(f"n{number}") for number in range(50_000)]])
    app = app_on(path)
    made: list[int] = []

    async def steps(pilot: Any) -> None:
        source = app.screen._timeline.source
        original = source._make
        source._row = lambda row, folded: made.append(row) or original(row, folded)
        await pilot.press("g", "G", "pageup")

    drive(app, steps)
    assert 0 < len(made) < 2000


def test_the_session_is_never_changed_by_looking(tmp_path: Path) -> None:
    path = write(tmp_path, crashed())
    before = (tmp_path / NAME).read_bytes(), (tmp_path / NAME).stat().st_mtime_ns
    drive(app_on(path), ["n", "enter", "escape", "f", "slash", "x", "enter", "~", "a", "v", "escape", "R"])
    assert before == ((tmp_path / NAME).read_bytes(), (tmp_path / NAME).stat().st_mtime_ns)
    assert open_session(path).plan.status == "crashed"


def test_sizes_that_follow_each_other_fast_come_to_rest(tmp_path: Path) -> None:
    """Two sizes under way at once once chased each other for ever."""
    app = app_on(write(tmp_path, crashed()))
    heard: list[object] = []

    async def steps(pilot: Any) -> None:
        from textual.events import Resize
        from textual.geometry import Size

        original = type(app.screen).on_resize
        type(app.screen).on_resize = lambda self, event: heard.append(event.size) or original(self, event)
        try:
            for width in (100, 90, 100, 90, 120):
                size = Size(width, 30)
                app.screen.post_message(Resize(size, size, size))
                app.post_message(Resize(size, size, size))
            for _ in range(20):
                await pilot.pause()
            before = len(heard)
            for _ in range(20):
                await pilot.pause()
            assert len(heard) == before
        finally:
            type(app.screen).on_resize = original

    drive(app, steps)


@pytest.mark.parametrize(
    ("size", "rows"), [((80, 24), 9), ((120, 24), 7), ((120, 40), 16), ((80, 40), 13), ((200, 50), 13)]
)
def test_what_may_happen_next_is_in_view_where_the_screen_has_the_room(
    size: tuple[int, int], rows: int, tmp_path: Path
) -> None:
    app = app_on(write(tmp_path, crashed()))
    heights = []

    async def steps(pilot: Any) -> None:
        heights.append(app.screen.query_one("#owed").size.height)

    shown = drive(app, steps, size)
    assert ("a person checks" in shown.partition("[2] owed 3")[2].partition("evidence")[0]) == (size[1] >= 40)
    assert heights == [rows]


def test_rows_out_of_view_are_counted_and_can_be_reached_by_keys(tmp_path: Path) -> None:
    path = write(tmp_path, two_unknown())
    first = drive(app_on(path), ["2", "g"], (80, 24))
    assert "↓ " in first and " more" in first and "go back to the agent" not in first
    last = drive(app_on(path), ["2", "G"], (80, 24))
    assert "go back to the agent" in last and "↓" not in last
    stepped = drive(app_on(path), ["2", "G", "k", *["j"] * 12], (80, 24))
    assert "go back to the agent" in stepped


def test_an_interrupted_turn_does_not_claim_the_time_until_its_repair(tmp_path: Path) -> None:
    turn = [turn_start(1), says("go"), names(("a", "bash", {})), result("a", "x")]
    end = turn_end(turn=1, reason="interrupted")
    shown = drive(app_on(write(tmp_path, [*turn, end, *clean_log()])), ["g"], (80, 24))
    assert "interrupted" in next(line for line in shown.splitlines() if "turn 1" in line and "go" in line)
