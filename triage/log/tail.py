"""The last records of a log, read from its end without the rest: to be shown, not to be judged."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from typing import Any

import orjson

from triage.log import compressed
from triage.log.blocks import BLOCK
from triage.log.lines import BLANK
from triage.log.source import open_for_reading, unreadable


def last_records(path: str, most: int) -> list[Mapping[str, Any] | bytes]:
    """At most so many records from the end of a log, the last one last.

    A line that is no whole record comes as its bytes. Nothing comes of a log that is compressed, nor of a
    line that is larger than `BLOCK` bytes. Raises Unreadable.
    """
    descriptor = open_for_reading(path)
    try:
        if compressed.is_compressed(partial(os.pread, descriptor)):
            return []
        start = max(0, os.fstat(descriptor).st_size - BLOCK)
        lines = BytesIO(os.pread(descriptor, BLOCK, start)).readlines()
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        os.close(descriptor)
    whole = [line for line in lines[1 if start else 0 :] if line.strip(BLANK)]
    return [_record(line) for line in whole[-most:]]


def _record(line: bytes) -> Mapping[str, Any] | bytes:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    return record if isinstance(record, dict) else line
