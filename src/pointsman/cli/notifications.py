"""Commands about notifications: what is in the outbox, and sending again what was given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import print_json, say, shown
from pointsman.cli.results import when

if TYPE_CHECKING:
    from pointsman.triggers.notifications.views import NoticeView


@click.group()
def notifications() -> None:
    """Notices to the addresses under [notifications]. `pointsman keep` sends them."""


@notifications.command("list")
@json_option
@store_option
def list_(*, as_json: bool, store: str | None) -> None:
    """List notices that wait, were sent within the last hour, or were given up."""
    found = go(_list(store))
    if as_json:
        print_json({"notifications": found})
        return
    if not found:
        say("the outbox is empty")
    for one in found:
        _print(one)


async def _list(store: str | None) -> list[NoticeView]:
    async with installation(store) as app:
        return (await session_at_prompt(app).notifications.list())["notices"]


@notifications.command()
@click.argument("notice")
@json_option
@store_option
def retry(notice: str, *, as_json: bool, store: str | None) -> None:
    """Send a notice again that was given up."""
    found = go(_retry(store, notice))
    if as_json:
        print_json(found)
    else:
        _print(found)


async def _retry(store: str | None, notice: str) -> NoticeView:
    from pointsman.triggers.notifications.views import notice_view  # Deferred: the outbox takes long to load.

    async with installation(store) as app:
        return notice_view(await session_at_prompt(app).notifications.retry(notice))


def _print(one: NoticeView) -> None:
    error = f"  {shown(one['error'])}" if one["error"] else ""
    click.echo(f"{one['state']:8} {when(one['at'])}  {shown(one['event']):26} {shown(one['id'])}{error}")
