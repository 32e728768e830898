"""Definitions in an installation: check, save, and prepare for execution; and "did you mean" suggestions.

a misspelled name ─▶ saved workflows with similar names ─▶ those that the reader may see
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import msgspec

from pointsman.auth.callers import LOCAL, Caller
from pointsman.auth.policy import sees_agent, sees_tool, sees_workflow, visible
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext, Part
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.definition.problems import invalid, near_to
from pointsman.errors import CallerError
from pointsman.models.prices import is_provider
from pointsman.models.provider import KINDS
from pointsman.models.transport import KnownModels, PydanticModels, is_scripted
from pointsman.settings import Settings
from pointsman.store.records import SavedWorkflow, WorkflowEntry
from pointsman.tools.registry import ToolRegistry
from pointsman.values import Instant, WorkflowId
from pointsman.workflows.agents import configs_of, saved_agents
from pointsman.workflows.builtin import IDS
from pointsman.workflows.checking import CheckedSource, CheckFacts, KnownTools, check_workflow
from pointsman.workflows.document_work import DOCUMENTS, SHORT_CHARS_MAX, DocumentWork, beside
from pointsman.workflows.library import LIBRARY, Prepared, RunnableDefinition, disabled, read_saved_beside
from pointsman.workflows.models import models_for
from pointsman.workflows.sources import Outline, Workflow, draft_of, source_of
from pointsman.workflows.tools import PREFIX, by_tool_name
from pointsman.workflows.variables import substituted

ANYBODY: Final = Caller(name="", role="viewer")
"""The default reader: sees only workflows that all callers may see."""


NAMES_MAX: Final = 1_000
"""Different workflows, agents or models of one document that are looked up. No execution may call so many."""


FOREIGN_MAX: Final = 20
"""Different models of providers that neither the settings nor the product describes; each look-up is slow."""


class ModelOverride(CallerError):
    """The installation was opened with one model for all agents; an execution cannot use another one."""

    code: ClassVar[str] = "model-override"


class DeclaredTriggers(Protocol):
    """Registry of the triggers that saved documents declare. The triggers of the application implement it."""

    async def check(self, workflow: Definition) -> None:
        """Raise `WebhookTaken` if the triggers of a workflow cannot be registered."""
        ...

    async def put(self, workflow: Definition) -> None:
        """Register the triggers of a workflow in place of those that it declared before."""
        ...

    async def drop(self, workflow: str) -> None:
        """Delete the triggers of a workflow."""
        ...


DECLARED_TRIGGERS: Final = Part[DeclaredTriggers]("declared triggers")


def model_of(app: AppContext, name: str | None) -> str | None:
    """Return the model of all agents of an execution; None: each agent uses its own. Raises `ModelOverride`."""
    if name is not None and app.services.model not in (None, name):
        raise ModelOverride(
            f"{app.services.model!r} is set as the model of every agent, so {name!r} cannot be used",
            hint="Omit `model`.",
        )
    return name or app.services.model


async def outlined(documents: DocumentWork, workflow: Workflow, *, by: str) -> Outline:
    """Return the outline of a document, which has no nodes. `by`: the caller who sent it. Raises
    `DocumentTooExpensive`, `TooManyRequests`."""
    if not workflow.is_outlined:
        job = partial(documents.run, outline, workflow, by=by, chars=workflow.chars)
        workflow.outlined(await job(of=workflow.digest))
    return workflow.outline


def outline(workflow: Workflow) -> Outline:
    """Job: read a document and return its outline."""
    return workflow.outline


class CheckBasis(NamedTuple):
    """The parts of an application that a check needs; the application need not be open."""

    settings: Settings
    tools: ToolRegistry
    documents: DocumentWork
    model: str | None
    """The model that answers every agent, if there is one."""
    models: PydanticModels
    app: AppContext | None = None
    """None: no store is open, so no workflow and no agent is saved."""


async def check(
    app: AppContext, workflow: Workflow, *, lenient: bool = False, model: str | None = None, reader: Caller = ANYBODY
) -> CheckedSource:
    """Return all problems of a workflow, limited to what `reader` may see. Raises `DocumentTooExpensive`,
    `TooManyRequests`."""
    return await check_against(_basis(app, model), workflow, lenient=lenient, reader=reader)


def _basis(app: AppContext, model: str | None = None) -> CheckBasis:
    services = app.services
    return CheckBasis(app.settings, app.tools, app[DOCUMENTS], model or services.model, services.models, app)


async def check_unopened(
    settings: Settings, tools: ToolRegistry, model: str | None, workflow: Workflow, *, lenient: bool, reader: Caller
) -> CheckedSource:
    """Check as `check` does, without an open store: saved workflows are unknown."""
    models = models_for(settings, model=model, script=None)
    basis = CheckBasis(settings, tools, DocumentWork(), model, models)
    return await check_against(basis, workflow, lenient=lenient, reader=reader)


async def check_against(
    basis: CheckBasis, workflow: Workflow, *, lenient: bool = False, reader: Caller = ANYBODY
) -> CheckedSource:
    """Check as `check` does, also without an open store."""
    outlined_source = await outlined(basis.documents, workflow, by=reader.name)
    if outlined_source.head is None:
        return CheckedSource(workflow.problems, outlined_source.dialect, workflow)
    facts = await _facts(basis, outlined_source, lenient=lenient, reader=reader)
    return await _checked(basis, workflow, facts, reader)


async def _checked(basis: CheckBasis, workflow: Workflow, facts: CheckFacts, reader: Caller) -> CheckedSource:
    job = partial(basis.documents.run, check_workflow, workflow, facts, by=reader.name, chars=workflow.chars)
    result = await job(of=workflow.digest)
    return CheckedSource(workflow.located(result.problems), workflow.outline.dialect, workflow, result.repaired)


async def _facts(basis: CheckBasis, outline: Outline, *, lenient: bool, reader: Caller) -> CheckFacts:
    """Return what the application knows of the things that a document names, limited to what the reader may see."""
    app, settings = basis.app, basis.settings
    if not settings.is_fresh:
        await settings.refresh()
    await basis.models.refresh()
    saved = {} if app is None else await _agents_of(app, outline, settings.agents, reader)
    agents = {**saved, **settings.agents}
    # Finding the variables that the environment grants takes a look at each of its names.
    granted = settings.current.granted() if outline.variables or agents else {}
    called = [name for name in outline.named("tool") if name.startswith(PREFIX)]
    await basis.tools.prepare(called[:NAMES_MAX])
    hidden = {*called[NAMES_MAX:]}
    if app is not None:
        hidden |= {one for one in called[:NAMES_MAX] if not await sees_tool(app, reader, one)}
    missing = [name for name in called if name in hidden or basis.tools.find(name) is None]
    tools = KnownTools(basis.tools)
    connected = basis.models.connected
    providers = frozenset({*settings.providers, *(() if connected is None else connected.providers)})
    tool_names = {*outline.named("tool"), *(tool for agent in agents.values() for tool in agent.tools or ())}
    return CheckFacts(
        agents=agents,
        granted=granted,
        tools={name: tools[name] for name in tool_names if name not in hidden and name in tools},
        tool_names=[*iter(tools), *(() if app is None else await _tools_for(app, missing, reader))],
        workflows=[*IDS, *(() if app is None else await _workflows_for(app, outline, reader))],
        providers=providers,
        models=await _models_named(basis.models, outline, agents, granted, providers),
        default_model=basis.models.choice.default,
        prices=settings.price_list,
        nodes_max=settings.limits.nodes,
        lenient=lenient,
        model=basis.model,
    )


class _CheckedWorkflow(NamedTuple):
    """A workflow without errors, and the facts for which that holds."""

    facts: CheckFacts
    runnable: RunnableDefinition


CHECKED: Final = Part[WeakKeyDictionary[Workflow, _CheckedWorkflow]]("checked", lambda _: WeakKeyDictionary())
"""Checked workflows, as long as the caller or the cache of saved documents holds them. A check depends on the document
and on `CheckFacts` alone, so that a start with equal facts does not check again."""


async def runnable(
    app: AppContext, workflow: Workflow, *, lenient: bool = False, revision: int = 0, reader: Caller = LOCAL
) -> Prepared:
    """Return the checked definition for an execution by `reader`, with variables replaced and saved agents included.

    Raises `WorkflowInvalid` with all problems, `Disabled`.
    """
    basis = _basis(app)
    outlined_source = await outlined(basis.documents, workflow, by=reader.name)
    if outlined_source.head is None:
        raise invalid(workflow.problems)
    facts = await _facts(basis, outlined_source, lenient=lenient, reader=reader)
    ready = app[CHECKED].get(workflow)
    if ready is None or ready.facts != facts:
        checked = await _checked(basis, workflow, facts, reader)
        if not checked.ok:
            raise invalid(checked.problems)
        definition = await basis.documents.here(lambda: checked.workflow, chars=workflow.chars, of=workflow.digest)
        assert definition is not None, "it has no errors"
        ready = app[CHECKED][workflow] = _CheckedWorkflow(facts, await app[LIBRARY].runnable(definition))
    if outlined_source.head.enabled is False:
        raise disabled(str(outlined_source.head.id))
    return await app[LIBRARY].prepared(ready.runnable, revision, reader)


async def _models_named(
    models: PydanticModels,
    outline: Outline,
    agents: Mapping[str, AgentConfig],
    granted: Mapping[str, str],
    providers: Collection[str],
) -> KnownModels:
    """Return what is known of the models that a document, its agents or the settings name."""
    choice = models.choice
    config = None if outline.head is None else outline.head.config
    written = [*outline.named("model"), (config.default_model or "") if config is not None else ""]
    written += [one for agent in agents.values() for one in (agent.model or "", *(agent.fallback or ()))]
    written += [choice.only or "", choice.default, *choice.purposes.values(), *choice.fallback]
    names = [str(substituted(name, granted)) for name in dict.fromkeys(written)]
    some = _worth_a_look(dict.fromkeys(names[-NAMES_MAX:]), providers)
    is_long = any(name and name.partition(":")[0] not in KINDS for name in some)  # May import its client.
    refusals = await beside(is_long * (SHORT_CHARS_MAX + 1), lambda: {name: models.refusal(name) for name in some})
    return KnownModels(choice, {name: why for name, why in refusals.items() if why is not None})


async def save(
    app: AppContext,
    workflow: Workflow,
    *,
    author: str = "",
    draft: bool = False,
    after: int | None = None,
    reader: Caller = LOCAL,
) -> SavedWorkflow:
    """Save a revision; a document with errors only as a draft.

    `after` is the revision that the workflow must be at (0: it must not exist). `reader` is the caller who receives the
    problems. Raises `WorkflowInvalid`, `RevisionMoved`, `WebhookTaken`, `BuiltIn`; nothing is saved then.
    """
    checked = await check(app, workflow, reader=reader)
    if checked.id is None or not (checked.ok or draft):
        raise invalid(checked.problems)
    await app[DECLARED_TRIGGERS].check(workflow.head)
    job = partial(
        app[DOCUMENTS].run, draft_of, workflow, app.settings.current.language, by=reader.name, chars=workflow.chars
    )
    made = msgspec.structs.replace(await job(), created=Instant(app.clock.now()), author=author)
    saved = await app[LIBRARY].workflows.save(made, after=after)
    if await app[LIBRARY].published(saved.draft.id):
        await put_triggers(app, saved.draft.id)
        return saved
    is_runnable = workflow.outline.variables <= app.settings.current.granted().keys()
    # Triggers of a workflow that cannot run are not registered as enabled.
    await app[DECLARED_TRIGGERS].put(
        workflow.head if is_runnable else workflow.head.model_copy(update={"enabled": False})
    )
    return saved


async def put_triggers(app: AppContext, workflow: str) -> None:
    """Put the triggers of the revision that runs by id into effect; none of a workflow whose newest revision is
    disabled. Raises `UnknownWorkflow`."""
    newest = await app[LIBRARY].found(workflow)
    current = await read_saved_beside(await app[LIBRARY].current(workflow))
    is_off = newest.draft.native.get("enabled") is False
    await app[DECLARED_TRIGGERS].put(current.model_copy(update={"enabled": False}) if is_off else current)


async def saved_workflows(app: AppContext, workflow: str | None = None) -> list[WorkflowEntry]:
    """Return the latest revision of each saved workflow, or all revisions of one, newest first."""
    return await app.store.workflows.list(WorkflowId(workflow) if workflow is not None else None)


async def source_of_saved(app: AppContext, reference: str) -> Workflow:
    """Return a saved workflow as its author wrote it. Raises `UnknownWorkflow`."""
    return source_of((await app[LIBRARY].found(reference)).draft)


def _worth_a_look(names: Iterable[str], providers: Collection[str]) -> list[str]:
    """Return the models that must be looked up with their providers. Models of unknown providers are omitted, because
    the check of names reports those."""
    texts: list[str] = []
    foreign = 0
    for name in names:
        provider, colon, _ = name.partition(":")
        if is_scripted(name):
            continue
        if colon and provider not in providers and provider not in KINDS:
            foreign += is_provider(provider)
            if not is_provider(provider) or foreign > FOREIGN_MAX:
                continue
        texts.append(name)
    return texts


async def _workflows_for(app: AppContext, outline: Outline, reader: Caller) -> list[str]:
    """Return the ids of the saved workflows that a workflow names; if one is missing, also those to suggest. Without a
    missing one it does not list all workflows, so that a start does not read thousands of names."""
    if outline.head is None:
        return []
    references = {name.partition("@")[0] for name in outline.named("workflow")}
    wanted = sorted(id for id in references - {*IDS, outline.head.id} if "{" not in id)[:NAMES_MAX]
    there = [id for id in wanted if await sees_workflow(app, reader, id)]
    if len(there) == len(wanted):
        return there
    every: dict[str, WorkflowEntry] = {entry.id: entry for entry in await app.store.workflows.list()}
    return [*there, *await similar_names(app, reader, [id for id in wanted if id not in there], every)]


async def _tools_for(app: AppContext, missing: list[str], reader: Caller) -> list[str]:
    """Return the saved workflows that may be suggested for the names of missing tools."""
    if not missing:
        return []
    every: dict[str, WorkflowEntry] = {entry.id: entry for entry in await app.store.workflows.list()}
    tools = {name: every[id] for name, id in by_tool_name(every.values()).items()}
    return await similar_names(app, reader, missing, tools)


async def _agents_of(
    app: AppContext,
    outline: Outline,
    own_agents: Mapping[str, AgentConfig],
    reader: Caller,
) -> dict[str, AgentConfig]:
    """Return the saved agents that a workflow names, that the reader may use, and that neither the workflow nor the
    settings describe."""
    missing = sorted({*outline.named("agent")} - own_agents.keys() - outline.own_agents)[:NAMES_MAX]
    return (
        configs_of(await saved_agents(app.store.entries, missing, partial(sees_agent, app, reader))) if missing else {}
    )


NEAR_MAX: Final = 5
SUGGESTED_FROM_MAX: Final = 50
"""Unknown names for which suggestions are made; further ones get none."""


async def similar_names(
    app: AppContext, reader: Caller, names: Iterable[str], entries: Mapping[str, WorkflowEntry]
) -> list[str]:
    """Return the names of `entries` that are similar to one of `names` and whose workflow the reader may see."""
    wrong = sorted({*names})[:SUGGESTED_FROM_MAX]
    near = {one for name in wrong for one in near_to(name, entries, most=NEAR_MAX) if one not in wrong}
    return [name for name in sorted(near) if await _sees(app, reader, entries[name])]


async def _sees(app: AppContext, reader: Caller, entry: WorkflowEntry) -> bool:
    with suppress(UnknownWorkflow):  # Deleted meanwhile.
        return await visible(app, reader, entry.id)
    return False
