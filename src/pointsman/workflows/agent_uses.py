"""Who names a saved agent: what stops when it is deleted, and what changes when it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.text_locations import sites_of
from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject
from pointsman.workflows.library import LIBRARY


async def agent_uses(app: AppContext, name: str, sees: Callable[[str], Awaitable[bool]]) -> list[JsonObject]:
    """The saved workflows that somebody `sees` and whose latest revision names the agent, with the names they use
    (`writer`, `writer@2`). Reads every workflow: for people, not for loops."""
    found: list[JsonObject] = []
    for entry in await app.store.workflows.list():
        try:
            workflow, revision = await app[LIBRARY].saved(entry.id)
        except (AuthorError, UnknownWorkflow):
            continue  # A draft that cannot be read names nobody, and one that is gone neither.
        named = names_in(workflow, name)
        if named and await sees(entry.id):
            found.append({"workflowId": entry.id, "revision": revision, "names": named})
    return found


def names_in(workflow: WorkflowDefinition, name: str) -> list[Json]:
    """As what a workflow names that agent; nothing where it has one of its own of that name."""
    own = workflow.agents or {}
    named = {site.text for site in sites_of(workflow) if site.kind == "agent" and site.text not in own}
    return [*sorted(one for one in named if one.partition("@")[0] == name)]
