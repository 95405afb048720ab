"""Rows of many sessions, from worker processes where that is worth their start."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from triage.fleet.row import Row, read_row
from triage.log.writers import Holder, all_writers

FEW = 32  # files that are read faster than workers start
CHUNK = 64  # files handed to a worker at a time


def rows(paths: Sequence[str], workers: int | None = None) -> Iterator[Row | None]:
    """The row of each path, in the order given; None for what is no session log.

    `workers`: how many processes (default: one a core; few files are read here).
    """
    holders = all_writers()
    count = len(os.sched_getaffinity(0)) if workers is None else workers
    if count < 2 or len(paths) <= FEW:
        for path in paths:
            yield read_row(path, holders)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        yield from pool.map(partial(_chunk_row, holders), paths, chunksize=CHUNK)


def _chunk_row(holders: Mapping[tuple[int, int], Holder], path: str) -> Row | None:
    return read_row(path, holders)
