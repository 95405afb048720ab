"""Log values on one line: what a call asks for, what a result or a message says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from triage.log.history import synthetic
from triage.log.json_text import dumps
from triage.text import clean
from triage.words import synthetic_in_words

FIRST = (
    "method",
    "command",
    "cmd",
    "script",
    "code",
    "url",
    "uri",
    "file_path",
    "path",
    "file",
    "query",
    "pattern",
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
LIMIT = 240  # characters of one value on one line
PARTS = 8  # arguments shown on one line


def arguments_in_short(arguments: Any) -> str:
    """A call's arguments on one line, cleaned: the telling ones first, bare, the others with their names."""
    value = parsed(arguments)
    if not isinstance(value, Mapping):
        return "" if value is None else clean(_flat(value), limit=LIMIT)
    telling = [name for name in FIRST if name in value]
    rest = [name for name in value if name not in telling]
    parts = [_flat(value[name]) for name in telling]
    parts += [f"{name}={_flat(value[name])}" for name in rest[: max(0, PARTS - len(parts))]]
    return clean("  ".join(parts), limit=LIMIT)


def record_in_short(type: str, record: Mapping[str, Any]) -> str:
    """A record that has no row of its own kind, on one line, cleaned: what it holds before its envelope."""
    held = {
        name: value
        for name, value in record.items()
        if not (value is None or (name == "type" and value == type) or _is_uuid(value))
    }
    nested = sorted(held, key=lambda name: not isinstance(held[name], Mapping | list))
    return arguments_in_short({name: held[name] for name in nested})


def _is_uuid(value: Any) -> bool:
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def parsed(arguments: Any) -> Any:
    """Arguments as a value: a JSON string is read, anything else stays what it is."""
    if isinstance(arguments, str) and arguments[:1] in ("{", "["):
        try:
            return json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            return arguments
    return arguments


def content_in_short(content: Any, *, kinds: bool = True) -> str:
    """A message's or a result's content on one line, cleaned: its first text that isn't blank.

    Without any, the kinds of its blocks, or nothing (`kinds=False`).
    """
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, Mapping)]
        text = next(filter(None, map(_text_of, blocks)), None)
        named = ", ".join(str(block.get("type", "?")) for block in blocks) if kinds else ""
        content = text if text is not None else named if blocks else content
    if content is None:
        return ""
    if not isinstance(content, str):
        return clean(_flat(content), limit=LIMIT)
    first = next((line for line in content[: 4 * LIMIT].splitlines() if line.strip()), "").strip()
    more = " …" if len(content.strip()) > len(first) else ""
    return clean(first, limit=LIMIT) + (more if len(first) <= LIMIT else "")


def synthetic_in_short(result: Mapping[str, Any]) -> str:
    """For the data of a result that no tool gave (it is no success) what it stands for, else ""."""
    metadata = synthetic(result)
    return "" if metadata is None else f"synthetic: {synthetic_in_words(metadata)}  "


def _text_of(block: Mapping[str, Any]) -> str | None:
    """The text of a block, or of the blocks that it wraps, as the parts of a result may be."""
    inner = block.get("content")
    wrapped = [one for one in inner if isinstance(one, Mapping)] if isinstance(inner, list) else []
    texts = [block.get("text"), inner, *(one.get("text") for one in wrapped)]
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return value[: LIMIT + 1]
    return dumps(value)[: LIMIT + 1]
