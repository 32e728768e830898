"""Executions of which nothing is kept (`persistence: none`): they live in the memory of this process, and go with it.

                 ┌─ kept:      the store
start ─▶ which? ─┤
                 └─ fleeting:  a store in memory; saved workflows are read from the real one, nothing is written to it

They are like all others to whoever holds them or watches; nobody else can find them. What they remember, say in a
conversation, or are started under (a key) is known to the fleeting ones of this process. What they emit reaches all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointsman.app.executions import Execution
from pointsman.app.library import Library
from pointsman.app.places import Places
from pointsman.app.starting import Starts, Wish
from pointsman.app.turns import save_turn
from pointsman.definition.workflow import Workflow
from pointsman.engine.state import ExecutionState
from pointsman.journal.memory import MemoryStore
from pointsman.runtime.local import LocalRuntime
from pointsman.values import Json

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman


def is_fleeting(definition: Workflow) -> bool:
    return definition.config is not None and definition.config.persistence == "none"


class Fleeting:
    """The fleeting executions of one installation."""

    def __init__(self, app: Pointsman) -> None:
        from pointsman.app.wiring import wire  # As the installation does.

        self._app = app
        self.store = MemoryStore()
        self.library = Library(self.store, app.settings, app.store.workflows)
        self._hands = wire(
            app.settings,
            app.tools,
            self.store,
            app.clock,
            model=app.model,
            script=app.script,
            workflows=app.store.workflows,
            lent=None if app.hands is None else app.hands.models,
        )
        self.runtime = LocalRuntime(
            self.store,
            self.library,
            self._hands.executors,
            app.clock,
            app.feed,
            ended=self._turn_ended,
            emitted=self._emitted,
        )
        self._places = Places(self.store, app.clock, self.runtime.open)

    async def start(self, definition: Workflow, input: Json, wish: Wish) -> Execution:
        """Begin. Raises what starting others does."""
        starts = Starts(self.runtime, self.library, self._places, self.runtime.open)
        return await starts.start(definition, input, wish)

    async def close(self) -> None:
        """They end here, wherever they are."""
        await self._places.close()
        await self.runtime.close()
        await self._hands.close()

    async def _turn_ended(self, state: ExecutionState) -> None:
        await save_turn(self.store, state)

    async def _emitted(self, name: str, data: Json, key: str) -> None:
        await self._app.runtime.broadcast(name, data, key=key)
        await self._app.triggers.events.emitted(name, data, key)
