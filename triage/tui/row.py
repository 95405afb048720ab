"""Rows of text as every view draws them: cleaned text in named styles, cut or wrapped to a width.

Log text enters a row only through `text()` or `triage.text.clean`; nothing here knows of markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from triage.text import breaking, cells_of, clean, fitting

Span = tuple[str, str]  # text, and the name of its style in `theme.STYLES`


class Row(NamedTuple):
    """One line of a view: spans from the left, and spans that stand at the right edge."""

    spans: tuple[Span, ...]
    right: tuple[Span, ...] = ()


BLANK = Row(())


def row(*spans: Span | str) -> Row:
    """A row of spans; a bare string is plain text of ours."""
    return Row(tuple(span if isinstance(span, tuple) else (span, "text") for span in spans))


def text(value: str, style: str = "text", *, limit: int | None = None) -> Span:
    """A span of text that came from outside, cleaned."""
    return clean(value, limit=limit), style


def width_of(spans: Sequence[Span]) -> int:
    """The cells that spans take."""
    return sum(cells_of(content) for content, _ in spans)


def cut(spans: Sequence[Span], width: int) -> list[Span]:
    """The spans that fit into `width` cells; what is cut off is shown as `…`."""
    if width <= 0:
        return []
    if width_of(spans) <= width:
        return list(spans)
    kept: list[Span] = []
    left = width - 1
    for content, style in spans:
        cells = cells_of(content)
        if cells > left:
            return [*kept, (content[: fitting(content, left)] + "…", style)]
        kept.append((content, style))
        left -= cells
    return kept


def lay_out(line: Row, width: int) -> list[Span]:
    """A row as exactly `width` cells: the left part is cut before the right one, which goes last."""
    right = line.right if width_of(line.right) + 1 < width // 2 else ()
    room = width - width_of(right) - (1 if right else 0)
    left = cut(line.spans, room)
    fill = width - width_of(left) - width_of(right)
    last = left[-1][1] if left and left[-1][1] != "match" else "frame"  # no change of style, no bytes
    return [*left, (" " * max(0, fill), last), *right]


def shift(spans: Sequence[Span], cells: int) -> list[Span]:
    """The spans without their first `cells` cells."""
    kept: list[Span] = []
    for content, style in spans:
        taken = min(len(content), fitting(content, cells)) if cells > 0 else 0
        cells -= cells_of(content[:taken])
        if taken < len(content):
            cells = 0
            kept.append((content[taken:], style))
    return kept


def wrap(spans: Sequence[Span], width: int, hang: int = 0) -> Iterator[Row]:
    """The spans over as many rows as they need, broken at spaces; later rows begin `hang` cells in."""
    hang = hang if hang < width // 2 else min(2, width // 4)
    line: list[Span] = []
    used = 0
    for content, style in spans:
        while content:
            room = width - used
            if cells_of(content) <= room:
                line.append((content, style))
                used += cells_of(content)
                break
            taken = breaking(content, room, fresh=used <= hang)
            if taken:
                line.append((content[:taken].rstrip(" "), style))
                content = content[taken:].lstrip(" ")
            yield Row(tuple(line))
            line, used = [(" " * hang, "text")], hang
    if line:
        yield Row(tuple(line))


def mark(spans: Sequence[Span], marked: str) -> list[Span]:
    """The spans with each place where `marked` stands shown as a match. Upper case in it is minded."""
    if not marked:
        return list(spans)
    mind_case = marked != marked.lower()
    found: list[Span] = []
    for content, style in spans:
        where = content if mind_case else content.lower()
        at, start = 0, where.find(marked) if len(where) == len(content) else -1
        while start >= 0:
            found += [(content[at:start], style), (content[start : start + len(marked)], "match")]
            at = start + len(marked)
            start = where.find(marked, at)
        found.append((content[at:], style))
    return [span for span in found if span[0]]
