"""The timeline's order: which rows there are under the folds and the filter, and where the problems are.

A row is one number: a line of the log and, below its lowest bits, 0 for the line itself or n for the
n-th call that the line's message names. Rows are sorted, so each look-up is a bisection, and a million of
them are an array of eight bytes each. What is closed is folded; what is open or owes something is not.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import compress

from triage.log.codes import CODES
from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
    STEP_START,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_START,
)
from triage.tui.calls import NAMING, Calls

SUB = 12  # bits for the calls of one message
MOST = (1 << SUB) - 1
SMALL = 1000  # lines of a stretch in which each message shows its calls at once
MARKED = 2000  # owed and left calls that are shown under their message in a stretch of any length

FILTERS = ("all", "calls", "problems")
_CALL_TYPES = (
    TOOL_CALL, TOOL_RESULT, APPROVAL_REQUESTED, APPROVAL_DECIDED, INPUT_REQUESTED, INPUT_RESOLVED,
)  # fmt: skip


def key(line: int, call: int = 0) -> int:
    """The number of a row: a line, or the n-th call (from 1) that it names."""
    return line << SUB | min(call, MOST)


def line_of(row: int) -> int:
    """The line of a row."""
    return row >> SUB


def call_of(row: int) -> int:
    """Which call of its message a row is (from 1); 0 for the line itself."""
    return row & MOST


class Timeline:
    """The rows of one session. It changes only by folding, filtering and revealing."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.journal = calls.journal
        self.plan = calls.session.plan
        self._codes, self._mates = self.journal.codes, self.journal.mates
        self._depths = self.journal.depths
        self.filter = "all"
        self._open = {turn.line for turn in self.plan.open_turns}
        self._folds: dict[int, bool] = {}  # what a person folded or unfolded
        self._with_calls: set[int] = set()  # messages whose calls have rows
        self._marked = self._lines_to_mark()
        self._foldable = _one_of((CODES[TURN_START], CODES[STEP_START]))
        self._stops = _one_of(NAMING)
        self.problems = self._find_problems()
        self.rows = array("q")
        self._build()

    # ---- look-ups

    @property
    def end(self) -> int:
        """The row that says that the log ends here."""
        return key(self.journal.lines + 1)

    def index_of(self, row: int) -> int:
        """The index of a row, or of the one before the place where it would be."""
        return max(0, bisect_right(self.rows, row) - 1)

    def foldable(self, line: int) -> bool:
        """Whether a line opens something that can be folded."""
        return self._opens(line) or bool(self._naming(line) and self.calls.named(line))

    def _opens(self, line: int) -> bool:
        """Whether a line opens a turn or a step."""
        return self._codes[line - 1] in (CODES[TURN_START], CODES[STEP_START])

    def _naming(self, line: int) -> bool:
        return self._codes[line - 1] in NAMING

    def folded(self, line: int) -> bool:
        """Whether a turn, step or message is folded."""
        if not self._opens(line):
            return line not in self._with_calls
        chosen = self._folds.get(line)
        if chosen is not None:
            return chosen
        if self._codes[line - 1] == CODES[TURN_START]:
            return line not in self._open
        return self._mates[line - 1] > 0 and not self.problems_in(line, self.last_of(line))

    def is_open(self, line: int) -> bool:
        """Whether a line opened a turn that nothing closed."""
        return line in self._open

    def last_of(self, line: int) -> int:
        """The last line of what a line opens: its end, or the last line that lies in it."""
        mate = self._mates[line - 1]
        if mate:
            return int(mate)
        depth = self._depths[line - 1]
        outside = _at_most(depth).search(self._depths, line)
        return outside.start() if outside else self.journal.lines

    def problems_in(self, first: int, last: int) -> int:
        """How many problems lie on the lines from `first` to `last`."""
        return bisect_left(self.problems, key(last + 1)) - bisect_left(self.problems, key(first))

    def next_problem(self, row: int, step: int) -> int | None:
        """The next problem after (`step` 1) or before (-1) a row, round the end; None where there is none."""
        return following(self.problems, row, step)

    # ---- folds and filter

    def fold(self, row: int) -> int:
        """Fold what a row opens, else what it lies in. Returns the row that is under the cursor then."""
        line = line_of(row)
        if row == self.end or self.filter != "all":
            return row
        if call_of(row) or not self.foldable(line) or self.folded(line):
            line = line if call_of(row) else self._around(line)
            if not line:
                return row
        self._set_fold(line, True)
        return key(line)

    def unfold(self, row: int) -> int:
        """Unfold what a row opens. Returns the row that is under the cursor then."""
        line = line_of(row)
        if row != self.end and not call_of(row) and self.filter == "all" and self.foldable(line):
            self._set_fold(line, False)
        return row

    def set_filter(self, name: str) -> None:
        """Show `all` rows, `calls` or `problems`."""
        self.filter = name
        self._build()

    def reveal(self, row: int) -> int:
        """Bring a row into view, unfolding what hides it. Returns its index."""
        for _ in range(self._depths[line_of(row) - 1] + 4 if row < self.end else 2):
            index = self.index_of(row)
            shown = self.rows[index]
            if shown == row:
                return index
            if self.filter != "all":
                self.set_filter("all")
            elif self.foldable(line_of(shown)) and self.folded(line_of(shown)):
                self._set_fold(line_of(shown), False)
            elif line_of(shown) == line_of(row) and line_of(row) not in self._with_calls:
                self._set_calls(line_of(row), True)
            else:
                break
        return self.index_of(row)

    def _set_fold(self, line: int, fold: bool) -> None:
        if not self._opens(line):
            self._set_calls(line, not fold)
            return
        self._folds[line] = fold
        last = self.last_of(line)
        inside = array("q", [key(line)])
        if not fold:
            inside, last = self._walk(line, last, opened=line)
        start, stop = bisect_left(self.rows, key(line)), bisect_left(self.rows, key(last + 1))
        self.rows[start:stop] = inside

    def _set_calls(self, line: int, shown: bool) -> None:
        self._with_calls.discard(line)
        start, stop = bisect_left(self.rows, key(line)), bisect_left(self.rows, key(line + 1))
        self.rows[start:stop] = array("q", self._message(line) if shown else [key(line)])

    def _around(self, line: int) -> int:
        """The innermost turn or step that a line lies in; 0: none."""
        codes, at = self._codes, line
        while True:
            at = 1 + max(codes.rfind(CODES[type], 0, at - 1) for type in (TURN_START, STEP_START))
            if at == 0 or self.last_of(at) >= line:
                return at

    # ---- building

    def _build(self) -> None:
        lines = self.journal.lines
        if self.filter == "all":
            self.rows, _ = self._walk(1, lines)
        else:
            self.rows = array("q", sorted({*self._filtered(), *self._called(self._marked)}))
        self.rows.append(self.end)

    def _filtered(self) -> Iterator[int]:
        if self.filter == "problems":
            yield from self.problems
            yield from (key(line) for line in self._open)
            yield from (
                key(e.line)
                for owed in self.plan.owed
                for e in owed.evidence
                if e.says.startswith("dispatched")
            )
            return
        wanted = bytearray(256)
        for type in (*_CALL_TYPES, TURN_START):
            wanted[CODES[type]] = 1
        shown = compress(range(1, self.journal.lines + 1), self._codes.translate(wanted))
        yield from map(key, shown)

    def _walk(self, first: int, last: int, opened: int = 0) -> tuple[array[int], int]:
        """The rows of the lines from `first` to `last`, and the last line that they or a fold cover."""
        codes = self._codes
        small = last - first < SMALL
        stops = self._stops if small else self._foldable
        rows: array[int] = array("q")
        line = first
        while line <= last:
            match = stops.search(codes, line - 1, last)
            stop = match.start() + 1 if match else last + 1
            rows.extend(range(key(line), key(stop), 1 << SUB))
            line = stop + 1
            if match is None:
                break
            if stop != opened and self._opens(stop) and self.folded(stop):
                rows.append(key(stop))
                line = self.last_of(stop) + 1
            else:
                rows.extend(self._message(stop) if small else [key(stop)])
        if not small:
            self._insert_calls(rows, first, last, opened)
        return rows, max(last, line - 1)

    def _insert_calls(self, rows: array[int], first: int, last: int, opened: int) -> None:
        """Give the marked messages of a long stretch their rows of calls."""
        start, stop = bisect_left(self._marked, first), bisect_right(self._marked, last)
        for line in reversed(self._marked[start:stop]):
            at = bisect_left(rows, key(line))
            hidden = self._opens(line) and line != opened and self.folded(line)
            if at < len(rows) and rows[at] == key(line) and not hidden:
                rows[at : at + 1] = array("q", self._message(line))

    def _message(self, line: int) -> list[int]:
        """A message's row and those of its calls."""
        self._with_calls.add(line)
        return [key(line, call) for call in range(min(len(self.calls.named(line)), MOST) + 1)]

    def _called(self, lines: Iterable[int]) -> Iterator[int]:
        for line in lines:
            if self.filter == "calls" and self.calls.named(line):
                yield from self._message(line)

    def _lines_to_mark(self) -> list[int]:
        """The messages that name owed or left calls, and those near the end of the log."""
        codes, lines = self._codes, self.journal.lines
        marked = {owed.line for owed in self.plan.owed} | {left.line for left in self.plan.left[:MARKED]}
        marked |= set(range(max(1, lines - SMALL), lines + 1)) if self._open else set()
        return sorted(line for line in marked if codes[line - 1] in NAMING)

    def _find_problems(self) -> array[int]:
        """The rows of all problems: owed and left calls, lines that can't be read, anomalies."""
        found = {self.row_of_call(owed.line, owed.tool_call_id) for owed in self.plan.owed}
        found |= {self.row_of_call(left.line, left.tool_call_id) for left in self.plan.left}
        found |= {key(anomaly.line) for anomaly in self.plan.anomalies if anomaly.line}
        unreadable = _one_of((CODES["corrupt"], CODES["damaged"]))
        found |= {key(match.start() + 1) for match in unreadable.finditer(self._codes)}
        owing = {owed.turn_line for owed in self.plan.owed}
        found |= {key(line) for line in self._open if line not in owing}
        return array("q", sorted(found))

    def row_of_call(self, line: int, id: str) -> int:
        """The row of a call that a line names (its message's, or the dispatch itself)."""
        for number, call in enumerate(self.calls.named(line)[:MOST], start=1):
            if call.id == id:
                return key(line, number)
        return key(line)


def following(rows: array[int], row: int, step: int) -> int | None:
    """The entry of sorted `rows` after (`step` 1) or before (-1) a row, round the end; None if empty."""
    if not rows:
        return None
    at = bisect_right(rows, row) if step > 0 else bisect_left(rows, row) - 1
    return rows[at % len(rows)]


def _one_of(codes: Iterable[int]) -> re.Pattern[bytes]:
    return re.compile(b"[" + b"".join(re.escape(bytes([code])) for code in codes) + b"]")


def _at_most(depth: int) -> re.Pattern[bytes]:
    return re.compile(b"[\\x00-" + re.escape(bytes([depth])) + b"]", re.DOTALL)
