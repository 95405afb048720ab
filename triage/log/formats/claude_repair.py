"""The last reply of a Claude Code lane, and the chain of results that a repair appends under it.

The chain starts at the reply's last call line and holds one line for each call whose result is no ancestor
of that line, in call order: a copy of the recorded result, or ours. It is the only shape that every version
resumes with each result present. A recorded line is never moved or changed, only copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from triage.log.events import call_id
from triage.log.formats.claude_evidence import closed_by_the_agent
from triage.log.json_text import dumps

KEPT_PATHS = 20_000  # latest records under a reply whose way up to it is remembered
ENVELOPE = ("cwd", "sessionId", "version", "gitBranch")  # copied from the call's line

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NONE: frozenset[str] = frozenset()
_TIMED = ("snapshot", "attachment", "message", "data")  # parts of a record that may carry a time, too

Read = Callable[[int], Sequence[Mapping[str, Any]]]


@dataclass(slots=True)
class Named:
    """A call of a reply: the line (from 1) and uuid of the record that names it, and what followed."""

    line: int
    uuid: str | None
    tool: str | None
    result: int | None = None  # line of its first recorded result
    progress: int | None = None  # line of the latest note that a later one of its kind replaces
    subcalls: dict[str, str] = field(default_factory=dict)  # its sub-agent's open calls → their tools


@dataclass(slots=True, eq=False)
class Reply:
    """One reply of the model: its calls in order, and the chain of results that a repair began under it."""

    key: str = ""  # the message's id
    calls: dict[str, Named] = field(default_factory=dict)
    end: tuple[int, str | None] | None = None  # line and uuid of the last record that names a call
    chain: dict[str, None] = field(default_factory=dict)  # calls whose results an earlier repair wrote
    _tail: str | None = None  # uuid of the chain's last record
    _above: frozenset[str] = _NONE  # calls whose results are ancestors of the last call line
    _paths: dict[str, frozenset[str]] = field(default_factory=dict)  # uuid → calls answered on its way up

    def name(self, id: str, tool: str | None, record: Mapping[str, Any], line: int) -> None:
        """Take a call that a record of a line names; the first sighting wins, but its line counts."""
        uuid = _uuid(record)
        self.calls.setdefault(id, Named(line, uuid, tool))
        self.end = line, uuid
        self.chain, self._tail = {}, None

    def trace(self, record: Mapping[str, Any], answered: Iterable[str]) -> None:
        """Remember which results lie on the way up from a record; `answered` are those that it holds."""
        uuid, parent = record.get("uuid"), record.get("parentUuid")
        if not self.calls or not isinstance(uuid, str):
            return
        path = self._paths.get(parent, _NONE) if isinstance(parent, str) else _NONE
        new = [id for id in answered if id in self.calls and id not in path]
        self._paths[uuid] = path.union(new) if new else path
        if len(self._paths) > KEPT_PATHS:
            del self._paths[next(iter(self._paths))]
        if self.end is not None and uuid == self.end[1]:
            self._above = self._paths[uuid]

    def take_result(
        self, id: str, record: Mapping[str, Any], result: Mapping[str, Any], line: int
    ) -> str | None:
        """Take a result for one of the calls.

        Returns "chained" for one that an earlier repair wrote, "copied" for a recorded one that it carried
        once more, else None.
        """
        named, uuid = self.calls[id], _uuid(record)
        known = named.result is not None
        if not known:
            named.result = line
        follows = uuid is not None and self.under is not None and record.get("parentUuid") == self.under
        if not follows or self.missing()[:1] != [id] or not (known or _is_ours(record, result)):
            return None
        self.chain[id] = None
        self._tail = uuid
        return "copied" if known else "chained"

    @property
    def under(self) -> str | None:
        """The uuid of the record that the next line of the chain hangs under."""
        return self._tail or (self.end[1] if self.end else None)

    def missing(self) -> list[str]:
        """The calls, in order, that the chain has no line for yet and needs one."""
        return [id for id in self.calls if id not in self._above and id not in self.chain]

    def to_copy(self) -> list[str]:
        """The answered calls among the missing: their recorded results are to be carried once more."""
        return [id for id in self.missing() if self.calls[id].result is not None]

    def rootless(self, ids: Iterable[str]) -> Named | None:
        """A call among `ids` to which no result can be chained, because its line has no uuid; else None."""
        return next((self.calls[id] for id in ids if self.calls[id].uuid is None or self.under is None), None)

    @property
    def open(self) -> bool:
        """Whether a call has no result, or a repair that was begun lacks lines."""
        begun = bool(self.chain) and bool(self.missing())
        return begun or any(named.result is None for named in self.calls.values())


class Times:
    """The latest time in a log, and the times of a repair: later than every one of them."""

    def __init__(self) -> None:
        self._latest = -1  # ms since 1970

    def see(self, record: Mapping[str, Any]) -> None:
        """Take a record's times: its own, and those of its parts."""
        self._take(record.get("timestamp"))
        for key in _TIMED:
            part = record.get(key)
            if isinstance(part, dict):
                self._take(part.get("timestamp"))
                inner = part.get("message")
                if isinstance(inner, dict):
                    self._take(inner.get("timestamp"))

    def _take(self, text: object) -> None:
        ms = _ms(text)
        if ms is not None and ms > self._latest:
            self._latest = ms

    def after(self, now: str | None) -> Iterator[str | None]:
        """The times of appended lines, one ms apart; None each in a plan (`now` is None)."""
        at = max(_ms(now) or 0, self._latest + 1)
        while True:
            yield None if now is None else _iso(at, now)
            at += 1


def result_lines(
    reply: Reply, contents: Mapping[str, Any], times: Iterator[str | None], read: Read
) -> list[str]:
    """The lines that complete a reply's chain. `contents` are the texts of our results, by call.

    `times` gives each line's time, None in a plan: then uuids are null, too. `read` gives a line's records.
    """
    lines, parent = [], reply.under
    for id in reply.missing():
        named = reply.calls[id]
        if named.result is not None:
            record = _copy(_find(read(named.result), None, id), id)
        elif id in contents:
            record = _result(_find(read(named.line), named.uuid, id), id, contents[id])
        else:
            continue
        time = next(times)
        uuid = None if time is None else str(uuid4())
        lines.append(dumps({**record, "parentUuid": parent, "uuid": uuid, "timestamp": time}))
        parent = uuid
    return lines


def _result(call: Mapping[str, Any], id: str, content: Any) -> dict[str, Any]:
    """Our result for a call that `call` names. The uuids and the time are filled in later."""
    block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": True}
    return {
        "parentUuid": None,
        "isSidechain": call.get("isSidechain") is True,
        "userType": call.get("userType", "external"),
        **{key: call[key] for key in ENVELOPE if key in call},
        "type": "user",
        "message": {"role": "user", "content": [block]},
        "uuid": None,
        "timestamp": None,
        "toolUseResult": content,
        "sourceToolAssistantUUID": _uuid(call),
    }


def _copy(record: Mapping[str, Any], id: str) -> dict[str, Any]:
    """A recorded result once more; of several on one line only that of the call."""
    message = record.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return dict(record)
    content = [b for b in message["content"] if isinstance(b, dict) and call_id(b, "tool_use_id") == id]
    return {**record, "message": {**message, "content": content}}


def _find(records: Sequence[Mapping[str, Any]], uuid: str | None, id: str) -> Mapping[str, Any]:
    """The record of a line that carries the uuid, or, without one, that holds a result of the call."""
    for record in records:
        if uuid is not None and record.get("uuid") == uuid:
            return record
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if uuid is None and isinstance(content, list) else ():
            if isinstance(block, dict) and call_id(block, "tool_use_id") == id:
                return record
    return {}


def _is_ours(record: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether a repair wrote this result. The agent's own errors say something else in `toolUseResult`."""
    text = result.get("content")
    return (
        result.get("is_error") is True
        and isinstance(text, str)
        and record.get("toolUseResult") == text
        and "sourceToolAssistantUUID" in record
        and closed_by_the_agent(record, result) is None
    )


def _uuid(record: Mapping[str, Any]) -> str | None:
    uuid = record.get("uuid")
    return uuid if isinstance(uuid, str) and uuid else None


def _ms(text: object) -> int | None:
    """An ISO 8601 time in ms since 1970, rounded down; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


def _iso(ms: int, otherwise: str) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return otherwise
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
