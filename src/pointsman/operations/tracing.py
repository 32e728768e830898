"""Tracing: follows the feed and the calls in the background, and exports spans as soon as they end.

    rows, calls ─▶ a queue ─▶ one task ─▶ spans ─▶ an exporter

The execution of steps pays only for an entry in the queue. For an execution whose start this process did not see, the
journal is read first, and those of its parents before that.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from pointsman.context import AppContext
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.failures import Failure
from pointsman.engine.fold.dispatch import begin_decision, fold
from pointsman.engine.reports import ToolCallsProposed, WorkDone, WorkFailed
from pointsman.engine.state import ENDED, ExecutionState, status_of
from pointsman.engine.steps import Step
from pointsman.errors import PointsmanError
from pointsman.executors.call_observers import ModelCalled, ToolCalled
from pointsman.operations.logs import log_event
from pointsman.ports import ExecutionPort, Executor, Row
from pointsman.runtime.children import child_id
from pointsman.runtime.dependencies import Committed, Delta, ExecutorsFor
from pointsman.tools.egress.addresses import TRACEPARENT
from pointsman.values import ExecutionId, Json, JsonObject

TRACEPARENT_FORMAT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
STILL: Final = frozenset({"waiting", "paused", "interrupted", "completed", "failed", "cancelled"})
Value: TypeAlias = str | int | float | bool


class TraceSpan(NamedTuple):
    """A completed span. Ids as in OpenTelemetry."""

    trace: int
    id: int
    name: str
    begin: float
    end: float
    parent: int | None = None
    attributes: Mapping[str, Value] = {}
    failure: Failure | None = None
    links: tuple[int, ...] = ()
    client: bool = False
    """Whether the span is an outgoing call."""


class TraceOrigin(NamedTuple):
    """The trace of an execution, and the span that started it."""

    trace: int
    parent: int | None


def traceparent(trace: int, span: int) -> str:
    return f"00-{trace:032x}-{span:016x}-01"


def origin_in(header: object) -> TraceOrigin | None:
    """Return the origin that a `traceparent` describes; None if it is missing or invalid."""
    match = TRACEPARENT_FORMAT.fullmatch(header) if isinstance(header, str) else None
    if match is None or not int(match[1], 16) or not int(match[2], 16):
        return None
    return TraceOrigin(int(match[1], 16), int(match[2], 16))


def origin_of(execution: str, options: JsonObject, above: Trace | None) -> TraceOrigin:
    """Return the origin of an execution: the step that called it, else the `traceparent` of its trigger, else its own
    trace."""
    if above is not None:
        return TraceOrigin(above.origin.trace, above.children.get(ExecutionId(execution)))
    trigger = options.get("trigger")
    upstream = origin_in(trigger.get("traceparent")) if isinstance(trigger, dict) else None
    return upstream or TraceOrigin(_id(execution, size=16), None)


def span_id(execution: str, *parts: object) -> int:
    return _id("|".join((execution, *map(str, parts))), size=8)


def _id(text: str, *, size: int) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest(), "big") or 1


class OpenSpan(NamedTuple):
    """An attempt in progress."""

    at: float
    attempt: int
    runs: bool


@dataclass(slots=True)
class Trace:
    """Trace of one execution, built row by row."""

    execution: ExecutionId
    origin: TraceOrigin
    workflow: str = ""
    session: str | None = None
    seq: int = 0
    steps: dict[Step, OpenSpan] = field(default_factory=dict[Step, OpenSpan])
    by_name: dict[str, int] = field(default_factory=dict[str, int])
    """Spans of the attempts in progress, by the names of their steps."""
    children: dict[ExecutionId, int] = field(default_factory=dict[ExecutionId, int])
    """Span of the step that called a child execution."""
    _gates: dict[Step, tuple[int, float]] = field(default_factory=dict[Step, tuple[int, float]])
    _stretch: tuple[int, float] | None = None
    _before: int | None = None
    """The previous stretch."""
    _failure: Failure | None = None

    def take(self, row: Row, status: str) -> Iterator[TraceSpan]:
        """Process the next row and the status after it. Yield the spans that end with it."""
        self.seq = row.seq
        if self._stretch is None:
            self._stretch = span_id(self.execution, "stretch", row.seq), row.at
        for event in row.events:
            yield from self._event(event, row)
        if status in STILL and not any(step.runs for step in self.steps.values()):
            yield self._ended(row.at, status)

    def _event(self, event: events.Event, row: Row) -> Iterator[TraceSpan]:
        match event:
            case events.StepStarted(step=step, runs=runs):
                self._begin(step, row.at, 1, runs=runs)
            case events.AttemptStarted(step=step, attempt=attempt):
                self._begin(step, row.at, attempt, runs=True)
            case events.StepSucceeded(step=step, usage=usage):
                calls = 0 if usage is None else usage.model_calls
                yield from self._end(step, row.at, agent=bool(calls))
            case events.StepFailed(step=step, failure=failure):
                yield from self._end(step, row.at, failure=failure)
            case events.StepCancelled(step=step):
                yield from self._end(step, row.at)
            case wait_events.ChildRequested(step=step):
                self._calls(step, 0)
            case wait_events.ToolChildrenRequested(step=step, calls=calls):
                for call in calls:
                    self._calls(step, call.number)
            case wait_events.GateOpened() | wait_events.GateClosed():
                yield from self._gate(event, row)
            case life_events.ExecutionFailed(failure=failure):
                self._failure = failure
            case _:
                pass

    def _begin(self, step: Step, at: float, attempt: int, *, runs: bool) -> None:
        self.steps[step] = OpenSpan(at, attempt, runs)
        self.by_name[str(step)] = span_id(self.execution, step, attempt)

    def _calls(self, step: Step, call: int) -> None:
        open_step = self.steps.get(step)
        attempt = 1 if open_step is None else open_step.attempt
        self.children[child_id(self.execution, step, attempt, call)] = span_id(self.execution, step, attempt)
        if open_step is not None:
            self.steps[step] = open_step._replace(runs=False)

    def _end(
        self, step: Step, at: float, *, failure: Failure | None = None, agent: bool = False
    ) -> Iterator[TraceSpan]:
        open_step = self.steps.pop(step, None)
        span = self.by_name.pop(str(step), None)
        called = span in self.children.values()
        if open_step is None or span is None or not (open_step.runs or called):
            return  # It only waited: for people, an event or a timer.
        attributes: dict[str, Value] = {
            "pointsman.execution.id": self.execution,
            "pointsman.step": str(step),
            "pointsman.node": step.node,
            "pointsman.attempt": open_step.attempt,
        }
        agent = agent and open_step.runs  # The calls of a sub-workflow belong to the sub-workflow.
        if agent:
            attributes |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": step.node}
        name = f"invoke_agent {step.node}" if agent else f"step {step.node}"
        yield TraceSpan(self.origin.trace, span, name, open_step.at, at, self._parent, attributes, failure)

    def _gate(self, event: wait_events.GateOpened | wait_events.GateClosed, row: Row) -> Iterator[TraceSpan]:
        step = event.step
        attributes: dict[str, Value] = {"pointsman.execution.id": self.execution, "pointsman.node": step.node}
        if isinstance(event, wait_events.GateOpened):
            span = span_id(self.execution, "opened", row.seq, step)
            self._gates[step] = span, row.at
            if step in self.steps:
                self.steps[step] = self.steps[step]._replace(runs=False)
            yield TraceSpan(
                self.origin.trace, span, f"gate opened {step.node}", row.at, row.at, self._parent, attributes
            )
            return
        opened = self._gates.pop(step, None)
        if opened is None:
            return
        attributes |= {"pointsman.gate.waited_s": row.at - opened[1], "pointsman.gate.cause": event.cause}
        span = span_id(self.execution, "closed", row.seq, step)
        name = f"gate answered {step.node}"
        yield TraceSpan(self.origin.trace, span, name, row.at, row.at, self._parent, attributes, links=(opened[0],))
        self.steps.pop(step, None)

    def _ended(self, at: float, status: str) -> TraceSpan:
        assert self._stretch is not None, "a row began it"
        span, begin = self._stretch
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": self.workflow,
            "pointsman.execution.id": self.execution,
            "pointsman.status": status,
        }
        if self.session is not None:
            attributes["gen_ai.conversation.id"] = self.session
        links = () if self._before is None else (self._before,)
        self._stretch, self._before = None, span
        failure, self._failure = self._failure, None
        name = f"invoke_workflow {self.workflow}"
        return TraceSpan(self.origin.trace, span, name, begin, at, self.origin.parent, attributes, failure, links)

    @property
    def _parent(self) -> int | None:
        return None if self._stretch is None else self._stretch[0]


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
        self._leave = app.feed.watch(self._see), app.services.calls.listen(self._on_call)
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Export what has happened until now, then stop."""
        for leave in self._leave:
            leave()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._drain()

    def _see(self, update: Committed | Delta) -> None:
        if isinstance(update, Delta):
            return
        state = update.state
        self._put(
            TracedRow(
                update.execution,
                update.row,
                status_of(state),
                state.setup.workflow,
                state.setup.parent,
                state.setup.session,
                state.setup.options,
            )
        )

    def _on_call(self, called: ModelCalled | ToolCalled) -> None:
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
                log_event(logging.WARNING, "trace.lost", {"code": why.code, "message": str(why)})

    async def _take(self, one: TracedRow | ModelCalled | ToolCalled) -> None:
        match one:
            case TracedRow():
                trace = await self._trace(one)
                if one.row.seq > trace.seq:
                    self._export_spans(*trace.take(one.row, one.status))
                if one.status in ENDED and one.parent is None:
                    self._known.pop(one.execution, None)
            case ModelCalled():
                self._tell_call(str(one.request.hints.get("execution")), _model_span, one)
            case ToolCalled():
                self._tell_call(one.key.partition(":")[0], _tool_span, one)

    async def _trace(self, row: TracedRow) -> Trace:
        trace = self._known.get(row.execution)
        if trace is None:
            above = None if row.parent is None else await self._above(ExecutionId(row.parent))
            trace = Trace(row.execution, origin_of(row.execution, row.options, above))
            trace.workflow, trace.session = row.workflow, row.session
            if row.row.seq > 1:
                await self._read(trace, row.row.seq)
            self._remember_trace(trace)
        return trace

    async def _above(self, parent: ExecutionId) -> Trace:
        """Return the trace of the parent, as far as it is in the journal. Its own spans are exported when its rows are
        processed."""
        trace = self._known.get(parent)
        if trace is not None:
            return trace
        state = await self._app.runtime.load(parent)
        above = None if state.setup.parent is None else await self._above(ExecutionId(state.setup.parent))
        trace = Trace(parent, origin_of(parent, state.setup.options, above), state.setup.workflow, state.setup.session)
        await self._read(trace, state.seq + 1)
        self._remember_trace(trace)
        return trace

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

    def _remember_trace(self, trace: Trace) -> None:
        self._known[trace.execution] = trace
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def _tell_call(self, execution: str, span_of: _SpanOf, called: ModelCalled | ToolCalled) -> None:
        trace = self._known.get(ExecutionId(execution))
        if trace is not None:
            self._export_spans(span_of(trace, called))

    def _export_spans(self, *spans: TraceSpan) -> None:
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
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider or "default",
        "gen_ai.request.model": model or request.model or "default",
        "pointsman.execution.id": trace.execution,
        "pointsman.node": str(request.hints.get("node", "")),
    }
    if request.temperature is not None:
        attributes["gen_ai.request.temperature"] = request.temperature
    if request.max_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = request.max_tokens
    if reply is not None:
        attributes["gen_ai.response.model"] = reply.model
        attributes["gen_ai.usage.input_tokens"] = reply.usage.input_tokens
        attributes["gen_ai.usage.output_tokens"] = reply.usage.output_tokens
        attributes["gen_ai.usage.cache_read.input_tokens"] = reply.usage.cache_read_tokens
        if reply.usage.cost_usd is not None:
            attributes["pointsman.cost_usd"] = reply.usage.cost_usd
    step = str(request.hints.get("step", ""))
    span = span_id(trace.execution, step, request.hints.get("attempt"), "model", request.hints.get("call"))
    name = f"chat {attributes['gen_ai.request.model']}"
    parent = trace.by_name.get(step)
    return TraceSpan(
        trace.origin.trace, span, name, called.begin, called.end, parent, attributes, called.failure, client=True
    )


def _tool_span(trace: Trace, called: ModelCalled | ToolCalled) -> TraceSpan:
    assert isinstance(called, ToolCalled)
    step = called.key.partition(":")[2].rsplit(":", 2)[0]
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": called.call.name,
        "gen_ai.tool.call.id": called.call.id,
        "gen_ai.tool.type": "function",
        "pointsman.execution.id": trace.execution,
    }
    span, parent = span_id(called.key, called.begin), trace.by_name.get(step)
    name = f"execute_tool {called.call.name}"
    return TraceSpan(trace.origin.trace, span, name, called.begin, called.end, parent, attributes, called.failure)


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
