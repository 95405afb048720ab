"""What a second process does for the reading of a large log: it looks at pieces of it that come later.

In each it begins as if nothing were open there and passes over closed turns as `fast.Quick` does. Where a
turn can't be passed over it goes on behind the next turn_end. `triage.log.helpers` starts it and takes over
what it found. It imports little, because the other process waits.
"""

from __future__ import annotations

import marshal
import os
import re
import struct
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from triage.log.blocks import blocks_of
from triage.log.events import Event
from triage.log.fast import Quick
from triage.log.glance import glance
from triage.log.index import Index

HEAD = struct.Struct("QQ")  # of what it says: where a piece begins, and how many bytes follow on it
_turn_end = re.compile(rb'\{"seq":[0-9]+,"type":"turn_end",').match

# Lines (from 0, the second excluded) that were passed over; seq, time and data of the last one.
Stretch = tuple[int, int, int, Any, Mapping[str, Any]]


class Found:
    """Stands in for the scan, and keeps what was passed over: the rows of all lines, and the stretches."""

    def __init__(self, at: int) -> None:
        self.index = Index(at=at)
        self.stretches: list[Stretch] = []
        self.idle = True
        self.remembers = False
        self.expected_seq: int | None = None

    def knows(self, ids: Iterable[str]) -> bool:
        """No call is remembered here; who takes a stretch over sees to that."""
        return False

    def pass_over(self, events: int, end: Event, headers: bool) -> None:
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

    def pack(self) -> bytes:
        """All of it, for `helpers.Found`; of the open stretch at the end there is nothing to tell."""
        lines = len(self.index.codes)
        return marshal.dumps((self.stretches, self.index.offsets[: lines + 1].tobytes(), self.index.codes))


def look(descriptor: int, start: int, stop: int) -> Found:
    """Look at the lines from byte `start` to `stop` of a native log."""
    found = Found(start)
    Quick(found, found.index, found.slow, glance).feed(blocks_of(partial(os.pread, descriptor), stop, start))
    return found


def serve(descriptor: int, nice: int, *bounds: int) -> None:
    """Look at one piece after the other, and write to stdout which one is begun and what was found in it.

    `bounds` are the bytes at which each begins and stops.
    """
    os.nice(nice)
    with os.fdopen(1, "wb", buffering=0) as out:
        for start, stop in zip(bounds[::2], bounds[1::2], strict=True):
            out.write(HEAD.pack(start, 0))
            packed = look(descriptor, start, stop).pack()
            said = memoryview(HEAD.pack(start, len(packed)) + packed)
            while said:
                said = said[out.write(said) :]
