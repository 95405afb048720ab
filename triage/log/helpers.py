"""Reading a large native log with the help of other processes: they look ahead, this one takes that over.

The log is cut into pieces behind ends of turns. This process reads from the front, a helper takes the pieces
from the back, so that they meet whichever is the faster one.

What helpers hand back is taken only where this process's own reading is at rest on exactly that byte,
remembers no unanswered call, and expects that seq: there it would have found the same. Everything else it
reads itself, as without help. So help that comes to nothing or is killed costs time and changes no result.
"""

from __future__ import annotations

import marshal
import os
import re
import select
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Protocol

from triage.log.ahead import HEAD, Stretch
from triage.log.blocks import Read, blocks_of
from triage.log.fast import Quick

PIECE = 16 << 20  # bytes of a log that are looked at in one go, at least
MOST = 64  # pieces, about
NEAR = 32 << 20  # bytes in which a turn_end is looked for
POLITE = 5  # how far they stand back where somebody presses keys meanwhile
HEARD = 1 << 20  # bytes that are read of a pipe at a time
POLL_SECONDS = 0.1  # between two looks whether to go on waiting
_TURN_END = re.compile(rb'\n\{"seq":[0-9]+,"type":"turn_end",[^\n]*\n')
_CODE = """\
import sys
sys.path[:] = sys.argv[sys.argv.index("") + 1 :]
from triage.log.ahead import serve
serve(*map(int, sys.argv[1 : sys.argv.index("")]))
"""

Piece = tuple[int, int]  # the bytes at which it begins and stops
Progress = Callable[[int, int], None]


class Found:
    """What a helper found in a piece: see `ahead.Found`."""

    def __init__(self, packed: bytes | bytearray) -> None:
        """Raises EOFError, TypeError or ValueError for what was not packed so."""
        self.stretches: list[Stretch]
        self.stretches, offsets, self.codes = marshal.loads(packed)
        self.offsets = array("Q", offsets)

    def give(self, quick: Quick, stretch: Stretch) -> None:
        """Let `quick` take a stretch over where it would have found the same."""
        first, last, seq, time, data = stretch
        ends = memoryview(self.offsets)[first + 1 : last + 1]
        quick.take_over(
            self.offsets[first], seq - (last - first) + 1, ends, self.codes[first:last], (seq, time, data)
        )


class Helper:
    """A process that looks at pieces of a log, one after the other."""

    def __init__(self, descriptor: int, pieces: Sequence[Piece], nice: int) -> None:
        """Raises OSError where no process can be started."""
        self.found: dict[int, Found] = {}  # by where the piece begins
        self.at = -1  # where the piece begins that it is at
        self.left = {start: stop - start for start, stop in pieces}  # bytes
        self.done = 0  # bytes that it has looked at, as far as it was heard
        self._heard = bytearray()
        numbers = map(str, (descriptor, nice, *chain.from_iterable(pieces)))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CODE, *numbers, "", *filter(None, sys.path)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            pass_fds=(descriptor,), bufsize=0,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._pipe = self._process.stdout
        self._poll = select.poll()
        self._poll.register(self._pipe, select.POLLIN)

    def hear(self, seconds: float = 0) -> None:
        """Take what it says, waiting for at most so long. After its end nothing is left to come."""
        if not self.left or not self._poll.poll(seconds * 1000):
            return
        said = os.read(self._pipe.fileno(), HEARD)
        self._heard += said
        try:
            self._understand()
        except (ValueError, EOFError, TypeError, KeyError):
            said = b""
        if not said:
            self.left.clear()

    def _understand(self) -> None:
        while len(self._heard) >= HEAD.size:
            self.at, size = HEAD.unpack_from(self._heard)
            if len(self._heard) < HEAD.size + size:
                break
            if size:
                self.found[self.at] = Found(self._heard[HEAD.size : HEAD.size + size])
                self.done += self.left.pop(self.at)
            del self._heard[: HEAD.size + size]

    def stop(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()


class Ahead(Protocol):
    """What a helper is to the reading."""

    found: dict[int, Found]
    at: int
    left: dict[int, int]
    done: int

    def hear(self, seconds: float = 0) -> None: ...

    def stop(self) -> None: ...


def pieces_of(descriptor: int, size: int) -> list[Piece]:
    """The pieces of a log of `size` bytes, in its order."""
    cuts = [0]
    while cuts[-1] < size:
        cuts.append(_turn_end_after(descriptor, cuts[-1] + max(PIECE, size // MOST), size))
    return list(pairwise(cuts))


def start(descriptor: int, pieces: Sequence[Piece]) -> list[Helper]:
    """Processes for a log, as many as its reading gains from here; maybe none."""
    orders = [(pieces[:0:-1], 0)]
    if _aside():
        orders = [(pieces, POLITE), (pieces[:0:-1], POLITE)]
    if _cores() == 1:
        del orders[-1]
    helpers: list[Helper] = []
    try:
        for order, nice in orders:
            if order:
                helpers.append(Helper(descriptor, order, nice))
    except OSError:
        pass  # no process, no help
    return helpers


def _aside() -> bool:
    """Whether this is a thread beside a screen. Its reading would hold the interpreter against the screen."""
    return threading.current_thread() is not threading.main_thread()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _turn_end_after(descriptor: int, at: int, size: int) -> int:
    """The byte behind a turn_end that is near; `size` where there is none."""
    stop = min(size, at + NEAR)
    while at < stop:
        found = _TURN_END.search(os.pread(descriptor, 1 << 18, at))
        if found is not None:
            return min(size, at + found.end())
        at += (1 << 18) - (1 << 12)
    return size


def read(
    log: Read,
    pieces: Sequence[Piece],
    quick: Quick,
    helpers: Sequence[Ahead],
    progress: Progress | None,
) -> None:
    """Feed a whole log to `quick`, and what helpers found of it where that is the same; then end them."""
    told = own = 0
    size, aside = pieces[-1][1], _aside()

    def tell(more: int = 0) -> None:
        nonlocal told
        for helper in helpers:
            helper.hear()
        told = max(told, min(size, own + more + sum(helper.done for helper in helpers)))
        if progress is not None:
            progress(told, size)

    def go_on(to: int) -> None:
        nonlocal own
        start = quick.end
        if start < to:
            quick.feed(blocks_of(log, to, start, lambda at, _: tell(at - start)))
            own += to - start

    def wait_for(start: int) -> Found | None:
        """What a helper found in the piece that begins there; None where none is at it."""
        while True:
            for helper in helpers:
                if start in helper.found:
                    return helper.found.pop(start)
            busy = [helper for helper in helpers if start in helper.left and (aside or helper.at == start)]
            if not busy:
                return None
            busy[0].hear(POLL_SECONDS)
            tell()

    try:
        for start, stop in pieces:
            found = wait_for(start)
            if found is not None:
                for stretch in found.stretches:
                    go_on(found.offsets[stretch[0]])
                    found.give(quick, stretch)
            go_on(stop)
    finally:
        for helper in helpers:
            helper.stop()
