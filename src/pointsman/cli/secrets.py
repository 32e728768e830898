"""`pointsman secrets`: what the vault keeps for handles (`secret.NAME`). Values go in, and never come out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal, cast

import click

from pointsman.cli.app_opening import go, installation, loaded, session_at_prompt
from pointsman.cli.options import json_option, not_empty, os_user, store_option
from pointsman.cli.printing import print_json, say, shown
from pointsman.cli.results import when

if TYPE_CHECKING:
    from pointsman.auth.vault import SecretRuleView, SecretView
    from pointsman.workflows.access_verbs import RuleParts

PLACES: Final[tuple[Literal["hosts", "tools", "workflows", "groups"], ...]] = ("hosts", "tools", "workflows", "groups")
_HELPS: Final = {
    "hosts": "A host to which http nodes may send it: api.example.com, *.example.com, http://localhost:8080.",
    "tools": "A tool, or a pattern of tools, whose parameters may name it.",
    "workflows": "Only this saved workflow (or the named ones) may use it; also id@revision.",
    "groups": "Only saved workflows with these `allowedGroups` may use it.",
}


def rule_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--host`, `--tool`, `--workflow` and `--group`, each as often as needed."""
    for name in reversed(PLACES):
        flag = name.removesuffix("s")
        option = click.option(f"--{flag}", name, multiple=True, metavar=flag.upper(), help=_HELPS[name])
        command = option(command)
    return command


@click.group()
def secrets() -> None:
    """Secrets of the store: init, set, allow, disallow, list, delete, rotate."""


@secrets.command()
@json_option
def init(*, as_json: bool) -> None:
    """Create the key file, if it does not exist. Store a copy of it elsewhere: without it the secrets are lost."""
    from pointsman.auth.vault_keys import VaultKeyInvalid, key_file_of, make_key, read_key_file

    settings = loaded().settings.vault
    path = key_file_of(settings)
    if read_key_file(path):
        hint = "`pointsman secrets rotate --new-key` adds a newer one."
        raise VaultKeyInvalid(f"there is a key in {str(path)!r} already", hint=hint)
    make_key(settings)
    if as_json:
        print_json({"keyFile": str(path)})
    else:
        say(f"made {path}")


@secrets.command("set")
@click.argument("name", callback=not_empty)
@rule_options
@click.option("--as", "by", default=os_user, metavar="NAME", help="Your name (default: your login).")
@json_option
@store_option
def set_(name: str, *, by: str, as_json: bool, store: str | None, **places: tuple[str, ...]) -> None:
    """Store a secret and its allowed destinations.

    The value is read from standard input or a prompt, never from an argument, which other users could see. A secret
    that has a rule keeps it, unless options give another one. Without hosts and tools, documents cannot send it
    anywhere.
    """
    value = _value()
    parts = cast("RuleParts", places if any(places.values()) else {})
    kept = go(_set(store, name, value, parts, by))
    if as_json:
        print_json({"set": [name]})
        return
    say(f"set {name}")
    if not (kept["hosts"] or kept["tools"]):
        say(f"no document may send it anywhere yet: `pointsman secrets allow {name} --host HOST` or `--tool TOOL`")


@secrets.command()
@click.argument("name", callback=not_empty)
@rule_options
@click.option("--as", "by", default=os_user, metavar="NAME", help="Your name (default: your login).")
@json_option
@store_option
def allow(name: str, *, by: str, as_json: bool, store: str | None, **places: tuple[str, ...]) -> None:
    """Let documents send a secret to more hosts and tools, or limit it to workflows and groups.

    Also for a secret whose value is in the environment.
    """
    _show_rule(name, go(_change(store, "allow", name, places, by)), as_json=as_json)


@secrets.command()
@click.argument("name", callback=not_empty)
@rule_options
@click.option("--as", "by", default=os_user, metavar="NAME", help="Your name (default: your login).")
@json_option
@store_option
def disallow(name: str, *, by: str, as_json: bool, store: str | None, **places: tuple[str, ...]) -> None:
    """Remove hosts, tools, workflows or groups from the rule of a secret."""
    _show_rule(name, go(_change(store, "disallow", name, places, by)), as_json=as_json)


@secrets.command("list")
@json_option
@store_option
def list_(*, as_json: bool, store: str | None) -> None:
    """List the names of all secrets, their last changes, and their allowed destinations. Values are not shown."""
    found = go(_list(store))
    if as_json:
        print_json({"secrets": found})
        return
    if not found:
        click.echo("no secret is kept", err=True)
    for one in found:
        click.echo(f"{shown(one['name']):32}  {when(one['changedAt']):19}  {shown(one['changedBy'])}".rstrip())
        for line in _lines(one):
            click.echo(f"  {shown(line)}")


async def _list(store: str | None) -> list[SecretView]:
    async with installation(store) as app:
        return (await session_at_prompt(app).secrets.list())["secrets"]


@secrets.command()
@click.argument("name")
@json_option
@store_option
def delete(name: str, *, as_json: bool, store: str | None) -> None:
    """Delete a secret. Steps that name it fail from now on."""
    go(_delete(store, name))
    if as_json:
        print_json({"deleted": [name]})
    else:
        say(f"deleted {name}")


async def _delete(store: str | None, name: str) -> None:
    async with installation(store) as app:
        await session_at_prompt(app).secrets.delete(name)


@secrets.command()
@click.option("--new-key", is_flag=True, help="Create a new key first, and put it before the others in the key file.")
@json_option
@store_option
def rotate(*, new_key: bool, as_json: bool, store: str | None) -> None:
    """Seal all secrets again with the newest key. Older keys may be removed afterwards, if no backup needs them."""
    from pointsman.auth.vault_keys import make_key

    if new_key:
        make_key(loaded().settings.vault)
    done = go(_rotate(store, new_key=new_key))
    if as_json:
        print_json({"rotated": done})
    else:
        say(f"sealed {done} anew")


async def _rotate(store: str | None, *, new_key: bool) -> int:
    async with installation(store) as app:
        return await session_at_prompt(app, target="new_key=yes" if new_key else "").secrets.rotate()


async def _set(store: str | None, name: str, value: str, parts: RuleParts, by: str) -> SecretRuleView:
    async with installation(store) as app:
        secrets = session_at_prompt(app).secrets
        await secrets.set(name, value, by=_other(by), **parts)
        return await secrets.rule(name)


async def _change(
    store: str | None, change: Literal["allow", "disallow"], name: str, places: dict[str, tuple[str, ...]], by: str
) -> SecretRuleView:
    async with installation(store) as app:
        secrets = session_at_prompt(app).secrets
        verb = secrets.allow if change == "allow" else secrets.disallow
        return await verb(name, by=_other(by), **places)


def _other(by: str) -> str | None:
    """Return the name of `--as`; None: that of the login, which audit entries contain in any case."""
    return None if by == os_user() else by


def _lines(rule: SecretRuleView) -> Iterator[str]:
    if not (rule["hosts"] or rule["tools"]):
        yield "may go nowhere: name hosts or tools with `pointsman secrets allow`"
    for name in PLACES:
        if values := rule[name]:
            yield f"{name}: {', '.join(values)}"


def _show_rule(name: str, rule: SecretRuleView, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, **rule})
        return
    say(f"changed {name}")
    for line in _lines(rule):
        say(f"  {line}")


def _value() -> str:
    """What is piped in, but for the end of its last line; or asked for."""
    if sys.stdin.isatty():
        return str(click.prompt("Value", hide_input=True, err=True))
    try:
        return sys.stdin.read().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise click.UsageError("the value on standard input is no UTF-8 text.") from None
