"""The log formats that triage reads, one module each. A new one takes a module and a line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from triage.log.events import Event
from triage.log.formats import claude, codex, copilot, dsh, klbr, maka, native, orchestral, pi
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.rules import Records
from triage.recovery.state import State

Record = Mapping[str, Any]


class Decoder(Protocol):
    """Reads one log: it is fed each record in file order and remembers what encoding a repair needs."""

    def decode(self, record: Record, line: int) -> Sequence[Event] | None:
        """The events that a record of a line (from 1) holds; None where it is no record of this format.

        A record that is shown and not judged is one event of its own type.
        """

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Record]],
    ) -> list[str]:
        """The lines to append, without newlines.

        `now` is the time of the append (ISO 8601, UTC, ms); None in a plan: then each value that is made
        at the append is null. `read` gives the records of a line (from 1).
        """

    def refusal(self, plan: Plan) -> Refusal | None:
        """Why this log can't be repaired by appending, else None."""

    def facts(self) -> Mapping[str, str]:
        """What the log says of its session, where it does, uncleaned: agent, version, cwd, model, title."""


class Format(Protocol):
    """What a format module offers."""

    NAME: str
    RECORDS: Records
    FIRST_KEYS: tuple[str, ...]  # the keys with which its writer begins a record, for damaged lines

    def recognise(self, record: Record) -> bool:
        """Whether a record is certainly of this format."""

    def decoder(self) -> Decoder:
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
class ReadsBeside(Protocol):
    """A decoder of a log whose parts lie in several files."""

    def read_beside(self, path: str) -> None:
        """Read what lies beside the log at `path`, before its first record. Raises nothing."""


@runtime_checkable
class TakesFrames(Protocol):
    """A format whose agent writes compressed logs itself, frame after frame, and reads one more."""

    def frame(self, text: bytes) -> bytes:
        """The bytes of one frame that holds a text. Raises ImportError without the package."""


@runtime_checkable
class HasLocks(Protocol):
    """A decoder of a log whose agent holds lock files of its own while it lives."""

    def locks(self, path: str) -> Sequence[str]:
        """Where those of the log at `path` lie, whether they exist or not."""


@runtime_checkable
class HasRows(Protocol):
    """A format whose rows are judged for errors by their kind."""

    def row(self, record: Record) -> tuple[str, Record, Any] | None:
        """The kind, payload and time of a record, None where it is no row."""


@runtime_checkable
class Completes(Protocol):
    """A decoder of a log that says more of the run as a whole than its events do."""

    def complete(self, plan: Plan, state: State) -> Plan:
        """The plan with what the run's own records say: its verdict, its boundary, its refusal."""


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
