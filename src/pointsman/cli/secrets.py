"""`pointsman secrets`: what the vault keeps for handles (`secret.NAME`). Values go in, and never come out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pointsman.cli.looking import when
from pointsman.cli.opening import go, installation, loaded
from pointsman.cli.options import json_option, not_empty, os_user, store_option
from pointsman.cli.printing import print_json, say, shown

if TYPE_CHECKING:
    from pointsman.app.access.vault import Vault

T = TypeVar("T")


@click.group()
def secrets() -> None:
    """Secrets that the store keeps sealed: init, set, list, delete, rotate. Nobody can read them again."""


@secrets.command()
@json_option
def init(*, as_json: bool) -> None:
    """Make the key file, where there is none. Keep a copy of it elsewhere: without it the secrets are lost."""
    from pointsman.app.access.vault_keys import VaultKeyInvalid, key_file_of, make_key, read_key_file

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
@click.option("--as", "by", default=os_user, metavar="NAME", help="Who you are (default: your login).")
@json_option
@store_option
def set_(name: str, *, by: str, as_json: bool, store: str | None) -> None:
    """Keep a secret. Its value is read from standard input, or asked for: never an argument, which others could see."""
    value = _value()
    _with_vault(store, lambda vault: vault.set(name, value, by=by))
    if as_json:
        print_json({"set": [name]})
    else:
        say(f"set {name}")


@secrets.command("list")
@json_option
@store_option
def list_(*, as_json: bool, store: str | None) -> None:
    """Their names, and who changed them when. Not their values."""
    from pointsman.app.access.vault import secret_view

    found = _with_vault(store, lambda vault: vault.all())
    if as_json:
        print_json({"secrets": [secret_view(one) for one in found]})
        return
    if not found:
        click.echo("no secret is kept", err=True)
    for one in found:
        click.echo(f"{shown(one.name):32}  {when(one.changed):19}  {shown(one.by)}".rstrip())


@secrets.command()
@click.argument("name")
@json_option
@store_option
def delete(name: str, *, as_json: bool, store: str | None) -> None:
    """Forget a secret. Steps that name it fail from now on."""
    _with_vault(store, lambda vault: vault.delete(name))
    if as_json:
        print_json({"deleted": [name]})
    else:
        say(f"deleted {name}")


@secrets.command()
@click.option("--new-key", is_flag=True, help="Make a new key first, and put it before the others in the key file.")
@json_option
@store_option
def rotate(*, new_key: bool, as_json: bool, store: str | None) -> None:
    """Seal all of them anew, with the newest key. Older keys may be taken away afterwards, if no backup needs them."""
    from pointsman.app.access.vault_keys import make_key

    if new_key:
        make_key(loaded().settings.vault)
    done = _with_vault(store, lambda vault: vault.rotate())
    if as_json:
        print_json({"rotated": done})
    else:
        say(f"sealed {done} anew")


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
