"""A few fixed rows of text made by a function: the header, the key bar."""

from __future__ import annotations

from collections.abc import Callable

from textual.strip import Strip
from textual.widget import Widget

from triage.tui.row import BLANK, Row, lay_out
from triage.tui.rows import joined, strip


class Lines(Widget):
    """Draws the rows that `make(width)` returns, as many as fit. `refresh()` asks for them again."""

    DEFAULT_CSS = "Lines { width: 1fr; height: 1; }"

    def __init__(
        self, make: Callable[[int], list[Row]], *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._make = make

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        rows = self._make(width)
        line = rows[y] if y < len(rows) else BLANK
        return strip(joined(lay_out(line, width)), self.app.theme, self.rich_style.bgcolor)
