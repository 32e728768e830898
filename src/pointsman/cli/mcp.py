"""The installation for MCP clients."""

from __future__ import annotations

from pathlib import Path

import click

from pointsman.cli.app_opening import go, installation
from pointsman.cli.options import model_option, os_user, script_option, store_option


@click.command()
@model_option
@script_option
@store_option
def mcp(*, model: str | None, script: Path | None, store: str | None) -> None:
    """Serve MCP on standard input and output, for a client that starts this command: design, save and run workflows.

    `pointsman serve` offers the same at /mcp.
    """
    go(_mcp(store, model, script))


async def _mcp(store: str | None, model: str | None, script: Path | None) -> None:
    from pointsman.mcp.stdio import serve_stdio  # Loads the protocol.

    async with installation(store, model=model, script=script) as app:
        await serve_stdio(app, name=os_user())
