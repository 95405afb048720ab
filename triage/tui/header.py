"""The two rows at the top: what happened, and what file this is."""

from __future__ import annotations

import os
from collections.abc import Mapping

from triage.log.codes import CODES
from triage.text import clean
from triage.tui.desk import Desk
from triage.tui.row import Row, Span, width_of
from triage.tui.times import ago, moment
from triage.words import counted, headline, size_in_words

NARROW = 100  # cells below which the second row says it shorter
STATUS_STYLES = {"crashed": "bad", "doubtful": "unknown", "clean": "head"}


def header_rows(desk: Desk, news: str, width: int) -> list[Row]:
    """Both rows. Parts of the headline that don't fit move to the second; `news` is always shown."""
    parts = clean(headline(desk.plan)).split(" · ")
    glyph, _, rest = parts[0].partition("  ")
    style = STATUS_STYLES[desk.plan.status]
    spans: list[Span] = [(" ", "text"), (glyph, style)]
    if rest:
        spans.append(("  " + rest, "head"))
    moved: list[str] = []
    for part in parts[1:]:
        if moved or width_of(spans) + len(part) + 4 > width:
            moved.append(part)
        else:
            spans += [(" · ", "dim"), (part, "unknown" if "UNKNOWN" in part else "head")]
    return [Row(tuple(spans)), _facts(desk, moved, news, width)]


def _facts(desk: Desk, moved: list[str], news: str, width: int) -> Row:
    """The second row: whole facts only, the most telling ones where not all fit."""
    kept: list[tuple[int, Span]] = []
    room = width - 1
    for order, span in sorted(_ranked(desk, moved, news, width), key=lambda item: item[0][0]):
        if len(span[0]) + 3 <= room or not kept:
            kept.append((order[1], span))
            room -= width_of([span]) + 3
    spans: list[Span] = [(" ", "dim")]
    for number, (_, span) in enumerate(sorted(kept, key=lambda item: item[0])):
        spans += [span] if number == 0 else [(" · ", "dim"), span]
    return Row(tuple(spans))


def _ranked(desk: Desk, moved: list[str], news: str, width: int) -> list[tuple[tuple[int, int], Span]]:
    """Each fact with how telling it is (0 first) and its place on the row."""
    journal = desk.session.journal
    torn = sum(anomaly.code == "torn_tail" for anomaly in desk.plan.anomalies)
    corrupt = sum(journal.codes.count(CODES[name]) for name in ("corrupt", "damaged")) - torn
    facts: list[tuple[int, Span]] = []
    if news:
        facts.append((0, (clean(news), "unknown")))
    facts += [(1, (part, "text")) for part in moved]
    facts += [
        (2, (clean(os.path.basename(desk.session.path) or desk.session.path, limit=60), "text")),
        (7, (clean(_agent(journal.decoder.facts()) or journal.format.NAME, limit=40), "dim")),
        (5, (counted(journal.lines, "line"), "dim")),
        (6, (size_in_words(journal.size), "dim")),
        (4, (_last(desk, short=width < NARROW), "dim")),
    ]
    for rank, name in ((8, "model"), (9, "title"), (10, "cwd")):
        said = journal.decoder.facts().get(name)
        if said:
            facts.append((rank, (clean(said, limit=60), "dim")))
    if torn:
        facts.append((3, (counted(torn, "torn line"), "unknown")))
    if corrupt > 0:
        facts.append((3, (counted(corrupt, "corrupt line"), "unknown")))
    if desk.read_only:
        facts.append((3, ("read-only", "text")))
    return [((rank, place), span) for place, (rank, span) in enumerate(facts)]


def _agent(facts: Mapping[str, str]) -> str:
    """The agent and its version, by the log's own word."""
    return " ".join(facts[name] for name in ("agent", "version") if facts.get(name))


def _last(desk: Desk, *, short: bool) -> str:
    """When the last record was written, by the log's own word."""
    time, now = desk.session.last_time, desk.clock()
    if time is None:
        return "no times recorded"
    past = ago(time, now)
    return f"last{'' if short else ' record'} {moment(time, now)}" + (f" ({past})" if past else "")
