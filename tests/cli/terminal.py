"""A person at a terminal, who types, reads, presses Ctrl-C and Ctrl-D, and sometimes closes the terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PATIENCE_S: Final = 60.0
"""Limit for a broken test; nothing is measured with it."""
_STYLE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def _take_terminal() -> None:
    """Make standard input the terminal of the session, as the fork server does: Ctrl-C goes to the program."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """`pointsman` with these arguments on a pseudo-terminal."""

    def __init__(self, *words: str, cwd: Path) -> None:
        self.seen = ""
        self._read = 0
        self.code: int | None = None
        self._file, inside = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pointsman", *words],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(inside)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.code is None:
            self.kill()
        os.close(self._file)

    def expect(self, text: str) -> str:
        """Read until the text was printed; return the output up to it."""
        until = time.monotonic() + PATIENCE_S
        while (at := self.seen.find(text, self._read)) < 0:
            if not self._more(until):
                raise AssertionError(f"{text!r} never came after {self.seen[self._read :]!r}")
        before = self.seen[self._read : at + len(text)]
        self._read = at + len(text)
        return before

    def say(self, text: str) -> None:
        os.write(self._file, f"{text}\n".encode())

    def press(self, key: str) -> None:
        """Press Ctrl and a letter. The end of the input matters only to a program that reads keys, not lines, at that
        moment."""
        until = time.monotonic() + PATIENCE_S
        while key == "d" and termios.tcgetattr(self._file)[3] & termios.ICANON and time.monotonic() < until:
            select.select([], [], [], 0.01)
        assert time.monotonic() < until, "the program never began to read keys"
        os.write(self._file, bytes([ord(key.lower()) - ord("a") + 1]))

    def interrupt(self, heard: str) -> None:
        """Press Ctrl-C at a prompt until it has an effect: CPython loses one that arrives between the prompt and its
        read."""
        for _ in range(int(PATIENCE_S)):
            self.press("c")
            until = time.monotonic() + 1
            while heard not in self.seen[self._read :] and self._more(until):
                pass
            if heard in self.seen[self._read :]:
                break
        self.expect(heard)

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._wait()

    def ends(self) -> int:
        """Read to the end and return the exit code."""
        until = time.monotonic() + PATIENCE_S
        while self._more(until):
            if time.monotonic() > until:
                break
        if self._process.poll() is None and time.monotonic() > until:
            self.kill()
            raise AssertionError(f"it did not end after {self.seen[-500:]!r}")
        return self._wait()

    def _wait(self) -> int:
        self.code = self._process.wait()
        return self.code

    def _more(self, until: float) -> bool:
        ready, _, _ = select.select([self._file], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._file, 65_536)
        except OSError:  # Linux raises this if the other side is closed.
            return False
        self.seen += _STYLE.sub("", data.decode(errors="replace"))
        return data != b""
