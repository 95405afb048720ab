"""The commands: arguments in, text and exit codes out. Textual is imported only to open the screen.

Exit codes: 0 nothing to repair, or repaired; 1 a repair is planned, or the log is doubtful; 2 wrong
usage; 3 a named log can't be read; 4 refused, nothing written. Of several, the highest.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from triage import __version__
from triage.text import clean

CLEAN, PLANNED, USAGE, UNREADABLE, REFUSED = 0, 1, 2, 3, 4

_EPILOG = """\
exit codes: 0 nothing to repair, or repaired; 1 a repair is planned, or the log is doubtful;
2 wrong usage; 3 a log can't be read; 4 refused, and nothing was written

triage LOG opens the screen; press ? there for the keys. A log is never changed except by an append
that you confirm."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `triage` with `argv` (default: the process's own). Returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLEAN
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _fail(f"the output could not be written: {error.strerror}", UNREADABLE)


def _run(arguments: list[str]) -> int:
    commands = {"plan": _plan_command, "apply": _apply_command}
    if arguments and arguments[0] in commands:
        return commands[arguments[0]](arguments[1:])
    return _open_command(arguments)


def _parser(name: str, description: str, **keywords: Any) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=name,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **keywords,
    )


def _open_command(arguments: list[str]) -> int:
    parser = _parser(
        "triage",
        "Triage the crashed session of an AI agent: see what it owes, check it, append the repair.",
        usage="triage [--plain] [--read-only] [--operator NAME] LOG\n"
        "       triage plan LOG … [--json]\n"
        "       triage apply LOG --ack KEY=FINDING[:NOTE] … [--operator NAME] [--plan FILE] [--json]",
        epilog=_EPILOG,
    )
    parser.add_argument("log", metavar="LOG", nargs="+", help="a session log")
    parser.add_argument("--plain", action="store_true", help="print the report as text, open no screen")
    parser.add_argument("--read-only", action="store_true", help="open the screen without the accept step")
    parser.add_argument("--operator", default="", metavar="NAME", help="who answers (default: login name)")
    parser.add_argument("--version", action="version", version=f"triage {__version__}")
    options = parser.parse_args(arguments)
    if options.plain or not _has_terminal():
        return _report(options.log)
    if len(options.log) > 1:
        parser.error("the screen opens one log; use --plain for several")
    return _screen(options.log[0], options.read_only, options.operator or _login())


def _has_terminal() -> bool:
    """Whether a screen can be drawn: Textual itself does not ask."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _screen(path: str, read_only: bool, operator: str) -> int:
    from triage.log.journal import Unreadable
    from triage.session import open_session

    try:
        session = open_session(path)
    except Unreadable as error:
        return _fail(str(error), UNREADABLE)
    _say_if_empty(session.path, session.journal.size)
    from triage.tui.app import run

    says = run(session, read_only=read_only, operator=operator)
    if says:
        _print(says)
    return CLEAN


def _report(paths: Sequence[str]) -> int:
    from triage.log.journal import Unreadable
    from triage.report import plain
    from triage.session import open_session

    worst = CLEAN
    for path in paths:
        try:
            session = open_session(path)
        except Unreadable as error:
            worst = max(worst, _fail(str(error), UNREADABLE))
            continue
        _say_if_empty(path, session.journal.size)
        plain(session)
        worst = max(worst, _code(session.plan.status))
    return worst


def _plan_command(arguments: list[str]) -> int:
    parser = _parser("triage plan", "Show what would be appended to each log, and why. Changes nothing.")
    parser.add_argument("log", metavar="LOG", nargs="+")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, one line a log")
    options = parser.parse_args(arguments)
    if not options.json:
        return _report(options.log)
    from triage import contract
    from triage.log.journal import Unreadable
    from triage.session import open_session

    worst = CLEAN
    for path in options.log:
        try:
            session = open_session(path)
        except Unreadable as error:
            _print_json(contract.error_row(path, error))
            worst = max(worst, _fail(str(error), UNREADABLE))
            continue
        _say_if_empty(path, session.journal.size)
        _print_json(contract.plan_row(session))
        worst = max(worst, _code(session.plan.status))
    return worst


def _apply_command(arguments: list[str]) -> int:
    parser = _parser(
        "triage apply",
        "Append the planned repair. Every unknown outcome needs an answer of its own.",
        epilog="FINDING: ran, did-not-run or could-not-tell; for a waiting call: deny",
    )
    parser.add_argument("log", metavar="LOG")
    parser.add_argument("--ack", action="append", default=[], metavar="KEY=FINDING[:NOTE]")
    parser.add_argument("--operator", default="", metavar="NAME", help="who answers (default: login name)")
    parser.add_argument("--plan", metavar="FILE", help="append only if the log is still as in this plan")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    options = parser.parse_args(arguments)
    from triage.apply import apply

    return apply(
        options.log,
        options.ack,
        operator=options.operator or _login(),
        plan_file=options.plan,
        json=options.json,
    )


def _code(status: str) -> int:
    return CLEAN if status == "clean" else PLANNED


def _say_if_empty(path: str, size: int) -> None:
    if size == 0:
        sys.stderr.write(f"triage: {clean(path)} is empty: a log without events\n")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _print_json(row: dict[str, Any]) -> None:
    from triage.log.json_text import dumps

    _print(dumps(row))


def _fail(says: str, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"triage: {clean(says)}\n")
    return code
