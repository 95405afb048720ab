"""Logs and apps for the tests of the screens: the clock stands still, and nothing of the host shows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.helpers import (
    GARBAGE,
    Happening,
    dispatch,
    event,
    log,
    names,
    result,
    step_end,
    step_start,
    turn_end,
)
from tests.helpers import turn_start as starts
from triage.fleet.scan import Crew, Part, Scan
from triage.session import Activity, Session, open_session
from triage.tui.app import TriageApp, make_app
from triage.tui.theme import DARK

NOW = datetime(2026, 5, 20, 11, 0, 30, tzinfo=UTC)
NAME = "sess_7f3.jsonl"

REFUND = (
    "call_0a92",
    "http_post",
    {"method": "POST", "url": "https://pay.example/v1/refunds", "id": "re_91"},
)
RESTART = ("call_0a91", "bash", {"command": "kubectl rollout restart deploy/pay"})
READ = ("call_0a93", "read_file", {"path": "CHANGELOG.md"})


def says(text: str) -> dict[str, Any]:
    return event("user_message", content=text)


def _message(text: str, *calls: Any) -> dict[str, Any]:
    named = names(*calls)
    return {**named, "data": {**named["data"], "content": text}}


def healthy_turn(number: int, prompt: str) -> list[Happening]:
    """A turn of two steps in which everything was answered."""
    id = f"call_{number:04}"
    return [
        starts(number),
        says(prompt),
        step_start(step=1),
        names((id, "read_file", {"path": f"src/part_{number}.py"})),
        dispatch(id, "read_file", arguments={"path": f"src/part_{number}.py"}),
        result(id, f"# part {number}\nimport os\n"),
        step_end(step=1),
        step_start(step=2),
        event("assistant_message", content=f"Part {number} is fine."),
        step_end(step=2),
        turn_end(turn=number, reason="completed"),
    ]


def crashed() -> list[Happening]:
    """Two healthy turns, an earlier refund that was answered, then one refund that nothing answers."""
    earlier = ("call_0007", "http_post", {"url": "https://pay.example/v1/refunds", "id": "re_90"})
    return [
        event("system_message", content="You are the release agent."),
        *healthy_turn(1, "look at the parts"),
        starts(2),
        says("refund the first one"),
        step_start(step=1),
        names(earlier),
        dispatch("call_0007", "http_post", arguments=earlier[2]),
        result("call_0007", '{"status": "succeeded", "id": "re_90"}', name="http_post"),
        step_end(step=1),
        turn_end(turn=2, reason="completed"),
        starts(3),
        says("ship the release"),
        step_start(step=1),
        names(("call_0a90", "read_file", {"path": "VERSION"})),
        dispatch("call_0a90", "read_file", arguments={"path": "VERSION"}),
        result("call_0a90", "4.12.0"),
        step_end(step=1),
        step_start(step=2),
        _message("Shipping it now.", RESTART, REFUND, READ),
        dispatch("call_0a92", "http_post", arguments=REFUND[2]),
    ]


def two_unknown() -> list[Happening]:
    """Two refunds that nothing answers, one call that waits for a person, one that never started."""
    calls = [
        ("call_1", "http_post", {"url": "https://pay.example/v1/refunds", "id": "re_91"}),
        ("call_2", "bash", {"command": "terraform apply"}),
        ("call_3", "bash", {"command": "rm -rf build"}),
        ("call_4", "read_file", {"path": "README.md"}),
    ]
    return [
        starts(1),
        says("clean up and ship"),
        step_start(step=1),
        names(*calls),
        dispatch("call_1", "http_post"),
        dispatch("call_2", "bash"),
        event("approval_requested", request_id="apr_1", tool_call_id="call_3", reason="deletes files"),
    ]


def clean_log() -> list[Happening]:
    return [*healthy_turn(1, "look at the parts"), *healthy_turn(2, "and once more")]


def quiet(session: Session) -> Activity:
    """Nobody else has the log in hand, whatever the host does."""
    return Activity((), grown=0, replaced=False, lately=False, unchecked="")


def write(folder: Path, happenings: Sequence[Happening], tail: bytes = b"") -> str:
    """A log in a folder; returns its name alone, so tests work inside the folder."""
    (folder / NAME).write_bytes(log(*happenings) + tail)
    return NAME


def app_on(path: str, **options: Any) -> TriageApp:
    """The app on a log, with the clock at `NOW`."""
    return _app(open_session(path), **options)


def picker_on(*starts: str, scan: Any = None, **options: Any) -> TriageApp:
    """The app on the sessions below some paths, which are read without workers; or on another scan."""
    return _app(scan or Scan(starts, Crew(0)), **options)


class Held:
    """A scan that finds nothing by itself and goes on until it is stopped, or a test hangs."""

    starts = ("logs",)

    def __init__(self) -> None:
        self.waits = threading.Event()
        self.stopped = False

    def parts(self, stopped: Callable[[], bool]) -> Iterator[Part]:
        for _ in range(1000):
            self.stopped = stopped()
            if self.stopped:
                return
            self.waits.wait(0.02)
        yield Part([], 0, False)


def _app(source: Any, **options: Any) -> TriageApp:
    return make_app(
        source,
        operator=options.pop("operator", "ann"),
        clock=lambda: NOW,
        theme=options.pop("theme", DARK),
        look=options.pop("look", quiet),
        **options,
    )


def folder_of_sessions(folder: Path) -> str:
    """A folder: one session may have done damage, others owe less or nothing, one file is no log."""
    logs = folder / "logs"
    (logs / "deep").mkdir(parents=True)
    for name, happenings in {
        "clean.jsonl": clean_log(),
        "deep/refund.jsonl": crashed(),
        "doubtful.jsonl": [*clean_log(), GARBAGE, names(("k1", "bash", {"command": "make"}))],
        "reading.jsonl": [starts(1), says("read the notes"), step_start(), names("r1"), step_end()],
        "waiting.jsonl": [
            *(starts(1), says("tidy up"), step_start(), names("w1")),
            event("approval_requested", request_id="apr_1", tool_call_id="w1"),
        ],
    }.items():
        (logs / name).write_bytes(log(*happenings))
    (logs / "notes.txt").write_text("no log\n")
    return "logs"


async def settle(pilot: Pilot[Any]) -> None:
    """Wait until no worker runs and what they posted was taken."""
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


Steps = Callable[[Pilot[Any]], Awaitable[Any]]


def drive(app: TriageApp, steps: Sequence[str] | Steps, size: tuple[int, int] = (80, 24)) -> str:
    """Press keys (`~` waits for workers), or run steps on the app. Returns the screen's text at the end."""

    async def run() -> str:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            if callable(steps):
                await steps(pilot)
            else:
                for key in steps:
                    await (settle(pilot) if key == "~" else pilot.press(key))
            await pilot.pause()
            return screen_text(app) if app.is_running else ""

    return asyncio.run(run())


def screen_text(app: TriageApp) -> str:
    """What stands on the screen, row by row."""
    width, height = app.size
    rows = [[" "] * width for _ in range(height)]
    for widget in app.screen.walk_children():
        region = widget.region
        for y in range(region.height if widget.display else 0):
            text = "".join(segment.text for segment in widget.render_line(y)) if region.width else ""
            if 0 <= region.y + y < height:
                rows[region.y + y][region.x : region.x + len(text)] = text
    return "\n".join("".join(row) for row in rows)
