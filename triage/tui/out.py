"""What leaves the screen: the summary to the clipboard, and exports as files that nobody else may read."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from triage import contract, report
from triage.export import write_new
from triage.log.json_text import dumps
from triage.redact import redact
from triage.tui.choice import Choice, ChoiceScreen
from triage.tui.clipboard import copy

if TYPE_CHECKING:
    from triage.tui.view import View


def copy_summary(screen: View[Any]) -> None:
    """Copy the incident summary as Markdown."""
    text = report.markdown(screen.desk.session, redacted=screen.desk.redact)
    note = copy(screen.app, text)
    screen.say(
        f"copied the incident summary as Markdown, {len(text):,} characters{f' ({note})' if note else ''}"
    )


async def ask_what_to_export(screen: View[Any]) -> None:
    """Ask for the kind of export, then write it beside the log, or where that can't be, in this folder."""
    choices = [
        Choice("markdown", "Markdown", "the incident summary"),
        Choice("json", "JSON", "the plan, as `triage plan --json` prints it"),
        Choice("svg", "SVG", "a picture of this screen"),
    ]

    def chosen(kind: str | None) -> None:
        if kind is not None:
            screen.call_after_refresh(_export, screen, kind)

    await screen.app.push_screen(
        ChoiceScreen(screen.desk, "export", "Which kind? Nothing is overwritten.", choices), chosen
    )


def _export(screen: View[Any], kind: str) -> None:
    session = screen.desk.session
    if kind == "svg":
        suffix, text = ".svg", screen.app.export_screenshot(title="triage")
    elif kind == "markdown":
        suffix, text = ".md", report.markdown(session, redacted=screen.desk.redact)
    else:
        row = contract.plan_row(session)
        suffix, text = ".json", dumps(redact(row) if screen.desk.redact else row) + "\n"
    stem = "triage-" + os.path.splitext(os.path.basename(session.path))[0]
    folder = os.getcwd()
    try:
        path = write_new(folder, stem, suffix, text)
    except OSError as error:
        screen.say(f"could not write into {folder}: {error.strerror or error}", bad=True)
        return
    screen.say(f"written: {shlex.quote(path)} (only you may read it)")
