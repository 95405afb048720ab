"""What one pass over a log finds: turns, steps, calls, requests and anomalies, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from triage.log.events import Corrupt, Event


class Anomaly(NamedTuple):
    """Something wrong with the log itself. `line` counts from 1; None where it is about the whole log."""

    code: str
    line: int | None
    says: str


@dataclass(slots=True)
class Request:
    """An approval or an input that a call waits for."""

    id: str | None
    kind: str  # "approval" or "input"
    line: int
    says: str
    call_id: str | None
    decision: str | None = None  # "allow", "deny" or "answered"
    decided: int | None = None  # line
    command_id: str | None = None
    inconsistent: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Step:
    """A `step_start`, and the line of its `step_end` once it was seen."""

    line: int
    seq: int
    ended: int | None = None  # line


@dataclass(slots=True, eq=False)
class Call:
    """A tool call, named once per turn; every later sighting is the same call."""

    id: str
    name: str | None
    arguments: Any
    line: int
    seq: int
    order: int  # among the calls of its line
    turn: Turn | None
    step: Step | None
    time: Any
    ms: int | None = None
    heard_ms: int | None = None  # the latest time in the log when the process that ran it had gone
    by_dispatch: bool = False
    dispatches: list[int] = field(default_factory=list)
    result: int | None = None
    requests: list[Request] = field(default_factory=list)
    inconsistent: list[tuple[int, str]] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)  # evidence in the format's own words
    gate: int | None = None  # line of the gate that it stands before
    finished: str | None = None  # its outcome, where the log has it and only the result was lost
    settled: str | None = None  # why it owes nothing although it has no result
    again: bool = False  # its result has to be carried once more: an earlier repair was cut off before it
    shadowed: int | None = None  # first line of a later call of this id that was answered and dropped

    @property
    def owes(self) -> bool:
        """Whether it has no result and nothing settled it."""
        return self.result is None and self.settled is None


@dataclass(slots=True, eq=False)
class Turn:
    """A `turn_start` and what followed while it was open."""

    line: int
    seq: int
    number: int | None
    id: str | None = None
    lane: str = ""
    implicit: bool = False  # its format records no turn ends: it is open only while it owes
    asks: bool = False  # a prompt or a result at its end means that the model had been asked
    finished: int | None = None  # line of its last word, where it lacks nothing but its end
    ended: int | None = None  # line
    steps: int = 0
    may_hide: int | None = None  # line that can't be read and may have named a call
    calls: dict[str, Call] = field(default_factory=dict)
    dispatches: dict[str, list[int]] = field(default_factory=dict)
    nameless_dispatches: list[int] = field(default_factory=list)
    early_results: dict[str, list[int]] = field(default_factory=dict)
    early_requests: dict[str, list[Request]] = field(default_factory=dict)
    early_contradictions: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    corrupt: list[Corrupt] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    loose_requests: list[Request] = field(default_factory=list)
    moved_on: int = 0  # last line that shows the loop went on: a message, a dispatch, a result
    spoke: int | None = None  # line of the last assistant_message
    attempt: Event | None = None  # a request_header nobody answered yet
    step_attempt: Event | None = None  # the same, by step_start, for logs without request headers
    rounds: int = 0
    input_tokens: int = 0
    max_input_tokens: int | None = None
    deadline: Any = None

    @property
    def closes_itself(self) -> bool:
        """Whether it needs no end record: it is open only while it owes."""
        return self.implicit or self.finished is not None

    @property
    def again(self) -> tuple[Call, ...]:
        """The answered calls whose result still has to be carried once more by a repair."""
        return tuple(call for call in self.calls.values() if call.again)


class State(NamedTuple):
    """What the pass left: everything that `rules`, `boundary` and `plan` need."""

    open_turns: tuple[Turn, ...]  # innermost first
    owed: Mapping[Turn, tuple[Call, ...]]  # in the order of first sighting
    left: tuple[Call, ...]  # unanswered, but in no open turn; in the order of the file
    anomalies: tuple[Anomaly, ...]
    corrupt: tuple[Corrupt, ...]
    events: int
    next_seq: int
    has_request_headers: bool
    last: Event | None
    last_time: Any  # the time of the last event that carries one
    significant: Event | None  # the last one that neither ends something nor is unknown
    latest_ms: int | None  # the latest time of any event, where the format gives times in ms
    last_turn: Turn | None  # the turn that was opened last in the main lane; None where it was passed over
