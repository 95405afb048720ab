"""The benchmarks run, and measure something in every row. How much it is, is no test's business."""

from __future__ import annotations

import pytest

from tests.benchmarks.__main__ import README, TABLE, main
from tests.benchmarks.rows import ROWS

TINY = ("--size", "300K", "--lines", "500", "--sessions", "4", "--times", "1", "--keys", "4")


def test_every_row_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(TINY) == 0
    printed = capsys.readouterr().out
    for row in ROWS:
        assert f"| {row.name} |" in printed
    assert printed.count("not measured") in (0, 2), "only what needs lnav may be left out"


def test_the_readme_has_a_place_for_the_table_with_every_row() -> None:
    table = TABLE.search(README.read_text("utf-8"))
    assert table is not None
    assert all(f"| {row.name} |" in table[0] for row in ROWS)
