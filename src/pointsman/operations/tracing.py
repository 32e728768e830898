"""Tracing: follows the feed and the calls in the background, and exports spans as soon as they end.

    rows, calls ─▶ a queue ─▶ one task ─▶ spans ─▶ an exporter

The execution of steps pays only for an entry in the queue. For an execution whose start this process did not see, the
journal is read first, and those of its parents before that.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from pointsman.call_observers import ModelCalled, ToolCalled
from pointsman.context import AppContext
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.fold.dispatch import begin_decision, fold
from pointsman.engine.reports import ToolCallsProposed, WorkDone, WorkFailed
from pointsman.engine.state import ENDED, ExecutionState, status_of
from pointsman.errors import PointsmanError
from pointsman.operations.logs import say
from pointsman.operations.spans import Trace, TraceSpan, Value, origin_of, span_id, traceparent
from pointsman.ports import ExecutionPort, Executor, Row
from pointsman.runtime.dependencies import ExecutorsFor
from pointsman.runtime.feed import Committed, Delta
from pointsman.tools.egress.context import TRACEPARENT
from pointsman.values import ExecutionId, Json, JsonObject

KNOWN_MAX: Final = 10_000
"""Executions whose traces are in memory; those of others are read again."""
WAITING_MAX: Final = 100_000
"""Capacity of the queue: beyond it the oldest entry is dropped."""

Export: TypeAlias = Callable[[TraceSpan], None]


class TracedRow(NamedTuple):
    """A committed row, with the state of its execution after it."""

    execution: ExecutionId
    row: Row
    status: str
    workflow: str
    parent: str | None
    session: str | None
    options: JsonObject


class Tracing:
    """Tracing of one app, until it is closed."""

    def __init__(self, app: AppContext, export: Export, *, sample: float = 1.0) -> None:
        self._app = app
        self._export = export
        self._below = int(sample * 2**64)
        self._known: OrderedDict[ExecutionId, Trace] = OrderedDict()
        self._queue: deque[TracedRow | ModelCalled | ToolCalled] = deque(maxlen=WAITING_MAX)
        self._news = asyncio.Event()
        self._leave = app.feed.watch(self._see), app.services.calls.listen(self._hear)
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Export what has happened until now, then stop."""
        for leave in self._leave:
            leave()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._drain()

    def _see(self, seen: Committed | Delta) -> None:
        if isinstance(seen, Delta):
            return
        state = seen.state
        self._put(
            TracedRow(
                seen.execution,
                seen.row,
                status_of(state),
                state.setup.workflow,
                state.setup.parent,
                state.setup.session,
                state.setup.options,
            )
        )

    def _hear(self, called: ModelCalled | ToolCalled) -> None:
        self._put(called)

    def _put(self, one: TracedRow | ModelCalled | ToolCalled) -> None:
        self._queue.append(one)
        self._news.set()

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await self._drain()

    async def _drain(self) -> None:
        """Export the queued entries. Executions that cannot be read any more (deleted, or the store unavailable) are
        skipped."""
        while self._queue:
            try:
                await self._take(self._queue.popleft())
            except PointsmanError as why:
                say(logging.WARNING, "trace.lost", {"code": why.code, "message": str(why)})

    async def _take(self, one: TracedRow | ModelCalled | ToolCalled) -> None:
        match one:
            case TracedRow():
                trace = await self._trace(one)
                if one.row.seq > trace.seq:
                    self._tell(*trace.take(one.row, one.status))
                if one.status in ENDED and one.parent is None:
                    self._known.pop(one.execution, None)
            case ModelCalled():
                self._tell_call(str(one.request.hints.get("execution")), _model_span, one)
            case ToolCalled():
                self._tell_call(one.key.partition(":")[0], _tool_span, one)

    async def _trace(self, seen: TracedRow) -> Trace:
        found = self._known.get(seen.execution)
        if found is None:
            above = None if seen.parent is None else await self._above(ExecutionId(seen.parent))
            found = Trace(seen.execution, origin_of(seen.execution, seen.options, above))
            found.workflow, found.session = seen.workflow, seen.session
            if seen.row.seq > 1:
                await self._read(found, seen.row.seq)
            self._keep(found)
        return found

    async def _above(self, parent: ExecutionId) -> Trace:
        """Return the trace of the parent, as far as it is in the journal. Its own spans are exported when its rows are
        processed."""
        found = self._known.get(parent)
        if found is not None:
            return found
        state = await self._app.runtime.load(parent)
        above = None if state.setup.parent is None else await self._above(ExecutionId(state.setup.parent))
        found = Trace(parent, origin_of(parent, state.setup.options, above), state.setup.workflow, state.setup.session)
        await self._read(found, state.seq + 1)
        self._keep(found)
        return found

    async def _read(self, trace: Trace, before: int) -> None:
        """Process the rows before this one without exporting spans: the process that committed them
        has exported them."""
        state = ExecutionState(trace.execution)
        async for row in self._app.store.journal.read(trace.execution):
            if row.seq >= before:
                break
            begin_decision(state, row.seq, row.at)
            for event in row.events:
                fold(state, event)
            for _ in trace.take(row, status_of(state)):
                continue

    def _keep(self, trace: Trace) -> None:
        self._known[trace.execution] = trace
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def _tell_call(self, execution: str, span_of: _SpanOf, called: ModelCalled | ToolCalled) -> None:
        trace = self._known.get(ExecutionId(execution))
        if trace is not None:
            self._tell(span_of(trace, called))

    def _tell(self, *spans: TraceSpan) -> None:
        for span in spans:
            if span.trace & (2**64 - 1) < self._below:
                self._export(span)

    def context(self, execution: ExecutionId, command: Execute) -> str | None:
        """Return the `traceparent` of outgoing calls of an attempt."""
        trace = self._known.get(execution)
        if trace is not None:
            trace_id = trace.origin.trace
        else:
            driver = self._app.runtime.drivers.get(execution)
            if driver is None or driver.state.setup.parent is not None:
                return None
            trace_id = origin_of(execution, driver.state.setup.options, None).trace
        return traceparent(trace_id, span_id(execution, command.step, command.attempt))


_SpanOf: TypeAlias = Callable[[Trace, ModelCalled | ToolCalled], TraceSpan]


def _model_span(trace: Trace, called: ModelCalled | ToolCalled) -> TraceSpan:
    assert isinstance(called, ModelCalled)
    request, reply = called.request, called.reply
    provider, _, model = request.model.partition(":")
    told: dict[str, Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider or "default",
        "gen_ai.request.model": model or request.model or "default",
        "pointsman.execution.id": trace.execution,
        "pointsman.node": str(request.hints.get("node", "")),
    }
    if request.temperature is not None:
        told["gen_ai.request.temperature"] = request.temperature
    if request.max_tokens is not None:
        told["gen_ai.request.max_tokens"] = request.max_tokens
    if reply is not None:
        told["gen_ai.response.model"] = reply.model
        told["gen_ai.usage.input_tokens"] = reply.usage.input_tokens
        told["gen_ai.usage.output_tokens"] = reply.usage.output_tokens
        told["gen_ai.usage.cache_read.input_tokens"] = reply.usage.cache_read_tokens
        if reply.usage.cost_usd is not None:
            told["pointsman.cost_usd"] = reply.usage.cost_usd
    step = str(request.hints.get("step", ""))
    span = span_id(trace.execution, step, request.hints.get("attempt"), "model", request.hints.get("call"))
    name = f"chat {told['gen_ai.request.model']}"
    parent = trace.by_name.get(step)
    return TraceSpan(
        trace.origin.trace, span, name, called.begin, called.end, parent, told, called.failure, client=True
    )


def _tool_span(trace: Trace, called: ModelCalled | ToolCalled) -> TraceSpan:
    assert isinstance(called, ToolCalled)
    step = called.key.partition(":")[2].rsplit(":", 2)[0]
    told: dict[str, Value] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": called.call.name,
        "gen_ai.tool.call.id": called.call.id,
        "gen_ai.tool.type": "function",
        "pointsman.execution.id": trace.execution,
    }
    span, parent = span_id(called.key, called.begin), trace.by_name.get(step)
    name = f"execute_tool {called.call.name}"
    return TraceSpan(trace.origin.trace, span, name, called.begin, called.end, parent, told, called.failure)


class TracedExecutors:
    """Executors whose outgoing calls carry the `traceparent` of their attempt."""

    def __init__(self, executors: ExecutorsFor, tracing: Tracing) -> None:
        self._executors = executors
        self._tracing = tracing

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """Return the basis of the wrapped executors."""
        return self._executors.basis(command, spec)

    async def has(self, need: str) -> bool:
        return await self._executors.has(need)

    def executor_for(self, command: Execute) -> Executor:
        return _Traced(self._executors.executor_for(command), self._tracing)


class _Traced:
    def __init__(self, executor: Executor, tracing: Tracing) -> None:
        self._executor = executor
        self._tracing = tracing

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        token = TRACEPARENT.set(self._tracing.context(run.execution, command))
        try:
            return await self._executor.execute(command, spec, run)
        finally:
            TRACEPARENT.reset(token)
