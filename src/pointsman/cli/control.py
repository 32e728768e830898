"""Commands that send a request to an execution: pause and cancel. This process runs at most its compensation."""

from __future__ import annotations

import click

from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.completion import complete_execution
from pointsman.cli.options import json_option, store_option
from pointsman.cli.results import print_outcome
from pointsman.cli.signals import stoppable
from pointsman.values import JsonObject


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.option("--by", default="", metavar="NAME", help="Your name; stored in the journal.")
@json_option
@store_option
def pause(execution: str, *, by: str, as_json: bool, store: str | None) -> int:
    """Start no further step. `pointsman resume` continues the execution.

    The process that runs the execution stops driving it; an interrupted step runs again on resume.
    """
    print_outcome(go(_pause(store, execution, by)), as_json=as_json, stopped=False, store=store, lasting=True)
    return 0


async def _pause(store: str | None, execution: str, by: str) -> JsonObject:
    async with installation(store) as app:
        await (await app.reach(execution)).pause(by=by)
        return await app.view(execution)


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.option("--reason", default="", metavar="TEXT", help="Reason; stored in the journal.")
@click.option("--by", default="", metavar="NAME", help="Your name; stored in the journal.")
@click.option("--now", is_flag=True, help="Run no compensation, or no further one.")
@json_option
@store_option
def cancel(execution: str, *, reason: str, by: str, now: bool, as_json: bool, store: str | None) -> int:
    """Cancel an execution and its sub-workflows permanently. A second cancel has no effect.

    Compensation steps (`compensate`) run first, in this process.
    """
    view = go(_cancel(store, execution, reason=reason, by=by, now=now))
    print_outcome(view, as_json=as_json, stopped=False, store=store, lasting=True)
    return 0


async def _cancel(store: str | None, execution: str, *, reason: str, by: str, now: bool) -> JsonObject:
    async with stoppable(), installation(store) as app:
        reached = await session_at_prompt(app).executions.cancel(execution, reason=reason, now=now, by=by)
        if reached.state.compensating:
            await reached.settled()
        await reached.drained()
        return await app.view(execution)
