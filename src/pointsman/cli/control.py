"""Commands that act on open executions: pause, cancel, bulk; list and delegate gates, steer. They run no steps except
compensation."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Unpack

import click

from pointsman.app import Execution, Pointsman
from pointsman.cli.app_opening import go, installation, session_at_prompt, stoppable
from pointsman.cli.completion import complete_execution, complete_gate, complete_workflow
from pointsman.cli.inspection import STATUSES
from pointsman.cli.options import Pair, json_option, lenient_value, not_empty, os_user, person_options, store_option
from pointsman.cli.printing import print_json, shown
from pointsman.cli.results import COLOURS, print_outcome
from pointsman.cli.run import Driving, drive_from, driving_options
from pointsman.executions.bulk import BulkResult, BulkSelection, Verb, bulk_result_view
from pointsman.executions.lists import InboxEntry
from pointsman.values import Json, JsonObject, json_of


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
        executions = session_at_prompt(app, execution=execution, by=by).executions
        await executions.pause(execution, by=by)
        return json_of(await executions.inspect(execution))


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
        executions = session_at_prompt(app, execution=execution, by=by).executions
        reached = await executions.cancel(execution, reason=reason, now=now, by=by)
        if reached.state.compensating:
            await reached.settled()
        await reached.drained()
        return json_of(await executions.inspect(execution))


VERBS: Final = ("cancel", "pause", "resume", "retry", "delete")


@click.command()
@click.argument("verb", type=click.Choice(VERBS))
@click.option("--workflow", metavar="ID", shell_complete=complete_workflow, help="Only executions of this workflow.")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES),
    help="Only executions with this status. Repeatable.",
)
@click.option("--session", metavar="ID", help="Only executions of this conversation.")
@click.option("--parent", metavar="EXEC", help="The sub-workflows of an execution, instead of whole executions.")
@click.option("--since", type=click.DateTime(), help="Only executions started at this local time or later.")
@click.option("--until", type=click.DateTime(), help="Only executions started before this local time.")
@click.option("--by", default="", metavar="NAME", help="Your name; stored in the journals.")
@click.option("--yes", is_flag=True, help="Apply the action. Without this option, matching executions are only listed.")
@json_option
@store_option
def bulk(
    verb: Verb,
    *,
    workflow: str | None,
    statuses: tuple[str, ...],
    session: str | None,
    parent: str | None,
    since: datetime | None,
    until: datetime | None,
    by: str,
    yes: bool,
    as_json: bool,
    store: str | None,
) -> int:
    """Cancel, pause, resume, retry or delete every matching execution, eight at a time.

    Without --yes it only lists them. Exit code 1: at least one was refused.
    """
    which = BulkSelection(
        workflow,
        frozenset(statuses),
        session,
        parent,
        since.timestamp() if since else None,
        until.timestamp() if until else None,
    )
    found = go(_bulk(store, verb, which, by, yes=yes))
    refused = [one for one in found if one.status == "refused"]
    if as_json:
        results: list[Json] = [json_of(bulk_result_view(one)) for one in found]
        print_json({"verb": verb, "done": yes, "count": len(found), "refused": len(refused), "executions": results})
    else:
        for line in lines_of(found, verb, yes=yes):
            click.echo(line)
    return 1 if refused else 0


async def _bulk(store: str | None, verb: Verb, which: BulkSelection, by: str, *, yes: bool) -> list[BulkResult]:
    async with stoppable(), installation(store) as app:
        executions = session_at_prompt(app, verb=verb, **which.given(), by=by).executions
        return await executions.bulk(verb, which, dry_run=not yes, by=by)


def lines_of(found: list[BulkResult], verb: Verb, *, yes: bool) -> list[str]:
    """Return one line per execution, and a summary with the next step."""
    lines = [
        f"{one.execution}  {click.style(one.status, fg=COLOURS.get(one.status, 'yellow'))}  {shown(one.error)}".rstrip()
        for one in found
    ]
    noun = "execution" if len(found) == 1 else "executions"
    return [*lines, f"{verb}: {len(found)} {noun}" + ("" if yes or not found else "; add --yes to do it")]
