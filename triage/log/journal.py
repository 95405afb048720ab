"""An index over a log file: where each line begins, what it is, and what closes what.

Payloads are not kept: a line is read again when it is shown. The file is read with plain reads, never
mapped, so that a file that is cut meanwhile can't kill the process, and never opened for writing.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import orjson

from triage.log import compressed, fast, formats
from triage.log.blocks import BLOCK, Read, blocks_of, is_small, lines_of
from triage.log.codes import CODES
from triage.log.decoder import BaseDecoder
from triage.log.events import EVIDENCE, SETTLE, TURN_START, USER_MESSAGE, Corrupt, Event
from triage.log.formats import native
from triage.log.index import Index
from triage.log.json_text import Malformed, Unfinished, dumps, parse
from triage.log.lines import BOM, certain, is_inexact, read_damaged, read_line
from triage.log.source import Base, Opened, Unreadable, base_of, new_decoder, open_for_reading, opened
from triage.log.split import Splits
from triage.recovery.scan import Scan

# A line that a format decodes to several events goes by the one that comes first in TYPES.
_RANK = {name: code for name, code in CODES.items() if code >= CODES[TURN_START]}

_OTHER = CODES["other"]  # the last of them
_BLANK = CODES["blank"]
HELP_FROM = 64 << 20  # bytes of a log from which other processes are worth their start
ANEW = 64 << 10  # bytes of a log up to which it is read anew once it has grown, if it ended amid a line
COPIED_CALLS = 5000  # that are open or unanswered in a scan that is copied: about 0.1 ms each
LARGEST_DOCUMENT = 256 << 20  # bytes of a one-document log that are read whole


class Mark(NamedTuple):
    """What is known as of the last newline of a log: where reading goes on once the log has grown."""

    lines: int
    scan: Scan
    decoder: BaseDecoder
    splits: Splits


@dataclass(slots=True)
class Journal:
    """What was read of one log."""

    path: str
    format: formats.Format
    status: os.stat_result
    one_document: bool
    index: Index
    scan: Scan
    decoder: BaseDecoder
    documents: list[Mapping[str, Any]]
    glanced: bool = False  # whether lines of closed turns were seen without their payloads
    mark: Mark | None = None  # None: a log that grew is read anew
    text: compressed.Text | None = None  # of a log that is compressed: `offsets` count in it
    at_hand: Read | None = None  # reads what need not be opened again: a small log, and one that is unpacked
    find_base: Callable[[], Base] | None = None  # None until the log was read
    found_base: Base | None = None

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.status.st_size

    @property
    def base(self) -> Base:
        """The exact state of the file that was read."""
        if self.found_base is None:
            assert self.find_base is not None
            self.found_base = self.find_base()
        return self.found_base

    def begins(self, read: Read, status: os.stat_result) -> bool:
        """Whether what is read of an open file begins with this log: by its state, if small byte by byte."""
        size = self.base.size
        if base_of(read, status, self.base.last_seq, size) != self.base:
            return False
        return self.at_hand is None or self.text is not None or read(size, 0) == self.at_hand(size, 0)

    @property
    def offsets(self) -> array[int]:
        """The byte at which each line begins, and one for the end of the file."""
        return self.index.offsets

    @property
    def codes(self) -> bytearray:
        """What each line is, into `codes.TYPES`."""
        return self.index.codes

    @property
    def depths(self) -> bytearray:
        """How deep each line stands; 0: outside any turn."""
        return self.index.depths

    @property
    def mates(self) -> array[int]:
        """The line (from 1) that closes the turn or step that each line opens; 0: none."""
        return self.index.mates

    @property
    def lines(self) -> int:
        """How many lines the file has; the records, in a one-document log."""
        return self.index.lines

    def raw(self, line: int) -> bytes:
        """The bytes of a line (from 1) as they are, with its newline; of a small log, as they were read.

        Raises Unreadable where the file has gone or shrunk since.
        """
        if self.one_document:
            return dumps(self.documents[line - 1]).encode()
        start, stop = self.index.start_of(line), self.index.start_of(line + 1)
        if self.at_hand is not None:
            return self.at_hand(stop - start, start)
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
            if event.type is not EVIDENCE and event.type is not SETTLE
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


def read_journal(path: str, progress: Callable[[int, int], None] | None = None) -> Journal:
    """Index and scan a whole log. `progress` gets bytes read and bytes in all, about once a block.

    Raises Unreadable for what is no log: besides the codes of `open_for_reading`, `not_a_log` for a file
    in which no line is an event of a known format.
    """
    with opened(path) as log:
        glancing = log.format is native and not log.one_document and log.length >= fast.GLANCE_FROM
        journal = _read(log, progress, glancing)
        if glancing and journal.scan.owes_outside:
            # Damage that a glance can't see may have been a turn's start, which would make this doubtful.
            journal = _read(log, progress, glancing=False)
        return journal


def _read(log: Opened, progress: Callable[[int, int], None] | None, glancing: bool) -> Journal:
    journal = Journal(
        log.path, log.format, log.status, log.one_document, Index(), Scan(),
        new_decoder(log.format, log.path), [], glanced=glancing, text=log.text, at_hand=log.at_hand,
    )  # fmt: skip
    if log.one_document:
        _index_document(log, journal)
    else:
        _index_lines(log, journal, progress, glancing)
        beside = type(journal.decoder).read_beside is not BaseDecoder.read_beside
        if log.text is not None or beside:
            journal.mark = None
    if log.text is not None and log.text.broken:
        line = max(1, journal.lines)
        says = f"{log.text.broken}: its bytes are kept"
        journal.scan.corrupt(Corrupt(line, log.length, log.length, says, None, True))
    _bind(journal, log)
    return journal


def _bind(journal: Journal, log: Opened) -> None:
    """Bind a journal to the state of its log: now, or once somebody asks where the bytes are in memory."""
    find = partial(base_of, log.own, log.status, journal.scan.next_seq - 1, journal.size)
    journal.find_base, journal.found_base = find, None if is_small(journal.size) else find()


def extend_journal(
    journal: Journal, progress: Callable[[int, int], None] | None = None, *, whole: bool = True
) -> Journal | None:
    """The journal of a log that has grown: a new one, for which only the new bytes are read.

    Unless it is to be `whole`, its index begins with the new lines: nothing is copied of what may be large.
    None where the log has to be read anew: it is another file, its end was rewritten, or it is none that
    grows line by line. Raises Unreadable where it has gone.
    """
    mark = journal.mark
    if mark is None:
        return None
    with opened(journal.path) as log:
        same = log.format is journal.format and not log.one_document and log.text is None
        if not same or not journal.begins(log.own, log.status):
            return None
        lines, copied = mark.lines, _copied(mark, journal.format)
        if copied is None:
            return None
        index = journal.index.until(lines) if whole else Index(lines, journal.index.start_of(lines + 1))
        grown = replace(
            journal, status=log.status, index=index, at_hand=log.at_hand,
            scan=copied.scan, decoder=copied.decoder, mark=copied,
        )  # fmt: skip
        _index_lines(log, grown, progress, glancing=False)
        if journal.glanced and grown.scan.owes_outside:
            return None  # as in `read_journal`
        _bind(grown, log)
        return grown


def _copied(mark: Mark, format: formats.Format) -> Mark | None:
    """A mark of its own; None where a copy would take longer than reading."""
    if mark.scan.calls > COPIED_CALLS:
        return None
    try:
        return deepcopy(mark, {id(format): format})
    except RecursionError:
        return None


def _index_lines(
    log: Opened,
    journal: Journal,
    progress: Callable[[int, int], None] | None,
    glancing: bool,
) -> None:
    """Index the lines that are not yet in the journal, and leave its mark at the last newline."""
    size = log.length
    whole = _last_newline(log.read, journal.offsets[-1], size)
    anew = whole < size <= ANEW
    tell = None if progress is None else lambda read, _: progress(read, size)
    splits = journal.mark.splits if journal.mark is not None else Splits(journal.format)
    _index_stretch(log, size if anew else whole, journal, splits, tell, glancing)
    journal.mark = None if anew else Mark(journal.lines, journal.scan, journal.decoder, splits)
    if journal.mark is not None and whole < size:
        rest = _copied(journal.mark, journal.format)
        if rest is None:
            rest, journal.mark = journal.mark, None
        journal.scan, journal.decoder, splits = rest.scan, rest.decoder, rest.splits
        _index_stretch(log, size, journal, splits, tell, glancing)
    if journal.offsets[-1] < size:
        raise Unreadable("log_moved", f"{journal.path} was cut while it was read: open it again")


def _last_newline(read: Read, start: int, size: int) -> int:
    """The byte behind the last newline between two bytes of a file; `start` where there is none."""
    at = size
    while at > start:
        block = read(min(BLOCK, at - start), max(start, at - BLOCK))
        found = block.rfind(b"\n")
        if found >= 0:
            return max(start, at - BLOCK) + found + 1
        at = max(start, at - BLOCK)
    return start


def _index_stretch(
    log: Opened,
    size: int,
    journal: Journal,
    splits: Splits,
    progress: Callable[[int, int], None] | None,
    glancing: bool,
) -> None:
    """Index the lines from where the journal ends to byte `size`."""

    index, format = journal.index, journal.format

    def whole(line: int, raw: bytes) -> None:
        record = certain(raw)
        if record is not None and not splits.waits:
            _index(journal, line, (record,))  # nearly every line
            return
        pieces = read_damaged(raw, line, index.start_of(line), format) if record is None else [record]
        _index(journal, line, pieces)
        found = splits.see(raw, line, pieces)
        if found:
            journal.scan.anomaly("split_record", *found)

    start, first = journal.offsets[-1], journal.lines + 1
    if journal.format is native:
        quick = fast.Quick(journal.scan, journal.index, whole, fast.sight(size - start, glancing))
        if glancing and not start and size >= HELP_FROM:
            from triage.log import helpers  # a small log has no use for what it imports

            pieces = helpers.pieces_of(log.source, size)
            helpers.read(log.read, pieces, quick, helpers.start(log.source, pieces), progress)
        else:
            quick.feed(blocks_of(log.read, size, start, progress))
        quick.finish()
    else:
        for line, raw in enumerate(lines_of(log.read, size, start, progress), first):
            journal.offsets.append(journal.offsets[-1] + len(raw))
            whole(line, raw)


def _index(journal: Journal, line: int, pieces: Sequence[Mapping[str, Any] | Corrupt]) -> None:
    """Feed what a line holds to the scan, in the line's own order, and write its row of the index."""
    scan, code, depth = journal.scan, _BLANK, journal.scan.depth
    opened: list[int] = []
    for piece in pieces:
        if isinstance(piece, Corrupt):
            scan.corrupt(piece)
            code = CODES["corrupt"]
            continue
        events = journal.decoder.decode(piece, line)
        if events is None:
            says = "an object that is no event: it has no type"
            scan.corrupt(Corrupt(line, journal.index.start_of(line), journal.index.start_of(line + 1), says))
            code = CODES["corrupt"]
            continue
        code = _OTHER
        for event in events:
            closes, rank = scan.feed(event), _RANK.get(event.type, _OTHER)
            if closes:
                opened.append(closes)
            if rank < code:
                code = rank
    if len(pieces) > 1:
        code = CODES["damaged"]
        if not any(isinstance(piece, Corrupt) for piece in pieces):
            scan.anomaly("glued_records", line, f"{len(pieces)} records on one line: each is read")
    journal.index.add(code, min(depth, scan.depth, 255))
    for opener in opened:
        journal.index.close(opener, line)


def _index_document(log: Opened, journal: Journal) -> None:
    size = log.length
    if size > LARGEST_DOCUMENT:
        says = f"{journal.path} is one JSON document of {size:,} bytes, too large to be read whole"
        raise Unreadable("document_too_large", says)
    raw = log.read(size, 0).removeprefix(BOM)
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
        if records and not any(isinstance(record, dict) and is_inexact(record) for record in records):
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
