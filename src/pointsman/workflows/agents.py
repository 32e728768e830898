"""Saved agents: described once, named by the nodes of many workflows, each change a revision.

    node `agent: writer`    ─▶ the workflow's own `agents`, else the settings' `[agents]`, else the saved one
    node `agent: writer@2`  ─▶ always its revision 2

An execution keeps the description it began with: it is put into the definition that is kept for it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import Struct

from pointsman.auth.callers import LOCAL, Caller
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import read_as
from pointsman.definition.model.workflow import Workflow as Definition
from pointsman.definition.problems import Problem
from pointsman.definition.text_locations import sites_of
from pointsman.errors import CallerError
from pointsman.searching import says
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved, RevisionMoved
from pointsman.store.records import revision_named
from pointsman.values import Instant, Json, JsonObject
from pointsman.workflows.sources import Workflow, invalid

if TYPE_CHECKING:
    from pointsman.app import Pointsman

LATEST: Final = "agent"
"""Kind of entry; its key is the agent's name."""
REVISION: Final = "agent-revision"
"""Kind of entry; its key is `name@revision`."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
AROUND: Final = "agent-check"
"""The workflow that a description is checked in."""


class NoSuchAgent(CallerError):
    """No agent of that name is saved here, or it has no such revision."""

    code: ClassVar[str] = "no-such-agent"


def no_such_agent(reference: str) -> NoSuchAgent:
    """The refusal for an agent that does not exist, or that the caller may not see: both get the same answer."""
    return NoSuchAgent(f"there is no agent {reference!r}", hint="GET /api/agents lists those that you may see.")


class AgentInvalid(CallerError):
    """That cannot be the name of an agent."""

    code: ClassVar[str] = "agent-invalid"


class AgentTaken(CallerError):
    """The name cannot be used: an agent of the settings has it, or one that the caller may not see."""

    code: ClassVar[str] = "agent-taken"


def agent_taken(name: str) -> AgentTaken:
    """The refusal for the name of an agent of the settings, or of one that the caller may not see."""
    return AgentTaken(f"the name {name!r} is taken", hint="Take another name.")


class SavedAgent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One revision of an agent."""

    name: str
    revision: int
    agent: JsonObject
    """Its description, as in the `agents` of a workflow."""
    saved: Instant
    author: str = ""
    entrance: str = "key"
    """How its author was let in."""
    deleted: bool = False
    """Of the latest: it is not there any more; saving brings it back under the next revision."""

    @property
    def by(self) -> Json:
        """Its author, as executions record them; None: people at the machine of the store."""
        return {"name": self.author, "entrance": self.entrance} if self.author else None


class Agents:
    """The saved agents of one installation."""

    def __init__(self, app: Pointsman) -> None:
        self._app = app

    @property
    def _entries(self) -> ConfigStore:
        return self._app.store.entries

    async def list(self) -> list[SavedAgent]:
        """The latest revision of each, by name."""
        found = [msgspec.convert(entry.value, SavedAgent) for entry in await self._entries.list(LATEST)]
        return [one for one in found if not one.deleted]

    async def found(
        self, words: str = "", *, names: Collection[str] | None = None, sees: SeesAgent
    ) -> list[SavedAgent]:
        """Return the agents with all these words in name or description that `sees` lets through; `names`: only
        these."""
        among = [one for one in await self.list() if names is None or one.name in names]
        return [one for one in among if says(words, one.name, one.agent) and await sees(one.name)]

    async def get(self, reference: str) -> SavedAgent:
        """By `name` or `name@revision`. Raises `NoSuchAgent`."""
        found = await _find(self._entries, reference)
        if found is None:
            raise no_such_agent(reference)
        return found

    async def versions(self, name: str) -> list[SavedAgent]:
        """All revisions, newest first. Raises `NoSuchAgent`."""
        latest = await self.get(name)
        found = [await _find(self._entries, f"{name}@{number}") for number in range(latest.revision, 0, -1)]
        return [one for one in found if one is not None]

    async def check(self, name: str, agent: JsonObject, *, reader: Caller = LOCAL) -> tuple[Problem, ...]:
        """Return the problems of a description, limited to what `reader` may see; pointers begin at it."""
        around: JsonObject = {
            "pointsman": 1,
            "id": AROUND,
            "agents": {name: agent},
            "nodes": [{"id": "it", "type": "agent", "config": {"agent": name}}],
        }
        checked = await self._app.check(Workflow(msgspec.json.encode(around)), reader=reader)
        inside = f"/agents/{name}"
        return tuple(
            dataclasses.replace(problem, pointer=problem.pointer.removeprefix(inside), line=None, column=None)
            for problem in checked.problems
        )

    async def save(
        self, name: str, agent: JsonObject, *, author: str = "", after: int | None = None, by: Caller = LOCAL
    ) -> SavedAgent:
        """A new revision; the latest one again where it says the same. `after`: the revision it must be at, 0: none.
        `by` is checked against, and kept with it; whether they may save it, `save_agent_as` checks.

        Raises `WorkflowInvalid` listing its problems, `AgentTaken`, `RevisionMoved`.
        """
        if not NAME.fullmatch(name):
            raise AgentInvalid(f"{name[:60]!r} is no name of an agent", hint="At most 100 letters, digits, `. _ -`.")
        if name in self._app.settings.agents:
            raise agent_taken(name)
        problems = await self.check(name, agent, reader=by)
        if any(problem.severity == "error" for problem in problems):
            raise invalid(problems)
        entry = await self._entries.find(LATEST, name)
        latest = None if entry is None else msgspec.convert(entry.value, SavedAgent)
        now = 0 if latest is None or latest.deleted else latest.revision
        if after is not None and after != now:
            raise RevisionMoved.of(name, now)
        if latest is not None and now and latest.agent == agent:
            return latest
        revision = 1 if latest is None else latest.revision + 1
        made = SavedAgent(
            name=name,
            revision=revision,
            agent=agent,
            saved=Instant(self._app.clock.now()),
            author=author,
            entrance=by.entrance,
        )
        if latest is not None:  # Before it is replaced: a crash loses no revision.
            kept = msgspec.structs.replace(latest, deleted=False)
            await self._entries.put(REVISION, f"{name}@{latest.revision}", msgspec.to_builtins(kept))
        try:
            await self._entries.put(LATEST, name, msgspec.to_builtins(made), after=entry.version if entry else 0)
        except EntryMoved:
            raise RevisionMoved.of(name, revision) from None
        return made

    async def delete(self, name: str, *, after: int | None = None) -> None:
        """Executions keep what they began with; workflows that name it cannot start. `after`: the revision it must be
        at. Raises `NoSuchAgent`, `RevisionMoved`."""
        bare = name.partition("@")[0]
        while True:
            entry = await self._entries.find(LATEST, bare)
            latest = await self.get(bare)
            if after not in (None, latest.revision):
                raise RevisionMoved.of(bare, latest.revision)
            gone = msgspec.to_builtins(msgspec.structs.replace(latest, deleted=True))
            with suppress(EntryMoved):  # Somebody saved it meanwhile: it is looked at again.
                await self._entries.put(LATEST, bare, gone, after=entry.version if entry else 0)
                return


async def _find(entries: ConfigStore, reference: str) -> SavedAgent | None:
    name, at, wanted = reference.partition("@")
    revision = revision_named(wanted)
    latest = await entries.find(LATEST, name)
    if latest is None or (at and revision is None):
        return None
    found = msgspec.convert(latest.value, SavedAgent)
    if revision is None:
        return None if found.deleted else found
    if revision == found.revision:
        return found
    kept = await entries.find(REVISION, f"{name}@{revision}")
    return None if kept is None else msgspec.convert(kept.value, SavedAgent)


def agents_named(workflow: Definition) -> set[str]:
    """The agents that its nodes name."""
    return {site.text for site in sites_of(workflow) if site.kind == "agent"}


SeesAgent: TypeAlias = Callable[[str], Awaitable[bool]]
"""Whether the people that something is checked or run for may use the saved agent of a name."""


async def saved_agents(entries: ConfigStore, names: Collection[str], sees: SeesAgent) -> dict[str, SavedAgent]:
    """Return the saved agents of these names (`name` or `name@revision`) that may be used, as nodes name them."""
    found = {name: await _find(entries, name) for name in sorted(names) if await sees(name.partition("@")[0])}
    return {name: one for name, one in found.items() if one is not None}


class WithAgents(NamedTuple):
    """A workflow with the saved agents that it names."""

    workflow: Definition
    authors: dict[str, Json]
    """Agent, as nodes name it -> the recorded author of the revision; null: people at the machine of the store."""


async def with_saved_agents(
    workflow: Definition, named: AbstractSet[str], entries: ConfigStore, sees: SeesAgent
) -> WithAgents:
    """Put the saved agents of these names that may be used into a workflow, where it does not describe them."""
    missing = named - (workflow.agents or {}).keys()
    found = await saved_agents(entries, missing, sees) if missing else {}
    if not found:
        return WithAgents(workflow, {})
    described = {**(workflow.agents or {}), **configs_of(found)}
    return WithAgents(workflow.model_copy(update={"agents": described}), {n: one.by for n, one in found.items()})


def configs_of(agents: Mapping[str, SavedAgent]) -> dict[str, AgentConfig]:
    """Return saved agents as the `agents` of a workflow."""
    return {name: cast(AgentConfig, read_as(AgentConfig, one.agent)) for name, one in agents.items()}


def agent_view(one: SavedAgent) -> JsonObject:
    return {
        "name": one.name,
        "revision": one.revision,
        "agent": one.agent,
        "savedAt": one.saved,
        "author": one.author,
    }
