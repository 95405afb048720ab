"""A framed list: its title and, at the right, where it stands are drawn in its upper edge."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from triage.tui.lines import Lines
from triage.tui.row import Row, Span, cut, width_of
from triage.tui.rows import Rows


class Pane(Vertical):
    """A frame around `rows`. `title`, `info` and `foot` are spans; set them with `label`."""

    DEFAULT_CSS = """
    Pane { width: 1fr; height: 1fr; }
    Pane > Rows {
        border-left: round $frame; border-right: round $frame; border-bottom: round $frame;
    }
    Pane > Rows:focus {
        border-left: round $frame-focus; border-right: round $frame-focus;
        border-bottom: round $frame-focus;
    }
    Pane.-footed > Rows { border-bottom: none; }
    """

    def __init__(self, rows: Rows, *, footed: bool = False, id: str | None = None) -> None:
        super().__init__(id=id, classes="-footed" if footed else None)
        self.rows = rows
        self._title: tuple[Span, ...] = ()
        self._info: tuple[Span, ...] = ()
        self._foot: tuple[Span, ...] = ()
        self._top_edge = Lines(self._make_top)
        self._bottom_edge = Lines(self._make_bottom) if footed else None

    def compose(self) -> ComposeResult:
        yield self._top_edge
        yield self.rows
        if self._bottom_edge is not None:
            yield self._bottom_edge

    def label(
        self,
        title: tuple[Span, ...] | None = None,
        info: tuple[Span, ...] | None = None,
        foot: tuple[Span, ...] | None = None,
    ) -> None:
        """Change what the edges say; what is None stays."""
        before = self._title, self._info, self._foot
        self._title = self._title if title is None else title
        self._info = self._info if info is None else info
        self._foot = self._foot if foot is None else foot
        if before != (self._title, self._info, self._foot):
            self._top_edge.refresh()
            if self._bottom_edge is not None:
                self._bottom_edge.refresh()

    def on_descendant_focus(self) -> None:
        self._repaint_edges()

    def on_descendant_blur(self) -> None:
        self._repaint_edges()

    def _repaint_edges(self) -> None:
        self._top_edge.refresh()
        if self._bottom_edge is not None:
            self._bottom_edge.refresh()

    def _make_top(self, width: int) -> list[Row]:
        return [self._edge("╭", "╮", self._title, self._info, width)]

    def _make_bottom(self, width: int) -> list[Row]:
        return [self._edge("╰", "╯", self._foot, (), width)]

    def _edge(
        self, left: str, right: str, title: tuple[Span, ...], info: tuple[Span, ...], width: int
    ) -> Row:
        frame = "focus" if self.rows.has_focus else "frame"
        room = width - 6  # corners, a dash and a blank on either side
        name = cut(title, room)
        tail = list(info) if info and width_of(info) + 4 <= room - width_of(name) else []
        spans: list[Span] = [(left + "─", frame)]
        used = 4
        if name:
            spans += [(" ", frame), *name, (" ", frame)]
            used += width_of(name) + 2
        if tail:
            used += width_of(tail) + 2
        spans.append(("─" * max(0, width - used), frame))
        if tail:
            spans += [(" ", frame), *tail, (" ", frame)]
        return Row((*spans, ("─" + right, frame)))
