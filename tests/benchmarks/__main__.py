"""`python -m tests.benchmarks`: measure, print each ratio beside its goal, write the README's table."""

from __future__ import annotations

import argparse
import compileall
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import triage
from tests.benchmarks.rows import ROWS, Inputs

README = Path(__file__).parents[2] / "README.md"
TABLE = re.compile(r"(<!-- benchmarks -->\n).*?(<!-- /benchmarks -->)", re.DOTALL)
HEAD = ("| what | measured: median (least to most) | goal | met |", "|---|---|---|---|")
UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rows that are asked for. Returns the exit code."""
    options_of = argparse.ArgumentParser("python -m tests.benchmarks", description=__doc__)
    options_of.add_argument("--size", type=_size, default="1G", help="bytes of the large logs (default: 1G)")
    options_of.add_argument("--lines", type=int, default=1_000_000, help="lines of the long timeline")
    options_of.add_argument("--sessions", type=int, default=10_000, help="sessions of the scan")
    options_of.add_argument("--times", type=int, default=3, help="runs of each row (default: 3)")
    options_of.add_argument("--keys", type=int, default=40, help="keys pressed for one value (default: 40)")
    options_of.add_argument("--rows", default="", help="only rows whose name holds this text")
    options_of.add_argument("--readme", action="store_true", help="write the table into the README")
    options = options_of.parse_args(arguments)
    rows = [row for row in ROWS if options.rows in row.name]
    compileall.compile_dir(*triage.__path__, quiet=1)  # as where it was installed
    lines = list(HEAD)
    with tempfile.TemporaryDirectory(prefix="triage-benchmarks-") as folder:
        inputs = Inputs(Path(folder), options.size, options.lines, options.sessions, options.keys)
        print(*lines, sep="\n", flush=True)  # noqa: T201
        for row in rows:
            lines.append(row.format(row.measure(inputs, options.times)))
            print(lines[-1], flush=True)  # noqa: T201
    if options.readme:
        write(lines, options.size)
    return 0


def _size(text: str) -> int:
    unit = UNITS.get(text[-1:].upper(), 0)
    return int(float(text[:-1]) * unit) if unit else int(text)


def write(lines: Sequence[str], size: int) -> None:
    """Put a table between the README's two markers."""
    cores = len(os.sched_getaffinity(0))
    version = ".".join(map(str, sys.version_info[:3]))
    load = f"load {os.getloadavg()[0]:.1f} at the end"
    says = f"Large logs of {size / 1e6:,.0f} MB; {cores} cores, CPython {version}, {load}."
    table = "\n".join((says, "", *lines)) + "\n"
    text = README.read_text("utf-8")
    README.write_text(TABLE.sub(lambda match: match[1] + table + match[2], text), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
