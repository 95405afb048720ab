"""Sessions as rows: the columns that fit a width, the most important first."""

from __future__ import annotations

from collections.abc import Sequence

from triage.fleet.listing import Listing
from triage.fleet.row import Row as Entry
from triage.text import cells_of
from triage.tui.desk import Clock
from triage.tui.row import Row, Span, cut, mark, shift, text, width_of
from triage.tui.times import ago
from triage.words import SESSION_GLYPHS, size_in_words

COLUMNS = {"verdict": 13, "unknown/owed": 13, "died in": 19, "age": 8, "agent": 11, "size": 10}  # cells
ALWAYS = 2  # columns that are never left out
LEAST = 20  # cells that the others leave for the title and the path
TITLE = 6  # cells of them that a title keeps beside a file name
STYLES = {"clean": "dim", "live": "waiting", "doubtful": "unknown"}


def columns(width: int) -> list[str]:
    """The columns that are shown in `width` cells; the title and the path take the rest."""
    kept: list[str] = []
    for name, cells in COLUMNS.items():
        if len(kept) < ALWAYS or width - cells >= LEAST:
            kept.append(name)
            width -= cells
    return kept


def heading(width: int) -> Row:
    """The names of the columns."""
    names = "".join(f"{name:<{COLUMNS[name]}}" for name in columns(width))
    return Row(((names + "session", "dim"),))


class SessionRows:
    """The listing as a source of rows."""

    def __init__(self, listing: Listing, starts: Sequence[str], clock: Clock) -> None:
        self._listing = listing
        self._starts = starts
        self._clock = clock

    def count(self, upto: int, width: int) -> int:
        return len(self._listing.shown)

    def stops(self, index: int) -> bool:
        return True

    def row(self, index: int, width: int) -> Row:
        session = self._listing.shown[index]
        spans = [self._cell(name, session) for name in columns(width)]
        spans += self._session(session, width - width_of(spans))
        return Row(tuple(mark(spans, self._listing.text)))

    def _session(self, session: Entry, room: int) -> list[Span]:
        """Title and path, in so many cells: the title is cut first, and of a long path the end stays."""
        path = text(below(session.path, self._starts), "dim")
        if not session.title:
            return [path]
        if room < LEAST:
            return [text(session.title, limit=max(1, room))]
        room -= 2
        most, cells = room - TITLE, width_of([path])
        if cells > most:
            most = most if cells_of(path[0].rpartition("/")[2]) < most else room // 2
            most = max(most, room - width_of([text(session.title)]))
            path = ("…" + "".join(end for end, _ in shift([path], cells - most + 1)), "dim")
        title = cut([text(session.title, limit=room)], room - width_of([path]))
        return [*title, ("  ", "dim"), path]

    def _cell(self, column: str, session: Entry) -> Span:
        """What stands in a column, in its cells."""
        said, style = "", "text"
        if column == "verdict":
            said = f"{SESSION_GLYPHS[session.status]} {session.status.upper()}"
            style = STYLES.get(session.status, "bad")
        elif column == "unknown/owed" and session.owed:
            glyph, style = _worst(session)
            said = f"{glyph} {session.unknown:,}/{session.owed:,}"
        elif column == "died in" and session.status != "clean":
            said = session.boundary or ""
        elif column == "age":
            said, style = (
                ago(session.last_time, self._clock()).removesuffix(" ago").replace("min", "m"),
                "dim",
            )
        elif column == "agent":
            said, style = session.format or "", "dim"
        elif column == "size" and session.bytes is not None:
            said, style = size_in_words(session.bytes), "dim"
        cells = COLUMNS[column]
        return f"{said[: cells - 1]:<{cells}}", style


def _worst(session: Entry) -> Span:
    """The sign of the worst call that a session owes, and its style."""
    if session.unknown:
        return "▲", "unknown"
    return ("◆", "waiting") if session.waiting else ("●", "started")


def below(path: str, starts: Sequence[str]) -> str:
    """A path, from the folder on below which it was found."""
    start = next((start for start in starts if path.startswith(start.rstrip("/") + "/")), "")
    return path[len(start.rstrip("/")) + 1 :] if start else path
