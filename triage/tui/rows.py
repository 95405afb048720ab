"""The one virtual list: it draws the rows in view and knows nothing of the others.

It serves the timeline, the owed calls, evidence and every other list. A source makes a row when it is
drawn; a cursor move repaints two rows. A million rows cost as much as forty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar, Protocol

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from triage.tui.frame import Labels, bottom_edge, top_edge
from triage.tui.keys import MOVES, bindings
from triage.tui.row import BLANK, Row, Span, lay_out, width_of
from triage.tui.theme import DARK, FLAT, STYLES

MARK = "▶"
EDGES = 2  # cells of a row that stay free: for the mark, and at the right end
FRAME = 2  # cells or rows that a frame takes
WHEEL = 3  # rows for one notch of a mouse wheel


class Source(Protocol):
    """Where rows come from. `count` may find more rows when asked for later ones; it stays cheap."""

    def count(self, upto: int, width: int) -> int:
        """How many rows there are, as far as is known once row `upto` was looked for."""

    def row(self, index: int, width: int) -> Row:
        """The row of an index from 0, for a view of `width` cells."""

    def stops(self, index: int) -> bool:
        """Whether the cursor may stand on a row."""


class Fixed:
    """A source over rows that are all there. Without `stops` the cursor may stand on each row."""

    def __init__(self, rows: list[Row], stops: frozenset[int] | None = None) -> None:
        self.rows = rows
        self._stops = stops

    def count(self, upto: int, width: int) -> int:
        return len(self.rows)

    def row(self, index: int, width: int) -> Row:
        return self.rows[index]

    def stops(self, index: int) -> bool:
        return self._stops is None or index in self._stops


class Rows(Widget, can_focus=True):
    """A framed list with a cursor, or (`page=True`) a framed text that is only scrolled."""

    DEFAULT_CSS = "Rows { width: 1fr; height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(MOVES), Binding("space", "page(1)", show=False)]

    class Moved(Message):
        """The cursor stands on another row (or the page was scrolled)."""

        def __init__(self, rows: Rows) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> Rows:
            return self.rows

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Rows.Moved) and message.rows is self.rows

    def __init__(self, source: Source | None = None, *, page: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self.source: Source = source or Fixed([])
        self.page = page
        self.cursor = 0
        self.top = 0
        self._labels = Labels()
        self._painted: dict[int, list[Span]] = {}  # by line of the widget

    # ---- what is shown

    def show(self, source: Source, cursor: int | None = None, *, top: int | None = None) -> None:
        """Show another source (or the same, changed), with the cursor on a row and `top` as first row."""
        self.source = source
        self.top = self.top if top is None else top
        self.cursor = self._stop_at(self.cursor if cursor is None else cursor)
        self._hold()
        self.repaint()

    def label(
        self,
        title: Sequence[Span] | None = None,
        info: Sequence[Span] | None = None,
        foot: Sequence[Span] | None = None,
    ) -> None:
        """Change what the frame says; what is None stays."""
        before = self._labels
        for name, spans in (("title", title), ("info", info), ("foot", foot)):
            if spans is not None:
                self._labels = self._labels._replace(**{name: tuple(spans)})
        if self._labels != before:
            self._repaint_line(0)
            self._repaint_line(self.size.height - 1)

    def repaint(self) -> None:
        """Paint again what changed since it was painted, and only that: a slow line carries every byte."""
        for y in range(self.size.height):
            self._repaint_line(y)

    def _repaint_row(self, index: int) -> None:
        if self.top <= index < self.top + self.in_view:
            self._repaint_line(index - self.top + self._framed)

    def _repaint_line(self, y: int) -> None:
        if not 0 <= y < self.size.height:
            return
        painted = self._painted.get(y)
        if painted is None:
            self.refresh(Region(0, y, max(1, self.size.width), 1))
            return
        now = self._line(y)
        if painted != now:
            start, stop = changed(painted, now, self.size.width)
            if stop > start:
                self.refresh(Region(start, y, stop - start, 1))

    def count(self) -> int:
        """How many rows there are, as far as is known."""
        return self.source.count(self.top + self.in_view, self.room)

    @property
    def _framed(self) -> int:
        """1 where there is room for a frame, else 0."""
        return int(self.size.height > FRAME and self.size.width > FRAME + EDGES)

    @property
    def in_view(self) -> int:
        """How many rows can be seen."""
        return max(1, self.size.height - FRAME * self._framed)

    @property
    def room(self) -> int:
        """How many cells a row has; as many as on the whole screen while the widget has no size yet."""
        return max(1, (self.size.width or self.app.size.width) - EDGES - FRAME * self._framed)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.source.count(viewport.height, max(1, width - EDGES - FRAME)) + FRAME

    def on_resize(self) -> None:
        self._painted.clear()
        self._hold()
        self.refresh()
        if self.page:
            self.post_message(self.Moved(self))  # another part of the text is in view

    def _line(self, y: int) -> list[Span]:
        """What stands on a line of the widget: an edge of the frame, or a row between its sides."""
        (width, height), framed, room = self.size, self._framed, self.room
        frame = "focus" if self.has_focus else "frame"
        if framed and y in (0, height - 1):
            edge = top_edge(self._head(), width, frame) if y == 0 else bottom_edge(self._foot(), width, frame)
            return joined(lay_out(edge, width))
        index = self.top + y - framed
        known = self.source.count(index, room)
        line = self.source.row(index, room) if index < known else BLANK
        here = not self.page and index == self.cursor and index < known and self.source.stops(index)
        inside = lay_out(line, room)
        spans: list[Span] = [(MARK, "focus") if here else (" ", frame), *inside, (" ", inside[-1][1])]
        if here:
            on_top = "cursor" if self.has_focus else "cursor-away"
            spans = [(text, style if style == "match" else f"{style} {on_top}") for text, style in spans]
        side: list[Span] = [("│", frame)] if framed else []
        return joined([*side, *(spans[:1] if width < EDGES else spans), *side])

    def _head(self) -> Labels:
        """What the upper edge says: of a list that is all there also how many rows stand above the view."""
        if self.page or not self.top or not isinstance(self.source, Fixed):
            return self._labels
        return self._labels._replace(title=(*self._labels.title, (f" ↑ {self.top:,} more", "dim")))

    def _foot(self) -> Labels:
        """What the lower edge says: where nothing else tells, how many rows are out of view below it."""
        stop = self.top + self.in_view
        below = self.source.count(stop, self.room) - stop
        if below <= 0 or self._labels.info or self._labels.foot:
            return self._labels
        return self._labels._replace(foot=((f"↓ {below:,} more", "dim"),))

    def render_line(self, y: int) -> Strip:
        spans = self._painted[y] = self._line(y)
        return strip(spans, self.app.theme, self.rich_style.bgcolor)

    # ---- moves

    def move_to(self, index: int) -> None:
        """Put the cursor on a row (or on the next one where it may stand), scrolled into view."""
        before, top = self.cursor, self.top
        self.cursor = self._stop_at(index)
        self._hold()
        if self.top != top:
            self.repaint()
        elif self.cursor != before:
            self._repaint_row(before)
            self._repaint_row(self.cursor)
        self.post_message(self.Moved(self))

    def scroll_rows(self, delta: int) -> None:
        """Scroll a page by rows; the view stops at the end."""
        top = self.top
        last = self.source.count(self.top + delta + self.in_view, self.room) - self.in_view
        self.top = max(0, min(self.top + delta, last))
        if self.top != top:
            self.repaint()
            self.post_message(self.Moved(self))

    def _hold(self) -> None:
        """Keep the cursor in view, and the view on the rows, once there is a view."""
        if not self.size.height:
            return
        height = self.in_view
        if not self.page:
            if not self.top - height // 2 <= self.cursor < self.top + height + height // 2:
                self.top = max(0, self.cursor - height // 3)  # a jump: some rows above it help to see where
            elif self.cursor < self.top:
                self.top = self._first_with(self.cursor)
            elif self.cursor >= self.top + height:
                self.top = self.cursor - height + 1
        known = self.source.count(self.top + height, self.room)
        self.top = max(0, min(self.top, known - height))

    def _first_with(self, index: int) -> int:
        """The first row to show so that headings above the first stop stay in view."""
        above = index
        while above > 0 and index - above < self.in_view - 1 and not self.source.stops(above - 1):
            above -= 1
        return above if above == 0 else index

    def _stop_at(self, index: int) -> int:
        """The row nearest to `index` on which the cursor may stand: onwards first, then back."""
        known = self.source.count(index, self.room)
        index = max(0, min(index, known - 1))
        after = (at for at in range(index, known) if self.source.stops(at))
        before = (at for at in range(index - 1, -1, -1) if self.source.stops(at))
        found: int | None = next(after, None)
        return next(before, index) if found is None else found

    def _step(self, delta: int) -> None:
        known = self.source.count(self.cursor + delta, self.room)
        index = self.cursor + delta
        while 0 <= index < known and not self.source.stops(index):
            index += delta
        if 0 <= index < known:
            self.move_to(index)
        elif delta < 0 and self.top > 0:
            self.top = 0  # show the headings above the first stop
            self.repaint()
        elif delta > 0 and self.top < known - self.in_view:
            self.top += 1  # and what follows the last one
            self.repaint()

    def action_move(self, delta: int) -> None:
        if self.page:
            self.scroll_rows(delta)
        else:
            self._step(delta)

    def action_page(self, pages: float) -> None:
        size = max(1, int(abs(pages) * (self.in_view - 1))) * (1 if pages > 0 else -1)
        if self.page:
            self.scroll_rows(size)
        else:
            known = self.source.count(self.cursor + size, self.room)
            target = max(0, min(self.cursor + size, known - 1))
            self.top = max(0, min(self.top + size, known - self.in_view))
            self.cursor = min(self.cursor, max(0, known - 1))
            self.move_to(target)
            self.repaint()

    def action_first(self) -> None:
        if self.page:
            self.scroll_rows(-self.top)
        else:
            self.move_to(0)
            self.top = 0  # with the headings above the first stop, however many they are
            self.repaint()

    def action_last(self) -> None:
        known = self.source.count(1 << 60, self.room)
        if self.page:
            self.scroll_rows(known)
        else:
            self.move_to(known - 1)
            self.top = max(0, known - self.in_view)
            self.repaint()

    # ---- mouse and focus

    async def on_click(self, event: events.Click) -> None:
        """A click moves the cursor, a second one does what enter does."""
        offset = event.get_content_offset(self)
        if offset is None or self.page:
            return
        index = self.top + offset.y - self._framed
        if not 0 <= offset.y - self._framed < self.in_view:
            return
        if index < self.count() and self.source.stops(index):
            self.move_to(index)
            if event.chain == 2:
                await self.app.run_action("open", default_namespace=self.screen)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._wheel(WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._wheel(-WHEEL)

    def _wheel(self, delta: int) -> None:
        if self.page:
            self.scroll_rows(delta)
        else:
            self.move_to(max(0, self.cursor + delta))

    def on_focus(self) -> None:
        self.repaint()

    def on_blur(self) -> None:
        self.repaint()


def joined(spans: Iterable[Span]) -> list[Span]:
    """The spans with neighbours of one style made one: each change of style costs bytes."""
    found: list[Span] = []
    for content, style in spans:
        if found and found[-1][1] == style:
            found[-1] = (found[-1][0] + content, style)
        elif content:
            found.append((content, style))
    return found


def changed(before: Sequence[Span], now: Sequence[Span], width: int) -> tuple[int, int]:
    """The cells, from and to, in which two lines of a width differ."""
    old, new = _cells(before), _cells(now)
    if len(old) != width or len(new) != width:  # wide characters: characters are no cells
        return 0, width
    differing = [at for at in range(width) if old[at] != new[at]]
    return (differing[0], differing[-1] + 1) if differing else (0, 0)


def _cells(spans: Sequence[Span]) -> list[Span]:
    """Each character with its style; blanks that look alike are the same whatever their style."""
    found: list[Span] = []
    for content, style in spans:
        blank = (" ", "" if style in FLAT else style)
        found += [blank if char == " " else (char, style) for char in content]
    return found if width_of(spans) == len(found) else []


@lru_cache(maxsize=1024)
def _style(theme: str, name: str, background: Color | None) -> Style:
    """The style of a name (several, the last on top) on a background."""
    styles = STYLES.get(theme, STYLES[DARK])
    found = Style(bgcolor=background)
    for part in name.split():
        found += styles[part]
    return found


def strip(spans: Iterable[Span], theme: str, background: Color | None) -> Strip:
    """Spans as a strip of segments in the colours of a theme."""
    return Strip([Segment(content, _style(theme, name, background)) for content, name in spans if content])
