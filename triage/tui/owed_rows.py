"""The list of what a log owes: calls, most dangerous first, then calls that are left, then anomalies."""

from __future__ import annotations

from typing import NamedTuple

from triage.recovery.plan import Left, Owed
from triage.recovery.state import Anomaly
from triage.text import clean
from triage.tui.desk import Desk
from triage.tui.row import Row, Span, row, wrap
from triage.tui.rows import Fixed
from triage.tui.theme import LABEL_STYLES
from triage.words import GLYPHS, at_the_end, counted, plan_in_words, what_next

ORDER = ("UNKNOWN", "WAITING", "NOT STARTED", "DENIED")  # the most dangerous first
SHOWN = 2000  # entries of one kind that are listed; the rest are counted


class Entry(NamedTuple):
    """What stands on a row of the list."""

    owed: Owed | None = None
    left: Left | None = None
    anomaly: Anomaly | None = None


class OwedRows(Fixed):
    """The list as a source of rows; `entries` says what stands on a row, where something does."""

    def __init__(self, desk: Desk, width: int) -> None:
        self.entries: dict[int, Entry] = {}
        rows: list[Row] = []
        plan = desk.plan
        ordered = sorted(plan.owed, key=lambda owed: ORDER.index(owed.label))
        for owed in ordered[:SHOWN]:
            self.entries[len(rows)] = Entry(owed=owed)
            rows += _owed(owed, desk)
        if len(ordered) > SHOWN:
            rows.append(row((f"  and {len(ordered) - SHOWN:,} more, in the timeline", "dim")))
        rows += _plan(desk, width)
        rows += self._left(plan.left, len(rows))
        rows += self._anomalies(plan.anomalies, len(rows))
        super().__init__(rows, frozenset(self.entries))

    def index_of(self, owed: Owed) -> int | None:
        """The row of an owed call."""
        return next((at for at, entry in self.entries.items() if entry.owed is owed), None)

    def _left(self, left: tuple[Left, ...], start: int) -> list[Row]:
        if not left:
            return []
        rows = [row((f"left as they are: {counted(len(left), 'call')} that no crash owes", "title"))]
        for one in left[:SHOWN]:
            self.entries[start + len(rows)] = Entry(left=one)
            name = clean(one.name or "(no name)", limit=30)
            rows.append(
                Row(
                    (("○ LEFT  ", "started"), (f"{name}  {clean(one.tool_call_id, limit=40)}", "text")),
                    ((f"line {one.line:,}", "dim"),),
                )
            )
        return rows

    def _anomalies(self, anomalies: tuple[Anomaly, ...], start: int) -> list[Row]:
        if not anomalies:
            return []
        rows = [row(("wrong with the log itself", "title"))]
        for one in anomalies[:SHOWN]:
            self.entries[start + len(rows)] = Entry(anomaly=one)
            where = f"line {one.line:,}  " if one.line else ""
            rows.append(
                row(
                    ("! ", "unknown"),
                    (where, "dim"),
                    (f"{clean(one.code)}  ", "text"),
                    (clean(one.says), "dim"),
                )
            )
        return rows


def _owed(owed: Owed, desk: Desk) -> list[Row]:
    style = LABEL_STYLES[owed.label]
    answer = desk.answers.get(owed.key)
    found: tuple[Span, ...] = ((f"[{answer.finding}] ", "head"),) if answer else ()
    first = Row(
        (
            (f"{GLYPHS[owed.label]} {owed.label:<11} ", style),
            (f"{clean(owed.name or '(no name)', limit=30):<11} ", "head"),
            (clean(owed.key, limit=60), "text"),
        ),
        (*found, (f"rule {owed.rule}", "dim")),
    )
    return [first, row(("  " + clean(owed.why), "dim"))]


def _plan(desk: Desk, width: int) -> list[Row]:
    """What would be appended, how far the answers are, and what may happen next."""
    plan = desk.plan
    rows: list[Row] = []
    if plan.repairs:
        asked = len(desk.asked)
        checked = f" · {asked - len(desk.missing)} of {asked} checked" if asked else " · nothing to check"
        rows += wrap([("plan: ", "title"), (plan_in_words(plan) + checked, "text")], width, 6)
    if plan.doubt:
        rows += wrap([("? ", "unknown"), (clean(plan.doubt), "text")], width, 2)
    if plan.status == "crashed" and desk.session.corrupt_in_the_way:
        rows += wrap([("! ", "unknown"), (clean(desk.session.corrupt_in_the_way), "text")], width, 2)
    if plan.refusal is not None:
        rows += wrap([("✖ can't be appended: ", "bad"), (clean(plan.refusal.says), "text")], width, 2)
    rows += wrap([("next: ", "title"), (clean(what_next(plan.boundary)), "text")], width, 6)
    for says in at_the_end(plan, desk.clock()):
        rows += wrap([("      ", "title"), (clean(says), "dim")], width, 6)
    return rows
