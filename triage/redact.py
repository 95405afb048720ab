"""Secrets taken out of what leaves the machine: summaries, exports, plan JSON. Never out of a log.

Two signs: a text that looks like a well-known token, and a key that is named like a secret.
"""

from __future__ import annotations

import json
import re
from typing import Any

from triage.log.json_text import dumps

GONE = "[redacted]"
MOST_INSIDE = 5  # texts in texts that are taken apart as JSON

_NAME = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|client[_\-]?secret|api[_\-]?key|access[_\-]?key|"
    r"private[_\-]?key|auth|authorization|bearer|cookie|set-cookie|credentials?|session[_\-]?token|"
    r"access[_\-]?token|refresh[_\-]?token|id[_\-]?token|token|signature)"
)
_SECRET_KEY = re.compile(rf"(?:^|[_\-.]|[a-z](?=[A-Z])){_NAME}$", re.IGNORECASE)
_TOKENS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[\w\-]{20,}"
    r"|\bsk-(?:ant-|proj-)?[\w\-]{20,}|\b[rs]k_(?:live|test)_\w{16,}"
    r"|\bxox[abeoprs]-[\w\-]{10,}|\bAIza[\w\-]{30,}|\bya29\.[\w\-.]{20,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w\-]{40,}|\bSG\.[\w\-]{16,}\.[\w\-]{16,}|\bhf_[A-Za-z0-9]{30,}"
    # A JWT. What follows its run of letters is looked at once for the run, not once for each `eyJ` in it.
    r"|(?<![\w\-])(?=[\w\-]*+\.[\w\-]{8})[\w\-]*?eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*",
    re.DOTALL,
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)[\w\-.~+/]{8,}=*")
_USERINFO = re.compile(r"(?<=://)([^\s/:@\"']{0,200}):[^\s/\"']{1,200}(?=@)")
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(\\?[\"']?\s*[=:]\s*\\?[\"']?)[^\r\n\"'\\]+"
)
_ASSIGNED = re.compile(
    rf"(?i)((?<![\w\-])[\w\-]{{0,40}}?{_NAME}\\?[\"']?\s*[=:]\s*|(?<![\w\-])--[\w\-]{{0,40}}?{_NAME}\s+)"
    r"(\\?\"(?:[^\"\\]|\\[^\"])*\\?\"|'[^']*'|[\[{][^\]}]*[\]}]?|[^\s,;&\"'}\]]+)"
)


def redact_text(text: str) -> str:
    """`text` with tokens, passwords in URLs and values assigned to secret names replaced."""
    text = _TOKENS.sub(GONE, text)
    text = _HEADER.sub(rf"\1\2{GONE}", text)
    text = _BEARER.sub(rf"\1\2{GONE}", text)
    text = _USERINFO.sub(rf"\1:{GONE}", text)
    return _ASSIGNED.sub(_assigned, text)


def _assigned(match: re.Match[str]) -> str:
    value = match.group(2)
    if value.startswith(GONE[:-1]):  # a pattern before this one has been here
        return match.group()
    quote = re.match(r"\\?[\"']", value)
    mark = quote.group() if quote else ""
    return f"{match.group(1)}{mark}{GONE}{mark}"


def redact(value: Any) -> Any:
    """A JSON value of the same shape with secrets replaced: by pattern in each text, and all of what
    stands under a key that is named like one. A text that is JSON itself stays JSON.
    """
    return _redact(value, 0)


def _redact(value: Any, inside: int) -> Any:
    """`inside` counts the texts around the value that are JSON themselves."""
    root: list[Any] = [value]
    open: list[tuple[Any, Any, bool]] = [(root, 0, False)]  # not by recursion: arguments may be nested deep
    while open:
        holder, key, secret = open.pop()
        item = holder[key]
        if isinstance(item, dict):
            fields = holder[key] = dict(item)
            open += [(fields, name, secret or _is_secret(name)) for name in fields]
        elif isinstance(item, list | tuple):
            items = holder[key] = list(item)
            open += [(items, index, secret) for index in range(len(items))]
        elif secret and not isinstance(item, bool | None):
            holder[key] = GONE
        elif isinstance(item, str):
            holder[key] = _redact_json(item, inside) or redact_text(item)
    return root[0]


def _redact_json(text: str, inside: int) -> str:
    """A text that is a JSON object or list, redacted as one; "" for any other."""
    if text[:1] not in ("{", "[") or inside == MOST_INSIDE:
        return ""
    try:
        value = json.loads(text)
        fresh = _redact(value, inside + 1)
        return text if fresh == value else dumps(fresh)
    except (ValueError, RecursionError):
        return ""


def _is_secret(key: object) -> bool:
    return isinstance(key, str) and bool(_SECRET_KEY.search(key))
