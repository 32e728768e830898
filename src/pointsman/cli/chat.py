"""`pointsman chat`: a conversation, turn by turn; each turn is an execution of its own in one session."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import click

from pointsman.app import Pointsman, Workflow
from pointsman.app.driving import drive
from pointsman.cli.completion import complete_file_or_workflow
from pointsman.cli.opening import go, installation, known, named
from pointsman.cli.options import (
    lenient_option,
    model_option,
    quiet_option,
    said_at,
    script_option,
    store_option,
    var_option,
)
from pointsman.cli.outcomes import CODES, output_text, story
from pointsman.cli.printing import harmless
from pointsman.cli.progress import watched
from pointsman.values import JsonObject


@click.command()
@click.argument("workflow", metavar="FILE|ID", shell_complete=complete_file_or_workflow)
@click.option("--session", metavar="ID", help="Go on with this conversation.")
@model_option
@script_option
@store_option
@var_option
@lenient_option
@quiet_option
def chat(
    workflow: str,
    *,
    session: str | None,
    model: str | None,
    script: Path | None,
    store: str | None,
    variables: tuple[tuple[str, str], ...],
    lenient: bool,
    quiet: bool,
) -> int:
    """Talk to a conversational workflow. Each line is a turn; an empty line, or the end of the input, leaves.

    At a gate the next line is the answer. The conversation is kept: --session goes on with it.
    """
    found = named(workflow)
    app = installation(store, model=model, script=script, variables=variables)
    name = session or f"chat-{secrets.token_hex(6)}"
    click.echo(f"session {harmless(name)}", err=True)
    return go(_talk(app, found, name, lenient=lenient, quiet=quiet))


async def _talk(app: Pointsman, found: Workflow | str, session: str, *, lenient: bool, quiet: bool) -> int:
    async with app:
        workflow = await known(app, found)
        while text := _read("you: "):
            view = await _turn(app, workflow, text, session, lenient=lenient, quiet=quiet)
            if view["status"] == "completed":
                click.echo(output_text(view["output"]))
                continue
            for line in story(view, stopped=False, store=app.settings.store or None, lasting=True):
                click.echo(line, err=True)
            return CODES.get(str(view["status"]), 1)
    return 0


async def _turn(
    app: Pointsman, workflow: Workflow | str, text: str, session: str, *, lenient: bool, quiet: bool
) -> JsonObject:
    """One turn, with the answers to its gates."""
    with watched(app, quiet=quiet) as board:
        execution = await app.start(workflow, text, session=session, lenient=lenient)
        board.names.update(execution.names)
        await drive(execution)
    while execution.gates:
        gate = execution.gates[0]
        said = _read(f"{gate.node}: ")
        if not said:
            break
        answer = said_at(gate.id, said)
        await execution.answer(gate.id, answer.action, answer.data, comment=answer.comment)
        await drive(execution)
    return await execution.view()


def _read(prompt: str) -> str:
    """The next line; empty at the end."""
    if sys.stdin.isatty():
        click.echo(harmless(prompt), nl=False, err=True)
    return sys.stdin.readline().strip()
