"""The run as a whole: why it is recovered, and as what.

Pure. A verdict looks only at the end of the log and misses a parallel call, so it never stands
alone: the per-call rules beside it gate the append.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

Reason = Literal[
    "model_stream_completed_without_runtime_terminal",
    "stale_user_wait",
    "tool_interrupted",
    "run_interrupted",
    "non_terminal_run_recovered",
]

REASON_SENTENCES: Final[Mapping[Reason, str]] = {
    "model_stream_completed_without_runtime_terminal": (
        "The model had finished its answer, but the run's end was never recorded: "
        "read the answer before you ask again."
    ),
    "stale_user_wait": (
        "The run died waiting for a person: closing it here denies that request; "
        "to answer it, go back to the agent."
    ),
    "tool_interrupted": (
        "A tool had been started when the run died: check what it did before anyone retries it."
    ),
    "run_interrupted": (
        "The run was under way when its host went away: look at each call before you start it again."
    ),
    "non_terminal_run_recovered": (
        "The run has no end, and its last event does not say why: read that event before you close the run."
    ),
}
"""One sentence a reason, for the operator."""

FAILURE_SENTENCES: Final[Mapping[str, str]] = {
    "app_restarted": "The agent's host went away and never closed this run.",
    "sandbox_boundary_closed_by_restart": ("A sandbox request was closed by the restart, not by you."),
}
"""One sentence a failure class, for the operator."""

LINEAGE: Final = (
    "parentRunId",
    "parentTurnId",
    "retriedFromTurnId",
    "regeneratedFromTurnId",
    "branchOfTurnId",
    "parentSessionId",
)
RUN_ENDS: Final = ("run_completed", "run_failed", "run_cancelled")
BEFORE_THE_ANSWER: Final = (
    None,
    "run_created",
    "run_started",
    "turn_started",
    "model_resolved",
    "model_stream_started",
    "run_status_changed",
)
NATIVE_BEFORE_THE_ANSWER: Final = (
    None,
    "system_message",
    "user_message",
    "turn_start",
    "step_start",
    "request_header",
)


def decide(
    header: Mapping[str, object],
    events: Sequence[Mapping[str, object]],
    closures: Sequence[Mapping[str, object]],
) -> dict[str, object] | None:
    """The decision for a run that a restart found, None for one that had ended by its header.

    `header` is the run's header, `events` its events in order, a line that doesn't parse being an
    `event_corrupt`; `closures` are the rows of its sandbox requests. Source: the verdict rules.
    Raises nothing for missing fields.
    """
    if header.get("status") in ("completed", "failed", "cancelled"):
        return None
    types = [event.get("type") for event in events]
    last = next((kind for kind in reversed(types) if kind != "event_corrupt"), None)
    diagnostic: dict[str, object] = {"recoveryReason": _reason(header.get("status"), types, last)}
    if last:
        diagnostic["lastEventType"] = last
    if "event_corrupt" in types:
        diagnostic["eventCorrupt"] = True
    claims = [row.get("requestId") for row in closures if _claims(row, header)]
    if claims:
        diagnostic["sandboxBoundaryClosureReason"] = "host_restarted"
        diagnostic["sandboxBoundaryRequestIds"] = claims
    return {
        "runId": header.get("runId"),
        "turnId": header.get("turnId"),
        "status": "failed",
        "failureClass": "sandbox_boundary_closed_by_restart" if claims else "app_restarted",
        "diagnostic": diagnostic,
        "lineage": {field: header[field] for field in LINEAGE if header.get(field)},
    }


def reason_for_native(last: str | None, *, owes: bool, waiting: bool, request_open: bool) -> Reason:
    """The same reasons for a native log with an open turn; first match wins, in the same order.

    `last` is the type of the last event that is no `step_end`, no `turn_end` and no unknown one;
    `owes`: a call has no result; `waiting`: an approval or input request is open; `request_open`:
    a `request_header` has no `assistant_message` after it in its step. Source: the verdict rules.
    """
    if last == "assistant_message" and not owes:
        return "model_stream_completed_without_runtime_terminal"
    if waiting:
        return "stale_user_wait"
    if last == "tool_call":
        return "tool_interrupted"
    if request_open or last in NATIVE_BEFORE_THE_ANSWER:
        return "run_interrupted"
    return "non_terminal_run_recovered"


def native_decision(
    turn_id: str | None, last: str | None, *, owes: bool, waiting: bool, request_open: bool, corrupt: bool
) -> dict[str, object]:
    """The decision for a native log with an open turn, in the shape of `decide`. There is no run id."""
    reason = reason_for_native(last, owes=owes, waiting=waiting, request_open=request_open)
    diagnostic: dict[str, object] = {"recoveryReason": reason}
    if last:
        diagnostic["lastEventType"] = last
    if corrupt:
        diagnostic["eventCorrupt"] = True
    return {
        "runId": None,
        "turnId": turn_id,
        "status": "failed",
        "failureClass": "app_restarted",
        "diagnostic": diagnostic,
        "lineage": {},
    }


def _reason(status: object, types: Sequence[object], last: object) -> Reason:
    if last == "model_stream_completed" and not any(end in types for end in RUN_ENDS):
        return "model_stream_completed_without_runtime_terminal"
    # `waiting_permission` is what older headers call `waiting_for_user`.
    if status in ("waiting_for_user", "waiting_permission"):
        return "stale_user_wait"
    if last in ("permission_requested", "permission_failed"):
        return "stale_user_wait"
    if last == "tool_started":
        return "tool_interrupted"
    if status in ("created", "running") or last in BEFORE_THE_ANSWER:
        return "run_interrupted"
    return "non_terminal_run_recovered"


def _claims(closure: Mapping[str, object], header: Mapping[str, object]) -> bool:
    if (closure.get("status"), closure.get("outcomeReason")) != ("denied", "host_restarted"):
        return False
    # A turn can own several runs: its id is asked only where the row names no run.
    field = "turnId" if closure.get("runId") is None else "runId"
    return closure.get(field) is not None and closure.get(field) == header.get(field)
