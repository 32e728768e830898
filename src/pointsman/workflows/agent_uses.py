"""Uses of a saved agent: the workflows that its deletion breaks and its changes affect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from typing_extensions import TypedDict

from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.text_locations import sites_of
from pointsman.errors import AuthorError
from pointsman.workflows.library import LIBRARY


class AgentUse(TypedDict):
    """A workflow that names an agent."""

    workflowId: str
    revision: int
    names: list[str]
    """The references by which its nodes name the agent: `writer`, or one revision: `writer@2`."""


class AgentUses(TypedDict):
    """The workflows that name an agent."""

    workflows: list[AgentUse]


async def agent_uses(app: AppContext, name: str, sees: Callable[[str], Awaitable[bool]]) -> list[AgentUse]:
    """Return the saved workflows that `sees` admits and whose latest revision names the agent, with the references that
    they use (`writer`, `writer@2`). Reads every saved workflow: for interactive use, not for loops."""
    found: list[AgentUse] = []
    for entry in await app.store.workflows.list():
        try:
            workflow, revision = await app[LIBRARY].saved(entry.id)
        except (AuthorError, UnknownWorkflow):
            continue  # A deleted workflow or an unreadable draft names no agent.
        named = names_in(workflow, name)
        if named and await sees(entry.id):
            found.append({"workflowId": entry.id, "revision": revision, "names": named})
    return found


def names_in(workflow: WorkflowDefinition, name: str) -> list[str]:
    """Return the references by which a workflow names the saved agent. Names that the workflow's own `agents` describe
    are excluded."""
    own = workflow.agents or {}
    named = {site.text for site in sites_of(workflow) if site.kind == "agent" and site.text not in own}
    return sorted(one for one in named if one.partition("@")[0] == name)
