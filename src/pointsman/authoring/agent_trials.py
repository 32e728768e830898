"""Trial of an agent, saved or being written: a person talks to it without a workflow around it.

    message ─▶ turn of a session of its own (`try-…`) ─▶ workflow with one node, which is not saved

A turn is a partial run: it is journalled, streamed and charged, but not listed. Its tools have their real effects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from pointsman.auth.callers import Caller
from pointsman.auth.subjects import InputInvalid
from pointsman.context import AppContext
from pointsman.executions.execution import Execution
from pointsman.executions.ids import new_trial_session
from pointsman.executions.partial_runs import KIND
from pointsman.executions.start import start
from pointsman.executions.start_quota import own_session, take_start
from pointsman.store.records import TRIAL
from pointsman.workflows.agents import NAME, AgentInvalid
from pointsman.workflows.authors import Party
from pointsman.workflows.saving import SavedAgents, agent_for
from pointsman.workflows.sources import Workflow, invalid

if TYPE_CHECKING:
    from pointsman.values import JsonObject

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
            f"{session[:60]!r} is no conversation of trials",
            hint="Leave it out, and say the next thing in the one that is answered.",
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
            trigger={"kind": KIND, "by": caller.name},
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
        raise AgentInvalid(f"{name[:60]!r} is no name of an agent", hint="At most 100 letters, digits, `. _ -`.")
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
