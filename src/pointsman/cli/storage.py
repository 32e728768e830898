"""Commands about what is kept: delete, gc."""

from __future__ import annotations

from typing import cast

import click

from pointsman.cli.completion import complete_execution
from pointsman.cli.opening import go, installation
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import print_json, shown
from pointsman.values import Json, JsonObject


@click.command()
@click.argument("executions", metavar="[EXECUTION]…", nargs=-1, shell_complete=complete_execution)
@click.option("--session", metavar="ID", help="A conversation: what was said, its executions, what it remembered.")
@json_option
@store_option
def delete(executions: tuple[str, ...], *, session: str | None, as_json: bool, store: str | None) -> None:
    """Delete executions that have ended, with their sub-workflows, or a conversation. For good.

    Nothing of them is left in the store's files. What has not ended must be cancelled first.
    """
    if bool(executions) == (session is not None):
        raise click.UsageError("name executions, or a conversation with --session")
    gone = go(_delete(store, executions, session))
    if as_json:
        print_json({"deleted": cast("list[Json]", gone)})
        return
    for one in gone:
        click.echo(f"deleted {one}", err=True)


async def _delete(store: str | None, executions: tuple[str, ...], session: str | None) -> list[str]:
    async with installation(store) as app:
        gone: list[str] = []
        if session is not None:
            gone += await app.storage.delete_session(session)
        for execution in dict.fromkeys(executions):
            if execution not in gone:
                gone += await app.storage.delete(execution)
        await app.storage.compact()
        return gone


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@json_option
@store_option
def gc(*, dry_run: bool, as_json: bool, store: str | None) -> None:
    """Delete what the retention settings let go, and contents that nobody uses any more.

    Without `retention` in the settings no execution is ever deleted. Safe beside processes that use the store.
    """
    found = go(_gc(store, dry_run=dry_run))
    if as_json:
        print_json(found)
        return
    for one in cast("list[str]", found["executions"]):
        click.echo(one)
    executions = len(cast("list[str]", found["executions"]))
    verb = "would delete" if dry_run else "deleted"
    click.echo(
        f"{verb} {executions} executions and {shown(found['blobs'])} unused contents;"
        f" {shown(found['bytesGivenBack'])} bytes given back",
        err=True,
    )


async def _gc(store: str | None, *, dry_run: bool) -> JsonObject:
    async with installation(store) as app:
        return (await app.storage.collect(dry_run=dry_run)).to_json()
