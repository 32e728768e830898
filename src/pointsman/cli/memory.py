"""`pointsman memory`: list, read, change and delete remembered values, and their history."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click
import msgspec

from pointsman.chat.memories import NoSuchMemory, writer_text
from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.options import Decorated, json_option, length_of_time, store_option, value_of
from pointsman.cli.printing import print_json, say, shown
from pointsman.cli.references import naming_executions
from pointsman.cli.times import TIME_CHARS, when, when_and_distance
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from pointsman.chat.verbs import MemoryVerbs

T = TypeVar("T")

NOT_THERE: Final = 1
"""Exit code if the key has no value."""
VALUE_CHARS: Final = 60


def owner_options(command: Decorated) -> Decorated:
    """Add the five flags for the owner of the memory, and `--namespace`."""
    options = (
        click.option("--user", "user", metavar="NAME", help="Memory of a person."),
        click.option("--session", "session", metavar="ID", help="Memory of a conversation."),
        click.option("--workflow", "workflow", metavar="ID", help="Memory of a workflow."),
        click.option("--shared", "shared", metavar="NAME", help="Memory shared by all workflows, under a name."),
        click.option("--execution", "execution", metavar="ID", help="Memory of an execution."),
        click.option("--namespace", "-n", metavar="NAME", default="", help="Only this namespace."),
    )
    decorated: Callable[..., object] = naming_executions("execution")(command)
    for option in reversed(options):
        decorated = option(decorated)
    return cast(Decorated, decorated)


class OwnerOptions:
    """Values of the options of `owner_options`."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.namespace = str(options.pop("namespace"))
        scopes = ("user", "session", "workflow", "shared", "execution")
        self.given = [(scope, str(name)) for scope in scopes if (name := options.pop(scope)) is not None]

    def scope_and_name(self) -> tuple[str, str]:
        """Return scope and owner. Raises `UsageError` unless exactly one flag is given."""
        if len(self.given) != 1:
            raise click.UsageError("give one owner: --user, --session, --workflow, --shared, --execution")
        return self.given[0]

    def target(self, **more: object) -> dict[str, object]:
        """Return the target of the audit entry: key, number or `everything`, then the owner."""
        return {**more, **dict(self.given), "namespace": self.namespace}


@click.group()
def memory() -> None:
    """Memory by owner: list, get, set, append, delete, search, history, restore.

    \b
    pointsman memory list                         owners and sizes
    pointsman memory list --user ann              values of ann
    pointsman memory set --user ann tone '"short"' --ttl 30d
    pointsman memory history --user ann tone      earlier values and their writers
    """


@memory.command("list")
@owner_options
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@json_option
@store_option
def list_(*, limit: int, as_json: bool, store: str | None, **owner_values: Any) -> None:
    """List the values of one owner; without an owner, all owners with their sizes."""
    owner = OwnerOptions(owner_values)
    if not owner.given:
        _list_owners(store, as_json=as_json)
        return
    scope, name = owner.scope_and_name()
    entries = _with(store, lambda memory: memory.values(scope, name, namespace=owner.namespace, limit=limit))
    if as_json:
        print_json({"remembered": [msgspec.to_builtins(entry) for entry in entries]})
        return
    for entry in entries:
        key = f"{entry.namespace}/{entry.key}" if entry.namespace and not owner.namespace else entry.key
        until = f"  (until {when_and_distance(entry.expires)})" if entry.expires is not None else ""
        click.echo(f"{shown(key)}  {shown(entry.value, chars_max=VALUE_CHARS)}{until}")
    if not entries:
        say("no values")


def _list_owners(store: str | None, *, as_json: bool) -> None:
    owners = _with(store, lambda memory: memory.owners())["owners"]
    if as_json:
        print_json(
            {"owners": [{name: owner[name] for name in ("scope", "owner", "keys", "bytes")} for owner in owners]}
        )
        return
    for owner in owners:
        click.echo(
            f"{owner['scope']:<10} {shown(owner['owner']):<32} {owner['keys']:>6} values {owner['bytes']:>10} bytes"
        )
    if not owners:
        say("no values")


@memory.command()
@click.argument("key")
@owner_options
@json_option
@store_option
def get(key: str, *, as_json: bool, store: str | None, **owner_values: Any) -> int:
    """Print the value of a key, as JSON. Exit code 1: the key has no value."""
    owner = OwnerOptions(owner_values)
    scope, name = owner.scope_and_name()
    try:
        value = _with(store, lambda memory: memory.get(scope, name, key, namespace=owner.namespace))
    except NoSuchMemory:
        _print_value(None, as_json=as_json)
        return NOT_THERE
    _print_value(value, as_json=as_json)
    return 0


def _print_value(value: Json, *, as_json: bool) -> None:
    """Print a value as JSON; with `--json`, in an object, like the output of every command."""
    print_json({"value": value} if as_json else value)


@memory.command("set")
@click.argument("key")
@click.argument("value", metavar="JSON")
@owner_options
@click.option("--ttl", metavar="TIME", help="Time until it expires: 90s, 2h, 30d (default: never).")
@json_option
@store_option
def set_(key: str, value: str, *, ttl: str | None, as_json: bool, store: str | None, **owner_values: Any) -> None:
    """Store a value under a key. A value that is not JSON is stored as text."""
    content, seconds = value_of(value, what="the value"), length_of_time(ttl, "--ttl")
    if content is None:
        raise click.UsageError("null cannot be stored: use `pointsman memory delete`")
    owner = OwnerOptions(owner_values)
    scope, name = owner.scope_and_name()
    set_to = _with(
        store,
        lambda memory: memory.set(scope, name, key, content, ttl=seconds, namespace=owner.namespace),
        **owner.target(key=key),
    )
    _print_value(set_to, as_json=as_json)


@memory.command()
@click.argument("key")
@click.argument("value", metavar="JSON")
@owner_options
@click.option("--ttl", metavar="TIME", help="Time until the list expires.")
@json_option
@store_option
def append(key: str, value: str, *, ttl: str | None, as_json: bool, store: str | None, **owner_values: Any) -> None:
    """Append to the list under a key, and print the whole list."""
    content, seconds = value_of(value, what="the value"), length_of_time(ttl, "--ttl")
    owner = OwnerOptions(owner_values)
    scope, name = owner.scope_and_name()
    whole = _with(
        store,
        lambda memory: memory.append(scope, name, key, content, ttl=seconds, namespace=owner.namespace),
        **owner.target(key=key),
    )
    _print_value(whole, as_json=as_json)


@memory.command()
@click.argument("key", required=False)
@owner_options
@click.option("--all", "everything", is_flag=True, help="All values of the owner, or of a namespace.")
@json_option
@store_option
def delete(key: str | None, *, everything: bool, as_json: bool, store: str | None, **owner_values: Any) -> int:
    """Delete the value of a key, or all values. Exit code 1: the key had no value."""
    if everything == (key is not None):
        raise click.UsageError("give a key, or --all")

    owner = OwnerOptions(owner_values)
    scope, name = owner.scope_and_name()

    async def forget(memory: MemoryVerbs) -> int:
        if key is None:
            return await memory.clear(scope, name, namespace=owner.namespace)
        try:
            await memory.delete(scope, name, key, namespace=owner.namespace)
        except NoSuchMemory:
            return 0
        return 1

    deleted = _with(store, forget, **owner.target(key=key, everything=everything))
    if as_json:
        print_json({"deleted": deleted})
    else:
        say(f"deleted {deleted} values")
    return 0 if deleted or everything else NOT_THERE


@memory.command()
@click.argument("key")
@owner_options
@click.option(
    "--limit", type=click.IntRange(1, 1_001), default=20, show_default=True, help="Maximum number of entries."
)
@json_option
@store_option
def history(key: str, *, limit: int, as_json: bool, store: str | None, **owner_values: Any) -> int:
    """Print the value of a key and its writer, then earlier values. Exit code 1: the key has no value.

    Each line begins with the number for `pointsman memory restore`.
    """
    owner = OwnerOptions(owner_values)
    scope, name = owner.scope_and_name()
    try:
        page = _with(store, lambda memory: memory.history(scope, name, key, namespace=owner.namespace, limit=limit))
        changes = page["changes"]
    except NoSuchMemory:
        changes = []
    if as_json:
        print_json({"changes": changes})
    else:
        for change in changes:
            changed_at, by = when(change["changedAt"]) if change["changedAt"] else "?", shown(writer_text(change["by"]))
            click.echo(
                f"{change['number']:>4}  {changed_at:<{TIME_CHARS}}  {by}"
                f"  {shown(change['value'], chars_max=VALUE_CHARS)}"
            )
        if not changes:
            say(f"{shown(key)} has no value")
    return 0 if changes else NOT_THERE


@memory.command()
@click.argument("key")
@click.argument("number", type=click.IntRange(min=1))
@owner_options
@json_option
@store_option
def restore(key: str, number: int, *, as_json: bool, store: str | None, **owner_values: Any) -> None:
    """Restore an earlier value of a key, by its number in the history."""
    owner = OwnerOptions(owner_values)
    scope, name = owner.scope_and_name()
    value = _with(
        store,
        lambda memory: memory.restore(scope, name, key, number, namespace=owner.namespace),
        **owner.target(key=key, number=number),
    )
    _print_value(value, as_json=as_json)


@memory.command()
@click.argument("words", nargs=-1, required=True)
@owner_options
@click.option("--limit", type=click.IntRange(1, 10_000), default=10, show_default=True)
@json_option
@store_option
def search(words: tuple[str, ...], *, limit: int, as_json: bool, store: str | None, **owner_values: Any) -> None:
    """Search values that share words with a text, the best first. The text has no special characters.

    With an embedding model in the settings, also values with a similar meaning.
    """
    owner = OwnerOptions(owner_values)
    scope, name = owner.scope_and_name()
    finding = _with(
        store, lambda memory: memory.search(scope, name, " ".join(words), namespace=owner.namespace, limit=limit)
    )
    for warning in finding.warnings:
        say(f"warning: {warning}")
    entries = finding.values
    if as_json:
        print_json({"found": [cast(JsonObject, msgspec.to_builtins(entry)) for entry in entries]})
        return
    for entry in entries:
        key = f"{entry.namespace}/{entry.key}" if entry.namespace else entry.key
        click.echo(f"{shown(key)}  {shown(entry.value, chars_max=VALUE_CHARS)}")
    if not entries:
        say("no matching values")


@memory.command()
@json_option
@store_option
def reindex(*, as_json: bool, store: str | None) -> None:
    """Compute all vectors again, after a change of the embedding model."""
    count = _with(store, lambda memory: memory.reindex())
    if as_json:
        print_json({"vectors": count})
        return
    say(f"{count} vectors computed")


def _with(store: str | None, work: Callable[[MemoryVerbs], Coroutine[Any, Any, T]], **target: object) -> T:
    async def opened() -> T:
        async with installation(store) as app:
            return await work(session_at_prompt(app, **target).memory)

    return go(opened())
