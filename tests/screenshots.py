"""Make the pictures of `screenshots/` anew: `python -m tests.screenshots`.

They show a sample log at a fixed time, so they are the same on every machine and change only when a
screen does.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path

from triage.fleet.scan import Crew, Scan
from triage.session import Activity, Session, open_session
from triage.tui.app import make_app
from triage.tui.theme import DARK

ROOT = Path(__file__).parents[1]
FOLDER = "sample_logs"
LOG = f"{FOLDER}/crashed-dispatched.jsonl"
NOW = datetime(2026, 5, 20, 14, 11, tzinfo=UTC)

# What each picture shows: the size of the terminal, and the keys that lead there.
PICTURES: dict[str, tuple[tuple[int, int], Sequence[str]]] = {
    "triage": ((120, 40), ()),
    "accept": ((100, 20), ("a", "R", "c", *"refund", "space", *"re", "underscore", *"91", "enter")),
    "narrow": ((80, 24), ()),
    "evidence": ((100, 40), ("enter",)),
    "sessions": ((120, 40), ("j", "j")),
}


def _quiet(session: Session) -> Activity:
    return Activity((), grown=0, replaced=False, lately=False, unchecked="")


async def _picture(name: str, size: tuple[int, int], keys: Sequence[str]) -> str:
    source = Scan([FOLDER], Crew(0)) if name == "sessions" else open_session(LOG)
    app = make_app(source, operator="ann", clock=lambda: NOW, theme=DARK, look=_quiet)
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press(*keys)
        await app.workers.wait_for_complete()
        await pilot.pause()
        return app.export_screenshot(title="triage")


def pictures() -> dict[str, str]:
    """The SVG of each picture by its name. Drafts of whoever runs this are neither read nor written."""
    before = {name: os.environ.get(name) for name in ("XDG_STATE_HOME", "NO_COLOR")}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        os.environ.pop("NO_COLOR", None)
        try:
            with chdir(ROOT):  # no path of the host is in a picture
                return {name: asyncio.run(_picture(name, *how)) for name, how in PICTURES.items()}
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def main() -> None:
    folder = ROOT / "screenshots"
    folder.mkdir(exist_ok=True)
    for name, svg in pictures().items():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        sys.stdout.write(f"screenshots/{name}.svg\n")


if __name__ == "__main__":
    main()
