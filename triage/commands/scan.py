"""`triage scan`: one row a session, the worst first, for people and for cron."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from triage.commands import CLEAN, PLANNED, UNREADABLE, USAGE, fail, note, parser, show, show_json
from triage.fleet import cluster
from triage.fleet.cluster import NoFleet
from triage.fleet.find import files
from triage.fleet.row import NEEDS_REPAIR, Row, worst_first
from triage.fleet.scan import rows
from triage.text import clean
from triage.words import counted, parse_time, size_in_words

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def run(arguments: Sequence[str]) -> int:
    """The command with its arguments. Returns the exit code."""
    options_of = parser("triage scan", "One row for each session, the worst first. Changes nothing.")
    options_of.add_argument("path", metavar="PATH", nargs="+", help="a log, or a folder to look through")
    options_of.add_argument("--json", action="store_true", help="one JSON object a line, one line a session")
    options_of.add_argument(
        "--needs",
        choices=("unknown", "any"),
        help="only with an unknown outcome, or any repair",
    )
    options_of.add_argument("--since", metavar="AGE", help="only with a last record younger: 24h, 7d")
    options_of.add_argument(
        "--scheduler", metavar="ADDRESS", help="scan on this Dask cluster; PATH may be any fsspec URL"
    )
    options = options_of.parse_args(arguments)
    try:
        since = None if options.since is None else datetime.now(UTC) - _age(options.since)
    except (ValueError, OverflowError):
        return fail(f"--since takes a number and m, h or d, as 24h: not {options.since!r}", USAGE)
    named = {path for path in options.path if not os.path.isdir(path)}
    try:
        found = _rows(options.path, options.scheduler)
    except NoFleet as error:
        return fail(str(error), USAGE)
    kept = sorted((row for row in found.values() if row is not None), key=worst_first)
    for row in kept:
        if _wanted(row, options.needs, since):
            show_json(row.as_json()) if options.json else show(_line(row))
    return _code(found, kept, named)


def _rows(starts: Sequence[str], scheduler: str | None) -> dict[str, Row | None]:
    """Each file below `starts` with its row; None for what is no session log."""
    if scheduler is None:
        return dict(rows(files(starts)))
    urls = list(dict.fromkeys(file for start in starts for file in cluster.files_of(start)))
    found: dict[str, Row | None] = dict.fromkeys(urls)
    found.update((row.path, row) for row in cluster.rows(scheduler, urls) if row is not None)
    return found


def _age(text: str) -> timedelta:
    return timedelta(**{_UNITS.get(text[-1:], ""): float(text[:-1])}) if text[-1:] in _UNITS else _bad(text)


def _bad(text: str) -> timedelta:
    raise ValueError(text)


def _wanted(row: Row, needs: str | None, since: datetime | None) -> bool:
    if needs == "unknown" and not row.unknown:
        return False
    if needs == "any" and row.status not in NEEDS_REPAIR:
        return False
    last = parse_time(row.last_time) if since is not None else None
    return since is None or last is None or last >= since


def _line(row: Row) -> str:
    owed = f"{row.unknown} unknown of {row.owed} owed" if row.owed else "nothing owed"
    size = size_in_words(row.bytes) if row.bytes is not None else "?"
    return clean(f"{row.status.upper():<10} {owed:<22} {row.boundary or '':<18} {size:>9}  {row.path}")


def _code(found: Mapping[str, Row | None], kept: Sequence[Row], named: set[str]) -> int:
    skipped = [path for path, row in found.items() if row is None]
    unread = [path for path in skipped if path in named]
    unread += [row.path for row in kept if row.status == "unreadable" and row.path in named]
    for path in unread:
        row = next((row for row in kept if row.path == path), None)
        note(row.why if row is not None else f"{path} is no session log: none of its lines is a known event")
    if len(skipped) > len([path for path in skipped if path in named]):
        note(f"{counted(len(skipped), 'file')} skipped: no session log")
    if unread:
        return UNREADABLE
    return PLANNED if any(row.status in NEEDS_REPAIR for row in kept) else CLEAN
