"""The list of sessions on a real terminal: open the samples, pick one, repair it, come back, quit."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import SAMPLES, Run, Start
from tests.e2e.steps import accept, moved

LISTED = "sessions · worst first"


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A copy of the samples that nobody wrote lately."""
    folder = tmp_path / "logs"
    shutil.copytree(SAMPLES, folder)
    for path in folder.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return folder


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
def test_open_a_folder_pick_a_session_repair_it_come_back_and_quit(
    size: tuple[int, int], samples: Path, start: Start
) -> None:
    log = samples / "crashed-dispatched.jsonl"
    screen = start(samples, "--operator", "ann", size=size, ready=LISTED)
    screen.wait_for("26 sessions", "23 to repair", "19 unknown outcomes")
    screen.press("/")
    screen.wait_for("search")
    screen.type("crashed-disp")
    screen.press("enter")
    screen.wait_for(" 1/1 ─╮", log.name)
    assert re.match(r"✖ CRASHED +▲ 1/3 +tool_open", screen.marked)
    screen.press("esc")
    screen.wait_for("/26")
    before = screen.marked
    assert before.startswith("✖ CRASHED    ▲ 1/3")

    screen.press("enter")
    screen.wait_for("[1] timeline", "q Sessions")
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 1 answered")
    screen.press("A")
    screen.wait_for("the log is clean now")
    screen.press("enter")
    screen.wait_for("✓ CLEAN", "[1] timeline")
    screen.press("q")
    screen.wait_for(LISTED, "22 to repair", "18 unknown outcomes")
    assert screen.marked.startswith("✓ CLEAN")
    assert "✖ CRASHED" in moved(screen, "j")
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert screen.said.startswith(f"{log}: appended 4 records") and screen.said.count("appended") == 1
    assert log.read_bytes().startswith((SAMPLES / log.name).read_bytes())


def test_nothing_is_said_where_nothing_was_appended(samples: Path, start: Start) -> None:
    screen = start(samples, ready=LISTED)
    screen.wait_for("26 sessions")
    screen.press("enter")
    screen.wait_for("[1] timeline")
    screen.press("esc")
    screen.wait_for(LISTED)
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert screen.said == ""


def test_a_folder_of_many_sessions_can_be_moved_in_while_it_is_read_and_is_sorted_at_the_end(
    samples: Path, start: Start, run: Run
) -> None:
    for number in range(30):
        shutil.copytree(SAMPLES, samples / f"deep/{number}")
    screen = start(samples, ready=LISTED)
    screen.wait_until(lambda: re.search(r" \d+/(?!1 )\d", screen.lines[2]), "two rows")
    screen.press("j")
    screen.wait_until(lambda: re.search(r" (?!1/)\d+/\d", screen.lines[2]), "it moves")
    screen.wait_for("806 sessions", "/806")
    screen.press("G")
    screen.wait_for("806/806", "✓ CLEAN")
    screen.press("g")
    worst = run("scan", samples).stdout.splitlines()[0].split()[-1]
    screen.wait_for("1/806", worst)
    screen.press("q")
    assert screen.wait_for_exit() == 0


def test_the_agents_folders_open_as_a_list(home: Path, start: Start) -> None:
    folder = home / ".pi" / "agent" / "sessions"
    folder.mkdir(parents=True)
    shutil.copy(SAMPLES / "clean.jsonl", folder)
    screen = start("--agents", ready=LISTED, env={"CLAUDE_CONFIG_DIR": None, "CODEX_HOME": None})
    screen.wait_for("1 session", "✓ CLEAN")
    screen.press("q")
    assert screen.wait_for_exit() == 0


def test_several_logs_open_as_a_list(samples: Path, start: Start) -> None:
    screen = start(samples / "clean.jsonl", samples / "torn-tail.jsonl", ready=LISTED)
    screen.wait_for("2 sessions · 1 to repair")
    screen.press("q")
    assert screen.wait_for_exit() == 0


@pytest.mark.parametrize(
    ("words", "how"),
    [([], {"env": {"TERM": "dumb"}}), (["--agents", "--plain"], {}), (["--plain"], {})],
    ids=["dumb", "agents", "plain"],
)
def test_a_dumb_terminal_and_plain_get_the_list_as_text(
    words: list[str], how: dict[str, dict[str, str | None]], samples: Path, home: Path, start: Start
) -> None:
    screen = start(*words, samples, ready="", **how)
    assert screen.wait_for_exit() == 1
    assert "CRASHED" in screen.text and "\x1b[?1049h" not in screen.raw.decode()
