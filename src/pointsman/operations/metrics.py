"""Measuring: counts what a process does, and reads further values at each scrape.

    rows as they are committed ─┐
    calls of models and tools ──┼─▶ counters, histograms ─┐
    writes of the journal ──────┘                         ├─▶ /metrics
    drivers, claims, the store's list (at a scrape) ──────┘

Counts are those of this process; values read from the store are those of all processes.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, cast

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from pointsman.context import AppContext
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.steps import Step
from pointsman.executors.call_observers import ModelCalled, ToolCalled
from pointsman.ports import Row
from pointsman.runtime.dependencies import Committed, Delta
from pointsman.runtime.dispatched import DispatchedOwnership
from pointsman.settings import Settings
from pointsman.store.api import StoreJournal
from pointsman.store.coordination import Claims
from pointsman.store.records import EffectRecord, ExecutionQuery, Summary
from pointsman.values import ExecutionId, Instant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


PLAIN: Final = CONTENT_TYPE_PLAIN_0_0_4
OPENMETRICS: Final = openmetrics.CONTENT_TYPE_LATEST
OTHER: Final = "other"
SECONDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the buckets of all histograms."""
MODELS_MAX: Final = 100
TOOLS_MAX: Final = 200
ENDS: Final[dict[type, str]] = {
    life_events.ExecutionCompleted: "completed",
    life_events.ExecutionFailed: "failed",
    life_events.ExecutionCancelled: "cancelled",
    life_events.ExecutionInterrupted: "interrupted",
}


# `prometheus_client` declares no types for the writer of OpenMetrics.
_openmetrics_text = cast("Callable[[CollectorRegistry], bytes]", openmetrics.generate_latest)  # pyright: ignore[reportUnknownMemberType] - untyped


def is_scraper(settings: Settings, shown: str | None) -> bool:
    """Return whether a caller showed the key of the setting `metrics`."""
    key = settings.resolved(settings.metrics.key)
    return key is not None and shown is not None and compare_digest(key.encode(), shown.encode())


class Bounded:
    """Bound on the number of distinct values of a label: later values count as `other`.

    Label values come from outside (ids, models), and each new one makes every later scrape larger.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(value)
        return value


class TimedEffectLedger:
    """A journal whose writes are timed."""

    def __init__(self, ledger: StoreJournal, took: Callable[[float], None]) -> None:
        self._ledger = ledger
        self._took = took

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        begin = time.perf_counter()
        await self._ledger.append(execution, *rows, summary=summary, effects=effects)
        self._took(time.perf_counter() - begin)

    def read(self, execution: ExecutionId, *, after: int = 0) -> AsyncIterator[Row]:
        return self._ledger.read(execution, after=after)

    async def last(self, execution: ExecutionId) -> int:
        return await self._ledger.last(execution)


class ClaimCollector(Collector):
    """Counts of the claims of this process."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims

    def collect(self) -> Iterator[CounterMetricFamily]:
        counts = self._claims.counts
        family = CounterMetricFamily("pointsman_claims", "Claims of executions, by outcome.", labels=["outcome"])
        family.add_metric(["given"], counts.claimed - counts.taken_over)
        family.add_metric(["taken_over"], counts.taken_over)
        family.add_metric(["refused"], counts.refused)
        family.add_metric(["lost"], counts.lost)
        yield family


class Measuring:
    """Metrics of one app, until it is closed."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        disable_created_metrics()  # They would double the number of series.
        self.registry = CollectorRegistry()
        self._workflow = Bounded(app.settings.metrics.workflows_max)
        self._model = Bounded(MODELS_MAX)
        self._tool = Bounded(TOOLS_MAX)
        self._begun: dict[ExecutionId, dict[Step, float]] = {}
        """Start of the attempts in progress, by execution and step."""
        self._of_executions()
        self._of_calls()
        if app.store.claims is not None:
            self._of_ownership(app.store.claims)
        ProcessCollector(registry=self.registry)
        self._ledger = app.runtime.journal
        app.runtime.journal = TimedEffectLedger(self._ledger, self._writes.observe)
        self._leave = app.feed.watch(self._see), app.services.calls.listen(self._count_call)

    def close(self) -> None:
        """Stop counting."""
        for leave in self._leave:
            leave()
        self._app.runtime.journal = self._ledger
        self._app.runtime.on_taken_up = None

    async def text(self, *, openmetrics_format: bool = False) -> bytes:
        """Return all metrics in the Prometheus text format, or as OpenMetrics. Raises the errors of the store."""
        now = self._app.clock.now()
        due = await self._app.store.executions.list(ExecutionQuery(due=Instant(now), limit=1))
        lag_s = max(0.0, now - due[0].wakes) if due and due[0].wakes is not None else 0.0
        self._lag.set(lag_s)
        self._former_lag.set(lag_s)
        drivers = self._app.runtime.drivers.values()
        self._here.clear()
        for status, count in sorted(Tally(driver.state.status for driver in drivers).items()):
            self._here.labels(status).set(count)
        self._working.set(sum(driver.busy for driver in drivers))
        self._queued.set(sum(len(driver.ready) for driver in drivers))
        return _openmetrics_text(self.registry) if openmetrics_format else generate_latest(self.registry)

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(name, help, labels, registry=self.registry)

    def gauge(self, name: str, help: str, *labels: str) -> Gauge:
        return Gauge(name, help, labels, registry=self.registry)

    def histogram(self, name: str, help: str, *labels: str) -> Histogram:
        return Histogram(name, help, labels, registry=self.registry, buckets=SECONDS)

    def _of_executions(self) -> None:
        self._started = self.counter("pointsman_executions_started", "Executions that began here.", "workflow")
        self._ended = self.counter(
            "pointsman_executions_ended", "Executions that ended or were interrupted here.", "workflow", "status"
        )
        self._steps = self.histogram(
            "pointsman_step_seconds", "Duration of the attempts of steps that did work.", "workflow", "outcome"
        )
        self._retries = self.counter("pointsman_step_retries", "Attempts that failed and were repeated.", "workflow")
        self._gates = self.counter("pointsman_gates", "Gates that opened, were answered or expired.", "happened")
        self._rows = self.counter("pointsman_journal_rows", "Journal rows that this process committed.")
        self._writes = self.histogram("pointsman_store_write_seconds", "Duration of journal writes, as steps wait.")
        self._here = self.gauge("pointsman_executions_here", "Executions in the memory of this process.", "status")
        self._working = self.gauge("pointsman_steps_working", "Steps in progress.")
        self._queued = self.gauge("pointsman_steps_queued", "Steps that wait for a slot of their execution.")
        self._lag = self.gauge("pointsman_leader_lag_seconds", "Delay of the oldest overdue timer or schedule.")
        self._former_lag = self.gauge("pointsman_keeper_lag_seconds", "Deprecated: pointsman_leader_lag_seconds.")

    def _of_ownership(self, claims: Claims) -> None:
        self.gauge("pointsman_executions_owned", "Executions that this process owns.").set_function(lambda: claims.held)
        self.registry.register(ClaimCollector(claims))
        delays = self.histogram(
            "pointsman_wake_delay_seconds", "Time from when an execution was due until this process continued it."
        )
        self._app.runtime.on_taken_up = delays.observe
        ownership = self._app.runtime.ownership
        if isinstance(ownership, DispatchedOwnership):
            unsent = self.gauge("pointsman_wakeups_unsent", "Wake-ups that the engine has not received yet.")
            unsent.set_function(lambda: ownership.unsent)

    def _of_calls(self) -> None:
        self._model_calls = self.counter("pointsman_model_calls", "Calls of models.", "model", "key", "outcome")
        self._tokens = self.counter("pointsman_model_tokens", "Tokens of models.", "model", "key", "type")
        self._cost = self.counter("pointsman_model_cost_usd", "Cost of calls with a known price.", "model", "key")
        self._model_s = self.histogram(
            "pointsman_model_call_seconds", "Duration of calls of models, with the wait for a key.", "model"
        )
        self._tool_calls = self.counter("pointsman_tool_calls", "Calls of tools.", "tool", "outcome")
        self._tool_s = self.histogram("pointsman_tool_call_seconds", "Duration of calls of tools.", "tool")

    # Events --------------------------------------------------------------------------------------------------------

    def _see(self, update: Committed | Delta) -> None:
        if isinstance(update, Delta):
            return
        self._rows.inc()
        workflow = self._workflow(update.state.setup.workflow)
        starts = self._begun.get(update.execution)
        for event in update.row.events:
            match event:
                case events.StepStarted(runs=True, step=step) | events.AttemptStarted(step=step):
                    if starts is None:
                        starts = self._begun[update.execution] = {}
                    starts[step] = update.row.at
                case events.StepSucceeded(step=step, cached=cached):
                    self._took(workflow, "cached" if cached else "done", starts, step, update.row.at)
                case events.StepFailed(step=step, final=final):
                    self._took(workflow, "failed" if final else "retried", starts, step, update.row.at)
                    if not final:
                        self._retries.labels(workflow).inc()
                case events.StepCancelled(step=step):
                    self._took(workflow, "cancelled", starts, step, update.row.at)
                case _:
                    self._other(event, workflow)
        if update.state.ended or not update.state.steps:
            self._begun.pop(update.execution, None)

    def _other(self, event: events.Event, workflow: str) -> None:
        match event:
            case life_events.ExecutionStarted():
                self._started.labels(workflow).inc()
            case wait_events.GateOpened():
                self._gates.labels("opened").inc()
            case wait_events.GateClosed():
                self._gates.labels("answered" if event.cause == "answer" else event.cause).inc()
            case _:
                if (status := ENDS.get(type(event))) is not None:
                    self._ended.labels(workflow, status).inc()

    def _took(self, workflow: str, outcome: str, starts: dict[Step, float] | None, step: Step, at: float) -> None:
        since = None if starts is None else starts.pop(step, None)
        if since is not None:
            self._steps.labels(workflow, outcome).observe(at - since)

    def _count_call(self, called: ModelCalled | ToolCalled) -> None:
        outcome = "done" if called.failure is None else called.failure.code
        if isinstance(called, ToolCalled):
            tool = self._tool(called.call.name)
            self._tool_calls.labels(tool, outcome).inc()
            self._tool_s.labels(tool).observe(called.end - called.begin)
            return
        reply = called.reply
        model = self._model((reply.model if reply is not None else called.request.model) or "default")
        key = "" if reply is None or reply.key is None else str(reply.key)
        self._model_calls.labels(model, key, outcome).inc()
        self._model_s.labels(model).observe(called.end - called.begin)
        if reply is not None:
            usage = reply.usage  # A provider may report negative numbers, which a counter refuses.
            self._tokens.labels(model, key, "input").inc(max(0, usage.input_tokens))
            self._tokens.labels(model, key, "output").inc(max(0, usage.output_tokens))
            if usage.cost_usd is not None:
                self._cost.labels(model, key).inc(max(0.0, usage.cost_usd))
