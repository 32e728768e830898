"""Commands of people: list open gates, delegate the right to answer, steer a running execution."""

from __future__ import annotations

from typing import Unpack

import click

from pointsman.app import Execution, Pointsman
from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.completion import complete_execution, complete_gate, complete_workflow
from pointsman.cli.options import Pair, json_option, lenient_value, not_empty, os_user, person_options, store_option
from pointsman.cli.printing import print_json, shown
from pointsman.cli.results import print_outcome
from pointsman.cli.run import Driving, drive_from, driving_options
from pointsman.executions.lists import InboxEntry
from pointsman.values import JsonObject, json_of


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.argument("node", shell_complete=complete_gate)
@click.argument("to", metavar="PERSON")
@click.option("--comment", default="", metavar="TEXT", help="Reason; stored in the journal.")
@person_options
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
            executions = session_at_prompt(app, execution=execution, node=node, to=to, by=by).executions
            await executions.delegate(execution, node, to, by=by, groups=groups, comment=comment, resumes=False)
            return json_of(await executions.inspect(execution))

    print_outcome(go(tell()), as_json=as_json, stopped=False, store=store, lasting=True)
    return 0


@click.command()
@click.option(
    "--as", "user", metavar="NAME", callback=not_empty, help="Only gates for this person (default: all gates)."
)
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="Only gates for a group. Repeatable.")
@click.option("--workflow", metavar="ID", shell_complete=complete_workflow, help="Only gates of a workflow.")
@click.option("--after", metavar="CURSOR", help="The `cursor` of the last entry of the previous page.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Maximum number of entries.")
@json_option
@store_option
def inbox(
    *,
    user: str | None,
    groups: tuple[str, ...],
    workflow: str | None,
    after: str | None,
    limit: int,
    as_json: bool,
    store: str | None,
) -> None:
    """List open gates of all executions, the longest wait first."""

    async def look() -> list[InboxEntry]:
        async with installation(store) as app:
            executions = session_at_prompt(app).executions
            everyone = user is None and not groups
            return await executions.inbox(
                everyone=everyone, workflow=workflow, after=after, limit=limit, by=user, groups=groups
            )

    found = go(look())
    if as_json:
        print_json({"gates": [json_of(one) for one in found]})
        return
    if not found:
        click.echo("no open gates", err=True)
    for one in found:
        asks = one["inside"] or one["executionId"]  # several sub-workflows may have gates of the same name
        click.echo(f"{asks}  {one['gateId']}  {shown(one['workflowId'])}  {shown(one['message'])}")


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.option("--say", "messages", multiple=True, metavar="TEXT", help="Add a message to the conversation. Repeatable.")
@click.option(
    "--set", "edits", type=Pair(), multiple=True, metavar="PATH=JSON", help="Set a value of the data. Repeatable."
)
@click.option("--goto", metavar="NODE", help="Continue at this node, and nowhere else.")
@click.option("--reason", default="", metavar="TEXT", help="Reason; stored in the journal.")
@click.option("--as", "by", default=os_user, metavar="NAME", help="Your name (default: your login).")
@driving_options
def steer(
    execution: str,
    *,
    messages: tuple[str, ...],
    edits: tuple[tuple[str, str], ...],
    goto: str | None,
    reason: str,
    by: str,
    **options: Unpack[Driving],
) -> int:
    """Change data or jump to a node in a running execution. Its workflow must have `humanInLoop: real_time`."""
    if not (messages or edits or goto):
        raise click.UsageError("give at least one of --say, --set and --goto.")
    values = {path: lenient_value(text) for path, text in edits}

    async def begin(app: Pointsman) -> Execution:
        executions = session_at_prompt(app, execution=execution, goto=goto, by=by).executions
        return await executions.steer(execution, messages, set=values, goto=goto, reason=reason, by=by)

    return drive_from(begin, options)
