"""Restate as the engine that decides which worker drives an execution, and wakes it.

    API server ── drive ─▶ Restate: object `pointsman.execution/ID` ── HTTP/2 ─▶ a worker drives it, in slices
                              ▲   one call at a time for each id                   │
                              └──────── delayed call: the next wake-up ◀───────────┘ it only waits: release

The object is "active or idle, next wake-up"; ids, times and counters are all that Restate stores. The journal of the
execution in PostgreSQL stays the truth, and the claim in PostgreSQL stays the fence.

- A call that sends nothing for `INACTIVITY_S` is cut off and repeated on another connection. Therefore a call drives in
  slices of `SLICE_S`: the end of a slice is its sign of life. The work itself goes on between slices.
- A killed worker closes its connections: Restate repeats its calls elsewhere within a second.
- If Restate ends, running executions go on here. Its repeated call finds them: in this worker it continues to wait for
  them, in another one it waits until they are released.
- Restate repeats a failed call without end, at most every `RETRY_S_MAX`.
- Restate opens one connection for each call, so that any TCP balancer spreads the executions over the workers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple, TypedDict
from urllib.parse import parse_qs, urlsplit

import httpx2
from hypercorn import asyncio as hypercorn
from hypercorn.config import Config
from restate import InvocationRetryPolicy, ObjectContext, VirtualObject, app
from restate.server import install_shutdown_hook

from pointsman.runtime.dispatched import BadRuntimeAddress, EngineUnreachable
from pointsman.values import ExecutionId

LOG: Final = logging.getLogger("pointsman.runtime")
SERVICE: Final = "pointsman.execution"
ADMIN_PORT: Final = 9070
SLICE_S: Final = 3.0
INACTIVITY_S: Final = 6.0
"""Restate waits for about two seconds more, and for five seconds after its request to end the call."""
ABORT_S: Final = 1.0
SLICES_MAX: Final = 200
"""Slices of one call: then it calls itself, so that its journal in Restate stays short."""
RETRY_S: Final = 0.1
RETRY_S_MAX: Final = 5.0
ATTEMPTS_MAX: Final = 2_000_000_000
"""Restate has no value for "without end", and pauses a call after 70 attempts by default."""
REQUEST_S: Final = 10.0
REGISTER_AGAIN_S: Final = 2.0
"""Delay between attempts to register this worker while Restate is away."""


class RestateAddress(NamedTuple):
    """The two addresses of a Restate server: calls go to `ingress`, registrations to `admin`."""

    ingress: str
    admin: str


def restate_address(url: str) -> RestateAddress:
    """Read `restate://HOST:PORT?admin=PORT` (`restates://` for TLS). Raises `BadRuntimeAddress`."""
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    scheme = {"restate": "http", "restates": "https"}.get(parts.scheme)
    admin = options.pop("admin", [str(ADMIN_PORT)])[-1]
    if scheme is None or not parts.hostname or not parts.port or options or not admin.isdecimal():
        raise BadRuntimeAddress(
            f"{url!r} is not the address of a Restate server",
            hint=f"Write restate://HOST:8080, or restate://HOST:8080?admin={ADMIN_PORT} for another admin port.",
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return RestateAddress(f"{scheme}://{host}:{parts.port}", f"{scheme}://{host}:{admin}")


class Outcome(TypedDict):
    """How a slice ended: all that Restate stores of it."""

    rests: bool
    """False: the execution is driven further."""
    leaves: bool
    """Whether another worker continues it, because this one ends."""
    wakes: float | None
    """Unix seconds at which the execution continues by itself; None: no time does."""
    delay_s: float
    """Seconds until then."""


class Call(TypedDict):
    """The argument of a call of the object."""

    wakes: float | None
    """The wake-up for which it was scheduled; None: called by a server or a worker."""


class Rest(NamedTuple):
    """An execution that was driven until only the outside world continues it."""

    wakes: float | None


Drive = Callable[[ExecutionId], Coroutine[object, object, Rest]]
"""Drives an execution that this process may claim, until it ends or only waits, or another process owns it."""


class RestateClient:
    """Calls of the ingress: any process may wake an execution."""

    def __init__(self, address: RestateAddress) -> None:
        self._address = address
        self._http = httpx2.AsyncClient(timeout=REQUEST_S)

    async def drive(self, execution: ExecutionId, *, key: str = "") -> None:
        """Let a worker drive an execution, behind its present call. Calls with the same key are one.

        Raises `EngineUnreachable`.
        """
        place = f"{self._address.ingress}/{SERVICE}/{execution}/drive/send"
        await self._post(place, {"wakes": None}, {"idempotency-key": key} if key else {})

    async def register(self, worker: str) -> None:
        """Let Restate call the workers behind an address. Raises `EngineUnreachable`, also if it cannot call them."""
        await self._post(f"{self._address.admin}/deployments", {"uri": worker, "force": True}, {})

    async def _post(self, place: str, body: Mapping[str, object], headers: Mapping[str, str]) -> None:
        try:
            answer = await self._http.post(place, json=body, headers=dict(headers))
        except httpx2.HTTPError as why:
            raise EngineUnreachable(f"Restate does not answer at {place}: {why}", hint=UNREACHABLE_HINT) from None
        if not answer.is_success:
            raise EngineUnreachable(
                f"Restate refused a request to {place} with {answer.status_code}: {answer.text[:200]}",
                hint=UNREACHABLE_HINT,
            )

    async def close(self) -> None:
        await self._http.aclose()


UNREACHABLE_HINT: Final = "Check the address after --runtime, and that Restate and a worker run."


class RestateWorker:
    """Serves the calls of Restate in this process."""

    def __init__(self, drive: Drive, client: RestateClient, now: Callable[[], float] = time.time) -> None:
        self._drive = drive
        self._client = client
        self._now = now
        self._driven: dict[ExecutionId, asyncio.Task[Rest]] = {}
        self._ending = asyncio.Event()
        self.registered = asyncio.Event()
        """Set when Restate knows the address of this worker."""
        self._object = VirtualObject(
            SERVICE,
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

    async def serve(self, host: str, port: int, *, address: str) -> None:
        """Serve until `end`. `address`: where Restate reaches this worker, or the balancer in front of all."""
        install_shutdown_hook(asyncio.get_running_loop(), self.end)  # else the first call takes the signal away
        config = Config()
        config.bind = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
        config.h2_max_concurrent_streams = 1
        config.graceful_timeout = 2 * SLICE_S
        config.errorlog = None
        config.include_server_header = False
        registering = asyncio.create_task(self._register(address))
        try:
            asgi = app([self._object])
            ended = self._ending.wait
            await hypercorn.serve(asgi, config, shutdown_trigger=ended)  # pyright: ignore[reportUnknownMemberType] - dict of WSGI
        finally:
            registering.cancel()
            await asyncio.gather(registering, return_exceptions=True)

    def end(self) -> None:
        """Take no more calls, and give the present ones back to Restate, which repeats them in other workers."""
        self._ending.set()

    async def _register(self, address: str) -> None:
        while True:
            try:
                await self._client.register(address)
            except EngineUnreachable as why:
                LOG.warning("this worker is not registered; retrying: %s", why)
                await asyncio.sleep(REGISTER_AGAIN_S)
            else:
                self.registered.set()
                return

    async def _call(self, context: ObjectContext, call: Call) -> None:
        """Drive the execution with the key of the object until it rests, and schedule its next wake-up."""
        execution = ExecutionId(context.key())
        if call["wakes"] is not None and call["wakes"] != await context.get("wakes", type_hint=float):
            return  # A later call has scheduled another one.
        outcome = Outcome(rests=False, leaves=False, wakes=None, delay_s=0.0)
        for _ in range(SLICES_MAX):
            outcome = await context.run_typed("drive", partial(self._slice, execution))
            if outcome["rests"] or outcome["leaves"]:
                break
        if not outcome["rests"]:
            context.object_send(self._handler, execution, Call(wakes=None))
        elif (wakes := outcome["wakes"]) is None:
            context.clear("wakes")
        else:
            context.set("wakes", wakes)
            delay = timedelta(seconds=outcome["delay_s"])
            context.object_send(self._handler, execution, Call(wakes=wakes), send_delay=delay)

    async def _slice(self, execution: ExecutionId) -> Outcome:
        """Drive the execution for a while. The work goes on behind the end of the slice."""
        task = self._driven.get(execution)
        if task is None:
            task = self._driven[execution] = asyncio.create_task(self._drive(execution))
            task.add_done_callback(partial(self._drop, execution))
        ending = asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait({task, ending}, timeout=SLICE_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
        if not task.done():
            return Outcome(rests=False, leaves=self._ending.is_set(), wakes=None, delay_s=0.0)
        wakes = task.result().wakes
        delay_s = 0.0 if wakes is None else max(0.0, wakes - self._now())
        return Outcome(rests=True, leaves=False, wakes=wakes, delay_s=delay_s)

    def _drop(self, execution: ExecutionId, task: asyncio.Task[Rest]) -> None:
        """Forget a task that ended: the next call begins another one, as the world may have changed since."""
        self._driven.pop(execution, None)
        if not task.cancelled() and (why := task.exception()) is not None:
            LOG.warning("%s is driven again: %s", execution, why)
