"""Commands for stored data: delete, gc, export, import, backup, restore."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar, cast

import click

from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.options import ExistingName, json_option, store_option
from pointsman.cli.printing import print_deleted, print_json, say, shown
from pointsman.cli.references import complete_execution, execution_argument, naming_executions
from pointsman.errors import OperatorError
from pointsman.settings import masked_address
from pointsman.values import JsonObject

if TYPE_CHECKING:
    from pointsman.operations.backup import Backup


@click.command()
@click.argument("executions", metavar="[EXECUTION]…", nargs=-1, shell_complete=complete_execution)
@click.option("--session", metavar="ID", help="A conversation: its messages, executions and memory.")
@json_option
@store_option
@naming_executions("executions")
def delete(executions: tuple[str, ...], *, session: str | None, as_json: bool, store: str | None) -> None:
    """Delete ended executions with their sub-workflows, or a conversation, permanently.

    Nothing of them remains in the store's files. Cancel running executions first: if one of several has not
    ended, none is deleted.
    """
    if bool(executions) == (session is not None):
        raise click.UsageError("give executions, or a conversation with --session")
    deleted = go(_delete(store, executions, session))
    print_deleted(*deleted, as_json=as_json)


async def _delete(store: str | None, executions: tuple[str, ...], session: str | None) -> list[str]:
    async with installation(store) as app:
        verbs = session_at_prompt(app, executions=executions, session=session)
        deleted = verbs.executions.delete(*executions) if session is None else verbs.conversations.delete(session)
        deleted_ids: list[str] = [*await deleted]
        await verbs.operations.compact()
        return deleted_ids


@click.command()
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@json_option
@store_option
def gc(*, dry_run: bool, as_json: bool, store: str | None) -> None:
    """Delete executions beyond their retention, unused contents, and the remains of interrupted forks and
    imports.

    Without `retention` in the settings no execution is ever deleted. Safe beside processes that use the store.
    """
    collected = go(_gc(store, dry_run=dry_run))
    if as_json:
        print_json(collected)
        return
    for execution in cast("list[str]", collected["executions"]):
        click.echo(execution)
    executions = len(cast("list[str]", collected["executions"]))
    verb = "would delete" if dry_run else "deleted"
    click.echo(
        f"{verb} {executions} executions, {shown(collected['blobs'])} unused contents, {shown(collected['memories'])} "
        f"expired values and {shown(collected['copies'])} interrupted copies; "
        f"{shown(collected['bytesGivenBack'])} bytes given back",
        err=True,
    )


async def _gc(store: str | None, *, dry_run: bool) -> JsonObject:
    async with installation(store) as app:
        return (await session_at_prompt(app).operations.collect(dry_run=dry_run)).to_json()


class FileUnwritable(OperatorError):
    """The output file cannot be written."""

    code: ClassVar[str] = "file-unwritable"


@click.command()
@execution_argument
@click.option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Default: standard output.")
@json_option
@store_option
def export(execution: str, *, output: Path | None, as_json: bool, store: str | None) -> None:
    """Export everything an execution needs to continue in another store: journal, effects, definition, script,
    sub-workflows.

    The file is JSON Lines, hashed throughout. It contains no keys of models and no secrets; it contains inputs
    and results.
    """
    to_stdout = output is None or str(output) == "-"
    if to_stdout and as_json:
        raise click.UsageError("--json needs --output: the export itself goes to standard output")
    if output is None or to_stdout:
        go(_export(store, execution, sys.stdout.buffer))
        return
    try:
        if output.exists() and not output.is_file():
            # Write to a device or a pipe; never replace it.
            with output.open("wb") as device:
                go(_export(store, execution, device))
        else:
            _export_beside(store, execution, output.resolve())
    except OSError as why:
        raise FileUnwritable(f"{str(output)!r} cannot be written: {why.strerror}", hint="Name another file.") from None
    if as_json:
        print_json({"executionId": execution, "file": str(output)})
        return
    click.echo(f"exported {execution} to {output}", err=True)


def _export_beside(store: str | None, execution: str, output: Path) -> None:
    """Write to a temporary file beside the target, and replace the target when it is complete."""
    with tempfile.NamedTemporaryFile(dir=output.parent, delete=False) as file:
        try:
            go(_export(store, execution, cast(BinaryIO, file)))
            file.close()
            os.replace(file.name, output)
        except BaseException:
            file.close()
            os.unlink(file.name)
            raise


async def _export(store: str | None, execution: str, file: BinaryIO) -> None:
    async with installation(store) as app:
        operations = session_at_prompt(app).operations
        async for line in await operations.export(execution):
            file.write(line)
        for one in await operations.left_out(execution):
            click.echo(f"omitted: {shown(one['path'])} of {one['executionId']} ({one['bytes']} bytes)", err=True)


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--new-id", is_flag=True, help="Import under a new id, beside the original.")
@json_option
@store_option
def import_(file: Path, *, new_id: bool, as_json: bool, store: str | None) -> None:
    """Import an execution from an exported file. `pointsman resume` continues it.

    Everything is verified before anything is written. An execution in two stores runs twice: cancel one of them.
    """
    execution = go(_import(store, file, new_id=new_id))
    if as_json:
        print_json({"executionId": execution})
    else:
        click.echo(execution)


async def _import(store: str | None, file: Path, *, new_id: bool) -> str:
    async with installation(store) as app:
        session = session_at_prompt(app, file=file)
        return await session.operations.import_execution(file, new=new_id)


@click.command()
@click.argument("file", type=ExistingName())
@json_option
@store_option
def backup(file: Path, *, as_json: bool, store: str | None) -> None:
    """Write everything in the store into FILE, as it is at one moment, and verify it. Safe while others use the store.

    Included: executions, workflows, schedules, keys, memory, conversations, files of executions. Not included:
    the settings with their secrets. FILE appears when it is complete; an existing file is never replaced.
    """
    made = go(_back_up(store, file))
    _print_summary(made, file, "backed up", as_json=as_json)


async def _back_up(store: str | None, file: Path) -> Backup:
    async with installation(store) as app:
        return await session_at_prompt(app, file=file).operations.back_up(file)


@click.command()
@click.argument("file", type=ExistingName())
@json_option
@store_option
def restore(file: Path, *, as_json: bool, store: str | None) -> None:
    """Restore a backup into an empty store: all of it, or nothing. It is verified before and afterwards.

    The store may be of another kind than the original. Running executions continue with the next worker: stop all
    processes of the old store first, or both continue.
    """
    made, where = go(_restore(store, file))
    _print_summary(made, file, f"restored to {shown(where)}", as_json=as_json)


async def _restore(store: str | None, file: Path) -> tuple[Backup, str]:
    async with installation(store) as app:
        session = session_at_prompt(app, file=file)
        return await session.operations.restore(file), masked_address(app.settings.store_url)


def _print_summary(made: Backup, file: Path, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(file), **made.to_json()})
        return
    about = made.about
    counts = f"{about.executions} executions, {about.workflows} workflows, {about.files} files"
    say(f"{what}: {counts}; {shown(str(file))}, {made.bytes} bytes")
