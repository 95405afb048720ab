"""A scan on a Dask cluster gives byte for byte the rows of a scan here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        yield cluster.scheduler_address


def scan(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "triage", "scan", "--json", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False)


def test_two_workers_give_the_rows_of_a_scan_here(scheduler: str) -> None:
    here, there = scan("sample_logs"), scan("sample_logs", "--scheduler", scheduler)
    assert here.stdout and (there.stdout, there.returncode) == (here.stdout, here.returncode)


def test_a_bad_file_is_a_row_and_never_stops_the_rest(scheduler: str, tmp_path: Path) -> None:
    clean = (ROOT / "sample_logs" / "clean.jsonl").read_bytes()
    (tmp_path / "a.jsonl").write_bytes(clean)
    done = scan(f"file://{tmp_path}", "memory://nowhere/b.jsonl", "--scheduler", scheduler)
    rows = done.stdout.decode().splitlines()
    assert len(rows) == 2 and '"unreadable"' in rows[0] and '"clean"' in rows[1]


def test_a_scheduler_that_is_not_there_is_one_clear_line() -> None:
    done = scan("sample_logs", "--scheduler", "no-such-scheme://127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1 and b"can't be reached" in done.stderr
