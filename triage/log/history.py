"""The repairs that a log already holds: when, by whom, what they found, by which rule."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from triage.log.events import APPROVAL_DECIDED, INPUT_RESOLVED, TOOL_RESULT, TURN_END, call_id
from triage.log.journal import CODES, Journal

_CODES = frozenset(
    CODES[name] for name in (TOOL_RESULT, TURN_END, APPROVAL_DECIDED, INPUT_RESOLVED, "damaged")
)


@dataclass(frozen=True, slots=True)
class Past:
    """One appended record. `line` from 1; what was not recorded is None (no answer was needed, or kept)."""

    line: int
    time: Any
    type: str
    tool_call_id: str | None
    risk: str | None
    rule: int | str | None
    finding: str | None
    operator: str | None
    note: str | None


def repairs_in(journal: Journal, first_line: int = 1) -> Iterator[Past]:
    """The repairs from `first_line` on, in the order of the file."""
    for line in range(first_line, journal.lines + 1):
        if journal.codes[line - 1] not in _CODES:
            continue
        if b'"synthetic"' not in (raw := journal.raw(line)) and b'"interrupted"' not in raw:
            continue
        for event in journal.events(line):
            data = event.data
            metadata = data.get("metadata")
            synthetic = isinstance(metadata, Mapping) and metadata.get("synthetic") is True
            if synthetic or (event.type == TURN_END and data.get("reason") == "interrupted"):
                yield _past(line, event.type, event.time, data, metadata if synthetic else {})


def operators_after(journal: Journal, size: int) -> tuple[str, ...]:
    """Who answered in the repairs that were appended after the first `size` bytes."""
    first = bisect_left(journal.offsets, size) + 1
    found = (past.operator for past in repairs_in(journal, first))
    return tuple(dict.fromkeys(operator for operator in found if operator))


def _past(line: int, type: str, time: Any, data: Mapping[str, Any], metadata: Any) -> Past:
    answer = metadata.get("acknowledged")
    answer = answer if isinstance(answer, Mapping) else {}
    return Past(
        line,
        time,
        type,
        call_id(data, "tool_call_id", "request_id"),
        metadata.get("risk"),
        metadata.get("rule"),
        *(
            answer[key] if isinstance(answer.get(key), str) else None
            for key in ("finding", "operator", "note")
        ),
    )
