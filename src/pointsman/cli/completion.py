"""Tab completion: the script for the shell, and completion of ids from the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script with which a shell completes commands, options, workflow and execution ids, and open
    gates.

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
    return _found(_workflows, ctx, incomplete)


def complete_file_or_workflow(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of saved workflows, and file names."""
    return [*_found(_workflows, ctx, incomplete), CompletionItem(incomplete, type="file")]


def complete_execution(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of the latest executions."""
    return _found(_executions, ctx, incomplete)


def complete_gate(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete nodes at whose gates the execution waits."""
    return _found(_gates, ctx, incomplete)


Find = Callable[[str | None, click.Context], Awaitable[list[tuple[str, str]]]]


def _found(find: Find, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    from pointsman.cli.app_opening import go

    async def search() -> list[tuple[str, str]]:
        return await find(cast("str | None", ctx.params.get("store")), ctx)

    try:
        found = go(search())
    except Exception:  # No error may disturb the command line of a shell that completes.
        return []
    return [CompletionItem(value, help=says) for value, says in found if value.startswith(incomplete)]


async def _workflows(store: str | None, ctx: click.Context) -> list[tuple[str, str]]:
    from pointsman.cli.app_opening import installation, session_at_prompt

    async with installation(store) as app:
        found = (await session_at_prompt(app).workflows.list(include_disabled=True, built_in=False))["workflows"]
    return [(entry["id"], entry["name"]) for entry in found]


async def _executions(store: str | None, ctx: click.Context) -> list[tuple[str, str]]:
    from pointsman.cli.app_opening import installation, session_at_prompt

    async with installation(store) as app:
        found = (await session_at_prompt(app).executions.list())["executions"]
    return [(str(one["executionId"]), f"{one['workflowId']}, {one['status']}") for one in found]


async def _gates(store: str | None, ctx: click.Context) -> list[tuple[str, str]]:
    from pointsman.cli.app_opening import installation, session_at_prompt

    async with installation(store) as app:
        view = await session_at_prompt(app).executions.inspect(str(ctx.params.get("execution")))
    return [(gate["nodeId"], gate["message"]) for gate in view["waiting"]]
