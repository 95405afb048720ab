"""A line as records: what can be read of it with certainty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from triage.log import formats
from triage.log.events import Corrupt
from triage.log.json_text import Fragment, salvage, starts_with

BOM = b"\xef\xbb\xbf"
BLANK = b" \t\r\n"


def certain(raw: bytes) -> Mapping[str, Any] | None:
    """The record that a line is, where nothing about it is in doubt; else None."""
    try:
        record = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return record if type(record) is dict and not is_inexact(record) else None


def pieces_of(raw: bytes, format: formats.Format) -> list[Mapping[str, Any] | Fragment]:
    """The records of a line and the fragments between them, in order; positions count in its text."""
    record = certain(raw)
    if record is not None:
        return [record]
    return _salvaged(raw, format)


def _salvaged(raw: bytes, format: formats.Format) -> list[Mapping[str, Any] | Fragment]:
    # Without its newline, which in the middle of a cut text would make an error of what is merely cut.
    text = raw.removeprefix(BOM).removesuffix(b"\n").decode("utf-8", "surrogateescape")
    return salvage(text, starts_with(format.FIRST_KEYS), format.recognise)


def read_line(
    raw: bytes, line: int, offset: int, format: formats.Format
) -> list[Mapping[str, Any] | Corrupt]:
    """The records of a line that can be read with certainty and the stretches that can't, in order.

    `line` from 1; `offset` is the byte of the file at which the line begins. A blank line has neither.
    """
    record = certain(raw)
    return read_damaged(raw, line, offset, format) if record is None else [record]


def read_damaged(
    raw: bytes, line: int, offset: int, format: formats.Format
) -> list[Mapping[str, Any] | Corrupt]:
    """The same of a line that is no `certain` record."""
    pieces = _salvaged(raw, format)
    if len(pieces) == 1 and not isinstance(pieces[0], Fragment):
        return [pieces[0]]
    body = raw.removeprefix(BOM)
    offset += len(raw) - len(body)
    text = body.decode("utf-8", "surrogateescape")
    torn = not raw.endswith(b"\n")
    found: list[Mapping[str, Any] | Corrupt] = []
    for fragment in pieces:
        if not isinstance(fragment, Fragment):
            found.append(fragment)
            continue
        start = offset + _bytes(text[: fragment.start])
        stop = offset + _bytes(text[: fragment.stop].rstrip("\r\n"))
        tail = torn and fragment.stop == len(text)
        kind = fragment.record.get("type")
        kind = kind if isinstance(kind, str) else None
        says = _describe(text[fragment.start : fragment.stop], kind, start, stop, tail)
        found.append(Corrupt(line, start, stop, says, kind, tail, *format.weigh(fragment.record)))
    return found


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _describe(text: str, type: str | None, start: int, stop: int, torn: bool) -> str:
    where = f"bytes {start:,} to {stop:,} ({stop - start:,} bytes, kept)"
    if not text.strip("\0\r\n"):
        return f"a run of NUL bytes, as a power loss leaves them: {where}"
    what = f"a record of type {type}" if type else "a record"
    return (
        f"{what} cut short at the end of the log: {where}" if torn else f"{what} that can't be read: {where}"
    )


def is_inexact(record: Mapping[str, Any]) -> bool:
    """Whether the fast parser may have rounded an id or a turn: integers beyond 64 bits become floats."""
    data = record.get("data")
    if type(data) is not dict:
        return False
    if type(data.get("tool_call_id")) is float or type(data.get("id")) is float:
        return True
    if type(data.get("request_id")) is float or type(data.get("turn")) is float:
        return True
    calls = data.get("tool_calls")
    return type(calls) is list and any(
        type(call) is dict and (type(call.get("id")) is float or type(call.get("tool_call_id")) is float)
        for call in calls
    )
