"""`triage history`: the repairs that a log already holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from triage.commands import CLEAN, UNREADABLE, fail, parser, say_if_empty, show, show_json
from triage.log.history import Past, repairs_in
from triage.log.source import Unreadable
from triage.session import open_session
from triage.text import clean
from triage.words import time_in_words

SCHEMA = "triage.history/1"


def run(arguments: Sequence[str]) -> int:
    """The command with its arguments. Returns the exit code."""
    options_of = parser("triage history", "List the repairs in a log: when, by whom, what was found.")
    options_of.add_argument("log", metavar="LOG")
    options_of.add_argument("--json", action="store_true", help="one JSON object a line, one line a record")
    options = options_of.parse_args(arguments)
    try:
        session = open_session(options.log)
        say_if_empty(session.path, session.journal.size)
        found = list(repairs_in(session.journal))
    except Unreadable as error:
        return fail(str(error), UNREADABLE)
    for past in found:
        if options.json:
            show_json({"schema": SCHEMA, "path": session.path, **asdict(past)})
        else:
            show(clean(_in_words(past)))
    if not found and not options.json:
        show(clean(f"{session.path}: no repair in this log"))
    return CLEAN


def _in_words(past: Past) -> str:
    words = [f"line {past.line:,}", time_in_words(past.time or "no time"), past.type]
    words += [past.tool_call_id or "", past.name or ""]
    if past.risk:
        words.append(f"{past.risk} (rule {past.rule})")
    if past.finding:
        words.append(f"{past.finding}, by {past.operator or 'somebody'}")
    if past.note:
        words.append(f"note: {past.note}")
    return "  ".join(word for word in words if word)
