"""Being stopped from outside: who ends this process with SIGTERM, or hangs up, means what Ctrl-C means.

What is under way is let go of in order, so that nothing which is decided is lost; then the process ends.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import click

ENDS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C (SIGINT) is not among them: `asyncio.run` heeds it."""


@contextmanager
def heeding(signals: Iterable[signal.Signals], stop: Callable[[], None]) -> Generator[None, None, None]:
    """`stop` is called when one of the signals comes. One that is ignored stays so: `nohup` means it."""
    loop = asyncio.get_running_loop()
    heeded: list[signal.Signals] = []
    for one in signals:
        if signal.getsignal(one) is signal.SIG_IGN:
            continue
        try:
            loop.add_signal_handler(one, stop)
        except NotImplementedError:
            break  # this system has no such signals
        heeded.append(one)
    try:
        yield
    finally:
        for one in heeded:
            loop.remove_signal_handler(one)


@asynccontextmanager
async def stoppable() -> AsyncGenerator[None, None]:
    """The block is cancelled when this process shall end. A second signal does not disturb what the first began."""
    task = asyncio.current_task()
    assert task is not None
    told = False

    def stop() -> None:
        nonlocal told
        if not told:
            told = True
            task.cancel()

    with heeding(ENDS, stop):
        try:
            yield
        except asyncio.CancelledError:
            if told:
                raise click.Abort from None
            raise
