"""Passivation: the list entry from which an execution without a driver can be found and resumed.

status   as shown to callers
wakes    when it must be resumed while no work runs: its next timer, or soon for undelivered messages
awaits   the names of the events it waits for
needs    what workers must have for the steps that wait for one
worker   the process that works on it now
spent    its usage, as budgets count it
gates    its inbox entries
answers  what people answered in this row
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from pointsman.engine.events.steps import Event
from pointsman.engine.events.waits import EventAwaited, TimerSet
from pointsman.engine.state import ExecutionState, UsageTotal, status_of
from pointsman.runtime.summary import answers_in, needs_of, summary_of
from pointsman.store.records import Summary
from pointsman.values import ExecutionId, Instant

TELLING_S: Final = 30.0
"""An outbox is delivered at once; after this long its process counts as gone."""


class Passivation:
    """Tracks the summary of one state. Costs nothing per row without timers and events."""

    __slots__ = (
        "_awaits",
        "_counts_tool_calls",
        "_is_listed",
        "_me",
        "_needs",
        "_paid",
        "_rings",
        "_status",
        "_wakes",
        "_worker",
        "offered_at",
        "urgent",
    )

    def __init__(self, state: ExecutionState, me: str = "", *, counts_tool_calls: bool = True) -> None:
        """Assume that the store's entry matches this state. `me`: the name of the worker that drives it.

        `counts_tool_calls`: False if it has no budget. Then tool calls alone do not change the entry while it runs.
        """
        self._counts_tool_calls = counts_tool_calls
        self._me = me
        self._worker: str | None = None  # another worker may have written the last row
        self._needs = needs_of(state)
        self.offered_at: Instant | None = None
        """When workers check again whether they have what its steps wait for; None: at once."""
        self.urgent = False
        """Whether another process must continue it at once, because the writer of its rows will not."""
        self._is_listed = True
        self._rings = [(timer.at, name) for name, timer in state.timers.items()]
        heapq.heapify(self._rings)
        self._status: str = status_of(state) if state.seq else ""
        self._wakes = self._next_wake(state)
        self._awaits = tuple(sorted(state.events.waiters))
        self._paid: UsageTotal = state.usage

    def unlisted(self) -> None:
        """Mark the execution as unlisted: the next row writes its whole entry."""
        self._status, self._is_listed = "", False

    def changed(self, execution: ExecutionId, state: ExecutionState, events: Sequence[Event]) -> Summary | None:
        """Return the new summary from this row on; None: unchanged."""
        works = state.status == "running" and state.counters.running_steps > 0
        status = "running" if works else status_of(state)  # saves a call for almost every row
        wakes, awaits = self._wakes, self._awaits
        if state.timers or state.outbox or self.urgent or wakes is not None:
            self._note(events)
            wakes = self._next_wake(state)
        elif self._rings:
            self._rings.clear()
        if state.events.waiters or awaits:
            awaits = self._awaited(state, events)
        needs = self._needs
        if state.steps_without_worker or needs:
            wakes, needs = self._next_wake(state), needs_of(state)
        worker = self._me if works else ""
        if (
            status == self._status
            and wakes == self._wakes
            and awaits is self._awaits
            and needs == self._needs
            and worker == self._worker
            and not state.row.changed_gates
            and (state.usage is self._paid or (works and self._is_as_paid(state.usage)))
        ):
            return None
        self._status, self._wakes, self._awaits, self._paid = status, wakes, awaits, state.usage
        self._needs, self._worker = needs, worker
        with_gates = bool(state.row.changed_gates) or not self._is_listed
        self._is_listed = True
        summary = self.summary(execution, state, with_gates=with_gates)
        answers = answers_in(execution, state, events) if state.row.answered_gates else ()
        return replace(summary, answers=answers) if answers else summary

    def _is_as_paid(self, usage: UsageTotal) -> bool:
        """Return whether only tool calls were added that no budget counts."""
        paid = self._paid
        return (
            not self._counts_tool_calls
            and usage.model_calls == paid.model_calls
            and usage.input_tokens == paid.input_tokens
            and usage.output_tokens == paid.output_tokens
            and usage.cost_usd == paid.cost_usd
            and usage.scripted == paid.scripted
        )

    def summary(self, execution: ExecutionId, state: ExecutionState, *, with_gates: bool = True) -> Summary:
        """Return the summary for the store."""
        return summary_of(
            execution,
            state,
            self._status,
            wakes=self._wakes,
            awaits=self._awaits,
            worker=self._me if state.counters.running_steps and self._status == "running" else "",
            with_gates=with_gates,
        )

    def offered(self, again: float, execution: ExecutionId, state: ExecutionState) -> Summary:
        """Return the summary after a worker checked in vain: check again at `again` (unix seconds)."""
        self.offered_at = Instant(again)
        self._wakes = self._next_wake(state)
        return self.summary(execution, state)

    def delay_s(self, state: ExecutionState, now: float) -> float | None:
        """Return how long an execution has waited for a process that continues it; None: it waits for something
        else."""
        if state.counters.running_steps and state.status == "running":
            return max(0.0, now - state.at)
        wakes = self._wakes
        return None if wakes is None or wakes > now or state.steps_without_worker else now - wakes

    def _note(self, events: Sequence[Event]) -> None:
        for event in events:
            if type(event) is TimerSet:
                heapq.heappush(self._rings, (event.at, event.timer))

    def _next_wake(self, state: ExecutionState) -> Instant | None:
        if self.urgent and has_work(state):
            return Instant(state.at)
        if state.outbox and not (state.counters.running_steps and state.status == "running"):
            return Instant(state.at + TELLING_S)
        if state.status == "interrupted":
            return self._handoff_wake(state)
        if state.counters.running_steps or state.ended:
            return None
        rings, offer = self._rings, None
        if state.steps_without_worker and state.status == "running":
            offer = state.at if self.offered_at is None else self.offered_at
        while rings:
            at, name = rings[0]
            timer = state.timers.get(name)
            if timer is not None and timer.at == at:
                return Instant(at if offer is None else min(at, offer))
            heapq.heappop(rings)
        return None if offer is None else Instant(offer)

    @staticmethod
    def _handoff_wake(state: ExecutionState) -> Instant | None:
        """Return the wake-up time of an interrupted execution: only the escalation gate's timer counts."""
        if state.limits.escalation_gate is None or state.limits.escalation_gate not in state.steps:
            return None
        return min(
            (Instant(state.timers[name].at) for name in state.steps[state.limits.escalation_gate].timers), default=None
        )

    def _awaited(self, state: ExecutionState, events: Sequence[Event]) -> tuple[str, ...]:
        if len(state.events.waiters) == len(self._awaits) and not any(type(event) is EventAwaited for event in events):
            return self._awaits
        names = tuple(sorted(state.events.waiters))
        return self._awaits if names == self._awaits else names


def has_work(state: ExecutionState) -> bool:
    """Return whether a process must do something for an execution before its next timer; False: it only waits, or has
    ended."""
    return bool(state.outbox) or not (state.ended or status_of(state) == "waiting")
