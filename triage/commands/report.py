"""`triage report`: an incident report over many sessions, as Markdown or HTML."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from triage.commands import CLEAN, UNREADABLE, code_of, fail, note, parser, show
from triage.export import write_new
from triage.fleet.find import candidates
from triage.fleet.row import row_of, worst_first
from triage.log.history import repairs_in
from triage.log.source import Unreadable
from triage.redact import redact_text
from triage.report import markdown, markdown_text
from triage.session import Session, open_session
from triage.words import counted, owed_in_words, time_in_words

NAME = 160  # characters of a session's name in the table

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Incident report</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; }}
th, td {{ border: 1px solid #999; padding: .3rem .6rem; text-align: left; }}
code, td, li {{ overflow-wrap: anywhere; }} td:first-child {{ white-space: nowrap; }}
h1 {{ border-bottom: 3px double #333; }}
</style></head><body>
{body}
</body></html>
"""


def run(arguments: Sequence[str]) -> int:
    """The command with its arguments. Returns the exit code."""
    options_of = parser(
        "triage report",
        "Write an incident report: what died, what may have happened, what was checked, what was appended.",
        epilog="FILE ending in .html gives HTML, anything else Markdown. Secrets are taken out by default.",
    )
    options_of.add_argument("path", metavar="PATH", nargs="+", help="a log, or a folder to look through")
    options_of.add_argument("-o", "--output", metavar="FILE", help="a new file (default: print Markdown)")
    options_of.add_argument("--no-redact", action="store_true", help="keep what looks like a secret")
    options = options_of.parse_args(arguments)
    sessions, worst = _read(options.path)
    text = compose(sessions, redacted=not options.no_redact)
    if options.output is None:
        show(text.rstrip("\n"))
        return worst
    if options.output.endswith((".html", ".htm")):
        text = as_html(text)
    try:
        folder, name = os.path.split(options.output)
        stem, suffix = os.path.splitext(name)
        where = write_new(folder, stem, suffix, text)
    except OSError as error:
        return fail(f"{options.output} could not be written: {error.strerror}", UNREADABLE)
    note(f"wrote {where}: {counted(len(sessions), 'session')}")
    return worst


def _read(paths: Sequence[str]) -> tuple[list[Session], int]:
    sessions, worst = [], CLEAN
    for file in dict.fromkeys(file for path in paths for file in candidates(path)):
        try:
            session = open_session(file)
        except Unreadable as error:
            if file in paths:
                worst = max(worst, fail(str(error), UNREADABLE))
            elif error.code != "not_a_log":
                note(str(error))
            continue
        sessions.append(session)
        worst = max(worst, code_of(session.plan.status))
    return sessions, worst


def compose(sessions: Sequence[Session], *, redacted: bool, now: datetime | None = None) -> str:
    """The report as Markdown: the sessions that need or had a repair, the worst first, then each in full."""

    def escape(text: str, limit: int | None = None) -> str:
        return markdown_text(redact_text(text) if redacted else text, limit)

    shown = [s for s in sessions if s.plan.status != "clean" or next(repairs_in(s.journal), None)]
    shown.sort(key=lambda session: worst_first(row_of(session)))
    names = _names([session.path for session in shown])
    written = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    looked = f"{counted(len(sessions), 'session')} looked at; {len(shown):,} of them listed here"
    out = ["# Incident report", "", f"Written {written}. {looked}: to repair, doubtful, or repaired."]
    if shown:
        out += ["", "| session | status | owed | died in |", "|---|---|---|---|"]
        out += [
            f"| {escape(names[s.path], NAME)} | "
            + ("repaired |  |  |" if s.plan.status == "clean" else f"{s.plan.status} | {_owed(s)} |")
            for s in shown
        ]
    for session in shown:
        summary = markdown(session, redacted=redacted, name=names[session.path])
        out += ["", summary.replace("\n#", "\n##").replace("# ", "## ", 1).rstrip()]
        appended = list(_appended(session))
        if appended:
            out += ["", "### Appended by repairs", "", *(f"- {escape(line)}" for line in appended)]
    return "\n".join(out) + "\n"


def _owed(session: Session) -> str:
    return f"{markdown_text(owed_in_words(session.plan))} | {session.plan.boundary.name}"


def _names(paths: Iterable[str]) -> dict[str, str]:
    """Each path with as much of its end as tells it from the others."""
    names: dict[str, str] = {}
    left, depth = dict.fromkeys(paths), 0
    while left:
        depth += 1
        ends = {path: "/".join(path.rstrip("/").split("/")[-depth:]) for path in left}
        alike = Counter(ends.values())
        names |= {path: end for path, end in ends.items() if alike[end] == 1 or end == path.rstrip("/")}
        left = dict.fromkeys(path for path in left if path not in names)
    return names


def _appended(session: Session) -> Iterator[str]:
    for past in repairs_in(session.journal):
        call = f" {past.tool_call_id}" if past.tool_call_id else ""
        call += f" {past.name}" if past.name else ""
        risk = f", {past.risk} (rule {past.rule})" if past.risk else ""
        found = f"; {past.operator or 'somebody'} found: {past.finding}" if past.finding else ""
        said = f" ({past.note})" if past.note else ""
        time = time_in_words(past.time or "no time")
        yield f"Line {past.line:,}, {time}: {past.type}{call}{risk}{found}{said}"


def as_html(text: str) -> str:
    """The report as one HTML page without scripts, links or anything from elsewhere."""
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")
    return _PAGE.format(body=renderer.disable(["link", "image", "autolink"]).render(text))
