"""What your team knows about its tools: how to check whether a call took effect.

`triage.toml` beside the log, then in the user's config folder. A hint is shown and copied, never run;
it changes no risk and lifts no gate.

    [[tool]]
    name = "http_post"                 # a tool's name, or a pattern as in a shell: "deploy_*"
    check = "curl -s {url}"            # filled from the call's arguments, each quoted for a shell
    note = "Refunds show in the dashboard within a minute."
    read_only = false                  # true: the tool only looks, so a second run does no harm
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from triage.log.json_text import dumps
from triage.recovery.plan import Owed

FILE = "triage.toml"
_KEYS = {"name": str, "check": str, "note": str, "read_only": bool}
_PLACE = re.compile(r"\{([\w.\-]+)\}")
_URL = re.compile(r"[a-z][a-z0-9+.\-]*://", re.IGNORECASE)


class BadPlaybook(Exception):
    """A mistake in a playbook: one line that names the file and what is wrong."""


class Entry(NamedTuple):
    """One tool of a playbook."""

    name: str
    check: str = ""
    note: str = ""
    read_only: bool = False


class Hint(NamedTuple):
    """What a playbook says about one call: a command or URL that is filled in, a note. Text, not run.

    `missing` are the names in the check that the call has no argument for: they stand there as they are.
    """

    check: str
    note: str
    read_only: bool
    missing: tuple[str, ...] = ()


def load(log: str) -> tuple[Entry, ...]:
    """The entries for a log: those beside it first, then the user's. Raises BadPlaybook."""
    import platformdirs

    folder = log if os.path.isdir(log) else os.path.dirname(os.path.abspath(log))
    files = [os.path.join(folder, FILE), os.path.join(platformdirs.user_config_dir("triage"), FILE)]
    return tuple(entry for file in files for entry in _read(file))


def _read(file: str) -> tuple[Entry, ...]:
    try:
        with open(file, encoding="utf-8") as source:
            text = source.read()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise BadPlaybook(f"{file} can't be read: {error}") from error
    import tomllib  # only where there is a playbook: most logs have none

    try:
        return parse(tomllib.loads(text), file)
    except tomllib.TOMLDecodeError as error:
        raise BadPlaybook(f"{file} is no valid TOML: {error}") from error


def parse(table: Mapping[str, Any], file: str) -> tuple[Entry, ...]:
    """The entries of a playbook's table. Raises BadPlaybook with `file` and the number of the entry."""
    unknown = set(table) - {"tool"}
    if unknown:
        raise BadPlaybook(f"{file}: unknown key {min(unknown)!r}; write [[tool]] entries")
    tools = table.get("tool", [])
    if not isinstance(tools, list):
        raise BadPlaybook(f"{file}: 'tool' is no list: write [[tool]], with two brackets")
    return tuple(_entry(tool, f"{file}, tool {number}") for number, tool in enumerate(tools, 1))


def _entry(tool: Any, where: str) -> Entry:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise BadPlaybook(f'{where}: it needs a name, as name = "bash"')
    for key, value in tool.items():
        if key not in _KEYS:
            raise BadPlaybook(f"{where} ({tool['name']}): unknown key {key!r}; known are {', '.join(_KEYS)}")
        if type(value) is not _KEYS[key]:
            raise BadPlaybook(f"{where} ({tool['name']}): {key} must be a {_KEYS[key].__name__}")
    if _quoted_place(tool.get("check", "")):
        raise BadPlaybook(
            f"{where} ({tool['name']}): {{argument}} without quotes, please: it is quoted for you"
        )
    return Entry(**tool)


def _quoted_place(check: str) -> bool:
    """Whether a place stands inside quotes of a command: a value that is quoted again there breaks out."""
    inside = ""
    for match in re.finditer(r"\\.|'|\"|\{[\w.\-]+\}", check):
        token = match[0]
        if token in ("'", '"') and inside in ("", token):
            inside = "" if inside else token
        elif token.startswith("{") and inside and not _URL.match(check):
            return True
    return False


def hint_for(owed: Owed, entries: tuple[Entry, ...]) -> Hint | None:
    """What the first entry that fits the call's tool says about it, its check filled in; else None."""
    for entry in entries:
        if owed.name is not None and fnmatchcase(owed.name, entry.name):
            known = _values(owed)
            missing = [name for name in _PLACE.findall(entry.check) if known(name) is None]
            return Hint(fill(entry.check, owed), entry.note, entry.read_only, tuple(dict.fromkeys(missing)))
    return None


def fill(template: str, owed: Owed) -> str:
    """A template with `{argument}` (or `{outer.inner}`, `{id}`, `{tool}`) replaced.

    In a URL each value is percent-encoded, elsewhere quoted for a shell, so that no argument can break out
    of its place. What the call does not carry stays as it stands.
    """
    escape = _in_url if _URL.match(template) else _in_shell
    known = _values(owed)

    def value(match: re.Match[str]) -> str:
        found = known(match[1])
        if found is None:
            return match[0]
        return escape(found if isinstance(found, str) else dumps(found))

    return _PLACE.sub(value, template)


def _values(owed: Owed) -> Callable[[str], Any]:
    """What a place of a template stands for, by its name; None where the call carries nothing of it."""
    arguments, own = _arguments(owed.arguments), {"id": owed.tool_call_id, "tool": owed.name}

    def value(name: str) -> Any:
        found = _look_up(arguments, name)
        return own.get(name) if found is None else found

    return value


def _in_shell(text: str) -> str:
    """`text` as one word of a shell command that can be pasted: no control character is left as it is."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = text.encode("utf-8", "surrogatepass").decode("latin-1")
    return (
        "$'" + "".join(c if c.isalnum() or c in " ./:@=+-_," else f"\\x{ord(c):02x}" for c in escaped) + "'"
    )


def _in_url(text: str) -> str:
    from urllib.parse import quote

    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def _arguments(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def _look_up(value: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value
