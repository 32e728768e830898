"""Saved agents: described once, named by nodes of many workflows. Each change is a new revision.

    node `agent: writer`    ─▶ the workflow's own `agents`, else the settings' `[agents]`, else the saved agent
    node `agent: writer@2`  ─▶ always revision 2 of the saved agent

An execution keeps the description that it started with, because its stored definition contains it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import ClassVar, Final, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import Struct
from typing_extensions import TypedDict

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import read_as
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.definition.text_locations import text_locations_of
from pointsman.errors import CallerError
from pointsman.store.api import ConfigStore
from pointsman.store.records import revision_named
from pointsman.values import Instant, Json, JsonObject

LATEST: Final = "agent"
"""Kind of the config entry with the latest revision; its key is the agent's name."""
REVISION: Final = "agent-revision"
"""Kind of the config entry with an earlier revision; its key is `name@revision`."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class NoSuchAgent(CallerError):
    """No saved agent has this name, or the agent does not have this revision."""

    code: ClassVar[str] = "no-such-agent"


def no_such_agent(reference: str) -> NoSuchAgent:
    """Return the error for an agent that does not exist or that the caller may not see: both get the same message."""
    return NoSuchAgent(f"there is no agent {reference!r}", hint="GET /api/agents lists the agents that you may see.")


class AgentInvalid(CallerError):
    """The text is not a valid agent name."""

    code: ClassVar[str] = "agent-invalid"


class AgentTaken(CallerError):
    """An agent of the settings, or one that the caller may not see, has this name."""

    code: ClassVar[str] = "agent-taken"


def agent_taken(name: str) -> AgentTaken:
    """Return the error for a name that another agent has."""
    return AgentTaken(f"the name {name!r} is taken", hint="Choose another name.")


class SavedAgent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One revision of an agent."""

    name: str
    revision: int
    agent: JsonObject
    """The description, as in the `agents` of a workflow."""
    saved: Instant
    author: str = ""
    entrance: str = "key"
    """How the author was authenticated."""
    deleted: bool = False
    """Only in the latest revision: the agent is deleted. Saving restores it under the next revision number."""

    @property
    def by(self) -> Json:
        """The author, as executions record it. None: a user on the machine of the store."""
        return {"name": self.author, "entrance": self.entrance} if self.author else None


async def find_agent(entries: ConfigStore, reference: str) -> SavedAgent | None:
    name, at, revision_text = reference.partition("@")
    revision = revision_named(revision_text)
    latest = await entries.find(LATEST, name)
    if latest is None or (at and revision is None):
        return None
    agent = msgspec.convert(latest.value, SavedAgent)
    if revision is None:
        return None if agent.deleted else agent
    if revision == agent.revision:
        return agent
    entry = await entries.find(REVISION, f"{name}@{revision}")
    return None if entry is None else msgspec.convert(entry.value, SavedAgent)


def agents_named(workflow: Definition) -> set[str]:
    """Return the agents that the nodes of a workflow name."""
    return {location.text for location in text_locations_of(workflow) if location.kind == "agent"}


SeesAgent: TypeAlias = Callable[[str], Awaitable[bool]]
"""Return whether the people for whom a workflow is checked or run may use the saved agent of this name."""


async def saved_agents(entries: ConfigStore, names: Collection[str], sees: SeesAgent) -> dict[str, SavedAgent]:
    """Return the saved agents with these references (`name` or `name@revision`) that `sees` admits, by reference."""
    agents = {name: await find_agent(entries, name) for name in sorted(names) if await sees(name.partition("@")[0])}
    return {name: value for name, value in agents.items() if value is not None}


class WithAgents(NamedTuple):
    """A workflow with the saved agents that it names."""

    workflow: Definition
    authors: dict[str, Json]
    """Agent reference -> the recorded author of its revision; None: a user on the machine of the store."""


async def with_saved_agents(
    workflow: Definition, names: AbstractSet[str], entries: ConfigStore, sees: SeesAgent
) -> WithAgents:
    """Add the saved agents that `names` lists and `sees` admits to a workflow, unless the workflow describes them
    itself."""
    missing = names - (workflow.agents or {}).keys()
    agents = await saved_agents(entries, missing, sees) if missing else {}
    if not agents:
        return WithAgents(workflow, {})
    described = {**(workflow.agents or {}), **configs_of(agents)}
    return WithAgents(workflow.model_copy(update={"agents": described}), {n: value.by for n, value in agents.items()})


def configs_of(agents: Mapping[str, SavedAgent]) -> dict[str, AgentConfig]:
    """Return saved agents as the `agents` of a workflow."""
    return {name: cast(AgentConfig, read_as(AgentConfig, agent.agent)) for name, agent in agents.items()}


class AgentView(TypedDict):
    """One revision of an agent."""

    name: str
    revision: int
    agent: JsonObject
    """As in the `agents` of a workflow."""
    savedAt: float
    author: str


def agent_view(agent: SavedAgent) -> AgentView:
    return {
        "name": agent.name,
        "revision": agent.revision,
        "agent": agent.agent,
        "savedAt": agent.saved,
        "author": agent.author,
    }
