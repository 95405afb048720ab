"""Say whether a finished call or execution failed, and name the failure by its signature.

Pure functions of one event's payload. Nothing here may touch a file, a store or the screen, and
nothing raises for odd input: a payload that can't be read as a failure is `NormalOutput`.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

Classification = Literal[
    "ExecutionFailure",
    "RecoveredError",
    "StderrWarning",
    "Uncertain",
    "SkippedPeerCall",
    "NormalOutput",
]

COUNTED: Final[frozenset[Classification]] = frozenset({"ExecutionFailure", "RecoveredError"})
"""The classes that recurrence counts."""

UNRESOLVED_REVISION: Final = "unresolved_revision"
SIGNATURE_LENGTH: Final = 96
TRACEBACK: Final = "Traceback (most recent call last):"


class Judgement(NamedTuple):
    """The class of one event; the signature is None unless the class is one of `COUNTED`."""

    classification: Classification
    signature: str | None = None


def classify(kind: str, payload: object) -> Judgement:
    """Judge a klbr event by its kind and payload (the errors rules, classification).

    Kinds other than `execution.completed`, `tool.result` and `scratchpad` are not judged:
    `NormalOutput`. Raises nothing.
    """
    if not isinstance(payload, Mapping):
        return Judgement("NormalOutput")
    if kind == "execution.completed":
        return _judge_execution(payload)
    if kind in ("tool.result", "scratchpad") and payload.get("type") == "tool_result":
        return _judge_tool_result(payload.get("status"), payload)
    return Judgement("NormalOutput")


def classify_native(data: object) -> Judgement:
    """Judge the `data` of a native `tool_result` (the errors rules, classification).

    The status is that of `data` or of its `metadata`; `is_error: true` in either says `error` too,
    unless a status says `skipped`: a call that never ran is no failure. Raises nothing.
    """
    if not isinstance(data, Mapping):
        return Judgement("NormalOutput")
    sources = (data, _mapping(data.get("metadata")))
    statuses = [source.get("status") for source in sources]
    if "error" not in statuses and "skipped" in statuses:
        return _judge_tool_result("skipped", data)
    failed = "error" in statuses or any(source.get("is_error") is True for source in sources)
    return _judge_tool_result("error" if failed else "ok", data)


def operation_of(kind: str) -> str:
    """The operation that recurrence groups an event of this kind under (the errors rules)."""
    return "cell.execution" if kind == "execution.completed" else "tool.execution"


def execution_of(payload: Mapping[str, object]) -> str | None:
    """The id of the execution that a payload names; an integer is taken as its text."""
    return _name(payload.get("execution_id"))


def revision_of(
    payload: Mapping[str, object],
    started: Mapping[str, object] | None,
    default: str = UNRESOLVED_REVISION,
) -> str:
    """The revision that an event ran on (the errors rules, recurrence).

    `started` is the payload of the `execution.started` of the event's execution, None where there
    is none. `default` is for events that name no execution: an old execution's error is never
    stamped with the revision of today.
    """
    known = _name((started or {}).get("revision")) or _name(payload.get("revision"))
    return known or (UNRESOLVED_REVISION if execution_of(payload) else default)


def workspace_of(payload: Mapping[str, object], started: Mapping[str, object] | None, folder: str) -> str:
    """The workspace of an event: its payload's, else its execution's, else the log's folder.

    `started` is as in `revision_of`. In each payload `workspace` goes before `workspace_path`
    (the errors rules, recurrence).
    """
    for source in (payload, started or {}):
        for field in ("workspace", "workspace_path"):
            if name := _name(source.get(field)):
                return name
    return folder


def error_signature(text: str) -> str:
    """The line of `text` that names its error, "" when nothing says error (the errors rules).

    White space is collapsed; at most 96 characters, not bytes.
    """
    lines = _lines(text)
    if TRACEBACK in text:
        *_, last = lines
        return last[:SIGNATURE_LENGTH]
    return next((line for line in lines if _says_error(line)), "")[:SIGNATURE_LENGTH]


def has_warning(text: str) -> bool:
    """Whether a line of `text` is a warning, letter case aside (the errors rules)."""
    return any(_says_warning(line.lower()) for line in _lines(text))


def _judge_execution(payload: Mapping[str, object]) -> Judgement:
    outcome = _mapping(payload.get("outcome"))
    if payload.get("state") == "error":
        return _failure(_text(outcome.get("error")), "ExecutionError")
    stderr = _first_stderr(outcome.get("output"))
    if not stderr:
        return Judgement("NormalOutput")
    if signature := error_signature(stderr):
        return Judgement("RecoveredError", signature)
    return Judgement("StderrWarning" if has_warning(stderr) else "Uncertain")


def _judge_tool_result(status: object, result: Mapping[str, object]) -> Judgement:
    if status == "error":
        return _failure(_text(result.get("error")) or _text(result.get("content")), "ToolError")
    return Judgement("SkippedPeerCall" if status == "skipped" else "NormalOutput")


def _failure(text: str, unnamed: str) -> Judgement:
    first_line = next(_lines(text), unnamed)[:SIGNATURE_LENGTH]
    return Judgement("ExecutionFailure", error_signature(text) or first_line)


def _first_stderr(output: object) -> str:
    parts = map(_mapping, output if isinstance(output, list) else [])
    texts = (_text(part.get("text")) for part in parts if part.get("stream") == "stderr")
    return next(filter(None, texts), "")


def _says_error(line: str) -> bool:
    # A line without a colon is all head: a bare `AssertionError` names an error too.
    head = line.partition(":")[0].rstrip()
    return head.endswith(("Error", "Exception")) or head.lower() in ("error", "fatal", "panic")


def _says_warning(line: str) -> bool:
    # "contains `warning:`" holds for each line that begins with it.
    return (
        line.startswith(("warn:", "[warning]"))
        or "warning:" in line
        or line.partition(":")[0].rstrip().endswith("warning")
    )


def _lines(text: str) -> Iterator[str]:
    """The lines that are not blank, their white space collapsed.

    Not `splitlines`: a line ends at `\\n` or `\\r\\n` alone, and collapsing takes the `\\r` away.
    """
    return filter(None, (" ".join(line.split()) for line in text.split("\n")))


def _text(value: object) -> str:
    """A string, or the `text` of a list of parts on lines of their own; "" when blank."""
    if isinstance(value, list):
        texts = (_mapping(part).get("text") for part in value)
        value = "\n".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) and value.strip() else ""


def _name(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
