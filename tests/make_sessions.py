"""Make a folder of many small sessions: `python -m tests.make_sessions FOLDER [COUNT]`.

A tenth of them crashed, some are damaged, a few files are no logs. The same folder on every machine.
"""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.helpers import GARBAGE, Happening, dispatch, encoded, names, result, speaks, step_end, step_start
from tests.helpers import turn_end as ends
from tests.helpers import turn_start as starts
from tests.helpers import user as says

CALLS = (
    ("http_post", {"url": "https://pay.example/v1/refunds", "id": "re_91"}),
    ("bash", {"command": "kubectl rollout restart deploy/pay"}),
    ("read_file", {"path": "CHANGELOG.md"}),
    ("write_file", {"path": "src/part.py", "content": "import os\n" * 40}),
)
TASKS = ("ship the release", "look at the parts", "refund the second charge", "clean up the branches")
SINCE = datetime(2026, 5, 1, tzinfo=UTC)


def session(chance: random.Random) -> bytes:
    """The bytes of one session."""
    happenings: list[Happening] = []
    for turn in range(1, chance.randint(2, 6)):
        tool = chance.choice(CALLS)
        call = (f"call_{turn}", *tool)
        happenings += [starts(turn), says(f"{chance.choice(TASKS)}, part {chance.randint(1, 99)}")]
        happenings += [step_start(step=1), names(call), dispatch(call[0], call[1], arguments=call[2])]
        happenings += [result(call[0], "done\n" * chance.randint(1, 60)), step_end(step=1)]
        happenings += [step_start(step=2), speaks("That is done."), step_end(step=2), ends(turn=turn)]
    if chance.random() < 0.1:
        calls = [(f"call_9{n}", *chance.choice(CALLS)) for n in range(chance.randint(1, 3))]
        happenings += [starts(9), says(chance.choice(TASKS)), step_start(step=1), names(*calls)]
        happenings += [dispatch(calls[0][0], calls[0][1])] if chance.random() < 0.7 else []
    if chance.random() < 0.02:
        happenings.insert(chance.randrange(len(happenings)), GARBAGE)
    began = SINCE + timedelta(minutes=chance.randrange(28 * 24 * 60))
    lines = []
    for seq, happening in enumerate(happenings):
        time = f"{began + timedelta(seconds=7 * seq):%Y-%m-%dT%H:%M:%S.000Z}"
        lines.append(encoded(happening if isinstance(happening, bytes) else {**happening, "time": time}, seq))
    text = b"".join(line + b"\n" for line in lines)
    return text[: -chance.randint(2, 60)] if chance.random() < 0.02 else text


def main(folder: str, count: str = "10000") -> None:
    chance = random.Random(7)
    for number in range(int(count)):
        path = Path(folder, f"host-{number % 7}", f"day-{number % 28 + 1:02}", f"sess_{number:05}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(session(chance) if chance.random() > 0.005 else b"notes, no log\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
