"""The exact bytes that an append would write, with the answers given so far."""

from __future__ import annotations

from dataclasses import replace

from triage.recovery.acknowledge import answered
from triage.tui.desk import Desk
from triage.tui.fields import pieces
from triage.tui.paper import Line, Paper
from triage.words import counted


def preview(desk: Desk) -> bytes:
    """The bytes to append; times and other values that are made at the append are null in them."""
    if not desk.answers:
        return desk.session.preview()
    plan = desk.plan
    given = plan._replace(owed=tuple(owed for owed in plan.owed if owed.key in desk.answers))
    planned = plan._replace(repairs=answered(given, desk.answers))
    return replace(desk.session, plan=planned).preview()


def preview_paper(desk: Desk) -> Paper:
    """The bytes as a text, each record from its own line on."""
    data = preview(desk)
    missing = len(desk.missing)
    says = f"{len(data):,} bytes as planned; a time or an id that is made when they are written is null here"
    lines = [Line(((says, "head"),))]
    if missing:
        says = f"{counted(missing, 'answer')} still missing: they will stand in the metadata of their results"
        lines.append(Line(((says, "unknown"),)))
    if data.startswith(b"\n"):
        lines.append(Line((("(a newline first: the log does not end in one)", "dim"),)))
    number = desk.session.journal.lines
    for record in data.decode("utf-8", "replace").strip("\n").split("\n"):
        number += 1
        lines += [Line(()), Line(((f"line {number:,}", "title"),))]
        lines += [Line(((piece, "text"),)) for piece in pieces(record)]
    return Paper(lambda: iter(lines))
