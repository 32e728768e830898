"""Output of tools and packages: kept apart from the output of the process, and attached to failures and steps.

print in a tool   ─▶ standard error of a command, never its output; secrets masked ┐
logging in a tool ─▶ its configured destination                                    ├─▶ the end: `details["output"]`
                                                                                       of a failure, `printed` of a
                                                                                       step that succeeds

Standard output belongs to the command alone: what packages print while they are loaded, and what threads of tools
print, goes to standard error too.

Only text written through `sys.stdout` and `sys.stderr` is masked, not what C code and other programs write directly.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedIOBase, TextIOBase
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Final, Self, TextIO, cast

from pointsman.errors import OperatorError, PointsmanError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from typing_extensions import Buffer

    from pointsman.redaction import Stream

CHARS_MAX: Final = 4_000
"""How many characters at the end of a call's output are kept."""


class Gathered:
    """The end of what several calls printed and logged, without secrets."""

    __slots__ = ("text",)

    def __init__(self) -> None:
        self.text = ""

    def add(self, text: str) -> None:
        self.text = (self.text + text)[-CHARS_MAX:]


_gathered: ContextVar[Gathered | None] = ContextVar("gathered", default=None)
_FIRST_TEXT: Final = threading.RLock()
"""Held while a call prepares for its first text."""


class Printed:
    """The end of what one call printed and logged, without the secrets that `hiding` names. They are masked before the
    beginning is cut off. Most calls print nothing: what masks and locks the output is made at the first text."""

    __slots__ = ("_around", "_one_at_a_time", "_streams", "text")

    def __init__(self) -> None:
        self.text = ""
        self._around = _gathered.get()
        self._streams: list[Stream] = []
        self._one_at_a_time: threading.RLock | None = None

    def _locked(self) -> threading.RLock:
        """Return the lock of the output. It is made with the first text, which any thread of the call may print."""
        with _FIRST_TEXT:
            if self._one_at_a_time is None:
                # Deferred: it compiles many patterns, and most commands call no tool.
                from pointsman.redaction import hidden

                self._streams = [redaction.stream() for redaction in hidden()]
                self._one_at_a_time = threading.RLock()
            return self._one_at_a_time

    def log(self, line: str) -> None:
        """Add a complete line."""
        with self._locked():
            for stream in self._streams:
                line = stream.redaction.text(line)
            self._add(line)

    def show(self, text: str, output: TextIO) -> None:
        """Add and write a text, except an end that may be the beginning of a secret."""
        with self._locked():
            for stream in self._streams:
                text = stream.feed(text)
            self._add(text)
            output.write(text)

    def show_rest(self) -> None:
        """Add and write the held text at the end of the call."""
        if not self._streams:
            return
        with self._locked():
            text = ""
            for stream in self._streams:
                text = stream.feed(text) + stream.end()
            if text:
                self._add(text)
                sys.stderr.write(text)

    def note(self, line: str) -> None:
        """Add a line about the call, which contains no secret, from any thread."""
        with _FIRST_TEXT:
            self._add(line)

    def _add(self, text: str) -> None:
        self.text = (self.text + text)[-CHARS_MAX:]
        if self._around is not None:
            self._around.add(text)


_printed: ContextVar[Printed | None] = ContextVar("printed", default=None)


class _Logged(logging.Handler):
    """Log handler that adds the records of a call to its output, without writing them anywhere."""

    def emit(self, record: logging.LogRecord) -> None:
        printed = _printed.get()
        if printed is not None:
            printed.log(f"{record.levelname.lower()} {record.name}: {record.getMessage()}\n")


_LOGGED: Final = _Logged()


class printing:  # noqa: N801 - used as a function: a generator would cost each call microseconds
    """Collect what one tool call prints and logs, until the block ends."""

    __slots__ = ("_printed", "_token")

    def __enter__(self) -> Printed:
        self._printed = Printed()
        self._token = _printed.set(self._printed)
        root = logging.root
        if _LOGGED not in root.handlers:
            root.addHandler(_LOGGED)
        return self._printed

    def __exit__(self, *_: object) -> None:
        _printed.reset(self._token)
        self._printed.show_rest()


class gathering:  # noqa: N801 - as above
    """Collect what all tool calls in the block print and log."""

    __slots__ = ("_token",)

    def __enter__(self) -> Gathered:
        gathered = Gathered()
        self._token = _gathered.set(gathered)
        return gathered

    def __exit__(self, *_: object) -> None:
        _gathered.reset(self._token)


class PackageFailed(OperatorError):
    """The code of an installed package raised an error, at its import or when Pointsman called it."""

    code: ClassVar[str] = "package-failed"


def load_plugin(plugin: EntryPoint) -> object:
    """Import the object of an installed package. What the import prints goes where the output of tools goes.

    Raises `PackageFailed`."""
    with printing(), package_errors(plugin, "cannot be loaded"):
        return plugin.load()


@contextmanager
def package_errors(plugin: EntryPoint, what: str) -> Generator[None]:
    """Convert what the code of an installed package raises to `PackageFailed`. `what`: the failed part, as a verb."""
    try:
        yield
    except PointsmanError:
        raise
    except (Exception, SystemExit) as why:
        package = f" of the package {plugin.dist.name!r}" if plugin.dist is not None else ""
        raise PackageFailed(
            f"{plugin.value!r}{package}, announced as {plugin.name!r} in {plugin.group!r}, {what}: "
            f"{type(why).__name__}: {why}",
            hint="Repair or uninstall the package. --debug shows its traceback.",
        ) from why


_of_command: ContextVar[bool] = ContextVar("of_command", default=False)
"""Whether the running code belongs to the command. A thread that a tool starts has a context of its own, without it."""


class _Apart:
    """Stream that writes the output of the command to the wrapped stream, and everything else to standard error."""

    def __init__(self, output: TextIO, of_tools: TextIO) -> None:
        self._output = output
        self._of_tools = of_tools

    def write(self, text: str) -> int:
        printed = _printed.get()
        if printed is None:
            return (self._output if _of_command.get() else self._of_tools).write(text)
        printed.show(text, self._of_tools)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def close(self) -> None:
        """Close the wrapped stream; only the command can."""
        if self._is_for_command():
            self._output.close()

    def detach(self) -> BinaryIO | Self:
        """Detach the wrapped stream; only the command can."""
        return cast(TextIOBase, self._output).detach() if self._is_for_command() else self

    def fileno(self) -> int:
        """Return the descriptor to which the programs that a tool starts may write."""
        return (self._output if self._is_for_command() else self._of_tools).fileno()

    @property
    def buffer(self) -> BinaryIO:
        """The stream of bytes below this one; for tools one that writes as `write` does."""
        return self._output.buffer if self._is_for_command() else cast(BinaryIO, _BytesApart(self))

    @staticmethod
    def _is_for_command() -> bool:
        return _of_command.get() and _printed.get() is None

    def __getattr__(self, name: str) -> object:
        return getattr(self._output, name)


class _BytesApart(BufferedIOBase):
    """Stream of bytes that writes them as UTF-8 text to a stream."""

    def __init__(self, text: _Apart) -> None:
        self._text = text

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        text_bytes = bytes(data)
        self._text.write(text_bytes.decode("utf-8", "replace"))
        return len(text_bytes)


@contextmanager
def apart_from_tools() -> Generator[None]:
    """Write only what the caller's own code prints to standard output, until the block ends.

    The output of tools goes to standard error, without the secrets that `hiding` names.
    """
    output, error = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast(TextIO, _Apart(output, error)), cast(TextIO, _Apart(error, error))
    token = _of_command.set(True)
    try:
        yield
    finally:
        _of_command.reset(token)
        sys.stdout, sys.stderr = output, error
