"""What the loader of DeepSeek Harness would refuse a session for, so that nothing may be appended to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triage.recovery.plan import Plan, Refusal

LATEST = 4  # the latest version of the log that is appended to; a newer one is only read


class Oddities:
    """What is odd about a log, noted while it is read. Lines count from 1."""

    def __init__(self) -> None:
        self.version: Any = None
        self.headless: int | None = None  # line of a first record that is no header
        self.gap: tuple[int, int, int] | None = None  # line, expected seq, seq
        self.unstamped: int | None = None  # line of an event without seq or time
        self.hole: int | None = None  # line that holds no record at all
        self.index = -1  # of the last event, from 0
        self._headed = False
        self._last_line = 0

    def line(self, line: int) -> None:
        """A record stands on this line."""
        if line > self._last_line + 1 and self.hole is None:
            self.hole = self._last_line + 1
        self._last_line = line

    def header(self, record: Mapping[str, Any], line: int) -> None:
        """The record is a header: it has to be the log's first."""
        if line == 1 and not self._headed:
            self.version = record.get("version")
        elif self.headless is None:
            self.headless = line
        self._headed = True

    def event(self, line: int) -> None:
        """The record is an event: a header has to stand before it."""
        if not self._headed and self.headless is None:
            self.headless = line

    def seq(self, seq: int | None, time: Any, line: int) -> None:
        """An event with this seq and time: each seq has to be the event's index from 0."""
        if seq is None or time is None:
            self.unstamped = self.unstamped or line
        if seq is not None and seq != self.index + 1 and self.gap is None:
            self.gap = line, self.index + 1, seq
        self.index = self.index + 1 if seq is None else seq


def refuse(odd: Oddities, plan: Plan) -> Refusal | None:
    """The first reason why nothing may be appended, else None."""
    for code, says in _reasons(odd, plan):
        if says:
            ids = tuple(owed.tool_call_id for owed in plan.owed)
            return Refusal(code, says, boundary=plan.boundary.name, ids=ids)
    return None


def _reasons(odd: Oddities, plan: Plan) -> list[tuple[str, str]]:
    return [
        ("newer_version", _newer(odd)),
        ("corrupt_line", _corrupt(odd, plan)),
        ("corrupt_line", _torn(plan)),  # it would be one as soon as anything stood behind it
        ("snapshot", _snapshot(odd)),
        ("seq_gap", _gap(odd)),
        ("empty_call_id", _empty_id(plan)),
    ]


def _newer(odd: Oddities) -> str:
    version = odd.version
    if odd.headless is not None or (isinstance(version, int) and 0 <= version <= LATEST):
        return ""
    return (
        f"its header (line 1) says version {version!r}, and up to {LATEST} is known: it is read, but never "
        "appended to; update triage, or let DeepSeek Harness close the turn itself when it opens the session"
    )


def _corrupt(odd: Oddities, plan: Plan) -> str:
    lines = [a.line for a in plan.anomalies if a.code in ("corrupt_line", "glued_records") and a.line]
    bad = min([*lines, *([odd.hole] if odd.hole and not lines else [])], default=None)
    if bad is not None:
        return (
            f"line {bad:,} is committed and can't be read as one record: DeepSeek Harness refuses the whole "
            "session if a turn end follows such a line. Restore that line from a backup first"
        )
    if odd.headless is not None:
        return (
            f"line {odd.headless:,} stands where the session's header belongs: DeepSeek Harness does not "
            "open such a log. Restore the first line from a backup first"
        )
    return ""


def _torn(plan: Plan) -> str:
    line = next((a.line for a in plan.anomalies if a.code == "torn_tail"), None)
    if line is None:
        return ""
    return (
        f"line {line:,}, the last one, is cut short: DeepSeek Harness drops it and closes the turn itself "
        "when it opens the session, and would refuse the session if anything stood behind it. Note "
        "elsewhere what you found, and open the session there"
    )


def _snapshot(odd: Oddities) -> str:
    if odd.unstamped is None:
        return ""
    return (
        f"line {odd.unstamped:,} carries no seq or no time: this is a snapshot of a session, not the log "
        "that DeepSeek Harness reads. Repair the session's own file"
    )


def _gap(odd: Oddities) -> str:
    if odd.gap is None:
        return ""
    line, expected, seq = odd.gap
    return (
        f"line {line:,} carries seq {seq:,} where {expected:,} belongs: DeepSeek Harness refuses a log with "
        "such a gap. Restore the missing records from a backup first"
    )


def _empty_id(plan: Plan) -> str:
    line = next((owed.line for owed in plan.owed if not owed.tool_call_id), None)
    if line is None:
        return ""
    return (
        f"the call on line {line:,} has an empty callId: no result can name it. Check by hand whether it "
        "ran; DeepSeek Harness closes the turn itself when it opens the session"
    )
