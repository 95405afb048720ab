"""What a decoder of a log format offers; a format overrides what it has more to say about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triage.log.events import Event
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.state import State

Record = Mapping[str, Any]


class BaseDecoder(ABC):
    """Reads one log: it is fed each record in file order and remembers what encoding a repair needs."""

    @abstractmethod
    def decode(self, record: Record, line: int) -> Sequence[Event] | None:
        """The events that a record of a line (from 1) holds; None where it is no record of this format.

        A record that is shown and not judged is one event of its own type.
        """

    @abstractmethod
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
        return None

    def facts(self) -> Mapping[str, str]:
        """What the log says of its session, where it does, uncleaned: agent, version, cwd, model, title."""
        return {}

    def complete(self, plan: Plan, state: State) -> Plan:
        """The plan with what the run's own records say of it as a whole: verdict, boundary, refusal."""
        return plan

    # ---- what lies beside the log; `path` is the file of its events

    def read_beside(self, path: str) -> None:
        """Read what else belongs to the log, before its first record. Raises nothing."""
        return

    def locks(self, path: str) -> Sequence[str]:
        """The lock files that the log's agent holds while it lives, whether they exist or not."""
        return ()

    def processes(self, path: str) -> Sequence[int]:
        """The living processes that say of themselves that they run this session, by their pids."""
        return ()
