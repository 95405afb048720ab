"""A session whose agent lives is not repaired under its hands; a stale file of a dead one stops nobody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from triage.cli import main

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A living process with both agents' names in its command line, which waits to be ended."""
    script = "import sys; sys.stdin.read()"
    names = ["claude-copilot-stand-in"]
    process = subprocess.Popen([sys.executable, "-c", script, *names], stdin=subprocess.PIPE)
    yield process
    process.communicate()


def crashed(format: str) -> Path:
    """A fixture of the format that owes exactly calls of an unknown outcome."""
    from triage.session import open_session

    for path in sorted((FIXTURES / format).glob("*.jsonl")):
        plan = open_session(str(path)).plan
        if plan.owed and plan.refusal is None and all(o.label == "UNKNOWN" for o in plan.owed):
            return path
    raise LookupError(format)


def apply(path: Path) -> int:
    from triage.session import open_session

    acks = [f"--ack={owed.key}=could-not-tell" for owed in open_session(str(path)).plan.owed]
    return main(["apply", str(path), *acks])


def claude_log(home: Path) -> Path:
    log = home / "projects" / "-srv" / "s1.jsonl"
    log.parent.mkdir(parents=True)
    shutil.copy(crashed("claude"), log)
    (home / "sessions").mkdir()
    return log


def test_a_living_claude_process_that_names_the_session_is_refused_and_named(
    agent: subprocess.Popen[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = claude_log(tmp_path)
    started = psutil.Process(agent.pid).create_time() * 1000
    row = {"pid": agent.pid, "sessionId": "s1", "startedAt": started}
    (tmp_path / "sessions" / f"{agent.pid}.json").write_text(json.dumps(row))
    before = log.read_bytes()
    assert apply(log) == 4
    assert f"pid {agent.pid}" in capsys.readouterr().err
    assert log.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [{"sessionId": "another"}, {"startedAt": 1_000.0}, {"pid": 2**22 + 1}],
    ids=["of another session", "a pid that was given away since", "a process that died"],
)
def test_a_claude_process_file_that_does_not_fit_stops_nobody(
    agent: subprocess.Popen[bytes], tmp_path: Path, change: dict[str, object]
) -> None:
    log = claude_log(tmp_path)
    row = {"pid": agent.pid, "sessionId": "s1", "startedAt": psutil.Process(agent.pid).create_time() * 1000}
    (tmp_path / "sessions" / "x.json").write_text(json.dumps({**row, **change}))
    (tmp_path / "sessions" / "y.json").write_text("{broken")
    assert apply(log) == 0


def test_a_copilot_lock_of_a_living_process_refuses_and_a_stale_one_does_not(
    agent: subprocess.Popen[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "events.jsonl"
    shutil.copy(crashed("copilot"), log)
    lock = tmp_path / f"inuse.{agent.pid}.lock"
    lock.touch()
    assert apply(log) == 4
    assert f"pid {agent.pid}" in capsys.readouterr().err
    os.utime(lock, (1_000, 1_000))  # the pid was given to another process after the lock was written
    assert apply(log) == 0
