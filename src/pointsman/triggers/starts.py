"""Idempotent starts: the execution id derives from the cause, so the first process starts it and others find it."""

from __future__ import annotations

import asyncio
from base64 import b32encode
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple
from weakref import WeakValueDictionary

from pointsman.auth.callers import Caller
from pointsman.context import AppContext
from pointsman.executions.start import start
from pointsman.store.errors import JournalMoved
from pointsman.values import ExecutionId, Json, JsonObject


class TriggeredStart(NamedTuple):
    """Result of a start; `new` is false if an execution of that cause existed already."""

    execution: ExecutionId
    new: bool


def id_for(*cause: str) -> ExecutionId:
    """Return the id of the execution that this cause starts; equal causes have equal ids."""
    # Lengths distinguish ("a", "bc") from ("ab", "c").
    said = "|".join(f"{len(part)}:{part}" for part in cause)
    return ExecutionId(
        "exec-" + b32encode(blake2b(said.encode(), digest_size=16).digest()).decode().rstrip("=").lower()
    )


class CausedStarts:
    """Starter of executions by their causes, each once, whichever process tries."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._locks: WeakValueDictionary[ExecutionId, asyncio.Lock] = WeakValueDictionary()

    async def start(
        self,
        workflow: str,
        input: Json,
        *cause: str,
        caller: Caller,
        config: Mapping[str, Json] | None = None,
    ) -> TriggeredStart:
        """Start a saved workflow for a caller because of `cause`: its kind, its id, and further distinguishing parts.

        Raises the errors of `Pointsman.start`.
        """
        name = id_for(*cause)
        lock = self._locks.setdefault(name, asyncio.Lock())
        async with lock:
            if await self.began(name):
                return TriggeredStart(name, new=False)
            try:
                trigger: JsonObject = {"kind": cause[0], "id": cause[1]}
                await start(self._app, workflow, input, config=config, execution=name, trigger=trigger, caller=caller)
            except JournalMoved:
                return TriggeredStart(name, new=False)
            return TriggeredStart(name, new=True)

    async def began(self, execution: ExecutionId) -> bool:
        return await self._app.store.journal.last(execution) > 0
