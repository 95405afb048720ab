"""A long text as a source of rows: wrapped to the width, and read on only as far as somebody looks.

A line of 50 MB costs what is in view. Nothing is cut off silently: as long as there is more, the last row
says how much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from triage.tui.row import BLANK, Row, Span, cut, mark, shift, wrap

FAR = 2000  # rows in which a match is looked for when a text is opened
STRETCH = 400  # rows that are read on at a time


class Line(NamedTuple):
    """One line of a text before it is wrapped; its later rows begin `hang` cells in.

    `at` is how many bytes of the whole lie before the line's end, where that is known.
    """

    spans: tuple[Span, ...]
    hang: int = 0
    at: int = 0


class Paper:
    """Rows of the lines that `lines()` gives. `more(at)` says what is left after `at` bytes.

    With `most` the paper ends after so many rows, with a row that says what is left.
    """

    def __init__(
        self,
        lines: Callable[[], Iterator[Line]],
        more: Callable[[int], str] = lambda _: "… more",
        most: int | None = None,
    ) -> None:
        self._lines = lines
        self._more = more
        self._most = most
        self.wrapped = True
        self.pan = 0
        self.marked = ""  # the text of the search that is on
        self._width = -1
        self._rows: list[Row] = []
        self._source: Iterator[Row] = iter(())
        self._at = 0
        self._done = False

    def set_wrapped(self, wrapped: bool) -> None:
        """Wrap lines, or cut each at the right edge (`pan` moves the text to the left)."""
        self.wrapped, self.pan, self._width = wrapped, 0, -1

    def count(self, upto: int, width: int) -> int:
        if width != self._width:
            self._begin(width)
        wanted = upto + 1
        if not self._done and wanted > len(self._rows):
            self._read(min(wanted, len(self._rows) + 5 * STRETCH) - len(self._rows) + STRETCH)
        return len(self._rows) + (0 if self._done else 1)

    def row(self, index: int, width: int) -> Row:
        if width != self._width:
            self.count(index, width)
        if index >= len(self._rows):
            return BLANK if self._done else Row(((self._more(self._at), "unknown"),))
        spans = self._rows[index].spans
        if self.marked:
            spans = tuple(mark(spans, self.marked))
        return Row(spans if self.wrapped else tuple(cut(shift(spans, self.pan), width)))

    def first_match(self, width: int) -> int | None:
        """The first row that shows the text of the search, not too far down; None where none does."""
        known = self.count(FAR, width)
        for index in range(min(known, FAR)):
            if any(style == "match" for _, style in self.row(index, width).spans):
                return index
        return None

    def stops(self, index: int) -> bool:
        return True

    def _begin(self, width: int) -> None:
        self._width = width
        self._rows = []
        self._at = 0
        self._done = False
        self._source = self._laid_out(width)

    def _read(self, rows: int) -> None:
        if self._most is not None:
            rows = min(rows, self._most - len(self._rows))
            if rows <= 0:
                return
        found = list(islice(self._source, rows))
        self._rows += found
        self._done = len(found) < rows

    def _laid_out(self, width: int) -> Iterator[Row]:
        for line in self._lines():
            if self.wrapped:
                rows = list(wrap(line.spans, width, line.hang)) or [BLANK]
            else:
                rows = [Row(line.spans)]
            self._at = max(self._at, line.at)
            yield from rows
