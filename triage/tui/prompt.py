"""A one-line question at the bottom of a screen: what to search, where to go, which note to write."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from triage.tui.lines import Lines
from triage.tui.row import Row
from triage.tui.view import View


class Prompt(Horizontal):
    """Asks for a line of text; the screen's `answered` gets it, or None where the operator left.

    Its keys go before all others and are done at once, so that fast typing never reaches the screen below.
    """

    DEFAULT_CSS = """
    Prompt { dock: bottom; height: 1; width: 1fr; background: $panel; }
    Prompt > Lines { width: auto; background: $panel; }
    Prompt > Input {
        width: 1fr; height: 1; border: none; padding: 0; background: $panel; color: $foreground;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "answer", "Answer", show=False, priority=True),
        Binding("escape", "leave", "Leave the question", show=False, priority=True),
        Binding("tab,shift+tab", "stay", "Stay in the question", show=False, priority=True),
    ]

    def __init__(self, asks: str, label: str, value: str = "") -> None:
        super().__init__()
        self.asks = asks
        self._label = f" {label} "
        self.box = Input(value=value, compact=True, select_on_focus=False)
        self.box.cursor_blink = False

    def compose(self) -> ComposeResult:
        label = Lines(self._rows)
        label.styles.width = len(self._label)
        yield label
        yield self.box

    def _rows(self, width: int) -> list[Row]:
        return [Row(((self._label, "key"),))]

    def action_stay(self) -> None:
        """No other pane takes the keys while the question stands."""

    async def action_answer(self) -> None:
        await typed(self.box)
        await self._end(self.box.value)

    async def action_leave(self) -> None:
        await self._end(None)

    async def _end(self, value: str | None) -> None:
        view = self.screen
        view.set_focus(None)
        view.text_selection_started_signal.unsubscribe(self.box)  # it would keep every box for ever
        await self.remove()
        if isinstance(view, View):
            view.answered(self.asks, value)


async def typed(box: Input) -> None:
    """Wait until a box has taken every letter that was typed into it before now."""
    taken = asyncio.Event()
    box.call_later(taken.set)
    await taken.wait()
