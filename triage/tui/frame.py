"""The frame around a list: its title and where one stands are written into its edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from triage.tui.row import Row, Span, cut, width_of

LEAST_TITLE = 14  # cells of a title that are kept beside what stands at the right


class Labels(NamedTuple):
    """What the edges of a frame say: at the left and right above, and below."""

    title: tuple[Span, ...] = ()
    info: tuple[Span, ...] = ()
    foot: tuple[Span, ...] = ()


def top_edge(labels: Labels, width: int, style: str) -> Row:
    """The upper edge, with the title and the info."""
    return _edge("╭", "╮", labels.title, labels.info, width, style)


def bottom_edge(labels: Labels, width: int, style: str) -> Row:
    """The lower edge, with the foot."""
    return _edge("╰", "╯", labels.foot, (), width, style)


def _edge(left: str, right: str, title: Sequence[Span], info: Sequence[Span], width: int, style: str) -> Row:
    room = width - 6  # corners, a dash and a blank on either side
    tail = list(info) if info and width_of(info) + LEAST_TITLE <= room else []
    name = cut(title, room - width_of(tail) - 4 if tail else room)
    spans: list[Span] = [(left + "─", style)]
    used = 4
    if name:
        spans += [(" ", style), *name, (" ", style)]
        used += width_of(name) + 2
    if tail:
        used += width_of(tail) + 2
    spans.append(("─" * max(0, width - used), style))
    if tail:
        spans += [(" ", style), *tail, (" ", style)]
    return Row((*spans, ("─" + right, style)))
