"""Authority: the people whom an execution acts for, and what they may do at the moment of a call.

    starter (who started it) ──┐
    people who joined it ──────┼─▶ a caller who may do what each of them may do, asked for at every call
    author of what it runs ────┘

The starter's name and role are recorded with the execution, so that they survive in another process. What a person may
do is looked up when the call happens: a role that was lowered since is lower, and a key that was revoked opens nothing.
A person who steers or retries the execution of another joins it; a fork belongs to the person who forked it.

People at the machine of the store (a prompt, a program, a server without keys) can open the store without the product:
nothing is recorded for them, and they are allowed everything. Built-in workflows have no author who could be denied.

    attempt ─▶ which of the saved workflows that it names as tools may it call? ─▶ its executor ─▶ tools

A tool that an attempt may not call is answered like one that does not exist. Tools are looked up by name alone, so the
attempt is stored in a context variable: each attempt runs in its own task.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec
from msgspec import Struct, structs

from pointsman.auth.callers import LOCAL, NOBODY, Caller, Role, combined_caller
from pointsman.auth.policy import sees_agent, sees_workflow
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import ToolExecutorConfig
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import ToolCall, ToolCallsProposed, WorkDone, WorkFailed
from pointsman.engine.state import ExecutionState
from pointsman.ports import ExecutionPort, Executor, Tools, ToolSpec
from pointsman.runtime.dependencies import ExecutorsFor
from pointsman.store.errors import EntryMoved
from pointsman.store.records import SavedWorkflow
from pointsman.tools.registry import unknown_tool
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.authors import Party, all_of, author_of, present_permissions, recorded
from pointsman.workflows.library import ACTORS, AUTHORS, LIBRARY, Library
from pointsman.workflows.tools import PREFIX, tool_name

if TYPE_CHECKING:
    from pointsman.runtime.local import LocalRuntime
    from pointsman.workflows.library import Library


JOINED: Final = "execution-actors"
"""Kind of entry: the people who joined an execution; its key is the execution."""
OF_DOCUMENT: Final = ""
"""The key, among the authors of saved agents, of those of a document that is run without being saved."""
UNKNOWN: Final = "agent"
"""The name that an execution acts under if no starter is recorded."""


class JoinedParties(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The people who joined an execution."""

    parties: tuple[Party, ...] = ()
    instead: bool = False
    """They are there instead of the starters: of a fork."""


async def starters_of(app: AppContext, state: ExecutionState) -> list[Party]:
    """Return the people whom an execution acts for, as they are recorded."""
    entry = await app.store.entries.find(JOINED, state.id)
    joined = JoinedParties() if entry is None else msgspec.convert(entry.value, JoinedParties)
    began = state.setup.options.get(ACTORS)
    return [*([] if joined.instead else msgspec.convert(began or [], list[Party])), *joined.parties]


async def join(app: AppContext, caller: Caller, execution: str) -> None:
    """Record that a caller steers an execution from here on. Its starter, and people at the machine, need no record."""
    parties = [msgspec.convert(one, Party) for one in recorded(caller)]
    summary = await app.store.executions.find(ExecutionId(execution))
    parties = [party for party in parties if summary is None or party.name != summary.owner]
    if parties:
        await _store_parties(app, execution, parties)


async def own_fork(app: AppContext, caller: Caller, execution: str) -> None:
    """Record whose a fork is, before the fork exists: its origin's starters have no part in it."""
    parties = tuple(msgspec.convert(one, Party) for one in recorded(caller))
    await app.store.entries.put(JOINED, execution, msgspec.to_builtins(JoinedParties(parties=parties, instead=True)))


async def _store_parties(app: AppContext, execution: str, parties: list[Party]) -> None:
    while True:
        entry = await app.store.entries.find(JOINED, execution)
        joined_parties = JoinedParties() if entry is None else msgspec.convert(entry.value, JoinedParties)
        # A person with a lower role by now is added again: the lower role counts.
        wanted = tuple(dict.fromkeys((*joined_parties.parties, *parties)))
        if wanted == joined_parties.parties:
            return
        value = msgspec.to_builtins(JoinedParties(parties=wanted, instead=joined_parties.instead))
        try:
            await app.store.entries.put(JOINED, execution, value, after=0 if entry is None else entry.version)
        except EntryMoved:
            continue
        return


class AppRights:
    """The `Rights` of one installation, for executions whose definitions are in one of its libraries."""

    def __init__(self, app: AppContext, library: Library) -> None:
        self._app = app
        self._library = library

    async def may_call(self, parent: ExecutionState, node: str, target: str) -> bool:
        """Return whether the starters of an execution may execute a saved workflow, and the author of the text that
        names it at this node sees it: the author of the revision, or of the saved agent whose list of tools is used."""
        starters = [await present_permissions(self._app, one) for one in await starters_of(self._app, parent)]
        if not all([await may_execute(self._app, starter, target) for starter in starters]):
            return False
        authors = await self._authors_of_call(parent, node, target)
        return all([await sees_workflow(self._app, author, target) for author in authors])

    async def sees_workflow(self, caller: Caller, reference: str) -> bool:
        return await sees_workflow(self._app, caller, reference)

    async def sees_agent(self, caller: Caller, name: str) -> bool:
        return await sees_agent(self._app, caller, name)

    async def author_of(self, saved: SavedWorkflow) -> Caller:
        return await author_of(self._app, saved)

    async def starters(self, parent: ExecutionState) -> list[Json]:
        return [msgspec.to_builtins(starter) for starter in await starters_of(self._app, parent)]

    async def acting_for(self, state: ExecutionState, *, node: str = "", cap: Role = "admin") -> Caller:
        """Return the caller that an execution acts as at the moment: its starters, the author of the revision it runs
        on, and, with `node`, the author of the saved agent that the node uses. Its role is at most `cap`."""
        starters = [await present_permissions(self._app, starter) for starter in await starters_of(self._app, state)]
        by = state.setup.options.get("by")
        machine = Caller(name=by if isinstance(by, str) and by else UNKNOWN, role="admin", entrance="shell")
        first, *more = starters or [machine]
        others = [*more, await self.author_of_execution(state)]
        agent = await self._agent_of(state, node) if node else ""
        if agent:
            others.append(await self._agent_author(state, agent))
        # Authors at the machine are allowed everything, whatever the cap of the starter's role.
        return combined_caller(first, *[other for other in others if not other.is_machine], cap=cap)

    async def author_of_execution(self, state: ExecutionState) -> Caller:
        """Return what the author of the revision that an execution runs on may do now."""
        authors, revision = state.setup.options.get(AUTHORS), state.setup.options.get("revision")
        if isinstance(authors, dict) and OF_DOCUMENT in authors:
            return await all_of(self._app, msgspec.convert(authors[OF_DOCUMENT], tuple[Party, ...]))
        if not isinstance(revision, int) or not revision:
            return LOCAL  # It runs on a document that its starter supplied.
        try:
            return await author_of(self._app, await self._app[LIBRARY].found(f"{state.setup.workflow}@{revision}"))
        except UnknownWorkflow:
            return NOBODY

    async def _authors_of_call(self, state: ExecutionState, node: str, target: str) -> list[Caller]:
        """Return the authors of the text by which a node calls a workflow."""
        authors = state.setup.options.get(AUTHORS)
        if not isinstance(authors, dict) or not authors:
            return [await self.author_of_execution(state)]
        workflow = await self._library.kept(state.setup.definition)
        config = next((one.config for one in workflow.nodes if one.id == node), None)
        if isinstance(config, AgentConfig) and config.agent in authors and not config.tools:
            return [await self._agent_author(state, config.agent)]
        parties = [await self.author_of_execution(state)]
        if isinstance(config, ToolExecutorConfig):  # It runs the calls that any agent before it requested.
            tool, agents = tool_name(target.partition("@")[0]), workflow.agents or {}
            listing = [name for name in authors if name in agents and tool in (agents[name].tools or ())]
            parties += [await self._agent_author(state, name) for name in listing]
        return parties

    async def _agent_of(self, state: ExecutionState, node: str) -> str:
        """Return the saved agent that a node uses, as it names it; empty: none."""
        authors = state.setup.options.get(AUTHORS)
        if not isinstance(authors, dict) or not authors:
            return ""
        workflow = await self._library.kept(state.setup.definition)
        config = next((one.config for one in workflow.nodes if one.id == node), None)
        return str(config.agent) if isinstance(config, AgentConfig) and config.agent in authors else ""

    async def _agent_author(self, state: ExecutionState, agent: str) -> Caller:
        author = cast("JsonObject", state.setup.options[AUTHORS])[agent]
        return await present_permissions(self._app, msgspec.convert(author, Party)) if author is not None else LOCAL


async def may_execute(app: AppContext, caller: Caller, target: str) -> bool:
    """Return whether a caller may execute a saved workflow."""
    return caller.has("operator") and await sees_workflow(app, caller, target)


NONE_HIDDEN: Final[frozenset[str]] = frozenset()
SPECS_MAX: Final = 2_000
"""Nodes whose workflow tools are remembered."""
PENDING: Final = "tool_executor"
"""The kind of work that runs calls which agents left pending."""


class ToolCallingAttempt(NamedTuple):
    """The attempt that is calling tools."""

    execution: str
    node: str
    hidden: frozenset[str]
    """Tools that the execution may not call."""


_attempt: ContextVar[ToolCallingAttempt | None] = ContextVar("pointsman-attempt", default=None)


def attempt_at_work() -> ToolCallingAttempt | None:
    """Return the attempt that is calling tools."""
    return _attempt.get()


class GuardedTools:
    """The `Tools` port, without the tools that the current attempt may not call."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def find(self, name: str) -> ToolSpec | None:
        return None if _is_hidden(name) else self._tools.find(name)

    async def prepare(self, names: Iterable[str]) -> None:
        await self._tools.prepare(names)

    def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Coroutine[Any, Any, Json]:
        if _is_hidden(call.name):
            raise unknown_tool(call.name)
        return self._tools.call(call, key=key, run=run)


class GuardedExecutors:
    """Finds executors, and sets for each attempt which tools it may not call."""

    def __init__(self, app: AppContext, runtime: LocalRuntime, library: Library, executors: ExecutorsFor) -> None:
        self._app = app
        self._runtime = runtime
        self._rights: Final = AppRights(app, library)
        self._executors = executors
        self._guarded: dict[Executor, _Guarded] = {}
        self._named: dict[int, tuple[WorkSpec, AbstractSet[str]]] = {}
        """The workflow tools that nodes name, by the identity of their specs."""

    def executor_for(self, command: Execute) -> Executor:
        """Raises the errors of the wrapped registry."""
        executor = self._executors.executor_for(command)
        guarded = self._guarded.get(executor)
        if guarded is None:
            guarded = self._guarded[executor] = _Guarded(self, executor)
        return guarded

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        return self._executors.basis(command, spec)

    async def has(self, need: str) -> bool:
        return await self._executors.has(need)

    def named(self, spec: WorkSpec) -> AbstractSet[str]:
        """Return the names of workflow tools in the config of a node."""
        known = self._named.get(id(spec))
        if known is not None and known[0] is spec:
            return known[1]
        names: set[str] = set()
        _add_workflow_tools(spec.config, names)
        if len(self._named) >= SPECS_MAX:
            self._named.clear()
        self._named[id(spec)] = spec, names
        return names

    async def hidden(self, named: AbstractSet[str], command: Execute, run: ExecutionPort) -> frozenset[str]:
        """Return those of the named tools that are saved workflows which an attempt may not call."""
        await self._app.tools.prepare(named)
        driver = self._runtime.drivers.get(run.execution)
        state = driver.state if driver is not None else await self._runtime.load(run.execution)
        names: set[str] = set()
        for name in named:
            tool = self._app.tools.find(name)
            if tool is not None and tool.workflow:
                allowed = await self._rights.may_call(state, command.step.node, tool.workflow)
                names |= set() if allowed else {name}
        return frozenset(names)


class _Guarded:
    """An executor that sets the current attempt around another executor."""

    def __init__(self, guard: GuardedExecutors, executor: Executor) -> None:
        self._guard = guard
        self._executor = executor

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        named = self._guard.named(spec)
        if spec.kind == PENDING:  # its calls were requested by agents before it
            named = {*named}
            _add_workflow_tools(command.input, named)
        hidden = await self._guard.hidden(named, command, run) if named else NONE_HIDDEN
        token = _attempt.set(ToolCallingAttempt(run.execution, command.step.node, hidden))
        try:
            report = await self._executor.execute(command, spec, run)
        finally:
            _attempt.reset(token)
        if isinstance(report, WorkFailed) and report.failure.needs.startswith(f"tool:{PREFIX}"):
            # Saved workflows are in the store: one that is missing or hidden here is missing for every worker.
            return structs.replace(report, failure=structs.replace(report.failure, needs=""))
        return report


def _is_hidden(name: str) -> bool:
    attempt = _attempt.get()
    return attempt is not None and name in attempt.hidden


def _add_workflow_tools(value: JsonObject | list[Json], names: set[str]) -> None:
    """Add the texts in a value that are names of workflow tools."""
    for member in value.values() if isinstance(value, dict) else value:
        if isinstance(member, str):
            if member.startswith(PREFIX):
                names.add(member)
        elif isinstance(member, dict | list) and member:
            _add_workflow_tools(member, names)
