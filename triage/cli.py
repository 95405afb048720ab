"""The entry point: which command, and the screen. Textual is imported only to open the screen."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any

from triage import __version__
from triage.commands import CLEAN, UNREADABLE, USAGE, fail, login, note, parser, say_if_empty, show

COMMANDS = {
    "plan": "what would be appended, and why; changes nothing",
    "apply": "append the repair, with an answer for every unknown outcome",
    "scan": "one row for each session of a folder, the worst first",
    "report": "an incident report over many sessions, as Markdown or HTML",
    "history": "the repairs that a log already holds: when, by whom, what they found",
    "errors": "what failed in many sessions, and how often the same failure came back",
}

GARBAGE = 50_000  # objects between two looks for garbage: little is made, and imports make none

_EPILOG = (
    "commands (triage COMMAND --help):\n"
    + "".join(f"  {name:<9}{says}\n" for name, says in COMMANDS.items())
    + """
exit codes: 0 nothing to repair, or repaired; 1 a repair is planned, or the log is doubtful;
2 wrong usage; 3 a log can't be read; 4 refused, and nothing was written

triage LOG opens the screen, triage DIR the list of its sessions; press ? there for the keys. A log is
never changed except by an append that you confirm."""
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `triage` with `argv` (default: the process's own). Returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(GARBAGE)
    _make_outputs_safe()
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output left, as `head` does
        _drop_output()
        return CLEAN
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return _crashed(error)
        _drop_output()
        return fail(f"the output can't be written: {error.strerror}", UNREADABLE)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _crashed(error)


def _make_outputs_safe() -> None:
    """What goes to an output that the caller closed (`>&-`) goes nowhere; every output takes any text."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a glyph that its encoding lacks must not hide the rest
            with suppress(OSError):
                stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    if arguments and arguments[0] in COMMANDS:
        code: int = import_module(f"triage.commands.{arguments[0]}").run(arguments[1:])
        return code
    meant = _command_meant(arguments[0]) if arguments else ""
    if meant:
        return fail(f"there is no command or log {arguments[0]!r}: did you mean triage {meant}?", USAGE)
    return _open(arguments)


def _command_meant(word: str) -> str:
    """The command that `word` was to be, where it is a word like one and no path; else ""."""
    if not word.isalpha() or os.path.lexists(word):
        return ""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, COMMANDS, 1, 0.7)), "")


def _open(arguments: list[str]) -> int:
    options_of = parser(
        "triage",
        "Triage the crashed session of an AI agent: see what it owes, check it, append the repair.",
        usage="triage [--plain [--redact]] [--read-only] [--operator NAME] LOG\n"
        "       triage DIR … | triage --agents | triage COMMAND …",
        epilog=_EPILOG,
    )
    options_of.add_argument("log", metavar="LOG", nargs="*", help="a session log, or a folder of them")
    options_of.add_argument("--agents", action="store_true", help="list the sessions in the agents' folders")
    options_of.add_argument("--plain", action="store_true", help="print text, open no screen")
    options_of.add_argument("--redact", action="store_true", help="take secrets out of reports and exports")
    options_of.add_argument("--read-only", action="store_true", help="open the screen without accept")
    options_of.add_argument("--operator", default="", metavar="NAME", help="who answers (default: you)")
    options_of.add_argument("--version", action="version", version=f"triage {__version__}")
    options = options_of.parse_args(arguments)
    if options.agents:
        from triage.fleet.find import agents_folders

        options.log += agents_folders(os.environ)
        if not options.log:
            note("none of the agents' folders is on this machine")
            return CLEAN
    if not options.log:
        options_of.error("name a LOG or a folder, or use --agents")
    many = options.agents or any(_is_folder_of_logs(path, filled=options.plain) for path in options.log)
    if many and (options.plain or not _has_terminal()):
        return _list(options.log)
    if options.plain or not _has_terminal():
        from triage.commands.plan import report

        return report(options.log, options.redact)
    how = {
        "read_only": options.read_only,
        "redact": options.redact,
        "operator": options.operator or login(),
    }
    return _picker(options.log, how) if many or len(options.log) > 1 else _screen(options.log[0], how)


def _is_folder_of_logs(path: str, *, filled: bool) -> bool:
    """Whether a path is a folder to look through. `filled`: an empty one is only a log that is none."""
    if not os.path.isdir(path):
        return False
    from triage.fleet.find import candidates
    from triage.log.formats import is_log_folder

    return not is_log_folder(path) and not (filled and next(candidates(path), None) is None)


def _list(paths: Sequence[str]) -> int:
    """One row for each session below the paths, the worst first, and how to open one."""
    from triage.commands.scan import run

    code = run(paths)
    note("open one with: triage LOG")
    return code


def _has_terminal() -> bool:
    """Whether a screen can be drawn: Textual itself does not ask."""
    if os.environ.get("TERM") == "dumb":  # it has no cursor to be moved
        return False
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _picker(paths: Sequence[str], how: dict[str, Any]) -> int:
    from triage.fleet.scan import NICE, Crew, Scan, cores

    crew = Crew(cores(), NICE)  # before the screen, which has threads
    try:
        from triage.tui.app import run

        return _said(run(Scan(paths, crew), **how))
    finally:
        crew.close()


def _screen(path: str, how: dict[str, Any]) -> int:
    from triage.log.source import READ_BEHIND_A_SCREEN, Unreadable, opened
    from triage.session import open_session

    try:
        with opened(path) as log:
            size = log.status.st_size
        say_if_empty(path, size)
        source = path if size > READ_BEHIND_A_SCREEN else open_session(path)
        from triage.tui.app import run

        return _said(run(source, **how))
    except Unreadable as error:
        return fail(str(error), UNREADABLE)


def _said(says: str) -> int:
    if says:
        show(says)
    return CLEAN


def _crashed(error: Exception) -> int:
    """A fault of ours: one line here, the trace (without values) in a file."""
    from triage.trouble import keep_trace

    where = keep_trace(error)
    kept = f"; the trace is in {where}" if where else ""
    note(f"a fault in triage itself ({type(error).__name__}){kept}. Open the log again to see how it is")
    return UNREADABLE
