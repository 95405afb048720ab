"""Reading a large native log with the help of other processes: they look ahead, this one takes that over.

What they hand back is taken only where this process's own reading is at rest on exactly that byte, remembers
no unanswered call, and expects that seq: there it would have found the same. Everything else it reads itself,
as without help. So help that comes to nothing or is killed costs time and changes no result.
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
from functools import partial
from typing import Protocol

from triage.log.ahead import DONE, Stretch
from triage.log.blocks import blocks_of
from triage.log.fast import Quick

START = 32 << 20  # bytes that this process reads while another one starts
NEAR = 32 << 20  # bytes in which a turn_end is looked for
POLITE = 5  # how far they stand back where somebody presses keys meanwhile
PIECE = 1 << 20  # bytes that are read of a pipe at a time
POLL_SECONDS = 0.1  # between two looks whether to go on waiting
_TURN_END = re.compile(rb'\n\{"seq":[0-9]+,"type":"turn_end",[^\n]*\n')
_CODE = """\
import sys
sys.path[:] = sys.argv[5:]
from triage.log.ahead import serve
serve(*map(int, sys.argv[1:5]))
"""

Progress = Callable[[int, int], None]


class Found:
    """What a helper found: see `ahead.Found`."""

    def __init__(self, read: Callable[[int], bytes | bytearray]) -> None:
        """`read` gives the next bytes of what was packed. Raises EOFError, TypeError or ValueError."""
        self.stretches: list[Stretch]
        length = int.from_bytes(read(8), "little")
        self.stretches, lines = marshal.loads(read(length))
        self.offsets = array("Q")
        self.offsets.frombytes(read((lines + 1) * self.offsets.itemsize))
        self.codes = read(lines)
        if len(self.codes) != lines:
            raise EOFError

    def give(self, quick: Quick, stretch: Stretch) -> None:
        """Let `quick` take a stretch over where it would have found the same."""
        first, last, seq, time, data = stretch
        ends = memoryview(self.offsets)[first + 1 : last + 1]
        quick.take_over(
            self.offsets[first], seq - (last - first) + 1, ends, self.codes[first:last], (seq, time, data)
        )


class Helper:
    """A process that looks at the bytes `start` to `stop` of a log."""

    def __init__(self, descriptor: int, start: int, stop: int, nice: int) -> None:
        """Raises OSError where no process can be started."""
        self.start, self._said, self._size = start, 0, stop - start
        numbers = map(str, (descriptor, start, stop, nice))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CODE, *numbers, *filter(None, sys.path)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            pass_fds=(descriptor,), bufsize=0,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._poll = select.poll()
        self._poll.register(self._process.stdout, select.POLLIN)

    @property
    def done(self) -> int:
        """How many bytes it has read, as far as it was heard."""
        return min(self._said, self._size)

    def hear(self, seconds: float = 0) -> bool:
        """Take what it says next, waiting for at most so long; False when it has no more of that to say."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        if self._said != DONE and self._poll.poll(seconds * 1000):
            number = _exactly(pipe, 8)
            if len(number) < 8:
                return False
            self._said = int.from_bytes(number, "little")
        return self._said != DONE

    def wait(self, meanwhile: Callable[[], None]) -> Found | None:
        """What it found, None where that came to nothing. `meanwhile` is called now and then."""
        while self.hear(POLL_SECONDS):
            meanwhile()
        if self._said != DONE:
            return None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        try:
            return Found(partial(_exactly, pipe))
        except (OSError, ValueError, EOFError, TypeError):
            return None

    def stop(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


class Ahead(Protocol):
    """What a helper is to the reading."""

    start: int

    @property
    def done(self) -> int: ...

    def hear(self) -> bool: ...

    def wait(self, meanwhile: Callable[[], None]) -> Found | None: ...

    def stop(self) -> None: ...


def start(descriptor: int, size: int) -> list[Helper]:
    """Processes for a log of `size` bytes, as many as its reading gains from here; maybe none.

    In a thread the reading would hold the interpreter against the screen, so they do all of it there.
    """
    aside = threading.current_thread() is not threading.main_thread()
    cut = (
        _turn_end_after(descriptor, size // 2 if aside else (size + START) // 2, size)
        if _cores() > 1
        else size
    )
    ranges = [(start, stop) for start, stop in ((0, cut), (cut, size)) if stop > start]
    helpers: list[Helper] = []
    try:
        for begin, stop in ranges if aside else ranges[1:]:
            helpers.append(Helper(descriptor, begin, stop, POLITE if aside else 0))
    except OSError:
        pass  # no process, no help
    return helpers


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _turn_end_after(descriptor: int, at: int, size: int) -> int:
    """The byte behind a turn_end that is near; `size` where there is none."""
    stop = min(size, at + NEAR)
    while at < stop:
        found = _TURN_END.search(os.pread(descriptor, 1 << 20, at))
        if found is not None:
            return min(size, at + found.end())
        at += (1 << 20) - (1 << 12)
    return size


def read(
    descriptor: int, size: int, quick: Quick, helpers: Sequence[Ahead], progress: Progress | None
) -> None:
    """Feed a whole log to `quick`, and what helpers found of it where that is the same; then end them."""
    told = own = 0

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
            quick.feed(blocks_of(descriptor, to, start, lambda at, _: tell(at - start)))
            own += to - start

    try:
        for helper in helpers:
            go_on(helper.start)
            found = helper.wait(tell)
            if found is not None:
                for stretch in found.stretches:
                    go_on(found.offsets[stretch[0]])
                    found.give(quick, stretch)
        go_on(size)
    finally:
        for helper in helpers:
            helper.stop()


def _exactly(pipe: int, size: int) -> bytearray:
    """The next `size` bytes of a pipe; fewer where it ends before."""
    said = bytearray()
    while len(said) < size and (more := os.read(pipe, min(PIECE, size - len(said)))):
        said += more
    return said
