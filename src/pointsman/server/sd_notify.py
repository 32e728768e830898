"""Telling the service manager (systemd, `Type=notify`) how it is going: ready, stopping, and that the process lives.

A datagram to the socket that it names in the environment; where it names none, nobody is told anything.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"


def tell(*said: str, environment: Mapping[str, str] | None = None) -> bool:
    """Say lines such as `READY=1`. False: there is nobody to tell."""
    address = (os.environ if environment is None else environment).get(SOCKET, "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        try:
            out.connect(address)
            out.sendall("\n".join(said).encode())
        except OSError:
            return False  # The manager is gone: nothing depends on its hearing this.
    return True


def watched_every_s(environment: Mapping[str, str] | None = None) -> float | None:
    """How often to say that the process lives: twice in the time after which it would be restarted. None: never."""
    env = os.environ if environment is None else environment
    if env.get(WATCHDOG_PID, str(os.getpid())) != str(os.getpid()):
        return None
    given = env.get(WATCHDOG, "")
    return int(given) / 2_000_000 if given.isdecimal() and int(given) else None


@asynccontextmanager
async def watched() -> AsyncGenerator[None]:
    """Say so inside of this, as long as the event loop turns."""
    every = watched_every_s()

    async def living(pause: float) -> None:
        while True:
            tell("WATCHDOG=1")
            await asyncio.sleep(pause)

    task = None if every is None else asyncio.create_task(living(every))
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
