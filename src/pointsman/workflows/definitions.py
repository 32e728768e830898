"""Definitions as an installation takes them: checked, saved, and made into what runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from pointsman.auth.callers import Caller
from pointsman.auth.policy import sees_agent, sees_tool, sees_workflow
from pointsman.definition.model.agents import AgentConfig
from pointsman.errors import CallerError
from pointsman.models.model_names import is_provider
from pointsman.models.provider_kinds import KINDS
from pointsman.models.transport import KnownModels, PydanticModels, is_scripted
from pointsman.store.api import Store
from pointsman.store.records import SavedWorkflow, WorkflowEntry
from pointsman.values import Instant
from pointsman.workflows.agents import configs_of, saved_agents
from pointsman.workflows.builtin.documents import IDS
from pointsman.workflows.checking import Checked, CheckFacts, KnownTools, check_workflow
from pointsman.workflows.document_work import SHORT_CHARS_MAX, beside
from pointsman.workflows.model_setup import models_for
from pointsman.workflows.outline import Outline
from pointsman.workflows.sources import Workflow, draft_of, invalid, source_of
from pointsman.workflows.suggestions import ANYBODY, meant
from pointsman.workflows.variables import substituted
from pointsman.workflows.workflow_tools import PREFIX, by_tool_name

if TYPE_CHECKING:
    from pointsman.app import Pointsman


NAMES_MAX: Final = 1_000
"""Different workflows, agents or models of one document that are looked up. No execution may call so many."""


FOREIGN_MAX: Final = 20
"""Different models of providers that neither the settings nor this product describe, which take long to look up."""


class ModelFixed(CallerError):
    """The installation was opened with a model that answers every agent; an execution cannot have another one."""

    code: ClassVar[str] = "model-fixed"


def model_of(app: Pointsman, wanted: str | None) -> str | None:
    """What answers every agent of an execution; None: each its own. Raises `ModelFixed`."""
    if wanted is not None and app.model not in (None, wanted):
        raise ModelFixed(f"{app.model!r} answers every agent here, so {wanted!r} cannot", hint="Leave `model` out.")
    return wanted or app.model


async def outlined(app: Pointsman, workflow: Workflow, *, by: str) -> Outline:
    """The outline of a document, which is read where documents of callers are. Raises `DocumentTooExpensive`."""
    if not workflow.is_outlined:
        job = partial(app.documents.run, outline, workflow, by=by, chars=workflow.chars)
        workflow.outlined(await job(of=workflow.digest))
    return workflow.outline


def outline(workflow: Workflow) -> Outline:
    """Job: read a document and sum it up."""
    return workflow.outline


async def check(
    app: Pointsman,
    store: Store | None,
    workflow: Workflow,
    *,
    lenient: bool = False,
    model: str | None = None,
    reader: Caller = ANYBODY,
) -> Checked:
    """Everything that is wrong with a workflow, at once. Without a store nothing is saved. `reader`: who is told of it,
    and of nothing that they may not see. Raises `DocumentTooExpensive`, `TooManyRequests`."""
    found = await outlined(app, workflow, by=reader.name)
    if found.head is None:
        return Checked(found.problems, found.dialect, workflow)
    facts = await _facts(app, store, found, lenient=lenient, model=model or app.model, reader=reader)
    job = partial(app.documents.run, check_workflow, workflow, facts, by=reader.name, chars=workflow.chars)
    result = await job(of=workflow.digest)
    return Checked(result.problems, found.dialect, workflow, result.repaired)


async def _facts(
    app: Pointsman, store: Store | None, found: Outline, *, lenient: bool, model: str | None, reader: Caller
) -> CheckFacts:
    """What the installation knows of the things that a document names, as far as the reader may know it."""
    settings, granted = app.settings, app.settings.granted()
    saved = await _agents_of(app, store, found, settings.agents, reader)
    agents = {**saved, **settings.agents}
    called = [name for name in found.named("tool") if name.startswith(PREFIX)]
    await app.tools.prepare(called[:NAMES_MAX])
    hidden = {*called[NAMES_MAX:], *[one for one in called[:NAMES_MAX] if not await _may_use(app, store, one, reader)]}
    missing = [name for name in called if name in hidden or app.tools.find(name) is None]
    known = KnownTools(app.tools)
    named = {*found.named("tool"), *(tool for agent in agents.values() for tool in agent.tools or ())}
    return CheckFacts(
        agents=agents,
        granted=granted,
        tools={name: known[name] for name in named if name not in hidden and name in known},
        tool_names=[*known, *await _tools_for(app, store, missing, reader)],
        workflows=[*IDS, *(await _workflows_for(app, store, found, reader))],
        providers=frozenset(settings.providers),
        models=await _models_named(models_of(app), found, agents, granted, settings.providers),
        default_model=settings.model,
        prices=settings.price_list,
        nodes_max=settings.limits.nodes,
        lenient=lenient,
        model=model,
    )


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


def models_of(app: Pointsman) -> PydanticModels:
    """The models of the installation; before it is entered, as its settings describe them."""
    return models_for(app.settings, model=app.model, script=None) if app.hands is None else app.hands.models


async def save(
    app: Pointsman, workflow: Workflow, *, author: str, draft: bool, after: int | None, reader: Caller
) -> SavedWorkflow:
    """Raises `WorkflowInvalid`, `RevisionMoved`, `WebhookTaken`, `BuiltIn`; then nothing is saved."""
    checked = await app.check(workflow, reader=reader)
    if checked.id is None or not (checked.ok or draft):
        raise invalid(checked.problems)
    await app.triggers.check(workflow.head)
    job = partial(app.documents.run, draft_of, workflow, app.settings.language, by=reader.name, chars=workflow.chars)
    made = msgspec.structs.replace(await job(), created=Instant(app.clock.now()), author=author)
    saved = await app.library.workflows.save(made, after=after)
    is_runnable = workflow.outline.variables <= app.settings.granted().keys()
    # The triggers of a workflow that cannot run are not in effect.
    await app.triggers.put(workflow.head if is_runnable else workflow.head.model_copy(update={"enabled": False}))
    return saved


async def source(app: Pointsman, reference: str) -> Workflow:
    """As its author wrote it. Raises `UnknownWorkflow`."""
    return source_of((await app.library.found(reference)).draft)


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


async def _workflows_for(app: Pointsman, store: Store | None, found: Outline, reader: Caller) -> list[str]:
    """The ids of the saved workflows that a workflow names, and where one is not there of those that may be meant. A
    start does not read the names of thousands."""
    if store is None or found.head is None:
        return []
    named = {name.partition("@")[0] for name in found.named("workflow")}
    wanted = sorted(id for id in named - {*IDS, found.head.id} if "{" not in id)[:NAMES_MAX]
    there = [id for id in wanted if await sees_workflow(app, reader, id)]
    if len(there) == len(wanted):
        return there
    every: dict[str, WorkflowEntry] = {entry.id: entry for entry in await store.workflows.list()}
    return [*there, *await meant(app, reader, [id for id in wanted if id not in there], every)]


async def _may_use(app: Pointsman, store: Store | None, tool: str, reader: Caller) -> bool:
    """Whether a tool that may be a saved workflow is there for the reader, as far as there is one."""
    return store is None or await sees_tool(app, reader, tool)


async def _tools_for(app: Pointsman, store: Store | None, missing: list[str], reader: Caller) -> list[str]:
    """The saved workflows that tools which are none may be meant as."""
    if store is None or not missing:
        return []
    every: dict[str, WorkflowEntry] = {entry.id: entry for entry in await store.workflows.list()}
    tools = {name: every[id] for name, id in by_tool_name(every.values()).items()}
    return await meant(app, reader, missing, tools)


async def _agents_of(
    app: Pointsman,
    store: Store | None,
    found: Outline,
    known: Mapping[str, AgentConfig],
    reader: Caller,
) -> dict[str, AgentConfig]:
    """The saved agents that a workflow names and the reader may use, and that neither it nor the settings describe."""
    if store is None:
        return {}
    missing = sorted({*found.named("agent")} - known.keys() - found.own_agents)[:NAMES_MAX]
    return configs_of(await saved_agents(store.entries, missing, partial(sees_agent, app, reader))) if missing else {}
