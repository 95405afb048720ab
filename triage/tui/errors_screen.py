"""What failed in this session, on the whole screen: how often, when, and whether it is worth an issue."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.worker import get_current_worker

from triage.errors.classify import UNRESOLVED_REVISION
from triage.errors.recurrence import ACTIONS, Policy, Sighting, fold
from triage.errors.recurrence import Row as Failure
from triage.failures import failures_of
from triage.log.source import Unreadable
from triage.text import clean
from triage.tui.desk import Clock, Desk
from triage.tui.keybar import KeyBar
from triage.tui.keys import ERRORS, Command, bindings
from triage.tui.row import Row, Span, row, text
from triage.tui.rows import Fixed, Rows
from triage.tui.times import duration, moment
from triage.tui.view import View

MOST = 100_000  # occurrences that are counted
EACH = 3  # rows of a failure
POLICY = Policy()
WINDOW = duration(POLICY.grouping_window_ms / 1000)
CLASSES = {"ExecutionFailure": "failed", "RecoveredError": "recovered"}
WORTH: dict[str, Span] = {
    "CreateWork": ("worth an issue", "unknown"),
    "GroupOnly": ("no issue yet", "dim"),
    "Reject": ("no issue", "dim"),
}


class Counted(Message):
    """What failed, the most frequent first; or why the log can't be read."""

    def __init__(self, failures: Sequence[Failure] | Unreadable) -> None:
        super().__init__()
        self.failures = failures


class ErrorRows:
    """Failures as a source of rows; the cursor stands on the first of each."""

    def __init__(self, failures: Sequence[Failure], clock: Clock) -> None:
        self.failures = failures
        self._clock = clock

    def count(self, upto: int, width: int) -> int:
        return EACH * len(self.failures)

    def stops(self, index: int) -> bool:
        return index % EACH == 0

    def row(self, index: int, width: int) -> Row:
        failure = self.failures[index // EACH]
        key = failure.key
        if index % EACH == 0:
            return row((f"✖ {failure.count:,}× ", "bad"), text(key.signature, "head"))
        if index % EACH == 1:
            what = f"{CLASSES.get(key.classification, key.classification)} · {key.operation}"
            worth = WORTH[ACTIONS[failure.decision(POLICY)]]
            return Row((("  ", "text"), worth, (f" · {_in_words(failure)}", "text")), ((clean(what), "dim"),))
        first, last = self._where(failure.first), self._where(failure.last)
        seen = f"  {last}" if failure.count == 1 else f"  first {first} · last {last}"
        revision = "" if key.revision == UNRESOLVED_REVISION else key.revision
        return Row(((seen, "dim"),), (text(revision, "dim", limit=24),))

    def _where(self, seen: Sighting) -> str:
        time = moment(seen.time, self._clock())
        return f"line {seen.line:,}, {time}" if time else f"line {seen.line:,}"


def _in_words(failure: Failure) -> str:
    """What the last occurrence made of a failure."""
    decision = failure.decision(POLICY)
    if decision == "ChronicRecurrence":
        return f"chronic: again beyond {WINDOW}"
    if decision == "BurstThresholdReached":
        timed = failure.previous_ms is not None and failure.last.time_ms is not None
        return f"burst: again within {WINDOW}" if timed else "burst: again, no time known"
    if decision == "BurstCoalesced":
        return "seen once" if failure.count == 1 else "too few times so far"
    return "the policy counts nothing"


class ErrorsScreen(View[int | None]):
    """Lists what failed. It is dismissed with the line to go to, or None."""

    COMMANDS_HERE: ClassVar[tuple[Command, ...]] = ERRORS
    TITLE_HERE = "errors"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ERRORS)]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.failures: Sequence[Failure] = ()
        self.rows = Rows(_told("reading…"))

    def compose(self) -> ComposeResult:
        yield self.rows
        yield KeyBar(ERRORS, self._locked)

    def on_mount(self) -> None:
        self.set_focus(self.rows)
        self._label()
        self.run_worker(self._count, thread=True)

    def _locked(self) -> dict[str, str]:
        return {} if self.failures else {"open": ""}

    def _count(self) -> None:
        worker = get_current_worker()
        try:
            found = fold(islice(failures_of(self.desk.session.journal, lambda: worker.is_cancelled), MOST))
        except Unreadable as error:
            self.post_message(Counted(error))
        else:
            if not worker.is_cancelled:
                self.post_message(Counted(sorted(found.values(), key=lambda failure: -failure.count)))

    def on_counted(self, event: Counted) -> None:
        if isinstance(event.failures, Unreadable):
            self.rows.show(_told(str(event.failures), "bad"))
            return
        self.failures = event.failures
        self._label()
        if self.failures:
            self.rows.show(ErrorRows(self.failures, self.desk.clock), 0)
        else:
            self.rows.show(_told("nothing failed in this session"))
        for bar in self.query(KeyBar):
            bar.refresh()

    def _label(self) -> None:
        counted = f" {len(self.failures):,}" if self.failures else ""
        policy = f"worth an issue from {POLICY.min_recurrence} times on · a burst within {WINDOW}"
        foot = f"at most {POLICY.max_per_turn} issues a turn (shown only: it limits nothing here)"
        whole = sum(failure.count for failure in self.failures) < MOST
        self.rows.label(
            ((f"[4] errors{counted} · {policy}", "title"),),
            foot=((foot if whole else f"only the first {MOST:,} occurrences are counted", "dim"),),
        )

    def on_rows_moved(self) -> None:
        """Keep all rows of the failure under the cursor in view."""
        hidden = self.rows.cursor + EACH - self.rows.top - self.rows.in_view
        if hidden > 0 and self.failures:
            self.rows.show(self.rows.source, top=self.rows.top + hidden)

    async def action_open(self) -> None:
        if self.failures:
            self.dismiss(self.failures[self.rows.cursor // EACH].last.line)

    def action_back(self) -> None:
        self.dismiss(None)


def _told(says: str, style: str = "dim") -> Fixed:
    return Fixed([row(text(says, style))], frozenset())
