"""Wiring: opens an app from its settings: the store, the runtime, and the services that perform work."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pointsman.auth.subjects import DEFINITIONS
from pointsman.auth.vault import VAULT, FreshTools, SecretAccess, Vault
from pointsman.context import AppContext, Part, Services
from pointsman.engine.state import ExecutionState
from pointsman.errors import OperatorError, PointsmanError
from pointsman.executions.authority import AppRights, GuardedExecutors, GuardedTools
from pointsman.executions.dry_run import ASIDE
from pointsman.executions.inputs import read_artifact
from pointsman.executions.isolation import Isolation
from pointsman.executions.opening import SCRIPTS, must_reach_models, turn_ended
from pointsman.executions.start import EPHEMERAL, EphemeralExecutions, acting_for, audience_of
from pointsman.executors.attachments import Fetched
from pointsman.executors.call_observers import CallObservers, ObservedModels, ObservedTools
from pointsman.executors.memory import MemoryExecutor
from pointsman.executors.registry import Executors
from pointsman.models.providers import ConnectedProviders
from pointsman.models.script import Script
from pointsman.models.transport import PydanticModels, is_scripted
from pointsman.operations.model_connections import StoredProviders
from pointsman.operations.provider_keys import StoredKeyLeases, StoredKeySpending
from pointsman.ports import Clock, Executor, MemoryMatches, Secrets, Tools
from pointsman.runtime.dependencies import Feed
from pointsman.runtime.dispatched import Engine
from pointsman.runtime.engines import connect
from pointsman.runtime.local import LocalRuntime
from pointsman.settings import Settings, masked_address
from pointsman.store.api import Store, Workflows, open_store
from pointsman.store.memory import MemoryStore
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.sandbox.interpreter import CodeLimits, Interpreter
from pointsman.tools.scripted import UnscriptedTools, canned_tools
from pointsman.values import ExecutionId, Json
from pointsman.workflows.definitions import DECLARED_TRIGGERS
from pointsman.workflows.library import LIBRARY, Library
from pointsman.workflows.models import CacheBasis, models_for
from pointsman.workflows.scripts import ScriptDiffers, script_of
from pointsman.workflows.tool_connections import StoredToolConnections
from pointsman.workflows.tools import WorkflowTools

if TYPE_CHECKING:
    from pointsman.chat.semantic_search import SemanticIndex
    from pointsman.triggers.triggers import Triggers


@dataclass(frozen=True, slots=True)
class Setup:
    """Arguments with which an app is opened."""

    settings: Settings
    clock: Clock
    vault: Vault
    tools: ToolRegistry
    feed: Feed
    model: str | None = None
    """The model that answers every agent."""
    script: Script | None = None
    isolation: Isolation | None = None
    """What workflow tests may access outside; None: everything that the settings allow."""
    connected: ConnectedProviders | None = None
    """The connected providers of another app; None: those of the store."""
    is_aside: bool = False
    """Whether it is for a dry run: its tools belong to another app, and no model is called."""


async def open_context(setup: Setup) -> AppContext:
    """Open the store and the runtime. Close them by `close_context`."""
    settings, clock, tools = setup.settings, setup.clock, setup.tools
    store = await open_store(settings.store_url)
    try:
        placement = None if setup.is_aside else await placement_for(settings, store)
    except BaseException:
        await store.close()
        raise
    await _open_kept(setup, store)
    library = Library(store, settings, absent=partial(_is_absent, tools))
    if not setup.is_aside:
        _add_stored_tools(setup, store)
    services = wire(setup, store, script=setup.script)

    async def ended(state: ExecutionState) -> None:
        await turn_ended(app, state)

    async def emitted(name: str, data: Json, key: str, by: ExecutionId) -> None:
        await _emitted(app, name, data, key, by)

    runtime = LocalRuntime(
        store, library, services.executors, clock, setup.feed, on_ended=ended, emitted=emitted, placement=placement
    )
    takes = ScriptTakeUp(setup, is_given=setup.script is not None)
    makers: dict[Part[Any], Callable[[AppContext], object]] = {
        LIBRARY: lambda _: library,
        DEFINITIONS: lambda _: library,
        VAULT: lambda _: setup.vault,
        SCRIPTS: takes.of,
        EPHEMERAL: partial(_ephemeral, setup),
        DECLARED_TRIGGERS: _triggers,
        ASIDE: lambda _: open_aside,
    }
    app = AppContext(
        store=store,
        runtime=runtime,
        engine=placement,
        settings=settings,
        clock=clock,
        feed=setup.feed,
        tools=tools,
        services=services,
        makers=makers,
    )
    library.rights = AppRights(app, library)
    runtime.audience_of = partial(audience_of, app)
    runtime.can_go_on = partial(must_reach_models, app)
    runtime.executors = GuardedExecutors(app, runtime, library, services.executors)
    return app


async def _open_kept(setup: Setup, store: Store) -> None:
    """Read the secrets of the store, and what admins entered. A dry run uses what its app read."""
    await setup.vault.open(store.entries)
    if setup.settings.entered is not None and not setup.is_aside:
        await setup.settings.entered.open(store.entries, setup.clock)


def _add_stored_tools(setup: Setup, store: Store) -> None:
    """Add the tools of saved workflows and of connections, which change while the app runs."""
    setup.tools.add_source(WorkflowTools(store.workflows, store.entries))
    setup.tools.connect(StoredToolConnections(store.entries, setup.settings, setup.clock))


class StoreCannotBeShared(OperatorError):
    """An engine needs a store that several processes drive."""

    code: ClassVar[str] = "store-cannot-be-shared"


async def placement_for(settings: Settings, store: Store) -> Engine | None:
    """Connect to the engine of the settings; None: the runtime is local, or the store is only read."""
    if not settings.runtime or store.read_only:
        return None
    if store.claims is None:
        raise StoreCannotBeShared(
            f"workers of {settings.runtime} cannot share the store {masked_address(settings.store_url)}",
            hint="Use a store on PostgreSQL (--store, `store` in the settings), or remove `runtime` from the settings.",
        )
    return await connect(settings.runtime, await store.claims.identity())


async def close_context(app: AppContext, *, closes_tools: bool = True) -> None:
    """Stop the runtime and close everything. Open executions stay in the store."""
    await app.close_parts()
    await app.runtime.close()
    await app.services.close()
    if closes_tools:
        await app.tools.close()
    await app.store.close()


@asynccontextmanager
async def open_aside(app: AppContext, clock: Clock, tools: ToolRegistry) -> AsyncGenerator[AppContext]:
    """Open an app with a store in memory, with the settings of another one and these tools, that checks no models."""
    setup = Setup(
        settings=app.settings.with_store("memory:"),
        clock=clock,
        vault=Vault(app.settings.vault, clock),
        tools=tools,
        feed=Feed(),
        model=app.services.model,
        connected=app.services.models.connected,
        is_aside=True,
    )
    aside = await open_context(setup)
    try:
        yield aside
    finally:
        await close_context(aside, closes_tools=False)


def add_scripted_tools(tools: ToolRegistry, script: Script) -> None:
    """Let the tools of a script answer instead of others of the same names."""
    for canned in canned_tools(script.tools):
        tools.add_scripted(canned)


class ScriptTakeUp:
    """Replaces the services of an app when it resumes an execution that started with a script."""

    def __init__(self, setup: Setup, *, is_given: bool) -> None:
        self._setup = setup
        self._is_given = is_given
        self._app: AppContext | None = None

    def of(self, app: AppContext) -> ScriptTakeUp:
        """Bind to an app, and return itself."""
        self._app = app
        return self

    async def take_up(self, execution: ExecutionId) -> None:
        """Implement `Scripts.take_up`. A script given when the app was opened answers every execution."""
        app = self._app
        if self._is_given or app is None:
            return
        services = app.services
        script = await script_of(app.store, execution)
        if script is None or script == services.script:
            return
        if services.script is not None:
            raise ScriptDiffers(
                f"{execution!r} needs another script than the execution taken up before it",
                hint="Take it up in a process of its own.",
            )
        await services.close()
        add_scripted_tools(app.tools, script)
        fresh = wire(self._setup, app.store, script=script, calls=services.calls)
        services.models, services.executors, services.interpreter = fresh.models, fresh.executors, fresh.interpreter
        services.meaning, services.script = fresh.meaning, script
        app.runtime.executors = GuardedExecutors(app, app.runtime, app[LIBRARY], services.executors)


def _is_absent(tools: ToolRegistry, name: str) -> bool:
    with suppress(PointsmanError):  # A tool of a package that cannot be loaded counts as absent.
        tool = tools.find(name)
        return tool is None or bool(tool.off)
    return True


async def _emitted(app: AppContext, name: str, data: Json, key: str, by: ExecutionId) -> None:
    """Start the workflows that are triggered by an event of an execution."""
    await _triggers(app).events.emitted(name, data, key, caller=await acting_for(app, by))


def _triggers(app: AppContext) -> Triggers:
    from pointsman.triggers.triggers import TRIGGERS  # Deferred: calendars and time zones take long to load.

    return app[TRIGGERS]


def _ephemeral(setup: Setup, app: AppContext) -> EphemeralExecutions:
    store = MemoryStore()
    services = wire(setup, store, script=app.services.script, workflows=app.store.workflows, lent=app.services.models)

    async def emitted(name: str, data: Json, key: str, by: ExecutionId) -> None:
        await _emitted(app, name, data, key, by)

    return EphemeralExecutions(app, store, services, emitted)


def http_executor(settings: Settings, secrets: Secrets) -> Executor:
    from pointsman.executors.http import HttpExecutor  # Deferred: imports an HTTP client.

    return HttpExecutor(settings.http.outgoing(), secrets)


def interpreter_of(settings: Settings) -> Interpreter:
    """Return the interpreter of code nodes. Starts no process yet."""
    sandbox = settings.sandbox
    limits = CodeLimits(
        seconds=sandbox.timeout.seconds,
        memory_bytes=sandbox.memory.bytes,
        result_bytes=sandbox.result.bytes,
        at_once=sandbox.at_once or 0,
    )
    return Interpreter(limits, sandbox=sandbox.box)


def _http(settings: Settings, secrets: Secrets, isolation: Isolation | None) -> Executor:
    real = http_executor(settings, secrets)
    return real if isolation is None else isolation.http_executor(real)


async def _fetched(settings: Settings, url: str, isolation: Isolation | None) -> Fetched:
    if isolation is not None:
        isolation.refuse_file(url)
    from pointsman.tools.egress.http_calls import HttpCall  # Deferred as above.

    answer = await settings.http.outgoing().send(HttpCall(method="GET", url=url))
    return Fetched(answer.status, answer.headers.get("content-type", ""), answer.body)


def wire(
    setup: Setup,
    store: Store,
    *,
    script: Script | None,
    workflows: Workflows | None = None,
    calls: CallObservers | None = None,
    lent: PydanticModels | None = None,
) -> Services:
    """Create the services that perform work. Connects to nothing yet.

    `workflows` are the saved workflows of another store, instead of this one's. `calls` observes the calls of models
    and tools. `lent` are the models of another app, so that pacing and usage of their keys are shared.
    """
    settings, clock = setup.settings, setup.clock
    observed = calls or CallObservers()
    models = lent or models_for(
        settings,
        model=setup.model,
        script=script,
        spending=StoredKeySpending(store),
        leases=StoredKeyLeases(store, clock),
        connected=setup.connected or StoredProviders(store.entries, settings, clock),
    )
    if setup.isolation is not None:
        models.recording = setup.isolation.recording
    meaning = None if is_scripted(setup.model or "") else meaning_of(settings, store, clock, models)
    interpreter = interpreter_of(settings)
    secrets = SecretAccess(settings, workflows or store.workflows)
    return Services(
        models=models,
        executors=_executors(setup, store, models, observed, secrets, interpreter, meaning),
        interpreter=interpreter,
        meaning=meaning,
        calls=observed,
        model=setup.model,
        script=script,
        checks_models=not setup.is_aside,
        lends_models=lent is not None,
    )


def _executors(
    setup: Setup,
    store: Store,
    models: PydanticModels,
    observed: CallObservers,
    secrets: SecretAccess,
    interpreter: Interpreter,
    meaning: SemanticIndex | None,
) -> Executors:
    """Create the executors of every kind of work."""
    settings, tools, clock, isolation = setup.settings, setup.tools, setup.clock, setup.isolation
    is_played = is_scripted(setup.model or "")
    called: Tools = GuardedTools(FreshTools(tools, secrets))
    called = UnscriptedTools(called) if is_played else called
    if isolation is not None:
        called = isolation.tools(called, tools)
    finds = WordsOnly(store) if is_played and settings.memory.embeddings is not None else meaning
    return Executors(
        models=ObservedModels(models, observed, clock),
        tools=ObservedTools(called, observed, clock),
        memory=MemoryExecutor(store.memory, clock, settings.memory.quota, meaning=finds),
        http=lambda: _http(settings, secrets, isolation),
        fetch=lambda url: _fetched(settings, url, isolation),
        keep=None if settings.files is None else partial(read_artifact, settings),
        interpreter=interpreter,
        secrets=secrets,
        reaches=models.reaches,
        basis=CacheBasis(models, tools),
        plugins=isolation is None,
    )


class WordsOnly:
    """Search of memory by words, for runs with the scripted model, which call no embedding model. Results carry a
    warning."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def changed(self, scope: str, namespace: str) -> None:
        """Do nothing: a search by words needs no index."""

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int, within: str = "", at: float = 0.0
    ) -> MemoryMatches:
        matches = await self._store.memory.search(scope, namespace, text, limit=limit, within=within, at=at)
        return MemoryMatches(
            matches, ("searched by words only: with the scripted model, no embedding model is called",)
        )


def meaning_of(settings: Settings, store: Store, clock: Clock, models: PydanticModels) -> SemanticIndex | None:
    """Return the semantic index of memory; None: memory is searched by words."""
    if settings.memory.embeddings is None:
        return None
    from pointsman.chat.semantic_search import SemanticIndex  # Deferred: most apps do not use it.

    return SemanticIndex(store, clock, models.embed, settings.memory.embeddings)
