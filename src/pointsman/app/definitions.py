"""Definitions as an installation takes them: checked, saved, and made into what runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from pointsman.app.agents import agents_named, saved_agents
from pointsman.app.checking import ANSWERED, Checked, check_workflow, workflow_tools_in
from pointsman.app.shelf.documents import IDS
from pointsman.app.sources import Workflow, draft_of, invalid
from pointsman.definition.agents import AgentConfig
from pointsman.definition.sites import sites_of
from pointsman.definition.workflow import Workflow as Definition
from pointsman.errors import CallerError
from pointsman.journal.records import SavedWorkflow
from pointsman.journal.store import Store
from pointsman.values import Instant

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman


SCRIPTED: Final = "scripted"


class ModelFixed(CallerError):
    """The installation was opened with a model that answers every agent; an execution cannot have another one."""

    code: ClassVar[str] = "model-fixed"


def model_of(app: Pointsman, wanted: str | None) -> str | None:
    """What answers every agent of an execution; None: each its own. Raises `ModelFixed`."""
    if wanted is not None and app.model not in (None, wanted):
        raise ModelFixed(f"{app.model!r} answers every agent here, so {wanted!r} cannot", hint="Leave `model` out.")
    return wanted or app.model or (None if app.settings.model or app.settings.has_provider() else SCRIPTED)


async def check(
    app: Pointsman, store: Store | None, workflow: Workflow, *, lenient: bool = False, model: str | None = None
) -> Checked:
    """Everything that is wrong with a workflow, at once. Never raises. Without a store nothing is saved."""
    saved = [*IDS, *(await _workflows_for(store, workflow.read.workflow))]
    await app.tools.prepare(workflow_tools_in(workflow))
    settings = app.settings
    known = await _agents_of(store, workflow.read.workflow, settings.agents)
    if known:
        settings = settings.model_copy(update={"agents": {**known, **settings.agents}})
    return check_workflow(
        workflow, settings=settings, tools=app.tools, workflows=saved, lenient=lenient, model=model or app.model
    )


async def save(app: Pointsman, workflow: Workflow, *, author: str, draft: bool, after: int | None) -> SavedWorkflow:
    """Raises `WorkflowInvalid`, `RevisionMoved`, `WebhookTaken`, `BuiltIn`; then nothing is saved."""
    checked = await app.check(workflow)
    # A draft may be wrong in all but its address: nobody could read it there.
    is_readable = workflow.read.workflow is not None and workflow.definition.id not in ANSWERED
    if not (is_readable and (checked.ok or draft)):
        raise invalid(checked.problems)
    await app.triggers.check(workflow.definition)
    made = draft_of(workflow, app.settings.language, at=Instant(app.clock.now()), author=author)
    saved = await app.library.workflows.save(made, after=after)
    await app.triggers.put(workflow.definition)
    return saved


async def _workflows_for(store: Store | None, workflow: Definition | None) -> list[str]:
    """The ids of the saved workflows that a workflow names; where one is not there, of all, to say what was meant. A
    start does not read the names of thousands."""
    if store is None or workflow is None:
        return []
    named = {site.text.partition("@")[0] for site in sites_of(workflow) if site.kind == "workflow"}
    wanted = sorted(id for id in named - {*IDS, workflow.id} if "{" not in id)
    if all([await store.workflows.find(id) is not None for id in wanted]):
        return wanted
    return [entry.id for entry in await store.workflows.list()]


async def _agents_of(
    store: Store | None, workflow: Definition | None, known: Mapping[str, AgentConfig]
) -> dict[str, AgentConfig]:
    """The saved agents that a workflow names and that neither it nor the settings describe."""
    if store is None or workflow is None:
        return {}
    missing = agents_named(workflow) - known.keys() - (workflow.agents or {}).keys()
    return await saved_agents(store.entries, missing) if missing else {}
