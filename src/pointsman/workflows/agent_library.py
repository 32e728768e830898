"""Saved agents of an application: list, check, save and delete."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from contextlib import suppress
from typing import Final

import msgspec

from pointsman.auth.callers import LOCAL, Caller
from pointsman.context import AppContext
from pointsman.definition.problems import Problem
from pointsman.searching import says
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved, RevisionMoved
from pointsman.values import Instant, JsonObject
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
from pointsman.workflows.definitions import check
from pointsman.workflows.sources import Workflow, invalid

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
        found = [msgspec.convert(entry.value, SavedAgent) for entry in await self._entries.list(LATEST)]
        return [one for one in found if not one.deleted]

    async def found(
        self, words: str = "", *, names: Collection[str] | None = None, sees: SeesAgent
    ) -> list[SavedAgent]:
        """Return the agents whose name or description contains all `words` and that `sees` admits. `names` limits the
        result to these agents."""
        among = [one for one in await self.list() if names is None or one.name in names]
        return [one for one in among if says(words, one.name, one.agent) and await sees(one.name)]

    async def get(self, reference: str) -> SavedAgent:
        """Return the agent `name` or the revision `name@revision`. Raises `NoSuchAgent`."""
        found = await find_agent(self._entries, reference)
        if found is None:
            raise no_such_agent(reference)
        return found

    async def versions(self, name: str) -> list[SavedAgent]:
        """Return all revisions of an agent, newest first. Raises `NoSuchAgent`."""
        latest = await self.get(name)
        found = [await find_agent(self._entries, f"{name}@{number}") for number in range(latest.revision, 0, -1)]
        return [one for one in found if one is not None]

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
        if latest is not None:  # Store the old revision first: a crash between the two writes loses none.
            kept = msgspec.structs.replace(latest, deleted=False)
            await self._entries.put(REVISION, f"{name}@{latest.revision}", msgspec.to_builtins(kept))
        try:
            await self._entries.put(LATEST, name, msgspec.to_builtins(made), after=entry.version if entry else 0)
        except EntryMoved:
            raise RevisionMoved.of(name, revision) from None
        return made

    async def delete(self, name: str, *, after: int | None = None) -> None:
        """Delete an agent. Executions keep the description that they started with; workflows that name the agent can no
        longer start. `after`: the revision that it must be at. Raises `NoSuchAgent`, `RevisionMoved`."""
        bare = name.partition("@")[0]
        while True:
            entry = await self._entries.find(LATEST, bare)
            latest = await self.get(bare)
            if after not in (None, latest.revision):
                raise RevisionMoved.of(bare, latest.revision)
            gone = msgspec.to_builtins(msgspec.structs.replace(latest, deleted=True))
            with suppress(EntryMoved):  # Another caller saved the agent meanwhile: read it again.
                await self._entries.put(LATEST, bare, gone, after=entry.version if entry else 0)
                return
