"""The report as text: for a pipe or a dumb terminal (`plain`), and as Markdown for an incident page."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from shutil import get_terminal_size
from typing import Any, TextIO

from triage.log.json_text import dumps
from triage.playbook import BadPlaybook
from triage.recovery.plan import Owed
from triage.session import Session
from triage.text import clean, wrapped
from triage.words import (
    GLYPHS,
    RISKS,
    acks_in_words,
    at_the_end,
    counted,
    headline,
    hint_in_words,
    owed_row,
    plan_in_words,
    size_in_words,
    time_in_words,
    what_next,
)

WIDTH = 80  # columns where the output is no terminal
COMMAND = "command"  # the style of a line that is to be copied
ARGUMENTS = 400  # characters of a call's arguments in a report


def facts(session: Session) -> list[str]:
    """What is known about a log, in short pieces: format, lines, size, last record, corrupt lines."""
    journal = session.journal
    torn = sum(a.code in ("torn_tail", "corrupt_line") for a in session.plan.anomalies)
    said = journal.decoder.facts()
    agent = " ".join(said[name] for name in ("agent", "version") if said.get(name))
    pieces = [
        journal.format.NAME,
        *([clean(agent, limit=60)] if agent else []),
        counted(journal.lines, "line"),
        size_in_words(journal.size),
    ]
    last = session.last_time
    if last is not None:
        pieces.append(f"last record {clean(time_in_words(last), limit=40)}")
    pieces += [
        f"{name} {clean(said[name], limit=80)}" for name in ("model", "cwd", "title") if said.get(name)
    ]
    if torn:
        pieces.append(f"{counted(torn, 'stretch', 'stretches')} that can't be read")
    return pieces


def arguments_in_short(owed: Owed, limit: int = ARGUMENTS) -> str:
    """A call's arguments on one line, cleaned, at most `limit` characters."""
    if owed.arguments is None:
        return ""
    value: Any = owed.arguments
    return clean(value if isinstance(value, str) else dumps(value), limit=limit)


def plain(session: Session, file: TextIO | None = None, *, redacted: bool = False) -> None:
    """Print the report to `file` (default: stdout), readable at 80 columns and in a pipe."""
    out = file or sys.stdout
    terminal = out.isatty()
    width = get_terminal_size().columns if terminal else WIDTH
    bold = terminal and os.environ.get("TERM") != "dumb"
    for indent, text, style in _paragraphs(session):
        text = _redact(text) if redacted else text
        # A command stays on one line, however long: it has to be pasted whole.
        for line in [text] if style == COMMAND else wrapped(text, max(1, width - indent)):
            says = f"\x1b[1m{line}\x1b[0m" if bold and style == "bold" else line
            out.write(" " * indent + says + "\n")


def _redact(text: str) -> str:
    from triage.redact import redact_text  # its patterns take long to compile

    return redact_text(text)


def _paragraphs(session: Session) -> Iterator[tuple[int, str, str]]:
    plan = session.plan
    yield 0, headline(plan), "bold"
    yield 2, clean(session.path) + " · " + " · ".join(facts(session)), ""
    yield 2, what_next(plan.boundary), ""
    for says in at_the_end(plan, datetime.now(UTC)):
        yield 2, clean(says), ""
    if plan.doubt:
        yield 2, f"Doubtful: {clean(plan.doubt)}", "bold"
    if plan.status == "crashed" and session.corrupt_in_the_way:
        yield 2, session.corrupt_in_the_way, "bold"
    for owed in plan.owed:
        yield 0, "", ""
        yield 0, clean(f"{owed_row(owed)}  {owed.name or '(no name)'}  {owed.key}  rule {owed.rule}"), "bold"
        yield 4, clean(owed.why), ""
        yield 4, RISKS[owed.label], ""
        arguments = arguments_in_short(owed)
        if arguments:
            yield 4, f"arguments  {arguments}", ""
        for evidence in owed.evidence:
            yield 4, clean(f"line {evidence.line:,}  {evidence.says}"), ""
        for says in _hints(session, owed):
            yield 4, clean(says), COMMAND if says.startswith("check: ") else ""
    yield from _rest(session)


def _hints(session: Session, owed: Owed) -> Sequence[str]:
    """What the playbook says of a call, or what is wrong with the playbook."""
    try:
        hint = session.hint(owed)
    except BadPlaybook as error:
        return [str(error)]
    return [] if hint is None else hint_in_words(hint)


def _rest(session: Session) -> Iterator[tuple[int, str, str]]:
    plan = session.plan
    if plan.left:
        yield 0, "", ""
        yield 0, "Left as it is (no crash owes these)", "bold"
        for left in plan.left:
            yield 4, clean(f"line {left.line:,}  {left.name or '(no name)'}  {left.tool_call_id}"), ""
            yield 6, clean(left.why), ""
    if plan.anomalies:
        yield 0, "", ""
        yield 0, "Wrong with the log itself", "bold"
        for anomaly in plan.anomalies:
            where = f"line {anomaly.line:,}  " if anomaly.line else ""
            yield 4, clean(f"{where}{anomaly.code}: {anomaly.says}"), ""
    if plan.status == "crashed":
        yield 0, "", ""
        yield 0, f"Plan: {plan_in_words(plan)}", "bold"
        yield from _how_to_go_on(session)


def _how_to_go_on(session: Session) -> Iterator[tuple[int, str, str]]:
    plan = session.plan
    if plan.refusal is not None:
        yield 2, clean(f"Nothing can be appended ({plan.refusal.code}): {plan.refusal.says}"), ""
        return
    needed = [owed for owed in plan.owed if owed.needs_acknowledgement]
    yield 2, f"Check {counted(len(needed), 'call')}, then:" if needed else "Nothing needs an answer:", ""
    yield 2, clean(f"triage apply {shlex.quote(session.path)} {acks_in_words(needed)}".strip()), COMMAND


# What a Markdown renderer could take for its own: always, at the edge of a word, at the start, in a link.
_MARKDOWN = re.compile(
    r"[\\`*\[\]<>|&~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^[#+\-=]|^\d{1,9}[.)]|:(?=//)|(?<=www)\.",
    re.IGNORECASE,
)


def markdown_text(text: str, limit: int | None = None) -> str:
    """Log text for Markdown: cleaned, and every sign that could mean something to a renderer escaped."""
    return _MARKDOWN.sub(lambda match: match[0][:-1] + "\\" + match[0][-1], clean(text, limit=limit))


def markdown_code(text: str) -> str:
    """Cleaned text as a code span: it means nothing there, and can be copied as it is."""
    text = clean(text)
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def markdown(session: Session, *, redacted: bool = False, name: str = "") -> str:
    """The incident summary of one log as Markdown. `name` stands before its headline, where one is given."""
    plan = session.plan

    def safe(text: str) -> str:
        return _redact(text) if redacted else text

    def escape(text: str, limit: int | None = None) -> str:
        return markdown_text(safe(text), limit)

    out = [
        f"# {escape(name)}{': ' if name else ''}{escape(headline(plan))}",
        "",
        f"- Log: {escape(session.path)} ({escape(', '.join(facts(session)))})",
        f"- Where it {'ended' if plan.status == 'clean' else 'died'}: {plan.boundary.name}"
        + (f" (line {plan.boundary.line:,})" if plan.boundary.line else ""),
        f"- What may happen next: {escape(what_next(plan.boundary))}",
        *(f"- {escape(says)}" for says in at_the_end(plan, datetime.now(UTC))),
        f"- Plan: {escape(plan_in_words(plan))}",
    ]
    if plan.doubt:
        out.append(f"- Doubtful: {escape(plan.doubt)}")
    if session.corrupt_in_the_way:
        out.append(f"- {escape(session.corrupt_in_the_way)}")
    if plan.refusal is not None:
        out.append(f"- Nothing can be appended: {escape(plan.refusal.says)}")
    if plan.owed:
        out += ["", "## Owed calls", "", "| risk | call | key | rule | why |", "|---|---|---|---|---|"]
        out += [
            f"| {GLYPHS[o.label]} {o.label} | {escape(o.name or '', 60)} | {escape(o.key, 80)} "
            f"| {o.rule} | {escape(o.why)} |"
            for o in plan.owed
        ]
        for o in plan.owed:
            out += ["", f"### {GLYPHS[o.label]} {escape(o.name or '(no name)', 60)} {escape(o.key, 80)}", ""]
            out.append(f"- {escape(RISKS[o.label])}")
            arguments = arguments_in_short(o)
            out.append(f"- Arguments: {markdown_code(safe(arguments)) if arguments else 'none'}")
            out += [f"- Line {e.line:,}: {escape(e.says)}" for e in o.evidence]
            out += [f"- {escape(says)}" for says in _hints(session, o)]
    if plan.left:
        out += ["", "## Left as it is", ""]
        out += [
            f"- Line {left.line:,}: {escape(left.name or '', 60)} {escape(left.tool_call_id, 80)}, "
            f"{escape(left.why)}"
            for left in plan.left
        ]
    if plan.anomalies:
        out += ["", "## Wrong with the log itself", ""]
        out += [
            f"- {f'Line {a.line:,}: ' if a.line else ''}{escape(a.code)}: {escape(a.says)}"
            for a in plan.anomalies
        ]
    return "\n".join(out) + "\n"
