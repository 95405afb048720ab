"""A one-line question at the bottom of a screen: what to search, where to go, which note to write."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from triage.tui.lines import Lines
from triage.tui.row import Row


class Prompt(Horizontal):
    """Asks for a line of text. It posts `Answered` with it, or with None where the operator left."""

    DEFAULT_CSS = """
    Prompt { dock: bottom; height: 1; width: 1fr; background: $panel; }
    Prompt > Lines { width: auto; background: $panel; }
    Prompt > Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel;
        color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Leave the question", show=False, priority=True),
        Binding("tab,shift+tab", "stay", "Stay in the question", show=False, priority=True),
    ]

    class Answered(Message):
        def __init__(self, prompt: Prompt, value: str | None) -> None:
            super().__init__()
            self.asks = prompt.asks
            self.value = value

    def __init__(self, asks: str, label: str, value: str = "") -> None:
        super().__init__()
        self.asks = asks
        self._label = f" {label} "
        self._value = value

    def compose(self) -> ComposeResult:
        label = Lines(self._rows)
        label.styles.width = len(self._label)
        yield label
        box = Input(value=self._value, compact=True, select_on_focus=False)
        box.cursor_blink = False
        yield box

    def _rows(self, width: int) -> list[Row]:
        return [Row(((self._label, "key"),))]

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Answered(self, event.value))
        self.remove()

    def action_stay(self) -> None:
        """No other pane takes the keys while the question stands."""

    def action_cancel(self) -> None:
        self.post_message(self.Answered(self, None))
        self.remove()
