"""`clean()`: the one way in which text from a log reaches a screen, a report or a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# C0 and C1 controls, DEL, line and paragraph separators, bidi controls, zero-width and other invisible
# format characters, lone surrogates, tags, unassigned and private code points, soft hyphen, BOM.
_SUSPECT = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f"
    "\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3164\\ud800-\\udfff\\ue000-\\uf8ff\\ufe00-\\ufe0f\\ufeff\\uffa0"
    "\\ufff0-\\uffff\\U00013430-\\U00013440\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U0010ffff]"
)
_NAMES = {"\n": "⏎", "\r": "␍", "\t": "→", "\x1b": "␛", "\x00": "␀", "\x7f": "␡"}
_STACKED = 4  # combining marks on one character; more would paint over the rows around it


def clean(text: str, *, limit: int | None = None) -> str:
    """`text` on one line, with every character that could move a terminal or hide made visible.

    `limit` is the greatest length in characters; a longer text ends in `…`. The result holds no control
    character, no bidi or zero-width one and no lone surrogate, whatever came in.
    """
    if limit is None and text.isascii() and text.isprintable():
        return text  # nearly every text
    cut = limit is not None and len(text) > limit
    text = _SUSPECT.sub(_visible, text[:limit] if cut else text)
    if not text.isascii():
        text = _unstack(text)
    if limit is None or not (cut or len(text) > limit):
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def clean_lines(text: str) -> list[str]:
    """`text` split at its newlines, each line cleaned: for places that show a text over several rows."""
    return [clean(line) for line in text.replace("\r\n", "\n").split("\n")]


def escape_json(text: str) -> str:
    """JSON text with an escape for every character that `clean` makes visible; it says the same."""
    return _SUSPECT.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _visible(match: re.Match[str]) -> str:
    char = match.group()
    return _NAMES.get(char) or f"<U+{ord(char):04X}>"


def _unstack(text: str) -> str:
    kept, stacked = [], 0
    for char in text:
        stacked = stacked + 1 if unicodedata.combining(char) or unicodedata.category(char) == "Me" else 0
        if stacked <= _STACKED:
            kept.append(char)
    return "".join(kept)


def wrapped(text: str, width: int) -> Iterator[str]:
    """`text` over as many lines of `width` cells as it needs, broken at spaces."""
    while cells_of(text) > width:
        taken = breaking(text, width, fresh=True)
        yield text[:taken].rstrip(" ")
        text = text[taken:].lstrip(" ")
    yield text


def breaking(content: str, room: int, *, fresh: bool) -> int:
    """How many characters of `content` go on a row with `room` cells; on a fresh row at least one."""
    fits = fitting(content, room)
    if content[fits : fits + 1] == " ":
        return fits
    space = content.rfind(" ", 0, fits)
    if space > 0:
        return space + 1
    return max(1, fits) if fresh else 0 if room < 12 else fits


def cells_of(content: str) -> int:
    """The cells that a text takes on a terminal."""
    if content.isascii():
        return len(content)
    from rich.cells import cell_len  # here, because most of what is printed needs none of it

    return cell_len(content)


def fitting(content: str, cells: int) -> int:
    """How many characters of `content` fit into `cells` cells."""
    if cells <= 0:
        return 0
    if content.isascii():
        return min(cells, len(content))
    from rich.cells import cell_len, set_cell_size

    piece = content[:cells]  # no character is narrower than none, so marks may follow: good enough to cut
    if cell_len(piece) <= cells:
        return len(piece)
    return len(set_cell_size(piece, cells).rstrip(" ")) if piece else 0
