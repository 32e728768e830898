"""What tools print and log: kept apart from what the process itself prints, and shown where the tool fails.

print in a tool   ─▶ standard error of a command, never its output      ┐
logging in a tool ─▶ wherever it is configured to go                     ├─▶ the end of both: `details["output"]`
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TextIO, cast

CHARS_MAX: Final = 4_000
"""So much of the end of what a call printed is kept."""


class Printed:
    """The end of what one call printed and logged."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, text: str) -> None:
        self.text = (self.text + text)[-CHARS_MAX:]


_printed: ContextVar[Printed | None] = ContextVar("printed", default=None)


class _Logged(logging.Handler):
    """Adds what is logged during a call to what the call printed. Never shows anything itself."""

    def emit(self, record: logging.LogRecord) -> None:
        printed = _printed.get()
        if printed is not None:
            printed.add(f"{record.levelname.lower()} {record.name}: {record.getMessage()}\n")


_LOGGED: Final = _Logged()


@contextmanager
def printing() -> Generator[Printed]:
    """A call of a tool: what it prints and logs is its own."""
    printed = Printed()
    token = _printed.set(printed)
    root = logging.getLogger()
    if _LOGGED not in root.handlers:
        root.addHandler(_LOGGED)
    try:
        yield printed
    finally:
        _printed.reset(token)


class _Apart:
    """Standard output for the process; standard error for tools. Everything but `write` is that of the output."""

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def write(self, text: str) -> int:
        printed = _printed.get()
        if printed is None:
            return self._output.write(text)
        printed.add(text)
        return sys.stderr.write(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._output, name)


@contextmanager
def apart_from_tools() -> Generator[None]:
    """Until the block is left, what tools print to standard output goes to standard error."""
    before = sys.stdout
    sys.stdout = cast(TextIO, _Apart(before))
    try:
        yield
    finally:
        sys.stdout = before
