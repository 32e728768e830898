"""Definitions as an installation takes them: checked, saved, and made into what runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import ClassVar, Final, NamedTuple, Protocol

import msgspec

from pointsman.auth.callers import LOCAL, Caller
from pointsman.auth.policy import sees_agent, sees_tool, sees_workflow
from pointsman.context import AppContext, Part
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.errors import CallerError
from pointsman.models.model_names import is_provider
from pointsman.models.provider_kinds import KINDS
from pointsman.models.transport import KnownModels, PydanticModels, is_scripted
from pointsman.settings import Settings
from pointsman.store.records import SavedWorkflow, WorkflowEntry
from pointsman.tools.registry import ToolRegistry
from pointsman.values import Instant
from pointsman.workflows.agents import configs_of, saved_agents
from pointsman.workflows.builtin.documents import IDS
from pointsman.workflows.checking import CheckedSource, CheckFacts, KnownTools, check_workflow
from pointsman.workflows.document_work import DOCUMENTS, SHORT_CHARS_MAX, DocumentWork, beside
from pointsman.workflows.library import LIBRARY, Prepared
from pointsman.workflows.outline import Outline
from pointsman.workflows.sources import Workflow, draft_of, invalid, source_of
from pointsman.workflows.suggestions import ANYBODY, meant
from pointsman.workflows.variables import substituted
from pointsman.workflows.workflow_tools import PREFIX, by_tool_name

NAMES_MAX: Final = 1_000
"""Different workflows, agents or models of one document that are looked up. No execution may call so many."""


FOREIGN_MAX: Final = 20
"""Different models of providers that neither the settings nor this product describe, which take long to look up."""


class ModelFixed(CallerError):
    """The installation was opened with a model that answers every agent; an execution cannot have another one."""

    code: ClassVar[str] = "model-fixed"


class Disabled(CallerError):
    """The workflow is switched off."""

    code: ClassVar[str] = "workflow-disabled"


class DeclaredTriggers(Protocol):
    """The triggers that saved documents declare. The triggers of the application implement it."""

    async def check(self, workflow: Definition) -> None:
        """Raise `WebhookTaken` where they cannot be put into effect."""
        ...

    async def put(self, workflow: Definition) -> None:
        """Put them into effect, in place of those that the workflow declared before."""
        ...

    async def drop(self, workflow: str) -> None:
        """Delete those of a workflow."""
        ...


DECLARED_TRIGGERS: Final = Part[DeclaredTriggers]("declared triggers")


def model_of(app: AppContext, wanted: str | None) -> str | None:
    """What answers every agent of an execution; None: each its own. Raises `ModelFixed`."""
    if wanted is not None and app.services.model not in (None, wanted):
        raise ModelFixed(
            f"{app.services.model!r} answers every agent here, so {wanted!r} cannot", hint="Leave `model` out."
        )
    return wanted or app.services.model


async def outlined(documents: DocumentWork, workflow: Workflow, *, by: str) -> Outline:
    """Return what is known of a document without its nodes. `by`: the caller who sent it. Raises
    `DocumentTooExpensive`, `TooManyRequests`."""
    if not workflow.is_outlined:
        job = partial(documents.run, outline, workflow, by=by, chars=workflow.chars)
        workflow.outlined(await job(of=workflow.digest))
    return workflow.outline


def outline(workflow: Workflow) -> Outline:
    """Job: read a document and sum it up."""
    return workflow.outline


class CheckBasis(NamedTuple):
    """What a check knows of an application, which need not be open."""

    settings: Settings
    tools: ToolRegistry
    documents: DocumentWork
    model: str | None
    """The model that answers every agent."""
    models: PydanticModels
    app: AppContext | None = None
    """None: no store is open, so no workflow and no agent is saved."""


async def check(
    app: AppContext, workflow: Workflow, *, lenient: bool = False, model: str | None = None, reader: Caller = ANYBODY
) -> CheckedSource:
    """Return everything that is wrong with a workflow, limited to what `reader` may see. Raises `DocumentTooExpensive`,
    `TooManyRequests`."""
    services = app.services
    known = CheckBasis(app.settings, app.tools, app[DOCUMENTS], model or services.model, services.models, app)
    return await check_against(known, workflow, lenient=lenient, reader=reader)


async def check_against(
    known: CheckBasis, workflow: Workflow, *, lenient: bool = False, reader: Caller = ANYBODY
) -> CheckedSource:
    """As `check`, also where no store is open."""
    found = await outlined(known.documents, workflow, by=reader.name)
    if found.head is None:
        return CheckedSource(found.problems, found.dialect, workflow)
    facts = await _facts(known, found, lenient=lenient, reader=reader)
    job = partial(known.documents.run, check_workflow, workflow, facts, by=reader.name, chars=workflow.chars)
    result = await job(of=workflow.digest)
    return CheckedSource(result.problems, found.dialect, workflow, result.repaired)


async def _facts(known: CheckBasis, found: Outline, *, lenient: bool, reader: Caller) -> CheckFacts:
    """Return what the application knows of the things that a document names, limited to what the reader may see."""
    app, settings, granted = known.app, known.settings, known.settings.granted()
    saved = {} if app is None else await _agents_of(app, found, settings.agents, reader)
    agents = {**saved, **settings.agents}
    called = [name for name in found.named("tool") if name.startswith(PREFIX)]
    await known.tools.prepare(called[:NAMES_MAX])
    hidden = {*called[NAMES_MAX:]}
    if app is not None:
        hidden |= {one for one in called[:NAMES_MAX] if not await sees_tool(app, reader, one)}
    missing = [name for name in called if name in hidden or known.tools.find(name) is None]
    tools = KnownTools(known.tools)
    named = {*found.named("tool"), *(tool for agent in agents.values() for tool in agent.tools or ())}
    return CheckFacts(
        agents=agents,
        granted=granted,
        tools={name: tools[name] for name in named if name not in hidden and name in tools},
        tool_names=[*tools, *(() if app is None else await _tools_for(app, missing, reader))],
        workflows=[*IDS, *(() if app is None else await _workflows_for(app, found, reader))],
        providers=frozenset(settings.providers),
        models=await _models_named(known.models, found, agents, granted, settings.providers),
        default_model=settings.model,
        prices=settings.price_list,
        nodes_max=settings.limits.nodes,
        lenient=lenient,
        model=known.model,
    )


async def runnable(
    app: AppContext, workflow: Workflow, *, lenient: bool = False, revision: int = 0, reader: Caller = LOCAL
) -> Prepared:
    """Return the definition as it runs for `reader`: checked, its variables replaced, its saved agents in it.

    Raises `WorkflowInvalid` listing all problems, `Disabled`.
    """
    checked = await check(app, workflow, lenient=lenient, reader=reader)
    if not checked.ok:
        raise invalid(checked.problems)
    if workflow.head.enabled is False:
        hint = "Set `enabled` (in a graph `is_active`) to true."
        raise Disabled(f"{workflow.head.id!r} is disabled", hint=hint)
    definition = await app[DOCUMENTS].here(lambda: checked.workflow, chars=workflow.chars, of=workflow.digest)
    assert definition is not None, "it has no errors"
    return await app[LIBRARY].prepared(definition, revision, reader)


async def _models_named(
    models: PydanticModels,
    found: Outline,
    agents: Mapping[str, AgentConfig],
    granted: Mapping[str, str],
    providers: Collection[str],
) -> KnownModels:
    """What is known of the models that a document, its agents or the settings name."""
    choice = models.choice
    config = None if found.head is None else found.head.config
    written = [*found.named("model"), (config.default_model or "") if config is not None else ""]
    written += [one for agent in agents.values() for one in (agent.model or "", *(agent.fallback or ()))]
    written += [choice.only or "", choice.default, *choice.purposes.values(), *choice.fallback]
    names = [str(substituted(one, granted)) for one in dict.fromkeys(written)]
    some = _worth_a_look(dict.fromkeys(names[-NAMES_MAX:]), providers)
    is_long = any(name.partition(":")[0] not in KINDS for name in some)  # To ask for its client may load it.
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
    """Save a revision; one with errors only as a draft. `after`: the revision that the workflow must be at (0: none).
    `reader`: the caller whom the problems are for.

    Raises `WorkflowInvalid`, `RevisionMoved`, `WebhookTaken`, `BuiltIn`; then nothing is saved."""
    checked = await check(app, workflow, reader=reader)
    if checked.id is None or not (checked.ok or draft):
        raise invalid(checked.problems)
    await app[DECLARED_TRIGGERS].check(workflow.head)
    job = partial(app[DOCUMENTS].run, draft_of, workflow, app.settings.language, by=reader.name, chars=workflow.chars)
    made = msgspec.structs.replace(await job(), created=Instant(app.clock.now()), author=author)
    saved = await app[LIBRARY].workflows.save(made, after=after)
    is_runnable = workflow.outline.variables <= app.settings.granted().keys()
    # The triggers of a workflow that cannot run are not in effect.
    await app[DECLARED_TRIGGERS].put(
        workflow.head if is_runnable else workflow.head.model_copy(update={"enabled": False})
    )
    return saved


async def source_of_saved(app: AppContext, reference: str) -> Workflow:
    """As its author wrote it. Raises `UnknownWorkflow`."""
    return source_of((await app[LIBRARY].found(reference)).draft)


def _worth_a_look(names: Iterable[str], providers: Collection[str]) -> list[str]:
    """The models that only their providers can tell about: of a provider that does not exist, the check of names
    reports that."""
    found: list[str] = []
    foreign = 0
    for name in names:
        provider, colon, _ = name.partition(":")
        if is_scripted(name):
            continue
        if colon and provider not in providers and provider not in KINDS:
            foreign += is_provider(provider)
            if not is_provider(provider) or foreign > FOREIGN_MAX:
                continue
        found.append(name)
    return found


async def _workflows_for(app: AppContext, found: Outline, reader: Caller) -> list[str]:
    """The ids of the saved workflows that a workflow names, and where one is not there of those that may be meant. A
    start does not read the names of thousands."""
    if found.head is None:
        return []
    named = {name.partition("@")[0] for name in found.named("workflow")}
    wanted = sorted(id for id in named - {*IDS, found.head.id} if "{" not in id)[:NAMES_MAX]
    there = [id for id in wanted if await sees_workflow(app, reader, id)]
    if len(there) == len(wanted):
        return there
    every: dict[str, WorkflowEntry] = {entry.id: entry for entry in await app.store.workflows.list()}
    return [*there, *await meant(app, reader, [id for id in wanted if id not in there], every)]


async def _tools_for(app: AppContext, missing: list[str], reader: Caller) -> list[str]:
    """The saved workflows that tools which are none may be meant as."""
    if not missing:
        return []
    every: dict[str, WorkflowEntry] = {entry.id: entry for entry in await app.store.workflows.list()}
    tools = {name: every[id] for name, id in by_tool_name(every.values()).items()}
    return await meant(app, reader, missing, tools)


async def _agents_of(
    app: AppContext,
    found: Outline,
    known: Mapping[str, AgentConfig],
    reader: Caller,
) -> dict[str, AgentConfig]:
    """The saved agents that a workflow names and the reader may use, and that neither it nor the settings describe."""
    missing = sorted({*found.named("agent")} - known.keys() - found.own_agents)[:NAMES_MAX]
    return (
        configs_of(await saved_agents(app.store.entries, missing, partial(sees_agent, app, reader))) if missing else {}
    )
