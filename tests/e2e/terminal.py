"""The installed `triage` on a real pseudo-terminal: keys go in, and what a terminal would show comes out.

Nothing here sleeps: each wait reads until its condition holds, and fails with the screen when it never does.
Every byte that arrives goes through a strict parser; a control sequence that the screens have no business
to send fails the test at once, whatever the test is about.
"""

from __future__ import annotations

import base64
import os
import re
import select
import signal
import sysconfig
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pexpect
import pyte

COMMAND = os.path.join(sysconfig.get_path("scripts"), "triage")
PATIENCE = 30.0  # seconds until a wait fails; a busy machine may need some of them
QUIET = 0.02  # seconds without a byte after which a condition that holds is taken to stay so

KEYS = {
    "enter": "\r", "esc": "\x1b", "tab": "\t", "space": " ", "backspace": "\x7f",
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
    "home": "\x1b[H", "end": "\x1b[F", "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "shift+tab": "\x1b[Z",
    "ctrl+c": "\x03", "ctrl+d": "\x04", "ctrl+o": "\x0f", "ctrl+p": "\x10", "ctrl+q": "\x11",
    "ctrl+u": "\x15",
}  # fmt: skip

# What the screens may send, and nothing else. Colours come without blink (5), conceal (8) and strike (9).
SGR = r"\x1b\[(?:(?:0|1|2|3|4|7|2[2-9]|3[0-79]|4[0-79]|9[0-7]|10[0-7]|[34]8;5;\d+|[34]8;2;\d+;\d+;\d+);?)*m"
_SENT = (
    SGR,
    r"\x1b\[\d+;\d+H",  # the cursor to a cell
    r"\x1b\[\?(?:7|25|1000|1003|1004|1006|1015|1049|2004|2026)[hl]",  # wrap, cursor, mouse, screen, paste, …
    r"\x1b\[\?2048[hl]",  # sizes reported in band
    r"\x1b\[\?(?:2026|2048)\$p",  # does the terminal know these?
    r"\x1b\[>\d*u|\x1b\[<u",  # the keyboard protocol, on and off
    r"\x1b\]22;(?:default|pointer|text)\x07",  # the mouse's shape
    r"\x1b\]52;c;[A-Za-z0-9+/]*=*\x07",  # a copy
)
ALLOWED = re.compile("|".join(_SENT))
_TOKEN = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-OQ-WYZ`-~\\]"
    r"|[\x00-\x1a\x1c-\x1f\x7f]"
    r"|[^\x00-\x1f\x7f]+"
)
_STARTED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?|[ -/]*)?\Z")
_SHOWS_NOTHING = {"Cf", "Cc", "Cs", "Zl", "Zp", "Co", "Cn"}
_PLAIN = re.compile(r"[ -~\r\n─│╭╮╰╯▶▲●◆■✓✖▸▾·…“”→]*")


class Terminal:
    """One run of `triage`. `size` is columns × rows; `env` is laid over an environment of its own.

    With `colours` the cells know their colours, which costs time.
    """

    def __init__(
        self,
        *arguments: str | bytes,
        home: Path,
        size: tuple[int, int] = (120, 40),
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        colours: bool = False,
    ) -> None:
        self.raw = b""
        self.sequences: list[str] = []
        self.copied: list[str] = []
        self._pending = ""
        self._undecoded = b""
        self._screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self._screen)
        self._child = pexpect.spawn(
            COMMAND,
            [argument if isinstance(argument, str) else os.fsdecode(argument) for argument in arguments],
            env=environment(home, env),
            cwd=None if cwd is None else str(cwd),
            dimensions=(size[1], size[0]),
            timeout=PATIENCE,
        )
        self._child.delaybeforesend = None
        self.frames = 0
        self._lines: list[str] | None = None
        self._draw: list[str] = []
        self._colours = colours
        self.each_frame: Callable[[], None] = lambda: None
        self._amid_frame = False
        self._ended = False

    # ---- keys and mouse

    def press(self, *keys: str) -> None:
        """Press keys by name or as the character itself."""
        for key in keys:
            self._send(KEYS.get(key, key))

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self._send(text)

    def click(self, column: int, row: int, *, times: int = 1) -> None:
        """Click a cell, from 0."""
        at = f"{column + 1};{row + 1}"
        self._send(f"\x1b[<0;{at}M\x1b[<0;{at}m" * times)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._read(0)
        self._screen.resize(rows, columns)
        self._screen.reset()
        self._lines = None
        self._child.setwinsize(rows, columns)

    def _send(self, text: str) -> None:
        os.write(self._child.child_fd, text.encode("utf-8", "surrogateescape"))

    # ---- what is shown

    @property
    def width(self) -> int:
        return int(self._screen.columns)

    @property
    def lines(self) -> list[str]:
        """The rows of the screen, without the blanks at their ends."""
        if self._lines is None:
            self._lines = [line.rstrip() for line in self._screen.display]
        return self._lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def words(self) -> str:
        """All words on the screen in one line, without frames: for sentences that are wrapped."""
        return " ".join(re.sub(r"[│╭╮╰╯─]+", " ", self.text).split())

    @property
    def told(self) -> str:
        """What stands below the last frame, in one line: the keys, or a message in their place."""
        below = max((row for row, line in enumerate(self.lines) if "╯" in line), default=-1) + 1
        return " ".join(" ".join(self.lines[below:]).split())

    @property
    def marked(self) -> str:
        """The row under the cursor of the list at the left edge: the timeline, the entries; or ""."""
        return next((line[2:].partition("│")[0].rstrip() for line in self.lines if line.startswith("│▶")), "")

    @property
    def said(self) -> str:
        """What the terminal shows once the screen was left."""
        after = self.raw.rpartition(b"\x1b[?1049l")[2] if b"\x1b[?1049l" in self.raw else b""
        words = _TOKEN.findall(after.decode("utf-8", "surrogateescape"))
        return "".join(token for token in words if not token.startswith("\x1b")).replace("\r\n", "\n")

    def shows(self, text: str) -> bool:
        return text in self.text or text in self.words or text in self.told

    def row_of(self, text: str) -> int:
        """The first row that holds a text."""
        return next(number for number, line in enumerate(self.lines) if text in line)

    def colours(self) -> set[str]:
        """The colours that any cell has, apart from the terminal's own."""
        cells = [cell for row in self._screen.buffer.values() for cell in row.values()]
        return {colour for cell in cells for colour in (cell.fg, cell.bg)} - {"default"}

    def cell(self, column: int, row: int) -> str:
        """What stands in a cell; "" in the second half of a wide character."""
        return str(self._screen.buffer[row][column].data)

    def reversed(self, column: int, row: int) -> bool:
        """Whether a cell is drawn in reverse."""
        return bool(self._screen.buffer[row][column].reverse)

    def foreground(self, column: int, row: int) -> str:
        """The colour of a cell's text."""
        return str(self._screen.buffer[row][column].fg)

    def background(self, column: int, row: int) -> str:
        """The background of a cell: six hex digits, or a name."""
        return str(self._screen.buffer[row][column].bg)

    # ---- waiting

    def wait_for(self, *texts: str) -> None:
        """Read until the screen shows every one of these texts (words may stand on several rows)."""
        self.wait_until(lambda: all(self.shows(text) for text in texts), str(texts))

    def wait_gone(self, text: str) -> None:
        """Read until the screen no longer shows a text."""
        self.wait_until(lambda: not self.shows(text), f"{text!r} gone")

    def wait_until(self, holds: Callable[[], object], what: str = "") -> None:
        """Read until a condition holds, and still does when nothing more comes for a moment."""
        deadline = time.monotonic() + PATIENCE
        while True:
            while self._amid_frame or not holds():
                left = deadline - time.monotonic()
                if (left <= 0 or not self._read(left)) and not holds():
                    why = "it ended" if self._ended else f"{PATIENCE:.0f} seconds went by"
                    raise AssertionError(f"{what or holds}: never; {why}\n{self.text}\n{self.said[-2000:]}")
                if self._ended:
                    return
            if not self._read(QUIET):
                return

    def wait_for_exit(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(max(0.0, deadline - time.monotonic())):
            pass
        if not self._ended:
            raise AssertionError(f"it did not end\n{self.text}")
        self._child.wait()
        if self._child.signalstatus is not None:
            return -int(self._child.signalstatus)
        return int(self._child.exitstatus)

    def close(self) -> None:
        """End the process, however it is."""
        if self._child.isalive():
            self._child.kill(signal.SIGKILL)
            self._child.wait()
        self._child.close(force=True)

    @property
    def alive(self) -> bool:
        return bool(self._child.isalive())

    @property
    def pid(self) -> int:
        return int(self._child.pid)

    # ---- reading

    def _read(self, seconds: float) -> bool:
        """Take what has come within some seconds. False where nothing came, or it has ended."""
        if self._ended or not select.select([self._child.child_fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._child.child_fd, 1 << 16)
        except OSError:  # Linux says so where the other end is closed
            data = b""
        if not data:
            self._ended = True
            return False
        self.raw += data
        self._take(data)
        return True

    def _take(self, data: bytes) -> None:
        data = self._undecoded + data
        whole = _whole(data)
        self._undecoded = data[whole:]
        self._pending += data[:whole].decode("utf-8")  # strict: half a character is a fault too
        started = _STARTED.search(self._pending)
        stop = started.start() if started else len(self._pending)
        ready, self._pending = self._pending[:stop], self._pending[stop:]
        for token in tokens(ready):
            self._keep(token)
        self._paint()

    def _keep(self, token: str) -> None:
        if not token.startswith("\x1b"):
            self._draw.append(token)
            return
        self.sequences.append(token)
        if token.startswith("\x1b]52;c;"):
            self.copied.append(base64.b64decode(token[len("\x1b]52;c;") : -1]).decode())
        elif token == "\x1b[?2026$p":  # can you show a frame at once? With that, no test sees half a screen
            self._send("\x1b[?2026;2$y")
        elif token in ("\x1b[?2026h", "\x1b[?2026l"):
            self._amid_frame = token.endswith("h")
            if not self._amid_frame:
                self.frames += 1
                self._paint()
                self.each_frame()
        elif token == "\x1b[?1049h":
            self._paint()
            self._screen.reset()
        elif token.endswith("H") or (self._colours and token.endswith("m")):
            self._draw.append(token)  # the rest draws nothing, and pyte knows little of it

    def _paint(self) -> None:
        self._stream.feed("".join(self._draw))
        self._draw.clear()
        self._lines = None


def tokens(text: str) -> Iterator[str]:
    """The sequences and the stretches of text in what a screen sends. Fails on what it may not send."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match, f"this is no control sequence: {text[at : at + 80]!r}"
        token = match.group()
        if token.startswith("\x1b"):
            assert ALLOWED.fullmatch(token), f"the screen sent {token[:200]!r}"
        else:
            rest = token[_PLAIN.match(token).end() :]  # type: ignore[union-attr]
            hidden = [char for char in rest if char not in "\r\n" and not _shows(char)]
            assert not hidden, f"characters that don't show: {hidden!r} in {token[:400]!r}"
        yield token
        at = match.end()


def _shows(char: str) -> bool:
    return (char.isascii() and char.isprintable()) or unicodedata.category(char) not in _SHOWS_NOTHING


def _whole(data: bytes) -> int:
    """How many bytes hold whole UTF-8 characters only."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if need > back else len(data)
    return len(data)


def environment(home: Path, changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """An environment in which nothing of the user's own counts."""
    found: dict[str, str | None] = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": os.environ.get("PYTHONPATH"),  # a checkout that is tested in place of the installed one
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "LOGNAME": "ada",
        "USER": "ada",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TZ": "UTC",
        **(changes or {}),
    }
    return {name: value for name, value in found.items() if value is not None}
