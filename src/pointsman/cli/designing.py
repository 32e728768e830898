"""Commands to design and edit workflows by description or operations, and to roll them back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pointsman.authoring.operations import read_operations
from pointsman.authoring.verbs import DesignedWorkflow, EditedWorkflow, RestoredRevision
from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.completion import complete_workflow
from pointsman.cli.options import json_option, model_option, script_option, store_option, value_of
from pointsman.cli.printing import print_json, say, shown
from pointsman.cli.results import say_scripted
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from pointsman.authoring.conversation_history import Round

DONE, ERRORS = 0, 1


def _tell(one: Round) -> None:
    """Print a design round on standard error: standard output is reserved for the document."""
    if one.usage.scripted and one.number == 1:
        say_scripted()
    errors = [problem for problem in one.problems if problem.severity == "error"]
    say(f"round {one.number} ({shown(one.model)}): {len(errors)} error{'' if len(errors) == 1 else 's'}")
    for problem in errors[:5]:
        say(f"  {shown(problem.message)}")


@click.command()
@click.argument("words")
@click.option("--id", "name", default="", metavar="ID", help="The id of the workflow.")
@click.option("--save", is_flag=True, help="Save it, if it has no errors.")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write it to this file.")
@model_option
@script_option
@json_option
@store_option
def design(
    words: str,
    *,
    name: str,
    save: bool,
    out: Path | None,
    model: str | None,
    script: Path | None,
    as_json: bool,
    store: str | None,
) -> int:
    """Let a model design a workflow from a description in WORDS. Each round is printed on standard error.

    Exit code 0: the workflow has no errors; 1: it has errors, or none was designed.
    """
    said = go(_design(store, model, script, words, name=name, save=save))
    text = str(said["text"])
    if out is not None and text:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as why:
            raise click.FileError(str(out), why.strerror or "cannot be written") from None
    if as_json:
        print_json(said)
    elif out is None and text:
        click.echo(text, nl=not text.endswith("\n"))
    if "id" in said and "revision" in said:
        say(f"saved {shown(said['id'])}@{said['revision']}")
    return DONE if said["ok"] else ERRORS


async def _design(
    store: str | None, model: str | None, script: Path | None, words: str, *, name: str, save: bool
) -> DesignedWorkflow:
    async with installation(store, model=model, script=script) as app:
        return await session_at_prompt(app).authoring.design(words, name=name, save=save, hear=_tell)


@click.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.option("--words", default="", metavar="TEXT", help="Description of the change; a model finds the operations.")
@click.option("--operations", "given", metavar="JSON|@FILE", help="The operations themselves, as a list.")
@click.option("--apply", is_flag=True, help="Save the changes; without this option they are only shown.")
@model_option
@script_option
@json_option
@store_option
def edit(
    workflow: str,
    *,
    words: str,
    given: str | None,
    apply: bool,
    model: str | None,
    script: Path | None,
    as_json: bool,
    store: str | None,
) -> int:
    """Change a saved workflow, by a description or by operations. Shows the changes; --apply saves them.

    Exit code 0: the result has no errors; 1: it has errors.
    """
    if bool(words) == (given is not None):
        raise click.UsageError("give either --words or --operations")
    said = go(_edit(store, model, script, workflow, words, _operations(given), apply=apply))
    if as_json:
        print_json(said)
        return DONE if said["ok"] else ERRORS
    for change in said["changes"]:
        click.echo(_line(change))
    for problem in said["new"]:
        say(f"new {problem['severity']}: {shown(problem['message'])}")
    say(f"saved {shown(said['id'])}@{said['revision']}" if said["applied"] else "nothing is saved: --apply saves it")
    return DONE if said["ok"] else ERRORS


async def _edit(
    store: str | None,
    model: str | None,
    script: Path | None,
    workflow: str,
    words: str,
    operations: Json,
    *,
    apply: bool,
) -> EditedWorkflow:
    async with installation(store, model=model, script=script) as app:
        authoring = session_at_prompt(app).authoring
        if words:
            return await authoring.edit_by_words(workflow, words, apply=apply, hear=_tell)
        return await authoring.edit(workflow, read_operations(operations), apply=apply)


def _operations(given: str | None) -> Json:
    if given is None:
        return None
    if not given.startswith("@"):
        return value_of(given, what="--operations")
    try:
        return value_of(Path(given[1:]).read_text(encoding="utf-8"), what=given)
    except (OSError, UnicodeDecodeError) as why:
        raise click.BadParameter(f"{given[1:]!r} cannot be read: {why}.", param_hint="--operations") from None


def _line(change: JsonObject) -> str:
    """Return an operation as one line."""
    rest = ", ".join(f"{key} {shown(value)}" for key, value in change.items() if key != "op")
    return f"{change['op']}: {rest}"


@click.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.argument("revision", type=click.IntRange(min=1))
@json_option
@store_option
def rollback(workflow: str, revision: int, *, as_json: bool, store: str | None) -> None:
    """Save an old REVISION as the latest one."""
    said = go(_rollback(store, workflow, revision))
    if as_json:
        print_json(said)
    else:
        click.echo(f"{said['id']}@{said['revision']}")


async def _rollback(store: str | None, workflow: str, revision: int) -> RestoredRevision:
    async with installation(store) as app:
        return await session_at_prompt(app).authoring.restore(workflow, revision)
