"""Small files that belong to a log and lie beside it, read whole and never written."""

from __future__ import annotations

import os
import stat
from typing import Any

import orjson

LARGEST = 64 << 20  # bytes of one such file that are read


def read(path: str, largest: int = LARGEST) -> bytes:
    """The bytes of a regular file. Never waits, as a FIFO would make it.

    Raises FileNotFoundError where there is none, other OSErrors, and ValueError for one that is no
    regular file or larger than `largest` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > largest:
            raise ValueError(f"{path} is no regular file of at most {largest:,} bytes")
        pieces = []
        while piece := os.read(descriptor, 1 << 20):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def load(path: str, largest: int = LARGEST) -> Any:
    """The JSON value in a file. Raises as `read` does, and ValueError where it holds no JSON."""
    return orjson.loads(read(path, largest).removeprefix(b"\xef\xbb\xbf"))
