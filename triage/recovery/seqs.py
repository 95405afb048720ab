"""Whether `seq` counts up by one. Position in the file is the order, whatever it says."""

from __future__ import annotations

from triage.log.events import Event
from triage.recovery.state import Anomaly

LARGEST_SEQ = 2**63 - 1


class Seqs:
    """The seqs seen so far."""

    def __init__(self) -> None:
        self._largest = -1
        self._previous: int | None = None
        self._missing = 0
        self._first_missing = 0

    def check(self, event: Event, index: int) -> tuple[str, str] | None:
        """Take the next event; one without a seq gets its index. Returns an anomaly's code and words."""
        seq, previous = event.seq, self._previous
        if seq is None:
            event.seq = index
            if event.part:
                return None
            self._missing += 1
            self._first_missing = self._first_missing or event.line
            self._previous = None if previous is None else previous + 1
            return None
        if event.part:
            return None
        if seq <= LARGEST_SEQ:
            self._largest = max(self._largest, seq)
        self._previous = seq
        if previous is None or seq == previous + 1:
            return None
        if seq == previous:
            return "seq_duplicate", f"seq {seq} stands here again"
        if seq < previous:
            return "seq_out_of_order", f"seq {seq} after {previous}; the order of the file counts"
        return "seq_gap", f"seq jumps from {previous} to {seq}"

    @property
    def expected(self) -> int | None:
        """The seq that should come next; None where any would do."""
        return None if self._previous is None else self._previous + 1

    def pass_over(self, seq: int) -> None:
        """Take a stretch whose seqs count up by one and end in `seq`."""
        self._largest = max(self._largest, seq)
        self._previous = seq

    def forgive(self) -> None:
        """An unreadable stretch may have held any seq: don't report the gap that it leaves."""
        self._previous = None

    def missing(self) -> list[Anomaly]:
        """One anomaly for all events without a seq, where others carry one."""
        if self._largest < 0 or not self._missing:
            return []
        return [Anomaly("seq_missing", self._first_missing, f"{self._missing:,} events carry no usable seq")]

    def next(self, events: int) -> int:
        """The seq of the first event of a repair."""
        return self._largest + 1 if self._largest >= 0 else events
