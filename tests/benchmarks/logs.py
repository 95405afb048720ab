"""Seeded logs of any size: as agents write them, with the oddities that real ones have, ending in a crash.

Three shapes: `mixed` has lines of about 1 KB, `chatty` of 350 bytes, `fat` of 7 KB with pictures among them.
Quoted log lines and JSON stand in the texts, and `type` and `seq` inside the arguments of calls, to fool
whoever looks for them without parsing.
"""

from __future__ import annotations

import base64
import json
import math
import random
from bisect import bisect
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate

# Of the results of a shape: the median of their bytes, how far they spread, the share of pictures.
SHAPES = {"mixed": (1000, 1.5, 0.0002), "chatty": (250, 0.4, 0.0), "fat": (9000, 1.7, 0.001)}
LARGEST = 200_000  # bytes of a result that is text
PICTURE = 400_000, 2_000_000  # bytes
START = datetime(2026, 5, 20, 9, tzinfo=UTC)
_TOOLS = (b"bash", b"read_file", b"edit_file", b"search", b"python")
_SAID = (
    "the build failed in part two of the test suite, see the report\n",
    '    return render(template, {"user": request.user, "retries": 3})\n',
    "WARNING timeout after 30 s, trying again with a smaller batch\r\n",
    "\x1b[32mok\x1b[0m 118 passed in 4.2 s\n",
    "größer als erwartet: 日本語 ✓ naïve café\n",
    'C:\\agents\\work\t"quoted"\n',
    '{"seq":7,"type":"turn_end","time":"2026-01-01T00:00:00Z","data":{}}\n',
    '{"type": "tool_result", "seq": 41, "text": "an example"}\n',
)
_PLAIN = 40  # plain sentences for each of these


@lru_cache(maxsize=1)
def _material() -> tuple[bytes, list[int], bytes]:
    """Escaped text, the places where it may be cut, and a picture."""
    rng = random.Random(5)
    said = [*_SAID, *_SAID[:3] * _PLAIN]
    texts = [json.dumps(text, ensure_ascii=i % 3 == 0)[1:-1].encode() for i, text in enumerate(said)]
    pieces = rng.choices(texts, k=8000)
    edges = [0, *accumulate(map(len, pieces))]
    return b"".join(pieces), edges, base64.b64encode(rng.randbytes(PICTURE[1] * 2))


class Writer:
    """Makes the lines of one log. `odd` is the share of lines with shuffled keys, and that with spaces."""

    def __init__(self, shape: str, seed: int = 7, odd: float = 0.02) -> None:
        self._rng = random.Random(f"{shape} {seed}")
        self._median, self._spread, self._pictures = SHAPES[shape]
        self._odd = odd
        self._text, self._edges, self._picture = _material()
        self._seconds = 0.0
        self.seq = self._turn = self._call = 0

    def turn(self, crash: bool = False) -> Iterator[bytes]:
        """The lines of one turn; with `crash` it stops inside the first result of its last step."""
        rng = self._rng
        self._turn += 1
        turn = b'"turn_id":"t%d"' % self._turn
        yield self._line(b"user_message", b'"content":' + self._string(rng.randint(20, 600)))
        yield self._line(b"turn_start", turn)
        steps = rng.randint(1, 12)
        for number in range(steps):
            last = number == steps - 1
            step = turn + b',"step_id":"%d.%d"' % (self._turn, number)
            yield self._line(b"step_start", step)
            calls = [
                self._new_call() for _ in range(0 if last and not crash else rng.choice((1, 1, 1, 2, 3)))
            ]
            named = b",".join(b'{"id":"%s","name":"%s","arguments":{%s}}' % call for call in calls)
            content = self._string(rng.randint(0, 500))
            yield self._line(b"assistant_message", b'"content":%s,"tool_calls":[%s]' % (content, named))
            for call in calls:
                yield self._line(b"tool_call", b'"tool_call_id":"%s","name":"%s","arguments":{%s}' % call)
            rng.shuffle(calls)
            for id, _, _ in calls:
                line = self._result(id)
                if last:
                    yield line[: len(line) // 2]
                    return
                yield line
            yield self._line(b"step_end", step + b',"finish_reason":"tool_calls"')
        yield self._line(b"turn_end", turn + b',"status":"ok","usage":{"type":"tokens","output":%d}' % steps)

    def _line(self, kind: bytes, data: bytes) -> bytes:
        rng = self._rng
        self._seconds += rng.random()
        time = (START + timedelta(seconds=self._seconds)).isoformat(timespec="milliseconds").encode()
        keys = [b'"seq":%d' % self.seq, b'"type":"%s"' % kind, b'"time":"%s"' % time, b'"data":{%s}' % data]
        self.seq += 1
        if rng.random() < self._odd:
            rng.shuffle(keys)
        if rng.random() < self._odd / 2:
            return b"{ " + b", ".join(key.replace(b'":', b'": ', 1) for key in keys) + b" }\n"
        return b"{" + b",".join(keys) + b"}\n"

    def _string(self, size: int) -> bytes:
        start = self._edges[self._rng.randrange(len(self._edges) // 2)]
        return b'"' + self._text[start : self._edges[bisect(self._edges, start + size)]] + b'"'

    def _new_call(self) -> tuple[bytes, bytes, bytes]:
        rng = self._rng
        self._call += 1
        kind = rng.random()
        if kind < 0.6:
            arguments = b'"command":' + self._string(rng.randint(60, 320))
        elif kind < 0.9:
            arguments = b'"path":"src/part_%d.py","limit":%d' % (self._call, rng.randint(1, 900))
        else:
            arguments = b'"type":"turn_end","seq":1,"items":[{"type":"x","id":"y"}]'
        return b"call_%08x%08x" % (self._call, rng.getrandbits(32)), rng.choice(_TOOLS), arguments

    def _result(self, id: bytes) -> bytes:
        rng = self._rng
        if rng.random() < self._pictures:
            size = rng.randint(*PICTURE)
            content = b'[{"type":"image","media_type":"image/png","data":"%s"}]' % self._picture[:size]
        else:
            size = int(self._median * math.exp(rng.gauss(0, self._spread)))
            content = self._string(min(max(size, 200), LARGEST))
            if rng.random() < 0.05:
                content = b'[{"type":"text","text":%s}]' % content
        fields = [
            b'"tool_call_id":"%s"' % id,
            b'"content":' + content,
            b'"duration_ms":%d' % rng.randint(1, 90000),
        ]
        if rng.random() < self._odd:
            fields.reverse()
        return self._line(b"tool_result", b",".join(fields))


def write_log(path: str, size: int, shape: str, seed: int = 7) -> int:
    """Write a log of at least `size` bytes that ends in a crash. Returns how many events it has."""
    writer, written = Writer(shape, seed), 0
    with open(path, "wb", buffering=1 << 20) as out:
        while written < size:
            written += sum(map(out.write, writer.turn()))
        out.writelines(writer.turn(crash=True))
    return writer.seq
