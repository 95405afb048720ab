"""What the records of a Codex rollout say in words: texts, outputs and how a call ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triage.log.json_text import dumps

QUOTED = 2000  # characters of an outcome that are quoted


def text_of(payload: Mapping[str, Any], *keys: str) -> str:
    """The first of `keys` that holds a text, else ""."""
    return next((payload[key] for key in keys if isinstance(payload.get(key), str)), "")


def content_of(value: Any) -> str:
    """The text of a message's content or of an output: a text, a part with one, or a list of them."""
    parts = value if isinstance(value, list) else [value]
    texts = (part if isinstance(part, str) else text_of(part, "text") for part in parts if _has_text(part))
    return "\n".join(text for text in texts if text)


def _has_text(part: Any) -> bool:
    return isinstance(part, str | dict)


def outcome_of(source: Mapping[str, Any]) -> str:
    """How a call ended, from its end record: status, exit code and output, as far as they are there."""
    found = []
    if isinstance(source.get("status"), str):
        found.append(f"status {source['status']}")
    if isinstance(source.get("success"), bool):
        found.append(f"success {str(source['success']).lower()}")
    if _is_int(source.get("exit_code")):
        found.append(f"exit code {source['exit_code']}")
    output = text_of(source, "aggregated_output", "formatted_output") or "\n".join(
        text for text in (text_of(source, "stdout"), text_of(source, "stderr")) if text
    )
    if not output and source.get("result") is not None:
        output = dumps(source["result"])
    if output:
        found.append(f"output: {quoted(output)}")
    return ", ".join(found) or "the log does not say how"


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def quoted(text: str) -> str:
    """A text as it is quoted: whole, or its first `QUOTED` characters."""
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}… ({len(text):,} characters in all)"
