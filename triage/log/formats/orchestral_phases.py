"""The phases of an Orchestral run: which record leads where, and what recovery may do at each.

Pure. A phase is read off the records alone; nothing here decides to resume a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from triage.log.events import call_id

PREPARED, STABLE, TERMINAL = "Prepared", "Stable", "Terminal"
OPEN, OBSERVED, WORKFLOW = "ModelAttemptOpen", "ModelAttemptObserved", "WorkflowAttemptOpen"
_ATTEMPTS = (OPEN, OBSERVED, WORKFLOW)
_BOUNDARIES = {PREPARED: "prepared", STABLE: "stable", OPEN: "model_attempt_open"}
_RESUMABLE = ("stop", "tool_calls")
_INTERRUPTED = "Host restarted before the model attempt outcome was observed"

MAY = {
    PREPARED: "nothing has happened yet, and its owner may resume the run from the start",
    STABLE: "the loop stands between two rounds, and its owner may resume the run there",
    OPEN: "the model's answer was never observed: its owner closes the run as interrupted and never sends "
    "the request again; the plan's line is the closing event to hand to it",
    OBSERVED: "the model's one call is whole, and its owner may resume the run with it",
    WORKFLOW: "the workflow's output is durable, and its owner may resume the run after it",
    TERMINAL: "the run has ended, and there is nothing to do",
}


@dataclass(frozen=True, slots=True)
class Phase:
    """Where a run stands. `line` is the record (from 1) that proves it, 0 for the registration."""

    name: str = PREPARED
    line: int = 0
    round: Any = None
    request: str | None = None
    next_round: Any = None
    has_budget: bool = True
    has_output: bool = False
    call: str | None = None
    finish: Any = None
    ids: Sequence[str] = ()
    ended: Sequence[bool] = ()

    @property
    def boundary(self) -> str | None:
        """The boundary that this phase is; None where its calls decide."""
        return _BOUNDARIES.get(self.name)

    @property
    def where(self) -> str:
        """The phase and the record that proves it."""
        return f"Phase {self.name} ({f'record {self.line:,}' if self.line else 'by the registration'})"

    @property
    def says(self) -> str:
        """The phase, the record that proves it, and what recovery may do."""
        return f"{self.where}: {MAY[self.name]}"

    def forbids(self, kind: str, payload: Mapping[str, Any]) -> str:
        """Why a record of this kind can't follow here, else ""."""
        if self.name == TERMINAL:
            return f"{kind} follows the end of the run"
        round, request = payload.get("round"), call_id(payload, "request_id")
        if kind == "loop_boundary_committed":
            allowed = self._closed_by(payload.get("next_model_round"))
        elif kind == "model_attempt_started":
            allowed = self.name == STABLE and round == self.next_round
        elif kind == "model_attempt_observed":
            allowed = self.name == OPEN and (round, request) == (self.round, self.request)
        elif kind == "workflow_attempt_started":
            same = (round, request) == (self.round, self.request)
            allowed = self.name == OBSERVED and same and call_id(payload, "call_id") in self.ids
        else:
            return ""
        where = f"{self.name} (round {self.next_round if self.name == STABLE else self.round})"
        what = f"{kind} (round {payload.get('next_model_round', round)})"
        return "" if allowed else f"{what} can't follow {where}"

    def _closed_by(self, next_round: Any) -> bool:
        if self.name == PREPARED:
            return bool(next_round == 1)
        later = type(next_round) is int and type(self.round) is int and next_round > self.round
        return self.name in _ATTEMPTS and later

    def refused(self) -> tuple[str, str, tuple[str, ...]] | None:
        """Code, sentence and ids where recovery refuses this phase, else None."""
        where = f"Phase {self.name} (record {self.line:,}, round {self.round}, request {self.request!r})"
        if self.name == OPEN and not self.has_budget:
            says = f"{where}: no output budget was recorded for this round, so recovery can't close it"
            return "invalid_digest", says, self._request_ids
        if self.name == OBSERVED and not (
            len(self.ended) == 1 and self.ended[0] and self.finish in _RESUMABLE
        ):
            says = (
                f"{where}: recovery resumes only one whole call after a stop or tool calls, and this answer "
                f"names {len(self.ended)} ({sum(self.ended)} whole) and finished with {self.finish!r}"
            )
            return "unsupported", says, tuple(self.ids) or self._request_ids
        if self.name == WORKFLOW and not self.has_output:
            says = (
                f"{where}: workflow {self.call!r} was started, its output is not durable, never run it again"
            )
            return "unsupported", says, (self.call,) if self.call is not None else self._request_ids
        return None

    @property
    def _request_ids(self) -> tuple[str, ...]:
        return (self.request,) if self.request is not None else ()


def closing_event(run: str, round: Any, last_seq: int) -> dict[str, Any]:
    """The event that closes an open model attempt as interrupted, as its owner's store takes it.

    Its id is fixed, so that closing twice is the same event; `last_seq` is the last `checkpoint_seq`.
    """
    id = f"generic-{run}-model-attempt-interrupted-{round}"
    event = {
        "event_id": id,
        "run_id": run,
        "causation_id": None,
        "source_fingerprint": None,
        "payload": {
            "type": "run_incomplete",
            "reason": {"type": "interrupted", "reason": _INTERRUPTED},
            "partial_delivery": None,
        },
    }
    payload = {"type": "provider_events_committed", "events": [event]}
    return {"expected_previous": last_seq, "event_id": id, "run_id": run, "payload": payload}


def digest(text: str) -> str:
    """The SHA-256 of a text in hex: Orchestral names its files so."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()
