"""Executions placed by Restate: one virtual object for each execution, and workers that it calls over HTTP/2.

    front   wake ─▶ call `drive` of the object EXECUTION ─▶ a worker drives it, in slices ─▶ due again, or ended
                             ▲   one call at a time                 │
                             └───────── delayed call ◀──────────────┘

The object knows when to drive its execution next, and nothing else: Restate stores ids, times and counters.

- Restate cuts a call off that sends nothing for `INACTIVITY_S`, and repeats it on another connection. Therefore a call
  drives in slices of `SLICE_S`: the end of a slice is its sign of life. The work itself goes on between slices.
- The connections of a killed worker close: Restate repeats its calls elsewhere within a second.
- If Restate ends, running executions go on here, and its repeated call finds them again.
- Restate repeats a failed call without end, at most every `RETRY_S_MAX`.
- Each call has a connection of its own, so that any TCP balancer spreads the executions over the workers.

All workers share one address: Restate ends a call on the address where it began. The workers of one machine share a
port; those of several machines are behind a balancer (`?address=`).

Several stores may share a server: each has a service and a path of its own at the address of its workers. The workers
of two stores need two addresses: a worker does not begin where those of another store listen, and refuses their calls.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, Self, TypedDict
from urllib.parse import parse_qsl, urlsplit

import httpx2
from hypercorn import asyncio as hypercorn
from hypercorn.config import Config
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from restate import InvocationRetryPolicy, ObjectContext, VirtualObject, app
from restate.server import install_shutdown_hook

from pointsman.errors import PointsmanError
from pointsman.runtime.dispatched import BadRuntimeAddress, Drive, EngineUnreachable
from pointsman.values import ExecutionId

LOG: Final = logging.getLogger("pointsman.runtime")
SERVICE: Final = "pointsman-execution"
"""Begins the name of the service of each store."""
INGRESS_PORT: Final = 8080
ADMIN_PORT: Final = 9070
WORKERS: Final = "127.0.0.1:9080"
SLICE_S: Final = 3.0
INACTIVITY_S: Final = 6.0
"""Restate waits for about two seconds more, and for five seconds after its request to end the call."""
ABORT_S: Final = 1.0
SLICES_MAX: Final = 200
"""Slices of one call: then the object calls itself, so that the journal of a call in Restate stays short."""
RETRY_S: Final = 0.1
RETRY_S_MAX: Final = 5.0
ATTEMPTS_MAX: Final = 2_000_000_000
"""Restate pauses a call after 70 attempts by default, and has no value for "without end"."""
REQUEST_S: Final = 5.0
REGISTER_S: Final = 2.0
"""Delay between attempts to register while Restate is away."""
DRAINS_S: Final = 86_400.0
"""The caller ends the running calls of a worker that stops."""
SENT_S: Final = 5.0
"""How long a worker waits that has stopped until Restate has closed its connections: Restate repeats what it misses."""
FORM: Final = "Use restate://HOST:PORT, with ?admin=PORT&listen=HOST:PORT&address=URL where the defaults do not fit."


class RestateAddress(NamedTuple):
    """Where Restate and the workers are."""

    ingress: str
    """Accepts calls of objects."""
    admin: str
    """Registers workers."""
    listen: str
    """HOST:PORT on which a worker accepts the calls of Restate."""
    workers: str
    """The address at which Restate reaches the workers: that of one, or of the balancer in front of all."""


def restate_address(url: str) -> RestateAddress:
    """Read `restate://HOST:PORT?admin=PORT&listen=HOST:PORT&address=URL` (`restates://` for TLS).

    Raises `BadRuntimeAddress`.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    scheme = {"restate": "http", "restates": "https"}.get(parts.scheme)
    admin, listen = options.pop("admin", str(ADMIN_PORT)), options.pop("listen", WORKERS)
    workers = options.pop("address", f"http://{listen}")
    listens_at_port = listen.rpartition(":")[2].isdecimal()
    if scheme is None or not parts.hostname or options or not admin.isdecimal() or not listens_at_port:
        raise BadRuntimeAddress(f"{url!r} is not the address of a Restate server", hint=FORM)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    ingress = f"{scheme}://{host}:{parts.port or INGRESS_PORT}"
    return RestateAddress(ingress, f"{scheme}://{host}:{admin}", listen, workers)


def leave_signals() -> None:
    """Keep the SDK from handling SIGTERM from its first call on: the command that runs this process handles it."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, RuntimeError, ValueError):  # no signals on this system or in this thread
            install_shutdown_hook(loop, lambda: None)  # It installs its handler once for each loop.
            loop.remove_signal_handler(signal.SIGTERM)


def listening(place: str) -> int:
    """Return the file descriptor of a socket at HOST:PORT. The workers of one machine share the port: the system
    spreads the connections over them. Raises `BadRuntimeAddress` if the port cannot be used.
    """
    host, _, port = place.rpartition(":")
    host = host.strip("[]")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform != "win32":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            found.bind((host, int(port)))
        except OSError as why:
            message = f"this worker cannot listen on {place}: {why.strerror or why}"
            raise BadRuntimeAddress(message, hint="Choose another port: ?listen=HOST:PORT.") from None
        return found.detach()


class SliceOutcome(TypedDict):
    """How a slice ended: all that Restate stores of it."""

    rests: bool
    """False: the execution is driven further."""
    due: float | None
    """Unix seconds at which to drive it again; None: when it is woken."""
    delay_s: float
    """Seconds until then."""


class DriveCall(TypedDict):
    """The argument of a call of the object."""

    due: float | None
    """The time for which the object scheduled the call; None: another process sent it."""


class RestateEngine:
    """Restate as an engine; implements `Engine`."""

    def __init__(self, address: RestateAddress, store: str) -> None:
        self._address = address
        self.store = store
        self.service = f"{SERVICE}-{store}"
        self._http = httpx2.AsyncClient(timeout=REQUEST_S)

    @classmethod
    async def connect(cls, url: str, store: str) -> Self:
        """Connect to a server, for a store. Raises `BadRuntimeAddress`, `EngineUnreachable`."""
        engine = cls(restate_address(url), store)
        leave_signals()
        try:
            await engine.request("GET", f"{engine._address.ingress}/restate/health")
        except EngineUnreachable:
            await engine.close()
            raise
        return engine

    async def wake(self, execution: ExecutionId, due: float, share: str) -> None:
        delay_ms = max(0, round((due - time.time()) * 1000))
        delay = f"?delay={delay_ms}ms" if delay_ms else ""
        place = f"{self._address.ingress}/{self.service}/{execution}/drive/send{delay}"
        await self.request("POST", place, DriveCall(due=None))

    async def work(self, drive: Drive, *, executions: int, stopping: asyncio.Event) -> None:
        await self.check_listener()
        await RestateWorker(self, self._address, drive, executions=executions).serve(stopping)

    async def check_listener(self) -> None:
        """Raise `BadRuntimeAddress` if workers of another store listen where this worker would."""
        listens = self._address.listen
        try:
            answer = await self._http.get(f"http://{listens}/{self.store}/health")
        except httpx2.HTTPError:
            return  # It is the first one there, or the port is in use otherwise.
        if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
            message = f"the workers of another store listen on {listens}"
            raise BadRuntimeAddress(message, hint="Give the workers of each store an address: ?listen=HOST:PORT.")

    async def register(self) -> None:
        """Let Restate call the workers at their address. Raises `EngineUnreachable`, also if it cannot call them."""
        place = f"{self._address.workers.rstrip('/')}/{self.store}"
        await self.request("POST", f"{self._address.admin}/deployments", {"uri": place, "force": True})

    async def request(self, method: str, place: str, body: Mapping[str, object] | None = None) -> None:
        """Send a request. Raises `EngineUnreachable` if it does not succeed."""
        hint = "Start it (`restate-server`), or correct the address (--runtime, `runtime` in the settings)."
        try:
            answer = await self._http.request(method, place, json=body)
        except httpx2.HTTPError as why:
            reason = str(why) or type(why).__name__
            raise EngineUnreachable(f"no Restate server can be used at {place}: {reason}", hint=hint) from None
        if not answer.is_success:
            refused = f"the Restate server refused {method} {place} with {answer.status_code}: {answer.text[:200]}"
            raise EngineUnreachable(refused, hint="It needs a registered worker: `pointsman worker --runtime …`.")

    async def close(self) -> None:
        await self._http.aclose()


class RestateWorker:
    """Serves the calls of Restate in this process."""

    def __init__(self, engine: RestateEngine, address: RestateAddress, drive: Drive, *, executions: int) -> None:
        self._engine = engine
        self._address = address
        self._drive = drive
        self._executions = executions
        self._running = 0
        """Calls in progress."""
        self._driven: dict[ExecutionId, asyncio.Task[float | None]] = {}
        self._has_foreign_calls = False
        """Whether a call for another store has arrived, which is logged once."""
        self._object = VirtualObject(
            engine.service,
            inactivity_timeout=timedelta(seconds=INACTIVITY_S),
            abort_timeout=timedelta(seconds=ABORT_S),
            journal_retention=timedelta(0),
            invocation_retry_policy=InvocationRetryPolicy(
                initial_interval=timedelta(seconds=RETRY_S),
                exponentiation_factor=2.0,
                max_interval=timedelta(seconds=RETRY_S_MAX),
                max_attempts=ATTEMPTS_MAX,
            ),
        )
        self._handler = self._object.handler("drive")(self._call)
        self._calls = app([self._object])

    async def serve(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set and the running calls have ended."""
        config = Config()
        config.bind = [f"fd://{listening(self._address.listen)}"]
        config.h2_max_concurrent_streams = 1
        config.graceful_timeout = config.shutdown_timeout = DRAINS_S
        config.errorlog = None
        config.include_server_header = False
        ended, calls = stopping.wait, self._limited
        serving = asyncio.create_task(hypercorn.serve(calls, config, shutdown_trigger=ended))  # pyright: ignore[reportUnknownMemberType] - dict of WSGI
        registering = asyncio.create_task(self._register())
        try:
            await self._until_drained(serving, stopping)
        finally:
            for task in (serving, registering):
                task.cancel()
            await asyncio.gather(serving, registering, return_exceptions=True)

    async def _until_drained(self, serving: asyncio.Task[None], stopping: asyncio.Event) -> None:
        """Return when the worker has stopped, and Restate has the results of its calls."""
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        while self._driven:
            await asyncio.wait([*self._driven.values()])
        await asyncio.wait({serving}, timeout=SENT_S)
        if serving.done():
            serving.result()

    async def _register(self) -> None:
        while True:
            try:
                await self._engine.register()
            except EngineUnreachable as why:
                LOG.warning("this worker is not registered: [%s] %s", why.code, why)
                await asyncio.sleep(REGISTER_S)
            else:
                return

    async def _limited(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Refuse calls for another store or above the capacity of this worker: Restate repeats them, on another
        connection."""
        is_call = scope["type"] == "http" and "/invoke/" in scope["path"]
        if scope["type"] == "http" and f"/{self._engine.store}/" not in scope["path"]:
            self._warn_of_foreign_call()
            await refuse(send)
        elif is_call and self._running >= self._executions:
            await refuse(send)
        elif not is_call:
            await self._calls(scope, receive, send)
        else:
            self._running += 1
            try:
                await self._calls(scope, receive, send)
            finally:
                self._running -= 1

    def _warn_of_foreign_call(self) -> None:
        if not self._has_foreign_calls:
            listens, own = self._address.listen, "give the workers of each store an address of their own"
            LOG.warning("calls for another store arrive at %s, and are refused: %s (?listen=, ?address=)", listens, own)
        self._has_foreign_calls = True

    async def _call(self, context: ObjectContext, call: DriveCall) -> None:
        """Drive the execution with the key of the object until it rests, and schedule the next call."""
        execution = ExecutionId(context.key())
        if call["due"] is not None and call["due"] != await context.get("due", type_hint=float):
            return  # A later call has scheduled another one.
        outcome = SliceOutcome(rests=False, due=None, delay_s=0.0)
        for _ in range(SLICES_MAX):
            outcome = await context.run_typed("drive", partial(self._slice, execution))
            if outcome["rests"]:
                break
        if not outcome["rests"]:
            context.object_send(self._handler, execution, DriveCall(due=None))
        elif (due := outcome["due"]) is None:
            context.clear("due")
        else:
            context.set("due", due)
            delay = timedelta(seconds=outcome["delay_s"])
            context.object_send(self._handler, execution, DriveCall(due=due), send_delay=delay)

    async def _slice(self, execution: ExecutionId) -> SliceOutcome:
        """Drive the execution for a while. The work continues after the end of the slice."""
        task = self._driven.get(execution)
        if task is None:
            task = self._driven[execution] = asyncio.ensure_future(self._drive(execution))
            task.add_done_callback(partial(self._drop, execution))
        await asyncio.wait({task}, timeout=SLICE_S)
        if not task.done():
            return SliceOutcome(rests=False, due=None, delay_s=0.0)
        try:
            due = task.result()
        except PointsmanError as why:
            raise DriveFailed(why.code) from None  # The message may quote values of users.
        return SliceOutcome(rests=True, due=due, delay_s=0.0 if due is None else max(0.0, due - time.time()))

    def _drop(self, execution: ExecutionId, task: asyncio.Task[float | None]) -> None:
        """Forget a task that ended: the next call begins another one, as the world may have changed since."""
        self._driven.pop(execution, None)
        if not task.cancelled() and (why := task.exception()) is not None:
            LOG.warning("%s is driven again: %s", execution, why)


async def refuse(send: ASGISendCallable) -> None:
    """Answer that this worker cannot perform a call now."""
    await send(
        {"type": "http.response.start", "status": HTTPStatus.SERVICE_UNAVAILABLE, "headers": [], "trailers": False}
    )
    await send({"type": "http.response.body", "body": b"", "more_body": False})


class DriveFailed(Exception):
    """A slice failed, as with an outage of the store: Restate repeats it. The text is the code of the error."""
