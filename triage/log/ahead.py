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
from itertools import compress, count
from typing import Any

from triage.log.blocks import blocks_of
from triage.log.codes import CODES
from triage.log.events import Event
from triage.log.fast import Quick

DONE = 2**64 - 1  # among numbers of bytes read: what was found follows
TELL = 16  # blocks between two of those numbers
_turn_end = re.compile(rb'\{"seq":[0-9]+,"type":"turn_end",').match

# Lines (from 0, the second excluded) that were passed over; the line on which the last turn of them
# started; seq, time and data of its turn_end; whether a request_header was among them.
Stretch = tuple[int, int, int, int, Any, Mapping[str, Any], bool]


class Found:
    """Stands in for the scan, and keeps what was passed over: the rows of all lines, and the stretches."""

    def __init__(self, at: int) -> None:
        self.offsets = array("Q", [at])
        self.codes, self.depths = bytearray(), bytearray()
        self.mates = array("I")
        self.stretches: list[Stretch] = []
        self.idle = True
        self.remembers = False
        self.expected_seq: int | None = None

    def knows(self, ids: Iterable[bytes]) -> bool:
        """No call is remembered here; who takes a stretch over sees to that."""
        return False

    def pass_over(self, events: int, start: int, end: Event, headers: bool) -> None:
        """Lengthen the last stretch, or begin one."""
        first = end.line - events
        if self.expected_seq is not None and self.stretches:
            last = self.stretches.pop()
            first, headers = last[0], headers or last[6]
        self.stretches.append((first, end.line, start - 1, end.seq or 0, end.time, end.data, headers))
        self.expected_seq = (end.seq or 0) + 1

    def slow(self, line: int, raw: bytes) -> None:
        """A line that can't be passed over: behind the next turn_end a new stretch begins."""
        self.codes.append(0)
        self.depths.append(0)
        self.mates.append(0)
        self.idle, self.expected_seq = _turn_end(raw) is not None, None

    def pack(self) -> Iterator[bytes | bytearray | array[int]]:
        """All of it, piece by piece, for `helpers.Found`."""
        starts = array("I", compress(count(), self.mates))
        ends = array("I", filter(None, self.mates))
        parts = (self.offsets, starts, ends, self.codes, self.depths)
        sizes = [memoryview(part).nbytes for part in parts]
        head = marshal.dumps((self.stretches, sizes))
        yield len(head).to_bytes(8, "little")
        yield head
        yield from parts


def look(descriptor: int, start: int, stop: int, progress: Callable[[int, int], None] | None = None) -> Found:
    """Look at the lines from byte `start` to `stop` of a native log. `progress` as in `blocks_of`."""
    found = Found(start)
    quick = Quick(found, found.offsets, found.codes, found.depths, found.mates, CODES, found.slow, True)
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
