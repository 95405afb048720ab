"""Whether a decision fits the request that it decides (the table of calls that wait for a person)."""

from __future__ import annotations

from triage.log.events import INPUT_RESOLVED, Event
from triage.recovery.state import Request


def is_same(one: Request, other: Request) -> bool:
    """Whether two requests of one id ask for the same thing: one of them was merely logged again."""
    return (one.kind, one.call_id) == (other.kind, other.call_id)


def inconsistencies(event: Event, request: Request, other: str | None) -> list[str]:
    """Each way in which a decision does not fit its request (the table of waiting calls)."""
    data, found = event.data, []
    name = f"request {request.id!r}"
    capability = data.get("capability") is not None
    if request.decision is not None:
        found.append(f"{name} is decided twice; the first decision is on line {request.decided:,}")
    if event.type == INPUT_RESOLVED:
        if request.kind != "input":
            found.append(f"{name} asked for an approval and got an input answer")
        if capability:
            found.append(f"the answer to {name} carries a capability; only an approval does")
    else:
        if request.kind != "approval":
            found.append(f"{name} asked for an input and got an approval decision")
        if data.get("decision") not in ("allow", "deny"):
            found.append(f"{name} is decided as neither allow nor deny")
        if data.get("decision") == "allow" and not capability:
            found.append(f"{name} is allowed without a capability: nothing shows that it was issued")
        if data.get("decision") == "deny" and capability:
            found.append(f"{name} is denied with a capability: it says both")
    if other is not None and request.call_id is not None and other != request.call_id:
        found.append(f"{name} is call {request.call_id!r}'s, and the decision names {other!r}")
    return found
