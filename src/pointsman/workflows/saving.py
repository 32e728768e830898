"""Saving and deleting of workflows and agents for a caller, with checks of the caller's permissions."""

from __future__ import annotations

from pointsman.auth.callers import Caller
from pointsman.auth.policy import IdTaken, id_must_be_free, sees_agent
from pointsman.auth.sharing import EVERYONES, claim, disclaim, must_own, sharing_of
from pointsman.context import AppContext
from pointsman.store.records import SavedWorkflow
from pointsman.values import JsonObject, WorkflowId
from pointsman.workflows.agent_library import SavedAgents
from pointsman.workflows.agents import LATEST as AGENT
from pointsman.workflows.agents import SavedAgent, agent_taken, no_such_agent
from pointsman.workflows.authors import note_authors
from pointsman.workflows.definitions import outlined, save
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.sources import Workflow
from pointsman.workflows.workflow_tools import tool_name


async def save_as(
    app: AppContext,
    caller: Caller,
    source: Workflow,
    *,
    author: str | None = None,
    draft: bool = False,
    after: int | None = None,
) -> SavedWorkflow:
    """Save a revision. The caller owns a new workflow from its first revision. `after`: as in `Pointsman.save`.

    A call of a workflow that the caller may not see gives the same problem as a call of a missing one. Raises `IdTaken`
    if the id belongs to a workflow that the caller may not see, `NotAllowed` if the workflow has `allowedGroups` and
    the caller is in none of them.
    """
    await outlined(app[DOCUMENTS], source, by=caller.name)
    name = source.head.id
    # Access to secrets depends on a workflow's groups, so a caller may only name groups that they are in.
    caller.must_be_among(source.head.allowed_groups or (), f"the workflow {name!r}")
    await id_must_be_free(app, caller, name)
    is_new = await _is_new(app, name)
    if is_new:
        await _tool_name_must_be_free(app, caller, name)
    claimed = is_new and await claim(app, caller, name)
    try:
        known = await app.store.workflows.find(name)
        said = caller.name if author is None else author
        saved = await save(app, source, author=said, draft=draft, after=after, reader=caller)
    except BaseException:
        if claimed:
            await disclaim(app, name)
        raise
    if known is None or saved.revision > known.revision:
        await note_authors(app, caller, saved)
    return saved


async def save_agent_as(
    app: AppContext, caller: Caller, name: str, agent: JsonObject, *, after: int | None = None
) -> SavedAgent:
    """Save a revision of an agent. The caller owns a new agent; only the owner and admins change an existing one.

    Raises `AgentTaken` if the caller may not see the agent of this name, `NotAllowed`, and the errors of
    `SavedAgents.save`.
    """
    if not await sees_agent(app, caller, name):
        raise agent_taken(name)
    entry = await app.store.entries.find(AGENT, name)
    claimed = entry is None and await claim(app, caller, name, "agent")
    if not claimed:
        await must_own(app, caller, name, "change it", "agent")
    try:
        return await SavedAgents(app).save(name, agent, author=caller.name, after=after, by=caller)
    except BaseException:
        if claimed:
            await disclaim(app, name, "agent")
        raise


async def agent_for(app: AppContext, caller: Caller, reference: str) -> SavedAgent:
    """Return an agent that the caller may see. Raises `NoSuchAgent`, also if the caller may not see it."""
    if not await sees_agent(app, caller, reference):
        raise no_such_agent(reference)
    return await SavedAgents(app).get(reference)


async def _tool_name_must_be_free(app: AppContext, caller: Caller, workflow: str) -> None:
    """Raise `IdTaken` if agents that call another owner's workflow as a tool could call this workflow instead."""
    name = tool_name(workflow)
    for entry in await app.store.workflows.list():
        if (
            entry.id != workflow
            and tool_name(entry.id) == name
            and (await sharing_of(app, entry.id)).owner != caller.name
        ):
            raise IdTaken(
                f"the id {workflow!r} is taken", hint="Choose another id: letters, digits and `-` tell ids apart."
            )


async def _is_new(app: AppContext, workflow: str) -> bool:
    """Return whether nothing was ever saved under this id and no caller has claimed it. A workflow without an owner
    stays everyone's."""
    return await sharing_of(app, workflow) is EVERYONES and not await app.store.workflows.list(WorkflowId(workflow))
