"""Serving: an application on a socket until it is told to stop, its streams let go first.

    SIGTERM ─▶ not ready any more ─▶ no new connection, streams let go ─▶ requests end ─▶ steps end ─▶ store closed
    again   ─▶ nothing is waited for any more

SIGINT and SIGHUP (the terminal is gone) mean the same; one that was ignored when the process began (`nohup`) stays so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any, ClassVar, Final, TypeAlias, cast

import uvicorn
from starlette.types import ASGIApp

from pointsman import Pointsman
from pointsman.errors import OperatorError
from pointsman.operations.logs import LogThrottle
from pointsman.operations.readiness import Life
from pointsman.operations.worker_role import ReportFailure, drain, first_of, keeping
from pointsman.server.application import make_application, make_desk
from pointsman.server.connections import IDLE_S, Connection, ConnectionTable, bound, connections_for
from pointsman.server.middleware.requests import logged
from pointsman.settings.server import ServerSettings

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


STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
REQUESTS_S: Final = 2
"""For so long requests that run may finish."""
BACKLOG: Final = 2048
ACCEPT_FAILED: Final = "socket.accept() out of system resource"
"""What asyncio calls it."""
ACCEPT_LOG: Final = LogThrottle(each=1, period_s=60.0)
ExceptionHandler: TypeAlias = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]


class Unguarded(OperatorError):
    """Others could reach the server, and nobody would be asked for a key."""

    code: ClassVar[str] = "unguarded"


class AddressTaken(OperatorError):
    """The server cannot listen there."""

    code: ClassVar[str] = "address-taken"


@dataclass(frozen=True, slots=True)
class ServerMessages:
    """What an operator hears, at the start and later."""

    serving: Callable[[str], None]
    """At which address."""
    keeping: Callable[[], None]
    """Who stood by keeps the store from now on."""
    trouble: ReportFailure
    """An execution cannot be taken up; or (None) the store cannot be used for a while, or something due not be done."""


class Server(uvicorn.Server):
    """Lets its streams go before it waits for requests to finish: a stream alone would never."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], None]) -> None:
        super().__init__(config)
        self._let_go = let_go

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(exception_handler(before))
        try:
            await super().serve(sockets)
        finally:
            loop.set_exception_handler(before)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._let_go()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Ours stop it: uvicorn would end the process by the signal, before the store is closed."""
        yield


async def serve(app: Pointsman, *, settings: ServerSettings, standby: bool = False, said: ServerMessages) -> None:
    """Serve an open installation until a signal stops it, and keep its store meanwhile.

    Raises `Unguarded`, `AddressTaken`, and `LeaderExists` where another process leads the store; with `standby` it
    serves all the same, and takes the store over when that process is gone.
    """
    host, life, hurry = settings.host, Life(), asyncio.Event()
    desk = make_desk(app, is_local=is_loopback(host) and not settings.names and not settings.proxies, life=life)
    if desk.tokens is not None:
        await desk.keys.require()  # Taking the provider out of the settings must not open the store.
    if not desk.is_local and desk.tokens is None and not await desk.keys.are_made():
        raise Unguarded(
            f"{', '.join(settings.names) or host} can be reached by others, and no key is made:"
            " everybody could do everything",
            hint="Make one: pointsman keys add NAME --role admin. Or leave out --host.",
        )
    heard = [logged] if app.settings.logs.access else []
    application = make_application(desk, *heard, names=settings.names, body_bytes_max=settings.body_bytes_max)
    with listening(host, settings.port) as listener:
        server = Server(configured(application, settings), desk.let_go)
        try:
            async with kept(app, life, said, standby=standby), watched():
                with stopped_by_signals(server, life, hurry):
                    address = f"http://{shown_host(host)}:{listener.getsockname()[1]}"
                    said.serving(address)
                    tell("READY=1", f"STATUS=Serving {address}")
                    await server.serve(sockets=[listener])
                    await drain(app.runtime, patience=settings.drain.seconds, hurry=hurry)
        except BaseExceptionGroup as several:
            raise first_of(several) from None
        await desk.close()


def exception_handler(other: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None) -> ExceptionHandler:
    """Log once in a while that no connection can be accepted: asyncio tries again within a second, by itself."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if context.get("message") == ACCEPT_FAILED:
            why = str(context.get("exception"))
            ACCEPT_LOG.say(logging.ERROR, "http.accept.failed", {"code": "no-files-left", "message": why})
        elif other is not None:
            other(loop, context)
        else:
            loop.default_exception_handler(context)

    return handle


def configured(application: ASGIApp, settings: ServerSettings = ServerSettings()) -> uvicorn.Config:  # noqa: B008 - frozen
    """How it is served."""
    table = ConnectionTable(
        connections_for(settings.connections),
        most_per_address=settings.connections_per_address,
        proxies=settings.proxies,
    )
    return uvicorn.Config(
        application,
        http=cast("type[asyncio.Protocol]", partial(Connection, table=table)),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=[str(network) for network in settings.proxies],
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=REQUESTS_S,
    )


@asynccontextmanager
async def kept(app: Pointsman, life: Life, said: ServerMessages, *, standby: bool) -> AsyncGenerator[None, None]:
    """The store is kept by this process: from now on, or (`standby`) as soon as nobody else does."""
    if app.store.read_only:
        # It serves what can be read; `/ready` tells that nothing else can be done.
        yield
        return
    if not standby:
        async with keeping(app.context, tell=said.trouble):
            life.keeper = "here"
            yield
        return

    async def keep() -> None:
        async with keeping(app.context, wait=True, tell=said.trouble):
            life.keeper = "here"
            said.keeping()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(keep())
        try:
            yield
        finally:
            task.cancel()


@contextmanager
def stopped_by_signals(server: uvicorn.Server, life: Life, hurry: asyncio.Event) -> Generator[None]:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if life.stopping:
            server.force_exit = True
            hurry.set()
            return
        life.stopping = True
        server.should_exit = True
        tell("STOPPING=1")

    heeded = [one for one in STOPS if signal.getsignal(one) is not signal.SIG_IGN]
    for one in heeded:
        loop.add_signal_handler(one, stop)
    try:
        yield
    finally:
        for one in heeded:
            loop.remove_signal_handler(one)


@contextmanager
def listening(host: str, port: int) -> Generator[socket.socket]:
    """Raises `AddressTaken`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound(listener)
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
