"""Verbs of saved agents. The rights are those of `auth.sharing`: only the owner of an agent and admins change it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Literal

from typing_extensions import TypedDict

from pointsman.auth.policy import sees_agent, visible
from pointsman.auth.sharing import must_own
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.auth.verbs import Verbs, verb
from pointsman.context import AppContext
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.text_locations import text_locations_of
from pointsman.errors import AuthorError
from pointsman.etags import etag_of, match_etag
from pointsman.paging import page_by, revision_place
from pointsman.store.errors import RevisionMoved
from pointsman.values import JsonObject
from pointsman.workflows.agents import AgentView, SavedAgent, agent_view
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.saving import SavedAgents, agent_for, save_agent_as


class AgentUse(TypedDict):
    """A workflow that names an agent."""

    workflowId: str
    revision: int
    names: list[str]
    """The references by which its nodes name the agent: `writer`, or one revision: `writer@2`."""


class AgentUses(TypedDict):
    """The workflows that name an agent."""

    workflows: list[AgentUse]


class AgentPage(TypedDict):
    """Agents by name; or the revisions of one, newest first."""

    agents: list[AgentView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


def etag_of_agent(saved: SavedAgent) -> str:
    """Return the ETag of a revision of an agent."""
    return etag_of(str(saved.revision))


def _created(saved: SavedAgent) -> Mapping[str, object]:
    return {"name": saved.name, "revision": saved.revision}


class AgentVerbs(Verbs):
    """Actions of a caller on saved agents."""

    @property
    def _agents(self) -> SavedAgents:
        return SavedAgents(self.app)

    @verb("viewer", "see agents", audit=False)
    async def list(
        self,
        words: str = "",
        *,
        names: Collection[str] | None = None,
        sort: Literal["name", "savedAt"] = "name",
        backwards: bool = False,
        after: str | None = None,
        limit: int,
    ) -> AgentPage:
        """Return a page of the agents that the caller may see, each with its latest revision; see
        `SavedAgents.found`."""
        agents = await self._agents.found(words, names=names, sees=partial(sees_agent, self.app, self.caller))
        place = _saved_place if sort == "savedAt" else "name"
        page = await page_by(place, map(agent_view, agents), after=after, limit=limit, backwards=backwards)
        return {"agents": page.entries, "next": page.next}

    @verb("viewer", "see agents", audit=False)
    async def versions(
        self, name: str, *, oldest_first: bool = False, after: str | None = None, limit: int
    ) -> AgentPage:
        """Return a page of the revisions of an agent. Raises `NoSuchAgent`."""
        await agent_for(self.app, self.caller, name)
        entries = map(agent_view, await self._agents.versions(name))
        page = await page_by(revision_place, entries, after=after, limit=limit, backwards=not oldest_first)
        return {"agents": page.entries, "next": page.next}

    @verb("viewer", "see agents", audit=False)
    async def read(self, reference: str) -> SavedAgent:
        """Return the agent `name` or the revision `name@revision`. Raises `NoSuchAgent`."""
        return await agent_for(self.app, self.caller, reference)

    @verb("viewer", "see agents", audit=False)
    async def uses(self, name: str) -> AgentUses:
        """Return the workflows that name an agent in their latest revision, as far as the caller may see them. Raises
        `NoSuchAgent`."""
        saved = await agent_for(self.app, self.caller, name)
        return {"workflows": await agent_uses(self.app, saved.name, partial(visible, self.app, self.caller))}

    @verb("editor", "write workflows", target=("name",), made=_created)
    async def save(self, name: str, agent: JsonObject, *, after: int | None = None) -> SavedAgent:
        """Save an agent, which the caller then owns, or a new revision of the caller's agent. `after`: the revision
        that it must be at (0: it must not exist). Raises the errors of `save_agent_as`."""
        return await save_agent_as(self.app, self.caller, name, agent, after=after)

    @verb("editor", "write workflows", target=("name",))
    async def replace(self, name: str, agent: JsonObject, *, match: str | None = None) -> SavedAgent:
        """Save a new revision of an agent; executions keep theirs. Raises `NoSuchAgent`, `RevisionMoved`, and the
        errors of `save_agent_as`."""
        after = _match_revision(await agent_for(self.app, self.caller, name), match)
        return await save_agent_as(self.app, self.caller, name, agent, after=after)

    @verb("editor", "write workflows", target=("name",))
    async def delete(self, name: str, *, match: str | None = None) -> None:
        """Delete an agent. Executions keep the description with which they started; workflows that name the agent
        cannot start until it is saved again. Raises `NoSuchAgent`, `NotAllowed`, `RevisionMoved`."""
        after = _match_revision(await agent_for(self.app, self.caller, name), match)
        await must_own(self.app, self.caller, name.partition("@")[0], "delete it", "agent")
        await self._agents.delete(name, after=after)


def _saved_place(entry: AgentView) -> str:
    return f"{entry['savedAt']:017.6f} {entry['name']}"


def _match_revision(agent: SavedAgent, match: str | None) -> int | None:
    return match_etag(match, etag_of_agent(agent), agent.revision, RevisionMoved.of(agent.name, agent.revision))


async def agent_uses(app: AppContext, name: str, sees: Callable[[str], Awaitable[bool]]) -> list[AgentUse]:
    """Return the saved workflows that `sees` admits and whose latest revision names the agent, with the references that
    they use (`writer`, `writer@2`). Reads every saved workflow: for interactive use, not for loops."""
    uses: list[AgentUse] = []
    for entry in await app.store.workflows.list():
        try:
            workflow, revision = await app[LIBRARY].saved(entry.id)
        except (AuthorError, UnknownWorkflow):
            continue  # A deleted workflow or an unreadable draft names no agent.
        names = names_in(workflow, name)
        if names and await sees(entry.id):
            uses.append({"workflowId": entry.id, "revision": revision, "names": names})
    return uses


def names_in(workflow: WorkflowDefinition, name: str) -> list[str]:
    """Return the references by which a workflow names the saved agent. Names that the workflow's own `agents` describe
    are excluded."""
    own = workflow.agents or {}
    references = {
        location.text
        for location in text_locations_of(workflow)
        if location.kind == "agent" and location.text not in own
    }
    return sorted(reference for reference in references if reference.partition("@")[0] == name)
