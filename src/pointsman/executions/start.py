"""The start of an execution: from a document or a saved workflow to an execution whose first row is durable.

                     ┌─ persistent: the store
    start ─▶ which? ─┤
                     └─ ephemeral:  a store in memory; saved workflows are read from the real one, which is not written

Ephemeral executions (`persistence: none`) exist only in the memory of this process: other processes cannot find them.
Their handles and watchers work like those of all others. Their memory (such as that of a conversation) and their
idempotency keys are shared only by the ephemeral executions of this process. Events that they emit reach all
executions. An ended execution is deleted after an hour unless a caller still holds it; otherwise a long-running server
would run out of memory. The messages of a conversation are deleted with its last execution.

A partial run performs a part of a workflow with given results for the rest (`PartialRun` of the plan). It is
journalled, streamed, recovered after a crash, and billed like any other execution. Its id begins with `try-`, and lists
of executions omit it unless asked for trials.

A quota limits how often a caller may start executions. Only one caller can start a new session:

    claim the name (must be free) ─▶ check the owner of the session ─▶ started ─▶ claim released

A session belongs to the caller who has an execution in it. Between the check of its owner and the first execution,
another caller could get the same answer; the claim is an entry of the store that only one of them can put. A crash
leaves a claim behind, which expires after a minute.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack, cast
from weakref import WeakValueDictionary

import msgspec

from pointsman.auth.callers import LOCAL, Caller, NotAllowed, Role, combined_caller
from pointsman.auth.policy import must_own_session, must_see_workflow, sees_execution
from pointsman.auth.rate_limiter import RateLimiter
from pointsman.context import AppContext, Part, Services
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.compile.partial_run import (
    PartialRunInvalid as PartialRunInvalid,  # for faces
)
from pointsman.engine.state import ENDED, SCRIPT_OPTION, ExecutionState
from pointsman.executions.authority import OF_DOCUMENT, AppRights, GuardedExecutors
from pointsman.executions.concurrency_limits import ConcurrencyLimits
from pointsman.executions.deletion import erase
from pointsman.executions.execution import Execution
from pointsman.executions.opening import CONCURRENCY, StartRequest, Starts, driver_for, new_id, save_turn
from pointsman.json_conversion import as_json
from pointsman.runtime.attempts import CACHE_SCOPE as CACHE
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import EventSink, IsWaitingFor, LocalRuntime
from pointsman.store.errors import EntryMoved
from pointsman.store.memory import MemoryStore
from pointsman.store.records import TRIAL, ExecutionQuery
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.authors import Party, all_of, author_of, recorded
from pointsman.workflows.definitions import model_of, runnable
from pointsman.workflows.library import ACTORS, LIBRARY, Library, Prepared, RunnableDefinition
from pointsman.workflows.scripts import store_script
from pointsman.workflows.sources import Workflow, WorkflowLike, source_of, workflow_from

if TYPE_CHECKING:
    from pointsman.executions.execution import Execution
    from pointsman.workflows.authors import Party
    from pointsman.workflows.sources import Workflow


class StartOptions(TypedDict, total=False):
    """Options of a start."""

    session: str | None
    """The conversation that it belongs to."""
    config: Mapping[str, Json] | None
    durability: str | None
    language: str | None
    """The language of its texts; absent: that of the settings."""
    lenient: bool
    execution: ExecutionId | None
    """The id of the new execution. Raises `JournalMoved` if an execution with that id exists."""
    key: str | None
    """Idempotency key: return the execution that was started under it, if any; raises `KeyReused` if the input
    differs."""
    trigger: JsonObject | None
    """The trigger: `kind`, `id`."""
    by: str
    """The name of the caller, as lists show it."""
    caller: Caller
    """The caller that it acts for."""
    written_by: Iterable[Party]
    """The authors of a document, if it is not the caller's own."""
    model: str | None
    """The model that answers all its agents. Raises `ModelOverride` if the application has another one."""
    trial: JsonObject | None
    """The part of the workflow that is performed, see `trial_of`."""


async def start(
    app: AppContext, workflow: Workflow | str, input: Json = None, **start_options: Unpack[StartOptions]
) -> Execution:
    """Start an execution. Return when its start is durable."""
    caller = start_options.get("caller", LOCAL)
    lenient, written_by = start_options.get("lenient", False), start_options.get("written_by", ())
    prepared = await prepared_for(app, workflow, lenient=lenient, caller=caller, written_by=written_by)
    definition = prepared.definition
    ephemeral = app[EPHEMERAL] if is_ephemeral(definition) and app.store.shared else None
    options = await _options(
        app, ephemeral.library if ephemeral else app[LIBRARY], prepared, start_options.get("model")
    )
    recorded_options: JsonObject = {
        name: start_options.get(name) for name in ("durability", "language", "trigger", "trial")
    }
    recorded_options |= {"by": start_options.get("by") or None, ACTORS: recorded(caller) or None}
    options |= {name: value for name, value in recorded_options.items() if value is not None}
    request = StartRequest(
        options,
        start_options.get("session"),
        start_options.get("config") or {},
        start_options.get("execution"),
        start_options.get("key"),
    )
    if ephemeral is not None:
        return await ephemeral.start(prepared.runnable, input, request)
    if app.services.script is not None:
        options[SCRIPT_OPTION] = await store_script(app.store, app.services.script)

    async def opened(execution: ExecutionId) -> Driver:
        return await driver_for(app, execution)

    starts = Starts(app.runtime, app[LIBRARY], app[CONCURRENCY], opened, app.services.models_to_check)
    return await starts.start(prepared.runnable, input, request)


async def start_typed(
    app: AppContext, workflow: WorkflowLike, input: object = None, **options: Unpack[StartOptions]
) -> Execution[Any]:
    """Start an execution of a workflow in any form, with an input that is checked and written by its type if it has
    one. Its output has the type of the workflow."""
    source = workflow_from(workflow)
    types = (None, None) if isinstance(source, str) else (source.input_type, source.output_type)
    json_input = as_json(input, what="the input", path="input") if types[0] is None else types[0].write(input)
    execution = await start(app, source, json_input, **options)
    return execution if types[1] is None else execution.returning(types[1])


async def prepared_for(
    app: AppContext,
    workflow: Workflow | str,
    *,
    lenient: bool = False,
    caller: Caller = LOCAL,
    written_by: Iterable[Party] = (),
) -> Prepared:
    """Return the definition that runs for a caller, and its saved revision; 0 for a document."""
    if not isinstance(workflow, str):
        authors = tuple(written_by)
        reader = combined_caller(caller, await all_of(app, authors)) if authors else caller
        prepared = await runnable(app, workflow, lenient=lenient, reader=reader)
        document_authors: Json = msgspec.to_builtins(authors)
        return prepared._replace(authors={**prepared.authors, OF_DOCUMENT: document_authors}) if authors else prepared
    startable = await app[LIBRARY].startable(workflow)
    reader = combined_caller(caller, await author_of(app, startable))
    return await runnable(app, source_of(startable.draft), lenient=lenient, revision=startable.revision, reader=reader)


async def must_run_revision(app: AppContext, caller: Caller, workflow: str, revision: int) -> None:
    """Raise `NotAllowed` if a caller below an editor runs another revision of a workflow than the one that runs by id:
    an earlier one may lack a gate that an editor has added since, a later one is a draft."""
    if not caller.has("editor") and not await app[LIBRARY].is_current(workflow, revision):
        caller.must_have("editor", f"run revision {revision} of {workflow!r}, which is not the current one")


async def _options(app: AppContext, library: Library, prepared: Prepared, model: str | None) -> JsonObject:
    options = await library.options(prepared)
    model = model_of(app, model)
    if model is not None:
        options["model"] = model
    return options


class CallerOptions(TypedDict, total=False):
    """Options that a caller may choose for a start; see `StartOptions`."""

    config: Mapping[str, Json] | None
    durability: str | None
    language: str | None
    model: str | None


async def start_as(
    app: AppContext,
    caller: Caller,
    workflow: str,
    input: Json = None,
    *,
    session: str | None = None,
    key: str | None = None,
    trigger: JsonObject | None = None,
    **options: Unpack[CallerOptions],
) -> Execution:
    """Start an execution of a saved workflow for a caller, who becomes its owner. Keys are separate for each caller.

    Raises `UnknownWorkflow` also if the caller may not see it, `NotAllowed` if the session belongs to another caller or
    for an earlier revision, which takes an editor, and `TooManyRequests`.
    """
    caller.must_have("operator", "start executions")
    await must_see_workflow(app, caller, workflow)
    if "@" in workflow:
        saved = await app[LIBRARY].found(workflow)
        await must_run_revision(app, caller, saved.draft.id, saved.revision)
    take_start(app, caller)
    async with nullcontext() if session is None else own_session(app, caller, session):
        return await start(
            app,
            workflow,
            input,
            session=session,
            key=None if key is None else f"{caller.name}|{key}",
            trigger={"kind": "api", "by": caller.name} if trigger is None else trigger,
            by=caller.name,
            caller=caller,
            **options,
        )


TRIAL_TRIGGER: Final = "trial"
"""The kind of its trigger."""


def trial_of(
    *,
    pinned: Mapping[str, Json] | None = None,
    until: Sequence[str] = (),
    breakpoints: Sequence[str] = (),
    node: str | None = None,
    given: Json = None,
) -> JsonObject:
    """Return the options of a partial run without the empty ones. `pinned`: node -> its result, without performing it.
    `until`: only nodes that lead to these are performed. `breakpoints`: it pauses before these nodes. `node`: only this
    node runs, reached by the value `given`; the input is then the data."""
    fields: JsonObject = {
        "pinned": dict(pinned or {}),
        "until": [*until],
        "breakpoints": [*breakpoints],
        "node": node,
        "given": given,
    }
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


async def try_out(
    app: AppContext,
    workflow: Workflow | str,
    input: Json,
    trial: JsonObject,
    *,
    caller: Caller,
    written_by: Iterable[Party] = (),
    model: str | None = None,
) -> Execution:
    """Start a partial run of a document or of a saved workflow for a caller. `written_by`: as for `Pointsman.start`.

    Raises `PartialRunInvalid` before anything is written.
    """
    trigger: JsonObject = {"kind": TRIAL_TRIGGER, "by": caller.name}
    return await start(
        app,
        workflow,
        input,
        execution=trial_id(),
        trial=trial,
        by=caller.name,
        caller=caller,
        written_by=written_by,
        trigger=trigger,
        model=model,
    )


def trial_id() -> ExecutionId:
    """Return a new id for a partial run."""
    return new_id(TRIAL)


Name = TypeVar("Name", bound=str)

KEPT_S: Final = 3600.0
"""For this many seconds after its end, an execution is still found by its key, and a conversation by its name."""


def is_ephemeral(definition: WorkflowDefinition) -> bool:
    return definition.config is not None and definition.config.persistence == "none"


class EphemeralExecutions:
    """The ephemeral executions of one installation."""

    def __init__(self, app: AppContext, store: MemoryStore, services: Services, emitted: EventSink) -> None:
        """`services` perform the work of the executions in `store`. `emitted` receives their events, after the other
        executions of this process have received them."""
        self._app = app
        self.store = store
        self._services = services
        self._publish = emitted
        self.library = Library(self.store, app.settings, app.store.workflows, agents=app.store.entries)
        self.library.rights = AppRights(app, self.library)
        self.runtime = LocalRuntime(
            self.store,
            self.library,
            self._services.executors,
            app.clock,
            app.feed,
            on_ended=self._turn_ended,
            emitted=self._emitted,
        )
        self.runtime.executors = GuardedExecutors(app, self.runtime, self.library, self._services.executors)
        self._concurrency = ConcurrencyLimits(self.store, app.clock, self.runtime.open)
        self._held: WeakValueDictionary[ExecutionId, Execution] = WeakValueDictionary()
        self._ended: dict[ExecutionId, float] = {}
        """Time of the end, in the order of ending."""
        self._spoken: dict[str, float] = {}
        """Time when the last execution of a conversation ended, in the order of ending."""

    async def start(self, runnable: RunnableDefinition, input: Json, request: StartRequest) -> Execution:
        """Start an execution. Raises the errors of `Starts.start`."""
        models = self._app.services.models_to_check
        starts = Starts(self.runtime, self.library, self._concurrency, self.runtime.open, models)
        started = await starts.start(runnable, input, request)
        self._held[started.id] = started
        return started

    async def close(self) -> None:
        """Stop all of them, wherever they are."""
        await self._concurrency.close()
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
        await self._app.runtime.broadcast(name, data, key=key, is_waiting=await audience_of(self._app, by))
        await self._publish(name, data, key, by)


EPHEMERAL: Final = Part[EphemeralExecutions]("ephemeral executions", close=EphemeralExecutions.close)
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

    async def sees(execution: ExecutionId) -> bool:
        return await sees_execution(app, caller, execution)

    return sees


def _until(times: dict[Name, float], before: float) -> list[Name]:
    """Return the names with a time before then. The times must be in ascending order."""
    return [name for name, _ in takewhile(lambda one: one[1] < before, times.items())]


SESSION_CLAIM: Final = "session-claim"
CLAIM_S: Final = 60.0
"""A start takes much less."""


def _start_limiter(app: AppContext) -> RateLimiter:
    each = app.settings.access.starts_per_minute
    return RateLimiter(app.clock, per_s=each / 60, burst=each, says=f"starts more than {each} executions per minute")


START_LIMITER: Final = Part[RateLimiter]("start quota", _start_limiter)


def take_start(app: AppContext, caller: Caller) -> None:
    """Count one more execution of a caller from outside. Raises `TooManyRequests`."""
    if caller.entrance in ("local", "shell"):
        return
    app[START_LIMITER].take(caller.name)


@asynccontextmanager
async def own_session(app: AppContext, caller: Caller, session: str) -> AsyncGenerator[None, None]:
    """Exclude other callers from starting a session of this name meanwhile. Raises `NotAllowed`, `InputInvalid`."""
    await must_own_session(app, caller, session)
    if await app.store.executions.list(ExecutionQuery(session=session, owner=caller.name, limit=1)):
        yield  # It belongs to the caller already, and stays so.
        return
    claimed = await _claim(app, caller, session)
    try:
        await must_own_session(app, caller, session)  # Check again: now no other caller can start it.
        yield
    finally:
        if claimed:
            await app.store.entries.delete(SESSION_CLAIM, session, after=claimed)


async def _claim(app: AppContext, caller: Caller, session: str) -> int:
    """Return the version of the claim; 0: the same caller holds it already. Raises `NotAllowed`."""
    value: JsonObject = {"by": caller.name, "until": app.clock.now() + CLAIM_S}
    entries = app.store.entries
    while True:
        entry = await entries.find(SESSION_CLAIM, session)
        claim = cast("JsonObject", entry.value) if entry is not None else {}
        if entry is not None and cast("float", claim["until"]) > app.clock.now():
            if claim["by"] == caller.name:
                return 0
            raise NotAllowed(
                f"the session {session!r} is being started by another caller", hint="Choose another session name."
            )
        try:
            return await entries.put(SESSION_CLAIM, session, value, after=0 if entry is None else entry.version)
        except EntryMoved:
            continue  # Another caller was faster, or has released it.
