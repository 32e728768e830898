"""Rights of attempts to call tools: a hidden tool is answered like one that does not exist.

    attempt ─▶ which of the saved workflows that it names as tools may it call? ─▶ its executor ─▶ tools

Tools are looked up by name alone, so the attempt is stored in a context variable: each attempt runs in its own task.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from pointsman.context import AppContext
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import ToolCall, ToolCallsProposed, WorkDone, WorkFailed
from pointsman.executions.authority import AppRights
from pointsman.ports import ExecutionPort, Executor, Tools, ToolSpec
from pointsman.runtime.dependencies import ExecutorsFor
from pointsman.tools.registry import unknown_tool
from pointsman.values import Json
from pointsman.workflows.workflow_tools import PREFIX

if TYPE_CHECKING:
    from pointsman.runtime.local import LocalRuntime
    from pointsman.workflows.library import Library


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


@contextmanager
def _working(attempt: ToolCallingAttempt) -> Generator[None]:
    token = _attempt.set(attempt)
    try:
        yield
    finally:
        _attempt.reset(token)


class GuardedTools:
    """The `Tools` port, without the tools that the current attempt may not call."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def find(self, name: str) -> ToolSpec | None:
        return None if _is_hidden(name) else self._tools.find(name)

    async def prepare(self, names: Iterable[str]) -> None:
        await self._tools.prepare(names)

    async def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Json:
        if _is_hidden(call.name):
            raise unknown_tool(call.name)
        return await self._tools.call(call, key=key, run=run)


class GuardedExecutors:
    """Finds executors, and sets for each attempt which tools it may not call."""

    def __init__(self, app: AppContext, runtime: LocalRuntime, library: Library, executors: ExecutorsFor) -> None:
        self._app = app
        self._runtime = runtime
        self._rights: Final = AppRights(app, library)
        self._executors = executors

    def executor_for(self, command: Execute) -> Executor:
        """Raises the errors of the wrapped registry."""
        return _Guarded(self, self._executors.executor_for(command))

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        return self._executors.basis(command, spec)

    async def has(self, need: str) -> bool:
        return await self._executors.has(need)

    async def hidden(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> frozenset[str]:
        """Return the saved workflows that an attempt names as tools and may not call."""
        # The calls of `tool_executor` were requested by agents before it.
        texts = _texts([spec.config, command.input if spec.kind == PENDING else None])
        named = {text for text in texts if text.startswith(PREFIX)}
        if not named:
            return frozenset()
        await self._app.tools.prepare(named)
        driver = self._runtime.drivers.get(run.execution)
        state = driver.state if driver is not None else await self._runtime.load(run.execution)
        found: set[str] = set()
        for name in named:
            tool = self._app.tools.find(name)
            if tool is not None and tool.workflow:
                allowed = await self._rights.may_call(state, command.step.node, tool.workflow)
                found |= set() if allowed else {name}
        return frozenset(found)


class _Guarded:
    """An executor that sets the current attempt around another executor."""

    def __init__(self, guard: GuardedExecutors, executor: Executor) -> None:
        self._guard = guard
        self._executor = executor

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        hidden = await self._guard.hidden(command, spec, run)
        with _working(ToolCallingAttempt(run.execution, command.step.node, hidden)):
            report = await self._executor.execute(command, spec, run)
        if isinstance(report, WorkFailed) and report.failure.needs.startswith(f"tool:{PREFIX}"):
            # Saved workflows are in the store: one that is missing or hidden here is missing for every worker.
            return structs.replace(report, failure=structs.replace(report.failure, needs=""))
        return report


def _is_hidden(name: str) -> bool:
    attempt = _attempt.get()
    return attempt is not None and name in attempt.hidden


def _texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _texts(one)
        case dict():
            for one in value.values():
                yield from _texts(one)
        case _:
            pass
