"""Whose a workflow is, and who else may see and use it over HTTP."""

from __future__ import annotations

import click

from pointsman.auth.sharing import AUDIENCES, Audience, Sharing, share, sharing_of, sharing_view
from pointsman.cli.app_opening import go, installation
from pointsman.cli.audit_entries import at_the_prompt
from pointsman.cli.completion import complete_workflow
from pointsman.cli.options import json_option, not_empty, store_option
from pointsman.cli.printing import print_json, shown


@click.command("share")
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.option("--with", "audience", type=click.Choice(AUDIENCES), help="Who sees it beside its owner.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", callback=None, help="With `groups`. Repeatable.")
@click.option("--owner", metavar="NAME", callback=not_empty, help="Whose it shall be from now on.")
@json_option
@store_option
def share_(
    workflow: str,
    *,
    audience: Audience | None,
    groups: tuple[str, ...],
    owner: str | None,
    as_json: bool,
    store: str | None,
) -> None:
    """Whose a workflow is, and who may see and use it over HTTP. Without options: tell how it is."""
    found = go(_share(store, workflow, audience or ("groups" if groups else None), groups, owner))
    if as_json:
        print_json({"workflow": workflow, **sharing_view(found)})
        return
    among = f" ({', '.join(map(shown, found.groups))})" if found.groups else ""
    click.echo(f"{shown(workflow)}: owner {shown(found.owner) or 'nobody'}, shared with {found.audience}{among}")


async def _share(
    store: str | None, workflow: str, audience: Audience | None, groups: tuple[str, ...], owner: str | None
) -> Sharing:
    async with installation(store) as app:
        await app.library.found(workflow)
        if audience is None and owner is None:
            return await sharing_of(app, workflow)
        known = await sharing_of(app, workflow)
        kept = known.groups if audience is None else groups
        return await share(app, at_the_prompt(), workflow, audience or known.audience, groups=kept, owner=owner)
