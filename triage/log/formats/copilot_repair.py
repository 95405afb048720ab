"""The records that close what a Copilot CLI log left open, in the order in which its own repair wants them.

Each has exactly the keys of the vendor's schema; who wrote it and why stands in `toolTelemetry`, the one
map that may hold anything. No `session.shutdown` is written: its figures would be invented.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from triage.log.events import TOOL_RESULT
from triage.log.formats.copilot_calls import Call
from triage.recovery.plan import Plan, Refusal, Repair

DIED = "The session ended while this sub-agent was running."


class Request(NamedTuple):
    """An open permission request: the call that it is for, whose agent's it is, the lane it stands in."""

    call: str | None
    agent: str | None
    lane: str


class Hook(NamedTuple):
    """A hook that has not ended, and the calls that it stands before."""

    type: str
    agent: str | None
    lane: str
    calls: Sequence[Call] = ()


class Agent(NamedTuple):
    """A sub-agent that has not ended, with what its end has to repeat."""

    call: str
    name: str
    display: str
    agent: str | None


@dataclass(slots=True)
class Open:
    """What a log leaves open. `calls` in the order of the plan, the rest in the order of the log."""

    calls: Sequence[Call]
    requests: Mapping[str, Request]
    hooks: Mapping[str, Hook]
    agents: Sequence[Agent]
    steps: Sequence[tuple[str, str | None]] = field(default=())  # turnId and agentId, outermost first


def records(
    repairs: Sequence[Repair], left: Open, parent: str | None, now: str | None
) -> list[dict[str, Any]]:
    """The records to append for a plan's repairs; none where it has none.

    `parent` is the id of the log's last record. `now` is the time of the append; None in a plan: then the
    ids and times that are made at the append are null.
    """
    if not repairs:
        return []
    found = [*_completions(repairs, left.calls)]
    for id, request in left.requests.items():
        of = {} if request.call is None else {"toolCallId": request.call}
        cancelled = {"requestId": id, **of, "result": {"kind": "cancelled"}}
        found.append(("permission.completed", cancelled, request.agent))
    for agent in reversed(left.agents):
        names = {"agentName": agent.name, "agentDisplayName": agent.display}
        found.append(("subagent.failed", {"toolCallId": agent.call, **names, "error": DIED}, agent.agent))
    for id, hook in left.hooks.items():
        ended = {"hookInvocationId": id, "hookType": hook.type, "success": False}
        found.append(("hook.end", ended, hook.agent))
    found += [("assistant.turn_end", {"turnId": turn}, agent) for turn, agent in reversed(left.steps)]
    found.append(("abort", {"reason": "user_initiated"}, None))
    chain = []
    for type, data, agent_id in found:
        id_ = None if now is None else str(uuid4())
        record = {"type": type, "data": data, "id": id_, "timestamp": now, "parentId": parent}
        chain.append(record if agent_id is None else {**record, "agentId": agent_id})
        parent = id_
    return chain


def _completions(
    repairs: Sequence[Repair], calls: Sequence[Call]
) -> list[tuple[str, dict[str, Any], str | None]]:
    owed: dict[str, list[Call]] = {}
    for call in calls:
        owed.setdefault(call.id, []).append(call)
    found = []
    for repair in repairs:
        if repair.type != TOOL_RESULT:
            continue
        id, metadata = repair.data["tool_call_id"], repair.data["metadata"]
        call = owed[id].pop(0) if owed.get(id) else Call(id, "")
        data: dict[str, Any] = {"toolCallId": id, "success": False}
        repeated = {"interactionId": call.interaction, "turnId": call.turn}
        data.update({key: value for key, value in repeated.items() if value is not None})
        data["error"] = {"message": repair.data["content"], "code": metadata["risk"]}
        data["toolTelemetry"] = metadata
        if call.parent is not None:
            data["parentToolCallId"] = call.parent
        found.append(("tool.execution_complete", data, call.agent))
    return found


def split_record(plan: Plan) -> Refusal | None:
    """The refusal for a log with a record that is broken over several lines, else None."""
    split = next((anomaly for anomaly in plan.anomalies if anomaly.code == "split_record"), None)
    if split is None:
        return None
    says = (
        f"line {split.line or 1:,}: {split.says}. An append can't mend that, and Copilot itself refuses to "
        "resume a session with such a record: join its lines in a copy first"
    )
    ids = tuple(owed.tool_call_id for owed in plan.owed)
    return Refusal("split_record", says, boundary=plan.boundary.name, ids=ids)
