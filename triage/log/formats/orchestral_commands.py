"""The commands that an Orchestral run was given: which took effect, and which can't be right.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triage.log.events import call_id


@dataclass(slots=True)
class Command:
    """One committed command. `kind`: approval, input, steer, cancel, or what the record says."""

    id: str | None
    line: int
    kind: str
    request: str | None = None
    decision: Any = None
    capability: Any = None
    accepted: bool = False
    applied: bool = False


class Commands:
    """The commands and requests of one run, in the order of the records."""

    def __init__(self) -> None:
        self._all: list[Command] = []
        self._by_id: dict[str, Command] = {}
        self._asked: dict[str, str | None] = {}  # request → its call

    def ask(self, request: str | None, call: str | None) -> None:
        """Note a request that was opened, and the call that it is for."""
        if request is not None:
            self._asked[request] = call

    def call_of(self, request: str | None) -> str | None:
        """The call that a request is for, where that is known."""
        return self._asked.get(request) if request is not None else None

    def add(self, command: Command) -> bool:
        """Note a command. Whether its id was used before, which can't be."""
        repeated = command.id is not None and command.id in self._by_id
        self._all.append(command)
        if command.id is not None:
            self._by_id.setdefault(command.id, command)
        return repeated

    def apply(self, id: str | None, request: str | None) -> None:
        """Note that a command took effect: by its id, else by the request that it resolves."""
        for command in self._all:
            if (id is not None and command.id == id) or (
                id is None and request is not None and command.request == request
            ):
                command.applied = True

    def applied(self, id: str | None) -> bool:
        """Whether a command took effect."""
        return id is not None and id in self._by_id and self._by_id[id].applied

    @property
    def undelivered(self) -> list[Command]:
        """The steering messages that were accepted and never delivered."""
        return [c for c in self._all if c.kind == "steer" and c.accepted and not c.applied]

    def refused(self) -> tuple[str, str, tuple[str, ...]] | None:
        """Code, sentence and ids where recovery refuses what was commanded, else None."""
        resolutions = [c for c in self._all if c.accepted and c.kind in ("approval", "input")]
        for command in resolutions:
            says = self._unfit(command)
            if says:
                where = f"Command {command.id!r} (record {command.line:,})"
                return "invalid_digest", f"{where}: {says}", _ids(command)
        for command in self._all:
            pending = command in resolutions and not command.applied
            if pending or (command.kind == "cancel" and command.accepted):
                what = (
                    "a cancellation"
                    if command.kind == "cancel"
                    else f"the answer to request {command.request!r}"
                )
                says = (
                    f"Command {command.id!r} (record {command.line:,}) was accepted, and nothing shows that "
                    f"it was applied: {what} was given, and its effect is unknown"
                )
                return "invalid_transition", says, _ids(command)
        return None

    def _unfit(self, command: Command) -> str:
        """Why an accepted resolution can't be right, else ""."""
        allows = command.kind == "approval" and command.decision == "allow"
        if allows and command.capability is None:
            return "it allows without a capability: nothing shows that the approval was issued"
        if not allows and command.capability is not None:
            return "it carries a capability, and only an approval that allows does"
        if command.request not in self._asked:
            return f"it resolves request {command.request!r}, which this run never opened"
        others = [c for c in self._all if c.accepted and c.request == command.request and c is not command]
        return f"request {command.request!r} has another accepted resolution" if others else ""


def command_of(payload: Mapping[str, Any], line: int) -> Command:
    """The command in a `command_committed` payload."""
    command = _object(payload.get("command"))
    inner = _object(command.get("payload")) or command
    response = _object(inner.get("response")) or _object(inner.get("resolution")) or inner
    request = call_id(command, "request_id") or call_id(inner, "request_id")
    type = inner.get("type", command.get("type"))
    kind = type if isinstance(type, str) else "unknown"
    if kind == "resolve_request" or (kind == "unknown" and request is not None):
        kind = kind_of(response, request)
    outcome = payload.get("outcome")
    word = (
        _object(outcome).get("outcome", _object(outcome).get("type"))
        if isinstance(outcome, dict)
        else outcome
    )
    return Command(
        call_id(command, "command_id"),
        line,
        kind,
        request,
        response.get("decision"),
        payload.get("approval_capability"),
        accepted=isinstance(word, str) and word.lower() == "accepted",
    )


def kind_of(payload: Mapping[str, Any], request: str | None) -> str:
    """Whether a request or its resolution is an approval or an input."""
    if payload.get("type") == "approval" or "decision" in payload:
        return "approval"
    by_name = request is not None and request.startswith("approval:") and "type" not in payload
    return "approval" if by_name else "input"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _ids(command: Command) -> tuple[str, ...]:
    return (command.id,) if command.id is not None else ()
