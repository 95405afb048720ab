"""Finds records that raw newlines broke into several lines. Such a record stays unread: nobody may guess.

It is still told from other damage, because no append can mend it: what follows it is whole, and the lines
that it is made of are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triage.log import formats
from triage.log.events import Corrupt
from triage.log.json_text import Malformed, Unfinished, parse, starts_with

LINES = 1000  # lines that one record may be broken into
SIZE = 16 << 20  # bytes of such lines that are kept
TRIES = 20  # lines at which the pieces are put together


class Splits:
    """Shown the lines of a log in order, it says where a few of them are one record of the format."""

    def __init__(self, format: formats.Format) -> None:
        self._format = format
        self._starts = starts_with(format.FIRST_KEYS)
        self._first = 0
        self._lines: list[str] = []
        self._size = self._tries = 0

    @property
    def waits(self) -> bool:
        """Whether a record has begun that may go on. If not, nothing is to be seen in a whole one."""
        return bool(self._lines)

    def see(
        self, raw: bytes, line: int, pieces: Sequence[Mapping[str, Any] | Corrupt]
    ) -> tuple[int, str] | None:
        """Take a line (from 1) and what was read of it.

        Where it ends a broken record: the first line of that, and what is wrong, for a person.
        """
        if any(not isinstance(piece, Corrupt) and self._format.recognise(piece) for piece in pieces):
            self._lines.clear()
            return None
        if not self._lines and not any(isinstance(piece, Corrupt) for piece in pieces):
            return None
        text = raw.decode("utf-8", "surrogateescape").removesuffix("\n")
        if self._starts.match(text.lstrip()) or (not self._lines and text.strip() == "{"):
            self._first, self._lines, self._size, self._tries = line, [text], len(raw), 0
            return None
        if not self._lines:
            return None
        self._lines.append(text)
        self._size += len(raw)
        if len(self._lines) > LINES or self._size > SIZE or self._tries > TRIES:
            self._lines.clear()
            return None
        if not text.rstrip().endswith("}") or not self._is_one():
            return None
        self._lines.clear()
        return self._first, f"raw newlines break a record into lines {self._first:,} to {line:,}"

    def _is_one(self) -> bool:
        """Whether the pieces are one record, the newlines being inside a text or between two values."""
        self._tries += 1
        for newline in ("\\n", "\n"):
            whole = newline.join(piece.replace("\r", "\\r") for piece in self._lines)
            try:
                value, end = parse(whole)
            except (Unfinished, Malformed):
                continue
            if isinstance(value, dict) and not whole[end:].strip() and self._format.recognise(value):
                return True
        return False
