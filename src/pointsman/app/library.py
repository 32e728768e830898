"""The library: definitions by digest and by name, checked, compiled, and pinned for as long as executions need them."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import ClassVar, Final, cast

import msgspec

from pointsman.app.agents import with_saved_agents
from pointsman.app.shelf.documents import IDS
from pointsman.app.shelf.library import WithShelf
from pointsman.app.shelf.tools import shipped_among
from pointsman.app.variables import substituted, variables_in
from pointsman.app.workflow_tools import PREFIX, workflows_named
from pointsman.definition.agents import AgentConfig
from pointsman.definition.work import PlannerConfig, ToolConfig, VerifierConfig, WorkflowCallConfig
from pointsman.definition.workflow import Workflow
from pointsman.engine.compile import compile_workflow
from pointsman.engine.compile.trials import tried
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Start
from pointsman.engine.state import ExecutionState
from pointsman.engine.trial import OPTION as TRIAL
from pointsman.errors import AuthorError, CallerError, OperatorError
from pointsman.journal.records import SavedWorkflow
from pointsman.journal.store import Store, Workflows
from pointsman.runtime.driver import ABSENT
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject

ALL_LANGUAGES: Final = "allLanguages"
"""The option of executions whose people are asked in every language that the definition has."""
PLANS_MAX: Final = 256
"""Compiled plans kept at hand."""

PINS_MAX: Final = 200
"""Sub-workflows that one execution may pin, transitively."""


class DefinitionGone(OperatorError):
    """The store does not have the definition an execution runs on."""

    code: ClassVar[str] = "definition-gone"


class UnknownWorkflow(CallerError):
    """No workflow of that name is saved here."""

    code: ClassVar[str] = "unknown-workflow"


class VariableUnresolved(AuthorError):
    """The definition names a variable that the operator does not grant."""

    code: ClassVar[str] = "unresolved-variable"


class Library:
    """Definitions of one installation."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        workflows: Workflows | None = None,
        *,
        absent: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`workflows`: the saved ones of another store, instead of this one's. `absent`: whether this process has no
        tool of that name."""
        self._absent = absent
        self._store = store
        self._saved = store.workflows if workflows is None else workflows
        self.workflows = WithShelf(self._saved, settings.language)
        self._settings = settings
        self._plans: OrderedDict[tuple[str, str, str, bool, str], Plan] = OrderedDict()

    @property
    def agents(self) -> Mapping[str, AgentConfig]:
        return self._settings.agents

    def resolved(self, workflow: Workflow) -> Workflow:
        """What runs: the variables replaced, and pauses left out where the settings say so.

        Raises `VariableUnresolved` naming those that nobody grants.
        """
        if not self._settings.delays:
            workflow = without_delays(workflow)
        document: JsonObject = workflow.to_document()
        named = list(variables_in(document))
        if not named:
            return workflow
        granted = self._settings.granted()
        missing = sorted({name for _, name in named if name not in granted})
        if missing:
            raise VariableUnresolved(
                f"the workflow needs {', '.join(missing)}, and nobody grants it",
                hint="Put it under [variables] in pointsman.toml, give --var NAME=value, or set it in the environment "
                "where `variables_from_env` allows it.",
            )
        found, problems = Workflow.from_document(substituted(document, granted))
        if found is None:
            raise AuthorError(f"after its variables were replaced: {problems[0].message}")
        return found

    async def complete(self, workflow: Workflow) -> Workflow:
        """As `resolved`, with the saved agents that it names in it."""
        return await with_saved_agents(self.resolved(workflow), self._store.entries, self._settings.agents)

    async def keep(self, workflow: Workflow) -> str:
        """Store the definition an execution will run on; its digest."""
        return await self._store.blobs.put(encoded(workflow))

    async def pinned(self, definition: str, options: JsonObject) -> Plan:
        """The plan of a kept definition, compiled as the options of its execution say."""
        model, said = options.get("model"), options.get("language")
        language = said if isinstance(said, str) else self._settings.language  # older ones did not pin it
        trial = options.get(TRIAL)
        all_languages = options.get(ALL_LANGUAGES) is True  # older ones said things in one
        tries = "" if trial is None else json.dumps(trial, sort_keys=True)
        key = (definition, str(model or ""), language, all_languages, tries)
        found = self._plans.get(key)
        if found is not None:
            self._plans.move_to_end(key)
            return found
        workflow = await self.kept(definition)
        plan = compile_workflow(
            workflow,
            agents=self.agents,
            settings=_values(self._settings),
            language=language,
            all_languages=all_languages,
            model=model if isinstance(model, str) else None,
            caps=self._settings.limits,
        )
        if isinstance(trial, dict):
            plan = tried(plan, trial)
        self._plans[key] = plan
        if len(self._plans) > PLANS_MAX:
            self._plans.popitem(last=False)
        return plan

    async def kept(self, definition: str) -> Workflow:
        """A kept definition by its digest. Raises `DefinitionGone`."""
        data = await self._store.blobs.get(definition)
        if data is None:
            raise DefinitionGone(
                f"the store has no definition {definition[:12]}", hint="It was deleted, or this is another store."
            )
        workflow, problems = Workflow.from_document(msgspec.json.decode(data))
        if workflow is None:
            raise DefinitionGone(f"the definition {definition[:12]} cannot be read: {problems[0].message}")
        return workflow

    async def saved(self, reference: str) -> tuple[Workflow, int]:
        """A workflow by `id`, `id@revision` or `id@semver`, saved or built in. Raises `UnknownWorkflow`."""
        found = await self.found(reference)
        workflow, problems = Workflow.from_document(found.draft.native)
        if workflow is None:
            raise AuthorError(f"the saved workflow {reference!r} has errors: {problems[0].message}")
        return workflow, found.revision

    async def found(self, reference: str) -> SavedWorkflow:
        """As it was saved, named as for `saved`. Raises `UnknownWorkflow`."""
        found = await self.workflows.find(reference)
        if found is None:
            # Which there are is not told: not everybody who reads this may know of all.
            hint = f"Built in: {', '.join(IDS)}. The list of workflows has the saved ones that you may see."
            raise UnknownWorkflow(f"there is no workflow {reference!r}", hint=hint)
        return found

    async def ids(self) -> list[str]:
        """Of all workflows, saved and built in."""
        return [*(entry.id for entry in await self._saved.list()), *IDS]

    async def pins(self, workflow: Workflow, *, tools: set[str] | None = None) -> dict[str, Json]:
        """Reference → {digest, revision} of every sub-workflow it can call, directly or not, as they are now. Their
        tools are added to `tools`."""
        pinned: dict[str, Json] = {}
        waiting = await self.called(workflow)
        while waiting:
            reference = waiting.pop()
            if reference in pinned:
                continue
            if len(pinned) >= PINS_MAX:
                raise AuthorError(f"the workflow calls more than {PINS_MAX} sub-workflows")
            found, revision = await self.saved(reference)
            found = await self.complete(found)
            pinned[reference] = {"definition": await self.keep(found), "revision": revision}
            if tools is not None:
                tools |= {*tools_in(found, self.agents)}
            waiting += await self.called(found)
        return pinned

    async def called(self, workflow: Workflow) -> list[str]:
        """What its nodes call, and the saved workflows that are tools of its agents."""
        called = [node.config.workflow for node in workflow.nodes if isinstance(node.config, WorkflowCallConfig)]
        tools = [*tools_in(workflow, self.agents)]
        called += shipped_among(tools)
        saved = [name for name in tools if name.startswith(PREFIX)]
        return [*called, *workflows_named(saved, await self._saved.list())] if saved else called

    async def copy_into(self, other: Store) -> None:
        """Save every revision of every workflow in another store too, under the same numbers."""
        for latest in await self._saved.list():
            for entry in reversed(await self._saved.list(latest.id)):
                found = await self._saved.find(f"{entry.id}@{entry.revision}")
                if found is not None:
                    await other.workflows.save(found.draft)

    async def options(self, workflow: Workflow, revision: int) -> JsonObject:
        """The options of an execution that its definition gives: its revision, its pins, what its feed shows; and the
        language of its texts, so that a change of the settings changes nothing that runs; and the tools that this
        process does not have."""
        options: JsonObject = {"language": self._settings.language, ALL_LANGUAGES: True}
        if revision:
            options["revision"] = revision
        tools = {*tools_in(workflow, self.agents)}
        pins = await self.pins(workflow, tools=tools)
        if pins:
            options["pins"] = pins
        absent: list[Json] = [f"tool:{name}" for name in sorted(tools) if self._absent(name)]
        if absent:
            options[ABSENT] = absent
        level = self._settings.observability.level_for(workflow.config and workflow.config.observability)
        if level != "standard":
            options["observability"] = level
        return options

    async def child(self, reference: str, parent: ExecutionState) -> tuple[Plan, Start]:
        """The plan of a sub-workflow as its parent pinned it."""
        pins = parent.options.get("pins")
        pin = pins.get(reference) if isinstance(pins, dict) else None
        if not isinstance(pin, dict):
            raise UnknownWorkflow(f"the sub-workflow {reference!r} was not there when the execution began")
        passed = {name: said for name, said in parent.options.items() if name != TRIAL}  # it names the parent's nodes
        options: JsonObject = {**passed, "revision": pin["revision"]}
        definition = str(pin["definition"])
        plan = await self.pinned(definition, options)
        return plan, Start(input={}, config={}, definition=definition, options=options)


def without_delays(workflow: Workflow) -> Workflow:
    """The workflow, no step of which is paused before it starts."""
    nodes = tuple(
        node.model_copy(update={"execution": node.execution.model_copy(update={"delay": None})})
        if node.execution is not None and node.execution.delay is not None
        else node
        for node in workflow.nodes
    )
    return workflow.model_copy(update={"nodes": nodes})


def encoded(workflow: Workflow) -> bytes:
    """The native document as it is kept."""
    return msgspec.json.encode(workflow.to_document())


def digest_of(workflow: Workflow) -> str:
    return sha256(encoded(workflow)).hexdigest()


def tools_in(workflow: Workflow, agents: Mapping[str, AgentConfig]) -> Iterator[str]:
    """The tools that its nodes and agents may call; `agents`: those of the settings."""
    known = {**agents, **(workflow.agents or {})}
    for config in (*(node.config for node in workflow.nodes), *(workflow.agents or {}).values()):
        match config:
            case AgentConfig():
                named = known.get(config.agent) if config.agent is not None else None
                yield from config.tools or (named.tools if named is not None else None) or ()
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
