"""Seeing the lines of a native log without their payloads.

They are decoded by types that name no payload, which checks their syntax and builds nothing of it. Where any
line of a block does not fit the types, each of them is parsed.

In a very large log only the first keys of a long line are looked at, by a probe that is anchored at the first
byte, so that nothing quoted inside can fool it; they are decoded in the line's place. The probe never sees
the rest. A torn line that was glued to the next one shows by a second record start, a cut one by its end;
both are decoded whole. A byte that changed inside a long line of a closed turn is not seen. It can't change
what an open turn owes: no plan rests on a glance.
"""

from __future__ import annotations

import re
from enum import Enum
from itertools import compress, count
from typing import Any, Self

import msgspec

from triage.log.codes import CODES, table
from triage.log.seen import Seen, parse, parsed

LONG = 2 << 10  # bytes of a line from which it is probed

_MESSAGES, _TURN_ENDS = table(assistant_message=1), table(turn_end=1)
# A result and a call need their id in front.
_probe = re.compile(
    rb'\{"seq":(?:0|[1-9][0-9]*+),"type":"(?:(?:user|system)_message|(tool_(?:call|result)))",'
    rb'"time":(?:"[^"\\]*"|null),"data":\{(?(1)"tool_call_id":"[^"\\]*")'
).match
# A record that begins anew: by its seq, its time or its data, or by a type of ours.
_second = re.compile(
    rb'\{[ \t]*"(?:(?:seq|time|data)"|type"[ \t]*:[ \t]*"(?:'
    rb"(?:tool|turn|step|user|assistant|system|request|approval|input)_))"
).search


class _Kind(Enum):
    """A type, which has its code in it."""

    _ignore_ = "kind"
    for kind in CODES:
        vars()[kind] = kind

    code: int

    def __new__(cls, kind: str) -> Self:
        self = object.__new__(cls)
        self._value_, self.code = kind, CODES[kind]
        return self

    @classmethod
    def _missing_(cls, _: object) -> Self:
        return cls("other")


class _Call(msgspec.Struct, gc=False):
    id: str


class _Data(msgspec.Struct, gc=False):
    tool_call_id: str | None = None
    tool_calls: list[_Call] | None = None


class _Record(msgspec.Struct, gc=False):
    seq: int
    type: _Kind
    data: _Data


_decode = msgspec.json.Decoder(_Record).decode


def glance(lines: list[bytes]) -> Seen:
    """See lines, none of which has a NUL byte in it, and of the long ones only the first keys."""
    heads = lines.copy()
    for at in [at for at, line in enumerate(lines) if len(line) > LONG]:
        match = _probe(lines[at])
        if match is not None and lines[at][-3:] == b"}}\n" and _second(lines[at], match.end()) is None:
            heads[at] = match[0] + b"}}\n"
    return _seen(lines, heads)


def decode(lines: list[bytes]) -> Seen:
    """See lines and check each of their bytes."""
    return _seen(lines, lines)


def _seen(lines: list[bytes], heads: list[bytes]) -> Seen:
    """What is seen of lines; `heads` stand in for them."""
    try:
        records = list(map(_decode, heads))
    except (msgspec.DecodeError, RecursionError):
        return parse(lines)
    seqs = [record.seq for record in records]
    codes = bytearray([record.type.code for record in records])
    found: list[Any] = [record.data.tool_call_id for record in records]
    for at in compress(count(), codes.translate(_MESSAGES)):
        found[at] = [call.id for call in records[at].data.tool_calls or ()]
    for at in compress(count(), codes.translate(_TURN_ENDS)):
        seqs[at], codes[at], found[at] = parsed(lines[at])
    return Seen(lines, seqs, codes, found)
