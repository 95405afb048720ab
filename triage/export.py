"""Files that triage makes beside a log: exports, and the trace of a failure. Never over another file."""

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


def state_folder() -> str:
    """The user's own folder for what programs keep between runs; it is made where it is missing.

    Raises OSError.
    """
    from platformdirs import user_state_path

    folder = user_state_path("triage")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder)
