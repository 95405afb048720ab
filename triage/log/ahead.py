"""What a second process does for the reading of a large log: it looks at a later range of it.

It begins at a line as if nothing were open there and passes over closed turns as `fast.Quick` does. Where a
turn can't be passed over it goes on behind the next turn_end. `triage.log.helpers` starts it and takes over
what it found. It imports little, because the other process waits.
"""

from __future__ import annotations

import marshal
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from triage.log.blocks import blocks_of
from triage.log.events import Event
from triage.log.fast import Quick
from triage.log.glance import glance
from triage.log.index import Index

DONE = 2**64 - 1  # among numbers of bytes read: what was found follows
TELL = 16  # blocks between two of those numbers
_turn_end = re.compile(rb'\{"seq":[0-9]+,"type":"turn_end",').match

# Lines (from 0, the second excluded) that were passed over; seq, time and data of the last one.
Stretch = tuple[int, int, int, Any, Mapping[str, Any]]


class Found:
    """Stands in for the scan, and keeps what was passed over: the rows of all lines, and the stretches."""

    def __init__(self, at: int) -> None:
        self.index = Index()
        self.index.offsets[0] = at
        self.stretches: list[Stretch] = []
        self.idle = True
        self.remembers = False
        self.expected_seq: int | None = None

    def knows(self, ids: Iterable[str]) -> bool:
        """No call is remembered here; who takes a stretch over sees to that."""
        return False

    def pass_over(self, events: int, start: int, end: Event, headers: bool) -> None:
        """Lengthen the last stretch, or begin one."""
        first = end.line - events
        if self.expected_seq is not None and self.stretches:
            first = self.stretches.pop()[0]
        self.stretches.append((first, end.line, end.seq or 0, end.time, end.data))
        self.expected_seq = (end.seq or 0) + 1

    def slow(self, line: int, raw: bytes) -> None:
        """A line that can't be passed over: behind the next turn_end a new stretch begins."""
        self.index.add(0, 0)
        self.idle, self.expected_seq = _turn_end(raw) is not None, None

    def pack(self) -> Iterator[bytes | bytearray | array[int]]:
        """All of it, piece by piece, for `helpers.Found`."""
        lines = len(self.index.codes)  # of the open stretch at the end there is nothing to tell
        head = marshal.dumps((self.stretches, lines))
        yield len(head).to_bytes(8, "little")
        yield head
        yield self.index.offsets[: lines + 1]
        yield self.index.codes


def look(descriptor: int, start: int, stop: int, progress: Callable[[int, int], None] | None = None) -> Found:
    """Look at the lines from byte `start` to `stop` of a native log. `progress` as in `blocks_of`."""
    found = Found(start)
    quick = Quick(found, found.index, found.slow, glance)
    quick.feed(blocks_of(descriptor, stop, start, progress))
    return found


def serve(descriptor: int, start: int, stop: int, nice: int) -> None:
    """Look, and write to stdout how many bytes were read now and then, and at last what was found."""
    os.nice(nice)
    blocks = 0

    def tell(at: int, size: int) -> None:
        nonlocal blocks
        blocks += 1
        if blocks % TELL == 0:
            os.write(1, (at - start).to_bytes(8, "little"))

    found = look(descriptor, start, stop, tell)
    with os.fdopen(1, "wb") as out:
        out.write(DONE.to_bytes(8, "little"))
        out.writelines(found.pack())
