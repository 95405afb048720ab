"""Builders of Copilot CLI event logs: each record has an id, a time, and the record before it as its parent.

log(*HEAD, names("a"), starts("a"), later(2000), note())
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

Record = dict[str, Any]

START = datetime(2026, 5, 20, 8, 0, tzinfo=UTC)  # before the time of the tests' repairs
STEP_MS = 20  # between two records
TALK = "0a8d4be2-5c0a-4b5b-9a59-0d3a0c6f7b11"  # the interaction


def record(type: str, /, agent: str | None = None, **data: Any) -> Record:
    return {"type": type, "data": data, **({} if agent is None else {"agentId": agent})}


def later(ms: int) -> int:
    """The next record is written so much later."""
    return ms


def log(*happenings: Record | int) -> list[Record]:
    """The records of a log; an int is a pause in ms."""
    now, parent, records = START, None, []
    for happening in happenings:
        if isinstance(happening, int):
            now += timedelta(milliseconds=happening)
            continue
        now += timedelta(milliseconds=STEP_MS)
        id = str(uuid5(NAMESPACE_URL, f"record {len(records)}"))
        made = {
            "type": happening["type"],
            "data": happening["data"],
            "id": id,
            "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "parentId": parent,
        }
        records.append({**made, **{k: v for k, v in happening.items() if k not in made}})
        parent = id
    return records


def session(**data: Any) -> Record:
    return record(
        "session.start",
        sessionId="5b0f8a43-4ab6-4f6e-9b35-7f3f1d1c9f02",
        version=1,
        producer="copilot-agent",
        copilotVersion="1.0.70",
        startTime="2026-07-01T10:00:00.000Z",
        selectedModel="model-z",
        context={"cwd": "/srv/certs"},
        **data,
    )


def resume(**data: Any) -> Record:
    return record("session.resume", resumeTime="2026-07-01T12:00:00.000Z", eventCount=1, **data)


def user(content: str = "rotate the certificates", talk: str = TALK, **data: Any) -> Record:
    return record("user.message", content=content, interactionId=talk, **data)


def step(turn: str = "0", agent: str | None = None) -> Record:
    return record("assistant.turn_start", agent, turnId=turn, interactionId=TALK)


def step_end(turn: str = "0", agent: str | None = None) -> Record:
    return record("assistant.turn_end", agent, turnId=turn)


def names(*calls: str, turn: str = "0", agent: str | None = None, **data: Any) -> Record:
    """A message that names calls: `id` (of bash) or `id:tool`."""
    parent = {} if agent is None else {"parentToolCallId": agent}
    requests = [
        {"toolCallId": id, "name": tool or "bash", "arguments": arguments(id), "type": "function"}
        for id, _, tool in (call.partition(":") for call in calls)
    ]
    return record(
        "assistant.message",
        agent,
        messageId=f"message of {' '.join(calls)}",
        content="",
        toolRequests=requests,
        interactionId=TALK,
        turnId=turn,
        **parent,
        **data,
    )


def arguments(id: str) -> Record:
    return {"command": f"./renew {id}"}


def speaks(turn: str = "0") -> Record:
    return record(
        "assistant.message",
        messageId=f"words of {turn}",
        content="Done.",
        toolRequests=[],
        interactionId=TALK,
        turnId=turn,
    )


def starts(id: str, tool: str = "bash", agent: str | None = None) -> Record:
    parent = {} if agent is None else {"parentToolCallId": agent}
    return record(
        "tool.execution_start",
        agent,
        toolCallId=id,
        toolName=tool,
        arguments=arguments(id),
        turnId="0",
        **parent,
    )


def completes(id: str, agent: str | None = None, **data: Any) -> Record:
    return record(
        "tool.execution_complete",
        agent,
        toolCallId=id,
        success=True,
        interactionId=TALK,
        turnId="0",
        result={"content": "ok"},
        **data,
    )


def asks(request: str, id: str | None, agent: str | None = None, **more: Any) -> Record:
    """A permission prompt for a shell command."""
    asked = {
        "kind": "shell",
        **({} if id is None else {"toolCallId": id}),
        "fullCommandText": f"./renew {id} > out.txt",
        "intention": "renew it",
        "commands": [{"identifier": "./renew", "readOnly": False}, {"identifier": "cat", "readOnly": True}],
        "possiblePaths": ["out.txt"],
        "possibleUrls": [],
        "hasWriteFileRedirection": True,
        "canOfferSessionApproval": True,
    }
    return record("permission.requested", agent, requestId=request, permissionRequest=asked, **more)


def decides(request: str, id: str | None, kind: str = "approved") -> Record:
    own = {} if id is None else {"toolCallId": id}
    return record("permission.completed", requestId=request, **own, result={"kind": kind})


def hook(id: str, type: str = "preToolUse", agent: str | None = None, **data: Any) -> Record:
    return record("hook.start", agent, hookInvocationId=id, hookType=type, **data)


def hook_end(id: str, type: str = "preToolUse", success: bool = True) -> Record:
    return record("hook.end", hookInvocationId=id, hookType=type, success=success)


def finished(id: str, tool: str = "bash", text: str = "renewed", **data: Any) -> Record:
    """A postToolUse hook: the tool has finished."""
    result = {"resultType": "success", "textResultForLlm": text, "sessionLog": ""}
    return hook(id, "postToolUse", input={"toolName": tool, "toolResult": result, **data})


def external(id: str, request: str = "x1") -> Record:
    sid = "5b0f8a43-4ab6-4f6e-9b35-7f3f1d1c9f02"
    return record(
        "external_tool.requested", requestId=request, sessionId=sid, toolCallId=id, toolName="deploy"
    )


def agent_starts(id: str, agent: str | None = None) -> Record:
    about = {"agentName": "task", "agentDisplayName": "Task Agent", "agentDescription": "runs things"}
    return record("subagent.started", agent, toolCallId=id, **about)


def agent_ends(id: str, agent: str | None = None, how: str = "completed", **data: Any) -> Record:
    return record(
        f"subagent.{how}", agent, toolCallId=id, agentName="task", agentDisplayName="Task Agent", **data
    )


def shutdown() -> Record:
    changes = {"linesAdded": 0, "linesRemoved": 0, "filesModified": []}
    return record(
        "session.shutdown",
        shutdownType="routine",
        totalPremiumRequests=1,
        totalApiDurationMs=900,
        sessionStartTime=1,
        codeChanges=changes,
        modelMetrics={},
    )


def note() -> Record:
    """A record about no call: it shows that its writer was still alive."""
    return record(
        "system.notification", content="a shell ended", kind={"type": "shell_completed", "shellId": "3"}
    )


HEAD = (session(), user(), step())
# A call that was answered, so that the log is known to record what is started.
ONE_DONE = (starts("done"), later(300), completes("done"))
