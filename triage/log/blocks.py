"""The bytes of a log as lines. Plain reads, some at a time, split on the byte newline alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from itertools import chain

BLOCK = 1 << 18  # bytes read at a time

Read = Callable[[int, int], bytes]  # at most so many bytes of a log, from a byte of it on


def is_small(size: int) -> bool:
    """Whether a log of so many bytes is read all at once."""
    return size <= BLOCK


def read_of(descriptor: int, size: int) -> Read:
    """How the first `size` bytes of an open file are read: those of a small one all at once, now.

    Raises OSError where that fails, also for a file that only says that it is empty.
    """
    if not is_small(size):
        return partial(os.pread, descriptor)
    data = os.pread(descriptor, max(size, 1), 0)
    while len(data) < size and (more := os.pread(descriptor, size - len(data), len(data))):
        data += more  # some file systems give less than they are asked for
    return held(data)


def held(data: bytes) -> Read:
    """How bytes are read that are in memory."""
    return lambda size, at: data[at : at + size]


def blocks_of(
    read: Read, size: int, at: int = 0, progress: Callable[[int, int], None] | None = None
) -> Iterator[tuple[list[bytes], bool]]:
    """The lines from byte `at` to `size`, some at a time, and whether a NUL byte may be among them.

    They are split on the byte newline alone; each comes with its newline. `progress` gets the bytes read up
    to here and `size`.
    """
    pieces: list[bytes] = []  # of a line that goes on past its block
    damaged = False
    while at < size:
        block = read(min(BLOCK, size - at), at)
        if not block:
            break
        at += len(block)
        if progress is not None:
            progress(at, size)
        damaged = b"\0" in block or (damaged and bool(pieces))
        lines = BytesIO(block).readlines()
        if pieces:
            pieces.append(lines.pop(0))
            if not pieces[-1].endswith(b"\n"):
                continue
            lines.insert(0, b"".join(pieces))
            pieces = []
        if not lines[-1].endswith(b"\n"):
            pieces = [lines.pop()]
        yield lines, damaged
    if pieces:
        yield [b"".join(pieces)], damaged


def lines_of(
    read: Read, size: int, at: int = 0, progress: Callable[[int, int], None] | None = None
) -> Iterator[bytes]:
    """The lines from byte `at` to `size`, as `blocks_of` splits them."""
    return chain.from_iterable(lines for lines, _ in blocks_of(read, size, at, progress))
