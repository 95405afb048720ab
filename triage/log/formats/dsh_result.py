"""The tool result that closes a call of a DeepSeek Harness session, as the harness's own closers write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triage.recovery.rules import NOT_STARTED

FLAT_SINCE = 4  # from this version of the log on, a result is a message of role tool, without a wrapper

# The harness takes a result without a start for a repair only in these very words.
NOT_STARTED_TEXT = (
    "The tool call was interrupted before the Harness recorded it as started. Retry it if it is still needed."
)


@dataclass(slots=True)
class Place:
    """Where a call stands: the step that named it, and the seq of its dispatch."""

    step: Any
    dispatched: int | None = None


def error(data: Mapping[str, Any]) -> dict[str, str]:
    """The error of a synthetic result (`data` in the native vocabulary), by its risk."""
    if data["metadata"]["risk"] == NOT_STARTED:
        return {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"}
    return {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}


def message(data: Mapping[str, Any], seq: int, *, flat: bool) -> dict[str, Any]:
    """The message of a synthetic result that is appended at `seq`. `flat`: without the older wrapper."""
    id, metadata = data["tool_call_id"], data["metadata"]
    text = data["content"]
    if metadata["risk"] == NOT_STARTED and "acknowledged" not in metadata:
        text = NOT_STARTED_TEXT
    source = {"kind": "tool", "callId": id}
    content = [{"type": "text", "text": text}]
    name = f"interrupted-tool-result-{id}-{seq}"
    result = {"toolCallId": id, "content": content, "isError": True}
    if flat:
        return {"source": source, **result, "role": "tool", "id": name}
    return {"source": source, "content": [{"type": "tool-result", **result}], "role": "user", "id": name}
