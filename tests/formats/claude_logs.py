"""Builders of Claude Code logs: each record hangs under the one before it, one second later.

log(prompt(), call("a"), call("b"), result("a", under=2))     # `under`: the line that it hangs under
"""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]

ENVELOPE = {
    "userType": "external",
    "cwd": "/srv/app",
    "sessionId": "5f0c7c1e-0000-4000-8000-000000000001",
    "version": "2.1.60",
    "gitBranch": "main",
}


def uuid(line: int) -> str:
    """The uuid of the record on a line (from 1)."""
    return f"00000000-0000-4000-8000-{line:012}"


def log(*happenings: Record) -> list[Record]:
    """The records of a log. A record that has no place in the chain (`plain`) stands as it is."""
    records: list[Record] = []
    last: dict[bool, str | None] = {False: None, True: None}
    for line, happening in enumerate(happenings, 1):
        more = dict(happening)
        if more.pop("plain", False):
            records.append(more)
            continue
        side, under = more.pop("isSidechain", False), more.pop("under", None)
        made = {
            "parentUuid": last[side] if under is None else uuid(under) if under else None,
            "isSidechain": side,
            **ENVELOPE,
            **more,
            "uuid": uuid(line),
            "timestamp": f"2026-03-02T10:{line // 60:02}:{line % 60:02}.000Z",
        }
        last[side] = uuid(line)
        records.append(made)
    return records


def user(content: Any, **more: Any) -> Record:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def prompt(text: str = "deploy it", **more: Any) -> Record:
    return user(text, **more)


def interrupted(text: str = "[Request interrupted by user]", **more: Any) -> Record:
    return user([{"type": "text", "text": text}], **more)


def reply(*blocks: Record, id: str | None = "msg_1", **more: Any) -> Record:
    message = {"role": "assistant", "type": "message", "model": "claude-opus-4-6", "content": list(blocks)}
    named = message if id is None else {"id": id, **message}
    return {"message": {**named, "stop_reason": None}, "type": "assistant", **more}


def says(text: str = "done", id: str | None = "msg_1", **more: Any) -> Record:
    return reply({"type": "text", "text": text}, id=id, **more)


def use(id: str, tool: str = "Bash", **arguments: Any) -> Record:
    return {"type": "tool_use", "id": id, "name": tool, "input": arguments or {"command": f"make {id}"}}


def call(
    call_id: str, tool: str = "Bash", id: str | None = "msg_1", side: bool = False, **more: Any
) -> Record:
    """A line of a reply that names one call."""
    return reply(use(call_id, tool, **more.pop("input", {})), id=id, isSidechain=side, **more)


def block(id: str, content: Any = "ok", error: bool = False) -> Record:
    return {"tool_use_id": id, "type": "tool_result", "content": content, "is_error": error}


def result(id: str, content: Any = "ok", error: bool = False, **more: Any) -> Record:
    return user([block(id, content, error)], **{"toolUseResult": {"stdout": str(content)}, **more})


def progress(id: str, **data: Any) -> Record:
    return {"type": "progress", "data": data, "toolUseID": "progress-1", "parentToolUseID": id}


def hook(id: str, event: str) -> Record:
    """A hook as versions of `progress` records write it."""
    return progress(id, type="hook_progress", hookEvent=event, hookName=f"{event}:Bash", command="check")


def hook_attachment(id: str, event: str, type: str = "hook_success") -> Record:
    """A hook as later versions write it."""
    attachment = {"type": type, "hookName": event, "toolUseID": id, "hookEvent": event, "exitCode": 0}
    return {"type": "attachment", "attachment": attachment}


def system(subtype: str, **more: Any) -> Record:
    return {"type": "system", "subtype": subtype, "content": "", **more}


def plain(type: str, **more: Any) -> Record:
    """A record outside the chain."""
    return {"plain": True, "type": type, "sessionId": ENVELOPE["sessionId"], **more}
