"""Keeping a store in the foreground: executions go on, timers ring, schedules start, people are notified."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from pointsman.app.keeping import keeping
from pointsman.cli.opening import go, installation
from pointsman.cli.options import model_option, script_option, store_option
from pointsman.cli.printing import say
from pointsman.values import ExecutionId

STOPS = (signal.SIGTERM, signal.SIGINT)


@click.command()
@model_option
@script_option
@store_option
def keep(*, model: str | None, script: Path | None, store: str | None) -> None:
    """Keep a store until stopped (Ctrl-C, SIGTERM): take up what ran when its process ended, ring timers, start what is
    due, send notifications. What runs when it stops goes on with the next one."""
    go(_keep(store, model, script))


async def _keep(store: str | None, model: str | None, script: Path | None) -> None:
    async with installation(store, model=model, script=script) as app:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for one in STOPS:
            loop.add_signal_handler(one, stopped.set)
        try:
            async with keeping(app, tell=_cannot_be_taken_up):
                say(f"keeping {app.settings.store_url}")
                await stopped.wait()
        finally:
            for one in STOPS:
                loop.remove_signal_handler(one)
    say("stopped")


def _cannot_be_taken_up(execution: ExecutionId, why: BaseException) -> None:
    say(f"{execution} cannot be taken up, and is tried again: {why}")
