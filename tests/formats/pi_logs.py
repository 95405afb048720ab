"""Builders of pi sessions: each entry hangs under the one before it, one second later.

log(user(), assistant("a", "b"), result("a"))              # of version 3, a tree
linear(user(), assistant("a"))                             # of version 1, without ids
"""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]

STARTED = "2026-03-02T10:00:00.000Z"
MS = 1_772_445_600_000  # STARTED in ms since 1970


def id_of(line: int) -> str:
    """The id of the entry on a line (from 1; the header is line 1)."""
    return f"{line:08x}"


def log(*happenings: Record, version: int = 3) -> list[Record]:
    """A header and the entries; `under` is the line that an entry hangs under (0: none)."""
    header = {"type": "session", "version": version, "id": "5f0c", "timestamp": STARTED, "cwd": "/srv/app"}
    records: list[Record] = [header]
    parent: str | None = None
    for line, happening in enumerate(happenings, 2):
        more = dict(happening)
        under = more.pop("under", None)
        above = parent if under is None else id_of(under) if under else None
        place = {"type": more.pop("type"), "id": id_of(line), "parentId": above}
        records.append({**place, "timestamp": f"2026-03-02T10:00:{line % 60:02}.000Z", **more})
        parent = id_of(line)
    return records


def linear(*happenings: Record) -> list[Record]:
    """The same in version 1: no version, no ids."""
    header, *entries = log(*happenings)
    old = {key: header[key] for key in ("type", "id", "timestamp", "cwd")}
    kept = [{key: entry[key] for key in entry if key not in ("id", "parentId")} for entry in entries]
    return [{**old, "provider": "anthropic", "modelId": "claude-sonnet-4-5"}, *kept]


def message(role: str, content: Any, **more: Any) -> Record:
    outer = {"under": more.pop("under")} if "under" in more else {}
    return {
        "type": "message",
        "message": {"role": role, "content": content, **more, "timestamp": MS},
        **outer,
    }


def user(text: str = "deploy it", **more: Any) -> Record:
    return message("user", [{"type": "text", "text": text}], **more)


def use(id: str, tool: str = "bash", arguments: Any = ...) -> Record:
    given = {"command": f"make {id}"} if arguments is ... else arguments
    return {"type": "toolCall", "id": id, "name": tool, "arguments": given}


def assistant(*calls: str | Record, reason: str = "toolUse", **more: Any) -> Record:
    """A message of the model that names calls."""
    blocks = [use(call) if isinstance(call, str) else call for call in calls]
    said = [{"type": "text", "text": "I do it."}, *blocks]
    return message("assistant", said, model="claude-sonnet-4-5", stopReason=reason, **more)


def result(id: str, tool: str = "bash", **more: Any) -> Record:
    content = [{"type": "text", "text": "ok"}]
    return message("toolResult", content, toolCallId=id, toolName=tool, isError=False, **more)


def entry(type: str, **more: Any) -> Record:
    return {"type": type, **more}


def compaction(**kept: Any) -> Record:
    return entry("compaction", summary="so far", tokensBefore=1000, **kept)
