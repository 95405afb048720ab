"""Logs that are compressed with zstd: one frame after another, each whole in itself.

Reading goes through a nameless copy of the text; the log itself is never rewritten, and an append is one
more frame. The `zstandard` package is optional.
"""

from __future__ import annotations

import os
from typing import IO, NamedTuple

from triage.log.blocks import Read

MAGIC = b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 16  # compressed bytes taken at a time; a log holds many small frames
LARGEST = 4 << 30  # bytes of text: a small file that unpacks to more is no log
INSTALL = "install it with: pip install 'triage[zstd]'"


class NoPackage(Exception):
    """The log is compressed, and the package that reads it is not installed."""


class TooLarge(Exception):
    """The log unpacks to more than `LARGEST` bytes."""


class Text(NamedTuple):
    """The text of a compressed log in a nameless file. `broken` says what could not be unpacked, or "".

    `size` in bytes of text; `ends_with_newline` also where there is none.
    """

    file: IO[bytes]
    size: int
    ends_with_newline: bool
    broken: str


def is_compressed(read: Read) -> bool:
    """Whether a file begins as a zstd frame does, whatever its name."""
    return read(len(MAGIC), 0) == MAGIC


def unpack(descriptor: int, size: int) -> Text:
    """The text of the first `size` bytes of a compressed log. Raises NoPackage, TooLarge and OSError."""
    import tempfile

    try:
        import zstandard
    except ImportError as error:
        raise NoPackage from error
    file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the text is wanted)
    unpacker = zstandard.ZstdDecompressor()
    frame, at, start, length, last = None, 0, 0, 0, b"\n"
    broken = ""
    while at < size and not broken:
        data = os.pread(descriptor, min(BLOCK, size - at), at)
        at += len(data)
        while data:
            frame, start = (frame, start) if frame else (unpacker.decompressobj(), at - len(data))
            try:
                text = frame.decompress(data)
            except zstandard.ZstdError:
                broken = f"the zstd frame at byte {start:,} can't be unpacked, nor what follows it"
                break
            length += file.write(text)
            last = text[-1:] or last
            if length > LARGEST:
                raise TooLarge
            data, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None and not broken:
        broken = f"the last zstd frame, at byte {start:,}, is cut short"
    file.flush()
    return Text(file, length, last == b"\n", broken)


def frame(text: bytes) -> bytes:
    """One frame that holds a text, with its checksum. Raises ImportError without the package."""
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=True).compress(text)
