"""The native format: one JSON object a line, `{"seq", "type", "time", "data"}`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triage.log.decoder import BaseDecoder
from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASSISTANT_MESSAGE,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
    KNOWN_TYPES,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_START,
    Event,
)
from triage.log.json_text import dumps
from triage.recovery.plan import Repair
from triage.recovery.rules import Records
from triage.recovery.seqs import LARGEST_SEQ

NAME = "native"
RECORDS = Records(dispatches="all", step_ends=True)
FIRST_KEYS: tuple[str, ...] = ("seq", "type", "time", "data")

_MOVES_A_CALL = {
    TOOL_CALL,
    TOOL_RESULT,
    APPROVAL_REQUESTED,
    APPROVAL_DECIDED,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
}


def recognise(record: Mapping[str, Any]) -> bool:
    """Whether a record is certainly of this format: a type of ours, or a seq and data beside a type."""
    type, data = record.get("type"), record.get("data", {})
    if not isinstance(type, str) or not isinstance(data, dict):
        return False
    ours = "data" in record and _is_seq(record.get("seq")) and "/" not in type  # as other formats' types are
    return type in KNOWN_TYPES or ours


def weigh(record: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """What a cut record may have been: (moved no call, may name a call, may open a turn)."""
    type = record.get("type")
    if not isinstance(type, str) or type not in KNOWN_TYPES:
        return False, True, True
    return type not in _MOVES_A_CALL, type in (ASSISTANT_MESSAGE, TOOL_CALL), type == TURN_START


class Decoder(BaseDecoder):
    """The records are the events: nothing has to be remembered."""

    def decode(self, record: Mapping[str, Any], line: int) -> Sequence[Event] | None:
        """The event that a record of a line (from 1) holds; None where it is no event."""
        get = record.get
        type, seq, data = get("type"), get("seq"), get("data")
        if not isinstance(type, str):
            return None
        data = data if isinstance(data, dict) else {}
        return (Event(type, data, line, seq if _is_seq(seq) else None, get("time")),)

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Mapping[str, Any]]],
    ) -> list[str]:
        """The lines to append, without newlines. `now` is the time of the append; None in a plan."""
        return [
            dumps({"seq": next_seq + index, "type": repair.type, "time": now, "data": repair.data})
            for index, repair in enumerate(repairs)
        ]


def decoder() -> Decoder:
    """A decoder for one log."""
    return Decoder()


def document(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """The records of a log that is one JSON document (`{"version": 2, "events": […]}`), else None."""
    events = value.get("events")
    return events if isinstance(events, list) else None


def _is_seq(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_SEQ
