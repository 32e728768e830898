"""`pointsman folders`: folders of saved workflows, and who sees what lies in them."""

from __future__ import annotations

import click

from pointsman.auth.sharing import AUDIENCES, Audience, Sharing, sharing_view
from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.options import json_option, not_empty, store_option
from pointsman.cli.printing import print_deleted, print_json, print_sharing, shown
from pointsman.workflows.folders import FolderList


@click.group()
def folders() -> None:
    """Folders of saved workflows. Their sharing narrows who sees the workflows in them."""


@folders.command("list")
@json_option
@store_option
def list_(*, as_json: bool, store: str | None) -> None:
    """List the folders, with the number of workflows in each."""
    listed = go(_list(store))
    if as_json:
        print_json(listed)
        return
    if not listed["folders"]:
        click.echo("no folders", err=True)
    for one in listed["folders"]:
        among = f" ({', '.join(map(shown, one['groups']))})" if one["groups"] else ""
        click.echo(f"{shown(one['path']):30}  {one['workflows']:4}  shared with {one['audience']}{among}")


async def _list(store: str | None) -> FolderList:
    async with installation(store) as app:
        return await session_at_prompt(app).folders.list()


@folders.command()
@click.argument("path", metavar="PATH")
@json_option
@store_option
def add(path: str, *, as_json: bool, store: str | None) -> None:
    """Create a folder such as sales/mail, and those around it that are missing."""
    go(_add(store, path))
    if as_json:
        print_json({"path": path})
        return
    click.echo(shown(path))


async def _add(store: str | None, path: str) -> None:
    async with installation(store) as app:
        await session_at_prompt(app).folders.create(path)


@folders.command()
@click.argument("path", metavar="PATH")
@click.argument("new", metavar="NEW")
@json_option
@store_option
def rename(path: str, new: str, *, as_json: bool, store: str | None) -> None:
    """Give a folder another path, with everything in it."""
    go(_rename(store, path, new))
    if as_json:
        print_json({"path": new})
        return
    click.echo(shown(new))


async def _rename(store: str | None, path: str, new: str) -> None:
    async with installation(store) as app:
        await session_at_prompt(app).folders.rename(path, new)


@folders.command()
@click.argument("path", metavar="PATH")
@click.option("--with", "audience", type=click.Choice(AUDIENCES), help="Audience beside its owner.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="Group that may see it. Repeatable.")
@click.option("--owner", metavar="NAME", callback=not_empty, help="The new owner.")
@json_option
@store_option
def share(
    path: str,
    *,
    audience: Audience | None,
    groups: tuple[str, ...],
    owner: str | None,
    as_json: bool,
    store: str | None,
) -> None:
    """Set who sees a folder and all that lies in it. Without options: print it."""
    sharing = go(_share(store, path, audience or ("groups" if groups else None), groups, owner))
    print_sharing("path", path, sharing_view(sharing), as_json=as_json)


async def _share(
    store: str | None, path: str, audience: Audience | None, groups: tuple[str, ...], owner: str | None
) -> Sharing:
    async with installation(store) as app:
        verbs = session_at_prompt(app).folders
        current = await verbs.sharing(path)
        if audience is None and owner is None:
            return current
        kept = current.groups if audience is None else groups
        return await verbs.share(path, audience or current.audience, groups=kept, owner=owner)


@folders.command()
@click.argument("path", metavar="PATH")
@json_option
@store_option
def delete(path: str, *, as_json: bool, store: str | None) -> None:
    """Delete an empty folder."""
    go(_delete(store, path))
    print_deleted(path, as_json=as_json)


async def _delete(store: str | None, path: str) -> None:
    async with installation(store) as app:
        await session_at_prompt(app).folders.delete(path)
