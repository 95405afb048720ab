"""The native format: one JSON object a line, `{"seq", "type", "time", "data"}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triage.log.events import KNOWN_TYPES, Event
from triage.log.json_text import dumps
from triage.recovery.plan import Repair
from triage.recovery.rules import Records
from triage.recovery.scan import LARGEST_SEQ

NAME = "native"
RECORDS = Records(dispatches="all", step_ends=True)


def recognise(record: Mapping[str, Any]) -> bool:
    """Whether a record is certainly of this format: a type of ours, or a seq and data beside a type."""
    type, data = record.get("type"), record.get("data", {})
    if not isinstance(type, str) or not isinstance(data, dict):
        return False
    return type in KNOWN_TYPES or ("data" in record and _is_seq(record.get("seq")))


def decode(record: Mapping[str, Any], line: int) -> Event | None:
    """The event that a record of a line (from 1) holds; None where it is no event."""
    type = record.get("type")
    if not isinstance(type, str):
        return None
    seq, data = record.get("seq"), record.get("data")
    return Event(
        type,
        data if isinstance(data, dict) else {},
        line,
        seq if _is_seq(seq) else None,
        record.get("time"),
    )


def encode(repairs: Sequence[Repair], next_seq: int, now: str | None) -> list[str]:
    """The lines to append, without newlines. `now` is the time of the append; None in a plan."""
    return [
        dumps({"seq": next_seq + index, "type": repair.type, "time": now, "data": repair.data})
        for index, repair in enumerate(repairs)
    ]


def _is_seq(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_SEQ
