"""Faults are made for real; where an environment does not permit one, its test is skipped and says why."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.faults.child import NOBODY, NotPermitted
from tests.faults.converge import SAMPLES

# These make their faults with what only Linux has: ptrace, namespaces, the locks of open files.
if sys.platform != "linux":
    collect_ignore = [
        f"test_{name}.py" for name in ("disk", "drafts", "killed", "living_agent", "moved", "two_at_once")
    ]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    try:
        return (yield)
    except NotPermitted as refused:
        pytest.skip(f"not permitted here: {refused}")


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where drafts and traces go: never the real home."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    return home / "state"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A crashed log with an unknown outcome and two calls that were not started."""
    return Path(shutil.copy(SAMPLES / "crashed-dispatched.jsonl", tmp_path / "log.jsonl"))


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder that a child without rights can work in; pytest's own is closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        try:
            shutil.chown(path, NOBODY, NOBODY)
        except PermissionError:
            pass  # no root here: the children are the same user as this process
        yield path
