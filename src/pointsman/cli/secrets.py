"""`pointsman secrets`: what the vault keeps for handles (`secret.NAME`). Values go in, and never come out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pointsman.auth.secrets import SecretRule
from pointsman.cli.app_opening import go, installation, loaded
from pointsman.cli.options import json_option, not_empty, os_user, store_option
from pointsman.cli.printing import print_json, say, shown
from pointsman.cli.results import when

if TYPE_CHECKING:
    from pointsman.auth.vault import Vault

T = TypeVar("T")


PLACES: Final = ("hosts", "tools", "workflows", "groups")
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
    rule = _rule(places) if any(places.values()) else None
    kept = _with_vault(store, lambda vault: _set(vault, name, value, rule=rule, by=by))
    if as_json:
        print_json({"set": [name]})
        return
    say(f"set {name}")
    if not (kept.hosts or kept.tools):
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
    _change(store, name, by, as_json=as_json, change=lambda rule: _with(rule, places))


@secrets.command()
@click.argument("name", callback=not_empty)
@rule_options
@click.option("--as", "by", default=os_user, metavar="NAME", help="Your name (default: your login).")
@json_option
@store_option
def disallow(name: str, *, by: str, as_json: bool, store: str | None, **places: tuple[str, ...]) -> None:
    """Remove hosts, tools, workflows or groups from the rule of a secret."""
    _change(store, name, by, as_json=as_json, change=lambda rule: _without(rule, places))


@secrets.command("list")
@json_option
@store_option
def list_(*, as_json: bool, store: str | None) -> None:
    """List the names of all secrets, their last changes, and their allowed destinations. Values are not shown."""
    from pointsman.auth.vault import secret_view

    found = _with_vault(store, lambda vault: vault.all())
    if as_json:
        print_json({"secrets": [secret_view(one) for one in found]})
        return
    if not found:
        click.echo("no secret is kept", err=True)
    for one in found:
        click.echo(f"{shown(one.name):32}  {when(one.changed):19}  {shown(one.by)}".rstrip())
        for line in _lines(one.rule):
            click.echo(f"  {shown(line)}")


@secrets.command()
@click.argument("name")
@json_option
@store_option
def delete(name: str, *, as_json: bool, store: str | None) -> None:
    """Delete a secret. Steps that name it fail from now on."""
    _with_vault(store, lambda vault: vault.delete(name))
    if as_json:
        print_json({"deleted": [name]})
    else:
        say(f"deleted {name}")


@secrets.command()
@click.option("--new-key", is_flag=True, help="Create a new key first, and put it before the others in the key file.")
@json_option
@store_option
def rotate(*, new_key: bool, as_json: bool, store: str | None) -> None:
    """Seal all secrets again with the newest key. Older keys may be removed afterwards, if no backup needs them."""
    from pointsman.auth.vault_keys import make_key

    if new_key:
        make_key(loaded().settings.vault)
    done = _with_vault(store, lambda vault: vault.rotate())
    if as_json:
        print_json({"rotated": done})
    else:
        say(f"sealed {done} anew")


def _rule(places: dict[str, tuple[str, ...]]) -> SecretRule:
    return SecretRule(**{name: tuple(dict.fromkeys(values)) for name, values in places.items()})


def _with(rule: SecretRule, places: dict[str, tuple[str, ...]]) -> SecretRule:
    return _rule({name: (*getattr(rule, name), *values) for name, values in places.items()})


def _without(rule: SecretRule, places: dict[str, tuple[str, ...]]) -> SecretRule:
    """Raises `UsageError` for what is not in the rule: a misspelt host would go on being allowed."""
    for name, values in places.items():
        if unknown := [one for one in values if one not in getattr(rule, name)]:
            raise click.UsageError(f"not among its {name}: {', '.join(unknown)}.")
    return _rule({name: tuple(one for one in getattr(rule, name) if one not in out) for name, out in places.items()})


def _lines(rule: SecretRule) -> Iterator[str]:
    if not (rule.hosts or rule.tools):
        yield "may go nowhere: name hosts or tools with `pointsman secrets allow`"
    for name in PLACES:
        if values := getattr(rule, name):
            yield f"{name}: {', '.join(values)}"


async def _set(vault: Vault, name: str, value: str | None, *, rule: SecretRule | None, by: str) -> SecretRule:
    await vault.set(name, value, rule=rule, by=by)
    return vault.rule(name)


def _change(
    store: str | None, name: str, by: str, *, as_json: bool, change: Callable[[SecretRule], SecretRule]
) -> None:
    async def changed(vault: Vault) -> SecretRule:
        await vault.refresh()
        return await _set(vault, name, None, rule=change(vault.rule(name)), by=by)

    rule = _with_vault(store, changed)
    if as_json:
        print_json({"name": name, **{place: [*getattr(rule, place)] for place in PLACES}})
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


def _with_vault(store: str | None, work: Callable[[Vault], Coroutine[Any, Any, T]]) -> T:
    async def do() -> T:
        async with installation(store) as app:
            return await work(app.vault)

    return go(do())
