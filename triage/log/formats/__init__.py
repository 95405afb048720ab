"""The log formats that triage reads, one module each. A new one takes a module and a line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from triage.log.events import Event
from triage.log.formats import native
from triage.recovery.plan import Repair
from triage.recovery.rules import Records


class Format(Protocol):
    """What a format module offers."""

    NAME: str
    RECORDS: Records

    def recognise(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is certainly of this format."""

    def decode(self, record: Mapping[str, Any], line: int) -> Event | None:
        """The event that a record of a line (from 1) holds; None where it is no event."""

    def encode(self, repairs: Sequence[Repair], next_seq: int, now: str | None) -> list[str]:
        """The lines to append, without newlines. `now` is the time of the append; None in a plan."""


FORMATS: tuple[Format, ...] = (native,)


def recognise(records: Sequence[Mapping[str, Any]]) -> Format | None:
    """The first format that is sure of one of the records, else None."""
    for format in FORMATS:
        if any(format.recognise(record) for record in records):
            return format
    return None
