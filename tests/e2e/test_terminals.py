"""Terminals of every size and kind: tiny, resized, without colour, light, old."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.e2e.conftest import Run, Sample, Start
from tests.e2e.steps import accept, appended
from tests.e2e.terminal import Terminal

TINY = [(1, 1), (10, 3), (20, 5), (40, 10)]
EVERY_KEY = (
    "j", "k", "down", "up", "g", "G", "ctrl+d", "ctrl+u", "pagedown", "pageup", "space", "h", "l", "left",
    "right", "n", "N", "]", "[", "ctrl+o", "f", "f", "f", "tab", "shift+tab", "1", "2", "z", "z", "w", "y",
    "Y", "F", "F", "r", "1",
)  # fmt: skip


def by_size(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def resize(screen: Terminal, *size: int) -> None:
    """Give the terminal another size, and read until it is drawn."""
    frames = screen.frames
    screen.resize(*size)
    screen.wait_until(lambda: screen.frames > frames, f"a frame at {size}")


@pytest.mark.parametrize("size", TINY, ids=by_size)
def test_in_a_tiny_terminal_every_key_still_works(
    size: tuple[int, int], sample: Sample, start: Start
) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log, size=size, ready="")
    screen.wait_until(lambda: screen.frames, "a frame")
    for key in EVERY_KEY:
        screen.press(key)

    def shows(key: str, *texts: str) -> None:
        """Press a key in the tiny terminal, and look at what it did in a larger one."""
        screen.press(key)
        resize(screen, 80, 24)
        screen.wait_for(*texts)
        resize(screen, *size)

    shows("?", "help: triage")
    shows("esc", "[1] timeline")
    shows("ctrl+p", "commands of triage")
    shows("esc", "[1] timeline")
    shows("enter", "esc Back")
    shows("esc", "[1] timeline")
    assert log.read_bytes() == before
    shows("a", "0 of 1 answered")
    shows("A", "0 of 1 answered")
    shows("v", "preview of the append")
    shows("esc", "0 of 1 answered")
    assert log.read_bytes() == before
    shows("R", "1 of 1 answered")
    shows("A", "the log is clean now")
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert "the log is clean now" in screen.said
    assert len(appended(log, before)) == 4


def test_each_screen_stands_being_resized_while_it_is_open(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log, size=(80, 24))

    def stands(*texts: str) -> None:
        for size in ((1, 1), (20, 5), (120, 30), (80, 24)):
            resize(screen, *size)
        screen.wait_for(*texts)

    stands("✖ CRASHED  turn 4", "[1] timeline", "[2] owed 3")
    screen.wait_until(lambda: "http_post" in screen.marked, "the row under the cursor")
    for key, says in (("enter", "evidence call_0a92 http_post"), ("/", "search"), ("x", "Which kind?")):
        screen.press(key)
        screen.wait_for(says)
        stands(says)
        screen.press("esc")
        screen.wait_gone(says)
    screen.press("z")
    screen.wait_gone("[2] owed 3")
    stands("[1] timeline")
    screen.press("z")
    screen.wait_for("[2] owed 3")
    for size in TINY * 5:  # as fast as a window is dragged
        screen.resize(*size)
    resize(screen, 100, 30)
    screen.wait_for("[1] timeline", "[2] owed 3")
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 1 answered · A appends")
    stands("1 of 1 answered · A appends", "call_0a92")
    assert log.read_bytes() == before
    screen.press("A")
    screen.wait_for("read again: ✓ CLEAN")
    stands("read again: ✓ CLEAN")
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
    colour = re.compile(r"\x1b\[(?:\d+;)*(?:[34][0-8]|9\d|10\d)[;m]")
    coloured = [s for s in screen.sequences if s.endswith("m") and colour.match(s)]
    assert not coloured, coloured[:3]
    assert run("plan", log).returncode == 0


@pytest.mark.parametrize("term", ["xterm", "vt100", "screen-256color", "", "no-such-terminal"])
def test_any_kind_of_terminal_will_do(term: str, sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log, size=(80, 24), env={"TERM": term, "COLORTERM": None})
    screen.wait_for("✖ CRASHED  turn 4", "▲ UNKNOWN")
    repaired(screen)
    assert len(appended(log, before)) == 4


def test_a_dumb_terminal_gets_the_report(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    screen = start(log, env={"TERM": "dumb"}, ready="")
    assert screen.wait_for_exit() == 1
    assert screen.raw.decode().startswith("✖ CRASHED  turn 4")
    assert not screen.sequences


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("of_many", [False, True], ids=["log", "list"])
def test_a_kill_leaves_the_terminal_as_it_was_found(
    of_many: bool, number: signal.Signals, sample: Sample, start: Start
) -> None:
    log = sample("crashed-dispatched.jsonl")
    screen = start(log.parent, ready="worst first") if of_many else start(log)
    os.kill(screen.pid, number)
    assert screen.wait_for_exit() == -number
    left = screen.raw.decode()
    for mode in ("1049", "1000", "1006", "2004"):  # another screen, the mouse, pasted text
        assert left.rfind(f"\x1b[?{mode}l") > left.rfind(f"\x1b[?{mode}h"), mode
    assert left.rfind("\x1b[?25h") > left.rfind("\x1b[?25l"), "the cursor"
