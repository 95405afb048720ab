"""The effects of an Orchestral run: `effect-….json` beside its checkpoint, one file a tool call.

A file is the journal of one effect: Prepared, Invoked, Observed, Committed, or recorded as unknown. Only
what is written there counts: whatever can't be read is never taken for a call that did not run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from triage.log import beside
from triage.log.events import EVIDENCE, GATED, TOOL_CALL, TOOL_RESULT, call_id

# The effects of all runs lie in one folder. Past so many files only those are read whose name is the hash
# of one of the run's calls; a workflow's own calls are named nowhere else, so that more are looked at.
FILES, FILES_OF_WORKFLOWS = 200, 5000
PREPARED, INVOKED, OBSERVED, COMMITTED, UNKNOWN = "prepared", "invoked", "observed", "committed", "unknown"
_STAGES = {
    "prepared": PREPARED,
    "invoked": INVOKED,
    "observed": OBSERVED,
    "committed": COMMITTED,
    "effectunknown": UNKNOWN,
    "unknowneffect": UNKNOWN,
    "unknown": UNKNOWN,
}
_NAME = re.compile(r"effect-.*\.json", re.DOTALL)
Data = Mapping[str, Any]


@dataclass(slots=True)
class Effect:
    """What the journal of one call's effect says. `file` is its name."""

    file: str
    run: str | None = None
    call: str | None = None
    tool: str | None = None
    arguments: Any = None
    stages: list[str] = field(default_factory=list)
    outcome: Any = None
    reason: str = ""

    @property
    def invoked(self) -> bool:
        """Whether the tool was entered, or may have been: only Prepared alone is safe."""
        return any(stage != PREPARED for stage in self.stages)

    @property
    def settled(self) -> bool:
        return OBSERVED in self.stages or COMMITTED in self.stages


@dataclass(slots=True)
class Effects:
    """The effects of one run by call id, and the files that can't be read."""

    by_call: dict[str, Effect] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    def of(self, call: str, name: str | None, arguments: Any) -> Iterator[tuple[str, Data]]:
        """What the effect of a call says about it, as (event type, data): nothing where there is none."""
        effect = self.by_call.get(call)
        if effect is None:
            if self.unreadable:
                says = f"{', '.join(self.unreadable[:3])} can't be read and may be this call's effect"
                yield EVIDENCE, {"tool_call_id": call, "says": says, "contradicts": True}
            return
        if not effect.invoked:
            says = f"its effect is Prepared and was never Invoked ({effect.file})"
            yield EVIDENCE, {"tool_call_id": call, "says": says, "stage": GATED}
            return
        name, arguments = name or effect.tool, effect.arguments if arguments is None else arguments
        yield TOOL_CALL, {"tool_call_id": call, "name": name, "arguments": arguments}
        says = f"its effect is {effect.stages[-1].capitalize()} ({effect.file})"
        if effect.reason:
            says += f": {effect.reason}"
        yield EVIDENCE, {"tool_call_id": call, "says": says}
        if effect.settled:
            yield TOOL_RESULT, {"tool_call_id": call, "name": name, **_result(effect.outcome)}

    def unnamed(self, run: str | None, named: set[str]) -> Iterator[tuple[str, Data]]:
        """The effects that were invoked, never observed, and belong to no call of the model: a workflow's."""
        for call, effect in self.by_call.items():
            if call not in named and effect.run == run and effect.invoked and not effect.settled:
                yield from self.of(call, None, None)


def read_effects(folder: str, run: str | None, calls: set[str], *, workflows: bool) -> Effects:
    """The effects in a folder that are of this run, or, where they name no run, of one of its calls.

    `workflows`: whether the run started one.
    """
    found = Effects()
    for name in _names(folder, run, calls, FILES_OF_WORKFLOWS if workflows else FILES):
        try:
            effect = _read(name, beside.load(os.path.join(folder, name)))
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            found.unreadable.append(name)
            continue
        ours = effect.run == run if effect.run is not None else effect.call in calls
        if effect.call is not None and ours:
            found.by_call[effect.call] = effect
    return found


def _names(folder: str, run: str | None, calls: set[str], most: int) -> list[str]:
    keys = [(run or "") + "\0" + call for call in calls]
    exact = {f"effect-{sha256(key.encode('utf-8', 'replace')).hexdigest()}.json" for key in keys}
    try:
        found = [name for name in os.listdir(folder or ".") if _NAME.fullmatch(name)]
    except OSError:
        return sorted(exact)
    return sorted(found if len(found) <= most else exact.intersection(found))


def _read(name: str, value: Any) -> Effect:
    """An effect from the JSON of its file. Raises ValueError where it is no effect's journal."""
    records = value.get("records", [value]) if isinstance(value, dict) else value
    if not isinstance(records, list) or not records or not all(isinstance(r, dict) for r in records):
        raise ValueError("no journal of an effect")
    effect = Effect(name)
    for record in (value, *records) if isinstance(value, dict) else records:
        _learn(effect, record)
    if not effect.stages:
        raise ValueError("no stage of an effect that is known")
    if len(records) > 1 and effect.settled and INVOKED not in effect.stages:
        raise ValueError("an outcome without an invocation")
    return effect


def _learn(effect: Effect, record: Data) -> None:
    key, payload = record.get("key"), record.get("payload")
    key = key if isinstance(key, dict) else {}
    payload = payload if isinstance(payload, dict) else record
    prepared = payload.get("effect", payload.get("prepared"))
    invocation = prepared.get("invocation", prepared) if isinstance(prepared, dict) else {}
    invocation = invocation if isinstance(invocation, dict) else {}
    for source in (key, record, payload, invocation):
        effect.run = effect.run or call_id(source, "run_id")
        effect.call = effect.call or call_id(source, "call_id", "tool_call_id")
        effect.tool = effect.tool or call_id(source, "tool_id", "tool")
    effect.arguments = invocation.get("arguments", effect.arguments)
    effect.outcome = payload.get("outcome", effect.outcome)
    reason = payload.get("reason")
    effect.reason = reason if isinstance(reason, str) else effect.reason
    for word in (payload.get(name) for name in ("type", "phase", "state", "status", "kind")):
        word = next(iter(word), None) if isinstance(word, dict) else word
        stage = _STAGES.get(word.lower().replace("_", "")) if isinstance(word, str) else None
        if stage is not None:
            effect.stages.append(stage)
            return


def _result(outcome: Any) -> dict[str, Any]:
    """What an outcome says of a failure, in the native words: the errors view reads them."""
    if not isinstance(outcome, dict):
        return {}
    kind = outcome.get("status", outcome.get("type", outcome.get("outcome")))
    if kind in ("failed", "rejected", "error"):
        return {"is_error": True, "error": outcome.get("message") or outcome.get("error")}
    return {}
