"""What a Claude Code record says about a call besides naming or answering it: progress, hooks, results.

Pure, and without memory. Its records of a start are partial, so nothing here may say that a call did not
run: their absence proves nothing, and a hook before a question is no proof that the question was answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from triage.log.events import DISPATCHED
from triage.log.json_text import dumps

ASKS_A_PERSON = ("AskUserQuestion", "ExitPlanMode")
QUOTED = 300  # characters of an output, of a call's arguments or of a question that are quoted
KEPT_SUBCALLS = 100  # unanswered calls of a sub-agent whose tools are remembered

# How a result begins that Claude Code writes itself where a person, a rule or an interrupt stopped the call.
_REJECTED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission for this tool use was denied",
    "Permission prompt was aborted",
    "The agent proposed a plan that was rejected by the user",
    "[Request interrupted by user",
    "[Tool call did not complete:",
    "[Tool call not completed:",
    "[Tool call skipped:",
)
# How one begins that it writes on resuming, for a call that the session before it left without a result.
_GENERIC = ("[Tool call interrupted:", "[Tool call result not in this copy:")
_GENERIC_WORDS = "the session ended before this call's"

_OUTPUTS = ("fullOutput", "output")


def text_of(content: object) -> str:
    """The text of a message or of a result: a string, or the text of its blocks. "" where it has none."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [block.get("text") for block in content if isinstance(block, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def clip(text: str, limit: int = QUOTED) -> str:
    """The text on one line, cut in the middle to about `limit` characters."""
    text = " ".join(text[: 4 * limit].split()) if len(text) <= 4 * limit else text
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[-limit // 2 :]
    return f"{' '.join(head.split())} … {' '.join(tail.split())}"


def closed_by_the_agent(record: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
    """How Claude Code itself closed a call with this result: "generically", "as rejected", or None.

    Newer versions say so in `toolDenialKind`, older ones only in the result's text.
    """
    kind = record.get("toolDenialKind")
    text = text_of(result.get("content")).lstrip() if result.get("is_error") is True else ""
    if kind == "interrupted" or text.startswith(_GENERIC) or _GENERIC_WORDS in text[:QUOTED]:
        return "generically"
    if (isinstance(kind, str) and kind) or text.startswith(_REJECTED):
        return "as rejected"
    return None


def of_progress(
    record: Mapping[str, Any], name: str | None, subcalls: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """The evidence in a `progress` record for an unanswered call of tool `name`, as `evidence` data.

    `subcalls` maps the calls that its sub-agent was seen to make to their tools, and is kept up to date.
    `latest` marks a note that says no more than a later one of its kind does.
    """
    data = record.get("data")
    data = data if isinstance(data, Mapping) else {}
    kind = data.get("type")
    if kind == "hook_progress":
        yield of_hook(data, name)
        return
    if kind == "mcp_progress":
        yield _of_mcp(data)
        return
    quoted = list(_of_agent(data.get("message"), subcalls)) if kind == "agent_progress" else []
    for says in quoted:
        yield {"says": says, "stage": DISPATCHED}
    if not quoted:
        says = _of_bash(data) if kind == "bash_progress" else f"{clip(str(kind), 60)}: it was at work"
        yield {"says": says, "stage": DISPATCHED, "latest": True}


def of_hook(hook: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """The evidence in a hook's record: `hookEvent` says when it ran."""
    event = hook.get("hookEvent")
    event = event if isinstance(event, str) else "unnamed"
    code = hook.get("exitCode")
    ran = f"{clip(event, 60)} hook ran" + (f" (exit code {code})" if isinstance(code, int) else "")
    if event.startswith("PostToolUse"):
        outcome = "it failed" if event.endswith("Failure") else "it finished"
        says = f"{ran}: {outcome}, and only its result was lost"
        return {"says": says, "stage": DISPATCHED, "finished": f"its {ran}"}
    if event != "PreToolUse":
        return {"says": f"{ran} for it"}
    if name in ASKS_A_PERSON:
        return {"says": f"{ran}, which it does before the question is shown: it still waited for a person"}
    return {"says": f"{ran}: it reached the executor", "stage": DISPATCHED}


def _of_mcp(data: Mapping[str, Any]) -> dict[str, Any]:
    status = data.get("status")
    status = clip(status, 60) if isinstance(status, str) else "at work"
    if status not in ("completed", "failed"):
        return {"says": f"mcp progress: {status}", "stage": DISPATCHED, "latest": True}
    says = f"mcp {status}: it finished, and only its result was lost"
    return {"says": says, "stage": DISPATCHED, "finished": f"its MCP server reported it {status}."}


def _of_bash(data: Mapping[str, Any]) -> str:
    seconds = data.get("elapsedTimeSeconds")
    after = f" after {seconds:g} s" if isinstance(seconds, int | float) else ""
    output = next((out for key in _OUTPUTS if isinstance(out := data.get(key), str) and out.strip()), "")
    shown = f", with the output {clip(output)!r}" if output else ""
    return f"bash progress: it was running{after}{shown}"


def _of_agent(message: object, subcalls: dict[str, str]) -> Iterator[str]:
    """The sub-agent's own calls and results that a progress record carries, quoted."""
    inner = message.get("message") if isinstance(message, Mapping) else None
    content = inner.get("content") if isinstance(inner, Mapping) else None
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use":
            name = str(block.get("name"))
            if len(subcalls) < KEPT_SUBCALLS:
                subcalls[str(block.get("id"))] = name
            yield f"its sub-agent called {clip(name, 60)} {clip(dumps(block.get('input')))}"
        elif block.get("type") == "tool_result":
            name = subcalls.pop(str(block.get("tool_use_id")), "")
            verb = "failed" if block.get("is_error") is True else "returned"
            yield f"its sub-agent's {clip(name, 60)} call {verb}: {clip(text_of(block.get('content')))}"
