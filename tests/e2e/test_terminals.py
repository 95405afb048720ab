"""Terminals of every size and kind: tiny, resized, without colour, light, old."""

from __future__ import annotations

import re

import pytest

from tests.e2e.conftest import Run, Sample, Start
from tests.e2e.steps import accept, appended
from tests.e2e.terminal import Terminal

TINY = [(1, 1), (10, 3), (20, 5), (40, 10)]
EVERY_KEY = (
    "j", "k", "down", "up", "g", "G", "ctrl+d", "ctrl+u", "pagedown", "pageup", "space", "h", "l", "left",
    "right", "n", "N", "]", "[", "ctrl+o", "f", "f", "f", "tab", "shift+tab", "1", "2", "3", "q", "z", "z", "w", "y",
    "Y", "F", "F", "r",
)  # fmt: skip


def by_size(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def drawn(screen: Terminal) -> None:
    """Read until another frame is there."""
    frames = screen.frames
    screen.wait_until(lambda: screen.frames > frames, "another frame")


@pytest.mark.parametrize("size", TINY, ids=by_size)
def test_in_a_tiny_terminal_every_key_still_works(
    size: tuple[int, int], sample: Sample, start: Start
) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log, size=size, ready="")
    screen.wait_until(lambda: screen.text.strip(), "something")
    for key in EVERY_KEY:
        screen.press(key)
    for key in ("?", "ctrl+p", "/", ":", "x", "enter"):
        screen.press(key)
        drawn(screen)
        screen.press("esc")
        drawn(screen)
    screen.press("a")
    drawn(screen)
    screen.press("v")
    drawn(screen)
    screen.press("esc")
    drawn(screen)
    assert screen.alive
    assert log.read_bytes() == before
    screen.press("R")
    drawn(screen)
    screen.press("A")
    screen.wait_until(lambda: log.read_bytes() != before, "the append")
    drawn(screen)
    screen.press("ctrl+c")
    assert screen.wait_for_exit() == 0
    assert "the log is clean now" in screen.said
    assert len(appended(log, before)) == 4


def test_each_screen_stands_being_resized_while_it_is_open(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log, size=(80, 24))

    def resized(*texts: str) -> None:
        for size in (*TINY, (200, 50), (80, 24)):
            frames = screen.frames
            screen.resize(*size)
            screen.wait_until(lambda frames=frames: screen.frames > frames, f"a frame at {by_size(size)}")
        screen.wait_for(*texts)

    resized("✖ CRASHED  turn 4", "[1] timeline", "[2] owed 3")
    assert "http_post" in screen.marked
    for key, says in (
        ("enter", "evidence call_0a92 http_post"),
        ("?", "help: triage"),
        ("ctrl+p", "commands of triage"),
        ("/", "search"),
        ("x", "Which kind?"),
    ):
        screen.press(key)
        screen.wait_for(says)
        resized(says)
        screen.press("esc")
        screen.wait_gone(says)
    screen.press("z")
    screen.wait_gone("[2] owed 3")
    resized("[1] timeline")
    screen.press("z")
    screen.wait_for("[2] owed 3")
    accept(screen)
    resized("0 of 1 answered · append is locked", "call_0a92")
    screen.press("v")
    screen.wait_for("preview of the append")
    resized("preview of the append")
    screen.press("esc")
    screen.wait_for("0 of 1 answered")
    screen.press("R")
    screen.wait_for("1 of 1 answered · A appends")
    assert log.read_bytes() == before
    screen.press("A")
    screen.wait_for("read again: ✓ CLEAN")
    resized("read again: ✓ CLEAN")
    screen.press("q")
    assert screen.wait_for_exit() == 0


def repaired(screen: Terminal) -> None:
    """From the first view to the append, and out."""
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 1 answered")
    screen.press("A")
    screen.wait_for("the log is clean now")
    screen.press("q")
    assert screen.wait_for_exit() == 0


def test_without_colour_glyphs_words_and_reverse_carry_the_meaning(
    sample: Sample, start: Start, run: Run
) -> None:
    log = sample("crashed-dispatched.jsonl")
    screen = start(log, env={"NO_COLOR": "1"}, colours=True)
    screen.wait_for("▲ UNKNOWN", "● NOT STARTED")
    row = next(row for row, line in enumerate(screen.lines) if line.startswith("│▶"))
    assert screen.reversed(5, row)
    assert not screen.reversed(5, row - 1)
    repaired(screen)
    coloured = [
        s for s in screen.sequences if re.search(r"[\[;](?:[34]\d|9\d|10\d)(?:[;m])", s) and s[-1] == "m"
    ]
    assert not coloured, coloured[:3]
    assert run("plan", log).returncode == 0


@pytest.mark.parametrize("term", ["xterm", "dumb", "vt100", "screen-256color", "", "no-such-terminal"])
def test_any_kind_of_terminal_will_do(term: str, sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log, size=(80, 24), env={"TERM": term, "COLORTERM": None})
    screen.wait_for("✖ CRASHED  turn 4", "▲ UNKNOWN")
    repaired(screen)
    assert len(appended(log, before)) == 4


def test_a_light_terminal_gets_light_colours(sample: Sample, start: Start) -> None:
    log = sample("clean.jsonl")
    light = start(log, env={"COLORFGBG": "0;15"}, colours=True)
    dark = start(log, env={"COLORFGBG": "15;0"}, colours=True)
    plain = start(log, colours=True)
    assert brightness(light.background(5, 5)) > 0.8
    assert brightness(light.foreground(5, 5)) < 0.5
    assert brightness(dark.background(5, 5)) < 0.2
    assert plain.background(5, 5) == dark.background(5, 5)


def brightness(colour: str) -> float:
    """From 0 to 1, of six hex digits."""
    return sum(int(colour[at : at + 2], 16) for at in (0, 2, 4)) / (3 * 255)


def test_the_terminal_is_left_as_it_was_found(sample: Sample, start: Start) -> None:
    screen = start(sample("clean.jsonl"))
    screen.press("q")
    assert screen.wait_for_exit() == 0
    for on in (s for s in dict.fromkeys(screen.sequences) if re.fullmatch(r"\x1b\[\?\d+h", s)):
        off = on.replace("h", "l")
        last = max(at for at, s in enumerate(screen.sequences) if s in (on, off))
        kept = on in ("\x1b[?25h", "\x1b[?7h")  # the cursor shows, lines wrap
        assert screen.sequences[last] == (on if kept else off), on
