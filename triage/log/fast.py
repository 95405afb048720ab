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
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, islice
from typing import Any, Protocol

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

PROBE_FROM = 64 << 20  # bytes of a log from which its long lines are probed
PENDING_BYTES = 16 << 20  # of one turn that are kept; a longer one goes the slow way

_KINDS = (TOOL_RESULT, TOOL_CALL, STEP_START, STEP_END, TURN_START, USER_MESSAGE, SYSTEM_MESSAGE)
_PLAIN = frozenset((STEP_START, STEP_END, TURN_START, TURN_END, USER_MESSAGE, SYSTEM_MESSAGE, REQUEST_HEADER))
_MOVES = (TOOL_RESULT, TOOL_CALL)
_ID = rb'"tool_call_id":"([^"\\\x00-\x1f\x80-\xff]*)"'
_SHORT = rb"[^{]*\}\}\n\Z"  # to the end of the line, with no other record in it
_DATA = rb'","time":(?:"[^"]*"|null),"data":\{'
# The seq and, for the n-th of _KINDS, a group of its own, so that the last group tells which it is.
_probe = re.compile(
    rb'\{"seq":(0|[1-9][0-9]{0,17}),"type":"(?:tool_(?:'
    rb"result" + _DATA + _ID + rb"|call" + _DATA + _ID + rb")"
    rb"|step_(?:(start)|(end))" + _DATA + _SHORT + rb"|(turn_start)" + _DATA + _SHORT
    + rb"|(user_message)" + _DATA + rb"|(system_message)" + _DATA + rb")"
).match  # fmt: skip
_LONG = frozenset((2, 3, 7, 8))  # groups of which only the beginning was seen
# A record that begins anew: by its seq, its time or its data, or by a type of ours.
_second = re.compile(
    rb'\{[ \t]*"(?:(?:seq|time|data)"|type"[ \t]*:[ \t]*"(?:'
    rb"(?:tool|turn|step|user|assistant|system|request|approval|input)_))"
).search

Probe = Callable[[bytes], re.Match[bytes] | None]
Rows = bytes | bytearray | memoryview
End = tuple[int, Any, Mapping[str, Any]]  # seq, time and data of a turn_end


class Resting(Protocol):
    """What the quick way asks of a scan, and tells it."""

    @property
    def idle(self) -> bool:
        """Whether no turn is open."""

    @property
    def expected_seq(self) -> int | None:
        """The seq that the next event should carry; None where any would do."""

    @property
    def remembers(self) -> bool:
        """Whether any unanswered call is remembered."""

    def knows(self, ids: Iterable[bytes]) -> bool:
        """Whether an unanswered call of one of these ids (UTF-8) is remembered."""

    def pass_over(self, events: int, start: int, end: Event, headers: bool) -> None:
        """Take a stretch of events that ends in the `turn_end` of the turn of line `start`."""


class Quick:
    """Takes the lines of a native log in order and writes their rows of the index.

    `offsets` gets where each line ends, in bytes. `code_of` gives a type's code; `slow(line, raw)` indexes
    one line (from 1). `probing`: whether the long lines of closed turns are probed rather than parsed.
    """

    def __init__(
        self,
        scan: Resting,
        offsets: array[int],
        codes: bytearray,
        depths: bytearray,
        mates: array[int],
        code_of: Mapping[str, int],
        slow: Callable[[int, bytes], None],
        probing: bool,
    ) -> None:
        self._scan, self._slow, self._probing = scan, slow, probing
        self._offsets, self._codes, self._depths, self._mates = offsets, codes, depths, mates
        self._code_of = {kind: code_of[kind] for kind in (*_KINDS, *_PLAIN, ASSISTANT_MESSAGE)}
        self._code_at = (0, 0, *(code_of[kind] for kind in _KINDS))  # by the probe's last group
        # Of the stretch since the last turn that closed:
        self._kept: list[bytes] = []  # its lines in earlier blocks
        self._new_codes = bytearray()
        self._pairs: list[tuple[int, int]] = []  # of steps, by their places in the stretch
        self._steps: list[int] = []  # open ones
        self._named: set[bytes] = set()
        self._waiting: set[bytes] = set()  # those of them without a result
        self._forget()

    def _forget(self) -> None:
        """Begin a stretch."""
        for part in (self._kept, self._new_codes, self._pairs, self._steps):
            part.clear()
        self._named.clear()
        self._waiting.clear()
        self._turn = -1  # where the turn started in the stretch; -1: it has not yet
        self._expected = self._scan.expected_seq

    @property
    def at_rest(self) -> bool:
        """Whether every line so far was dealt with and no turn is open."""
        return self._scan.idle and not self._kept

    def feed(self, blocks: Iterable[tuple[list[bytes], bool]]) -> None:
        """Index blocks of lines, but for the stretch at their end that is still open.

        With each block: whether a NUL byte is in it, so that nothing there may be probed.
        """
        for lines, damaged in blocks:
            at = self._offsets.pop()
            self._offsets.extend(accumulate(map(len, lines), initial=at))
            probe = _probe if self._probing and not damaged else _undecided
            done = 0
            while done < len(lines):
                if self._scan.idle:
                    done = self._take(lines, done, probe)
                else:
                    self._slow(len(self._codes) + 1, lines[done])
                    done += 1
                    if self._scan.idle:
                        self._forget()

    def finish(self) -> None:
        """Send the stretch that is still open the slow way: no more lines come."""
        self._give_up([])

    def _give_up(self, lines: list[bytes]) -> None:
        stretch = [*self._kept, *lines]
        self._forget()
        for raw in stretch:
            self._slow(len(self._codes) + 1, raw)
        self._forget()

    def _take(self, lines: list[bytes], done: int, probe: Probe) -> int:
        """Pass over the turns that close in `lines[done:]`. Returns how many lines are dealt with.

        One long loop: it sees millions of lines, and a call for each would take as long as all it does.
        """
        record: dict[str, Any] = {}
        first = done  # of the stretch, in this block
        codes, pairs, steps = self._new_codes, self._pairs, self._steps
        named, waiting = self._named, self._waiting
        turn, expected = self._turn, self._expected
        code_of, code_at = self._code_of, self._code_at
        result, call, message = code_of[TOOL_RESULT], code_of[TOOL_CALL], code_of[ASSISTANT_MESSAGE]
        step_start, step_end = code_of[STEP_START], code_of[STEP_END]
        turn_start, turn_end = code_of[TURN_START], code_of[TURN_END]
        for raw in islice(lines, done, None):
            done += 1
            match = probe(raw)
            if match is None or (
                (group := match.lastindex or 0) in _LONG
                and (raw[-3:] != b"}}\n" or _second(raw, 1) is not None)
            ):
                parsed = _parsed(raw)
                if parsed is None:
                    break
                number, kind, id, record = parsed
                code = code_of[kind]
            else:
                number, code = int(match[1]), code_at[group]
                id = match[group]
            if number != expected and expected is not None:
                break
            expected = number + 1
            if code == result:
                if id not in waiting:
                    break
                waiting.remove(id)
            elif code == call:
                if id not in named:
                    break
            elif code == message:
                before = len(named)
                named.update(id)
                waiting.update(id)
                if len(named) != before + len(id) or (id and turn < 0):
                    break
            elif code == step_start:
                if turn < 0:
                    break
                steps.append(len(codes))
            elif code == step_end:
                if not steps:
                    break
                pairs.append((steps.pop(), len(codes)))
            elif code == turn_start:
                if turn >= 0:
                    break
                turn = len(codes)
            elif code == turn_end:
                if turn < 0 or steps or waiting or record.get("time") is None or self._scan.knows(named):
                    break
                codes.append(code)
                self._pass_over(turn, record)
                first, turn = done, -1
                continue
            codes.append(code)
        else:
            self._turn, self._expected = turn, expected
            self._kept += lines[first:]
            if sum(map(len, self._kept)) > PENDING_BYTES:
                self._give_up([])
            return done
        self._give_up(lines[first:done])
        return done

    def _pass_over(self, turn: int, record: dict[str, Any]) -> None:
        """Write the rows of a stretch that ended in a turn_end, and begin the next one."""
        codes, pairs = self._new_codes, self._pairs
        depths = bytearray(turn + 1) + b"\1" * (len(codes) - turn - 2) + b"\0"
        for start, stop in pairs:
            depths[start + 1 : stop] = b"\2" * (stop - start - 1)
        pairs.append((turn, len(codes) - 1))
        end = record["seq"], record["time"], record["data"]
        self._write(codes, depths, pairs, turn, end, self._code_of[REQUEST_HEADER] in codes)

    def _write(
        self,
        codes: Rows,
        depths: Rows,
        pairs: Iterable[tuple[int, int]],
        turn: int,
        end: End,
        headers: bool,
    ) -> None:
        before, count = len(self._codes), len(codes)
        self._codes += codes
        self._depths += depths
        self._mates.frombytes(bytes(self._mates.itemsize * count))
        for start, stop in pairs:
            self._mates[before + start] = before + stop + 1
        seq, time, data = end
        event = Event(TURN_END, data, before + count, seq, time)
        self._scan.pass_over(count, before + turn + 1, event, headers)
        self._forget()

    # ---- what another process found

    @property
    def end(self) -> int:
        """The byte at which the next line begins."""
        return self._offsets[-1]

    def may_take_over(self, at: int, seq: int) -> bool:
        """Whether turns that begin at byte `at` with `seq` may be passed over unseen.

        They may where that is the next line, nothing is open before it and no call is remembered that one
        of theirs may be taken for.
        """
        scan = self._scan
        return at == self.end and self.at_rest and scan.expected_seq in (None, seq) and not scan.remembers

    def take_over(
        self,
        offsets: memoryview,
        codes: Rows,
        depths: Rows,
        pairs: Iterable[tuple[int, int]],
        turn: int,
        end: End,
        headers: bool,
    ) -> None:
        """Take a stretch of turns that another `Quick` passed over, from where it began.

        `pairs` and `turn`, where the last of them started, are places in the stretch; `end` is its turn_end.
        """
        self._offsets.frombytes(offsets.cast("B"))
        self._write(codes, depths, pairs, turn, end, headers)


def _undecided(raw: bytes) -> None:
    """The probe for lines that are all parsed."""


def _parsed(raw: bytes) -> tuple[int, str, Any, dict[str, Any]] | None:
    """Seq, kind, id (UTF-8; of a message the list of those that it names) and record of a line."""
    try:
        record = orjson.loads(raw)
        seq, kind, data = record["seq"], record["type"], record["data"]
        if type(seq) is not int or not 0 <= seq < 10**18 or type(data) is not dict:
            return None
        if kind == ASSISTANT_MESSAGE:
            calls = data.get("tool_calls")
            if type(calls) is not list:
                return None if calls is not None else (seq, kind, (), record)
            return seq, kind, [call["id"].encode() for call in calls], record
        if kind in _PLAIN:
            return seq, kind, None, record
        return (seq, kind, data["tool_call_id"].encode(), record) if kind in _MOVES else None
    except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
        return None
