"""Rows of many sessions as they are read, by worker processes where that is worth their start."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from mmap import mmap
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from struct import Struct
from time import monotonic

from triage.fleet.find import files
from triage.fleet.row import Row, in_use, read_row
from triage.log.fast import expect_many
from triage.log.writers import all_writers

FEW = 32  # files that are read faster than workers start
CHUNK = 128  # files handed to a worker at a time, at most
AHEAD = 512  # files that are looked for between two looks at the workers
POLL_SECONDS = 0.1  # between two looks whether to stop
TELL_SECONDS = 0.05  # after which a worker sends the rows that it has read, its chunk done or not
NICE = 10  # how far workers stand back behind a screen

COUNT = Struct("Q")  # of files that a worker was handed since it began
BEGUN, READ, SKIP = (place * COUNT.size for place in range(3))  # where it shares what it did, and is told

Read = tuple[str, Row | None]  # a path and its row, None for what is no session log


@dataclass(frozen=True, slots=True)
class Part:
    """What became known since the last part. `found` counts the files so far, `whole`: no more will come."""

    rows: list[Read]
    found: int
    whole: bool


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    shared: mmap
    answered: int = 0
    left: deque[str] = field(default_factory=deque)  # what it was handed and has not answered
    old: int = 0  # so many of these belong to a scan that was stopped


class Crew:
    """Worker processes that read rows. They are forked: make it before any thread. `close` ends them."""

    def __init__(self, count: int, nice: int = 0) -> None:
        context = multiprocessing.get_context("fork")
        self._workers: list[_Worker] = []
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until a worker ignores it
        try:
            for _ in range(count):
                (ours, theirs), shared = context.Pipe(), mmap(-1, 3 * COUNT.size)
                process = context.Process(target=_work, args=(ours, theirs, shared, nice), daemon=True)
                process.start()
                theirs.close()  # so that the end of the worker is seen at ours
                self._workers.append(_Worker(process, ours, shared))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        """End the workers, whatever they are at."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers.clear()

    def parts(self, paths: Iterable[str], stopped: Callable[[], bool] = lambda: False) -> Iterator[Part]:
        """The rows of `paths` as they are read, until all are or `stopped()`. One scan at a time.

        `paths` is asked for more while the workers read. Without workers the files are read here.
        """
        writers, more = None, iter(paths)
        waiting: deque[str] = deque()
        found, whole = 0, False
        try:
            while not stopped():
                if not whole:
                    new = list(islice(more, AHEAD))
                    waiting.extend(new)
                    found, whole = found + len(new), len(new) < AHEAD
                self._hand_out(waiting)
                writers = all_writers() if writers is None else writers  # while the workers begin
                rows = self._answers(waiting, POLL_SECONDS if whole else 0)
                if not self._workers and waiting:
                    path = waiting.popleft()
                    rows.append((path, _read(path)))
                yield Part([(path, row and in_use(row, writers)) for path, row in rows], found, whole)
                if whole and not waiting and not any(len(each.left) > each.old for each in self._workers):
                    return
        finally:
            self._drop()

    def _drop(self) -> None:
        """Let the workers skip what they were handed and have not read: it is of a scan that was stopped."""
        for worker in self._workers:
            worker.old = len(worker.left)
            COUNT.pack_into(worker.shared, SKIP, worker.answered + worker.old)

    def _hand_out(self, waiting: deque[str]) -> None:
        """Hand what waits to the workers that have nothing to do: less to each as the end is near.

        To no other one: while it sends, it doesn't listen, and we would wait for each other.
        """
        for worker in self._workers:
            if waiting and not worker.left:
                count = min(CHUNK, 1 + len(waiting) // (2 * len(self._workers)))
                paths = [waiting.popleft() for _ in range(count)]
                worker.left.extend(paths)
                with suppress(OSError):  # it has ended, which is seen below
                    worker.connection.send(paths)

    def _answers(self, waiting: deque[str], seconds: float) -> list[Read]:
        """What the workers have read, waiting for it for at most some seconds."""
        rows: list[Read] = []
        busy = {worker.connection: worker for worker in self._workers if worker.left}
        for ready in wait(list(busy), seconds) if busy else ():
            worker = busy[ready]  # type: ignore[index]
            try:
                for values in worker.connection.recv():
                    rows += _answered(worker, None if values is None else Row(*values))
            except (EOFError, OSError):
                rows += self._lost(worker, waiting)
        return rows

    def _lost(self, worker: _Worker, waiting: deque[str]) -> list[Read]:
        """A worker was ended from outside: for all we know by the file that it was at, if it was at one."""
        self._workers.remove(worker)
        begun, read = (COUNT.unpack_from(worker.shared, place)[0] for place in (BEGUN, READ))
        left, at = list(worker.left), read - worker.answered if begun > read else -1
        waiting.extendleft(path for place, path in enumerate(left) if place >= worker.old and place != at)
        if not worker.old <= at < len(left):
            return []
        why = f"{left[at]}: the process that read it ended"
        return [(left[at], Row(left[at], None, "unreadable", why=why))]


def _answered(worker: _Worker, row: Row | None) -> list[Read]:
    path = worker.left.popleft()
    worker.answered += 1
    if worker.old:
        worker.old -= 1
        return []
    return [(path, row)]


@dataclass(frozen=True, slots=True)
class Scan:
    """The sessions below some paths, and who reads them."""

    starts: Sequence[str]
    crew: Crew

    def parts(self, stopped: Callable[[], bool]) -> Iterator[Part]:
        """The rows as they are found and read, until all are or `stopped()`."""
        return self.crew.parts(files(self.starts), stopped)


def rows(paths: Iterable[str], workers: int | None = None) -> Iterator[Read]:
    """Each path with its row, as they are read; None for what is no session log.

    `workers`: how many processes (default: one a core; few files are read here).
    """
    count = cores() if workers is None else workers
    more = iter(paths)
    first = list(islice(more, FEW + 1))
    crew = Crew(count if count > 1 and len(first) > FEW else 0)
    try:
        for part in crew.parts(chain(first, more)):
            yield from part.rows
    finally:
        crew.close()


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(path: str) -> Row | None:
    """One bad file never stops the rest, whatever it makes of us."""
    try:
        return read_row(path)
    except Exception as error:
        from triage.trouble import keep_trace

        keep_trace(error)
        why = f"{path}: a fault in triage itself ({type(error).__name__}), its trace is in the state folder"
        return Row(path, None, "unreadable", why=why)


def _work(ours: Connection, theirs: Connection, shared: mmap, nice: int) -> None:
    """A worker: it answers with the rows of the paths that it is handed, until nobody asks any more."""
    ours.close()  # so that the end of the asker is seen at theirs
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(nice)
    expect_many()
    gc.freeze()  # what is here already is never garbage
    count, rows, told = 0, [], monotonic()
    with suppress(EOFError, OSError):
        while True:
            paths = theirs.recv()
            for path in paths:
                count += 1
                COUNT.pack_into(shared, BEGUN, count)
                skipped = count <= COUNT.unpack_from(shared, SKIP)[0]
                rows.append(None if skipped else _read(path))
                COUNT.pack_into(shared, READ, count)
                if path is paths[-1] or monotonic() > told + TELL_SECONDS:
                    theirs.send([None if row is None else tuple(row) for row in rows])  # half the work
                    rows, told = [], monotonic()
