"""Secrets taken out of what leaves the machine: summaries, exports, plan JSON. Never out of a log.

Two signs: a text that looks like a well-known token, and a key that is named like a secret.
"""

from __future__ import annotations

import re
from typing import Any

GONE = "[redacted]"

_NAME = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|client_?secret|api_?key|access_?key|private_?key|auth|"
    r"authorization|bearer|cookie|set-cookie|credentials?|session_?token|access_?token|refresh_?token|"
    r"id_?token|token|signature)"
)
_SECRET_KEY = re.compile(rf"(?:^|[_\-.]|[a-z](?=[A-Z])){_NAME}$", re.IGNORECASE)
_TOKENS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[\w\-]{20,}"
    r"|\bsk-(?:ant-|proj-)?[\w\-]{20,}|\b[rs]k_(?:live|test)_\w{16,}"
    r"|\bxox[abeoprs]-[\w\-]{10,}|\bAIza[\w\-]{30,}|\bya29\.[\w\-.]{20,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w\-]{40,}|\bSG\.[\w\-]{16,}\.[\w\-]{16,}|\bhf_[A-Za-z0-9]{30,}"
    r"|\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*",
    re.DOTALL,
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)[\w\-.~+/]{8,}=*")
_USERINFO = re.compile(r"(?<=://)([^\s/:@\"']{0,200}):[^\s/@\"']{1,200}(?=@)")
_ASSIGNED = re.compile(
    rf"(?i)((?<![\w\-])[\w\-]{{0,40}}?{_NAME}\\?[\"']?\s*[=:]\s*)(\\?\"(?:[^\"\\]|\\[^\"])*\\?\"|'[^']*'|[^\s,;&\"'}}\]]+)"
)


def redact_text(text: str) -> str:
    """`text` with tokens, passwords in URLs and values assigned to secret names replaced."""
    text = _TOKENS.sub(GONE, text)
    text = _BEARER.sub(rf"\1\2{GONE}", text)
    text = _USERINFO.sub(rf"\1:{GONE}", text)
    return _ASSIGNED.sub(_assigned, text)


def _assigned(match: re.Match[str]) -> str:
    value = match.group(2)
    quote = re.match(r"\\?[\"']", value)
    mark = quote.group() if quote else ""
    return f"{match.group(1)}{mark}{GONE}{mark}"


def redact(value: Any, *, depth: int = 200) -> Any:
    """A JSON value with secrets replaced: whole under a key named like one, by pattern in each text."""
    if isinstance(value, str):
        return redact_text(value)
    if depth == 0:
        return GONE if isinstance(value, dict | list) else value
    if isinstance(value, list | tuple):
        return [redact(item, depth=depth - 1) for item in value]
    if isinstance(value, dict):
        return {
            key: GONE if _is_secret(key, item) else redact(item, depth=depth - 1)
            for key, item in value.items()
        }
    return value


def _is_secret(key: object, item: object) -> bool:
    return isinstance(key, str) and isinstance(item, str | list | dict) and bool(_SECRET_KEY.search(key))
