"""The vocabulary that every reader decodes to, and the only thing the rules know of a log.

The types are those of the native format. Readers of other formats translate into them and may use two
internal kinds, which no log contains: `evidence` and `settle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class _Ours(str):
    """A word of our own that no log can write: it equals nothing but itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__

    def __deepcopy__(self, memo: object) -> _Ours:
        return self


TURN_START = "turn_start"
TURN_END = "turn_end"
STEP_START = "step_start"
STEP_END = "step_end"
ASSISTANT_MESSAGE = "assistant_message"
USER_MESSAGE = "user_message"
SYSTEM_MESSAGE = "system_message"
TOOL_CALL = "tool_call"
TOOL_RESULT = "tool_result"
REQUEST_HEADER = "request_header"
APPROVAL_REQUESTED = "approval_requested"
APPROVAL_DECIDED = "approval_decided"
INPUT_REQUESTED = "input_requested"
INPUT_RESOLVED = "input_resolved"

# Something that a format knows about a call: it never names one. `tool_call_id`; `says`, in the format's
# own words; `stage`, one of the STAGES below, where the record moves the call; `finished`, the outcome
# as text where the log shows that the call finished and only its result was lost; `anomaly`, a code,
# where the record is something wrong with the log (`last_turn`: only while its turn is the last one);
# `contradicts`, where it can't be right, so that its call (without an id: each that waits) is unknown;
# `instead`, the line of the note before it that this one replaces; `again`, whether the recorded result
# of an answered call still has to be carried once more by a repair. Without a call: `turn_finished`,
# whether the turn has said its last word and lacks nothing but its end (then it is open only while it
# owes); `writer_gone`: another process goes on with the log, and what the one before it still had to
# write is lost.
EVIDENCE = _Ours("evidence")
# A compaction, a rollback or a later reply: the calls of this lane (`tool_call_id`: that one) that were
# named before owe nothing any more. `says` is why, for a person; `innermost`: those of the innermost turn.
SETTLE = _Ours("settle")

# In the data of a turn_start: its format records no turn ends; and whether a prompt or a result at its end
# means that the model had been asked.
IMPLICIT = _Ours("implicit")
ASKS = _Ours("asks")

DISPATCHED = "dispatched"  # it reached its tool
GATED = "gated"  # it stands before a gate (a hook) that has not let it through
WITHDRAWN = "withdrawn"  # what an earlier stage said does not hold: it waits for a person now
STAGES = (DISPATCHED, GATED, WITHDRAWN)

KNOWN_TYPES = frozenset(
    {
        TURN_START,
        TURN_END,
        STEP_START,
        STEP_END,
        ASSISTANT_MESSAGE,
        USER_MESSAGE,
        SYSTEM_MESSAGE,
        TOOL_CALL,
        TOOL_RESULT,
        REQUEST_HEADER,
        APPROVAL_REQUESTED,
        APPROVAL_DECIDED,
        INPUT_REQUESTED,
        INPUT_RESOLVED,
    }
)


@dataclass(slots=True)
class Event:
    """One durable fact.

    `line` counts the lines of the file from 1. `seq` is the event's own where the log carries an
    integer one, else None until the scan fills in its index from 0. `data` is the decoded payload,
    `time` whatever the log wrote, `ms` the same in ms since 1970 where a rule of the format needs it.
    `lane` keeps a sub-agent or side chain apart from the main conversation, which is "". `plain`: its
    format knows the type and only shows it, so that it is no newer emitter's. `part`: it comes from the
    same record as the event before it, and carries the same seq.
    """

    type: str
    data: Mapping[str, Any]
    line: int
    seq: int | None
    time: Any = None
    lane: str = ""
    ms: int | None = None
    plain: bool = False
    part: bool = False


@dataclass(slots=True)
class Corrupt:
    """A stretch of the file that could not be read as an event.

    `line` from 1, `start` and `stop` in bytes of the file. `type` is the fragment's own type where it
    can be read with certainty, else None. `torn`: it is the file's last line and has no newline.
    """

    line: int
    start: int
    stop: int
    says: str
    type: str | None = None
    torn: bool = False
    harmless: bool = False  # certainly no dispatch, result, approval or decision: it moved no call
    may_name: bool = True  # it may have named a call
    may_start: bool = True  # it may have opened a turn


def call_id(data: Mapping[str, Any], *keys: str) -> str | None:
    """The id under the first of `keys` that holds one (default: `tool_call_id`, then `id`), else None.

    Strings, and integers taken as their text: no call is dropped for the spelling of its id.
    """
    for key in keys or ("tool_call_id", "id"):
        value = data.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None
