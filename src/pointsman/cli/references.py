"""References on the command line: ids of executions, the beginning of an id, or `last`; and tab completion of ids."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Final, TypeVar, cast

import click
from click.shell_completion import CompletionItem, get_completion_class

from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.errors import CallerError
from pointsman.values import JsonObject

if TYPE_CHECKING:
    from pointsman.executions.views import GateView


SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script with which a shell completes commands, options, workflow and execution ids, open gates
    and their actions.

    \b
    bash   eval "$(pointsman completion bash)"     in ~/.bashrc
    zsh    eval "$(pointsman completion zsh)"      in ~/.zshrc
    fish   pointsman completion fish | source      in ~/.config/fish/config.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root().command
    click.echo(made(root, {}, "pointsman", "_POINTSMAN_COMPLETE").source())


def complete_workflow(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of saved workflows."""
    return _completions(_workflows, ctx, incomplete)


def complete_file_or_workflow(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of saved workflows, and file names."""
    return [*_completions(_workflows, ctx, incomplete), CompletionItem(incomplete, type="file")]


def complete_execution(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of the latest executions."""
    return _completions(_executions, ctx, incomplete)


def complete_gate(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete nodes at whose gates the execution waits."""
    return _completions(_gates, ctx, incomplete)


def complete_action(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the actions of the open gate that the command names."""
    return _completions(_actions, ctx, incomplete)


Find = Callable[[str | None, click.Context], Awaitable[list[tuple[str, str]]]]


def _completions(find: Find, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    from pointsman.cli.app_opening import go

    async def search() -> list[tuple[str, str]]:
        return await find(cast("str | None", ctx.params.get("store")), ctx)

    try:
        words = go(search())
    except Exception:  # No error may disturb the command line of a shell that completes.
        return []
    return [CompletionItem(value, help=says) for value, says in words if value.startswith(incomplete)]


async def _workflows(store: str | None, ctx: click.Context) -> list[tuple[str, str]]:
    from pointsman.cli.app_opening import installation, session_at_prompt

    async with installation(store) as app:
        entries = (await session_at_prompt(app).workflows.list(include_disabled=True, built_in=False))["workflows"]
    return [(entry["id"], entry["name"]) for entry in entries]


async def _executions(store: str | None, ctx: click.Context) -> list[tuple[str, str]]:
    from pointsman.cli.app_opening import installation, session_at_prompt

    async with installation(store) as app:
        entries = (await session_at_prompt(app).executions.list())["executions"]
    return [(str(entry["executionId"]), f"{entry['workflowId']}, {entry['status']}") for entry in entries]


async def _gates(store: str | None, ctx: click.Context) -> list[tuple[str, str]]:
    return [(gate["nodeId"], gate["message"]) for gate in await _open_gates(store, ctx)]


async def _open_gates(store: str | None, ctx: click.Context) -> list[GateView]:
    """Return the open gates of the execution that the command line names."""
    from pointsman.cli.app_opening import installation, session_at_prompt

    async with installation(store) as app:
        executions = session_at_prompt(app).executions
        return (await executions.inspect(await executions.named(str(ctx.params.get("execution")))))["waiting"]


async def _actions(store: str | None, ctx: click.Context) -> list[tuple[str, str]]:
    node = ctx.params.get("node")
    gates = [gate for gate in await _open_gates(store, ctx) if node in (gate["nodeId"], gate["gateId"])]
    options = [(cast(JsonObject, option), gate["message"]) for gate in gates for option in gate["options"]]
    return [(str(option.get("value", option.get("action"))), message) for option, message in options]


R = TypeVar("R")

COMPLETE_ID: Final = re.compile(r"(exec|try)-[0-9a-z]{26}")
"""An id that the engine made. It needs no search, so that the store is opened once."""


def naming_executions(parameter: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return a decorator that replaces references in a parameter (a text, several, or None) of a command by ids."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def resolved(**values: object) -> R:
            value = values[parameter]
            store = cast("str | None", values.get("store"))
            if isinstance(value, str):
                values[parameter] = _ids_of(store, [value])[0]
            elif value:
                values[parameter] = _ids_of(store, cast("Sequence[str]", value))
            return command(**values)

        return resolved

    return decorate


def execution_argument(command: Callable[..., R]) -> Callable[..., R]:
    """Add the argument `execution`, a reference to an execution; the command receives the id."""
    return click.argument("execution", shell_complete=complete_execution)(naming_executions("execution")(command))


def _ids_of(store: str | None, references: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of executions. Raises `ExecutionAmbiguous`."""
    if all(COMPLETE_ID.fullmatch(reference) for reference in references):
        return tuple(references)
    return go(_full_ids(store, references))


async def _full_ids(store: str | None, references: Sequence[str]) -> tuple[str, ...]:
    ids: list[str] = []
    async with installation(store) as app:
        for reference in references:
            try:
                ids.append(await session_at_prompt(app).executions.named(reference))
            except CallerError as why:
                if why.code != "unknown-execution":
                    raise
                ids.append(reference)  # The command refuses it, with an audit entry of what was tried.
    return tuple(ids)
