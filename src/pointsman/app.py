"""One installation: a store, tools, models, settings, and the verbs over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Self, Unpack

import msgspec

from pointsman.auth.audit import Audit
from pointsman.auth.authority import OF_DOCUMENT, AppRights, Party, acting_for, all_of, author_of, recorded
from pointsman.auth.callers import LOCAL, Caller, together
from pointsman.auth.policy import sees_execution
from pointsman.auth.step_rights import GuardedExecutors
from pointsman.auth.vault import Vault
from pointsman.call_observers import Calls
from pointsman.engine.decide.migrate import MigrationMismatch
from pointsman.engine.plan import Plan as EnginePlan
from pointsman.engine.replay import Replay
from pointsman.engine.state import ExecutionState
from pointsman.errors import CallerError, PointsmanError
from pointsman.executions.concurrency_limits import Places, group_in
from pointsman.executions.ephemeral import Fleeting, is_fleeting
from pointsman.executions.execution import Execution
from pointsman.executions.family_view import seen
from pointsman.executions.fork_migrate_replay import ForkOptions, Lives
from pointsman.executions.forking import rows_of
from pointsman.executions.inputs import event_key
from pointsman.executions.public_events import bulletins_of
from pointsman.executions.session_turns import save_turn
from pointsman.executions.starting import Starts, Wish, uses_to_come
from pointsman.executions.views import event_view
from pointsman.executions.watching import See, watcher_for
from pointsman.models.script import Script
from pointsman.ports import Clock, SecretRule
from pointsman.runtime.clock import SystemClock
from pointsman.runtime.driver import Driver
from pointsman.runtime.feed import Feed
from pointsman.runtime.local import IsWaitingFor, LocalRuntime, folded
from pointsman.settings import Settings, load_settings, make_data_directory
from pointsman.store.api import Store, open_store
from pointsman.store.records import ExecutionQuery, SavedWorkflow, Summary, WorkflowEntry
from pointsman.tools.scripted import canned_tools
from pointsman.tools.tool import Tool
from pointsman.values import ExecutionId, Json, JsonObject, WorkflowId
from pointsman.workflows.checking import Checked
from pointsman.workflows.definitions import check as check_definition
from pointsman.workflows.definitions import model_of, outlined
from pointsman.workflows.definitions import save as save_definition
from pointsman.workflows.definitions import source as saved_source
from pointsman.workflows.document_work import DocumentWork
from pointsman.workflows.library import ACTORS, Library, Prepared
from pointsman.workflows.model_uses import refuse_unreachable
from pointsman.workflows.outline import Outline
from pointsman.workflows.scripts import OPTION as SCRIPT_OPTION
from pointsman.workflows.scripts import ScriptDiffers, keep_script, script_of, scripted_by
from pointsman.workflows.sources import Workflow, invalid, source_of
from pointsman.workflows.suggestions import ANYBODY
from pointsman.workflows.tooling import registry_for

if TYPE_CHECKING:
    from pointsman.chat.memories import Memories
    from pointsman.executions.driving import Answer
    from pointsman.executions.dry_run import DryRun
    from pointsman.executions.isolation import Isolation
    from pointsman.models.transport import PydanticModels
    from pointsman.operations.storage import Storage
    from pointsman.runtime.leader import Leader
    from pointsman.triggers.events import Published
    from pointsman.triggers.schedules import Kept, Plan
    from pointsman.triggers.triggers import Triggers
    from pointsman.triggers.webhooks import Received
    from pointsman.wiring import Hands
    from pointsman.workflows.agents import Agents


class Disabled(CallerError):
    """The workflow is switched off."""

    code = "workflow-disabled"


class Pointsman:
    """The front door. An async context: entering opens the store, leaving lets go of everything (and loses nothing)."""

    def __init__(
        self,
        store: str | None = None,
        *,
        tools: Iterable[Tool] = (),
        model: str | None = None,
        script: Script | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`model` answers every agent, whatever its definition names. `script` is what the scripted model says; without
        a `model` it answers every agent then."""
        loaded = settings if settings is not None else load_settings().settings
        self.clock: Clock = clock if clock is not None else SystemClock()
        ruled = [name for name, one in loaded.own_secrets.items() if one.rule != SecretRule()]
        self.vault = Vault(loaded.vault, self.clock, ruled=ruled)
        self.settings = loaded.kept_at(store).with_kept(self.vault)
        self.model = model or scripted_by(self.settings, script)
        self.tools = registry_for(self.settings, tools)
        self.script: Script | None = None
        self._script_found = False
        if script is not None:
            self._learn(script)
        self.feed, self.calls = Feed(), Calls()
        self.documents = DocumentWork()
        self._store: Store | None = None
        self._runtime: LocalRuntime | None = None
        self.hands: Hands | None = None
        self.isolation: Isolation | None = None
        """What workflow tests may reach outside; None: everything that the settings allow."""
        self.calls_models = True
        """False in dry runs: their executions start without a model."""
        self._library: Library | None = None
        self._audit: Audit | None = None
        self._triggers: Triggers | None = None
        self._places: Places | None = None
        self._fleeting: Fleeting | None = None

    async def __aenter__(self) -> Self:
        if not self.settings.store:
            make_data_directory()
        self._store = await open_store(self.settings.store_url)
        await self.vault.open(self._store.entries)
        self._library = Library(self._store, self.settings, absent=self._lacks_tool)
        self._library.rights = AppRights(self, self._library)
        self.hands = self._wired(self._store)
        executors, ended, emitted = self.hands.executors, self._turn_ended, self._emitted
        self._runtime = LocalRuntime(
            self._store, self._library, executors, self.clock, self.feed, ended=ended, emitted=emitted
        )
        self._runtime.audience_of = self.audience_of
        self._runtime.can_go_on = self._must_reach_models
        self._runtime.executors = GuardedExecutors(self, self._runtime, self._library, executors)
        self._places = Places(self._store, self.clock, self._driver)
        return self

    def _wired(self, store: Store) -> Hands:
        from pointsman.wiring import wire  # Providers and tools are loaded by those who run something.

        return wire(
            self.settings,
            self.tools,
            store,
            self.clock,
            model=self.model,
            script=self.script,
            calls=self.calls,
            isolation=self.isolation,
        )

    def _lacks_tool(self, name: str) -> bool:
        with suppress(PointsmanError):  # A package's tool that cannot be loaded is not here.
            tool = self.tools.find(name)
            return tool is None or bool(tool.off)
        return True

    def _learn(self, script: Script) -> None:
        """Speak from a script. Its tools answer, whatever else has their names."""
        self.script = script
        for canned in canned_tools(script.tools):
            self.tools.add_scripted(canned)

    async def __aexit__(self, *_: object) -> None:
        await self.documents.close()
        for part in (self._audit, self._triggers, self._fleeting, self._places, self._runtime, self.hands, self._store):
            if part is not None:
                await part.close()

    @property
    def store(self) -> Store:
        assert self._store is not None, "use `async with Pointsman(…)`"
        return self._store

    @property
    def runtime(self) -> LocalRuntime:
        assert self._runtime is not None, "use `async with Pointsman(…)`"
        return self._runtime

    @property
    def places(self) -> Places:
        assert self._places is not None, "use `async with Pointsman(…)`"
        return self._places

    @property
    def fleeting(self) -> Fleeting:
        """The executions of which nothing is kept."""
        if self._fleeting is None:
            self._fleeting = Fleeting(self)
        return self._fleeting

    @property
    def library(self) -> Library:
        assert self._library is not None, "use `async with Pointsman(…)`"
        return self._library

    @property
    def audit(self) -> Audit:
        """The audit log of its store."""
        if self._audit is None:
            self._audit = Audit(self.store.entries, self.clock)
        return self._audit

    @property
    def storage(self) -> Storage:
        """What is kept and for how long: deletion, retention, export and import."""
        from pointsman.operations.storage import Storage  # Most processes never delete anything.

        return Storage(self)

    @property
    def memory(self) -> Memories:
        """What is remembered of executions, sessions, users and workflows."""
        from pointsman.chat.memories import Memories  # Most processes only remember.

        return Memories(self, self.hands.meaning if self.hands is not None else None)

    @property
    def agents(self) -> Agents:
        """Agents that are described once, for many workflows."""
        from pointsman.workflows.agents import Agents  # Most processes only run them.

        return Agents(self)

    @property
    def triggers(self) -> Triggers:
        """Schedules, webhooks, events: what starts executions by itself."""
        if self._triggers is None:
            from pointsman.triggers.triggers import Triggers  # Calendars and zones are loaded by those who use them.

            self._triggers = Triggers(self)
        return self._triggers

    def keeping(self, *, wait: bool = False) -> AbstractAsyncContextManager[Leader]:
        """Go on with the executions of this store by itself, in one process, for as long as the block is open.

        Raises `StoreKept` where another process does; with `wait` it stands by until it can take over.
        """
        from pointsman.operations.worker_role import keeping  # Most processes run what they were asked to.

        return keeping(self, wait=wait)

    # Definitions ---------------------------------------------------------------------------------------------------

    async def outline(self, workflow: Workflow, *, by: str = "") -> Outline:
        """What is known of a document without its nodes. `by`: the caller who sent it. Raises `DocumentTooExpensive`,
        `TooManyRequests`."""
        return await outlined(self, workflow, by=by)

    async def check(self, workflow: Workflow, *, lenient: bool = False, reader: Caller = ANYBODY) -> Checked:
        """All that is wrong, at once, told to `reader`. Before entering, no workflow is saved. On a server raises
        `DocumentTooExpensive`, `TooManyRequests`."""
        return await check_definition(self, self._store, workflow, lenient=lenient, reader=reader)

    async def runnable(
        self, workflow: Workflow, *, lenient: bool = False, revision: int = 0, reader: Caller = LOCAL
    ) -> Prepared:
        """The definition as it runs for `reader`: checked, its variables replaced, its saved agents in it.

        Raises `WorkflowInvalid` listing all problems, `Disabled`.
        """
        checked = await self.check(workflow, lenient=lenient, reader=reader)
        if not checked.ok:
            raise invalid(checked.problems)
        if workflow.head.enabled is False:
            hint = "Set `enabled` (in a graph `is_active`) to true."
            raise Disabled(f"{workflow.head.id!r} is disabled", hint=hint)
        definition = await self.documents.here(lambda: checked.workflow, chars=workflow.chars, of=workflow.digest)
        assert definition is not None, "it has no errors"
        return await self.library.prepared(definition, revision, reader)

    async def save(
        self,
        workflow: Workflow,
        *,
        author: str = "",
        draft: bool = False,
        after: int | None = None,
        reader: Caller = LOCAL,
    ) -> SavedWorkflow:
        """Save a revision. Raises `WorkflowInvalid` for one with errors, unless it is meant as a draft. `after`: the
        revision it must be at (0: none); raises `RevisionMoved` where it is at another one. `reader`: the caller whom
        the problems are for."""
        return await save_definition(self, workflow, author=author, draft=draft, after=after, reader=reader)

    async def workflows(self, workflow: str | None = None) -> list[WorkflowEntry]:
        """The latest revision of each saved workflow; or all revisions of one, newest first."""
        return await self.store.workflows.list(WorkflowId(workflow) if workflow is not None else None)

    async def source(self, reference: str) -> Workflow:
        """A saved or built-in workflow, as its author wrote it."""
        return await saved_source(self, reference)

    # Executions ----------------------------------------------------------------------------------------------------

    async def start(
        self,
        workflow: Workflow | str,
        input: Json = None,
        *,
        session: str | None = None,
        config: Mapping[str, Json] | None = None,
        durability: str | None = None,
        language: str | None = None,
        lenient: bool = False,
        execution: ExecutionId | None = None,
        key: str | None = None,
        trigger: JsonObject | None = None,
        by: str = "",
        caller: Caller = LOCAL,
        written_by: Iterable[Party] = (),
        model: str | None = None,
        trial: JsonObject | None = None,
    ) -> Execution:
        """Begin an execution of a document or of a saved workflow. Returns when its start is durable.

        `execution` is the id it shall have. Raises `JournalMoved` where there is one of that id. With a `key` the
        execution that was started under it is returned, where there is one; with another input: `KeyReused`.
        `trigger` says what started it (`kind`, `id`), `by` who; `caller` is who it acts for. `written_by`: the authors
        of a document, where it is not the caller's own. `language`: of its texts; absent: the settings'. `model`
        answers all its agents; or `ModelFixed`: here another one does that. `trial`: see `executions.partial_runs`.
        """
        prepared = await self._definition(workflow, lenient=lenient, caller=caller, written_by=written_by)
        definition = prepared.definition
        fleeting = self.fleeting if is_fleeting(definition) and self.store.shared else None
        options = await self._options(fleeting.library if fleeting else self.library, prepared, model)
        given: JsonObject = {"durability": durability, "language": language, "trigger": trigger}
        given |= {"by": by or None, "trial": trial, ACTORS: recorded(caller) or None}
        options |= {name: said for name, said in given.items() if said is not None}
        wish = Wish(options, session, config or {}, execution, key)
        if fleeting is not None:
            return await fleeting.start(definition, input, wish)
        if self.script is not None:
            options[SCRIPT_OPTION] = await keep_script(self.store, self.script)
        starts = Starts(self.runtime, self.library, self.places, self._driver, self.models_to_check)
        return await starts.start(definition, input, wish)

    @property
    def models_to_check(self) -> PydanticModels | None:
        """What must reach every model before an execution starts; None: no model is called."""
        return self.hands.models if self.calls_models and self.hands is not None else None

    async def _must_reach_models(self, plan: EnginePlan, state: ExecutionState) -> None:
        """Raises `ModelUnusable` or `ModelUnnamed` for what is left of an execution."""
        if (models := self.models_to_check) is None:
            return
        model = state.options.get("model")
        uses = await uses_to_come(self.runtime, self.library, plan, state)
        refuse_unreachable(models, uses, model if isinstance(model, str) else None)

    async def _definition(
        self,
        workflow: Workflow | str,
        *,
        lenient: bool = False,
        caller: Caller = LOCAL,
        written_by: Iterable[Party] = (),
    ) -> Prepared:
        """What runs for a caller, and the saved revision it is; 0 for a document."""
        if not isinstance(workflow, str):
            authors = tuple(written_by)
            reader = together(caller, await all_of(self, authors)) if authors else caller
            prepared = await self.runnable(workflow, lenient=lenient, reader=reader)
            said: Json = msgspec.to_builtins(authors)
            return prepared._replace(authors={**prepared.authors, OF_DOCUMENT: said}) if authors else prepared
        found = await self.library.found(workflow)
        reader = together(caller, await author_of(self, found))
        return await self.runnable(source_of(found.draft), lenient=lenient, revision=found.revision, reader=reader)

    async def _options(self, library: Library, prepared: Prepared, model: str | None) -> JsonObject:
        options = await library.options(prepared)
        model = model_of(self, model)
        if model is not None:
            options["model"] = model
        return options

    async def schedule(self, workflow: str, **how: Unpack[Plan]) -> Kept:
        """Start a saved workflow by a cron schedule, every so many seconds, or once at an instant. See `Plan`."""
        return await self.triggers.schedules.plan(workflow, **how)

    async def publish(
        self, name: str, data: Json = None, *, key: str = "", by: str = "", caller: Caller = LOCAL
    ) -> Published:
        """Publish an event to the executions that wait for it and that `caller` sees, and start what it starts and they
        may execute. Under one key of one caller (`by`): once."""
        named = key or os.urandom(16).hex()
        shared = event_key("caller", by, named)
        published = await self.triggers.events.publish(name, data, key=shared, by=by, caller=caller)
        return published._replace(key=named)

    async def webhook(self, path: str, body: bytes, headers: Mapping[str, str]) -> Received:
        """A call from outside, checked by its signature. See `Webhooks.receive`."""
        return await self.triggers.webhooks.receive(path, body, headers)

    async def open(self, execution: str) -> Execution:
        """Take up an execution: what was running when its process ended runs again. Raises `UnknownExecution`.

        An execution that began with a script goes on with it, unless another one was given to this installation.
        """
        return Execution(self.runtime, await self._driver(ExecutionId(execution)))

    @property
    def lives(self) -> Lives:
        """Copies, moves and replays of executions."""
        return Lives(self, self._definition, self._take_up_script)

    async def fork(self, execution: str, **how: Unpack[ForkOptions]) -> Execution:
        """A new execution that begins as a copy of another one, up to a row or a step. See `Lives.fork`."""
        return await self.lives.fork(execution, **how)

    async def move(
        self,
        execution: str,
        to: Workflow | str,
        *,
        check_only: bool = False,
        by: str = "",
        caller: Caller = LOCAL,
    ) -> list[MigrationMismatch]:
        """Let an execution that stands still go on with another definition. See `Lives.move`."""
        return await self.lives.move(execution, to, check_only=check_only, by=by, caller=caller)

    async def dry_run(
        self,
        workflow: Workflow | str,
        input: Json = None,
        *,
        answers: Sequence[Answer] = (),
        trial: JsonObject | None = None,
        caller: Caller = LOCAL,
        written_by: Iterable[Party] = (),
    ) -> DryRun:
        """Estimate path, calls and cost of an execution or partial run; store nothing. See `executions.dry_run`."""
        from pointsman.executions.dry_run import dry_run  # Most processes run for real.

        found = await self.source(workflow) if isinstance(workflow, str) else workflow
        prepared = await self._definition(workflow, caller=caller, written_by=written_by)
        return await dry_run(self, found, prepared, input, answers, trial)

    async def replay(self, execution: str, *, against: Workflow | str | None = None, caller: Caller = LOCAL) -> Replay:
        """Decide its journal again, without a call of a model or tool: with its own definition, or another one."""
        return await self.lives.replay(execution, against=against, caller=caller)

    async def reach(self, execution: str) -> Execution:
        """An execution to be told something (cancel, pause) without taking it up: only what it does in answer (undoing)
        runs here."""
        await self._take_up_script(ExecutionId(execution))
        return Execution(self.runtime, await self.runtime.open(ExecutionId(execution), recover=False))

    async def _take_up_script(self, execution: ExecutionId) -> None:
        if self.script is not None and not self._script_found:
            return
        script = await script_of(self.store, execution)
        if script is None or script == self.script:
            return
        if self.script is not None:
            raise ScriptDiffers(
                f"{execution!r} needs another script than the execution taken up before it",
                hint="Take it up in a process of its own.",
            )
        assert self.hands is not None
        await self.hands.close()
        self._learn(script)
        self._script_found = True
        self.hands = self._wired(self.store)
        self.runtime.executors = GuardedExecutors(self, self.runtime, self.library, self.hands.executors)

    def watch(self, see: See) -> Callable[[], None]:
        """Show every event (as JSON) once it is durable, and what happens live inside steps. The returned function
        ends it. `see` is called on the event loop: it must neither block nor raise."""
        return self.feed.watch(watcher_for(see))

    async def look(self, execution: str) -> tuple[ExecutionState, list[JsonObject]]:
        """The state of an execution and its events, without taking it up."""
        rows = await rows_of(self.store, ExecutionId(execution))
        told = [event_view(row, number, event) for row in rows for number, event in enumerate(row.events)]
        return folded(execution, rows), told

    async def view(self, execution: str) -> JsonObject:
        """An execution as JSON, without taking it up."""
        return (await seen(self.runtime, self.settings, execution))[1]

    async def bulletins(self, execution: str, *, after: int = 0) -> list[JsonObject]:
        """What a feed tells of it from row `after` on, as much as its workflow's `observability` allows."""
        return await bulletins_of(self.runtime, ExecutionId(execution), self.settings, after=after)

    async def executions(self, query: ExecutionQuery | None = None) -> list[Summary]:
        """Executions, newest first."""
        return await self.store.executions.list(query if query is not None else ExecutionQuery())

    async def _emitted(self, name: str, data: Json, key: str, by: ExecutionId) -> None:
        """An execution emitted an event: it may start workflows."""
        await self.triggers.events.emitted(name, data, key, caller=await acting_for(self, by))

    async def audience_of(self, emitter: ExecutionId) -> IsWaitingFor:
        """Return whether other executions hear what this one emits: those that the people it acts for see."""
        caller = await acting_for(self, emitter)

        async def hears(execution: ExecutionId) -> bool:
            return await sees_execution(self, caller, execution)

        return hears

    async def _turn_ended(self, state: ExecutionState) -> None:
        await save_turn(self.store, state)
        group = group_in(state.options)
        if group is not None:
            self.places.look(group)

    async def _driver(self, execution: ExecutionId) -> Driver:
        await self._take_up_script(execution)
        driver = await self.runtime.open(execution)
        group = group_in(driver.state.options)
        if group is not None and driver.state.status == "pending":
            self.places.look(group)
        return driver
