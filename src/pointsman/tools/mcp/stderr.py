"""Standard error of a server that a command started: read as it comes, and the end of it kept.

    server ─▶ pipe ─▶ a thread that reads ─▶ the last characters

The pipe is always read: a server that prints much must not stop because nobody does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final, TextIO

CHARS_MAX: Final = 2_000
SETTLES_S: Final = 0.2
"""How long the last words of a server that has ended may take to arrive."""


class Stderr:
    """The end of what one process prints to its standard error."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        """`mask` takes the secrets out of a line, before the beginning of the text is cut off."""
        self._mask = mask
        self._text = ""
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w", encoding="utf-8")
        """What the process is given."""
        self._thread = threading.Thread(target=self._read, args=(reading,), daemon=True, name="mcp-stderr")
        self._thread.start()

    def tail(self) -> str:
        """The end of it so far."""
        return self._text.strip()

    def close(self) -> None:
        """Nobody else is given it; once the process has ended, so does the reading."""
        self.file.close()

    def settle(self) -> None:
        """Wait a moment for what a process wrote as it ended."""
        self.close()
        self._thread.join(SETTLES_S)

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._text = (self._text + self._mask(line))[-CHARS_MAX:]
