"""Write `sample_logs/large.jsonl`, the one sample that is not written by hand.

    python -m tests.make_samples [FILE] [--bytes N]

The same arguments give the same bytes, on every machine. The log ends as a crash does: an open turn, a
dispatched call without its result, two calls that were never dispatched, and a line cut in the middle.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

LARGE = Path(__file__).parents[1] / "sample_logs" / "large.jsonl"
SIZE = 2_000_000  # bytes; the last turn comes on top
SEED = 20260520

SERVICES = ("pay", "cart", "search", "mail", "stock", "orders", "login", "images", "reports", "shipping")
FILES = ("api.py", "client.py", "models.py", "retry.py", "queue.py", "settings.py", "views.py", "tasks.py")
NOUNS = ("timeout", "currency", "address", "session", "cursor", "webhook", "invoice", "voucher", "backoff")
REQUESTS = (
    "run the tests of {service}",
    "why is {service} slow since this morning?",
    "rename {noun} to {noun}_id in {service}",
    "restart {service} and watch its errors",
    "what changed in {service} last week?",
    "show me the logs of {service} around the last alert",
    "add a test for the {noun} in {service}",
    "plan the terraform change for {service}",
)
THOUGHTS = (
    "Looking at {service} first.",
    "The {noun} is read in two places; checking both.",
    "That is what the alert said. One more look before I change anything.",
    "",
    "The test fails for another reason than I thought: the {noun} is empty.",
)
ANSWERS = (
    "Done. The {noun} of {service} is in order again, and nothing else changed.",
    "It was the {noun}: {service} read it before it was set. Fixed and tested.",
    "Nothing to fix in {service}: the numbers are those of any other day.",
)
Call = tuple[str, dict[str, Any], str | None, float]  # name, arguments, result (None: never came), seconds


class Writer:
    """Lines of a log, one after the other: numbers them and moves the clock."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._clock = datetime(2026, 5, 18, 6, 0, tzinfo=UTC)
        self._seq = 0
        self._tokens = 4000
        self.turns = 0

    def upto(self, number: int) -> int:
        """A number from 0 to one less than `number`."""
        return int(self._random.random() * number)

    def pick(self, choices: tuple[str, ...]) -> str:
        return choices[self.upto(len(choices))]

    def filled(self, templates: tuple[str, ...], service: str) -> str:
        return self.pick(templates).format(service=service, noun=self.pick(NOUNS))

    def line(self, type: str, seconds: float, **data: Any) -> str:
        self._clock += timedelta(seconds=round(seconds, 3))
        time = self._clock.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = {"seq": self._seq, "type": type, "time": time, "data": data}
        self._seq += 1
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"

    def turn(self) -> Iterator[str]:
        """A turn that ended well: some steps with calls, and an answer."""
        service = self.pick(SERVICES)
        self._tokens = 4000 + self.upto(3000)
        yield from self.opening(self.filled(REQUESTS, service))
        steps = 1 + self.upto(5)
        for step in range(1, steps + 1):
            calls = [self.call(service) for _ in range(1 + self.upto(10) // 7)]
            yield from self.step(step, self.filled(THOUGHTS, service), calls, len(calls))
            yield self.line("step_end", 0.005, turn=self.turns, step=step, outcome="ok")
        yield from self.step(steps + 1, self.filled(ANSWERS, service), [], 0)
        yield self.line("step_end", 0.005, turn=self.turns, step=steps + 1, outcome="ok")
        yield self.line("turn_end", 0.004, turn=self.turns, steps=steps + 1, reason="complete")

    def opening(self, request: str) -> Iterator[str]:
        self.turns += 1
        yield self.line("turn_start", 20 + self.upto(300), turn=self.turns)
        yield self.line("user_message", 0.002, content=request)

    def step(self, step: int, text: str, calls: list[Call], dispatched: int) -> Iterator[str]:
        """A step without its end; only the first `dispatched` calls reach their tools."""
        yield self.line("step_start", 0.006, turn=self.turns, step=step)
        request = f"req_{self._seq:06x}"
        yield self.line("request_header", 0.01, request_id=request, model="large-2", max_output_tokens=8192)
        ids = [f"call_{self._seq:05x}{letter}" for letter in "abc"[: len(calls)]]
        data: dict[str, Any] = {"content": text}
        if calls:
            named = zip(ids, calls, strict=True)
            data["tool_calls"] = [{"id": id, "name": c[0], "arguments": c[1]} for id, c in named]
        data["usage"] = {"input_tokens": self._tokens, "output_tokens": 40 + self.upto(400)}
        yield self.line("assistant_message", 1 + self.upto(6000) / 1000, **data)
        for id, (name, arguments, result, seconds) in list(zip(ids, calls, strict=True))[:dispatched]:
            yield self.line("tool_call", 0.01, tool_call_id=id, name=name, arguments=arguments)
            if result is None:
                return
            self._tokens += len(result) // 4
            took = {"duration_ms": round(seconds * 1000)}
            yield self.line("tool_result", seconds, tool_call_id=id, name=name, content=result, metadata=took)

    def call(self, service: str) -> Call:
        """A call with its result. One in about forty results is large."""
        path = f"/srv/{service}/src/{self.pick(FILES)}"
        kind = self.upto(40)
        if kind == 0:
            return "bash", {"command": f"kubectl logs deploy/{service} --since 1h"}, self.logs(service), 1.9
        if kind < 14:
            return "read_file", {"path": path}, self.source(8 + self.upto(30)), 0.02
        if kind < 22:
            noun = self.pick(NOUNS)
            hits = [f"{path}:{self.upto(400)}: {noun} = {noun}_of(order)" for _ in range(1 + self.upto(6))]
            return "grep", {"pattern": noun, "path": f"/srv/{service}"}, "\n".join(hits), 0.1
        if kind < 28:
            old, new = self.pick(NOUNS), self.pick(NOUNS)
            arguments = {"path": path, "old": f"{old} = None", "new": f"{new} = default({old!r})"}
            return "edit_file", arguments, f"1 replacement in {path}", 0.02
        if kind < 35:
            passed = 20 + self.upto(300)
            result = "." * passed + f"\n{passed} passed in {passed / 9:.2f}s\n"
            return "bash", {"command": f"cd /srv/{service} && pytest -q"}, result, passed / 9
        errors = json.dumps({"service": service, "requests": 9000 + self.upto(9000), "errors": self.upto(40)})
        return "http_get", {"url": f"https://metrics.example/{service}?minutes=15"}, errors, 0.2

    def source(self, lines: int) -> str:
        rows = []
        for number in range(lines):
            noun, other = self.pick(NOUNS), self.pick(NOUNS)
            rows.append(f"def {noun}_{number}({other}):\n    return {noun}_of({other}, {self.upto(90)})\n")
        return "\n".join(rows)

    def logs(self, service: str) -> str:
        rows = []
        for number in range(60 + self.upto(500)):
            level, noun = self.pick(("INFO", "INFO", "INFO", "WARN", "ERROR")), self.pick(NOUNS)
            took, minute, second = self.upto(900), number // 12 % 60, number * 5 % 60
            order, time = self.upto(99999), f"08:{minute:02}:{second:02}"
            rows.append(f"{time} {level:5} {service}.{noun} order={order} {took}ms")
        return "\n".join(rows)

    def crash(self) -> Iterator[str]:
        """The last turn: cut short, one call dispatched, a message torn."""
        yield from self.opening("ship the release")
        look: Call = ("read_file", {"path": "/srv/pay/CHANGELOG.md"}, "## 4.12.0\n- refunds by charge", 0.02)
        yield from self.step(1, "The changelog first.", [look], 1)
        yield self.line("step_end", 0.005, turn=self.turns, step=1, outcome="ok")
        deploy: Call = ("bash", {"command": "terraform -chdir=/srv/pay/infra apply -auto-approve"}, None, 0)
        restart: Call = ("bash", {"command": "kubectl -n payments rollout restart deploy/pay"}, None, 0)
        yield from self.step(2, "Applying, restarting, and reading it once more.", [deploy, restart, look], 1)
        message = self.line("user_message", 41, content="stop, the change freeze starts at noon, and the")
        yield message[: -len('and the"}}\n')]


def large(size: int = SIZE, seed: int = SEED) -> Iterator[str]:
    """The lines of a log of about `size` bytes."""
    writer = Writer(seed)
    prompt = "You are the agent of the platform team. Ask before you change production."
    written = 0
    yield writer.line("system_message", 0, content=prompt)
    while written < size:
        for line in writer.turn():
            written += len(line.encode())
            yield line
    yield from writer.crash()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.make_samples", description="Write a large log.")
    parser.add_argument("file", nargs="?", type=Path, default=LARGE, help="default: the repository's sample")
    parser.add_argument("--bytes", type=int, default=SIZE, help="about how large (default: %(default)s)")
    options = parser.parse_args()
    with options.file.open("w", encoding="utf-8", newline="") as file:
        file.writelines(large(options.bytes))


if __name__ == "__main__":
    main()
