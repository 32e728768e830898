"""The files that executions keep: list, read, copy and delete them."""

from __future__ import annotations

import asyncio

from pointsman.executions.views import ArtifactView
from pointsman.settings import Settings


async def artifacts_of(settings: Settings, execution: str) -> list[ArtifactView]:
    """Return [{"path", "bytes"}] sorted by name; empty if this installation keeps no files."""
    if settings.files is None:
        return []
    from pointsman.tools.files import Jail  # Imported late: most installations keep no files.

    found = await asyncio.to_thread(Jail(settings.files, execution).files)
    return [{"path": file.path, "bytes": file.size} for file in found]


async def artifact(settings: Settings, execution: str, path: str) -> bytes:
    """Return one file of an execution. Raises `ToolFailed`."""
    assert settings.files is not None, "somebody keeps files"
    from pointsman.tools.files import Jail  # As above.

    return await asyncio.to_thread(Jail(settings.files, execution).read, path)


async def delete_artifacts(settings: Settings, execution: str) -> None:
    """Delete all files of an execution for good."""
    if settings.files is not None:
        from pointsman.tools.files import Jail  # As above.

        await asyncio.to_thread(Jail(settings.files, execution).remove)


async def copy_artifacts(settings: Settings, origin: str, execution: str) -> None:
    """Copy all files of an execution to another one. Raises `ToolFailed`."""
    if settings.files is not None:
        from pointsman.tools.files import Jail  # As above.

        await asyncio.to_thread(Jail(settings.files, execution).take_over, Jail(settings.files, origin))
