"""The code of a line in the index. Lines that hold several events or none at all have codes of their own."""

from __future__ import annotations

from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASSISTANT_MESSAGE,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
    REQUEST_HEADER,
    STEP_END,
    STEP_START,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    USER_MESSAGE,
)

TYPES = (
    "corrupt",
    "damaged",
    "blank",
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
    "other",
)
CODES = {name: code for code, name in enumerate(TYPES)}


def table(**values: int) -> bytes:
    """For `bytes.translate`: a value for the code of each of these types, 0 for every other code."""
    made = bytearray(256)
    for kind, value in values.items():
        made[CODES[kind]] = value
    return bytes(made)
