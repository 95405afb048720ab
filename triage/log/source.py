"""A log as a file: how it is opened, what it is, and the exact state that a plan is bound to.

Only ever for reading. What is no log is refused here, in one sentence that names the file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Self

import orjson

from triage.log import compressed, formats
from triage.log.blocks import Read, is_small, lines_of, read_of
from triage.log.decoder import BaseDecoder
from triage.log.formats import native
from triage.log.json_text import Fragment, Malformed, Unfinished, parse
from triage.log.lines import BLANK, BOM, pieces_of

BASE_BYTES = 4096  # bytes around the end that a base is bound to
HEAD_BYTES = 65536  # bytes in which a one-document log must show itself
READ_BEHIND_A_SCREEN = 16 << 20  # bytes of a log from which its reading shows its progress
HEAD_LINES = 1000  # lines in which a format must show itself


class Unreadable(Exception):
    """A log that can't be read: a stable `code` and one sentence that names the file."""

    def __init__(self, code: str, says: str) -> None:
        super().__init__(says)
        self.code = code


class Base(NamedTuple):
    """The exact state of a log that a plan was made from. `size` in bytes, `tail` a SHA-256 in hex.

    `tail` covers the last `BASE_BYTES` bytes before `size`, `last_seq` is the largest seq seen (-1: none).
    """

    device: int
    inode: int
    size: int
    tail: str
    ends_with_newline: bool
    last_seq: int


def open_for_reading(path: str) -> int:
    """A descriptor for reading a regular file. Never waits (a FIFO would), never follows into a folder.

    Raises Unreadable with codes `not_found`, `no_permission`, `is_directory`, `not_a_file`, `io_error`.
    """
    return _open(path)[0]


def _open(path: str) -> tuple[int, os.stat_result]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(path, error) from error
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor, status
    os.close(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable("is_directory", f"{path} is a directory, not a log: name a file in it")
    raise Unreadable("not_a_file", f"{path} is a pipe or a device, not a log: save it to a file first")


def unreadable(path: str, error: OSError) -> Unreadable:
    known = {
        errno.ENOENT: ("not_found", f"{path} does not exist (any more): check the name"),
        errno.ENOTDIR: ("not_found", f"{path} does not exist: a part of the path is no folder"),
        errno.EACCES: ("no_permission", f"{path} may not be read by this user: ask for read access"),
        errno.EPERM: ("no_permission", f"{path} may not be read by this user: ask for read access"),
        errno.ENXIO: ("not_a_file", f"{path} is a socket or a device, not a log"),
    }
    code, says = known.get(
        error.errno or 0, ("io_error", f"{path} can't be read: {os.strerror(error.errno or errno.EIO)}")
    )
    return Unreadable(code, says)


def _open_events(path: str) -> tuple[str, formats.Format | None, int, os.stat_result]:
    """The file with the events of the log that `path` names, and its format where the place says it."""
    if not formats.may_be_of_a_folder(path):
        try:
            return path, None, *_open(path)  # nearly every log
        except Unreadable as error:
            if error.code != "is_directory":
                raise
    path, known = formats.locate(path)
    if known is None or os.path.lexists(path):
        return path, known, *_open(path)
    # The events file of a run that got no further than its header may be missing: a log without events.
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    return path, known, descriptor, os.fstat(descriptor)


class Opened(NamedTuple):
    """A log that is open for reading, and what it is.

    `path` is the file with its events, `status` its state, `own` reads its bytes. `read` reads its text,
    which has `length` bytes, lies in the file of the descriptor `source`, and is unpacked (`text`) where the
    log is compressed. `at_hand` reads it, too, also when the log was closed; None for a large one.
    """

    path: str
    format: formats.Format
    one_document: bool
    status: os.stat_result
    own: Read
    source: int
    length: int
    read: Read
    at_hand: Read | None
    text: compressed.Text | None
    descriptor: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: object, trace: object) -> None:
        os.close(self.descriptor)
        if isinstance(error, OSError):
            raise unreadable(self.path, error) from error


def opened(path: str) -> Opened:
    """A log that is open for reading, and recognised. Raises Unreadable as `read_journal` does.

    It closes the log as a context manager, and makes Unreadable of an OSError meanwhile.
    """
    path, known, descriptor, status = _open_events(path)
    try:
        source, length, text = descriptor, status.st_size, None
        own = read = read_of(descriptor, length)
        if compressed.is_compressed(own):
            text = _unpack(descriptor, path, length)
            source, length = text.file.fileno(), text.size
            read = partial(os.pread, source)
        format, one_document = (known, False) if known is not None else _recognise(read, path, length)
        at_hand = read if text is not None or is_small(length) else None
        return Opened(
            path, format, one_document, status, own, source, length, read, at_hand, text, descriptor
        )
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):
            raise unreadable(path, error) from error
        raise


def new_decoder(format: formats.Format, path: str) -> BaseDecoder:
    """A decoder for the log whose events are in the file `path`."""
    decoder = format.decoder()
    decoder.read_beside(path)
    return decoder


def _unpack(descriptor: int, path: str, size: int) -> compressed.Text:
    try:
        return compressed.unpack(descriptor, size)
    except compressed.NoPackage as error:
        says = f"{path} is compressed (zstd), which needs the package zstandard: {compressed.INSTALL}"
        raise Unreadable("needs_zstd", says) from error
    except compressed.TooLarge as error:
        says = f"{path} unpacks to more than {compressed.LARGEST:,} bytes: no session log is so large"
        raise Unreadable("too_large", says) from error


def read_base(descriptor: int, last_seq: int, size: int | None = None) -> Base:
    """The state of a log that is open, up to `size` bytes (default: all of it)."""
    status = os.fstat(descriptor)
    return base_of(partial(os.pread, descriptor), status, last_seq, status.st_size if size is None else size)


def base_of(read: Read, status: os.stat_result, last_seq: int, size: int) -> Base:
    """The state of a log, up to `size` bytes."""
    import hashlib  # here, because a scan of many logs has no use for it

    start = max(0, size - BASE_BYTES)
    tail = read(size - start, start)
    return Base(
        status.st_dev,
        status.st_ino,
        size,
        hashlib.sha256(tail).hexdigest(),
        size == 0 or tail.endswith(b"\n"),
        last_seq,
    )


def _recognise(read: Read, path: str, size: int) -> tuple[formats.Format, bool]:
    """The format of a log, and whether the file is one JSON document that holds its events."""
    start = read(HEAD_BYTES, 0).removeprefix(BOM)
    newline = start.find(b"\n")
    quick = _by_first_line(start if newline < 0 else start[:newline])
    if quick is not None:
        return quick
    root = _root(start.decode("utf-8", "surrogateescape"))
    for format in formats.in_order():
        if format.document(root) is not None:
            return format, True
    seen = 0
    for raw in islice(lines_of(read, size), HEAD_LINES):
        if not raw.removeprefix(BOM).strip(BLANK):
            continue
        seen += 1
        for format in formats.in_order():
            pieces = pieces_of(raw, format)
            records = [piece.record if isinstance(piece, Fragment) else piece for piece in pieces]
            if any(format.recognise(record) for record in records if record):
                return format, False
    if seen:
        raise Unreadable("not_a_log", f"{path} is no session log: none of its lines is a known event")
    return native, False


def _by_first_line(line: bytes) -> tuple[formats.Format, bool] | None:
    """The answer for a log whose first line is a whole record, as nearly every one is; else None."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if type(record) is dict:
        for format in formats.in_order():
            if format.document(record) is not None:
                return format, True
            if format.recognise(record):
                return format, False
    return None


def _root(head: str) -> Mapping[str, Any]:
    try:
        value = parse(head)[0]
    except Unfinished as cut:
        value = cut.root
    except Malformed as broken:
        return _root(head[: broken.at])
    return value if isinstance(value, dict) else {}
