"""The quick way through the closed turns of a native log: the same result as line by line, for less.

Lines are kept until their turn closes. A turn that closed with each of its calls answered once, its steps
paired, its seqs counting up and no line that can't be read leaves nothing behind, and is passed over.
Every other turn, and all that is still open at the end of the file, goes the slow way, line by line.

In a large log the long lines are not parsed: a probe reads their first keys, anchored at the first byte,
so that nothing quoted inside can fool it; where it can't decide, the line is parsed whole. It never sees
the rest of the line. A torn line that was glued to the next one shows by a second record start, a cut
one by its end, a lost block of the disk by its NUL bytes; all are parsed whole. A byte that changed inside
a result of a closed turn is not seen there. It can't change what an open turn owes: no plan rests on a
probe.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import orjson

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
    Event,
)
from triage.recovery.scan import Scan

PROBE_FROM = 64 << 20  # bytes of a log from which its long lines are probed
PENDING_BYTES = 16 << 20  # of one turn that are kept; a longer one goes the slow way

_TEXT = rb'"([^"\\\x00-\x1f\x80-\xff]*)"'
_PROBED = (TOOL_RESULT, TOOL_CALL, USER_MESSAGE, SYSTEM_MESSAGE)  # the long ones; the rest is cheap to parse
_WHOLE = (ASSISTANT_MESSAGE, TURN_START, TURN_END, STEP_START, STEP_END, REQUEST_HEADER)
_probe = re.compile(
    rb'\{"seq":(0|[1-9][0-9]{0,17}),"type":"(' + "|".join(_PROBED).encode() + rb')","time":(?:'
    + _TEXT + rb'|null),"data":\{(?:"tool_call_id":' + _TEXT + rb")?"
).match  # fmt: skip
_SECOND = b'{"seq":'
_KINDS = {kind.encode(): kind for kind in (*_PROBED, *_WHOLE)}


class Quick:
    """Takes the lines of a native log in order and writes their rows of the index.

    `code_of` gives a type's code; `slow(line, raw)` indexes one line (from 1). `probing`: whether the long
    lines of closed turns are probed rather than parsed.
    """

    def __init__(
        self,
        scan: Scan,
        codes: bytearray,
        depths: bytearray,
        mates: array[int],
        code_of: dict[str, int],
        slow: Callable[[int, bytes], None],
        probing: bool,
    ) -> None:
        self._probing = probing
        self._scan, self._codes, self._depths, self._mates = scan, codes, depths, mates
        self._code_of, self._slow = code_of, slow
        self._clear()

    def _clear(self) -> None:
        self._pending: list[bytes] = []
        self._bytes = 0
        self._open = False
        self._new_codes = bytearray()
        self._new_depths = bytearray()
        self._pairs: list[tuple[int, int]] = []
        self._steps: list[int] = []
        self._start = 0
        self._calls: set[Any] = set()
        self._answered: set[Any] = set()
        self._headers = False
        self._expected = self._scan.expected_seq

    def feed(self, lines: Iterable[bytes], offsets: array[int]) -> None:
        """Index every line. `offsets` gets where each one ends, in bytes."""
        at, line = offsets[-1], len(offsets) - 1
        scan, slow = self._scan, self._slow
        add = offsets.append
        quick = scan.idle
        for raw in lines:
            at += len(raw)
            line += 1
            add(at)
            if quick:
                self._pending.append(raw)
                if self._takes(raw, line):
                    continue
                self._give_up(line)
            else:
                slow(line, raw)
            quick = scan.idle
            if quick:
                self._clear()
        if self._pending:
            self._give_up(line)

    def _give_up(self, line: int) -> None:
        """Send what is pending the slow way; `line` is its last."""
        pending, first = self._pending, line - len(self._pending) + 1
        self._pending = []
        for number, raw in enumerate(pending, first):
            self._slow(number, raw)

    def _takes(self, raw: bytes, line: int) -> bool:
        """Whether the stretch up to this line is still one that leaves nothing behind."""
        found = self._by_probe(raw) if self._probing else None
        if found is None:
            found = _whole(raw)
        if found is None:
            return False
        number, kind, id = found
        if self._expected is not None and number != self._expected:
            return False
        self._expected = number + 1
        return self._step(kind, id, line, raw)

    def _by_probe(self, raw: bytes) -> tuple[int, bytes, Any] | None:
        match = _probe(raw)
        if match is None or not raw.endswith(b"}}\n") or raw.find(_SECOND, 8) >= 0 or b"\0" in raw:
            return None
        seq, kind, _, id = match.groups()
        if id is None and (kind == b"tool_result" or kind == b"tool_call"):
            return None
        return int(seq), kind, id

    def _step(self, kind: bytes, id: Any, line: int, raw: bytes) -> bool:
        depth = 1 + bool(self._steps) if self._open else 0
        if kind == b"tool_result":
            if not self._open or id not in self._calls or id in self._answered:
                return False
            self._answered.add(id)
        elif kind == b"tool_call":
            if id not in self._calls:
                return False
        elif kind == b"assistant_message":
            if not self._name(id):
                return False
        elif kind == b"step_start":
            if not self._open:
                return False
            self._steps.append(line)
        elif kind == b"step_end":
            if not self._steps:
                return False
            self._pairs.append((self._steps.pop(), line))
            depth = 1 + bool(self._steps)
        elif kind == b"turn_start":
            if self._open:
                return False
            self._open, self._start = True, line
        elif kind == b"turn_end":
            return self._close(line, raw)
        elif kind == b"request_header":
            self._headers = True
        self._bytes += len(raw)
        self._new_codes.append(self._code_of[_KINDS[kind]])
        self._new_depths.append(depth)
        return self._bytes < PENDING_BYTES

    def _name(self, ids: list[str]) -> bool:
        if not self._open or self._calls.intersection(ids):
            return not ids
        self._calls.update(ids)
        return len(set(ids)) == len(ids)

    def _close(self, line: int, raw: bytes) -> bool:
        """A turn_end: pass the turn over where it leaves nothing behind."""
        calls = self._calls
        if not self._open or self._steps or calls != self._answered or self._scan.knows(calls):
            return False
        record = orjson.loads(raw)
        end = Event(TURN_END, record["data"], line, record["seq"], record.get("time"))
        if end.time is None:
            return False
        count = len(self._pending)
        self._new_codes.append(self._code_of[TURN_END])
        self._new_depths.append(0)
        self._codes += self._new_codes
        self._depths += self._new_depths
        self._mates.frombytes(bytes(self._mates.itemsize * count))
        for start, ended in (*self._pairs, (self._start, line)):
            self._mates[start - 1] = ended
        self._scan.pass_over(count, self._start, end, self._headers)
        self._clear()
        return True


def _whole(raw: bytes) -> tuple[int, bytes, Any] | None:
    """Seq, kind and id of a line that was parsed whole (the ids that it names, for a message)."""
    try:
        record = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if type(record) is not dict:
        return None
    seq, kind, data = record.get("seq"), record.get("type"), record.get("data")
    if type(seq) is not int or not 0 <= seq < 10**18 or type(kind) is not str or type(data) is not dict:
        return None
    kind = kind.encode("utf-8")
    if kind not in _KINDS:
        return None
    if kind == b"assistant_message":
        return _named(seq, kind, data)
    id = data.get("tool_call_id")
    if (kind == b"tool_result" or kind == b"tool_call") and type(id) is not str:
        return None
    return seq, kind, id.encode("utf-8") if type(id) is str else None


def _named(seq: int, kind: bytes, data: dict[str, Any]) -> tuple[int, bytes, Any] | None:
    calls = data.get("tool_calls")
    if calls is None:
        return seq, kind, []
    if type(calls) is not list:
        return None
    ids = [call.get("id") if type(call) is dict else None for call in calls]
    named = [id.encode("utf-8") for id in ids if type(id) is str]
    return (seq, kind, named) if len(named) == len(ids) else None
