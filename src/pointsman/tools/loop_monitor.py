"""Loop monitor: reports async tools that block the event loop, with their position.

    thread of the monitor                             event loop
    every second: does a tool run there right now? ──▶ no: nothing
                  yes: schedule a callback ───────────▶ runs: the loop works
                                                        has not run a second later: the loop is blocked: log it

A library may run a tool in a task of its own, as LangChain does: then the position is reported without a name. So is
that of a task of the program, which delays executions in the same way.

A tool that awaits something is not on the stack of the loop, so calls that wait cost nothing here, and calls of tools
are not slowed down at all.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType
from typing import Final, NamedTuple, cast

from pointsman.tool_output import Printed
from pointsman.tools.adapter import ToolAdapter
from pointsman.tools.functions import FunctionTool
from pointsman.tools.tool import PACKAGE, is_authors_file

CHECKS_S: Final = 1.0
"""How long a tool may block the loop before it is reported, in seconds; it is reported within twice that time."""
_RUNS: Final = {cast("FunctionType", kind.run).__code__ for kind in (FunctionTool[..., object], ToolAdapter)}
_HANDLE: Final = cast("FunctionType", asyncio.Handle._run).__code__
"""The outermost frame of a callback."""
LOG: Final = logging.getLogger("pointsman.tools")


class BlockingTool(NamedTuple):
    """A tool that runs on the event loop right now."""

    name: str
    """Empty: a task without a frame of Pointsman, of a tool or of the program."""
    where: str
    """File, line and function of the author's innermost frame."""
    output: Printed | None = None
    """What the call prints and logs, which `show --debug` prints."""


class LoopMonitor:
    """Watches the event loop that runs when it is started, until it is closed."""

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start watching the running loop."""
        loop, watched = asyncio.get_running_loop(), threading.get_ident()
        check = LoopCheck(lambda: tool_in(stack_of(watched)), loop)

        def watch() -> None:
            while not self._closed.wait(CHECKS_S):
                check.once()

        self._thread = threading.Thread(target=watch, name="pointsman-loop-monitor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()


class LoopCheck:
    """Compares what the loop does at two moments."""

    def __init__(self, running: Callable[[], BlockingTool | None], loop: asyncio.AbstractEventLoop) -> None:
        """`running`: the tool on the stack of the loop."""
        self._running = running
        self._loop = loop
        self._answered = threading.Event()
        self._answered.set()
        self._is_reported = False

    def once(self) -> None:
        """Report a tool that has blocked the loop since the last check, once for each time it blocks."""
        if self._answered.is_set():
            self._is_reported = False
            if self._running() is not None:
                self._answered.clear()
                try:
                    self._loop.call_soon_threadsafe(self._answered.set)
                except RuntimeError:  # the loop is closed
                    self._answered.set()
            return
        running = self._running()
        if running is None or self._is_reported:
            return
        self._is_reported = True
        culprit = f"the tool {running.name!r}" if running.name else "a task of a tool, or of the program,"
        message = (
            f"{culprit} blocks the event loop at {running.where}: every other execution of this "
            "process waits. Write `def` instead of `async def`, so that it runs in a thread, or await what takes long."
        )
        LOG.warning("%s", message)
        if running.output is not None:
            running.output.note(f"warning {LOG.name}: {message}\n")


def stack_of(thread: int) -> FrameType | None:
    """Return the innermost frame of a thread."""
    return sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage] - documented, despite its name


def tool_in(frame: FrameType | None) -> BlockingTool | None:
    """Return the tool that runs in a stack, innermost frame first; None: no tool runs there."""
    where, is_ours = "", False
    for one in _stack(frame):
        code = one.f_code
        if not where and is_authors_file(code.co_filename):
            where = f"{code.co_filename}:{one.f_lineno} in {code.co_name}"
        if code in _RUNS:
            tool = one.f_locals.get("self")
            if not isinstance(tool, FunctionTool | ToolAdapter):
                return None
            return BlockingTool(tool.name, where or "an unknown position", _output_in(one))
        if code is _HANDLE:
            return BlockingTool("", where) if where and not is_ours else None
        is_ours = is_ours or code.co_filename.startswith(PACKAGE)
    return None


def _output_in(frame: FrameType) -> Printed | None:
    """Return what the call of a tool prints, from the frame of the registry around it."""
    outputs = (one.f_locals.get("printed") for one in _stack(frame.f_back))
    return next((output for output in outputs if isinstance(output, Printed)), None)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
