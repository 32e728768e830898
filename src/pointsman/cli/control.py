"""Commands that act on executions: pause, cancel, bulk; list and delegate gates, steer; and those that run an execution
differently: retry, fork, move to another definition, replay."""

from __future__ import annotations

import json
from typing import Final, Unpack

import click

from pointsman.app import Execution, Pointsman
from pointsman.cli.app_opening import file_or_id, file_or_workflow, go, installation, session_at_prompt, stoppable
from pointsman.cli.inspection import STATUSES
from pointsman.cli.options import (
    Decorated,
    Pair,
    input_of,
    json_option,
    lenient_value,
    not_empty,
    os_user,
    person_options,
    store_option,
)
from pointsman.cli.printing import print_json, say, shown
from pointsman.cli.references import complete_gate, complete_workflow, execution_argument, naming_executions
from pointsman.cli.results import COLOURS, print_outcome
from pointsman.cli.run import Driving, drive_from, driving_options, number_of
from pointsman.cli.times import TIME, TIME_HELP, when
from pointsman.executions.bulk import BulkResult, BulkSelection, Verb, bulk_result_view
from pointsman.executions.fork_migrate_replay import DifferenceView, MigrationView, ReplayView, replay_view
from pointsman.executions.lists import AnsweredPage, InboxEntry, inbox_page
from pointsman.values import Json, JsonObject, json_of


def changing_options(command: Decorated) -> Decorated:
    """Add the options of commands that continue a changed copy."""
    for option in (
        click.option("--by", default="", metavar="NAME", help="Your name; stored in the journal."),
        click.option("--limit", "limits", type=Pair(), multiple=True, metavar="NAME=NUMBER", help="Raise a limit."),
        click.option("--input", "given", metavar="JSON|@FILE|-", help="Changed fields of the input."),
        click.option(
            "--set",
            "edits",
            type=Pair(),
            multiple=True,
            metavar="PATH=JSON",
            help="Change data: draft.title='\"x\"', items[0].n=3; in an open branch each[1.0]/score=5. Repeatable.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@execution_argument
@click.option("--at", type=int, metavar="SEQ", help="The last row that is copied (default: all).")
@click.option("--to", metavar="FILE|ID@REV", help="Continue with another definition, if everything in progress fits.")
@click.option("--session", metavar="ID", callback=not_empty, help="The conversation of the copy (default: none).")
@changing_options
@driving_options
def fork(
    execution: str,
    *,
    at: int | None,
    to: str | None,
    session: str | None,
    edits: tuple[tuple[str, str], ...],
    given: str | None,
    limits: tuple[tuple[str, str], ...],
    by: str,
    **options: Unpack[Driving],
) -> int:
    """Start a new execution as a copy of another one up to a row of its journal, and continue from there.

    Steps that were open there run again; the origin is not changed. `pointsman events EXEC` shows the rows.
    """
    fields = _fields(given)

    async def begin(app: Pointsman) -> Execution:
        forked = await session_at_prompt(app, execution=execution, at=at, to=to, by=by).executions.fork(
            execution,
            at=at,
            set=_edits(edits),
            input=fields,
            session=session,
            limits={name: number_of(name, text) for name, text in limits},
            to=None if to is None else file_or_id(to),
            by=by,
        )
        say(f"{forked.id} is a new execution, forked from {execution}")
        return forked

    return drive_from(begin, options)


@click.command()
@execution_argument
@click.option("--from", "step", metavar="STEP", help="Run this step again, and all that follows, in a new execution.")
@click.option(
    "--move", "to", metavar="FILE|ID@REV", help="Continue with a repaired definition, if everything in progress fits."
)
@changing_options
@driving_options
def retry(
    execution: str,
    *,
    step: str | None,
    to: str | None,
    edits: tuple[tuple[str, str], ...],
    given: str | None,
    limits: tuple[tuple[str, str], ...],
    by: str,
    **options: Unpack[Driving],
) -> int:
    """Retry the failed step of an execution, in place, and continue from there.

    With --from, a new execution starts with everything up to that step (a node, or a step as `timeline` shows it;
    of several the last one), and runs it again; the old one is not changed.
    """
    if step is None and (edits or given is not None):
        raise click.UsageError("--set and --input require --from: an execution is not changed in place.")
    fields = _fields(given)
    raised = {name: number_of(name, text) for name, text in limits}

    async def begin(app: Pointsman) -> Execution:
        executions = session_at_prompt(app, execution=execution, step=step, to=to, by=by).executions
        if step is None:
            if to is not None:
                await executions.migrate(execution, file_or_id(to), by=by)
            return await executions.retry(execution, limits=raised, by=by)
        forked = await executions.fork(
            execution,
            before=step,
            set=_edits(edits),
            input=fields,
            limits=raised,
            to=None if to is None else file_or_id(to),
            by=by,
        )
        say(f"{forked.id} is a new execution: a copy of {execution} that continues from {step!r}")
        return forked

    return drive_from(begin, options)


def _fields(text: str | None) -> JsonObject | None:
    fields = None if text is None else input_of(text, ())
    if fields is not None and not isinstance(fields, dict):
        raise click.BadParameter("must be an object: the fields that change.", param_hint="--input")
    return fields


def _edits(pairs: tuple[tuple[str, str], ...]) -> dict[str, Json]:
    return {path: lenient_value(text) for path, text in pairs}


@click.command()
@execution_argument
@click.option("--against", metavar="FILE|ID@REV", help="Decide with another definition, and compare.")
@json_option
@store_option
def replay(execution: str, *, against: str | None, as_json: bool, store: str | None) -> int:
    """Fold the journal of an execution, decide each row again, and compare. No model and no tool is called.

    Exit code 1: a row differs.
    """
    view = go(_replay(store, execution, against))
    if as_json:
        print_json(view)
    else:
        for line in replay_lines(view):
            click.echo(line)
    return 0 if view["same"] else 1


async def _replay(store: str | None, execution: str, against: str | None) -> ReplayView:
    async with installation(store) as app:
        other = None if against is None else await file_or_workflow(app, file_or_id(against))
        return replay_view(await session_at_prompt(app).executions.replay(execution, against=other))


def replay_lines(view: ReplayView) -> list[str]:
    """Return the result of a replay as lines."""
    lines = [_difference(difference) for difference in view["differences"]]
    if view["withoutReport"]:
        rows = ", ".join(map(str, view["withoutReport"]))
        lines.append(f"note: row {rows} cannot be decided again: its report is not stored")
    if view["same"]:
        outcome = f"{click.style('OK', fg='green')}: {view['rows']} rows replayed identically"
    else:
        outcome = f"{click.style('different', fg='red')}: {view['rows']} rows replayed"
    lines.append(f"{outcome}; status {view['status']}")
    return lines


def _difference(one: DifferenceView) -> str:
    place = f"row {one['row']}, event {one['event']} ({one['kind']}) {shown(one['field'])}".rstrip()
    return f"{place}\n  recorded: {_value(one['recorded'])}\n  now:      {_value(one['now'])}"


def _value(value: Json) -> str:
    return shown(json.dumps(value, ensure_ascii=False), chars_max=400)


@click.command()
@execution_argument
@click.option("--to", required=True, metavar="FILE|ID@REV", help="The new definition.")
@click.option("--check", "check_only", is_flag=True, help="Only list the parts that do not fit.")
@click.option("--by", default="", metavar="NAME", help="Your name; stored in the journal.")
@json_option
@store_option
def move(execution: str, *, to: str, check_only: bool, by: str, as_json: bool, store: str | None) -> int:
    """Continue a paused, interrupted, failed or waiting execution with another definition.

    Nothing is changed unless everything in progress has a place in it. Exit code 1: something does not fit.
    """
    moved = go(_move(store, execution, to, check_only=check_only, by=by))
    fits = moved["fits"]
    if as_json:
        print_json(moved)
        return 0 if fits else 1
    for problem in moved["problems"]:
        where, message = shown(problem["where"]), shown(problem["message"])
        click.echo(f"{click.style('error', fg='red')} [{problem['code']}] {where}: {message}")
    if fits:
        click.echo(f"{execution} {'fits' if check_only else 'continues with'} {to}")
    return 0 if fits else 1


async def _move(store: str | None, execution: str, to: str, *, check_only: bool, by: str) -> MigrationView:
    async with installation(store) as app:
        executions = session_at_prompt(app, execution=execution, to=to, by=by).executions
        return await executions.migrate(
            execution, await file_or_workflow(app, file_or_id(to)), check_only=check_only, by=by
        )


@click.command()
@execution_argument
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
@click.option("--answered", is_flag=True, help="Show the answers instead, newest first (--as: those of one person).")
@click.option("--after", metavar="PLACE", help="`next` of the previous page.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Maximum number of entries.")
@json_option
@store_option
def inbox(
    *,
    user: str | None,
    groups: tuple[str, ...],
    workflow: str | None,
    answered: bool,
    after: str | None,
    limit: int,
    as_json: bool,
    store: str | None,
) -> None:
    """List open gates of all executions, the longest wait first."""
    if answered and groups:
        raise click.UsageError("--answered lists the answers of one person (--as) or of all: omit --group")

    async def look() -> list[InboxEntry]:
        async with installation(store) as app:
            executions = session_at_prompt(app).executions
            everyone = user is None and not groups
            return await executions.inbox(
                everyone=everyone, workflow=workflow, after=after, limit=limit, by=user, groups=groups
            )

    async def look_back() -> AnsweredPage:
        async with installation(store) as app:
            return await session_at_prompt(app).executions.answered(
                everyone=user is None, workflow=workflow, after=after, limit=limit, by=user
            )

    if answered:
        show_answers(go(look_back()), as_json=as_json)
        return
    gates = go(look())
    if as_json:
        print_json(json_of(inbox_page(gates, limit)))
        return
    if not gates:
        click.echo("no open gates", err=True)
    for gate in gates:
        asks = gate["inside"] or gate["executionId"]  # several sub-workflows may have gates of the same name
        click.echo(f"{asks}  {gate['gateId']}  {shown(gate['workflowId'])}  {shown(gate['message'])}")


def show_answers(page: AnsweredPage, *, as_json: bool) -> None:
    if as_json:
        print_json(json_of(page))
        return
    if not page["answers"]:
        click.echo("no answers", err=True)
    for one in page["answers"]:
        asked = one["inside"] or one["executionId"]
        about = f"{shown(one['workflowId'])}  {shown(one['by'])}: {shown(one['action'])}  {shown(one['message'])}"
        click.echo(f"{when(one['answeredAt'])}  {asked}  {one['gateId']}  {about}")


@click.command()
@execution_argument
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
@execution_argument
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
@execution_argument
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
@click.option("--since", type=TIME, help=f"Only executions started then or later: {TIME_HELP}.")
@click.option("--until", type=TIME, help="Only executions started before.")
@click.option("--by", default="", metavar="NAME", help="Your name; stored in the journals.")
@click.option("--yes", is_flag=True, help="Apply the action. Without this option, matching executions are only listed.")
@json_option
@store_option
@naming_executions("parent")
def bulk(
    verb: Verb,
    *,
    workflow: str | None,
    statuses: tuple[str, ...],
    session: str | None,
    parent: str | None,
    since: float | None,
    until: float | None,
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
        since,
        until,
    )
    outcomes = go(_bulk(store, verb, which, by, yes=yes))
    refused = [outcome for outcome in outcomes if outcome.status == "refused"]
    if as_json:
        results: list[Json] = [json_of(bulk_result_view(outcome)) for outcome in outcomes]
        print_json({"verb": verb, "done": yes, "count": len(outcomes), "refused": len(refused), "executions": results})
    else:
        for line in lines_of(outcomes, verb, yes=yes):
            click.echo(line)
    return 1 if refused else 0


async def _bulk(store: str | None, verb: Verb, which: BulkSelection, by: str, *, yes: bool) -> list[BulkResult]:
    async with stoppable(), installation(store) as app:
        executions = session_at_prompt(app, verb=verb, **which.given(), by=by).executions
        return await executions.bulk(verb, which, dry_run=not yes, by=by)


def lines_of(results: list[BulkResult], verb: Verb, *, yes: bool) -> list[str]:
    """Return one line per execution, and a summary with the next step."""
    lines = [
        f"{result.execution}  {click.style(result.status, fg=COLOURS.get(result.status, 'yellow'))}"
        f"  {shown(result.error)}".rstrip()
        for result in results
    ]
    noun = "execution" if len(results) == 1 else "executions"
    return [*lines, f"{verb}: {len(results)} {noun}" + ("" if yes or not results else "; add --yes to do it")]
