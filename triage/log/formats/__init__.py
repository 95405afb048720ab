"""The log formats that triage reads, one module each. A new one takes a module and a line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from triage.log.decoder import BaseDecoder, Record
from triage.log.formats import claude, codex, copilot, dsh, klbr, maka, native, orchestral, pi
from triage.recovery.rules import Records


class Format(Protocol):
    """What a format module offers."""

    NAME: str
    RECORDS: Records
    FIRST_KEYS: tuple[str, ...]  # the keys with which its writer begins a record, for damaged lines

    def recognise(self, record: Record) -> bool:
        """Whether a record is certainly of this format."""

    def decoder(self) -> BaseDecoder:
        """A decoder for one log."""

    def document(self, value: Record) -> Sequence[Record] | None:
        """The records of a log that is one JSON document, else None. `value` may be cut short."""

    def weigh(self, record: Record) -> tuple[bool, bool, bool]:
        """What a record whose end is cut off may have been, from the keys that can still be read.

        Three answers: it certainly moved no call (no dispatch, result, approval or decision); it may
        have named a call; it may have opened a turn.
        """


@runtime_checkable
class IsFolder(Protocol):
    """A format whose log is a folder with an events file in it."""

    def events_file(self, path: str) -> str | None:
        """The events file, which may be missing, where `path` names such a folder or that file."""


@runtime_checkable
class TakesFrames(Protocol):
    """A format whose agent writes compressed logs itself, frame after frame, and reads one more."""

    def frame(self, text: bytes) -> bytes:
        """The bytes of one frame that holds a text. Raises ImportError without the package."""


@runtime_checkable
class HasRows(Protocol):
    """A format whose rows are judged for errors by their kind."""

    def row(self, record: Record) -> tuple[str, Record, Any] | None:
        """The kind, payload and time of a record, None where it is no row."""


FORMATS: tuple[Format, ...] = (native, claude, codex, copilot, klbr, maka, orchestral, dsh, pi)

_FOLDERS = tuple((format, format) for format in FORMATS if isinstance(format, IsFolder))


def recognise(records: Sequence[Record]) -> Format | None:
    """The first format that is sure of one of the records, else None."""
    for format in FORMATS:
        if any(format.recognise(record) for record in records):
            return format
    return None


def is_log_folder(path: str) -> bool:
    """Whether a folder is one log, as a run folder is."""
    return any(folder.events_file(path) is not None for _, folder in _FOLDERS)


def locate(path: str) -> tuple[str, Format | None]:
    """The events file of the log that `path` names, and its format where that is known from the place."""
    for format, folder in _FOLDERS:
        found = folder.events_file(path)
        if found is not None:
            return found, format
    return path, None
