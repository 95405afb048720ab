"""Colours. Meaning is carried by glyph and word first: every style below may turn out as plain text.

No two states differ by red against green only, and without colour (NO_COLOR) bold, underlined and
reversed text take over.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

DARK, LIGHT, PLAIN = "triage-dark", "triage-light", "triage-plain"

_DARK = {
    "back": "#10141a",
    "text": "#d7dde5",
    "dim": "#8b95a3",
    "frame": "#4a5563",
    "focus": "#7fc8e8",
    "cursor": "#263241",
    "unknown": "#ffb74d",
    "started": "#79b8ff",
    "waiting": "#d3a6ff",
    "bad": "#ff8a80",
    "match": "#0b0f14 on #ffd866",
}
_LIGHT = {
    "back": "#fafaf7",
    "text": "#1d232b",
    "dim": "#5b6470",
    "frame": "#a3abb5",
    "focus": "#0b6285",
    "cursor": "#dce6f0",
    "unknown": "#8a4b00",
    "started": "#0a4fa8",
    "waiting": "#6a35a8",
    "bad": "#b00020",
    "match": "#1d232b on #ffd866",
}


def _theme(name: str, colours: Mapping[str, str], *, dark: bool) -> Theme:
    return Theme(
        name=name,
        primary=colours["focus"],
        secondary=colours["frame"],
        warning=colours["unknown"],
        error=colours["bad"],
        success=colours["started"],
        accent=colours["focus"],
        foreground=colours["text"],
        background=colours["back"],
        surface=colours["back"],
        panel=colours["cursor"],
        dark=dark,
        variables={"frame": colours["frame"], "frame-focus": colours["focus"]},
    )


def _plain_theme() -> Theme:
    """The terminal's own colours only: Textual takes even these away where NO_COLOR is set."""
    base = BUILTIN_THEMES["ansi-dark"]
    ours = {"frame": "ansi_default", "frame-focus": "ansi_default", "input-cursor-text-style": "reverse"}
    return replace(base, name=PLAIN, variables={**base.variables, **ours})


THEMES = (
    _theme(DARK, _DARK, dark=True),
    _theme(LIGHT, _LIGHT, dark=False),
    _plain_theme(),
)


def _styles(colours: Mapping[str, str]) -> dict[str, Style]:
    parse = Style.parse
    return {
        "text": parse(colours["text"]),
        "dim": parse(colours["dim"]),
        "head": parse(f"bold {colours['text']}"),
        "frame": parse(colours["frame"]),
        "focus": parse(colours["focus"]),
        "title": parse(f"bold {colours['focus']}"),
        "key": parse(f"bold {colours['focus']}"),
        "off": parse(f"dim {colours['dim']}"),
        "unknown": parse(f"bold {colours['unknown']}"),
        "started": parse(colours["started"]),
        "waiting": parse(f"bold {colours['waiting']}"),
        "denied": parse(colours["waiting"]),
        "bad": parse(f"bold {colours['bad']}"),
        "ok": parse(colours["dim"]),
        "field": parse(colours["started"]),
        "match": parse(colours["match"]),
        "notice": parse(f"bold {colours['text']} on {colours['cursor']}"),
        "alarm": parse(f"bold {colours['bad']} on {colours['cursor']}"),
        "cursor": parse(f"on {colours['cursor']}"),
        "cursor-away": parse(f"on {colours['cursor']}"),
    }


_WITHOUT_COLOUR = {
    "text": "none",
    "dim": "dim",
    "head": "bold",
    "frame": "dim",
    "focus": "none",
    "title": "bold",
    "key": "bold",
    "off": "dim",
    "unknown": "bold",
    "started": "none",
    "waiting": "bold",
    "denied": "none",
    "bad": "bold underline",
    "ok": "none",
    "field": "none",
    "match": "reverse",
    "notice": "reverse",
    "alarm": "bold reverse",
    "cursor": "reverse",
    "cursor-away": "underline",
}

STYLES: dict[str, dict[str, Style]] = {
    DARK: _styles(_DARK),
    LIGHT: _styles(_LIGHT),
    PLAIN: {name: Style.parse(style) for name, style in _WITHOUT_COLOUR.items()},
}

# Styles in which a blank is just a blank: no background, underline or reverse.
FLAT = frozenset(STYLES[DARK]) - {"match", "notice", "alarm", "cursor", "cursor-away", "bad"}

LABEL_STYLES = {"UNKNOWN": "unknown", "NOT STARTED": "started", "WAITING": "waiting", "DENIED": "denied"}


def wants_no_colour() -> bool:
    """Whether the environment asks for no colour at all (NO_COLOR)."""
    return bool(os.environ.get("NO_COLOR"))


def theme_of_terminal() -> str:
    """The theme that fits: without colour where that is asked for, light where the terminal says so."""
    if wants_no_colour():
        return PLAIN
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if background in ("7", "15") else DARK
