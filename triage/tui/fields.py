"""JSON as key and value, one line each, for reading by a person. Exact: numbers stay as they were written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from triage.log.json_text import dumps
from triage.text import clean
from triage.tui.paper import Line
from triage.tui.row import Span
from triage.tui.short import parsed
from triage.words import size_in_words

PIECE = 2000  # characters of a long text that go on one line before it is broken
DEEPEST = 12  # levels that are shown as such; what lies deeper is shown as JSON text
KEY_WIDTH = 20  # characters up to which the names of fields line up


class Literal(str):
    """A number as the log wrote it."""

    __slots__ = ()


def read_json(raw: bytes) -> Any:
    """The value of a line, numbers as they were written. Raises ValueError where it is no JSON."""
    text = raw.decode("utf-8", "surrogateescape").strip("\ufeff \t\r\n")
    try:
        return json.loads(text, parse_float=Literal, parse_int=Literal, strict=False)
    except RecursionError as error:
        raise ValueError("too deep") from error


def fields(value: Any, indent: int = 0, limit: int | None = None) -> Iterator[Line]:
    """The lines of a value. With `limit` each text is folded to so many characters, and says so."""
    value = parsed(value)
    if isinstance(value, dict):
        width = min(max((len(name) for name in value), default=0), KEY_WIDTH)
        for name, inner in value.items():
            yield from _field(name, inner, indent, limit, width)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _field(f"{number}", inner, indent, limit, len(f"{len(value) - 1}"))
    else:
        yield from _text(_written(value), (), indent, limit, _style(value))


def _field(name: str, value: Any, indent: int, limit: int | None, width: int) -> Iterator[Line]:
    label: tuple[Span, ...] = ((" " * indent, "text"), (f"{clean(name, limit=200):<{width}}  ", "field"))
    if name == "arguments":
        value = parsed(value)
    if isinstance(value, dict | list) and value:
        if indent < 2 * DEEPEST:
            yield Line((*label[:1], (clean(name, limit=200), "field")), indent)
            yield from fields(value, indent + 2, limit)
            return
        value = _Json(dumps(value))
    yield from _text(_written(value), label, indent + width + 2, limit, _style(value))


class _Json(str):
    __slots__ = ()


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return dumps(value)


def _style(value: Any) -> str:
    return "text" if isinstance(value, str) and not isinstance(value, Literal | _Json) else "dim"


def _text(value: str, label: tuple[Span, ...], hang: int, limit: int | None, style: str) -> Iterator[Line]:
    """The lines of a text, the first one beside its label; long ones in pieces."""
    shown = value if limit is None or len(value) <= limit + 40 else value[:limit]
    start: tuple[Span, ...] = label or ((" " * hang, "text"),)
    for number, piece in enumerate(pieces(shown)):
        lead = start if number == 0 else ((" " * hang, "text"),)
        yield Line((*lead, (piece, style)), hang)
    if len(shown) < len(value):
        rest = size_in_words(len(value) - len(shown)).replace("bytes", "characters")
        yield Line(((" " * hang, "text"), (f"… {rest} more, enter to page", "unknown")), hang)


def pieces(value: str) -> Iterator[str]:
    """A text in cleaned lines, none much longer than `PIECE` characters."""
    at = 0
    while True:
        stop = value.find("\n", at, at + PIECE)
        if stop >= 0:
            yield clean(value[at:stop].removesuffix("\r"))
            at = stop + 1
        elif at + PIECE < len(value):
            yield clean(value[at : at + PIECE])
            at += PIECE
        else:
            yield clean(value[at:].removesuffix("\r")) if at == 0 or at < len(value) else ""
            return
