"""Commands that run an execution differently: retry, fork, move to another definition, and replay."""

from __future__ import annotations

import json
from typing import Unpack

import click

from pointsman.app import Execution, Pointsman
from pointsman.cli.app_opening import go, installation, known, named, session_at_prompt
from pointsman.cli.completion import complete_execution
from pointsman.cli.options import Decorated, Pair, input_of, json_option, lenient_value, not_empty, store_option
from pointsman.cli.printing import print_json, say, shown
from pointsman.cli.run import Driving, drive_from, driving_options, number_of
from pointsman.executions.fork_migrate_replay import DifferenceView, MigrationView, ReplayView, replay_view
from pointsman.values import Json, JsonObject


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
@click.argument("execution", shell_complete=complete_execution)
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
            to=None if to is None else named(to),
            by=by,
        )
        say(f"{forked.id} is a new execution, forked from {execution}")
        return forked

    return drive_from(begin, options)


@click.command()
@click.argument("execution", shell_complete=complete_execution)
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
                await executions.migrate(execution, named(to), by=by)
            return await executions.retry(execution, limits=raised, by=by)
        forked = await executions.fork(
            execution,
            before=step,
            set=_edits(edits),
            input=fields,
            limits=raised,
            to=None if to is None else named(to),
            by=by,
        )
        say(f"{forked.id} is a new execution: a copy of {execution} that continues from {step!r}")
        return forked

    return drive_from(begin, options)


def _fields(given: str | None) -> JsonObject | None:
    found = None if given is None else input_of(given, ())
    if found is not None and not isinstance(found, dict):
        raise click.BadParameter("must be an object: the fields that change.", param_hint="--input")
    return found


def _edits(pairs: tuple[tuple[str, str], ...]) -> dict[str, Json]:
    return {path: lenient_value(text) for path, text in pairs}


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.option("--against", metavar="FILE|ID@REV", help="Decide with another definition, and compare.")
@json_option
@store_option
def replay(execution: str, *, against: str | None, as_json: bool, store: str | None) -> int:
    """Fold the journal of an execution, decide each row again, and compare. No model and no tool is called.

    Exit code 1: a row differs.
    """
    found = go(_replay(store, execution, against))
    if as_json:
        print_json(found)
    else:
        for line in lines_of(found):
            click.echo(line)
    return 0 if found["same"] else 1


async def _replay(store: str | None, execution: str, against: str | None) -> ReplayView:
    async with installation(store) as app:
        other = None if against is None else await known(app, named(against))
        return replay_view(await session_at_prompt(app).executions.replay(execution, against=other))


def lines_of(found: ReplayView) -> list[str]:
    """Return the result of a replay as lines."""
    lines = [_difference(one) for one in found["differences"]]
    if found["untold"]:
        rows = ", ".join(map(str, found["untold"]))
        lines.append(f"note: row {rows} cannot be decided again: its report is not stored")
    if found["same"]:
        outcome = f"{click.style('OK', fg='green')}: {found['rows']} rows replayed identically"
    else:
        outcome = f"{click.style('different', fg='red')}: {found['rows']} rows replayed"
    lines.append(f"{outcome}; status {found['status']}")
    return lines


def _difference(one: DifferenceView) -> str:
    place = f"row {one['row']}, event {one['event']} ({one['kind']}) {shown(one['field'])}".rstrip()
    return f"{place}\n  recorded: {_value(one['recorded'])}\n  now:      {_value(one['now'])}"


def _value(value: Json) -> str:
    return shown(json.dumps(value, ensure_ascii=False), chars_max=400)


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.option("--to", required=True, metavar="FILE|ID@REV", help="The new definition.")
@click.option("--check", "check_only", is_flag=True, help="Only list the parts that do not fit.")
@click.option("--by", default="", metavar="NAME", help="Your name; stored in the journal.")
@json_option
@store_option
def move(execution: str, *, to: str, check_only: bool, by: str, as_json: bool, store: str | None) -> int:
    """Continue a paused, interrupted, failed or waiting execution with another definition.

    Nothing is changed unless everything in progress has a place in it. Exit code 1: something does not fit.
    """
    found = go(_move(store, execution, to, check_only=check_only, by=by))
    fits = found["fits"]
    if as_json:
        print_json(found)
        return 0 if fits else 1
    for one in found["problems"]:
        click.echo(f"{click.style('error', fg='red')} [{one['code']}] {shown(one['where'])}: {shown(one['message'])}")
    if fits:
        click.echo(f"{execution} {'fits' if check_only else 'continues with'} {to}")
    return 0 if fits else 1


async def _move(store: str | None, execution: str, to: str, *, check_only: bool, by: str) -> MigrationView:
    async with installation(store) as app:
        executions = session_at_prompt(app, execution=execution, to=to, by=by).executions
        return await executions.migrate(execution, await known(app, named(to)), check_only=check_only, by=by)
