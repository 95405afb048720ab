"""The same rows from a Dask cluster that exists already, over any URL that fsspec reads. Read-only.

Needs the extra `triage[fleet]`. Every file is read by the same function as here; what is not on the
worker's own disk is fetched to a temporary file first.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from triage.fleet.find import candidates
from triage.fleet.row import Row, read_row

INSTALL = "scanning on a cluster needs the extra 'fleet': pip install 'triage[fleet]'"
LARGEST = 4 << 30  # bytes of a remote file that is fetched


class NoFleet(Exception):
    """The extra is not installed, or the scheduler can't be reached."""


def files_of(url: str) -> list[str]:
    """The files at or below a URL, as URLs; a path or `file://` gives paths, as a scan here does."""
    fsspec = _fsspec()
    if "://" not in url or url.startswith("file://"):
        return list(candidates(url.removeprefix("file://")))
    filesystem, path = fsspec.core.url_to_fs(url)
    found = sorted(filesystem.find(path)) or [path]
    return [filesystem.unstrip_protocol(name) for name in found]


def rows(scheduler: str, files: Sequence[str]) -> Iterator[Row | None]:
    """The row of each file, as the cluster finishes them. Raises NoFleet."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise NoFleet(INSTALL) from error
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise NoFleet(f"the scheduler {scheduler} can't be reached: {error}") from error
    with client:
        futures = {client.submit(remote_row, file, pure=False): file for file in files}
        for future in as_completed(futures):
            fault = future.exception()
            yield future.result() if fault is None else _failed(futures[future], fault)


def remote_row(file: str) -> Row | None:
    """The row of one file, wherever it lies: what a worker runs."""
    if "://" not in file:
        return read_row(file)
    filesystem, path = _fsspec().core.url_to_fs(file)
    try:
        if filesystem.size(path) > LARGEST:
            return Row(file, None, "unreadable", why=f"{file} is too large to be fetched")
        with tempfile.TemporaryDirectory(prefix="triage-") as folder:
            copy = os.path.join(folder, os.path.basename(path) or "log")
            filesystem.get_file(path, copy)
            row = read_row(copy)
            return None if row is None else row._replace(path=file, why=row.why.replace(copy, file))
    except Exception as error:
        return _failed(file, error)


def _failed(file: str, error: BaseException) -> Row:
    return Row(file, None, "unreadable", why=f"{file} could not be read: {type(error).__name__}")


def _fsspec() -> Any:
    try:
        import fsspec.core
    except ImportError as error:
        raise NoFleet(INSTALL) from error
    return fsspec
