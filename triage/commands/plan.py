"""`triage plan`: what would be appended, and why. It changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triage.commands import CLEAN, UNREADABLE, code_of, fail, parser, say_if_empty, show_json
from triage.log.source import Unreadable
from triage.session import Session, open_session


def run(arguments: Sequence[str]) -> int:
    """The command with its arguments. Returns the exit code."""
    options_of = parser("triage plan", "Show what would be appended to each log, and why. Changes nothing.")
    options_of.add_argument("log", metavar="LOG", nargs="+")
    options_of.add_argument("--json", action="store_true", help="one JSON object a line, one line a log")
    options_of.add_argument("--redact", action="store_true", help="take secrets out of what is printed")
    options = options_of.parse_args(arguments)
    return _json(options.log, options.redact) if options.json else report(options.log, options.redact)


def report(paths: Sequence[str], redacted: bool) -> int:
    """Print the report of each log as text. Returns the exit code."""
    from triage.report import plain

    return _each(paths, lambda session: plain(session, redacted=redacted))


def _json(paths: Sequence[str], redacted: bool) -> int:
    from triage import contract
    from triage.redact import redact

    def show(session: Session) -> None:
        row = contract.plan_row(session)
        show_json(redact(row) if redacted else row)

    return _each(paths, show, lambda path, error: show_json(contract.error_row(path, error)))


def _each(
    paths: Sequence[str],
    show: Callable[[Session], None],
    unread: Callable[[str, Unreadable], None] | None = None,
) -> int:
    worst = CLEAN
    for path in paths:
        try:
            session = open_session(path)
        except Unreadable as error:
            if unread is not None:
                unread(path, error)
            worst = max(worst, fail(str(error), UNREADABLE))
            continue
        say_if_empty(path, session.journal.size)
        show(session)
        worst = max(worst, code_of(session.plan.status))
    return worst
