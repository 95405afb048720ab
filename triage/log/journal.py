"""An index over a log file: where each line begins, what it is, and what closes what.

Payloads are not kept: a line is read again when it is shown. The file is read with plain reads, never
mapped, so that a file that is cut meanwhile can't kill the process, and never opened for writing.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any

import orjson

from triage.log import compressed, fast, formats
from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASSISTANT_MESSAGE,
    EVIDENCE,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
    REQUEST_HEADER,
    SETTLE,
    STEP_END,
    STEP_START,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    USER_MESSAGE,
    Corrupt,
    Event,
)
from triage.log.json_text import Fragment, Malformed, Unfinished, dumps, parse, salvage, starts_with
from triage.log.split import Splits
from triage.recovery.scan import Scan

# The code of a line in the index. Lines that hold several events or none at all have codes of their own.
TYPES = (
    "corrupt",
    "damaged",
    "blank",
    TURN_START,
    TURN_END,
    STEP_START,
    STEP_END,
    ASSISTANT_MESSAGE,
    USER_MESSAGE,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    REQUEST_HEADER,
    APPROVAL_REQUESTED,
    APPROVAL_DECIDED,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
    "other",
)
CODES = {name: code for code, name in enumerate(TYPES)}

# A line that a format decodes to several events goes by the one that comes first in TYPES.
_RANK = {name: code for name, code in CODES.items() if code >= CODES[TURN_START]}

BLOCK = 1 << 20  # bytes read at a time
BASE_BYTES = 4096  # bytes around the end that a base is bound to
HEAD_BYTES = 65536  # bytes in which a one-document log must show itself
HEAD_LINES = 1000  # lines in which a format must show itself
LARGEST_DOCUMENT = 256 << 20  # bytes of a one-document log that are read whole
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


class Unreadable(Exception):
    """A log that can't be read: a stable `code` and one sentence that names the file."""

    def __init__(self, code: str, says: str) -> None:
        super().__init__(says)
        self.code = code


@dataclass(frozen=True, slots=True)
class Base:
    """The exact state of a log that a plan was made from. `size` in bytes, `tail` a SHA-256 in hex.

    `tail` covers the last `BASE_BYTES` bytes before `size`, `last_seq` is the largest seq seen (-1: none).
    """

    device: int
    inode: int
    size: int
    tail: str
    ends_with_newline: bool
    last_seq: int


@dataclass(slots=True)
class Journal:
    """What was read of one log. `offsets` has one entry a line and one for the end of the file.

    `codes` (into TYPES), `depths` (0: outside any turn) and `mates` (the line, from 1, that closes the
    turn or step that a line opens; 0: none) have one entry a line.
    """

    path: str
    format: formats.Format
    size: int
    modified: float
    one_document: bool
    base: Base
    offsets: array[int]
    codes: bytearray
    depths: bytearray
    mates: array[int]
    scan: Scan
    decoder: formats.Decoder
    documents: list[Mapping[str, Any]]
    text: compressed.Text | None = None  # of a log that is compressed: `offsets` count in it

    @property
    def lines(self) -> int:
        """How many lines the file has; the records, in a one-document log."""
        return len(self.codes)

    def raw(self, line: int) -> bytes:
        """The bytes of a line (from 1) as they are, with its newline.

        Raises Unreadable where the file has gone or shrunk since.
        """
        if self.one_document:
            return dumps(self.documents[line - 1]).encode()
        start, stop = self.offsets[line - 1], self.offsets[line]
        if self.text is not None:
            return os.pread(self.text.file.fileno(), stop - start, start)
        descriptor = open_for_reading(self.path)
        try:
            data = os.pread(descriptor, stop - start, start)
        finally:
            os.close(descriptor)
        if len(data) < stop - start:
            raise Unreadable("log_moved", f"{self.path} was cut while it was read: reload it")
        return data

    @property
    def ends_with_newline(self) -> bool:
        """Whether what is appended begins on a line of its own."""
        return self.base.ends_with_newline if self.text is None else self.text.ends_with_newline

    def records(self, line: int) -> Sequence[Mapping[str, Any]]:
        """The records of a line (from 1) as the log wrote them. Raises Unreadable as `raw` does."""
        if self.one_document:
            return [self.documents[line - 1]]
        pieces = read_line(self.raw(line), line, 0, self.format)
        return [piece for piece in pieces if not isinstance(piece, Corrupt)]

    def events(self, line: int) -> list[Event]:
        """The events of a line (from 1), decoded without what came before. Raises as `raw` does."""
        decoder = self.format.decoder()
        return [
            event
            for record in self.records(line)
            for event in decoder.decode(record, line) or ()
            if event.type not in (EVIDENCE, SETTLE)
        ]

    def first_prompt(self) -> str | None:
        """The text of the first user message, None where there is none. Raises as `raw` does."""
        at = self.codes.find(CODES[USER_MESSAGE])
        for event in self.events(at + 1) if at >= 0 else ():
            content = event.data.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            texts = [part.get("text") for part in parts if isinstance(part, dict)]
            if event.type == USER_MESSAGE and isinstance(next(iter(texts), None), str):
                return str(texts[0])
        return None


def open_for_reading(path: str) -> int:
    """A descriptor for reading a regular file. Never waits (a FIFO would), never follows into a folder.

    Raises Unreadable with codes `not_found`, `no_permission`, `is_directory`, `not_a_file`, `io_error`.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(path, error) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise Unreadable("is_directory", f"{path} is a directory, not a log: name a file in it")
    raise Unreadable("not_a_file", f"{path} is a pipe or a device, not a log: save it to a file first")


def _unreadable(path: str, error: OSError) -> Unreadable:
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


def read_journal(path: str, progress: Callable[[int, int], None] | None = None) -> Journal:
    """Index and scan a whole log. `progress` gets bytes read and bytes in all, about once a block.

    Raises Unreadable for what is no log: besides the codes of `open_for_reading`, `not_a_log` for a file
    in which no line is an event of a known format.
    """
    with opened(path) as log:
        scan = Scan()
        base = read_base(log.descriptor, -1)
        journal = Journal(
            log.path, log.format, log.size, log.modified, log.one_document, base,
            array("Q", [0]), bytearray(), bytearray(), array("Q"),
            scan, new_decoder(log.format, log.path), [], log.text,
        )  # fmt: skip
        if log.one_document:
            _index_document(log.source, log.length, journal)
        else:
            _index_lines(log.source, log.length, journal, progress)
        if log.text is not None and log.text.broken:
            line = max(1, journal.lines)
            says = f"{log.text.broken}: its bytes are kept"
            scan.corrupt(Corrupt(line, log.length, log.length, says, None, True))
        journal.base = read_base(log.descriptor, scan.state().next_seq - 1, log.size)
        return journal


@dataclass(frozen=True, slots=True)
class Opened:
    """A log that is open for reading, and what it is.

    `path` is the file with its events, `size` its bytes, `modified` in seconds since 1970; `source` is a
    descriptor of its text, which has `length` bytes and is unpacked (`text`) where the log is compressed.
    """

    path: str
    format: formats.Format
    one_document: bool
    descriptor: int
    size: int
    modified: float
    source: int
    length: int
    text: compressed.Text | None


@contextmanager
def opened(path: str) -> Iterator[Opened]:
    """Open a log for reading, recognise it, and close it. Raises Unreadable as `read_journal` does."""
    path, known = formats.locate(path)
    # The events file of a run that got no further than its header may be missing: a log without events.
    missing = known is not None and not os.path.lexists(path)
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if missing else open_for_reading(path)
    try:
        status = os.fstat(descriptor)
        size = status.st_size
        text = _unpack(descriptor, path, size) if compressed.is_compressed(descriptor) else None
        source, length = (descriptor, size) if text is None else (text.file.fileno(), text.size)
        format, one_document = (known, False) if known is not None else _recognise(source, path, length)
        yield Opened(path, format, one_document, descriptor, size, status.st_mtime, source, length, text)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)


def new_decoder(format: formats.Format, path: str) -> formats.Decoder:
    """A decoder for the log whose events are in the file `path`."""
    decoder = format.decoder()
    if isinstance(decoder, formats.ReadsBeside):
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
    """The state of an open log, up to `size` bytes (default: all of it)."""
    status = os.fstat(descriptor)
    size = status.st_size if size is None else size
    start = max(0, size - BASE_BYTES)
    tail = os.pread(descriptor, size - start, start)
    return Base(
        status.st_dev,
        status.st_ino,
        size,
        hashlib.sha256(tail).hexdigest(),
        size == 0 or tail.endswith(b"\n"),
        last_seq,
    )


def lines_of(
    descriptor: int, size: int, at: int = 0, progress: Callable[[int, int], None] | None = None
) -> Iterator[bytes]:
    """The lines from byte `at` to `size`, split on the byte newline alone, each with its newline."""
    pieces: list[bytes] = []  # of a line that goes on past its block
    while at < size:
        block = os.pread(descriptor, min(BLOCK, size - at), at)
        if not block:
            break
        at += len(block)
        if progress is not None:
            progress(at, size)
        lines = BytesIO(block).readlines()
        if pieces:
            pieces.append(lines.pop(0))
            if not pieces[-1].endswith(b"\n"):
                continue
            yield b"".join(pieces)
            pieces = []
        if lines and not lines[-1].endswith(b"\n"):
            pieces = [lines.pop()]
        yield from lines
    if pieces:
        yield b"".join(pieces)


def _recognise(descriptor: int, path: str, size: int) -> tuple[formats.Format, bool]:
    """The format of a log, and whether the file is one JSON document that holds its events."""
    start = os.pread(descriptor, HEAD_BYTES, 0).removeprefix(_BOM)
    quick = _by_first_line(start.partition(b"\n")[0])
    if quick is not None:
        return quick
    root = _root(start.decode("utf-8", "surrogateescape"))
    for format in formats.FORMATS:
        if format.document(root) is not None:
            return format, True
    seen = 0
    for raw in islice(lines_of(descriptor, size), HEAD_LINES):
        if not raw.removeprefix(_BOM).strip(_BLANK):
            continue
        seen += 1
        for format in formats.FORMATS:
            pieces = _read(raw, format)
            records = [piece.record if isinstance(piece, Fragment) else piece for piece in pieces]
            if any(format.recognise(record) for record in records if record):
                return format, False
    if seen:
        raise Unreadable("not_a_log", f"{path} is no session log: none of its lines is a known event")
    return formats.FORMATS[0], False


def _by_first_line(line: bytes) -> tuple[formats.Format, bool] | None:
    """The answer for a log whose first line is a whole record, as nearly every one is; else None."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if type(record) is dict:
        for format in formats.FORMATS:
            if format.document(record) is not None:
                return format, True
        for format in formats.FORMATS:
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


def _read(raw: bytes, format: formats.Format) -> list[Mapping[str, Any] | Fragment]:
    try:
        record = orjson.loads(raw)
        if type(record) is dict and not _inexact(record):
            return [record]
    except orjson.JSONDecodeError:
        pass
    # Without its newline, which in the middle of a cut text would make an error of what is merely cut.
    text = raw.removeprefix(_BOM).removesuffix(b"\n").decode("utf-8", "surrogateescape")
    return salvage(text, starts_with(format.FIRST_KEYS), format.recognise)


def read_line(
    raw: bytes, line: int, offset: int, format: formats.Format
) -> list[Mapping[str, Any] | Corrupt]:
    """The records of a line that can be read with certainty and the stretches that can't, in order.

    `line` from 1; `offset` is the byte of the file at which the line begins. A blank line has neither.
    """
    pieces = _read(raw, format)
    if len(pieces) == 1 and not isinstance(pieces[0], Fragment):
        return [pieces[0]]
    body = raw.removeprefix(_BOM)
    offset += len(raw) - len(body)
    text = body.decode("utf-8", "surrogateescape")
    torn = not raw.endswith(b"\n")
    found: list[Mapping[str, Any] | Corrupt] = []
    for fragment in pieces:
        if not isinstance(fragment, Fragment):
            found.append(fragment)
            continue
        start = offset + _bytes(text[: fragment.start])
        stop = offset + _bytes(text[: fragment.stop].rstrip("\r\n"))
        tail = torn and fragment.stop == len(text)
        kind = fragment.record.get("type")
        kind = kind if isinstance(kind, str) else None
        says = _describe(text[fragment.start : fragment.stop], kind, start, stop, tail)
        found.append(Corrupt(line, start, stop, says, kind, tail, *format.weigh(fragment.record)))
    return found


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _describe(text: str, type: str | None, start: int, stop: int, torn: bool) -> str:
    where = f"bytes {start:,} to {stop:,} ({stop - start:,} bytes, kept)"
    if not text.strip("\0\r\n"):
        return f"a run of NUL bytes, as a power loss leaves them: {where}"
    what = f"a record of type {type}" if type else "a record"
    return (
        f"{what} cut short at the end of the log: {where}" if torn else f"{what} that can't be read: {where}"
    )


def _inexact(record: Mapping[str, Any]) -> bool:
    """Whether the fast parser may have rounded an id or a turn: it turns integers beyond 64 bits into floats."""
    data = record.get("data")
    if type(data) is not dict:
        return False
    if type(data.get("tool_call_id")) is float or type(data.get("id")) is float:
        return True
    if type(data.get("request_id")) is float or type(data.get("turn")) is float:
        return True
    calls = data.get("tool_calls")
    return type(calls) is list and any(
        type(call) is dict and (type(call.get("id")) is float or type(call.get("tool_call_id")) is float)
        for call in calls
    )


def _index_lines(
    descriptor: int, size: int, journal: Journal, progress: Callable[[int, int], None] | None
) -> None:
    splits = Splits(journal.format)

    def whole(line: int, raw: bytes) -> None:
        pieces = read_line(raw, line, journal.offsets[line - 1], journal.format)
        _index(journal, line, pieces)
        found = splits.see(raw, line, pieces)
        if found:
            journal.scan.anomaly("split_record", *found)

    lines = lines_of(descriptor, size, progress=progress)
    if journal.format is formats.native:
        quick = fast.Quick(journal.scan, journal.codes, journal.depths, journal.mates, CODES, whole, size >= fast.PROBE_FROM)
        quick.feed(lines, journal.offsets)
    else:
        for line, raw in enumerate(lines, 1):
            journal.offsets.append(journal.offsets[-1] + len(raw))
            whole(line, raw)
    if journal.offsets[-1] < size:
        raise Unreadable("log_moved", f"{journal.path} was cut while it was read: open it again")


def _index(journal: Journal, line: int, pieces: Sequence[Mapping[str, Any] | Corrupt]) -> None:
    """Feed what a line holds to the scan, in the line's own order, and write its row of the index."""
    scan, code = journal.scan, CODES["blank"]
    journal.mates.append(0)
    depth = scan.depth
    for piece in pieces:
        if isinstance(piece, Corrupt):
            scan.corrupt(piece)
            code = CODES["corrupt"]
            continue
        events = journal.decoder.decode(piece, line)
        if events is None:
            says = "an object that is no event: it has no type"
            scan.corrupt(Corrupt(line, journal.offsets[line - 1], journal.offsets[line], says))
            code = CODES["corrupt"]
            continue
        for event in events:
            closes = scan.feed(event)
            if closes:
                journal.mates[closes - 1] = line
        code = min((_RANK.get(event.type, CODES["other"]) for event in events), default=CODES["other"])
    if len(pieces) > 1:
        code = CODES["damaged"]
        if not any(isinstance(piece, Corrupt) for piece in pieces):
            scan.anomaly("glued_records", line, f"{len(pieces)} records on one line: each is read")
    journal.codes.append(code)
    journal.depths.append(min(depth, scan.depth, 255))


def _index_document(descriptor: int, size: int, journal: Journal) -> None:
    if size > LARGEST_DOCUMENT:
        says = f"{journal.path} is one JSON document of {size:,} bytes, too large to be read whole"
        raise Unreadable("document_too_large", says)
    raw = os.pread(descriptor, size, 0).removeprefix(_BOM)
    events, cut = records_of_document(raw, journal.format)
    for index, record in enumerate(events):
        whole = isinstance(record, dict)
        journal.documents.append(record if whole else {"type": None, "record": record})
        journal.offsets.append(size)
        _index(journal, index + 1, [record if whole else {}])
    if cut:
        says = "the document is cut or damaged here: what follows can't be read"
        journal.scan.corrupt(Corrupt(max(1, len(events)), size, size, says, None, True))


def records_of_document(raw: bytes, format: formats.Format) -> tuple[Sequence[Any], bool]:
    """The records of a document that are certainly whole, and whether it is cut or damaged after them."""
    try:
        records = format.document(orjson.loads(raw))
        if records and not any(isinstance(record, dict) and _inexact(record) for record in records):
            return records, False
    except orjson.JSONDecodeError:
        pass
    return _certain_records(raw.decode("utf-8", "surrogateescape"), format)


def _certain_records(text: str, format: formats.Format) -> tuple[Sequence[Any], bool]:
    try:
        root, end = parse(text)
    except Unfinished as cut:
        root = cut.root if isinstance(cut.root, dict) else {}
        records = format.document(root) or ()
        inside = next((depth for depth, piece in enumerate(reversed(cut.open)) if piece is records), None)
        closed = inside is None and any(value is records for value in root.values())
        return (records if closed or inside == 0 else records[:-1]), True
    except Malformed as broken:
        return _certain_records(text[: broken.at], format)[0], True
    whole = format.document(root)
    return whole or (), whole is None or bool(text[end:].strip(" \t\r\n"))
