"""Operations on stored data, such as `app.storage.delete(…)`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from pointsman.context import AppContext
from pointsman.executions import deletion
from pointsman.executions.ids import new_id
from pointsman.executions.session_turns import finish_last_turn, open_turn
from pointsman.operations import archive_files as carrying
from pointsman.operations import exporting, importing, retention
from pointsman.operations.retention import Collected
from pointsman.store.records import Conversation
from pointsman.values import ExecutionId, JsonObject

if TYPE_CHECKING:
    from pointsman.operations.backup import Backup


class Storage:
    """Operations on the data in an app's store."""

    def __init__(self, app: AppContext) -> None:
        self._app = app

    async def delete(self, *executions: str) -> list[ExecutionId]:
        """Delete ended executions permanently, with their sub-workflows. Return the ids of all deleted executions. All
        are deleted, or none if one is unknown or has not ended."""
        return await deletion.delete(self._app, executions)

    async def delete_session(self, session: str) -> list[ExecutionId]:
        """Delete a conversation permanently, with its executions. Return their ids."""
        return await deletion.delete_session(self._app, session)

    async def conversation(self, session: str) -> Conversation:
        """Return the messages of a session; empty and open if the session is unknown."""
        await finish_last_turn(self._app.runtime, session)
        return await self._app.store.sessions.load(session)

    async def open_turn(self, session: str) -> ExecutionId | None:
        """Return the turn of a conversation that is running or waiting."""
        return await open_turn(self._app.runtime, session)

    async def reopen(self, session: str) -> None:
        """Reopen a conversation that an agent closed."""
        await self._app.store.sessions.close(session, closed=False)

    async def collect(self, *, dry_run: bool = False) -> Collected:
        """Delete what the `retention` settings do not keep, and what is not used any more."""
        return await retention.collect(self._app, dry_run=dry_run)

    def export(self, execution: str) -> AsyncIterator[bytes]:
        """Yield the lines of an export file of an execution. Raises `UnknownExecution` at the first line."""
        return exporting.export(self._app, execution)

    async def left_out(self, execution: str) -> list[JsonObject]:
        """Return the files of an execution and its sub-workflows that are too large for its export."""
        top = await deletion.known(self._app, ExecutionId(execution))
        members = [one.execution async for one in deletion.family(self._app, top)]
        return [
            {"executionId": one.execution, "path": one.path, "bytes": one.bytes}
            for one in await carrying.kept_by(self._app, members)
            if not one.goes
        ]

    async def bring_in(self, path: Path, *, name: ExecutionId | None = None) -> ExecutionId:
        """Import an export file, under its own id or another one (see `new_id`). Return the id in this store."""
        return await importing.import_file(self._app, path, name=name)

    async def back_up(self, path: Path) -> Backup:
        """Back up the whole store to a new file. Safe while other processes use the store."""
        from pointsman.operations import backup  # Deferred: most processes never need it.

        return await backup.back_up(self._app, path)

    async def restore(self, path: Path) -> Backup:
        """Restore a backup file into this store, which must be empty."""
        from pointsman.operations import backup  # As above.

        return await backup.restore(self._app, path)

    def new_id(self) -> ExecutionId:
        """Return a new execution id."""
        return new_id()

    async def compact(self) -> int:
        """Return the space of deleted data to the operating system, and remove its traces from the files. Return the
        bytes."""
        return await self._app.store.removal.compact()
