"""The quick way through a native log gives what a full parse of every line gives, on every input."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from triage.contract import plan_row
from triage.log import fast, journal
from triage.session import open_session

SAMPLES = sorted((Path(__file__).parents[2] / "sample_logs").glob("*.jsonl"))
CASES = 150  # damaged versions of each sample


class NeverQuick:
    """Stands in for the quick way: every line is parsed whole."""

    def __init__(self, *arguments: object) -> None:
        self.whole = arguments[-2]

    def feed(self, lines, offsets) -> None:
        for line, raw in enumerate(lines, len(offsets)):
            offsets.append(offsets[-1] + len(raw))
            self.whole(line, raw)


def seen(path: Path) -> tuple[object, ...]:
    """Everything that a reader of the log sees of it."""
    session = open_session(str(path))
    j = session.journal
    return (
        plan_row(session),
        session.last_time,
        bytes(j.codes),
        bytes(j.depths),
        list(j.mates),
        list(j.offsets),
    )


def both(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[object, object]:
    quick = seen(path)
    with monkeypatch.context() as patch:
        patch.setattr(fast, "Quick", NeverQuick)
        return quick, seen(path)


def damage(lines: list[bytes], rng: random.Random, kinds: int) -> list[bytes]:
    """One or two things that happen to real files, of the first `kinds` below."""
    lines = list(lines)
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(lines))
        line = lines[at]
        cut = rng.randrange(len(line)) if line else 0
        kind = rng.randrange(kinds)
        if kind == 0:
            lines[at] = line[:cut] + lines[(at + 1) % len(lines)]  # torn, and glued to another
        elif kind == 1:
            lines[at] = line[:cut] + line  # torn, and written again
        elif kind == 2:
            lines[at] = line.replace(b"\n", b"")
        elif kind == 3:
            lines[at] = b"\xef\xbb\xbf" + line
        elif kind == 4:
            lines[at] = line[:cut] + b"\0" * rng.randrange(1, 9) + line[cut:]
        elif kind == 5:
            del lines[at : at + rng.randint(1, 3)]
        elif kind == 6:
            lines.insert(rng.randrange(len(lines) + 1), line)
        elif kind == 7:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], line
        elif kind == 8:
            lines[at] = line.replace(b'":', b'": ').replace(b',"', b', "')
        elif kind == 9:
            lines[at:] = [*lines[at:-1], lines[-1][:cut]]
        elif kind == 10:
            lines[at] = line.replace(b"\n", b"\r\n")
        elif kind == 11:
            lines[at] = line[:cut] + bytes([rng.randrange(256)]) + line[cut + 1 :]
        elif kind == 12:
            lines[at] = line[:cut] + line[cut + rng.randint(1, 400) :]
        else:
            lines[at] = line[:-3] + b',"tool_call_id":"x"}}\n'
        lines = lines or [b"\n"]
    return lines


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize(("probe_from", "kinds"), [(1 << 60, 14), (0, 11)], ids=["parsed", "probed"])
def test_a_damaged_sample_reads_the_same_both_ways(
    sample: Path, probe_from: int, kinds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast, "PROBE_FROM", probe_from)
    rng = random.Random(sample.name)
    lines = sample.read_bytes().splitlines(keepends=True)
    large = len(lines) > 1000
    path = tmp_path / "log.jsonl"
    for case in range(CASES // 30 if large else CASES):
        path.write_bytes(b"".join(damage(lines, rng, kinds) if case else lines))
        quick, whole = both(path, monkeypatch)
        assert quick == whole, f"case {case}"


def test_a_large_log_is_read_the_quick_way_and_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast, "PROBE_FROM", 0)
    path = tmp_path / "log.jsonl"
    path.write_bytes(next(sample for sample in SAMPLES if sample.stem == "large").read_bytes())
    slow = 0
    index = journal._index

    def counted(*arguments):
        nonlocal slow
        slow += 1
        return index(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_index", counted)
        lines = open_session(str(path)).journal.lines
    assert slow < lines / 10
    quick, whole = both(path, monkeypatch)
    assert quick == whole
