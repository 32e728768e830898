"""The audit log at a prompt."""

from __future__ import annotations

import click

from pointsman.auth.audit import Audit
from pointsman.cli.app_opening import go, installation
from pointsman.cli.inspection import when
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import print_json, shown
from pointsman.values import JsonObject


@click.command()
@click.option("--who", metavar="NAME", help="Only what this caller asked for.")
@click.option("--what", metavar="TEXT", help="Only operations with this in them.")
@click.option("--before", metavar="PLACE", help="`next` of the page before.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="About so many.")
@json_option
@store_option
def audit(
    *, who: str | None, what: str | None, before: str | None, limit: int, as_json: bool, store: str | None
) -> None:
    """Which changes were asked for, by whom, from where; newest first. `pointsman verify` checks the chain."""

    async def look() -> tuple[list[JsonObject], str | None]:
        async with installation(store) as app:
            return await Audit(app.store.entries, app.clock).page(who=who, what=what, before=before, limit=limit)

    deeds, following = go(look())
    if as_json:
        print_json({"deeds": [*deeds], "next": following})
        return
    if not deeds:
        click.echo("nothing was asked for", err=True)
    for deed in deeds:
        told = f"{when(deed['at'])}  {shown(deed['who']):16}  {shown(deed['what'])}  {shown(deed['target'])}".rstrip()
        click.echo(f"{told}  refused: {shown(deed['refused'])}" if deed["refused"] else told)
