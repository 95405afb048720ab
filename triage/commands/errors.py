"""`triage errors`: what failed in many sessions, and how often the same failure came back."""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from collections.abc import Sequence
from typing import Any

from triage.commands import CLEAN, UNREADABLE, USAGE, fail, note, parser, show, show_json
from triage.errors.classify import UNRESOLVED_REVISION
from triage.errors.recurrence import ACTIONS, Policy, Row, Sighting
from triage.failure_store import Store, Unusable
from triage.failures import read_failures
from triage.fleet.find import candidates
from triage.log.source import Unreadable
from triage.text import clean
from triage.words import counted, time_in_words

SCHEMA = "triage.error/1"
WIDTH = 80  # columns where the output is no terminal
_WORTH = {"CreateWork": "worth an issue", "GroupOnly": "grouped", "Reject": "rejected"}
_DEFAULT = Policy()


def run(arguments: Sequence[str]) -> int:
    """The command with its arguments. Returns the exit code."""
    options = _options(arguments)
    policy = Policy(options.min_recurrence, options.window_ms)
    state = _state_file(options.state)
    try:
        store = Store(state)
    except Unusable as error:
        return fail(str(error), USAGE)
    try:
        sessions, code = _read(store, _without(state), options.path, options.revision)
        rows = sorted(store.rows(sessions), key=lambda row: -row.count)
    except sqlite3.Error as error:
        return fail(f"the state file can't be used any more ({error}): run the command again", UNREADABLE)
    finally:
        store.close()
    if options.json:
        for row in rows:
            show_json(_json(row, policy))
    else:
        _print(rows, policy, len(sessions))
    return code


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    options_of = parser(
        "triage errors",
        "What failed in these sessions, by signature, and how often it came back. Changes no log.",
        epilog="Each failure counts once, however often a log is read: the state file remembers how far\n"
        "each log was read. A failure also counts where it was seen in logs that were read before.",
    )
    options_of.add_argument("path", metavar="PATH", nargs="+", help="a log, or a folder to look through")
    options_of.add_argument("--json", action="store_true", help="one JSON object a line, one line a failure")
    options_of.add_argument(
        "--min-recurrence",
        type=_count,
        default=_DEFAULT.min_recurrence,
        metavar="N",
        help="from how many times on a failure is worth an issue (default: %(default)s; 0 rejects all)",
    )
    options_of.add_argument(
        "--window-ms",
        type=_count,
        default=_DEFAULT.grouping_window_ms,
        metavar="N",
        help="ms within which two times are one burst (default: %(default)s)",
    )
    options_of.add_argument(
        "--state",
        metavar="FILE",
        help="what remembers how far each log was read; none: everything counts afresh "
        "(default: in the user's state folder)",
    )
    options_of.add_argument(
        "--revision",
        default=UNRESOLVED_REVISION,
        metavar="R",
        help="the revision of events that name no execution (default: %(default)s)",
    )
    return options_of.parse_args(arguments)


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def _state_file(named: str | None) -> str | None:
    if named is not None:
        return None if named == "none" else named
    import platformdirs

    return os.path.join(platformdirs.user_state_dir("triage"), "errors.sqlite3")


def _without(state: str | None) -> set[str]:
    """The files that are no logs because the store lives in them."""
    return set() if state is None else {os.path.realpath(state + end) for end in ("", "-wal", "-shm")}


def _read(store: Store, own: set[str], paths: Sequence[str], revision: str) -> tuple[set[int], int]:
    """Read every log at or below the paths. Returns the sessions and the exit code.

    A session that can't be read stops no other.
    """
    sessions: set[int] = set()
    code, skipped = CLEAN, 0
    for named in paths:
        for path in candidates(named):
            if path != named and os.path.realpath(path) in own:
                continue
            try:
                session = read_failures(store, path, revision)
            except sqlite3.Error:
                raise
            except Exception as error:
                if path == named:
                    code = fail(_why(path, error), UNREADABLE)
                elif isinstance(error, Unreadable) and error.code == "not_a_log":
                    skipped += 1
                else:
                    note(_why(path, error))
                continue
            sessions |= set() if session is None else {session}
    if skipped:
        note(f"{counted(skipped, 'file')} skipped: no session log")
    return sessions, code


def _why(path: str, error: Exception) -> str:
    if isinstance(error, Unreadable):
        return str(error)
    return f"{path} could not be read ({type(error).__name__}): its failures are missing here"


def _json(row: Row, policy: Policy) -> dict[str, Any]:
    decision = row.decision(policy)
    return {
        "schema": SCHEMA,
        "class": row.key.classification,
        "signature": row.key.signature,
        "operation": row.key.operation,
        "revision": row.key.revision,
        "workspace": row.workspace,
        "count": row.count,
        "first": _seen(row.first),
        "last": _seen(row.last),
        "decision": decision,
        "action": ACTIONS[decision],
    }


def _seen(seen: Sighting) -> dict[str, Any]:
    return {"path": seen.path, "line": seen.line, "time": seen.time}


def _print(rows: Sequence[Row], policy: Policy, sessions: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    read = counted(sessions, "session")
    if not rows:
        show(f"No failure in {read}.")
        return
    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout,
        width=None if terminal else WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        color_system="auto" if terminal else None,
    )
    table = Table(box=None, pad_edge=False, show_edge=False, expand=False)
    table.add_column("times", justify="right", no_wrap=True)
    table.add_column("what to do", no_wrap=True)
    table.add_column("failure", overflow="fold", ratio=1)
    for row in rows:
        worth = _WORTH[ACTIONS[row.decision(policy)]]
        table.add_row(f"{row.count:,}", worth, Text("\n".join(_in_words(row))))
    console.print(table)
    window = f"one burst within {policy.grouping_window_ms:,} ms"
    show(
        f"{counted(len(rows), 'failure')} in {read}. Policy: from {policy.min_recurrence} times on; {window};"
    )
    show(f"at most {policy.max_per_turn} issues a turn (shown only: it limits nothing here).")


def _in_words(row: Row) -> list[str]:
    key, first, last = row.key, row.first, row.last
    what = {"ExecutionFailure": "failed", "RecoveredError": "recovered"}.get(key.classification, "")
    lines = [key.signature, f"{what} · {key.operation} · {key.revision} · {row.workspace}"]
    places = (
        [f"last  {_where(last)}"] if first == last else [f"first {_where(first)}", f"last  {_where(last)}"]
    )
    return [clean(line) for line in lines + places]


def _where(seen: Sighting) -> str:
    return f"{seen.path}:{seen.line}" + ("" if seen.time is None else f"  {time_in_words(seen.time)}")
