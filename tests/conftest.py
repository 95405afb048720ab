"""What every test shares: a home of its own, and the count of what was skipped."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import settings

# The same examples in every run: a red test is a fault, never a matter of luck.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")

# In CI each skip has to be one of these, and no more often than this: a test that stops running is a fault.
EXPECTED_SKIPS = {
    "TRIAGE_CORPUS": 20,  # real logs, which are not part of the project
    "not permitted here: ": 10,  # faults that a plain container does not let a process make
}

COUNTED = "counted"  # what a test hands on of its numbers, maybe from another process

_skipped: Counter[str] = Counter()
_counted: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts, cursors and traces of a test never meet those of the user who runs it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def count(request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Add to a number in the summary at the end: how many faults or inputs were tried."""

    def add(what: str, number: int) -> None:
        request.node.user_properties.append((COUNTED, (what, number)))

    return add


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":  # it carries what the test and its fixtures have handed on
        for name, value in report.user_properties:
            if name == COUNTED:
                _counted[value[0]] += value[1]
    if report.skipped and isinstance(report.longrepr, tuple):
        _skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if os.environ.get("CI") and exitstatus == 0 and _unexpected():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _counted:
        terminalreporter.section("what was tried")
    for what, number in sorted(_counted.items()):
        terminalreporter.write_line(f"{number:>7,}  {what}")
    for reason, count in sorted(_skipped.items()):
        terminalreporter.write_line(f"skipped {count}: {reason}")
    for reason, count in _unexpected().items():
        terminalreporter.write_line(f"not expected to be skipped in CI ({count}): {reason}", red=True)


def _unexpected() -> dict[str, int]:
    found = {}
    for reason, count in _skipped.items():
        allowed = max((n for known, n in EXPECTED_SKIPS.items() if reason.startswith(known)), default=0)
        if count > allowed:
            found[reason] = count
    return found
