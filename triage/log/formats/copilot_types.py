"""The record types of a Copilot CLI event log (its vendor's published schema), and what a cut one may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from triage.log.formats.copilot_text import text

_SHOWN = frozenset(
    {
        "assistant.intent", "assistant.message_delta", "assistant.message_start", "assistant.reasoning",
        "assistant.reasoning_delta", "assistant.streaming_delta", "assistant.usage",
        "auto_mode_switch.completed", "auto_mode_switch.requested", "capabilities.changed",
        "command.completed", "command.execute", "command.queued", "commands.changed",
        "elicitation.completed", "elicitation.requested", "exit_plan_mode.completed",
        "exit_plan_mode.requested", "mcp.oauth_completed", "mcp.oauth_required", "model.call_failure",
        "pending_messages.modified", "sampling.completed", "sampling.requested",
        "session.background_tasks_changed", "session.compaction_complete", "session.compaction_start",
        "session.custom_agents_updated", "session.custom_notification", "session.error",
        "session.extensions_loaded", "session.handoff", "session.idle", "session.info",
        "session.mcp_server_status_changed", "session.mcp_servers_loaded", "session.mode_changed",
        "session.plan_changed", "session.remote_steerable_changed", "session.schedule_cancelled",
        "session.schedule_created", "session.skills_loaded", "session.snapshot_rewind",
        "session.tools_updated", "session.truncation", "session.usage_info", "session.warning",
        "session.workspace_file_changed", "skill.invoked", "subagent.deselected", "subagent.selected",
        "system.notification", "user_input.completed", "user_input.requested",
    }
)  # fmt: skip
_MOVE_NO_CALL = frozenset(
    {
        "abort", "assistant.message", "assistant.turn_end", "assistant.turn_start", "session.context_changed",
        "session.model_change", "session.resume", "session.shutdown", "session.start",
        "session.task_complete", "session.title_changed", "system.message", "user.message",
    }
)  # fmt: skip
_MOVE_CALLS = frozenset(
    {
        "external_tool.completed", "external_tool.requested", "hook.end", "hook.start",
        "permission.completed", "permission.requested", "subagent.completed", "subagent.failed",
        "subagent.started", "tool.execution_complete", "tool.execution_partial_result",
        "tool.execution_progress", "tool.execution_start", "tool.user_requested",
    }
)  # fmt: skip
TYPES = _SHOWN | _MOVE_NO_CALL | _MOVE_CALLS
_MAY_NAME = ("assistant.message", "tool.execution_start", "external_tool.requested")


_DOTTED = re.compile(r"[a-z_]+\.[a-z_.]+")


def recognise(record: Mapping[str, Any]) -> bool:
    """Whether a record is certainly of this format: one of its types around data, or its whole envelope."""
    type = record.get("type")
    if not isinstance(type, str) or not isinstance(record.get("data"), dict) or "seq" in record:
        return False
    return type in TYPES or (
        _DOTTED.fullmatch(type) is not None and {"id", "timestamp", "parentId"} <= record.keys()
    )


def weigh(record: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """What a cut record may have been: (moved no call, may name a call, may open a turn)."""
    type, data = record.get("type"), record.get("data")
    if not isinstance(type, str) or type not in TYPES:
        return False, True, True
    harmless = type not in _MOVE_CALLS
    if type in ("hook.start", "hook.end"):
        harmless = "tooluse" not in (text(data, "hookType") or "tooluse").lower()
    return harmless, type in _MAY_NAME, type == "user.message"
