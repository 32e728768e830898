"""Definitions as an installation takes them: checked, saved, and made into what runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from pointsman.app.access.callers import Caller
from pointsman.app.access.seeing import sees_agent, sees_tool, sees_workflow
from pointsman.app.agents import agents_named, configs_of, saved_agents
from pointsman.app.aside import aside
from pointsman.app.checking import Checked, check_workflow, workflow_tools_in
from pointsman.app.meant import ANYBODY, meant
from pointsman.app.model_setup import models_for
from pointsman.app.shelf.documents import IDS
from pointsman.app.sources import Workflow, draft_of, invalid
from pointsman.app.workflow_tools import by_tool_name
from pointsman.definition.agents import AgentConfig
from pointsman.definition.sites import sites_of
from pointsman.definition.workflow import Workflow as Definition
from pointsman.errors import CallerError
from pointsman.journal.records import SavedWorkflow, WorkflowEntry
from pointsman.journal.store import Store
from pointsman.models.transport import PydanticModels
from pointsman.values import Instant

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman


class ModelFixed(CallerError):
    """The installation was opened with a model that answers every agent; an execution cannot have another one."""

    code: ClassVar[str] = "model-fixed"


def model_of(app: Pointsman, wanted: str | None) -> str | None:
    """What answers every agent of an execution; None: each its own. Raises `ModelFixed`."""
    if wanted is not None and app.model not in (None, wanted):
        raise ModelFixed(f"{app.model!r} answers every agent here, so {wanted!r} cannot", hint="Leave `model` out.")
    return wanted or app.model


async def check(
    app: Pointsman,
    store: Store | None,
    workflow: Workflow,
    *,
    lenient: bool = False,
    model: str | None = None,
    reader: Caller = ANYBODY,
) -> Checked:
    """Everything that is wrong with a workflow, at once. Never raises. Without a store nothing is saved. `reader`: who
    is told of it, and of nothing that they may not see."""
    saved = [*IDS, *(await _workflows_for(app, store, workflow.read.workflow, reader))]
    called = workflow_tools_in(workflow)
    await app.tools.prepare(called)
    hidden = [name for name in called if not await _may_use(app, store, name, reader)]
    missing = [name for name in called if name in hidden or app.tools.find(name) is None]
    offered = await _tools_for(app, store, missing, reader)
    settings = app.settings
    known = await _agents_of(app, store, workflow.read.workflow, settings.agents, reader)
    if known:
        settings = settings.model_copy(update={"agents": {**known, **settings.agents}})
    work = partial(
        check_workflow,
        workflow,
        settings=settings,
        tools=app.tools,
        workflows=saved,
        lenient=lenient,
        model=model or app.model,
        models=models_of(app),
        offered=offered,
        hidden=hidden,
    )
    return await aside(len(workflow.document.text), work)


def models_of(app: Pointsman) -> PydanticModels:
    """The models of the installation; before it is entered, as its settings describe them."""
    return models_for(app.settings, model=app.model, script=None) if app.hands is None else app.hands.models


async def save(
    app: Pointsman, workflow: Workflow, *, author: str, draft: bool, after: int | None, reader: Caller
) -> SavedWorkflow:
    """Raises `WorkflowInvalid`, `RevisionMoved`, `WebhookTaken`, `BuiltIn`; then nothing is saved."""
    checked = await app.check(workflow, reader=reader)
    if workflow.read.workflow is None or not (checked.ok or draft):
        raise invalid(checked.problems)
    await app.triggers.check(workflow.definition)
    made = draft_of(workflow, app.settings.language, at=Instant(app.clock.now()), author=author)
    saved = await app.library.workflows.save(made, after=after)
    await app.triggers.put(workflow.definition)
    return saved


async def source(app: Pointsman, reference: str) -> Workflow:
    """As its author wrote it. Raises `UnknownWorkflow`."""
    _, revision = await app.library.saved(reference)
    saved = await app.library.workflows.find(f"{reference.partition('@')[0]}@{revision}")
    assert saved is not None
    return await Workflow.parse_aside(saved.draft.text, name=saved.draft.id, dialect=saved.draft.dialect)


async def _workflows_for(app: Pointsman, store: Store | None, workflow: Definition | None, reader: Caller) -> list[str]:
    """The ids of the saved workflows that a workflow names, and where one is not there of those that may be meant. A
    start does not read the names of thousands."""
    if store is None or workflow is None:
        return []
    named = {site.text.partition("@")[0] for site in sites_of(workflow) if site.kind == "workflow"}
    wanted = sorted(id for id in named - {*IDS, workflow.id} if "{" not in id)
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
    workflow: Definition | None,
    known: Mapping[str, AgentConfig],
    reader: Caller,
) -> dict[str, AgentConfig]:
    """The saved agents that a workflow names and the reader may use, and that neither it nor the settings describe."""
    if store is None or workflow is None:
        return {}
    missing = agents_named(workflow) - known.keys() - (workflow.agents or {}).keys()
    found = await saved_agents(store.entries, missing, partial(sees_agent, app, reader)) if missing else {}
    return configs_of(found)
