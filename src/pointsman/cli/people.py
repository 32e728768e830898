"""Commands of people at gates: pass a right on. Nothing of the execution runs in this process."""

from __future__ import annotations

import click

from pointsman.cli.completion import complete_execution, complete_gate
from pointsman.cli.opening import go, installation
from pointsman.cli.options import json_option, store_option, who_options
from pointsman.cli.outcomes import print_outcome
from pointsman.values import JsonObject


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.argument("node", shell_complete=complete_gate)
@click.argument("to", metavar="PERSON")
@click.option("--comment", default="", metavar="TEXT", help="Why; kept in the journal.")
@who_options
@json_option
@store_option
def delegate(
    execution: str,
    node: str,
    to: str,
    *,
    comment: str,
    by: str,
    groups: tuple[str, ...],
    as_json: bool,
    store: str | None,
) -> int:
    """Pass your right to answer the open gate of a node (or a gate by its id) on to another person."""

    async def tell() -> JsonObject:
        async with installation(store) as app:
            await (await app.reach(execution)).delegate(node, to, by=by, groups=groups, comment=comment)
            return await app.view(execution)

    print_outcome(go(tell()), as_json=as_json, stopped=False, store=store, lasting=True)
    return 0
