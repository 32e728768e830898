"""Commands for the whole store: backup, restore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.options import ExistingName, json_option, store_option
from pointsman.cli.printing import print_json, say, shown
from pointsman.settings.display import store_shown

if TYPE_CHECKING:
    from pointsman.operations.backup import Backup


@click.command()
@click.argument("file", type=ExistingName())
@json_option
@store_option
def backup(file: Path, *, as_json: bool, store: str | None) -> None:
    """Write everything in the store into FILE, as it is at one moment, and verify it. Safe while others use the store.

    Included: executions, workflows, schedules, keys, memory, conversations, files of executions. Not included:
    the settings with their secrets. FILE appears when it is complete; an existing file is never replaced.
    """
    made = go(_back_up(store, file))
    _tell(made, file, "backed up", as_json=as_json)


async def _back_up(store: str | None, file: Path) -> Backup:
    async with installation(store) as app:
        return await session_at_prompt(app, target=f"file={file}").operations.back_up(file)


@click.command()
@click.argument("file", type=ExistingName())
@json_option
@store_option
def restore(file: Path, *, as_json: bool, store: str | None) -> None:
    """Restore a backup into an empty store: all of it, or nothing. It is verified before and afterwards.

    The store may be of another kind than the original. Running executions continue with the next worker: stop all
    processes of the old store first, or both continue.
    """
    made, where = go(_restore(store, file))
    _tell(made, file, f"restored to {shown(where)}", as_json=as_json)


async def _restore(store: str | None, file: Path) -> tuple[Backup, str]:
    async with installation(store) as app:
        session = session_at_prompt(app, target=f"file={file}")
        return await session.operations.restore(file), store_shown(app.settings.store_url)


def _tell(made: Backup, file: Path, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(file), **made.to_json()})
        return
    about = made.about
    counts = f"{about.executions} executions, {about.workflows} workflows, {about.files} files"
    say(f"{what}: {counts}; {shown(str(file))}, {made.bytes} bytes")
