"""The log formats that triage reads, one module each. A new one takes a module and its name in `FORMATS`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

from triage.log.decoder import BaseDecoder, Record
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


# In the order in which they are asked. A module is loaded when its turn comes: most logs say at once what
# they are, and the night is short.
FORMATS = ("native", "claude", "codex", "copilot", "klbr", "maka", "orchestral", "dsh", "pi")

# A log that is a folder: the file that makes it one, the file with its events, the format that knows them.
_FOLDERS = (("run.json", "events.jsonl", "maka"),)
_EVENTS = tuple(events for _, events, _ in _FOLDERS)


@cache
def load(name: str) -> Format:
    """The format of a name in `FORMATS`."""
    return cast("Format", import_module(f"{__name__}.{name}"))


def in_order() -> Iterator[Format]:
    """The formats, each loaded when it is asked for."""
    return map(load, FORMATS)


def is_log_folder(path: str) -> bool:
    """Whether a folder is one log, as a run folder is."""
    return os.path.isdir(path) and locate(path)[1] is not None


def may_be_of_a_folder(path: str) -> bool:
    """Whether a file of this name may be the events file of a log that is a folder."""
    return os.fspath(path).endswith(_EVENTS)


def locate(path: str) -> tuple[str, Format | None]:
    """The events file of the log that `path` names, and its format where that is known from the place."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    for header, _, name in _FOLDERS:
        if not os.path.lexists(os.path.join(folder, header)):
            continue
        format = load(name)
        found = format.events_file(path) if isinstance(format, IsFolder) else None
        if found is not None:
            return found, format
    return path, None
