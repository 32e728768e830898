"""The verbs about what is stored: `app.storage.delete(…)` and the like."""

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
    """What is kept in an installation's store."""

    def __init__(self, app: AppContext) -> None:
        self._app = app

    async def delete(self, *executions: str) -> list[ExecutionId]:
        """Delete executions that have ended, with their sub-workflows; their ids. For good. All of them, or none where
        one is unknown or has not ended."""
        return await deletion.delete(self._app, executions)

    async def delete_session(self, session: str) -> list[ExecutionId]:
        """Delete a conversation with its executions; their ids. For good."""
        return await deletion.delete_session(self._app, session)

    async def conversation(self, session: str) -> Conversation:
        """What was said in it so far; empty and open for one nobody has heard of."""
        await finish_last_turn(self._app.runtime, session)
        return await self._app.store.sessions.load(session)

    async def open_turn(self, session: str) -> ExecutionId | None:
        """The turn of a conversation that is under way, or waits for somebody."""
        return await open_turn(self._app.runtime, session)

    async def reopen(self, session: str) -> None:
        """A conversation that an agent ended goes on."""
        await self._app.store.sessions.close(session, closed=False)

    async def collect(self, *, dry_run: bool = False) -> Collected:
        """Delete what the `retention` of the settings lets go, and what nobody uses any more."""
        return await retention.collect(self._app, dry_run=dry_run)

    def export(self, execution: str) -> AsyncIterator[bytes]:
        """The lines of a file with which the execution goes on elsewhere. Raises `UnknownExecution` at the first."""
        return exporting.export(self._app, execution)

    async def left_out(self, execution: str) -> list[JsonObject]:
        """The files of an execution and its sub-workflows that are too large for its export."""
        top = await deletion.known(self._app, ExecutionId(execution))
        members = [one.execution async for one in deletion.family(self._app, top)]
        return [
            {"executionId": one.execution, "path": one.path, "bytes": one.bytes}
            for one in await carrying.kept_by(self._app, members)
            if not one.goes
        ]

    async def bring_in(self, path: Path, *, name: ExecutionId | None = None) -> ExecutionId:
        """Import the file of an export, under the id it had or another one (see `new_id`); the id it has here."""
        return await importing.import_file(self._app, path, name=name)

    async def back_up(self, path: Path) -> Backup:
        """Everything in the store, as one file that did not exist. Safe beside whoever uses the store."""
        from pointsman.operations import backup  # Most processes never make one.

        return await backup.back_up(self._app, path)

    async def restore(self, path: Path) -> Backup:
        """Bring the file of a backup into this store, which must be empty."""
        from pointsman.operations import backup  # As above.

        return await backup.restore(self._app, path)

    def new_id(self) -> ExecutionId:
        """An id that no execution has."""
        return new_id()

    async def compact(self) -> int:
        """Give the room of what was deleted back to the system: bytes. Also removes its last traces from the files."""
        return await self._app.store.removal.compact()
