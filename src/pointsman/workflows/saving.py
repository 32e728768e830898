"""Saving and deleting of workflows and agents for a caller, with checks of the caller's permissions."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from contextlib import suppress
from typing import Final

import msgspec

from pointsman.auth.callers import LOCAL, Caller
from pointsman.auth.policy import IdTaken, id_must_be_free, sees_agent
from pointsman.auth.sharing import EVERYONES, claim, must_own, release_claim, sharing_of
from pointsman.context import AppContext
from pointsman.definition.problems import Problem, invalid
from pointsman.paging import has_words
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved, RevisionMoved
from pointsman.store.records import SavedWorkflow
from pointsman.values import Instant, JsonObject, WorkflowId
from pointsman.workflows.agents import (
    LATEST,
    NAME,
    REVISION,
    AgentInvalid,
    SavedAgent,
    SeesAgent,
    agent_taken,
    find_agent,
    no_such_agent,
)
from pointsman.workflows.agents import LATEST as AGENT
from pointsman.workflows.authors import note_authors
from pointsman.workflows.definitions import check, outlined, save
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.sources import Workflow
from pointsman.workflows.tools import tool_name


async def save_as(
    app: AppContext,
    caller: Caller,
    source: Workflow,
    *,
    author: str | None = None,
    draft: bool = False,
    after: int | None = None,
    folder: str = "",
) -> SavedWorkflow:
    """Save a revision. The caller owns a new workflow from its first revision; it lies in `folder`, which the caller
    sees. An existing one stays where it is. `after`: as in `Pointsman.save`.

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
    claimed = is_new and await claim(app, caller, name, folder=folder)
    try:
        latest = await app.store.workflows.find(name)
        author_name = caller.name if author is None else author
        saved = await save(app, source, author=author_name, draft=draft, after=after, reader=caller)
    except BaseException:
        if claimed:
            await release_claim(app, name)
        raise
    if latest is None or saved.revision > latest.revision:
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
            await release_claim(app, name, "agent")
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


AROUND: Final = "agent-check"
"""Id of the temporary workflow in which `check` checks an agent."""


class SavedAgents:
    """The saved agents of one installation."""

    def __init__(self, app: AppContext) -> None:
        self._app = app

    @property
    def _entries(self) -> ConfigStore:
        return self._app.store.entries

    async def list(self) -> list[SavedAgent]:
        """Return the latest revision of each agent, sorted by name."""
        agents = [msgspec.convert(entry.value, SavedAgent) for entry in await self._entries.list(LATEST)]
        return [agent for agent in agents if not agent.deleted]

    async def found(
        self, words: str = "", *, names: Collection[str] | None = None, sees: SeesAgent
    ) -> list[SavedAgent]:
        """Return the agents whose name or description contains all `words` and that `sees` admits. `names` limits the
        result to these agents."""
        among = [one for one in await self.list() if names is None or one.name in names]
        return [one for one in among if has_words(words, one.name, one.agent) and await sees(one.name)]

    async def get(self, reference: str) -> SavedAgent:
        """Return the agent `name` or the revision `name@revision`. Raises `NoSuchAgent`."""
        agent = await find_agent(self._entries, reference)
        if agent is None:
            raise no_such_agent(reference)
        return agent

    async def versions(self, name: str) -> list[SavedAgent]:
        """Return all revisions of an agent, newest first. Raises `NoSuchAgent`."""
        latest = await self.get(name)
        versions = [await find_agent(self._entries, f"{name}@{number}") for number in range(latest.revision, 0, -1)]
        return [version for version in versions if version is not None]

    async def check(self, name: str, agent: JsonObject, *, reader: Caller = LOCAL) -> tuple[Problem, ...]:
        """Return the problems of an agent, limited to what `reader` may see. Pointers are relative to the agent."""
        around: JsonObject = {
            "pointsman": 1,
            "id": AROUND,
            "agents": {name: agent},
            "nodes": [{"id": "it", "type": "agent", "config": {"agent": name}}],
        }
        checked = await check(self._app, Workflow(msgspec.json.encode(around)), reader=reader)
        inside = f"/agents/{name}"
        return tuple(
            dataclasses.replace(problem, pointer=problem.pointer.removeprefix(inside), line=None, column=None)
            for problem in checked.problems
        )

    async def save(
        self, name: str, agent: JsonObject, *, author: str = "", after: int | None = None, by: Caller = LOCAL
    ) -> SavedAgent:
        """Save a new revision, or return the latest revision if `agent` is equal to it.

        `after` is the revision that the agent must be at (0: it must not exist). The check uses the permissions of
        `by`, and the revision records how `by` was authenticated. This method does not check whether the caller may
        save the agent; `save_agent_as` does.

        Raises `WorkflowInvalid` with all problems, `AgentInvalid`, `AgentTaken`, `RevisionMoved`.
        """
        if not NAME.fullmatch(name):
            raise AgentInvalid(
                f"{name[:60]!r} is not a valid agent name", hint="Use at most 100 letters, digits, `. _ -`."
            )
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
        saved_agent = SavedAgent(
            name=name,
            revision=revision,
            agent=agent,
            saved=Instant(self._app.clock.now()),
            author=author,
            entrance=by.entrance,
        )
        if latest is not None:  # Store the old revision first: a crash between the two writes loses none.
            restored = msgspec.structs.replace(latest, deleted=False)
            await self._entries.put(REVISION, f"{name}@{latest.revision}", msgspec.to_builtins(restored))
        try:
            await self._entries.put(LATEST, name, msgspec.to_builtins(saved_agent), after=entry.version if entry else 0)
        except EntryMoved:
            raise RevisionMoved.of(name, revision) from None
        return saved_agent

    async def delete(self, name: str, *, after: int | None = None) -> None:
        """Delete an agent. Executions keep the description that they started with; workflows that name the agent can no
        longer start. `after`: the revision that it must be at. Raises `NoSuchAgent`, `RevisionMoved`."""
        bare = name.partition("@")[0]
        while True:
            entry = await self._entries.find(LATEST, bare)
            latest = await self.get(bare)
            if after not in (None, latest.revision):
                raise RevisionMoved.of(bare, latest.revision)
            deleted = msgspec.to_builtins(msgspec.structs.replace(latest, deleted=True))
            with suppress(EntryMoved):  # Another caller saved the agent meanwhile: read it again.
                await self._entries.put(LATEST, bare, deleted, after=entry.version if entry else 0)
                return
