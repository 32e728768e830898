"""Spans: conversion of rows and calls to traces. Ids derive from the execution, so all processes produce one trace.

    execution ─▶ stretch (from its start or continuation until it waits)
                    ├─▶ step, one for each attempt ─▶ calls of models and tools
                    │                              └▶ stretches of its sub-workflow
                    └─▶ gate opened … (months) … gate answered ─▶ a new stretch, linked to the one before

No span stays open during a wait for people: a stretch ends when only a person or a timer can continue the execution. A
process reads what happened before it started tracing from the journal. If the trigger of an execution contains a
`traceparent`, the execution belongs to that trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.failures import Failure
from pointsman.engine.steps import Step
from pointsman.ports import Row
from pointsman.runtime.children import child_id
from pointsman.values import ExecutionId, JsonObject

TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
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


def origin_in(given: object) -> TraceOrigin | None:
    """Return the origin that a `traceparent` describes; None if it is missing or invalid."""
    found = TRACEPARENT.fullmatch(given) if isinstance(given, str) else None
    if found is None or not int(found[1], 16) or not int(found[2], 16):
        return None
    return TraceOrigin(int(found[1], 16), int(found[2], 16))


def origin_of(execution: str, options: JsonObject, above: Trace | None) -> TraceOrigin:
    """Return the origin of an execution: the step that called it, else the `traceparent` of its trigger, else its own
    trace."""
    if above is not None:
        return TraceOrigin(above.origin.trace, above.children.get(ExecutionId(execution)))
    trigger = options.get("trigger")
    said = origin_in(trigger.get("traceparent")) if isinstance(trigger, dict) else None
    return said or TraceOrigin(_id(execution, size=16), None)


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
        if status in STILL and not any(begun.runs for begun in self.steps.values()):
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
        begun = self.steps.get(step)
        attempt = 1 if begun is None else begun.attempt
        self.children[child_id(self.execution, step, attempt, call)] = span_id(self.execution, step, attempt)
        if begun is not None:
            self.steps[step] = begun._replace(runs=False)

    def _end(
        self, step: Step, at: float, *, failure: Failure | None = None, agent: bool = False
    ) -> Iterator[TraceSpan]:
        begun = self.steps.pop(step, None)
        span = self.by_name.pop(str(step), None)
        called = span in self.children.values()
        if begun is None or span is None or not (begun.runs or called):
            return  # It only waited: for people, an event or a timer.
        told: dict[str, Value] = {
            "pointsman.execution.id": self.execution,
            "pointsman.step": str(step),
            "pointsman.node": step.node,
            "pointsman.attempt": begun.attempt,
        }
        agent = agent and begun.runs  # The calls of a sub-workflow belong to the sub-workflow.
        if agent:
            told |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": step.node}
        name = f"invoke_agent {step.node}" if agent else f"step {step.node}"
        yield TraceSpan(self.origin.trace, span, name, begun.at, at, self._parent, told, failure)

    def _gate(self, event: wait_events.GateOpened | wait_events.GateClosed, row: Row) -> Iterator[TraceSpan]:
        step = event.step
        told: dict[str, Value] = {"pointsman.execution.id": self.execution, "pointsman.node": step.node}
        if isinstance(event, wait_events.GateOpened):
            span = span_id(self.execution, "opened", row.seq, step)
            self._gates[step] = span, row.at
            if step in self.steps:
                self.steps[step] = self.steps[step]._replace(runs=False)
            yield TraceSpan(self.origin.trace, span, f"gate opened {step.node}", row.at, row.at, self._parent, told)
            return
        opened = self._gates.pop(step, None)
        if opened is None:
            return
        told |= {"pointsman.gate.waited_s": row.at - opened[1], "pointsman.gate.cause": event.cause}
        span = span_id(self.execution, "closed", row.seq, step)
        name = f"gate answered {step.node}"
        yield TraceSpan(self.origin.trace, span, name, row.at, row.at, self._parent, told, links=(opened[0],))
        self.steps.pop(step, None)

    def _ended(self, at: float, status: str) -> TraceSpan:
        assert self._stretch is not None, "a row began it"
        span, begin = self._stretch
        told: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": self.workflow,
            "pointsman.execution.id": self.execution,
            "pointsman.status": status,
        }
        if self.session is not None:
            told["gen_ai.conversation.id"] = self.session
        links = () if self._before is None else (self._before,)
        self._stretch, self._before = None, span
        failure, self._failure = self._failure, None
        name = f"invoke_workflow {self.workflow}"
        return TraceSpan(self.origin.trace, span, name, begin, at, self.origin.parent, told, failure, links)

    @property
    def _parent(self) -> int | None:
        return None if self._stretch is None else self._stretch[0]
