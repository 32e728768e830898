"""The public API: an app over one store. It opens the store and the runtime, and forwards to the domains."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

from pointsman.arguments import checks_arguments
from pointsman.auth.audit import AUDIT, Audit
from pointsman.auth.callers import LOCAL, Caller
from pointsman.auth.credentials import TokenServer
from pointsman.auth.vault import Vault
from pointsman.auth.verbs import Acting
from pointsman.context import AppContext, opened
from pointsman.executions.children import listed_executions, state_and_events, view_of
from pointsman.executions.dry_run import dry_run
from pointsman.executions.execution import Execution
from pointsman.executions.fork_migrate_replay import fork_execution, move_execution, replay_execution
from pointsman.executions.opening import open_execution, reach_execution
from pointsman.executions.public_events import See, public_events_of, watcher_for
from pointsman.executions.start import StartOptions, start_typed
from pointsman.models.script import Script
from pointsman.ports import Clock, SecretRule
from pointsman.runtime.dependencies import Feed, SystemClock
from pointsman.runtime.local import LocalRuntime
from pointsman.session import Session
from pointsman.settings import Settings, load_settings, make_data_directory
from pointsman.store.api import Store
from pointsman.tools.conversion import ToolLike
from pointsman.tools.loop_monitor import LoopMonitor
from pointsman.values import Json
from pointsman.wiring import Setup, add_scripted_tools, close_context, open_context
from pointsman.workflows.checking import CheckedSource
from pointsman.workflows.definitions import ANYBODY, check, check_unopened, save, saved_workflows, source_of_saved
from pointsman.workflows.library import LIBRARY, Library
from pointsman.workflows.scripts import scripted_by
from pointsman.workflows.sources import In, Out, Untyped, Workflow, WorkflowLike
from pointsman.workflows.tools import registry_for

if TYPE_CHECKING:  # Deferred: most processes need none of these.
    from pointsman.chat.memories import Memories
    from pointsman.executions.isolation import Isolation
    from pointsman.operations.storage import Storage
    from pointsman.runtime.leader import Leader
    from pointsman.triggers.events import Published
    from pointsman.triggers.schedules import ScheduleTimes, StoredSchedule
    from pointsman.triggers.triggers import Triggers
    from pointsman.triggers.webhooks import Received


P = ParamSpec("P")
R = TypeVar("R")


def _forward(
    function: Callable[Concatenate[AppContext, P], Awaitable[R]],
) -> Callable[Concatenate[Pointsman, P], Coroutine[None, None, R]]:
    """Return a method of the app that calls a function of a domain with the app's context."""

    @wraps(function)
    async def method(app: Pointsman, *args: P.args, **options: P.kwargs) -> R:
        return await function(app.context, *args, **options)

    return method


@checks_arguments
class Pointsman:
    """An app over one store: an async context manager that opens the store, and closes it. Executions stay in it."""

    def __init__(
        self,
        store: str | None = None,
        *,
        tools: Iterable[ToolLike] = (),
        model: str | None = None,
        script: Script | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`tools`: functions, methods of objects, partials, or tools made by `@tool`. `model` answers every agent,
        whatever its definition names. `script`: answers of the scripted model, which is used if no `model` is given."""
        loaded = settings if settings is not None else load_settings()
        self.clock: Clock = clock if clock is not None else SystemClock()
        ruled = [name for name, secret in loaded.own_secrets.items() if secret.rule != SecretRule()]
        self.vault = Vault(loaded.vault, self.clock, ruled=ruled, token_server=TokenServer(loaded.http.outgoing))
        self.settings = loaded.with_store(store).with_stored_secrets(self.vault)
        self.tools = registry_for(self.settings, tools)
        self.feed = Feed()
        self.isolation: Isolation | None = None
        """What workflow tests may access outside; None: everything that the settings allow."""
        self._model, self._script = model or scripted_by(self.settings, script), script
        if script is not None:
            add_scripted_tools(self.tools, script)
        self._monitor = LoopMonitor()
        self._context: AppContext | None = None

    async def __aenter__(self) -> Self:
        if not self.settings.store:
            make_data_directory()
        model, script, isolation = self._model, self._script, self.isolation
        setup = Setup(self.settings, self.clock, self.vault, self.tools, self.feed, model, script, isolation)
        self._context = await open_context(setup)
        if self.tools.has_functions:
            self._monitor.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._monitor.close()
        await close_context(self.context)

    def acting_as(self, caller: Caller, *, via: str = "", target: str = "", origin: str = "") -> Session:
        """Return the verbs of all domains for a caller. The other arguments are for audit entries, see `Acting`."""
        return Session(Acting(self.context, caller, via=via, target=target, origin=origin))

    @property
    def context(self) -> AppContext:
        """The context that the domains receive."""
        return self._context or opened(None)  # Read often: a call only for the error.

    @property
    def store(self) -> Store:
        return self.context.store

    @property
    def runtime(self) -> LocalRuntime:
        return self.context.runtime

    @property
    def library(self) -> Library:
        return self.context[LIBRARY]

    @property
    def audit(self) -> Audit:
        return self.context[AUDIT]

    @property
    def model(self) -> str | None:
        """The model that answers every agent; None: each agent has its own."""
        return self._model if self._context is None else self._context.services.model

    @property
    def script(self) -> Script | None:
        return self._script if self._context is None else self._context.services.script

    @property
    def storage(self) -> Storage:
        """Deletion, retention, export and import."""
        from pointsman.operations.storage import Storage  # Deferred: most processes never delete anything.

        return Storage(self.context)

    @property
    def memory(self) -> Memories:
        """Memory of executions, sessions, users and workflows."""
        from pointsman.chat.memories import Memories  # Deferred: in most processes only executions use memory.

        return Memories(self.context)

    @property
    def triggers(self) -> Triggers:
        """Schedules, webhooks and events, which start executions."""
        from pointsman.triggers.triggers import TRIGGERS  # Deferred: calendars and time zones take long to load.

        return self.context[TRIGGERS]

    def leading(self, *, wait: bool = False) -> AbstractAsyncContextManager[Leader]:
        """Execute for this store as its leader until the block ends.

        Raises `LeaderExists` if another process is the leader; with `wait` it stands by until it can take over.
        """
        from pointsman.operations.worker_role import leading  # Deferred: most processes run only what they start.

        return leading(self.context, wait=wait)

    async def check(self, workflow: Workflow, *, lenient: bool = False, reader: Caller = ANYBODY) -> CheckedSource:
        """See `workflows.definitions.check`. Before the app is entered, saved workflows are unknown."""
        if self._context is not None:
            return await check(self._context, workflow, lenient=lenient, reader=reader)
        return await check_unopened(self.settings, self.tools, self._model, workflow, lenient=lenient, reader=reader)

    save = _forward(save)
    workflows = _forward(saved_workflows)
    source = _forward(source_of_saved)

    @overload
    async def start(
        self, workflow: Workflow[In, Out], input: In, **options: Unpack[StartOptions]
    ) -> Execution[Out]: ...

    @overload
    async def start(self, workflow: Untyped, input: object = None, **options: Unpack[StartOptions]) -> Execution: ...

    async def start(
        self, workflow: WorkflowLike, input: object = None, **options: Unpack[StartOptions]
    ) -> Execution[Any]:
        """Start an execution of a `Workflow`, a dict, the path of a file, or the id of a saved workflow. Return when
        its start is durable. `input`: JSON, or dataclasses and pydantic models that are written as JSON.

        Raises `WorkflowUnusable`, `WorkflowInvalid`, `UnknownWorkflow`, `NotJson`, `TypeMismatch`, `InputInvalid`.
        """
        return await start_typed(self.context, workflow, input, **options)

    @overload
    async def run(self, workflow: Workflow[In, Out], input: In, **options: Unpack[StartOptions]) -> Execution[Out]: ...

    @overload
    async def run(self, workflow: Untyped, input: object = None, **options: Unpack[StartOptions]) -> Execution: ...

    async def run(
        self, workflow: WorkflowLike, input: object = None, **options: Unpack[StartOptions]
    ) -> Execution[Any]:
        """Start an execution as `start` does, and return it once it has ended, or waits for a person or an event."""
        execution = await self.start(workflow, input, **options)
        await execution.settled()
        return execution

    open = _forward(open_execution)
    reach = _forward(reach_execution)
    fork = _forward(fork_execution)
    move = _forward(move_execution)
    replay = _forward(replay_execution)
    dry_run = _forward(dry_run)

    def watch(self, see: See) -> Callable[[], None]:
        """Call `see` with every event (as JSON) once it is durable, and with live output of steps. Return a function
        that stops it. `see` is called on the event loop: it must not block. Its errors are logged."""
        return self.feed.watch(watcher_for(see))

    state_and_events = _forward(state_and_events)
    view = _forward(view_of)
    public_events = _forward(public_events_of)
    executions = _forward(listed_executions)

    async def schedule(self, workflow: str, **options: Unpack[ScheduleTimes]) -> StoredSchedule:
        """Start a saved workflow by cron, at an interval, or once. See `ScheduleTimes`."""
        return await self.triggers.schedules.plan(workflow, **options)

    async def publish(
        self, name: str, data: Json = None, *, key: str = "", by: str = "", caller: Caller = LOCAL
    ) -> Published:
        """Publish an event to the waiting executions that `caller` sees, and start the workflows it triggers that
        `caller` may execute. Idempotent for one `key` of one publisher (`by`)."""
        return await self.triggers.events.publish_for(caller, name, data, key=key, by=by)

    async def webhook(self, path: str, body: bytes, headers: Mapping[str, str]) -> Received:
        """See `Webhooks.receive`."""
        return await self.triggers.webhooks.receive(path, body, headers)
