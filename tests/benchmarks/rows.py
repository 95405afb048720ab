"""The rows of the table: what is measured, against what, and the goal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from unittest import mock

from tests.benchmarks.logs import SHAPES, Writer, write_log
from tests.benchmarks.measure import EMPTY_APP, PARSE, PASS, TRIAGE, Screen, ratios, run, seconds
from triage.recovery.acknowledge import Answer
from triage.session import open_session

VERDICT = rb"CRASHED"
DOWN, UP, PAGE_DOWN, PAGE_UP = b"\x1b[B", b"\x1b[A", b"\x1b[6~", b"\x1b[5~"


@dataclass
class Inputs:
    """The logs of one run, made when they are first asked for, in a folder that is removed afterwards."""

    folder: Path
    size: int = 1_000_000_000  # bytes of the large logs
    lines: int = 1_000_000  # of the timeline
    sessions: int = 10_000  # of the scan
    keys: int = 40  # that are pressed for one value
    _made: dict[str, Path] = field(default_factory=dict)

    def large(self, shape: str) -> str:
        """A log of `size` bytes. Only one shape is kept at a time: they are large."""
        for other in SHAPES:
            if other != shape and other in self._made:
                self._made.pop(other).unlink()
        return self._log(shape, self.size, shape)

    def small(self, size: int) -> str:
        """A mixed log of so many bytes."""
        return self._log(f"small-{size}", size, "mixed")

    def _log(self, name: str, size: int, shape: str) -> str:
        if name not in self._made:
            path = self.folder / f"{name}.jsonl"
            write_log(str(path), size, shape)
            self._made[name] = path
        return str(self._made[name])

    def timeline(self) -> str:
        """A log of `lines` lines outside any turn, so that nothing is folded."""
        path = self.folder / "timeline.jsonl"
        if not path.exists():
            line = '{"seq":%d,"type":"user_message","time":null,"data":{"content":"line %d of many"}}\n'
            with path.open("w") as out:
                out.writelines(line % (seq, seq) for seq in range(self.lines))
        return str(path)

    def many(self) -> list[str]:
        """The small sessions."""
        folder = self.folder / "sessions"
        if not folder.exists():
            folder.mkdir()
            for seed in range(self.sessions):
                writer = Writer("chatty", seed)
                lines = [*writer.turn(), *writer.turn(crash=seed % 10 == 0)]
                (folder / f"{seed:05}.jsonl").write_bytes(b"".join(lines))
        return sorted(map(str, folder.iterdir()))


Values = Sequence[float]


@dataclass(frozen=True)
class Row:
    """One line of the table. `measure` gives values, each of its own run; the median is to stay in `goal`."""

    name: str
    goal: float
    measure: Callable[[Inputs, int], Values]
    unit: str = "×"

    def format(self, values: Values) -> str:
        """The line of a Markdown table for what was measured."""
        if not values:
            return f"| {self.name} | not measured here | ≤ {self.goal:g} {self.unit} | |"
        middle, low, high = median(values), min(values), max(values)
        verdict = "yes" if middle <= self.goal else "**no**"
        spread = f"{_short(middle)} {self.unit} ({_short(low)} to {_short(high)})"
        return f"| {self.name} | {spread} | ≤ {self.goal:g} {self.unit} | {verdict} |"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def parsing(*paths: str) -> Callable[[], float]:
    """The yardstick: read and parse each line, keep nothing."""
    return lambda: seconds([sys.executable, "-c", PARSE, *paths])


def _plan(shape: str, one_core: bool) -> Callable[[Inputs, int], Values]:
    def measure(inputs: Inputs, times: int) -> Values:
        path = inputs.large(shape)
        return ratios(times, lambda: seconds([*TRIAGE, "plan", path], one_core), parsing(path))

    return measure


def _memory(shape: str) -> Callable[[Inputs, int], Values]:
    def measure(inputs: Inputs, times: int) -> Values:
        path = inputs.large(shape)
        with open(path, "rb") as log:
            events = sum(1 for _ in log)
        return [run([*TRIAGE, "plan", path])[1] / (60_000_000 + 24 * events)]

    return measure


def _wc(inputs: Inputs, times: int) -> Values:
    path = inputs.large("mixed")
    return ratios(times, lambda: seconds(["wc", "-l", path]), parsing(path))


def _screen(path: str, wanted: bytes) -> float:
    with Screen([*TRIAGE, path]) as screen:
        return screen.until(wanted)


def _empty() -> float:
    with Screen([sys.executable, "-c", EMPTY_APP]) as screen:
        return screen.until(b"painted")


def _first_paint(inputs: Inputs, times: int) -> Values:
    path = inputs.small(min(1_000_000, inputs.size))
    return ratios(times, lambda: _screen(path, VERDICT), _empty)


def _first_screen(inputs: Inputs, times: int) -> Values:
    path = inputs.large("mixed")
    return ratios(times, lambda: _screen(path, rb"reading|CRASHED"), _empty)


def _lnav(path: str) -> list[str]:
    return ["lnav", "-n", "-q", "-c", ":goto 0", "-c", ":quit", path]


def _verdict(inputs: Inputs, times: int) -> Values:
    if shutil.which("lnav") is None:
        return []
    path = inputs.large("mixed")
    return ratios(times, lambda: _screen(path, VERDICT), lambda: seconds(_lnav(path)))


def _less_memory(inputs: Inputs, times: int) -> Values:
    if shutil.which("lnav") is None:
        return []
    path = inputs.large("mixed")
    with Screen([*TRIAGE, path]) as screen:
        screen.until(VERDICT)
        return [screen.peak / run(_lnav(path))[1]]


def _answers(screen: Screen, there: bytes, back: bytes, keys: int) -> list[tuple[float, int]]:
    """Seconds and bytes of the answer to each of some keys, pressed to and fro."""
    return [screen.press(key) for _ in range(keys // 2) for key in (there, back)]


def _key(there: bytes, back: bytes, part: int) -> Callable[[Inputs, int], Values]:
    """The latency of a key in ms (`part` 0), or the bytes of its answer (1), on the long timeline."""

    def measure(inputs: Inputs, times: int) -> Values:
        with Screen([*TRIAGE, inputs.timeline()]) as screen:
            screen.until(rb"CLEAN")
            found = [_answers(screen, there, back, inputs.keys) for _ in range(times)]
        return [median(answer[part] * (1 if part else 1000) for answer in run) for run in found]

    return measure


def _busy_keys(inputs: Inputs, times: int) -> Values:
    """Keys on the timeline while the same large log is read again behind it."""

    def p95(screen: Screen) -> float:
        took = sorted(answer[0] for answer in _answers(screen, UP, DOWN, inputs.keys))
        return took[int(len(took) * 0.95)]

    found = []
    with Screen([*TRIAGE, inputs.large("chatty")]) as screen:
        screen.until(VERDICT)
        for _ in range(times):
            idle = p95(screen)
            screen.press(b"r")
            found.append(p95(screen) / idle)
            screen.settle(5.0)
    return found


def _start(inputs: Inputs, times: int) -> Values:
    path = inputs.small(100_000)
    return ratios(times * 3, lambda: seconds([*TRIAGE, "plan", path]), lambda: seconds(PASS))


def _append(large: bool) -> Callable[[Inputs, int], Values]:
    """Milliseconds of an append, without its fsync; the log is cut back afterwards, being ours."""

    def measure(inputs: Inputs, times: int) -> Values:
        path = inputs.large("mixed") if large else inputs.small(100_000)
        session = open_session(path)
        answers = {o.key: Answer("could-not-tell") for o in session.plan.owed if o.needs_acknowledgement}
        found = []
        for _ in range(times):
            with mock.patch("os.fsync"):
                start = perf_counter()
                session.apply(answers)
                found.append((perf_counter() - start) * 1000)
            os.truncate(path, session.journal.size)
            os.utime(path, (session.journal.status.st_mtime, session.journal.status.st_mtime))
        return found

    return measure


def _scan(inputs: Inputs, times: int) -> Values:
    files = inputs.many()
    folder = os.path.dirname(files[0])
    return ratios(times, lambda: seconds([*TRIAGE, "scan", folder]), parsing(*files))


_ON = {False: "both cores", True: "one core"}
_GOALS = {"mixed": (0.4, 0.55), "chatty": (0.6, 0.85), "fat": (0.2, 0.25)}

ROWS = (
    *(
        row
        for shape, goals in _GOALS.items()
        for row in (
            Row(f"`triage plan`, {shape}, both cores ÷ parsing each line", goals[0], _plan(shape, False)),
            Row(f"`triage plan`, {shape}, one core ÷ parsing each line", goals[1], _plan(shape, True)),
            Row(f"its peak memory, {shape} ÷ (60 MB + 24 bytes an event)", 1, _memory(shape)),
        )
    ),
    Row("`wc -l`, mixed ÷ parsing each line", 1, _wc),
    Row("`triage LOG`, first screen ÷ an empty Textual app", 1.5, _first_screen),
    Row("`triage LOG`, verdict ÷ lnav opening it", 0.35, _verdict),
    Row("`triage LOG`, peak memory ÷ lnav's", 1, _less_memory),
    Row("append without its fsync, large log", 5, _append(True), "ms"),
    Row("append without its fsync, 100 KB", 5, _append(False), "ms"),
    Row("`triage LOG`, 1 MB, verdict ÷ an empty Textual app", 1.25, _first_paint),
    Row("`triage plan`, 100 KB ÷ `python -c pass`", 5, _start),
    Row("a cursor key on the long timeline", 16, _key(UP, DOWN, 0), "ms"),
    Row("a page key on the long timeline", 33, _key(PAGE_UP, PAGE_DOWN, 0), "ms"),
    Row("what a cursor key sends", 2048, _key(UP, DOWN, 1), "bytes"),
    Row("what a page key sends", 2048, _key(PAGE_UP, PAGE_DOWN, 1), "bytes"),
    Row("keys while a large log is read, p95 ÷ idle", 3, _busy_keys),
    Row("`triage scan`, many small sessions ÷ parsing their lines", 1.2, _scan),
)
