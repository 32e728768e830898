"""The command that lets an execution go on with another definition."""

from __future__ import annotations

import click

from pointsman.cli.app_opening import go, installation, known, named
from pointsman.cli.completion import complete_execution
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import print_json, shown
from pointsman.executions.migrating import misfits_view
from pointsman.values import Json


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.option("--to", required=True, metavar="FILE|ID@REV", help="The new definition.")
@click.option("--check", "check_only", is_flag=True, help="Only list what does not fit.")
@click.option("--by", default="", metavar="NAME", help="Your name; stored in the journal.")
@json_option
@store_option
def move(execution: str, *, to: str, check_only: bool, by: str, as_json: bool, store: str | None) -> int:
    """Continue a paused, interrupted, failed or waiting execution with another definition.

    Nothing is changed unless everything in progress has a place in it. Exit code 1: something does not fit.
    """
    found = go(_move(store, execution, to, check_only=check_only, by=by))
    fits = not found
    if as_json:
        print_json({"executionId": execution, "fits": fits, "moved": fits and not check_only, "problems": found})
        return 0 if fits else 1
    for one in found:
        assert isinstance(one, dict)
        click.echo(f"{click.style('error', fg='red')} [{one['code']}] {shown(one['where'])}: {shown(one['message'])}")
    if fits:
        click.echo(f"{execution} {'fits' if check_only else 'goes on with'} {to}")
    return 0 if fits else 1


async def _move(store: str | None, execution: str, to: str, *, check_only: bool, by: str) -> list[Json]:
    async with installation(store) as app:
        return misfits_view(await app.move(execution, await known(app, named(to)), check_only=check_only, by=by))
