"""Access to the server and its secrets: commands keys, secrets and audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal, cast

import click

from pointsman.auth.audit import AuditEntryView
from pointsman.auth.callers import ROLES, Role
from pointsman.auth.keys import KeyView
from pointsman.cli.app_opening import go, installation, loaded, session_at_prompt
from pointsman.cli.options import json_option, not_empty, os_user, store_option
from pointsman.cli.printing import print_json, read_hidden, say, shown
from pointsman.cli.times import TIME_CHARS, distance, when

if TYPE_CHECKING:
    from pointsman.auth.vault import SecretRuleView, SecretView
    from pointsman.workflows.access_verbs import RuleParts


@click.group()
def keys() -> None:
    """API keys of the server: add, list, revoke. Without keys, this machine has access."""


@keys.command("add")
@click.argument("name", callback=not_empty)
@click.option("--role", type=click.Choice(ROLES), default="operator", show_default=True, help="Role of the key.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group of the key. Repeatable.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Days until it expires (default: never).")
@json_option
@store_option
def add_key(
    name: str, *, role: Role, groups: tuple[str, ...], days: float | None, as_json: bool, store: str | None
) -> None:
    """Create a key and print it. Only its hash is stored: it is never shown again."""
    token = go(_add_key(store, name, role, groups, days))
    if as_json:
        print_json({"name": name, "role": role, "key": token})
    else:
        click.echo(token)


async def _add_key(store: str | None, name: str, role: Role, groups: tuple[str, ...], days: float | None) -> str:
    async with installation(store) as app:
        return await session_at_prompt(app).access.add_key(name, role, groups=groups, days=days)


@keys.command("list")
@click.option("--search", default="", metavar="WORDS", help="Only keys with all these words in name or groups.")
@click.option("--role", type=click.Choice(ROLES), help="Only keys with this role.")
@json_option
@store_option
def list_keys(*, search: str, role: Role | None, as_json: bool, store: str | None) -> None:
    """List the names of all keys with their last use. The keys themselves are not shown."""
    views = go(_list_keys(store, search, role))
    if as_json:
        print_json({"keys": views})
        return
    if not views:
        click.echo("no matching keys" if search or role else "no keys", err=True)
    for key in views:
        used = f"used {distance(key['usedAt'])}" if key["usedAt"] else "never used"
        groups = ", ".join(map(shown, key["groups"]))
        click.echo(f"{shown(key['name']):24}  {key['role']!s:8}  {used:19}  {groups}".rstrip())


async def _list_keys(store: str | None, search: str, role: Role | None) -> list[KeyView]:
    async with installation(store) as app:
        return (await session_at_prompt(app).access.keys(search=search, role=role, limit=None))["keys"]


@keys.command("revoke")
@click.argument("name")
@json_option
@store_option
def revoke_key(name: str, *, as_json: bool, store: str | None) -> None:
    """Revoke a key within a second. Even without a remaining admin key, the server still requires one."""
    admins = go(_revoke_key(store, name))
    if as_json:
        print_json({"revoked": [name], "admins": len(admins)})
        return
    say(f"revoked {name}")
    if not admins:
        say("no admin key is left; create one: pointsman keys add NAME --role admin")


async def _revoke_key(store: str | None, name: str) -> list[str]:
    """Return the remaining keys of admins."""
    async with installation(store) as app:
        return await session_at_prompt(app).access.revoke_key(name)


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

    entries, following = go(look())
    if as_json:
        print_json({"entries": entries, "deeds": entries, "next": following})
        return
    if not entries:
        click.echo("no entries", err=True)
    for entry in entries:
        text = (
            f"{when(entry['at'])}  {shown(entry['who']):16}  {shown(entry['what'])}  {shown(entry['target'])}".rstrip()
        )
        click.echo(f"{text}  refused: {shown(entry['refused'])}" if entry["refused"] else text)


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

    settings = loaded().vault
    path = key_file_of(settings)
    if read_key_file(path):
        hint = "`pointsman secrets rotate --new-key` adds a newer one."
        raise VaultKeyInvalid(f"{str(path)!r} already contains a key", hint=hint)
    make_key(settings)
    if as_json:
        print_json({"keyFile": str(path)})
    else:
        say(f"created {path}")


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
    value = read_hidden("Value")
    parts = cast("RuleParts", places if any(places.values()) else {})
    rule = go(_set(store, name, value, parts, by))
    if as_json:
        print_json({"set": [name]})
        return
    say(f"set {name}")
    if not (rule["hosts"] or rule["tools"]):
        say(f"no document can send it anywhere yet: `pointsman secrets allow {name} --host HOST` or `--tool TOOL`")


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
def list_secrets(*, as_json: bool, store: str | None) -> None:
    """List the names of all secrets, their last changes, and their allowed destinations. Values are not shown."""
    views = go(_list_secrets(store))
    if as_json:
        print_json({"secrets": views})
        return
    if not views:
        click.echo("no secrets", err=True)
    for view in views:
        click.echo(
            f"{shown(view['name']):32}  {when(view['changedAt']):{TIME_CHARS}}  {shown(view['changedBy'])}".rstrip()
        )
        for line in _lines(view):
            click.echo(f"  {shown(line)}")


async def _list_secrets(store: str | None) -> list[SecretView]:
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
        make_key(loaded().vault)
    done = go(_rotate(store, new_key=new_key))
    if as_json:
        print_json({"rotated": done})
    else:
        say(f"encrypted {done} secrets with the newest key")


async def _rotate(store: str | None, *, new_key: bool) -> int:
    async with installation(store) as app:
        return await session_at_prompt(app, new_key=new_key).secrets.rotate()


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
        yield "cannot be sent anywhere: allow hosts or tools with `pointsman secrets allow`"
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
