"""The last rows: the keys that matter here, in words, or for a while what was just done.

What does not fit is in the help. A message takes the place of the keys and never covers anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from textual import events
from textual.app import App
from textual.geometry import Size
from textual.timer import Timer

from triage.text import clean
from triage.tui.keys import Command
from triage.tui.lines import Lines
from triage.tui.row import Row, Span, width_of, wrap

PALETTE: tuple[Span, ...] = (("^p", "key"), (" palette ", "dim"))
MESSAGE_SECONDS = 8.0
MESSAGE_ROWS = 5
DISPENSABLE = ("editor", "copy", "search", "wrap", "app.help")  # left out first, in this order


class KeyBar(Lines):
    """Shows the commands that have a word for it, on up to `most` rows.

    `off` names the commands that are locked now, and why in a word; `words` those that are called
    otherwise now.
    """

    DEFAULT_CSS = "KeyBar { height: auto; dock: bottom; }"

    def __init__(
        self,
        commands: Sequence[Command],
        off: Callable[[], dict[str, str]] | None = None,
        most: int = 1,
        words: Callable[[], dict[str, str]] | None = None,
    ) -> None:
        super().__init__(self._rows, id="keys")
        self._commands = [command for command in commands if command.bar]
        self._off = off or dict
        self._most = most
        self._words = words or dict
        self._places: list[tuple[int, int, int, str]] = []
        self._message: Span | None = None
        self._timer: Timer | None = None

    def say(self, text: str, *, bad: bool = False) -> None:
        """Show a message until the next key, or for some seconds."""
        if self._timer is not None:
            self._timer.stop()
        self._show((clean(text, limit=600), "alarm" if bad else "notice"))
        self._timer = self.set_timer(MESSAGE_SECONDS, self.hush)

    def hush(self) -> None:
        """Show the keys again."""
        if self._message is not None:
            self._show(None)

    def _show(self, message: Span | None) -> None:
        height = self.size.height
        self._message = message
        self.set_class(message is not None, "-says")
        self.refresh(layout=len(self._rows(max(1, self.size.width))) != height)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, len(self._rows(width)))

    def _rows(self, width: int) -> list[Row]:
        """The message, or as many commands as fit."""
        if self._message is not None:
            style = self._message[1]
            lines = wrap([self._message], max(1, width - 2))
            return [Row(((" ", style), *line.spans, (" ", style))) for line in islice(lines, MESSAGE_ROWS)]
        shown = list(self._commands)
        for dropped in (None, *DISPENSABLE):
            shown = [command for command in shown if command.action != dropped]
            rows = self._flow(shown, width)
            if len(rows) <= self._most:
                break
        rows = rows[: self._most]
        if rows and width_of(rows[-1].spans) + width_of(PALETTE) + 1 <= width:
            rows[-1] = Row(rows[-1].spans, PALETTE)
        return rows

    def _flow(self, commands: Sequence[Command], width: int) -> list[Row]:
        """The commands, one after the other over as many rows as they need."""
        off, words = self._off(), self._words()
        rows: list[list[Span]] = [[]]
        self._places = []
        for command in commands:
            item = _item(command, words.get(command.action, command.bar), off.get(command.action))
            if rows[-1] and width_of(rows[-1]) + width_of(item) > width:
                rows.append([])
            start = width_of(rows[-1])
            rows[-1] += item
            self._places.append((len(rows) - 1, start, start + width_of(item), command.action))
        return [Row(tuple(spans)) for spans in rows]

    async def on_click(self, event: events.Click) -> None:
        """A click on a word does what its key does."""
        for y, start, stop, action in self._places:
            if y == event.y and start <= event.x < stop:
                await run_action(self.app, action)


def _item(command: Command, word: str, locked: str | None) -> list[Span]:
    """A command's key and word; greyed, with the reason, where it is locked."""
    if locked is None:
        return [(f" {command.shown}", "key"), (f" {word} ", "text")]
    return [(f" {command.shown} {word}{f' ({locked})' if locked else ''} ", "off")]


async def run_action(app: App[Any], action: str) -> None:
    """Run an action where its key would: on the focused widget, else on the screen, else on the app."""
    action = action.removeprefix("app.")
    name = action.partition("(")[0]
    for node in (app.screen.focused, app.screen, app):
        if node is not None and hasattr(node, f"action_{name}"):
            await app.run_action(action, default_namespace=node)
            return
