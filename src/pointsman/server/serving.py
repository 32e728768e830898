"""Serving: an application on a socket until it is told to stop, its streams let go first."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from typing import ClassVar, Final

import uvicorn
from starlette.types import ASGIApp

from pointsman import Pointsman
from pointsman.app.keeping import keeping
from pointsman.errors import OperatorError
from pointsman.server.application import make_application, make_desk

STOPS: Final = (signal.SIGTERM, signal.SIGINT)
DRAIN_S: Final = 2
"""For so long requests that run may finish. Executions need no such time: they go on with the next process."""
BACKLOG: Final = 2048
DEAD_CLIENT_MS: Final = 30_000
"""A client that takes nothing for so long is gone."""


class Unguarded(OperatorError):
    """Others could reach the server, and nobody would be asked for a key."""

    code: ClassVar[str] = "unguarded"


class AddressTaken(OperatorError):
    """The server cannot listen there."""

    code: ClassVar[str] = "address-taken"


class Server(uvicorn.Server):
    """Lets its streams go before it waits for requests to finish: a stream alone would never."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], None]) -> None:
        super().__init__(config)
        self._let_go = let_go

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._let_go()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Ours stop it: uvicorn would end the process by the signal, before the store is closed."""
        yield


async def serve(app: Pointsman, *, host: str, port: int, standby: bool = False, ready: Callable[[str], None]) -> None:
    """Serve an open installation until SIGTERM or SIGINT, and keep its store meanwhile. `ready` is told the address.

    Raises `Unguarded`, `AddressTaken`, and `StoreKept` where another process keeps the store; with `standby` it serves
    all the same, and takes the store over when that process is gone.
    """
    desk = make_desk(app, is_local=is_loopback(host))
    if not desk.is_local and not await desk.keys.are_made():
        raise Unguarded(
            f"{host} can be reached by others, and no key is made: everybody could do everything",
            hint="Make one: pointsman keys add NAME --role admin. Or leave out --host.",
        )
    with listening(host, port) as listener:
        server = Server(configured(make_application(desk)), desk.channels.let_go)
        async with kept(app, standby=standby):
            with stopped_by_signals(server):
                ready(f"http://{shown_host(host)}:{listener.getsockname()[1]}")
                await server.serve(sockets=[listener])
        await desk.channels.close()


def configured(application: ASGIApp) -> uvicorn.Config:
    """How it is served."""
    return uvicorn.Config(
        application,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_S,
    )


@asynccontextmanager
async def kept(app: Pointsman, *, standby: bool) -> AsyncGenerator[None, None]:
    """The store is kept by this process: from now on, or (`standby`) as soon as nobody else does."""
    if not standby:
        async with keeping(app):
            yield
        return

    async def keep() -> None:
        async with keeping(app, wait=True):
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(keep())
        try:
            yield
        finally:
            task.cancel()


@contextmanager
def stopped_by_signals(server: uvicorn.Server) -> Generator[None]:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True

    for one in STOPS:
        loop.add_signal_handler(one, stop)
    try:
        yield
    finally:
        for one in STOPS:
            loop.remove_signal_handler(one)


@contextmanager
def listening(host: str, port: int) -> Generator[socket.socket]:
    """Raises `AddressTaken`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux: inherited by every connection.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_CLIENT_MS)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)  # From now on: who is told the address may call.
        except OSError as why:
            raise AddressTaken(
                f"cannot listen on {host} port {port}: {why.strerror}", hint="Choose another one: --port, --host."
            ) from None
        yield listener


def is_loopback(host: str) -> bool:
    """Only this machine reaches it."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def shown_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
