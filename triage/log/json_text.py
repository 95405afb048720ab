"""JSON that a fast parser refuses, read exactly: iterative, position-aware, and never guessing.

It serves damaged lines and odd but whole ones (deep nesting, integers beyond 64 bits, lone surrogates,
bytes that are no UTF-8). It tells a text that breaks the grammar from one that merely stops too early:
only in the first can something whole that follows be trusted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import orjson

_SPACE = re.compile(r"[ \t\n\r]*+")
_BODY = r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_STRING = re.compile(f'"{_BODY}"')
_CUT_STRING = re.compile(rf'"{_BODY}(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(\.\d++)?([eE][+-]?\d++)?")
_CUT_NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*+)(?:\.\d*+)?(?:[eE][+-]?)?)?")
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
DEEPEST = 200  # levels of nesting that are written out; no screen and no reader gains from more
_INT_DIGITS = 4000  # Python itself refuses to convert longer ones; they stay text


def dumps(value: Any) -> str:
    """Compact JSON on one line, for any value that was read from a log.

    Lone surrogates (bytes that were no UTF-8) become escapes, numbers that JSON has no word for become
    text, and nesting beyond `DEEPEST` levels is replaced by a note.
    """
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return json.dumps(_writable(value, DEEPEST), separators=(",", ":"))


def _writable(value: Any, levels: int) -> Any:
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return str(value)
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return f"… nested more than {DEEPEST} levels deep"
    if isinstance(value, list):
        return [_writable(item, levels - 1) for item in value]
    return {key: _writable(item, levels - 1) for key, item in value.items()}


class Unfinished(ValueError):
    """The text stops too early and is no error so far.

    `root` is what was read of it; `open` are the objects and arrays that were not closed, outermost first.
    """

    def __init__(self, open: Sequence[Any]) -> None:
        super().__init__("the text stops before it is whole")
        self.root = open[0] if open else None
        self.open = tuple(open)


class Malformed(ValueError):
    """The text breaks the grammar at character `at`, counted from 0."""

    def __init__(self, at: int) -> None:
        super().__init__(f"no JSON from character {at} on")
        self.at = at


def parse(text: str, at: int = 0) -> tuple[Any, int]:
    """The JSON value that begins at character `at`, and the position after it.

    Duplicate keys: the last wins. Raises Unfinished or Malformed.
    """
    root: Any = None
    stack: list[Any] = []
    key: str | None = None
    want = "value"  # or: "first value" (of an array), "first key", "key", "colon", "comma"
    while True:
        at = _skip(text, at)
        if at >= len(text):
            raise Unfinished(stack)
        char = text[at]
        if want == "comma":
            top = stack[-1]
            if char == ",":
                want = "key" if isinstance(top, dict) else "value"
                at += 1
                continue
            if char != ("}" if isinstance(top, dict) else "]"):
                raise Malformed(at)
            at, want = at + 1, _pop(stack)
        elif want == "colon":
            if char != ":":
                raise Malformed(at)
            at, want = at + 1, "value"
            continue
        elif want in ("key", "first key"):
            if char == "}" and want == "first key":
                at, want = at + 1, _pop(stack)
            else:
                key, at = _string(text, at, stack)
                want = "colon"
                continue
        elif char == "]" and want == "first value":
            at, want = at + 1, _pop(stack)
        else:
            value, at = (
                ({}, at + 1) if char == "{" else ([], at + 1) if char == "[" else _scalar(text, at, stack)
            )
            if not stack:
                root = value
            elif isinstance(stack[-1], dict):
                stack[-1][key] = value
            else:
                stack[-1].append(value)
            if isinstance(value, dict | list):
                stack.append(value)
                want = "first key" if isinstance(value, dict) else "first value"
                continue
            want = "comma"
        if not stack:
            return root, at


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _pop(stack: list[Any]) -> str:
    stack.pop()
    return "comma"


def _string(text: str, at: int, stack: Sequence[Any]) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if match is None:
        cut = _CUT_STRING.match(text, at)
        if cut is not None and cut.end() == len(text):
            raise Unfinished(stack)
        raise Malformed(cut.end() if cut else at)
    token = match.group()
    return (json.loads(token) if "\\" in token else token[1:-1]), match.end()


def _scalar(text: str, at: int, stack: Sequence[Any]) -> tuple[Any, int]:
    if text[at] == '"':
        return _string(text, at, stack)
    for word, value in _WORDS.items():
        if text.startswith(word, at):
            return value, at + len(word)
        if len(text) - at < len(word) and word.startswith(text[at:]):
            raise Unfinished(stack)
    cut = _CUT_NUMBER.match(text, at)
    if cut is not None and cut.end() == len(text):
        raise Unfinished(stack)
    match = _NUMBER.match(text, at)
    if match is None:
        raise Malformed(at)
    token = match.group()
    if match.group(1) or match.group(2):
        return float(token), match.end()
    return (int(token) if len(token) <= _INT_DIGITS else token), match.end()


@dataclass(frozen=True, slots=True)
class Fragment:
    """Characters `start` to `stop` of a line that are no readable record.

    `record` is what can be read of it with certainty where nothing but a cut explains it, else empty.
    """

    start: int
    stop: int
    record: Mapping[str, Any] = field(default_factory=dict)


@cache
def starts_with(keys: Sequence[str]) -> re.Pattern[str]:
    """A pattern for where a record may begin whose first key is one of `keys`."""
    return re.compile(r'\{\s*"(?:' + "|".join(map(re.escape, keys)) + r')"\s*:')


def salvage(
    text: str, starts: re.Pattern[str], is_record: Callable[[Mapping[str, Any]], bool]
) -> list[Mapping[str, Any] | Fragment]:
    """The objects of a line that can be read with certainty and the stretches that can't, in order.

    `starts` finds where a record may begin (`starts_with`), `is_record` tells a record of the format
    from a mere object inside one.

    Objects that stand glued together are each read. One that follows a cut prefix is read only where
    the prefix, parsed on through it, breaks the grammar: else it may be a part of the cut record.
    The work is bounded: a few times the length of the line, however it is damaged.
    """
    found: list[Mapping[str, Any] | Fragment] = []
    at, budget = _skip(text, 0), 4 * len(text) + 65536
    while at < len(text):
        try:
            value, end = parse(text, at)
        except Unfinished as cut:
            found.append(Fragment(at, len(text), _certain(cut, text[at:], starts)))
            break
        except Malformed as error:
            start, budget = _next_whole(text, at, error.at, budget, starts, is_record)
            record = _cut_record(text[at:start], starts) if start < len(text) else {}
            found.append(Fragment(at, start, record))
            at = start
            continue
        found.append(value if isinstance(value, dict) else Fragment(at, end))
        at = _skip(text, end)
    return found


def _next_whole(
    text: str,
    at: int,
    broken: int,
    budget: int,
    starts: re.Pattern[str],
    is_record: Callable[[Mapping[str, Any]], bool],
) -> tuple[int, int]:
    """Where the next certain event begins after a break at character `broken`, else the text's end."""
    for match in starts.finditer(text, at + 1):
        start = match.start()
        try:
            value, end = parse(text, start)
        except (Unfinished, Malformed) as error:
            budget -= (error.at if isinstance(error, Malformed) else len(text)) - start
        else:
            after = _skip(text, end)
            whole = after == len(text) or text[after] in "{\0"
            if broken < end and whole and is_record(value):
                return start, budget
            budget -= end - start
        if budget < 0:
            break
    return len(text), budget


def _cut_record(fragment: str, starts: re.Pattern[str]) -> Mapping[str, Any]:
    """What a record that was merely cut short still shows; empty where anything else may hide in it."""
    try:
        parse(fragment)
    except Unfinished as cut:
        return _certain(cut, fragment, starts)
    except Malformed:
        pass
    return {}


def _certain(cut: Unfinished, fragment: str, starts: re.Pattern[str]) -> Mapping[str, Any]:
    return cut.root if isinstance(cut.root, dict) and not starts.search(fragment, 1) else {}
