"""What the quick way through a native log has to know of each line."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from triage.log.codes import CODES
from triage.log.events import (
    ASSISTANT_MESSAGE,
    REQUEST_HEADER,
    STEP_END,
    STEP_START,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    USER_MESSAGE,
)

PLAIN = (STEP_START, STEP_END, TURN_START, USER_MESSAGE, SYSTEM_MESSAGE, REQUEST_HEADER)
MOVES = (TOOL_RESULT, TOOL_CALL)
KINDS = (*PLAIN, *MOVES, TURN_END, ASSISTANT_MESSAGE)  # the others are none of the quick way's
UNKNOWN = (-1, 0, None)


class Seen(NamedTuple):
    """Lines that follow each other, and what was seen of each."""

    raw: list[bytes]
    seqs: list[int]  # -1 where the quick way can't tell
    codes: bytearray  # 0 or that of a type that is none of `KINDS` where it can't
    found: list[Any]  # a move's id, the ids that a message names, a turn_end's record

    def part(self, start: int, stop: int | None = None) -> Seen:
        """From `start` to `stop`, excluded."""
        if start == len(self.raw):
            return NOTHING
        if not start and stop == len(self.raw):
            return self
        here = slice(start, stop)
        return Seen(self.raw[here], self.seqs[here], self.codes[here], self.found[here])

    def then(self, more: Seen) -> Seen:
        """These and the ones that follow them."""
        if not self.raw:
            return more
        return Seen(
            self.raw + more.raw, self.seqs + more.seqs, self.codes + more.codes, self.found + more.found
        )


NOTHING = Seen([], [], bytearray(), [])


def parse(lines: list[bytes]) -> Seen:
    """See lines by parsing each."""
    seqs, codes, found = zip(*map(parsed, lines), strict=True)
    return Seen(lines, list(seqs), bytearray(codes), list(found))


def parsed(raw: bytes) -> tuple[int, int, Any]:
    """The seq, the code and what is found of one line."""
    try:
        record = orjson.loads(raw)
        seq, kind, data = record["seq"], record["type"], record["data"]
        if type(seq) is not int or type(data) is not dict:
            return UNKNOWN
        if kind in PLAIN:
            return seq, CODES[kind], None
        if kind in MOVES and type(data["tool_call_id"]) is str:
            return seq, CODES[kind], data["tool_call_id"]
        if kind == TURN_END:
            return seq, CODES[kind], record
        if kind != ASSISTANT_MESSAGE:
            return UNKNOWN
        calls = data.get("tool_calls")
        ids = () if calls is None else [call["id"] for call in calls]
        fits = (calls is None or type(calls) is list) and all(type(id) is str for id in ids)
        return (seq, CODES[kind], ids) if fits else UNKNOWN
    except (orjson.JSONDecodeError, TypeError, KeyError):
        return UNKNOWN
