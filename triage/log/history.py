"""The repairs that a log already holds: when, by whom, what they found, by which rule."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.log.codes import CODES
from triage.log.events import APPROVAL_DECIDED, INPUT_RESOLVED, TOOL_RESULT, TURN_END, Event, call_id
from triage.log.formats import native
from triage.log.formats.dsh_result import NOT_STARTED_TEXT
from triage.log.journal import Journal
from triage.recovery.acknowledge import DENY, FINDINGS, Answer, found_in_words
from triage.recovery.rules import NOT_STARTED, OUTCOME_UNKNOWN

CLOSE = 4  # lines: an agent's end of a turn so near behind a repair's result is the repair's
_ENDS = {True: ("interrupted",), False: ("interrupted", "abort")}  # reasons, by whether the log is native
_CODES = frozenset(
    CODES[name] for name in (TOOL_RESULT, TURN_END, APPROVAL_DECIDED, INPUT_RESOLVED, "damaged")
)
_MARKS = re.compile(rb'"synthetic"|"interrupted"|session was interrupted')

# The words of a synthetic result, as `synthetic_content` and `found_in_words` write them.
_BEGINS = re.compile(
    "The session was interrupted (while this call may have been running)?"
    "|This call was denied before the session was interrupted"
)
_FINDINGS = {
    found_in_words(Answer(finding)).removeprefix("An operator checked: ").rstrip("."): finding
    for finding in (*FINDINGS, DENY)
}
_ANSWER = re.compile(
    rf".*An operator(?: \((?P<who>.*?)\))? checked: (?P<found>{'|'.join(_FINDINGS)})\."
    r"(?: Note: (?P<note>.*))?",
    re.DOTALL,
)
_ADDED = re.compile(r"\n\[Added by triage, not by the tool: \w+, rule (?P<rule>\w+)\.\]$")


@dataclass(frozen=True, slots=True)
class Past:
    """One appended record. `line` from 1; what was not recorded is None (no answer was needed, or kept)."""

    line: int
    time: Any
    type: str
    tool_call_id: str | None
    name: str | None  # of the tool, where the record has it
    risk: str | None
    rule: int | str | None
    finding: str | None
    operator: str | None
    note: str | None


def repairs_in(journal: Journal, first_line: int = 1) -> Iterator[Past]:
    """The repairs from `first_line` on, in the order of the file.

    Records that carry no metadata, in the formats of agents, are known by the words of their content; an
    end of a turn is a repair's there only where it stands right behind such a record.
    """
    is_native, latest = journal.format.NAME == native.NAME, -CLOSE
    for line in range(first_line, journal.lines + 1):
        if journal.codes[line - 1] not in _CODES:
            continue
        near = line - latest < CLOSE
        if not near and not _MARKS.search(journal.raw(line)):
            continue
        for event in journal.events(line):
            found = _repair(event, _ENDS[is_native] if is_native or near else ())
            if found is not None:
                latest = line
                yield _past(line, event, found)


def landed(journal: Journal, size: int, repairs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each of `repairs` stands behind the first `size` bytes, and was put there by a triage."""
    first = 1 if journal.text is not None else bisect_left(journal.offsets, size) + 1
    events = [event for line in range(first, journal.lines + 1) for event in journal.events(line)]
    is_native = journal.format.NAME == native.NAME
    there = {_name(event.type, event.data) for event in events}
    ours = {_name(event.type, event.data) for event in events if _repair(event, _ENDS[is_native]) is not None}
    wanted = {_name(r["type"], r["data"]): _is_copy(r["data"]) for r in repairs}
    if is_native:
        return bool(wanted) and all(name in (there if copy else ours) for name, copy in wanted.items())
    # An agent's format has no record for some of them, and no room for words of ours in others.
    return bool(ours) and all(name in there for name in wanted if name[0] in (TOOL_RESULT, TURN_END))


def _name(type: str, data: Mapping[str, Any]) -> tuple[str, str | None]:
    return type, None if type == TURN_END else call_id(data, "tool_call_id", "request_id")


def _is_copy(data: Mapping[str, Any]) -> bool:
    """Whether a repair carries a result of the log's own once more."""
    metadata = data.get("metadata")
    return isinstance(metadata, Mapping) and "copy_of_line" in metadata


def _repair(event: Event, ends: Sequence[str]) -> Mapping[str, Any] | None:
    """The metadata of a record that a repair wrote, else None. `ends`: the reasons of its ends of turns."""
    data = event.data
    if event.type == TURN_END:
        kind = data.get("reason")
        kind = kind.get("kind") if isinstance(kind, Mapping) else kind
        return {} if kind in ends else None
    return _marked(data) or (_in_words(_text(data.get("content"))) if event.type == TOOL_RESULT else None)


def _marked(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    metadata = data.get("metadata")
    return metadata if isinstance(metadata, Mapping) and metadata.get("synthetic") is True else None


def synthetic(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What is known of a result that no tool gave, as its metadata would say it; None for a tool's own."""
    text = _text(data.get("content"))
    if text == NOT_STARTED_TEXT:  # a repair's or the harness's own: they are alike, so history names neither
        return {"risk": NOT_STARTED}
    return _marked(data) or _in_words(text)


def _text(content: Any, depth: int = 4) -> str:
    """The first text of a content, which may be a list of parts."""
    if isinstance(content, str) or depth == 0:
        return content if isinstance(content, str) else ""
    if isinstance(content, Mapping):
        return _text(content.get("text") or content.get("content"), depth - 1)
    parts = content if isinstance(content, list) else ()
    return next((text for text in (_text(part, depth - 1) for part in parts) if text), "")


def _in_words(text: str) -> Mapping[str, Any] | None:
    """What the content of a synthetic result says, as its metadata would."""
    begins = _BEGINS.match(text)
    if begins is None:
        return None
    answer = _ANSWER.match(text)
    note = (answer["note"] or "").partition("\n[Added by triage")[0] if answer else ""
    added = _ADDED.search(text)
    rule = added["rule"] if added else None
    return {
        "risk": OUTCOME_UNKNOWN if begins[1] else NOT_STARTED,
        "rule": int(rule) if rule and rule.isdecimal() else rule,
        "acknowledged": answer
        and {"finding": _FINDINGS[answer["found"]], "operator": answer["who"] or "", "note": note},
    }


def operators_after(journal: Journal, size: int) -> tuple[str, ...]:
    """Who answered in the repairs that were appended after the first `size` bytes."""
    found = (past.operator for past in answered_after(journal, size))
    return tuple(dict.fromkeys(operator for operator in found if operator))


def answered_after(journal: Journal, size: int) -> Iterator[Past]:
    """The repairs behind the first `size` bytes that carry what an operator found."""
    first = bisect_left(journal.offsets, size) + 1
    return (past for past in repairs_in(journal, first) if past.finding)


def _past(line: int, event: Event, metadata: Mapping[str, Any]) -> Past:
    answer = metadata.get("acknowledged")
    answer = answer if isinstance(answer, Mapping) else {}
    return Past(
        line,
        event.time,
        event.type,
        call_id(event.data, "tool_call_id", "request_id"),
        name if isinstance(name := event.data.get("name"), str) else None,
        metadata.get("risk"),
        metadata.get("rule"),
        *(
            answer[key] if isinstance(answer.get(key), str) else None
            for key in ("finding", "operator", "note")
        ),
    )
