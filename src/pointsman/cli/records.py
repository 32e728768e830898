"""`pointsman records`: what was made in a session, by collection."""

from __future__ import annotations

from typing import cast

import click

from pointsman.chat.records import SESSIONS, records_of
from pointsman.cli.app_opening import go, installation
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import print_json, shown
from pointsman.values import Json, JsonObject

HEAD = ("session_id", "execution_id", "node", "created_at")


@click.command()
@click.argument("session")
@json_option
@store_option
def records(session: str, *, as_json: bool, store: str | None) -> None:
    """List the records of a session: its executions, and their writes by collection, oldest first."""
    found = go(_records(store, session))
    if as_json:
        print_json(found)
        return
    for name in (SESSIONS, *sorted(set(found) - {SESSIONS, "session_id"})):
        click.echo(click.style(name, bold=True))
        for one in cast("list[JsonObject]", found[name]):
            click.echo(f"  {one['created_at']}  {shown(one.get('node') or one['execution_id']):14}  {_told(one)}")


def _told(record: JsonObject) -> str:
    """Its members, each in a few words."""
    facts: dict[str, Json] = {key: value for key, value in record.items() if key not in HEAD and value is not None}
    if set(facts) == {"value"}:
        value = facts["value"]
        return shown(" ".join(value.split()) if isinstance(value, str) else value, chars_max=90)
    return "  ".join(f"{key}={shown(value, chars_max=40)}" for key, value in facts.items())


async def _records(store: str | None, session: str) -> JsonObject:
    async with installation(store) as app:
        return await records_of(app.context, session)
