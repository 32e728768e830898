"""Authority: the people whom an execution acts for, and what they may do at the moment of a call.

    starter (who started it) ──┐
    people who joined it ──────┼─▶ a caller who may do what each of them may do, asked for at every call
    author of what it runs ────┘

The starter's name and role are recorded with the execution, so that they survive in another process. What a person may
do is looked up when the call happens: a role that was lowered since is lower, and a key that was revoked opens nothing.
A person who steers or retries the execution of another joins it; a fork belongs to the person who forked it.

People at the machine of the store (a prompt, a program, a server without keys) can open the store without the product:
nothing is recorded for them, and they are allowed everything. Built-in workflows have no author who could be denied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

import msgspec
from msgspec import Struct

from pointsman.auth.callers import LOCAL, MACHINE, NOBODY, ROLES, Caller, Entrance, Role, lesser, together
from pointsman.auth.keys import KIND as KEY
from pointsman.auth.keys import ApiKey
from pointsman.auth.people import KIND as PERSON
from pointsman.auth.people import Person
from pointsman.auth.policy import sees_agent, sees_workflow
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import ToolExecutorConfig
from pointsman.engine.state import ExecutionState
from pointsman.store.errors import EntryMoved
from pointsman.store.records import SavedWorkflow
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.builtin.documents import is_built_in
from pointsman.workflows.library import ACTORS, AUTHORS, Library, UnknownWorkflow
from pointsman.workflows.workflow_tools import tool_name

if TYPE_CHECKING:
    from pointsman.app import Pointsman

JOINED: Final = "execution-actors"
"""Kind of entry: the people who joined an execution; its key is the execution."""
WRITTEN: Final = "revision-actors"
"""Kind of entry: the people in whose name a revision was saved, where that is not the one author that the revision
names: none for people at the machine of the store, several for an agent. Its key is `workflow@revision`."""
OF_DOCUMENT: Final = ""
"""The key, among the authors of saved agents, of those of a document that is run without being saved."""
UNKNOWN: Final = "agent"
"""The name that an execution acts under where nothing says who started it."""


class Party(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person, as they are recorded with what they start or save."""

    name: str
    role: Role = "admin"
    """The role they had then: they never have a higher one here."""
    entrance: Entrance = "key"


class Joined(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The people who joined an execution."""

    parties: tuple[Party, ...] = ()
    instead: bool = False
    """They are there instead of the starters: of a fork."""


def recorded(caller: Caller) -> list[Json]:
    """Return what is recorded of a caller; people at the machine are left out."""
    return [
        msgspec.to_builtins(Party(name=one.name, role=one.role, entrance=one.entrance))
        for one in caller.people
        if one.entrance not in MACHINE
    ]


def owner_of(caller: Caller) -> list[Party]:
    """Return the people in whose name a thing of the caller starts executions later."""
    return [msgspec.convert(one, Party) for one in recorded(caller)]


async def standing(app: Pointsman, party: Party) -> Caller:
    """Return what a recorded person may do now: `NOBODY` where no key and no identity provider knows them any more."""
    if party.entrance in MACHINE:
        return Caller(name=party.name, role=party.role, entrance=party.entrance)
    entries, now = app.store.entries, app.clock.now()
    found: list[tuple[Role, tuple[str, ...]]] = []
    if (entry := await entries.find(KEY, party.name)) is not None:
        key = msgspec.convert(entry.value, ApiKey, strict=False)
        if key.is_good_at(now):
            found.append((key.role, key.groups))
    if app.settings.access.oidc is not None and (entry := await entries.find(PERSON, party.name)) is not None:
        person = msgspec.convert(entry.value, Person, strict=False)
        found.append((person.role, person.groups))
    if not found:
        return NOBODY
    role = ROLES[max(ROLES.index(role) for role, _ in found)]
    groups = tuple(sorted({group for _, some in found for group in some}))
    return Caller(name=party.name, role=lesser(role, party.role), groups=groups, entrance=party.entrance)


async def authors_of(app: Pointsman, saved: SavedWorkflow) -> tuple[Party, ...]:
    """Return the people in whose name a revision was saved. Empty: the product, or people at the machine."""
    if is_built_in(saved.draft.id) or not saved.draft.author:
        return ()
    entry = await app.store.entries.find(WRITTEN, f"{saved.draft.id}@{saved.revision}")
    return (Party(name=saved.draft.author),) if entry is None else msgspec.convert(entry.value, tuple[Party, ...])


async def author_of(app: Pointsman, saved: SavedWorkflow) -> Caller:
    """Return what the author of a saved revision may do now; of one that an agent saved: what all of its people may."""
    return await all_of(app, await authors_of(app, saved))


async def all_of(app: Pointsman, parties: Iterable[Party]) -> Caller:
    """Return what all of these people may do now; people at the machine where there are none."""
    people = [await standing(app, one) for one in parties]
    return together(*people) if people else LOCAL


async def note_authors(app: Pointsman, caller: Caller, saved: SavedWorkflow) -> None:
    """Record in whose name a revision was saved, where its author alone does not say that."""
    if saved.draft.author and (caller.is_machine or caller.parties):
        # The role that a person had when they saved it does not bound what they may see later.
        people = [Party(name=one.name, entrance=one.entrance) for one in caller.people if one.entrance not in MACHINE]
        await app.store.entries.put(WRITTEN, f"{saved.draft.id}@{saved.revision}", msgspec.to_builtins(people))


async def starters_of(app: Pointsman, state: ExecutionState) -> list[Party]:
    """Return the people whom an execution acts for, as they are recorded."""
    entry = await app.store.entries.find(JOINED, state.id)
    joined = Joined() if entry is None else msgspec.convert(entry.value, Joined)
    began = state.options.get(ACTORS)
    return [*([] if joined.instead else msgspec.convert(began or [], list[Party])), *joined.parties]


async def join(app: Pointsman, caller: Caller, execution: str) -> None:
    """Record that a caller steers an execution from here on. Its starter, and people at the machine, need no record."""
    parties = [msgspec.convert(one, Party) for one in recorded(caller)]
    summary = await app.store.executions.find(ExecutionId(execution))
    parties = [one for one in parties if summary is None or one.name != summary.owner]
    if parties:
        await _put(app, execution, parties)


async def own_fork(app: Pointsman, caller: Caller, execution: str) -> None:
    """Record whose a fork is, before the fork exists: its origin's starters have no part in it."""
    parties = tuple(msgspec.convert(one, Party) for one in recorded(caller))
    await app.store.entries.put(JOINED, execution, msgspec.to_builtins(Joined(parties=parties, instead=True)))


async def _put(app: Pointsman, execution: str, parties: list[Party]) -> None:
    while True:
        entry = await app.store.entries.find(JOINED, execution)
        known = Joined() if entry is None else msgspec.convert(entry.value, Joined)
        # The same person again: what they may do less now counts.
        wanted = tuple(dict.fromkeys((*known.parties, *parties)))
        if wanted == known.parties:
            return
        value = msgspec.to_builtins(Joined(parties=wanted, instead=known.instead))
        try:
            await app.store.entries.put(JOINED, execution, value, after=0 if entry is None else entry.version)
        except EntryMoved:
            continue
        return


class AppRights:
    """The `Rights` of one installation, for executions whose definitions are in one library of it."""

    def __init__(self, app: Pointsman, library: Library) -> None:
        self._app = app
        self._library = library

    async def may_call(self, parent: ExecutionState, node: str, target: str) -> bool:
        """Return whether the starters of an execution may execute a saved workflow, and the author of the text that
        names it at this node sees it: the author of the revision, or of the saved agent whose list of tools is used."""
        starters = [await standing(self._app, one) for one in await starters_of(self._app, parent)]
        if not all([await may_execute(self._app, one, target) for one in starters]):
            return False
        authors = await self._authors_of_call(parent, node, target)
        return all([await sees_workflow(self._app, one, target) for one in authors])

    async def sees_workflow(self, caller: Caller, reference: str) -> bool:
        return await sees_workflow(self._app, caller, reference)

    async def sees_agent(self, caller: Caller, name: str) -> bool:
        return await sees_agent(self._app, caller, name)

    async def author_of(self, saved: SavedWorkflow) -> Caller:
        return await author_of(self._app, saved)

    async def starters(self, parent: ExecutionState) -> list[Json]:
        return [msgspec.to_builtins(one) for one in await starters_of(self._app, parent)]

    async def acting_for(self, state: ExecutionState, *, node: str = "", cap: Role = "admin") -> Caller:
        """Return the caller that an execution is at the moment: its starters, the author of the revision it runs on,
        and, with `node`, the author of the saved agent that the node uses. Its role is at most `cap`."""
        starters = [await standing(self._app, one) for one in await starters_of(self._app, state)]
        by = state.options.get("by")
        machine = Caller(name=by if isinstance(by, str) and by else UNKNOWN, role="admin", entrance="shell")
        first, *more = starters or [machine]
        others = [*more, await self.author_of_execution(state)]
        agent = await self._agent_of(state, node) if node else ""
        if agent:
            others.append(await self._agent_author(state, agent))
        # Authors at the machine are allowed everything, whatever the cap of the starter's role.
        return together(first, *[one for one in others if not one.is_machine], cap=cap)

    async def author_of_execution(self, state: ExecutionState) -> Caller:
        """Return what the author of the revision that an execution runs on may do now."""
        authors, revision = state.options.get(AUTHORS), state.options.get("revision")
        if isinstance(authors, dict) and OF_DOCUMENT in authors:
            return await all_of(self._app, msgspec.convert(authors[OF_DOCUMENT], tuple[Party, ...]))
        if not isinstance(revision, int) or not revision:
            return LOCAL  # It runs on a document that its starter brought along.
        try:
            return await author_of(self._app, await self._app.library.found(f"{state.workflow}@{revision}"))
        except UnknownWorkflow:
            return NOBODY

    async def _authors_of_call(self, state: ExecutionState, node: str, target: str) -> list[Caller]:
        """Return the authors of the text by which a node calls a workflow."""
        authors = state.options.get(AUTHORS)
        if not isinstance(authors, dict) or not authors:
            return [await self.author_of_execution(state)]
        workflow = await self._library.kept(state.definition)
        config = next((one.config for one in workflow.nodes if one.id == node), None)
        if isinstance(config, AgentConfig) and config.agent in authors and not config.tools:
            return [await self._agent_author(state, config.agent)]
        found = [await self.author_of_execution(state)]
        if isinstance(config, ToolExecutorConfig):  # It carries out what any agent before it asked for.
            tool, agents = tool_name(target.partition("@")[0]), workflow.agents or {}
            listing = [name for name in authors if name in agents and tool in (agents[name].tools or ())]
            found += [await self._agent_author(state, name) for name in listing]
        return found

    async def _agent_of(self, state: ExecutionState, node: str) -> str:
        """Return the saved agent that a node uses, as it names it; empty: none."""
        authors = state.options.get(AUTHORS)
        if not isinstance(authors, dict) or not authors:
            return ""
        workflow = await self._library.kept(state.definition)
        config = next((one.config for one in workflow.nodes if one.id == node), None)
        return str(config.agent) if isinstance(config, AgentConfig) and config.agent in authors else ""

    async def _agent_author(self, state: ExecutionState, agent: str) -> Caller:
        author = cast("JsonObject", state.options[AUTHORS])[agent]
        return await standing(self._app, msgspec.convert(author, Party)) if author is not None else LOCAL


async def may_execute(app: Pointsman, caller: Caller, target: str) -> bool:
    """Return whether a caller may execute a saved workflow."""
    return caller.has("operator") and await sees_workflow(app, caller, target)


async def acting_for(app: Pointsman, execution: str, *, node: str = "", cap: Role = "admin") -> Caller:
    """As `AppRights.acting_for`, by the id of an execution. Raises `UnknownExecution`."""
    library = app.fleeting.library if execution in app.fleeting.runtime.drivers else app.library
    return await AppRights(app, library).acting_for(await state_of(app, execution), node=node, cap=cap)


async def state_of(app: Pointsman, execution: str) -> ExecutionState:
    """Return the state of an execution, also of one of which nothing is kept. Raises `UnknownExecution`."""
    name = ExecutionId(execution)
    driver = app.runtime.drivers.get(name) or app.fleeting.runtime.drivers.get(name)
    return driver.state if driver is not None else await app.runtime.load(name)
