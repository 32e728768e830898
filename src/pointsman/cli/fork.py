"""Commands `retry` and `fork`: retry in place, or continue a copy from an earlier row or step."""

from __future__ import annotations

from typing import Unpack

import click

from pointsman.app import Execution, Pointsman
from pointsman.cli.app_opening import named
from pointsman.cli.completion import complete_execution
from pointsman.cli.options import Decorated, Pair, input_of, lenient_value, not_empty
from pointsman.cli.printing import say
from pointsman.cli.run import Driving, driving_options, number_of, take_up
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
        forked = await app.fork(
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

    return take_up(begin, options)


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.option("--from", "step", metavar="STEP", help="Run this step again, and all that follows, in a new execution.")
@click.option("--move", "to", metavar="FILE|ID@REV", help="Go on with a repaired definition, if it fits.")
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
        raise click.UsageError("--set and --input need --from: what happened is not changed in place.")
    fields = _fields(given)
    raised = {name: number_of(name, text) for name, text in limits}

    async def begin(app: Pointsman) -> Execution:
        if step is None:
            if to is not None:
                await app.move(execution, named(to), by=by)
            taken = await app.open(execution)
            await taken.retry(limits=raised, by=by)
            return taken
        forked = await app.fork(
            execution,
            before=step,
            set=_edits(edits),
            input=fields,
            limits=raised,
            to=None if to is None else named(to),
            by=by,
        )
        say(f"{forked.id} is a new execution: {execution} from {step!r} on")
        return forked

    return take_up(begin, options)


def _fields(given: str | None) -> JsonObject | None:
    found = None if given is None else input_of(given, ())
    if found is not None and not isinstance(found, dict):
        raise click.BadParameter("must be an object: the fields that change.", param_hint="--input")
    return found


def _edits(pairs: tuple[tuple[str, str], ...]) -> dict[str, Json]:
    return {path: lenient_value(text) for path, text in pairs}
