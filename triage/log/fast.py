"""The quick way through the closed turns of a native log: the same result as line by line, for less.

Lines are kept until their turn closes. A turn that closed with each of its calls answered once, its steps
paired, its seqs counting up and no line that can't be read leaves nothing behind, and is passed over.
Every other turn, and all that is still open at the end of the file, goes the slow way, line by line.

In a large log, and where there are many, these lines are not parsed: see `glance`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import accumulate, compress
from typing import Any, Protocol

from triage.log.codes import CODES, table
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
from triage.log.index import Index
from triage.log.seen import KINDS, MOVES, NOTHING, Seen, parse

TYPES_FROM = 8 << 20  # bytes from which decoding by types is worth its import
GLANCE_FROM = 64 << 20  # bytes of a log from which its long lines are glanced at
PENDING_BYTES = 16 << 20  # of one turn that are kept; a longer one goes the slow way

_ONES = {kind: table(**{kind: 1}) for kind in KINDS}
_SETTLING = table(assistant_message=1, tool_call=1, tool_result=1, turn_end=1)
_CALL, _RESULT, _MESSAGE = CODES[TOOL_CALL], CODES[TOOL_RESULT], CODES[ASSISTANT_MESSAGE]


def _any(*kinds: str) -> bytes:
    return b"[" + b"".join(re.escape(bytes((CODES[kind],))) for kind in kinds) + b"]"


_said = _any(USER_MESSAGE, SYSTEM_MESSAGE, REQUEST_HEADER, ASSISTANT_MESSAGE)
_inside = _any(USER_MESSAGE, SYSTEM_MESSAGE, REQUEST_HEADER, ASSISTANT_MESSAGE, *MOVES)
# Turns that closed, with what was said before each, by their codes.
_closed_turns = re.compile(
    b"(?>%s*+%s(?>%s|%s%s*+%s)*+%s)++"
    % (_said, _any(TURN_START), _inside, _any(STEP_START), _inside, _any(STEP_END), _any(TURN_END)),
    re.DOTALL,
).fullmatch

Rows = bytes | bytearray
See = Callable[[list[bytes]], Seen]
End = tuple[int, Any, Mapping[str, Any]]  # seq, time and data of a turn_end


_small = parse  # how to look at the lines of a small log


def sight(size: int, glancing: bool) -> See:
    """How to look at the lines of `size` bytes. `glancing`: without all of a long one."""
    if size < TYPES_FROM and not glancing:
        return _small
    from triage.log.glance import decode, glance

    return glance if glancing else decode


def expect_many() -> None:
    """Many logs will be read by this process: decoding by types is worth its import for small ones, too."""
    global _small
    from triage.log.glance import decode

    _small = decode


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

    def knows(self, ids: Iterable[str]) -> bool:
        """Whether an unanswered call of one of these ids is remembered."""

    def pass_over(self, events: int, end: Event, headers: bool) -> None:
        """Take a stretch of events that ends in a `turn_end`."""


class Quick:
    """Takes the lines of a native log in order and writes their rows of the index.

    `slow(line, raw)` indexes one line (from 1), `see` looks at some of them.
    """

    def __init__(
        self,
        scan: Resting,
        index: Index,
        slow: Callable[[int, bytes], None],
        see: See,
    ) -> None:
        self._scan, self._index, self._slow, self._see = scan, index, slow, see
        self._kept = NOTHING  # since the last turn that closed

    @property
    def at_rest(self) -> bool:
        """Whether every line so far was dealt with and no turn is open."""
        return self._scan.idle and not self._kept.raw

    def feed(self, blocks: Iterable[tuple[list[bytes], bool]]) -> None:
        """Index blocks of lines, but for the stretch at their end that is still open.

        With each block: whether a NUL byte is in it, so that nothing there may be glanced at.
        """
        for lines, damaged in blocks:
            at = self._index.offsets.pop()
            self._index.offsets.extend(accumulate(map(len, lines), initial=at))
            done = 0 if self._kept.raw or self._scan.idle else self._slowly(lines, 0, 0)
            if done < len(lines):
                see = parse if damaged or not lines[-1].endswith(b"\n") else self._see
                self._kept = self._kept.then(see(lines[done:] if done else lines))
                self._settle()

    def finish(self) -> None:
        """Send the stretch that is still open the slow way: no more lines come."""
        lines, self._kept = self._kept.raw, NOTHING
        self._slowly(lines, 0, len(lines))

    def _slowly(self, lines: list[bytes], done: int, stop: int) -> int:
        """Send lines the slow way from `done` to `stop`, and on until no turn is open. Returns how far."""
        while done < stop or (done < len(lines) and not self._scan.idle):
            self._slow(self._index.lines + 1, lines[done])
            done += 1
        return done

    def _settle(self) -> None:
        """Pass over the turns that closed, all at once or one by one, and send the others the slow way."""
        kept, done = self._kept, 0
        last = kept.codes.rfind(CODES[TURN_END]) + 1
        if last and self._pass_over(kept.part(0, last)):
            done = last
        while done < last:
            stop = kept.codes.index(CODES[TURN_END], done) + 1
            passed = self._pass_over(kept.part(done, stop))
            done = stop if passed else self._slowly(kept.raw, done, stop)
        self._kept = kept.part(done)
        if self._kept.raw and sum(map(len, self._kept.raw)) > PENDING_BYTES:
            self.finish()

    def _pass_over(self, lines: Seen) -> bool:
        """Take turns that end with the last of `lines`, if they leave nothing behind."""
        first = self._scan.expected_seq
        if first is None:
            first = lines.seqs[0]
        counting = lines.seqs == list(range(first, first + len(lines.seqs)))
        if not counting or not 0 <= first <= lines.seqs[-1] < 10**18 or not _closed_turns(lines.codes):
            return False
        named = _answered(lines.codes, lines.found)
        ends = list(_of(lines.found, lines.codes, TURN_END))
        if named is None or None in [end.get("time") for end in ends] or self._scan.knows(named):
            return False
        self._write(lines.codes, (ends[-1]["seq"], ends[-1]["time"], ends[-1]["data"]))
        return True

    def _write(self, codes: Rows, end: End) -> None:
        """Write the rows of turns that closed, the last of them by `end`."""
        self._index.add_turns(codes)
        seq, time, data = end
        event = Event(TURN_END, data, self._index.lines, seq, time)
        self._scan.pass_over(len(codes), event, CODES[REQUEST_HEADER] in codes)

    # ---- what another process found

    @property
    def end(self) -> int:
        """The byte at which the next line begins."""
        return self._index.offsets[-1]

    def take_over(self, at: int, seq: int, offsets: memoryview, codes: Rows, end: End) -> None:
        """Take turns that another `Quick` passed over, where this one would pass over them too.

        They begin at byte `at` with `seq`; `offsets` is where each of their lines ends. This one would where
        that is the next line, nothing is open before it and no call is remembered that one of theirs may be
        taken for.
        """
        scan = self._scan
        if at == self.end and self.at_rest and scan.expected_seq in (None, seq) and not scan.remembers:
            self._index.offsets.frombytes(offsets.cast("B"))
            self._write(codes, end)


def _of(found: Iterable[Any], codes: Rows, kind: str) -> Iterator[Any]:
    """What was found in the lines of a kind."""
    return compress(found, codes.translate(_ONES[kind]))


def _answered(codes: Rows, found: Iterable[Any]) -> Collection[str] | None:
    """The ids of the calls; None unless each is named once, then answered once, before the turn ends."""
    named: dict[str, bool] = {}
    owed: dict[str, bool] = {}
    for code, what in compress(zip(codes, found, strict=True), codes.translate(_SETTLING)):
        if code == _CALL:
            if what not in owed:
                return None
        elif code == _RESULT:
            if owed.pop(what, None) is None:
                return None
        elif code == _MESSAGE:
            for id in what:
                if id in named:
                    return None
                named[id] = owed[id] = True
        elif owed:  # where a turn ends
            return None
    return named
