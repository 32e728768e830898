"""Keeping a store in the foreground: executions go on, timers ring, schedules start, people are notified."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Final

import click

from pointsman.app import Pointsman
from pointsman.cli.announcements import announce, warn_of_scripted
from pointsman.cli.app_opening import go, installation
from pointsman.cli.options import json_option, model_option, script_option, store_option
from pointsman.cli.printing import print_json, say
from pointsman.cli.signals import ENDS, heeding
from pointsman.errors import Outage, PointsmanError
from pointsman.operations.logs import logging_to
from pointsman.operations.otel import telemetry_of
from pointsman.operations.worker_role import first_of, keeping
from pointsman.settings.display import store_shown
from pointsman.values import ExecutionId

STOPS: Final = (*ENDS, signal.SIGINT)


@click.command()
@click.option("--wait", is_flag=True, help="Where another process keeps the store: stand by, and take over from it.")
@json_option
@model_option
@script_option
@store_option
def keep(*, wait: bool, as_json: bool, model: str | None, script: Path | None, store: str | None) -> None:
    """Keep a store until stopped (Ctrl-C, SIGTERM): take up what ran when its process ended, ring timers, start what is
    due, send notifications. What runs when it stops goes on with the next one."""
    kept = go(_keep(store, model, script, wait=wait))
    if as_json:
        print_json({"store": kept, "status": "stopped"})


async def _keep(store: str | None, model: str | None, script: Path | None, *, wait: bool) -> str:
    async with installation(store, model=model, script=script) as app:
        stop = asyncio.Event()
        keeps, stopped = asyncio.create_task(_keeps(app, wait=wait)), asyncio.create_task(stop.wait())
        with heeding(STOPS, stop.set):
            try:
                await asyncio.wait({keeps, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if keeps.done():
                    keeps.result()
            finally:
                for task in (keeps, stopped):
                    task.cancel()
                await asyncio.gather(keeps, stopped, return_exceptions=True)
    say("stopped")
    return store_shown(app.settings.store_url)


async def _keeps(app: Pointsman, *, wait: bool) -> None:
    """Until cancelled. Raises what broke it: the first of several, since one is enough to tell what to do."""
    try:
        async with keeping(app, wait=wait, tell=tried_again):
            with logging_to(app, app.settings.logs):
                announce(app.settings.logs, "keeping", store_shown(app.settings.store_url))
                warn_of_scripted(app)
                async with telemetry_of(app):
                    await asyncio.Event().wait()
    except BaseExceptionGroup as several:
        raise first_of(several) from None


def tried_again(execution: ExecutionId | None, why: BaseException) -> None:
    due = "the store cannot be used" if isinstance(why, Outage) else "something that is due cannot be done"
    what = due if execution is None else f"{execution} cannot be taken up"
    code = f" [{why.code}]" if isinstance(why, PointsmanError) else ""
    say(f"{what}, and is tried again:{code} {why}")
