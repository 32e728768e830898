"""Trials: partial runs of a draft in the editor, and conversations with an agent without a workflow around it.

    message to an agent ─▶ turn of a session of its own (`try-…`) ─▶ workflow with one node, which is not saved

A trial is a partial run: it is journalled, streamed and charged, but not listed. Its tools have their real effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from pointsman.auth.callers import Caller
from pointsman.auth.policy import IdTaken, id_must_be_free, sees_workflow
from pointsman.auth.subjects import InputInvalid
from pointsman.authoring.edits import document_of, edit
from pointsman.authoring.operations import AnyOperation
from pointsman.context import AppContext
from pointsman.definition.problems import invalid
from pointsman.errors import AuthorError
from pointsman.executions.dry_run import DryRun, dry_run
from pointsman.executions.execution import Execution
from pointsman.executions.opening import new_trial_session
from pointsman.executions.start import TRIAL_TRIGGER, own_session, start, take_start, try_out
from pointsman.store.records import TRIAL
from pointsman.values import Json, JsonObject
from pointsman.workflows.agents import NAME, AgentInvalid
from pointsman.workflows.authors import Party, authors_of
from pointsman.workflows.definitions import outlined, source_of_saved
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.saving import SavedAgents, agent_for
from pointsman.workflows.sources import Workflow

if TYPE_CHECKING:
    from pointsman.values import JsonObject


class DraftRun(NamedTuple):
    """A workflow that is being edited."""

    source: Workflow
    written_by: tuple[Party, ...] = ()
    """Its authors, if the document is a saved one."""


async def is_unsaved(app: AppContext, caller: Caller, workflow: str) -> bool:
    """Return whether no workflow has this id, so that a caller may run a document under it. The id of a
    workflow that the caller may not see is not free, as for saving."""
    if "@" in workflow or await sees_workflow(app, caller, workflow):
        return False
    try:
        await id_must_be_free(app, caller, workflow)
    except IdTaken:
        return False
    return True


async def draft_source(
    app: AppContext, caller: Caller, workflow: str, *, operations: Sequence[AnyOperation] = (), document: Json = None
) -> DraftRun:
    """Return a saved workflow, or a given document with its id, changed by operations. Nothing is saved.

    Raises `UnknownWorkflow`, `OperationRefused`.
    """
    written_by: tuple[Party, ...] = ()
    if document is not None:
        source = document_of(document, name=workflow)
        await outlined(app[DOCUMENTS], source, by=caller.name)
        name = workflow.partition("@")[0]
        if source.head.id != name:
            raise AuthorError(f"the document has the id {source.head.id!r}, not {name!r}", hint="Correct its `id`.")
    else:
        source, written_by = (
            await source_of_saved(app, workflow),
            await authors_of(app, await app[LIBRARY].found(workflow)),
        )
    if operations:
        source = (await edit(app, source, operations, reader=caller)).source
    return DraftRun(source, written_by)


async def try_draft(
    app: AppContext, caller: Caller, draft: DraftRun, input: Json, trial: JsonObject, *, model: str | None = None
) -> Execution:
    """Start a partial run of a result of `draft_source`.

    Raises `PartialRunInvalid`, `WorkflowInvalid`, `TooManyRequests`.
    """
    take_start(app, caller)
    return await try_out(app, draft.source, input, trial, caller=caller, written_by=draft.written_by, model=model)


async def dry_run_draft(app: AppContext, caller: Caller, draft: DraftRun, input: Json, trial: JsonObject) -> DryRun:
    """Return the path that the partial run would take, past its breakpoints, and its estimated cost. Nothing is called
    or stored."""
    shown: JsonObject = {**trial, "breakpoints": []}
    return await dry_run(app, draft.source, input, trial=shown, caller=caller, written_by=draft.written_by)


NODE: Final = "agent"
"""Id of the only node."""


class TrialTurn(NamedTuple):
    """A turn that has started."""

    session: str
    """The session for the next message."""
    execution: Execution


async def try_agent(
    app: AppContext,
    caller: Caller,
    name: str,
    message: str,
    *,
    agent: JsonObject | None = None,
    session: str | None = None,
    model: str | None = None,
) -> TrialTurn:
    """Send a message to an agent.

    `agent` is its description as it would be saved; by default the saved agent `name` (or `name@revision`) is used.
    `session` is that of the previous turn; by default a new one starts. Raises `NoSuchAgent`, `WorkflowInvalid` with
    the problems of the description, `InputInvalid` for a session that does not belong to trials, `SessionBusy`,
    `NotAllowed`, `TooManyRequests`.
    """
    if session is not None and not session.startswith(TRIAL):
        raise InputInvalid(
            f"{session[:60]!r} is not a conversation of partial runs",
            hint="Omit it, and continue in the conversation of the answer.",
        )
    source, written_by = await _around(app, caller, name, agent)
    take_start(app, caller)
    within = new_trial_session() if session is None else session
    async with own_session(app, caller, within):
        execution = await start(
            app,
            source,
            {"message": message},
            session=within,
            trial={},
            trigger={"kind": TRIAL_TRIGGER, "by": caller.name},
            by=caller.name,
            caller=caller,
            written_by=written_by,
            model=model,
        )
    return TrialTurn(within, execution)


async def _around(app: AppContext, caller: Caller, name: str, agent: JsonObject | None) -> tuple[Workflow, list[Party]]:
    """Return a workflow that consists of the agent, and the author of a saved agent.

    Raises `AgentInvalid`, `NoSuchAgent`, `WorkflowInvalid`.
    """
    written_by: list[Party] = []
    if agent is None:
        saved = await agent_for(app, caller, name)
        name, agent = saved.name, saved.agent
        written_by = [msgspec.convert(saved.by, Party)] if saved.by is not None else []
    elif not NAME.fullmatch(name):
        raise AgentInvalid(f"{name[:60]!r} is not a valid agent name", hint="Use at most 100 letters, digits, `. _ -`.")
    problems = await SavedAgents(app).check(name, agent, reader=caller)
    if any(problem.severity == "error" for problem in problems):
        raise invalid(problems)
    document: JsonObject = {
        "pointsman": 1,
        "id": f"{TRIAL}{name}",
        "name": name,
        "config": {"conversational": True},
        "agents": {name: agent},
        "nodes": [{"id": NODE, "name": name, "type": "agent", "config": {"agent": name}}],
    }
    return Workflow(msgspec.json.encode(document)), written_by
