"""Measuring: counts what a process does, and reads further values at each scrape.

    rows as they are committed ─┐
    calls of models and tools ──┼─▶ counters, histograms ─┐
    writes of the journal ──────┘                         ├─▶ /metrics
    drivers, the store's list (read at a scrape) ─────────┘

Counts are those of this process; values read from the store are those of all processes.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pointsman.call_observers import ModelCalled, ToolCalled
from pointsman.context import AppContext
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.steps import Step
from pointsman.operations.metrics import Bounded, Labels, Measures
from pointsman.ports import Row
from pointsman.runtime.feed import Committed, Delta
from pointsman.store.api import StoreJournal
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, Instant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


MODELS_MAX: Final = 100
TOOLS_MAX: Final = 200
ENDS: Final[dict[type, str]] = {
    life_events.ExecutionCompleted: "completed",
    life_events.ExecutionFailed: "failed",
    life_events.ExecutionCancelled: "cancelled",
    life_events.ExecutionInterrupted: "interrupted",
}


class TimedLedger:
    """A journal whose writes are timed."""

    def __init__(self, ledger: StoreJournal, took: Callable[[float], None]) -> None:
        self._ledger = ledger
        self._took = took

    async def append(self, execution: ExecutionId, row: Row, *, summary: Summary | None = None) -> None:
        begin = time.perf_counter()
        await self._ledger.append(execution, row, summary=summary)
        self._took(time.perf_counter() - begin)

    async def extend(self, execution: ExecutionId, rows: Sequence[Row], *, summary: Summary | None = None) -> None:
        begin = time.perf_counter()
        await self._ledger.extend(execution, rows, summary=summary)
        self._took(time.perf_counter() - begin)

    def read(self, execution: ExecutionId, *, after: int = 0) -> AsyncIterator[Row]:
        return self._ledger.read(execution, after=after)

    async def last(self, execution: ExecutionId) -> int:
        return await self._ledger.last(execution)


class Measuring:
    """Metrics of one app, until it is closed."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self.measures = Measures()
        self._workflow = Bounded(app.settings.metrics.workflows_max)
        self._model = Bounded(MODELS_MAX)
        self._tool = Bounded(TOOLS_MAX)
        self._begun: dict[ExecutionId, dict[Step, float]] = {}
        """Start of the attempts in progress, by execution and step."""
        self._lag_s = 0.0
        self._of_executions()
        self._of_calls()
        self._of_process()
        self._ledger = app.runtime.journal
        app.runtime.journal = TimedLedger(self._ledger, self._writes.observe)
        self._leave = app.feed.watch(self._see), app.services.calls.listen(self._hear)

    def close(self) -> None:
        """Stop counting."""
        for leave in self._leave:
            leave()
        self._app.runtime.journal = self._ledger

    async def text(self, *, openly: bool = False) -> str:
        """Return all metrics in the Prometheus text format. Raises the errors of the store."""
        now = self._app.clock.now()
        due = await self._app.store.executions.list(ExecutionQuery(due=Instant(now), limit=1))
        self._lag_s = max(0.0, now - due[0].wakes) if due and due[0].wakes is not None else 0.0
        return self.measures.text(openly=openly)

    def _of_executions(self) -> None:
        make = self.measures
        self._started = make.counter("pointsman_executions_started", "Executions that began here.", "workflow")
        self._ended = make.counter(
            "pointsman_executions_ended", "Executions that ended or were interrupted here.", "workflow", "status"
        )
        self._steps = make.histogram(
            "pointsman_step_seconds", "Attempts of steps that did work: how long they took.", "workflow", "outcome"
        )
        self._retries = make.counter("pointsman_step_retries", "Attempts that failed and were repeated.", "workflow")
        self._gates = make.counter(
            "pointsman_gates", "Gates that opened, were answered or ran out of time.", "happened"
        )
        self._rows = make.counter("pointsman_journal_rows", "Rows that were committed here.")
        self._writes = make.histogram("pointsman_store_write_seconds", "Writes of the journal, as steps wait for them.")
        make.gauge(
            "pointsman_executions_here", "Executions that are in this process now.", "status", read=self._drivers
        )
        make.gauge("pointsman_steps_working", "Steps that are being performed now.", read=self._working)
        make.gauge("pointsman_steps_queued", "Steps that wait for a lane of their execution.", read=self._queued)
        make.gauge(
            "pointsman_keeper_lag_seconds", "How late the oldest thing is that should have been done.", read=self._lag
        )

    def _of_calls(self) -> None:
        make = self.measures
        self._model_calls = make.counter("pointsman_model_calls", "Calls of models.", "model", "key", "outcome")
        self._tokens = make.counter("pointsman_model_tokens", "Tokens of models.", "model", "key", "type")
        self._cost = make.counter(
            "pointsman_model_cost_usd", "What models cost, where a price is known.", "model", "key"
        )
        self._model_s = make.histogram(
            "pointsman_model_call_seconds", "Calls of models: how long, with waiting for a key.", "model"
        )
        self._tool_calls = make.counter("pointsman_tool_calls", "Calls of tools.", "tool", "outcome")
        self._tool_s = make.histogram("pointsman_tool_call_seconds", "Calls of tools: how long.", "tool")

    def _of_process(self) -> None:
        make = self.measures
        began = time.time()
        make.gauge("process_start_time_seconds", "When the process began, unix seconds.", read=lambda: [((), began)])
        make.gauge("process_resident_memory_bytes", "Memory that it uses.", read=lambda: [((), resident_bytes())])
        make.clock("process_cpu_seconds", "Processor time that it used.", read=time.process_time)

    # Events --------------------------------------------------------------------------------------------------------

    def _see(self, seen: Committed | Delta) -> None:
        if isinstance(seen, Delta):
            return
        self._rows.add(1)
        workflow = self._workflow(seen.state.setup.workflow)
        begun = self._begun.get(seen.execution)
        for event in seen.row.events:
            match event:
                case events.StepStarted(runs=True, step=step) | events.AttemptStarted(step=step):
                    if begun is None:
                        begun = self._begun[seen.execution] = {}
                    begun[step] = seen.row.at
                case events.StepSucceeded(step=step, cached=cached):
                    self._took(workflow, "cached" if cached else "done", begun, step, seen.row.at)
                case events.StepFailed(step=step, final=final):
                    self._took(workflow, "failed" if final else "retried", begun, step, seen.row.at)
                    if not final:
                        self._retries.add(1, workflow)
                case events.StepCancelled(step=step):
                    self._took(workflow, "cancelled", begun, step, seen.row.at)
                case _:
                    self._other(event, workflow)
        if seen.state.ended or not seen.state.steps:
            self._begun.pop(seen.execution, None)

    def _other(self, event: events.Event, workflow: str) -> None:
        match event:
            case life_events.ExecutionStarted():
                self._started.add(1, workflow)
            case wait_events.GateOpened():
                self._gates.add(1, "opened")
            case wait_events.GateClosed():
                self._gates.add(1, "answered" if event.cause == "answer" else event.cause)
            case _:
                if (status := ENDS.get(type(event))) is not None:
                    self._ended.add(1, workflow, status)

    def _took(self, workflow: str, outcome: str, begun: dict[Step, float] | None, step: Step, at: float) -> None:
        since = None if begun is None else begun.pop(step, None)
        if since is not None:
            self._steps.observe(at - since, workflow, outcome)

    def _hear(self, called: ModelCalled | ToolCalled) -> None:
        outcome = "done" if called.failure is None else called.failure.code
        if isinstance(called, ToolCalled):
            tool = self._tool(called.call.name)
            self._tool_calls.add(1, tool, outcome)
            self._tool_s.observe(called.end - called.begin, tool)
            return
        reply = called.reply
        model = self._model((reply.model if reply is not None else called.request.model) or "default")
        key = "" if reply is None or reply.key is None else str(reply.key)
        self._model_calls.add(1, model, key, outcome)
        self._model_s.observe(called.end - called.begin, model)
        if reply is not None:
            usage = reply.usage
            self._tokens.add(usage.input_tokens, model, key, "input")
            self._tokens.add(usage.output_tokens, model, key, "output")
            if usage.cost_usd is not None:
                self._cost.add(usage.cost_usd, model, key)

    # Values read at a scrape ---------------------------------------------------------------------------------------

    def _drivers(self) -> Iterator[tuple[Labels, float]]:
        tally = Tally(driver.state.status for driver in self._app.runtime.drivers.values())
        return (((status,), count) for status, count in sorted(tally.items()))

    def _working(self) -> list[tuple[Labels, float]]:
        return [((), sum(driver.busy for driver in self._app.runtime.drivers.values()))]

    def _queued(self) -> list[tuple[Labels, float]]:
        return [((), sum(len(driver.ready) for driver in self._app.runtime.drivers.values()))]

    def _lag(self) -> list[tuple[Labels, float]]:
        return [((), self._lag_s)]


def resident_bytes() -> float:
    """Return the memory of this process; its peak where the system offers no better value."""
    try:
        with open("/proc/self/statm", encoding="ascii") as told:
            return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
