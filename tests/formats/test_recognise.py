"""Which format a log is of: one answer, whatever the order in which the formats are asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from triage.log import formats

FIXTURES = Path(__file__).parents[1] / "fixtures"
FIRST = [
    *sorted((Path(__file__).parents[2] / "sample_logs").glob("*.jsonl")),
    *(path for path in sorted(FIXTURES.rglob("*.json*")) if path.parent.name not in ("cases", "fuzz")),
]


@pytest.mark.parametrize("path", FIRST, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_record_is_recognised_by_two_formats(path: Path) -> None:
    for line in path.read_bytes().splitlines()[:50]:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict):
            sure = [f.NAME for f in formats.in_order() if f.recognise(record) or f.document(record)]
            assert len(sure) < 2


def test_a_native_log_loads_no_other_format() -> None:
    script = (
        "import sys; from triage.session import open_session; open_session(sys.argv[1]);"
        "print(*(m for m in sys.modules if m.startswith('triage.log.formats.')))"
    )
    sample = Path(__file__).parents[2] / "sample_logs" / "clean.jsonl"
    done = subprocess.run([sys.executable, "-c", script, sample], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["triage.log.formats.native"]
