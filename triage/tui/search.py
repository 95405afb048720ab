"""Searching a whole log for a text: in its raw records, in stretches small enough to be interrupted.

Upper case in the text makes the search mind it (in ASCII). A text is looked for as it is and as JSON
writes it, so quotes, newlines and letters beyond ASCII are found however the log escaped them.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator

from triage.log.journal import Journal
from triage.log.source import open_for_reading

STRETCH = 1 << 18  # bytes that are searched at a time
REPORT = 64  # stretches between two reports


def forms(text: str) -> list[bytes]:
    """The byte strings that a text may stand as in a log."""
    plain = [text] if "\n" not in text else []  # a record is one line
    found = [*plain, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]]
    return list(dict.fromkeys(form.encode("utf-8", "surrogateescape") for form in found))


def search(
    journal: Journal,
    text: str,
    stop: Callable[[], bool],
    report: Callable[[array[int], float], None],
) -> array[int]:
    """The lines (from 1) whose record holds `text`. Gives up when `stop()` says so.

    `report` gets what was found so far and how much of the log was searched, from 0 to 1. Raises
    Unreadable.
    """
    needles = forms(text)
    mind_case = text != text.lower()
    found: array[int] = array("q")
    for number, (first, data) in enumerate(_stretches(journal)):
        if stop():
            break
        where = data if mind_case else data.lower()
        lines = {
            line
            for needle in needles
            for line in _lines_with(needle if mind_case else needle.lower(), where, first, journal)
        }
        found.extend(sorted(lines))
        if number % REPORT == REPORT - 1:
            report(found, journal.offsets[first - 1] / max(1, journal.size))
    return found


def _lines_with(needle: bytes, data: bytes, first: int, journal: Journal) -> Iterator[int]:
    if journal.one_document or journal.text is not None:
        if needle in data:
            yield first
        return
    start = journal.offsets[first - 1]
    at = data.find(needle)
    while at >= 0:
        line = bisect_right(journal.offsets, start + at)
        yield line
        at = data.find(needle, journal.offsets[line] - start)


def _stretches(journal: Journal) -> Iterator[tuple[int, bytes]]:
    """Whole lines of the log, some at a time: the first line's number and their bytes."""
    if journal.one_document or journal.text is not None:
        yield from ((line, journal.raw(line)) for line in range(1, journal.lines + 1))
        return
    descriptor = open_for_reading(journal.path)
    try:
        first = 1
        while first <= journal.lines:
            start = journal.offsets[first - 1]
            stop = max(first + 1, bisect_right(journal.offsets, start + STRETCH))
            yield first, os.pread(descriptor, journal.offsets[stop - 1] - start, start)
            first = stop
    finally:
        os.close(descriptor)
