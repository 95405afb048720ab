"""What a Copilot CLI log has shown so far of the calls that have no result, and whose hook a hook is.

Hooks carry no id of their call in most versions, only its tool and sometimes its arguments. Nothing here
may give a hook to one of several calls that it could belong to: what is not certain moves no call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage.log.events import call_id
from triage.log.formats.copilot_text import quoted, text


@dataclass(slots=True, eq=False)
class Call:
    """A call without a result. The fields from `interaction` on are what its completion has to repeat."""

    id: str
    lane: str
    name: str | None = None
    arguments: Any = None
    message: str | None = None  # the messageId of the message that named it
    interaction: str | None = None
    turn: str | None = None
    parent: str | None = None
    agent: str | None = None
    started: bool = False  # tool.execution_start: taken up, and no dispatch yet
    hooked: bool = False  # a preToolUse hook of it was seen
    gates: set[str] = field(default_factory=set)  # its preToolUse hooks that have not ended
    pending: set[str | None] = field(default_factory=set)  # its open permission requests
    denied: bool = False
    ran: bool = False  # approved, handed to an external tool or finished: nothing later takes that back
    finished: bool = False
    followed: bool = False  # a later message of its interaction follows

    @property
    def dispatched(self) -> bool:
        """Whether it reached its tool, as far as the log shows."""
        return self.ran or (self.started and not (self.gates or self.pending or self.denied))

    def learn(self, record: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Keep what the completion has to repeat, from the first record that has it."""
        self.interaction = self.interaction or text(data, "interactionId")
        self.turn = self.turn or call_id(data, "turnId")
        self.parent = self.parent or text(data, "parentToolCallId")
        self.agent = self.agent or text(record, "agentId")


@dataclass(slots=True, eq=False)
class Lane:
    """The main conversation ("") or a sub-agent's: its open turn, its open steps, its unanswered calls."""

    name: str
    open: bool = False
    rests: bool = False  # its last step has ended
    finished: bool = False  # and it owes nothing: closed, unless it goes on
    steps: list[tuple[str, str | None]] = field(default_factory=list)  # turnId and agentId
    calls: dict[str, Call] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)  # ids of this turn
    spawned_by: str | None = None  # the call that started the sub-agent
    cold: bool = False  # the process that ran it has gone

    def clear(self) -> None:
        """Forget the turn that ended."""
        self.open = self.rests = self.finished = False
        self.steps.clear()
        self.calls.clear()
        self.answered.clear()


def gated(input: Any, open_calls: Sequence[Call]) -> list[Call]:
    """The calls that a preToolUse hook with this input stands before; empty where that is not certain."""
    named = _by_id(input, open_calls)
    if named:
        return named
    waiting = [call for call in open_calls if call.started and not call.ran]
    fresh = [call for call in waiting if not (call.hooked or call.pending or call.denied)]
    for pool in (fresh, waiting):
        found, certain = _narrowed(input, pool)
        if found:
            return found if certain else []
    return []


def finished(input: Any, open_calls: Sequence[Call]) -> tuple[list[Call], bool]:
    """The calls that a postToolUse hook with this input may be for, and whether it is certain."""
    named = _by_id(input, open_calls)
    if named:
        return named, len(named) == 1
    found, certain = _narrowed(input, [call for call in open_calls if call.started and not call.finished])
    ran = [call for call in found if call.dispatched]
    return ran or found, certain or len(ran) == 1 == len(_fitting(input, ran))


def asked(request: Mapping[str, Any], open_calls: Sequence[Call]) -> Call | None:
    """The call that a permission request without a call's id can only be for, else None."""
    waiting = [call for call in open_calls if call.started and not call.ran]
    command = request.get("fullCommandText")
    if isinstance(command, str):
        waiting = [call for call in waiting if text(call.arguments, "command") == command]
    elif text(request, "toolName"):
        waiting = _narrowed(request, waiting)[0]
    return waiting[0] if len(waiting) == 1 else None


def outcome(input: Any) -> str:
    """What a postToolUse hook's input says of the result, as text."""
    result = _first(input, "toolResult", "tool_result", "tool_response")
    for source, key in ((result, "textResultForLlm"), (result, "text"), (input, "error"), (result, "error")):
        found = text(source, key)
        if found:
            return quoted(found)
    if isinstance(result, str) and result:
        return quoted(result)
    return "the hook's record does not hold its result"


def _by_id(input: Any, open_calls: Sequence[Call]) -> list[Call]:
    ids = set(_ids(input))
    return [call for call in open_calls if call.id in ids]


def _ids(input: Any) -> Iterable[str]:
    if not isinstance(input, Mapping):
        return
    calls = input.get("toolCalls")
    for source in (input, *(calls if isinstance(calls, list) else ())):
        keys = ("toolCallId", "toolUseId", "tool_call_id", "tool_use_id")
        id = (
            call_id(source, *keys, *(() if source is input else ("id",)))
            if isinstance(source, Mapping)
            else None
        )
        if id is not None:
            yield id


def _narrowed(input: Any, calls: list[Call]) -> tuple[list[Call], bool]:
    """Those of some calls whose tool is the input's, by its arguments too where those tell them apart.

    And whether there is one alone, which the arguments don't speak against.
    """
    name = _first(input, "toolName", "tool_name")
    if isinstance(name, str):
        calls = [call for call in calls if call.name is not None and call.name.lower() == name.lower()]
    fitting = _fitting(input, calls)
    return fitting or calls, len(fitting) == 1


def _fitting(input: Any, calls: list[Call]) -> list[Call]:
    arguments = _first(input, "toolArgs", "tool_input")
    if arguments is None:
        return calls
    return [call for call in calls if call.arguments is None or _same(call.arguments, arguments)]


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(_plain(one) == _plain(other))
    except RecursionError:  # nested too deep to be compared
        return False


def _first(source: Any, *keys: str) -> Any:
    if not isinstance(source, Mapping):
        return None
    return next((source[key] for key in keys if source.get(key) is not None), None)


def _plain(arguments: Any) -> Any:
    """Arguments as a value: some versions write them as JSON text."""
    if isinstance(arguments, str):
        try:
            return json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments
    return arguments
