"""Server, background worker and MCP server: commands serve, worker and mcp."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import click

from pointsman.app import Pointsman
from pointsman.cli.app_opening import ENDS, go, installation, on_signals
from pointsman.cli.options import (
    json_option,
    model_option,
    not_empty,
    os_user,
    runtime_option,
    script_option,
    store_option,
)
from pointsman.cli.printing import print_json, say
from pointsman.cli.results import warn_scripted
from pointsman.definition.model.nodes import queue_of
from pointsman.errors import Outage, PointsmanError
from pointsman.executions.views import SCRIPTED
from pointsman.extras import need
from pointsman.operations.logs import log_event as log
from pointsman.operations.logs import logging_to
from pointsman.operations.otel import telemetry_of
from pointsman.operations.readiness import LeaderRole, Lifecycle, model_state
from pointsman.operations.worker_role import first_of, keep_leading, serving_queues, working
from pointsman.settings import masked_address
from pointsman.settings.sections import LogSettings
from pointsman.values import ExecutionId

EXECUTIONS: Final = 200
"""Executions that mostly wait for models: a worker drives this many on one processor."""
PORT_MAX: Final = 65_535
STOPS: Final = (*ENDS, signal.SIGINT)


class QueueName(click.ParamType[str]):
    """The name of a queue, as `placement` of a node names it."""

    name = "name"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name = str(value)
        if not queue_of(f"worker:{name}"):
            self.fail(f"{name!r} is not the name of a queue: lower-case letters, digits, '.', '_' and '-'", param, ctx)
        return name


class ProbeAddress(NamedTuple):
    """Where a worker answers probes."""

    host: str
    port: int


class HostAndPort(click.ParamType[ProbeAddress]):
    """HOST:PORT; an IPv6 address in brackets."""

    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> ProbeAddress:
        host, colon, port = str(value).rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > PORT_MAX:
            self.fail(f"{value!r} is not HOST:PORT, such as 127.0.0.1:8001", param, ctx)
        return ProbeAddress(host.removeprefix("[").removesuffix("]"), int(port))


@click.command()
@click.option(
    "--wait", is_flag=True, help="If another process is the leader of the store: stand by, and take over when it ends."
)
@click.option(
    "--queue",
    "queues",
    multiple=True,
    type=QueueName(),
    help="Perform only the steps of nodes with `placement: worker:QUEUE`, and drive no execution. May be repeated.",
)
@click.option(
    "--executions",
    type=click.IntRange(1, 10_000),
    default=EXECUTIONS,
    show_default=True,
    help="With an engine: maximum number of executions that it drives at a time; with --queue: of steps.",
)
@click.option(
    "--probes",
    type=HostAndPort(),
    help="Address at which the worker answers GET /health, /ready and /metrics, such as 127.0.0.1:8001.",
)
@json_option
@model_option
@script_option
@runtime_option
@store_option
def worker(
    *,
    wait: bool,
    queues: tuple[str, ...],
    executions: int,
    probes: ProbeAddress | None,
    as_json: bool,
    model: str | None,
    script: Path | None,
    runtime: str | None,
    store: str | None,
) -> None:
    """Run a background worker until stopped (Ctrl-C, SIGTERM): resume executions of processes that ended, fire
    timers, start due schedules, send notifications. Executions that run when it stops continue with the next
    worker.

    With an engine (--runtime) it drives what the engine dispatches to it; any number of workers may run. With --queue
    it performs the steps that are placed on a queue, for the servers and workers that drive their executions.
    """
    app = installation(store, model=model, script=script, runtime=runtime)
    served = go(_run_worker(app, queues, executions, probes, wait=wait))
    if as_json:
        print_json({"store": served, "status": "stopped"})


async def _run_worker(
    app: Pointsman, queues: tuple[str, ...], executions: int, address: ProbeAddress | None, *, wait: bool
) -> str:
    lifecycle = Lifecycle()
    async with app, _probed(app, address, lifecycle):
        stop, hurry = asyncio.Event(), asyncio.Event()

        def stopping() -> None:
            (hurry if stop.is_set() else stop).set()
            lifecycle.stopping = True

        if queues:
            run = _serve_queues(app, queues, executions, hurry)
        elif app.context.engine is None:
            run = _work(app, lifecycle, wait=wait)
        else:
            run = _drive(app, executions, lifecycle, hurry)
        work, stopped = asyncio.create_task(run), asyncio.create_task(stop.wait())
        with on_signals(STOPS, stopping):
            try:
                await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()
            finally:
                for task in (work, stopped):
                    task.cancel()
                await asyncio.gather(work, stopped, return_exceptions=True)
    say("stopped")
    return masked_address(app.settings.store_url)


@asynccontextmanager
async def _probed(app: Pointsman, address: ProbeAddress | None, lifecycle: Lifecycle) -> AsyncGenerator[None, None]:
    """Answer the probes of a worker while the block runs, if it has an address for them."""
    if address is None:
        yield
        return
    need("server", "`--probes`")
    from pointsman.server.probes import probes  # Loads a web framework.

    async with probes(app, address.host, address.port, lifecycle) as place:
        announce(app.settings.logs, "probes", f"at {place}")
        yield


async def _drive(app: Pointsman, executions: int, lifecycle: Lifecycle, hurry: asyncio.Event) -> None:
    """Drive what the engine dispatches until cancelled, and stand by as the leader of the store."""
    patience = app.settings.server.drain.seconds
    try:
        async with working(app.context, executions=executions, patience=patience, hurry=hurry):
            about = f"for {app.settings.runtime}, {masked_address(app.settings.store_url)}"
            announce(app.settings.logs, "working", about)
            await _work(app, lifecycle, wait=True, role="")
    except BaseExceptionGroup as several:
        raise first_of(several) from None


async def _serve_queues(app: Pointsman, queues: tuple[str, ...], steps: int, hurry: asyncio.Event) -> None:
    """Perform the steps of queues until cancelled."""
    patience = app.settings.server.drain.seconds
    try:
        with logging_to(app.context, app.settings.logs):
            async with (
                telemetry_of(app.context),
                serving_queues(app.context, queues, steps=steps, patience=patience, hurry=hurry),
            ):
                about = f"on {', '.join(queues)}, {masked_address(app.settings.store_url)}"
                announce(app.settings.logs, "working", about)
                await asyncio.Event().wait()
    except BaseExceptionGroup as several:
        raise first_of(several) from None


async def _work(app: Pointsman, lifecycle: Lifecycle, *, wait: bool, role: str = "worker") -> None:
    """Work until cancelled. Raises the first error if there are several."""

    def changed(role: LeaderRole) -> None:
        lifecycle.leader = role
        if role == "here":
            announce(app.settings.logs, "leading", masked_address(app.settings.store_url))
            warn_if_scripted(app)

    try:
        with logging_to(app.context, app.settings.logs):
            async with telemetry_of(app.context):
                await keep_leading(app.context, wait=wait, tell=print_trouble, changed=changed, role=role)
    except BaseExceptionGroup as several:
        raise first_of(several) from None


def print_trouble(execution: ExecutionId | None, why: BaseException) -> None:
    due = "the store cannot be used" if isinstance(why, Outage) else "due work failed"
    what = due if execution is None else f"{execution} cannot be resumed"
    code = f" [{why.code}]" if isinstance(why, PointsmanError) else ""
    say(f"{what}; retrying:{code} {why}")


@click.command()
@click.option(
    "--host",
    callback=not_empty,
    help="Address to listen on; other addresses than this machine need keys (default: 127.0.0.1).",
)
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; 0: any free one (default: 8000).")
@click.option(
    "--standby", is_flag=True, help="If another process is the leader of the store: serve, and take over when it ends."
)
@model_option
@script_option
@runtime_option
@store_option
def serve(
    *,
    host: str | None,
    port: int | None,
    standby: bool,
    model: str | None,
    script: Path | None,
    runtime: str | None,
    store: str | None,
) -> None:
    """Serve the API until stopped (Ctrl-C, SIGTERM), and lead the store: resume executions, fire timers.

    Without keys, every program on this machine may do everything; `pointsman keys add` ends that. On a signal the
    server accepts no more requests, ends streams, and waits for running steps (`drain` under [server] in the
    settings); on a second signal it stops at once.

    With an engine (--runtime) it drives nothing: workers do (`pointsman worker --runtime`). Any number of servers may
    run on one store.
    """
    app = installation(store, model=model, script=script, runtime=runtime)
    go(_serve(app, host, port, standby=standby))


async def _serve(app: Pointsman, host: str | None, port: int | None, *, standby: bool) -> None:
    from pointsman.operations.logs import logging_to  # As below.
    from pointsman.operations.otel import telemetry_of
    from pointsman.server.serving import ServerMessages  # Loads a web framework.
    from pointsman.server.serving import serve as serve_until_stopped

    app.settings = app.settings.served_at(host, port)
    standby = standby or bool(app.settings.runtime)
    async with app:
        shown_store, tell = masked_address(app.settings.store_url), partial(announce, app.settings.logs)

        def serving(at: str) -> None:
            tell("serving", f"{at} from {shown_store}{', standing by' if standby else ''}")
            warn_if_scripted(app)

        messages = ServerMessages(
            serving=serving,
            leading=lambda: tell("leading", shown_store),
            trouble=print_trouble,
        )
        with logging_to(app.context, app.settings.logs):
            async with telemetry_of(app.context):
                await serve_until_stopped(app, settings=app.settings.server, standby=standby, messages=messages)
            tell("stopped")


@click.command()
@model_option
@script_option
@store_option
def mcp(*, model: str | None, script: Path | None, store: str | None) -> None:
    """Serve MCP on standard input and output, for a client that starts this command: design, save and run workflows.

    `pointsman serve` offers the same at /mcp.
    """
    go(_mcp(store, model, script))


async def _mcp(store: str | None, model: str | None, script: Path | None) -> None:
    from pointsman.mcp.stdio import serve_stdio  # Loads the protocol.

    async with installation(store, model=model, script=script) as app:
        await serve_stdio(app, name=os_user())


def announce(logs: LogSettings, what: str, about: str = "") -> None:
    """Print or log a status message, such as "serving http://…"."""
    if logs.format == "text":
        say(f"{what} {about}".rstrip())
    else:
        log(logging.INFO, what, {"about": about} if about else {})


def warn_if_scripted(app: Pointsman) -> None:
    """Log a warning, and print it beside text logs, if the scripted model answers every agent of this process."""
    if model_state(app.context) != "scripted":
        return
    if app.settings.logs.format == "text":
        warn_scripted()
    log(logging.WARNING, "model.scripted", {"message": SCRIPTED["message"]})
