"""Library of definitions: found by name or digest, prepared, compiled, and pinned for executions."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Final, NamedTuple, Protocol, cast
from weakref import WeakKeyDictionary

import msgspec

from pointsman.auth.callers import LOCAL, Caller, combined_caller
from pointsman.auth.subjects import DefinitionMissing, UnknownWorkflow
from pointsman.caches import BoundedCache
from pointsman.context import AppContext, Part
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.work import PlannerConfig, ToolConfig, VerifierConfig, WorkflowCallConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.compile import compile_workflow
from pointsman.engine.compile.partial_run import partial_run_plan
from pointsman.engine.plan import PARTIAL_RUN_OPTION, Plan
from pointsman.engine.reports import Start
from pointsman.engine.state import ExecutionState
from pointsman.errors import AuthorError, CallerError
from pointsman.runtime.driver import ABSENT
from pointsman.settings import Settings
from pointsman.store.api import ConfigStore, Store, Workflows
from pointsman.store.compression import HOLD_S
from pointsman.store.records import SavedWorkflow
from pointsman.values import Json, JsonObject
from pointsman.workflows.agents import agents_named, with_saved_agents
from pointsman.workflows.builtin import BUILT_IN, IDS, LibraryWithBuiltIns, is_built_in
from pointsman.workflows.document_work import beside
from pointsman.workflows.models import ModelUse, model_uses
from pointsman.workflows.tools import PREFIX, shipped_among, workflows_named
from pointsman.workflows.variables import substituted, variables_in
from pointsman.workflows.versions import VERSIONS, versions_of

ALL_LANGUAGES: Final = "allLanguages"
"""Option of executions whose human tasks are shown in every language of the definition."""
PLANS_MAX: Final = 256
"""Compiled plans in the cache."""

ELEMENT_CHARS: Final = 100
"""Approximate length of a node or an edge without its texts."""

PINS_MAX: Final = 200
"""Sub-workflows that one execution may pin, transitively."""


def unknown_workflow(reference: str) -> UnknownWorkflow:
    """Return the error for a workflow that does not exist or that the caller may not see: both get the same message."""
    hint = f"Built-in workflows: {', '.join(IDS)}. The list of workflows contains the saved ones that you may see."
    return UnknownWorkflow(f"there is no workflow {reference!r}", hint=hint)


class VariableUnresolved(AuthorError):
    """The definition names a variable that has no value."""

    code: ClassVar[str] = "unresolved-variable"


class Disabled(CallerError):
    """The workflow is disabled."""

    code: ClassVar[str] = "workflow-disabled"


def disabled(workflow: str) -> Disabled:
    """Return the error for the start of a disabled workflow."""
    return Disabled(f"{workflow!r} is disabled", hint="Set `enabled` (in a graph `is_active`) to true.")


ACTORS: Final = "actors"
"""Option of executions that records the people who started them."""
AUTHORS: Final = "authors"
"""Option of executions that records the authors of the saved agents that they use."""

OF_PARENT: Final = frozenset({PARTIAL_RUN_OPTION, AUTHORS, ACTORS})
"""Options that child executions do not inherit: they name nodes, agents and starters of the parent."""
LOG: Final = logging.getLogger("pointsman.access")


class Rights(Protocol):
    """Decides which caller may see what, and which execution may call what. `executions.authority` implements it."""

    async def may_call(self, parent: ExecutionState, node: str, target: str) -> bool:
        """Return whether an execution may call a saved workflow at one of its nodes."""
        ...

    async def sees_workflow(self, caller: Caller, reference: str) -> bool: ...

    async def sees_agent(self, caller: Caller, name: str) -> bool: ...

    async def author_of(self, saved: SavedWorkflow) -> Caller:
        """Return the present permissions of the author of a saved revision."""
        ...

    async def starters(self, parent: ExecutionState) -> list[Json]:
        """Return the people for whom an execution acts, as records."""
        ...


class RunnableDefinition:
    """A definition with its variables replaced, and the facts about it that each start needs, each computed once."""

    def __init__(self, definition: WorkflowDefinition, agents: Mapping[str, AgentConfig]) -> None:
        """`agents`: those of the settings."""
        self.definition = definition
        self._agents = agents

    @cached_property
    def encoded(self) -> bytes:
        """The native document in its stored form."""
        return encoded(self.definition)

    @cached_property
    def agents_named(self) -> frozenset[str]:
        """The agents that the definition names and the settings do not describe."""
        return frozenset(agents_named(self.definition) - self._agents.keys())

    @cached_property
    def tools(self) -> tuple[str, ...]:
        """The tools that its nodes and agents may call, each once."""
        return tuple(dict.fromkeys(tools_in(self.definition, self._agents)))

    @cached_property
    def workflows(self) -> tuple[str, ...]:
        """The workflows that its nodes call, and the built-in ones that its agents may call."""
        called = [node.config.workflow for node in self.definition.nodes if isinstance(node.config, WorkflowCallConfig)]
        return (*called, *shipped_among(self.tools))

    def compute(self) -> RunnableDefinition:
        """Compute all facts now."""
        _ = self.encoded, self.agents_named, self.tools, self.workflows
        return self


class Prepared(NamedTuple):
    """A definition that is ready to run, for the people in whose name it runs."""

    runnable: RunnableDefinition
    revision: int
    """The saved revision; 0 for a document."""
    authors: dict[str, Json]
    """The recorded authors of the saved agents that the definition uses."""
    reader: Caller

    @property
    def definition(self) -> WorkflowDefinition:
        return self.runnable.definition


class Library:
    """Definitions of one installation."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        workflows: Workflows | None = None,
        *,
        agents: ConfigStore | None = None,
        absent: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`workflows` and `agents`: saved objects of another store that replace those of `store`. `absent`: returns
        whether this process lacks the tool of that name."""
        self.rights: Rights | None = None
        """None: every caller may see and call everything."""
        self._entries = store.entries if agents is None else agents
        self._absent = absent
        self._store = store
        self._saved = store.workflows if workflows is None else workflows
        self.workflows = LibraryWithBuiltIns(self._saved, settings)
        self._settings = settings
        self._plans = BoundedCache[tuple[str, str, str, bool, str], Plan](PLANS_MAX)
        self._model_uses = BoundedCache[str, tuple[ModelUse, ...]](PLANS_MAX)
        self._held: WeakKeyDictionary[RunnableDefinition, tuple[str, float]] = WeakKeyDictionary()
        """Digests of stored definitions, and the monotonic times until which they need not be stored again."""

    @property
    def agents(self) -> Mapping[str, AgentConfig]:
        return self._settings.agents

    def resolved(self, workflow: WorkflowDefinition) -> WorkflowDefinition:
        """Return the definition that runs: variables replaced, and delays removed if the settings disable them.

        Raises `VariableUnresolved` with the variables that have no value.
        """
        if not self._settings.delays:
            workflow = without_delays(workflow)
        document: JsonObject = workflow.to_document()
        variables = list(variables_in(document))
        if not variables:
            return workflow
        granted = self._settings.current.granted()
        missing = sorted({name for _, name in variables if name not in granted})
        if missing:
            raise VariableUnresolved(
                f"the workflow needs {', '.join(missing)}, but no value is set",
                hint="Set it on the page Settings, under [variables] in pointsman.toml, with --var NAME=value, or in "
                "the environment if `variables_from_env` allows it.",
            )
        definition, problems = WorkflowDefinition.from_document(substituted(document, granted))
        if definition is None:
            raise AuthorError(f"after its variables were replaced: {problems[0].message}")
        return definition

    async def runnable(self, workflow: WorkflowDefinition) -> RunnableDefinition:
        """Return the resolved definition. Raises `VariableUnresolved`."""
        return await beside(
            size_of(workflow), lambda: RunnableDefinition(self.resolved(workflow), self.agents).compute()
        )

    async def prepared(self, runnable: RunnableDefinition, revision: int = 0, reader: Caller = LOCAL) -> Prepared:
        """Return the definition with the saved agents that it names and `reader` may use."""

        async def sees(name: str) -> bool:
            return self.rights is None or await self.rights.sees_agent(reader, name)

        if not runnable.agents_named:
            return Prepared(runnable, revision, {}, reader)
        agents = await with_saved_agents(runnable.definition, runnable.agents_named, self._entries, sees)
        if agents.workflow is not runnable.definition:
            runnable = RunnableDefinition(agents.workflow, self.agents)
        return Prepared(runnable, revision, agents.authors, reader)

    async def keep(self, runnable: RunnableDefinition) -> str:
        """Store the definition of an execution and return its digest.

        The store holds a content for a while before an execution uses it: starts within half of that time do not store
        it again.
        """
        digest, until = self._held.get(runnable, ("", 0.0))
        if time.monotonic() >= until:
            data = await beside(size_of(runnable.definition), lambda: runnable.encoded)
            until = time.monotonic() + HOLD_S / 2
            digest = await self._store.blobs.put(data)
            self._held[runnable] = digest, until
        return digest

    async def pinned(self, definition: str, options: JsonObject) -> Plan:
        """Return the plan of a stored definition, compiled according to the options of its execution."""
        model, pinned_language = options.get("model"), options.get("language")
        language = (
            pinned_language if isinstance(pinned_language, str) else self._settings.current.language
        )  # Older executions did not store it.
        trial = options.get(PARTIAL_RUN_OPTION)
        all_languages = options.get(ALL_LANGUAGES) is True  # Older executions used one language.
        tries = "" if trial is None else json.dumps(trial, sort_keys=True)
        key = (definition, str(model or ""), language, all_languages, tries)
        known_plan = self._plans.get(key)
        if known_plan is not None:
            return known_plan
        data = await self._blob(definition)

        def compiled() -> Plan:
            plan = compile_workflow(
                _cached_definition(data, definition),
                agents=self.agents,
                settings=_values(self._settings),
                language=language,
                all_languages=all_languages,
                model=model if isinstance(model, str) else None,
                caps=self._settings.limits,
            )
            return partial_run_plan(plan, trial) if isinstance(trial, dict) else plan

        plan = await beside(len(data), compiled)
        self._plans.put(key, plan)
        return plan

    async def model_uses(self, definition: str) -> tuple[ModelUse, ...]:
        """Return the models that a stored definition calls. Raises `DefinitionMissing`."""
        uses = self._model_uses.get(definition)
        if uses is None:
            data = await self._blob(definition)
            uses = await beside(len(data), lambda: tuple(model_uses(_cached_definition(data, definition), self.agents)))
            self._model_uses.put(definition, uses)
        return uses

    async def kept(self, definition: str) -> WorkflowDefinition:
        """Return a stored definition by its digest. Raises `DefinitionMissing`."""
        data = await self._blob(definition)
        return await beside(len(data), lambda: _cached_definition(data, definition))

    async def _blob(self, definition: str) -> bytes:
        data = await self._store.blobs.get(definition)
        if data is None:
            raise DefinitionMissing(
                f"the store has no definition {definition[:12]}", hint="It was deleted, or this is another store."
            )
        return data

    async def saved(self, reference: str) -> tuple[WorkflowDefinition, int]:
        """Return a saved or built-in workflow and its revision by `id`, `id@revision` or `id@semver`. Raises
        `UnknownWorkflow`."""
        saved = await self.found(reference)
        return await read_saved_beside(saved), saved.revision

    async def found(self, reference: str) -> SavedWorkflow:
        """Return a workflow as it was saved; references as in `saved`. Raises `UnknownWorkflow`."""
        saved = await self.workflows.find(reference)
        if saved is None:
            raise unknown_workflow(reference)
        return saved

    async def published(self, workflow: str) -> int:
        """Return the revision of a workflow that was published; 0: none, so that the newest one runs."""
        return 0 if is_built_in(workflow) else (await versions_of(self._entries, workflow)).published

    async def current(self, reference: str) -> SavedWorkflow:
        """Return what a start of a reference runs: of an id the published revision, or the newest one if none is
        published. Raises `UnknownWorkflow`."""
        return (await self._current_and_newest(reference))[0]

    async def startable(self, reference: str) -> SavedWorkflow:
        """Return a workflow that is to be executed, as `current` does. Raises `UnknownWorkflow`; and `Disabled` if the
        revision, or the newest revision of the workflow, is disabled."""
        current, newest = await self._current_and_newest(reference)
        if any(one.draft.native.get("enabled") is False for one in (current, newest)):
            raise disabled(reference.partition("@")[0])
        return current

    async def is_current(self, workflow: str, revision: int) -> bool:
        """Return whether this is the revision that runs by id. False if the workflow does not exist."""
        try:
            return (await self.current(workflow)).revision == revision
        except UnknownWorkflow:
            return False

    async def _current_and_newest(self, reference: str) -> tuple[SavedWorkflow, SavedWorkflow]:
        saved = await self.found(reference)
        workflow, _, revision = reference.partition("@")
        if revision:
            return saved, await self.found(workflow)
        published = await self.published(workflow)
        return (await self.found(f"{workflow}@{published}") if published else saved), saved

    def unknown(self, reference: str) -> UnknownWorkflow:
        """Return the error as the function `unknown_workflow` does, for modules that cannot import it."""
        return unknown_workflow(reference)

    async def ids(self) -> list[str]:
        """Return the ids of all saved and built-in workflows."""
        return [*(entry.id for entry in await self._saved.list()), *IDS]

    async def pins(self, prepared: Prepared, *, tools: set[str] | None = None) -> dict[str, Json]:
        """Return reference → {definition, revision, authors} of every sub-workflow that a definition can call at
        present, directly or indirectly. Adds the tools of all of them to `tools`.

        Raises `UnknownWorkflow` for a node that calls a workflow which does not exist, or which the people of the
        execution or the author of the calling revision may not see, and `Disabled` for one that is disabled; tools that
        are such workflows are omitted. Raises `AuthorError` for more than `PINS_MAX` sub-workflows.
        """
        pinned: dict[str, Json] = {}
        waiting = [(one, prepared.reader) for one in await self._called(prepared.runnable, prepared.reader)]
        while waiting:
            reference, caller = waiting.pop()
            if self.rights is not None and not await self.rights.sees_workflow(caller, reference):
                raise unknown_workflow(reference)
            if reference in pinned:
                continue
            if len(pinned) >= PINS_MAX:
                raise AuthorError(f"the workflow calls more than {PINS_MAX} sub-workflows")
            child = await self._child(await self.startable(reference), prepared.reader)
            pin: JsonObject = {"definition": await self.keep(child.runnable), "revision": child.revision}
            pinned[reference] = {**pin, AUTHORS: child.authors} if child.authors else pin
            if tools is not None:
                tools.update(child.runnable.tools)
            waiting += [(one, child.reader) for one in await self._called(child.runnable, child.reader)]
        return pinned

    async def _child(self, saved: SavedWorkflow, reader: Caller) -> Prepared:
        """Return a sub-workflow as it runs for both the people of `reader` and its own author."""
        reader = reader if self.rights is None else combined_caller(reader, await self.rights.author_of(saved))
        runnable = await self.runnable(await read_saved_beside(saved))
        return await self.prepared(runnable, saved.revision, reader)

    async def called(self, workflow: WorkflowDefinition, reader: Caller = LOCAL) -> list[str]:
        """Return the workflows that the nodes call, and the saved workflows that are tools of the agents and visible to
        `reader`."""
        return await self._called(RunnableDefinition(workflow, self.agents), reader)

    async def _called(self, runnable: RunnableDefinition, reader: Caller) -> list[str]:
        saved = [name for name in runnable.tools if name.startswith(PREFIX)]
        if not saved:
            return [*runnable.workflows]
        called = workflows_named(saved, [one for one in await self._saved.list() if one.enabled])
        return [*runnable.workflows, *[one for one in called if await self._sees(reader, one)]]

    async def called_by(self, workflow: WorkflowDefinition, node: str) -> list[str]:
        """Return the workflows that one node calls, as `called` does."""
        nodes = tuple(one for one in workflow.nodes if one.id == node)
        agents = {one.config.agent for one in nodes if isinstance(one.config, AgentConfig)}
        own = {name: agent for name, agent in (workflow.agents or {}).items() if name in agents}
        return await self.called(workflow.model_copy(update={"nodes": nodes, "agents": own}))

    async def _sees(self, reader: Caller, reference: str) -> bool:
        return self.rights is None or await self.rights.sees_workflow(reader, reference)

    async def copy_into(self, other: Store, workflows: Collection[str]) -> None:
        """Save every revision of these workflows in another store too, in the same order, so that the numbers are
        equal; also which of them is published."""
        for latest in await self._saved.list():
            for entry in reversed(await self._saved.list(latest.id)) if latest.id in workflows else ():
                saved = await self._saved.find(f"{entry.id}@{entry.revision}")
                if saved is not None:
                    await other.workflows.save(saved.draft)
            if latest.id in workflows and (versions := await self._entries.find(VERSIONS, latest.id)) is not None:
                await other.entries.put(VERSIONS, latest.id, versions.value)

    async def options(self, prepared: Prepared) -> JsonObject:
        """Return the options of an execution that its definition determines.

        They hold its revision, its pins, the authors of its agents, its redaction level, the tools that this process
        lacks, and the language of its texts, so that a change of the settings does not affect running executions.
        """
        options: JsonObject = {"language": self._settings.current.language, ALL_LANGUAGES: True}
        if prepared.revision:
            options["revision"] = prepared.revision
        if prepared.authors:
            options[AUTHORS] = prepared.authors
        tools = {*prepared.runnable.tools}
        pins = await self.pins(prepared, tools=tools)
        if pins:
            options["pins"] = pins
        # A saved workflow is in the store, not in a process.
        absent: list[Json] = [
            f"tool:{name}" for name in sorted(tools) if not name.startswith(PREFIX) and self._absent(name)
        ]
        if absent:
            options[ABSENT] = absent
        config = prepared.definition.config
        level = self._settings.observability.level_for(config and config.observability)
        if level != "standard":
            options["observability"] = level
        return options

    async def child(self, reference: str, parent: ExecutionState, node: str) -> tuple[Plan, Start]:
        """Return the plan of a sub-workflow as its parent pinned it, for the node that calls it.

        Raises `UnknownWorkflow` if the workflow did not exist when the parent started, or may not be called now.
        """
        pins = parent.setup.options.get("pins")
        pin = pins.get(reference) if isinstance(pins, dict) else None
        if not isinstance(pin, dict):
            raise unknown_workflow(reference)
        if self.rights is not None and not await self.rights.may_call(parent, node, reference):
            LOG.warning(
                "%s may not call %r at node %r: its starter or its author lost the right", parent.id, reference, node
            )
            raise unknown_workflow(reference)
        passed = {name: option for name, option in parent.setup.options.items() if name not in OF_PARENT}
        options: JsonObject = {**passed, "revision": pin["revision"]}
        if AUTHORS in pin:
            options[AUTHORS] = pin[AUTHORS]
        if self.rights is not None and (starters := await self.rights.starters(parent)):
            options[ACTORS] = starters
        definition = str(pin["definition"])
        plan = await self.pinned(definition, options)
        return plan, Start(input={}, config={}, definition=definition, options=options)


def _cached_definition(data: bytes, definition: str) -> WorkflowDefinition:
    workflow, problems = WorkflowDefinition.from_document(msgspec.json.decode(data))
    if workflow is None:
        raise DefinitionMissing(f"the definition {definition[:12]} cannot be read: {problems[0].message}")
    return workflow


def read_saved(saved: SavedWorkflow) -> WorkflowDefinition:
    """Return the definition of a saved revision. Raises `AuthorError`."""
    workflow, problems = WorkflowDefinition.from_document(saved.draft.native)
    if workflow is None:
        raise AuthorError(f"the saved workflow {saved.draft.id!r} has errors: {problems[0].message}")
    return workflow


async def read_saved_beside(saved: SavedWorkflow) -> WorkflowDefinition:
    """Run `read_saved`, in a thread for a long workflow."""
    return await beside(len(saved.draft.text), lambda: read_saved(saved))


def size_of(workflow: WorkflowDefinition) -> int:
    """Return the approximate length of the document in characters, without its texts, which are cheap to read."""
    return ELEMENT_CHARS * (len(workflow.nodes) + len(workflow.edges))


def without_delays(workflow: WorkflowDefinition) -> WorkflowDefinition:
    """Return the workflow without delays before its steps."""
    nodes = tuple(
        node.model_copy(update={"execution": node.execution.model_copy(update={"delay": None})})
        if node.execution is not None and node.execution.delay is not None
        else node
        for node in workflow.nodes
    )
    return workflow.model_copy(update={"nodes": nodes})


def encoded(workflow: WorkflowDefinition) -> bytes:
    """Return the native document in its stored form."""
    return msgspec.json.encode(workflow.to_document())


def tools_in(workflow: WorkflowDefinition, agents: Mapping[str, AgentConfig]) -> Iterator[str]:
    """Yield the tools that the nodes and agents of a workflow may call. `agents`: those of the settings."""
    all_agents = {**agents, **(workflow.agents or {})}
    for config in (*(node.config for node in workflow.nodes), *(workflow.agents or {}).values()):
        match config:
            case AgentConfig():
                agent = all_agents.get(config.agent) if config.agent is not None else None
                yield from config.tools or (agent.tools if agent is not None else None) or ()
            case VerifierConfig():
                yield from config.tools or ()
            case PlannerConfig() if config.task_template is not None:
                yield from config.task_template.tools or ()
            case ToolConfig():
                yield config.tool
            case _:
                pass


def _values(settings: Settings) -> dict[str, Json]:
    return cast(dict[str, Json], settings.values)


async def pipeline_of(app: AppContext) -> str:
    """Return the id of the workflow that the setting `pipeline` names. A name without a saved or built-in workflow is
    returned unchanged."""
    name, workflows = app.settings.pipeline, app[LIBRARY].workflows
    shipped = f"{BUILT_IN}{name}"
    return shipped if await workflows.find(name) is None and await workflows.find(shipped) is not None else name


LIBRARY: Final = Part[Library]("library")
"""Bound by wiring, which passes the same library to the runtime."""
