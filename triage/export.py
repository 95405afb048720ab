"""Files that triage makes for its operator: exports. Never over another file."""

from __future__ import annotations

import os
import re

MOST = 1000  # numbered names that are tried


def write_new(folder: str, stem: str, suffix: str, text: str) -> str:
    """Write `text` to a new file that only its owner may read. Returns its path.

    Where `stem` + `suffix` exists, a number is put between them. Raises OSError.
    """
    name = re.sub(r"[^\w.-]+", "-", stem, flags=re.ASCII).strip(".-") or "triage"
    for number in range(1, MOST):
        path = os.path.join(folder, f"{name}{'' if number == 1 else f'-{number}'}{suffix}")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path
    raise FileExistsError(f"{MOST} files named {name}{suffix} are there already")
