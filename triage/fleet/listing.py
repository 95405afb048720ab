"""The list of sessions in its order, while rows still come in. Pure: no file, no screen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from typing import Any

from triage.fleet.row import NEEDS_REPAIR, Row, worst_first
from triage.words import parse_time

Key = tuple[Any, ...]  # it ends with the path, so no two are alike


def newest_first(row: Row) -> Key:
    """The order by the time of the last record; rows without one come last."""
    time = parse_time(row.last_time)
    return (1, 0.0, row.path) if time is None else (0, -time.timestamp(), row.path)


def by_path(row: Row) -> Key:
    """The order by path."""
    return (row.path,)


ORDERS: dict[str, Callable[[Row], Key]] = {"worst": worst_first, "newest": newest_first, "path": by_path}
FILTERS: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "needs repair": lambda row: row.status in NEEDS_REPAIR,
    "unknown": lambda row: row.unknown > 0,
}


class Listing:
    """Rows by path, and those of them that are shown, sorted. A row costs one insertion into its place."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.shown: list[Row] = []
        self.order, self.filter, self.text = "worst", "all", ""
        self._keys: list[Key] = []  # of the shown rows
        self._places: dict[str, Key] = {}  # of the shown rows, by path

    def put(self, row: Row) -> None:
        """Add a row where it belongs; it takes the place of an older one of its path."""
        self.drop([row.path])
        self.rows[row.path] = row
        if self._fits(row):
            key = self._places[row.path] = ORDERS[self.order](row)
            at = bisect_left(self._keys, key)
            self._keys.insert(at, key)
            self.shown.insert(at, row)

    def renew(self, row: Row) -> None:
        """Show a row that was read again where its older one stands, until the list is arranged anew."""
        at = self.index_of(row.path)
        if at is None:
            self.put(row)
        else:
            self.rows[row.path] = self.shown[at] = row

    def drop(self, paths: Iterable[str]) -> None:
        """Take rows out."""
        for path in paths:
            self.rows.pop(path, None)
            at = self.index_of(path)
            if at is not None:
                del self.shown[at], self._keys[at], self._places[path]

    def keep(self, paths: Collection[str]) -> None:
        """Take all other rows out."""
        self.drop([path for path in self.rows if path not in paths])

    def arrange(
        self, *, order: str | None = None, filter: str | None = None, text: str | None = None
    ) -> None:
        """Show the rows in another order, or others of them; what is None stays as it is."""
        self.order = self.order if order is None else order
        self.filter = self.filter if filter is None else filter
        self.text = self.text if text is None else text
        key = ORDERS[self.order]
        self.shown = sorted((row for row in self.rows.values() if self._fits(row)), key=key)
        self._keys = [key(row) for row in self.shown]
        self._places = {row.path: place for row, place in zip(self.shown, self._keys, strict=True)}

    def index_of(self, path: str) -> int | None:
        """Where the row of a path is shown, from 0; None where it isn't."""
        key = self._places.get(path)
        return None if key is None else bisect_left(self._keys, key)

    def _fits(self, row: Row) -> bool:
        """Whether a row is shown. Upper case in the text makes the search mind it."""
        if not FILTERS[self.filter](row):
            return False
        about = "\n".join(
            part for part in (row.title, row.path, row.status, row.boundary, row.format, row.why) if part
        )
        return self.text in (about if self.text != self.text.lower() else about.lower())
