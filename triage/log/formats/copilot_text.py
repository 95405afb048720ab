"""What single values in a Copilot CLI log say: times, names, permission requests, the session's facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from triage.log.events import call_id

FOLLOWED = (
    "a later assistant message of this interaction follows the call: builds before about 1.0.77 put a late "
    "result in the wrong place and stay stuck, so update the agent before it resumes"
)
QUOTED = 2000  # characters of a result or a command that are quoted
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def text(source: Any, key: str) -> str | None:
    """The text under a key of an object, where it holds one that is not empty."""
    value = source.get(key) if isinstance(source, Mapping) else None
    return value if isinstance(value, str) and value else None


def is_uuid(value: str) -> bool:
    """Whether a text is a UUID as the agent writes them."""
    return _UUID.fullmatch(value) is not None


def quoted(value: str, limit: int = QUOTED) -> str:
    """At most `limit` characters of a text, with a note where more was cut."""
    return value if len(value) <= limit else f"{value[:limit]}… ({len(value):,} characters in all)"


def ms(time: Any) -> int | None:
    """A record's time in ms since 1970, where it is ISO 8601; without an offset it counts as UTC."""
    if not isinstance(time, str):
        return None
    try:
        moment = datetime.fromisoformat(time)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def named(entry: Any) -> Any:
    """A tool request in our words; what is no object stays as it is."""
    if not isinstance(entry, dict):
        return entry
    id = call_id(entry, "toolCallId")
    return {"id": id, "name": entry.get("name"), "arguments": entry.get("arguments")}


def hints(asks: Mapping[str, Any]) -> str:
    """What a permission request says of side effects: its kind, command, paths, what is read-only."""
    found = [text(asks, "kind") or "of no kind"]
    command = next(
        (asks[k] for k in ("fullCommandText", "toolName", "fileName", "path", "url") if text(asks, k)), ""
    )
    if command:
        found[0] += f": {quoted(command, 300)}"
    commands = asks.get("commands")
    for entry in commands[:10] if isinstance(commands, list) else ():
        name, harmless = text(entry, "identifier"), isinstance(entry, dict) and entry.get("readOnly")
        if name:
            found.append(f"{quoted(name, 80)} {'only reads' if harmless is True else 'may write'}")
    if asks.get("hasWriteFileRedirection") is True:
        found.append("writes a file by redirection")
    paths = asks.get("possiblePaths")
    shown = [quoted(path, 200) for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    if shown:
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        found.append(f"paths: {', '.join(shown[:5])}{more}")
    return "; ".join(found)


def facts_in(data: Mapping[str, Any]) -> dict[str, str]:
    """What a record of the session's own says of it: version, cwd, model, title and start."""
    found = {
        "version": text(data, "copilotVersion"),
        "cwd": text(data.get("context"), "cwd") or text(data, "cwd"),
        "model": text(data, "newModel") or text(data, "selectedModel"),
        "title": text(data, "title"),
        "started": text(data, "startTime"),
    }
    return {key: value for key, value in found.items() if value}
