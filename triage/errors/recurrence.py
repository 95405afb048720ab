"""Count how often the same failure came back, and say what that is worth.

Pure functions: the caller reads the events and keeps the rows. Nothing here may touch a file, a
store or the screen. An occurrence counts as often as it is handed in: reading each event once is
the caller's part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from triage.errors.classify import Classification

Decision = Literal["Reject", "BurstCoalesced", "BurstThresholdReached", "ChronicRecurrence"]
Action = Literal["Reject", "GroupOnly", "CreateWork"]

ACTIONS: Final[Mapping[Decision, Action]] = {
    "Reject": "Reject",
    "BurstCoalesced": "GroupOnly",
    "BurstThresholdReached": "CreateWork",
    "ChronicRecurrence": "CreateWork",
}
"""What each decision asks for (the errors rules, recurrence)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """When a failure is worth an issue. `max_per_turn` is only shown: it limits nothing here."""

    min_recurrence: int = 2
    grouping_window_ms: int = 60_000
    max_per_turn: int = 5


class Key(NamedTuple):
    """What makes two occurrences the same failure."""

    operation: str
    revision: str
    signature: str
    classification: Classification


@dataclass(frozen=True, slots=True)
class Sighting:
    """Where an occurrence was seen: `line` counts from 1, `time` is as the log gives it.

    `time_ms` is the same instant in milliseconds since the epoch, None when it can't be read.
    """

    path: str
    line: int
    time: str | int | float | None
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One failure, as one event of one log recorded it."""

    key: Key
    workspace: str
    seen: Sighting


@dataclass(frozen=True, slots=True)
class Row:
    """All occurrences of one failure; the workspace is that of the first.

    `previous_ms` is the time of the occurrence before the last: with it a row can be decided again
    under another policy.
    """

    key: Key
    workspace: str
    count: int
    first: Sighting
    last: Sighting
    previous_ms: int | None

    def decision(self, policy: Policy) -> Decision:
        """What the last occurrence made of this row under `policy`; see `decide`."""
        return decide(policy, self.count - 1, self.previous_ms, self.last.time_ms)


def decide(policy: Policy, current_count: int, last_seen_ms: int | None, now_ms: int | None) -> Decision:
    """Judge one more occurrence of a failure (the errors rules, recurrence).

    `current_count` is the number of occurrences before this one. Times are milliseconds since the
    epoch; None is a first sighting or an unknown time, and neither proves that time has passed.
    """
    if policy.min_recurrence <= 0:
        return "Reject"
    if current_count + 1 < policy.min_recurrence:
        return "BurstCoalesced"
    if last_seen_ms is None or now_ms is None:
        return "BurstThresholdReached"
    # The window is inclusive, but a window of 0 groups nothing; a clock that runs backwards is
    # no burst.
    elapsed_ms = now_ms - last_seen_ms
    within = policy.grouping_window_ms > 0 and 0 <= elapsed_ms <= policy.grouping_window_ms
    return "BurstThresholdReached" if within else "ChronicRecurrence"


def fold(occurrences: Iterable[Occurrence], rows: Mapping[Key, Row] | None = None) -> dict[Key, Row]:
    """Count `occurrences`, in the order given, onto `rows`; returns new rows, in first-seen order.

    One signature seen both as a failure and as a recovered error is two rows (the errors rules).
    """
    counted = dict(rows or {})
    for occurrence in occurrences:
        counted[occurrence.key] = _count(counted.get(occurrence.key), occurrence)
    return counted


def _count(row: Row | None, occurrence: Occurrence) -> Row:
    key, seen = occurrence.key, occurrence.seen
    if row is None:
        return Row(key, occurrence.workspace, 1, first=seen, last=seen, previous_ms=None)
    return Row(key, row.workspace, row.count + 1, row.first, seen, previous_ms=row.last.time_ms)
