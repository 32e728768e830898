"""Ephemeral executions (`persistence: none`): they exist only in the memory of this process.

                     ┌─ persistent: the store
    start ─▶ which? ─┤
                     └─ ephemeral:  a store in memory; saved workflows are read from the real one, which is not written

Their handles and watchers work like those of all others, but other processes cannot find them. Their memory (such as
that of a conversation) and their idempotency keys are shared only by the ephemeral executions of this process. Events
that they emit reach all executions.

An ended execution is deleted after an hour unless a caller still holds it; otherwise a long-running server would run
out of memory. The messages of a conversation are deleted with its last execution.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from pointsman.auth.callers import Caller, Role
from pointsman.auth.policy import sees_execution
from pointsman.context import AppContext, Part, Services
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.state import ENDED, ExecutionState
from pointsman.executions.authority import AppRights, GuardedExecutors
from pointsman.executions.concurrency_limits import Places
from pointsman.executions.deletion import erase
from pointsman.executions.execution import Execution
from pointsman.executions.session_turns import save_turn
from pointsman.executions.starting import StartRequest, Starts
from pointsman.runtime.attempts import CACHE_SCOPE as CACHE
from pointsman.runtime.local import EventSink, IsWaitingFor, LocalRuntime
from pointsman.store.memory import MemoryStore
from pointsman.values import ExecutionId, Json
from pointsman.workflows.library import LIBRARY, Library, RunnableDefinition

Name = TypeVar("Name", bound=str)

KEPT_S: Final = 3600.0
"""For this many seconds after its end, an execution is still found by its key, and a conversation by its name."""


def is_fleeting(definition: WorkflowDefinition) -> bool:
    return definition.config is not None and definition.config.persistence == "none"


class Fleeting:
    """The ephemeral executions of one installation."""

    def __init__(self, app: AppContext, store: MemoryStore, services: Services, emitted: EventSink) -> None:
        """`services` perform the work of the executions in `store`. `emitted` receives their events, after the other
        executions of this process have received them."""
        self._app = app
        self.store = store
        self._services = services
        self._told = emitted
        self.library = Library(self.store, app.settings, app.store.workflows, agents=app.store.entries)
        self.library.rights = AppRights(app, self.library)
        self.runtime = LocalRuntime(
            self.store,
            self.library,
            self._services.executors,
            app.clock,
            app.feed,
            ended=self._turn_ended,
            emitted=self._emitted,
        )
        self.runtime.executors = GuardedExecutors(app, self.runtime, self.library, self._services.executors)
        self._places = Places(self.store, app.clock, self.runtime.open)
        self._held: WeakValueDictionary[ExecutionId, Execution] = WeakValueDictionary()
        self._ended: dict[ExecutionId, float] = {}
        """Time of the end, in the order of ending."""
        self._spoken: dict[str, float] = {}
        """Time when the last execution of a conversation ended, in the order of ending."""

    async def start(self, runnable: RunnableDefinition, input: Json, wish: StartRequest) -> Execution:
        """Start an execution. Raises the errors of `Starts.start`."""
        models = self._app.services.models_to_check
        starts = Starts(self.runtime, self.library, self._places, self.runtime.open, models)
        started = await starts.start(runnable, input, wish)
        self._held[started.id] = started
        return started

    async def close(self) -> None:
        """Stop all of them, wherever they are."""
        await self._places.close()
        await self.runtime.close()
        await self._services.close()

    async def _turn_ended(self, state: ExecutionState) -> None:
        await save_turn(self.store, state)
        now, name = self._app.clock.now(), ExecutionId(state.id)
        self._ended.pop(name, None)  # It may have been retried.
        self._ended[name] = now
        if state.setup.session is not None:
            self._spoken.pop(state.setup.session, None)
            self._spoken[state.setup.session] = now
        await self._forget(now - KEPT_S)

    async def _forget(self, before: float) -> None:
        """Delete the executions and conversations that ended before then."""
        for name in _until(self._ended, before):
            driver = self.runtime.drivers.get(name)
            if driver is not None and driver.state.status not in ENDED:
                del self._ended[name]  # It is retried, and will end again.
            elif name not in self._held:
                del self._ended[name]
                self.runtime.drivers.pop(name, None)
                await erase(self.store, name, at=await self.store.journal.last(name))
        going_on = {driver.state.setup.session for driver in self.runtime.drivers.values()}
        for session in _until(self._spoken, before):
            del self._spoken[session]
            if session not in going_on:
                await self.store.sessions.forget(session)
                await self.store.memory.forget("session", session)
                await self.store.memory.forget(CACHE, f"session/{session}")

    async def _emitted(self, name: str, data: Json, key: str, by: ExecutionId) -> None:
        await self._app.runtime.broadcast(name, data, key=key, hears=await audience_of(self._app, by))
        await self._told(name, data, key, by)


EPHEMERAL: Final = Part[Fleeting]("ephemeral executions", close=Fleeting.close)
"""Bound by wiring, which makes its services."""


async def state_of(app: AppContext, execution: str) -> ExecutionState:
    """Return the state of an execution, also of an ephemeral one. Raises `UnknownExecution`."""
    name = ExecutionId(execution)
    driver = app.runtime.drivers.get(name) or app[EPHEMERAL].runtime.drivers.get(name)
    return driver.state if driver is not None else await app.runtime.load(name)


async def acting_for(app: AppContext, execution: str, *, node: str = "", cap: Role = "admin") -> Caller:
    """Like `AppRights.acting_for`, by the id of an execution. Raises `UnknownExecution`."""
    ephemeral = app[EPHEMERAL]
    library = ephemeral.library if execution in ephemeral.runtime.drivers else app[LIBRARY]
    return await AppRights(app, library).acting_for(await state_of(app, execution), node=node, cap=cap)


async def audience_of(app: AppContext, emitter: ExecutionId) -> IsWaitingFor:
    """Return a check for the executions that receive what this one emits: those that the people it acts for may see."""
    caller = await acting_for(app, emitter)

    async def hears(execution: ExecutionId) -> bool:
        return await sees_execution(app, caller, execution)

    return hears


def _until(times: dict[Name, float], before: float) -> list[Name]:
    """Return the names with a time before then. The times must be in ascending order."""
    return [name for name, _ in takewhile(lambda one: one[1] < before, times.items())]
