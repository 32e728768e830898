"""`pointsman audit`: print the audit log."""

from __future__ import annotations

import click

from pointsman.auth.audit import AuditEntryView
from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import print_json, shown
from pointsman.cli.results import when


@click.command()
@click.option("--who", metavar="NAME", help="Only entries of this caller.")
@click.option("--what", metavar="TEXT", help="Only operations that contain this.")
@click.option("--before", metavar="PLACE", help="`next` of the previous page.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Approximate number of entries."
)
@json_option
@store_option
def audit(
    *, who: str | None, what: str | None, before: str | None, limit: int, as_json: bool, store: str | None
) -> None:
    """Print the audit log: changes, callers, origins and results; newest first. `pointsman verify` checks the
    chain."""

    async def look() -> tuple[list[AuditEntryView], str | None]:
        async with installation(store) as app:
            return await session_at_prompt(app).access.audit_entries(who=who, what=what, before=before, limit=limit)

    deeds, following = go(look())
    if as_json:
        print_json({"deeds": deeds, "next": following})
        return
    if not deeds:
        click.echo("nothing was asked for", err=True)
    for deed in deeds:
        told = f"{when(deed['at'])}  {shown(deed['who']):16}  {shown(deed['what'])}  {shown(deed['target'])}".rstrip()
        click.echo(f"{told}  refused: {shown(deed['refused'])}" if deed["refused"] else told)
