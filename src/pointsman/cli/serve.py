"""The server, and the keys that open it."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import Final

import click

from pointsman.app import Pointsman
from pointsman.auth.callers import ROLES, Role
from pointsman.auth.keys import KeyView
from pointsman.cli.announcements import announce, warn_of_scripted
from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.options import json_option, model_option, not_empty, script_option, store_option
from pointsman.cli.printing import print_json, say, shown
from pointsman.cli.results import when
from pointsman.cli.signals import ENDS, heeding
from pointsman.errors import Outage, PointsmanError
from pointsman.operations.logs import logging_to
from pointsman.operations.otel import telemetry_of
from pointsman.operations.worker_role import first_of, keeping
from pointsman.settings.display import store_shown
from pointsman.values import ExecutionId

STOPS: Final = (*ENDS, signal.SIGINT)


@click.command()
@click.option(
    "--wait", is_flag=True, help="If another process is the leader of the store: stand by, and take over when it ends."
)
@json_option
@model_option
@script_option
@store_option
def keep(*, wait: bool, as_json: bool, model: str | None, script: Path | None, store: str | None) -> None:
    """Run a background worker until stopped (Ctrl-C, SIGTERM): resume executions of processes that ended, fire
    timers, start due schedules, send notifications. Executions that run when it stops continue with the next
    worker."""
    kept = go(_keep(store, model, script, wait=wait))
    if as_json:
        print_json({"store": kept, "status": "stopped"})


async def _keep(store: str | None, model: str | None, script: Path | None, *, wait: bool) -> str:
    async with installation(store, model=model, script=script) as app:
        stop = asyncio.Event()
        keeps, stopped = asyncio.create_task(_keeps(app, wait=wait)), asyncio.create_task(stop.wait())
        with heeding(STOPS, stop.set):
            try:
                await asyncio.wait({keeps, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if keeps.done():
                    keeps.result()
            finally:
                for task in (keeps, stopped):
                    task.cancel()
                await asyncio.gather(keeps, stopped, return_exceptions=True)
    say("stopped")
    return store_shown(app.settings.store_url)


async def _keeps(app: Pointsman, *, wait: bool) -> None:
    """Until cancelled. Raises what broke it: the first of several, since one is enough to tell what to do."""
    try:
        async with keeping(app.context, wait=wait, tell=tried_again):
            with logging_to(app.context, app.settings.logs):
                announce(app.settings.logs, "keeping", store_shown(app.settings.store_url))
                warn_of_scripted(app)
                async with telemetry_of(app.context):
                    await asyncio.Event().wait()
    except BaseExceptionGroup as several:
        raise first_of(several) from None


def tried_again(execution: ExecutionId | None, why: BaseException) -> None:
    due = "the store cannot be used" if isinstance(why, Outage) else "something that is due cannot be done"
    what = due if execution is None else f"{execution} cannot be taken up"
    code = f" [{why.code}]" if isinstance(why, PointsmanError) else ""
    say(f"{what}, and is tried again:{code} {why}")


@click.command()
@click.option(
    "--host",
    callback=not_empty,
    help="Address to listen on; other addresses than this machine need keys (default: 127.0.0.1).",
)
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; 0: any free one (default: 8000).")
@click.option(
    "--standby", is_flag=True, help="If another process is the leader of the store: serve, and take over when it ends."
)
@model_option
@script_option
@store_option
def serve(
    *, host: str | None, port: int | None, standby: bool, model: str | None, script: Path | None, store: str | None
) -> None:
    """Serve the API until stopped (Ctrl-C, SIGTERM), and lead the store: resume executions, fire timers.

    Without keys, every program on this machine may do everything; `pointsman keys add` ends that. On a signal the
    server accepts no more requests, ends streams, and waits for running steps (`drain` under [server] in the
    settings); on a second signal it stops at once.
    """
    go(_serve(store, model, script, host, port, standby=standby))


async def _serve(
    store: str | None, model: str | None, script: Path | None, host: str | None, port: int | None, *, standby: bool
) -> None:
    from pointsman.cli.announcements import announce, warn_of_scripted
    from pointsman.operations.logs import logging_to  # As below.
    from pointsman.operations.otel import telemetry_of
    from pointsman.server.serving import ServerMessages  # Loads a web framework.
    from pointsman.server.serving import serve as serve_until_stopped

    app = installation(store, model=model, script=script)
    app.settings = app.settings.served_at(host, port)
    async with app:
        shown_store, tell = store_shown(app.settings.store_url), partial(announce, app.settings.logs)

        def serving(at: str) -> None:
            tell("serving", f"{at} from {shown_store}{', standing by' if standby else ''}")
            warn_of_scripted(app)

        said = ServerMessages(
            serving=serving,
            keeping=lambda: tell("keeping", shown_store),
            trouble=tried_again,
        )
        with logging_to(app.context, app.settings.logs):
            async with telemetry_of(app.context):
                await serve_until_stopped(app, settings=app.settings.server, standby=standby, said=said)
            tell("stopped")


@click.group()
def keys() -> None:
    """API keys of the server: add, list, revoke. Without keys, this machine has access."""


@keys.command()
@click.argument("name", callback=not_empty)
@click.option("--role", type=click.Choice(ROLES), default="operator", show_default=True, help="Role of the key.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group of the key. Repeatable.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Days until it expires (default: never).")
@json_option
@store_option
def add(
    name: str, *, role: Role, groups: tuple[str, ...], days: float | None, as_json: bool, store: str | None
) -> None:
    """Create a key and print it. Only its hash is stored: it is never shown again."""
    token = go(_add(store, name, role, groups, days))
    if as_json:
        print_json({"name": name, "role": role, "key": token})
    else:
        click.echo(token)


async def _add(store: str | None, name: str, role: Role, groups: tuple[str, ...], days: float | None) -> str:
    async with installation(store) as app:
        return await session_at_prompt(app).access.add_key(name, role, groups=groups, days=days)


@keys.command("list")
@click.option("--search", default="", metavar="WORDS", help="Only those with all these words in name or groups.")
@click.option("--role", type=click.Choice(ROLES), help="Only those of this role.")
@json_option
@store_option
def list_(*, search: str, role: Role | None, as_json: bool, store: str | None) -> None:
    """List the names of all keys with their last use. The keys themselves are not shown."""
    found = go(_list(store, search, role))
    if as_json:
        print_json({"keys": found})
        return
    if not found:
        click.echo("no key fits" if search or role else "no key is made", err=True)
    for key in found:
        used = when(key["usedAt"]) if key["usedAt"] else "never used"
        groups = ", ".join(map(shown, key["groups"]))
        click.echo(f"{shown(key['name']):24}  {key['role']!s:8}  {used:19}  {groups}".rstrip())


async def _list(store: str | None, search: str, role: Role | None) -> list[KeyView]:
    async with installation(store) as app:
        return (await session_at_prompt(app).access.keys(search=search, role=role, limit=None))["keys"]


@keys.command()
@click.argument("name")
@json_option
@store_option
def revoke(name: str, *, as_json: bool, store: str | None) -> None:
    """Revoke a key within a second. Even without a remaining admin key, the server still requires one."""
    admins = go(_revoke(store, name))
    if as_json:
        print_json({"revoked": [name], "admins": len(admins)})
        return
    say(f"revoked {name}")
    if not admins:
        say("no key of an admin is left; make one: pointsman keys add NAME --role admin")


async def _revoke(store: str | None, name: str) -> list[str]:
    """The keys of admins that are left."""
    async with installation(store) as app:
        return await session_at_prompt(app).access.revoke_key(name)
