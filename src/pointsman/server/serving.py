"""Server process: listens on a socket until a signal stops it, leads the store, and reports to the service manager.

    SIGTERM ─▶ not ready ─▶ no new connections, streams closed ─▶ requests end ─▶ steps end ─▶ store closed
    again   ─▶ stop without waiting

SIGINT and SIGHUP have the same effect; a signal that was ignored when the process began (`nohup`) stays ignored.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
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
from pointsman.operations.readiness import LeaderRole, Lifecycle
from pointsman.operations.worker_role import ReportFailure, drain, first_of, keep_leading
from pointsman.platforms import need_posix
from pointsman.server.application import make_application, make_server_context
from pointsman.server.connections import IDLE_S, Connection, ConnectionTable, bound, connections_for
from pointsman.server.middleware import logged
from pointsman.settings.sections import ServerSettings

SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"


def notify_service_manager(*messages: str, environment: Mapping[str, str] | None = None) -> bool:
    """Send lines such as `READY=1` to the service manager (systemd). False: there is no manager."""
    if sys.platform != "linux":
        return False
    address = (os.environ if environment is None else environment).get(SOCKET, "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        try:
            out.connect(address)
            out.sendall("\n".join(messages).encode())
        except OSError:
            return False  # The manager is gone; the notification is optional.
    return True


def watched_every_s(environment: Mapping[str, str] | None = None) -> float | None:
    """Return the interval of watchdog notifications in seconds: half the watchdog timeout. None: no watchdog."""
    env = os.environ if environment is None else environment
    if env.get(WATCHDOG_PID, str(os.getpid())) != str(os.getpid()):
        return None
    interval = env.get(WATCHDOG, "")
    return int(interval) / 2_000_000 if interval.isdecimal() and int(interval) else None


@asynccontextmanager
async def watched() -> AsyncGenerator[None]:
    """Send watchdog notifications while the context is open and the event loop is responsive."""
    every = watched_every_s()

    async def living(pause: float) -> None:
        while True:
            notify_service_manager("WATCHDOG=1")
            await asyncio.sleep(pause)

    task = None if every is None else asyncio.create_task(living(every))
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


STOPS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))
REQUESTS_S: Final = 2
"""Seconds that running requests have to finish after a stop signal."""
BACKLOG: Final = 2048
ACCEPT_FAILED: Final = "socket.accept() out of system resource"
"""Message of asyncio when no connection can be accepted."""
ACCEPT_LOG: Final = LogThrottle(each=1, period_s=60.0)
ExceptionHandler: TypeAlias = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]


class Unguarded(OperatorError):
    """Other machines could reach the server, and no key exists."""

    code: ClassVar[str] = "key-required"


class AddressTaken(OperatorError):
    """The server cannot listen on the host and port."""

    code: ClassVar[str] = "address-taken"


@dataclass(frozen=True, slots=True)
class ServerMessages:
    """Callbacks for messages to the operator."""

    serving: Callable[[str], None]
    """Called with the address when the server listens."""
    leading: Callable[[], None]
    """Called when a standby process becomes the leader."""
    trouble: ReportFailure
    """Called when an execution cannot be resumed; with None when the store is unavailable or a periodic job fails."""


class Server(uvicorn.Server):
    """uvicorn server that closes streams before it waits for requests: a stream would not end by itself."""

    def __init__(self, config: uvicorn.Config, disconnect: Callable[[], None]) -> None:
        super().__init__(config)
        self._disconnect = disconnect

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(exception_handler(before))
        try:
            await super().serve(sockets)
        finally:
            loop.set_exception_handler(before)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._disconnect()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install no handlers: those of uvicorn would end the process before the store is closed."""
        yield


async def serve(app: Pointsman, *, settings: ServerSettings, standby: bool = False, messages: ServerMessages) -> None:
    """Serve an open installation and lead its store until a signal stops the server.

    With `standby` it serves while another process leads, and becomes the leader when that process is gone.
    Raises `PlatformUnsupported`, `Unguarded`, `AddressTaken`, and, without `standby`, `LeaderExists` if another
    process leads the store.
    """
    need_posix("The server")
    host, lifecycle, hurry = settings.host, Lifecycle(), asyncio.Event()
    context = make_server_context(
        app, is_local=is_loopback(host) and not settings.names and not settings.proxies, lifecycle=lifecycle
    )
    if context.tokens is not None:
        await context.keys.require()  # Removing the provider from the settings must not give access without a key.
    if not context.is_local and context.tokens is None and not await context.keys.are_made():
        raise Unguarded(
            f"{', '.join(settings.names) or host} can be reached from other machines, and there is no API "
            "key: everyone there could use this server without authentication",
            hint="Create a key: pointsman keys add NAME --role admin. Or omit --host.",
        )
    observers = [logged] if app.settings.logs.access else []
    application = make_application(context, *observers, names=settings.names, body_bytes_max=settings.body_bytes_max)
    with listening(host, settings.port) as listener:
        server = Server(configured(application, settings), context.disconnect)
        try:
            async with leading_store(app, lifecycle, messages, standby=standby), watched():
                with stopped_by_signals(server, lifecycle, hurry):
                    address = f"http://{shown_host(host)}:{listener.getsockname()[1]}"
                    messages.serving(address)
                    notify_service_manager("READY=1", f"STATUS=Serving {address}")
                    await server.serve(sockets=[listener])
                    await drain(app.runtime, patience=settings.drain.seconds, hurry=hurry)
        except BaseExceptionGroup as several:
            raise first_of(several) from None
        await context.close()


def exception_handler(other: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None) -> ExceptionHandler:
    """Return a handler that logs, at most once a minute, that accepting connections fails; asyncio retries."""

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
    """Return the configuration of uvicorn."""
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
async def leading_store(
    app: Pointsman, lifecycle: Lifecycle, messages: ServerMessages, *, standby: bool
) -> AsyncGenerator[None, None]:
    """Lead the store while the context is open: at once, or with `standby` as soon as no other process leads."""
    if app.store.read_only:
        # Reads are served; `/ready` reports that the store is read-only.
        yield
        return
    leads = asyncio.Event()

    def changed(role: LeaderRole) -> None:
        lifecycle.leader = role
        if role == "here":
            if standby or leads.is_set():
                messages.leading()
            leads.set()

    work = keep_leading(app.context, wait=standby, tell=messages.trouble, changed=changed, role="server")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            if not standby:
                await leads.wait()
            yield
        finally:
            task.cancel()


@contextmanager
def stopped_by_signals(server: uvicorn.Server, lifecycle: Lifecycle, hurry: asyncio.Event) -> Generator[None]:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if lifecycle.stopping:
            server.force_exit = True
            hurry.set()
            return
        lifecycle.stopping = True
        server.should_exit = True
        notify_service_manager("STOPPING=1")

    heeded = [one for one in STOPS if signal.getsignal(one) is not signal.SIG_IGN]
    for heeded_signal in heeded:
        loop.add_signal_handler(heeded_signal, stop)
    try:
        yield
    finally:
        for heeded_signal in heeded:
            loop.remove_signal_handler(heeded_signal)


@contextmanager
def listening(host: str, port: int) -> Generator[socket.socket]:
    """Open a listening socket. Raises `AddressTaken`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound(listener)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)  # The address is announced only after this.
        except OSError as why:
            raise AddressTaken(
                f"cannot listen on {host} port {port}: {why.strerror}",
                hint="Choose another port or address: --port, --host.",
            ) from None
        yield listener


def is_loopback(host: str) -> bool:
    """Return whether the host is reachable from this machine only."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def shown_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
