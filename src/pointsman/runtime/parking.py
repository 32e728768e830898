"""Parking: what the store's list of executions says of one, so that it can be only rows and still be found.

status   what people are shown
wakes    when somebody must go on with it, while nothing works on it: its next timer, or soon, to tell others
awaits   the names of the events it waits for
spent    what budgets count of it
gates    what it has in the inboxes of people
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from pointsman.engine.events import Event
from pointsman.engine.state import ExecutionState
from pointsman.engine.status import status_of
from pointsman.engine.wait_events import EventAwaited, TimerSet
from pointsman.journal.records import Summary
from pointsman.runtime.status import summary_of
from pointsman.values import ExecutionId, Instant

TELLING_S: Final = 30.0
"""Whoever has something to tell others does so at once; after this long it is taken to be gone."""


class Parking:
    """Follows one state. Costs nothing per row while there are no timers and no events."""

    __slots__ = ("_awaits", "_is_listed", "_paid", "_rings", "_status", "_wakes", "urgent")

    def __init__(self, state: ExecutionState) -> None:
        """The store is taken to say what this state means."""
        self.urgent = False
        """Somebody must go on with it at once: whoever writes its rows will not."""
        self._is_listed = True
        self._rings = [(timer.at, name) for name, timer in state.timers.items()]
        heapq.heapify(self._rings)
        self._status: str = status_of(state) if state.seq else ""
        self._wakes = self._next_wake(state)
        self._awaits = tuple(sorted(state.awaited))
        self._paid = state.usage

    def unlisted(self) -> None:
        """No list knows of it yet: the next row says all of it."""
        self._status, self._is_listed = "", False

    def changed(self, execution: ExecutionId, state: ExecutionState, events: Sequence[Event]) -> Summary | None:
        """What to say of it from this row on; None: as before."""
        status = status_of(state)
        wakes, awaits = self._wakes, self._awaits
        if state.timers or state.undelivered or self.urgent or wakes is not None:
            self._note(events)
            wakes = self._next_wake(state)
        elif self._rings:
            self._rings.clear()
        if state.awaited or awaits:
            awaits = self._awaited(state, events)
        paid = state.usage is not self._paid
        if status == self._status and wakes == self._wakes and awaits is self._awaits and not (state.asked or paid):
            return None
        self._status, self._wakes, self._awaits, self._paid = status, wakes, awaits, state.usage
        with_gates = bool(state.asked) or not self._is_listed
        self._is_listed = True
        return self.summary(execution, state, with_gates=with_gates)

    def summary(self, execution: ExecutionId, state: ExecutionState, *, with_gates: bool = True) -> Summary:
        """What the store should say of it."""
        wakes, awaits = self._wakes, self._awaits
        return summary_of(execution, state, self._status, wakes=wakes, awaits=awaits, with_gates=with_gates)

    def _note(self, events: Sequence[Event]) -> None:
        for event in events:
            if type(event) is TimerSet:
                heapq.heappush(self._rings, (event.at, event.timer))

    def _next_wake(self, state: ExecutionState) -> Instant | None:
        if self.urgent and not state.ended:
            return Instant(state.at)
        if state.undelivered and not (state.working and state.status == "running"):
            return Instant(state.at + TELLING_S)
        if state.status == "interrupted":
            return self._handoff_wake(state)
        if state.working or state.ended:
            return None
        rings = self._rings
        while rings:
            at, name = rings[0]
            timer = state.timers.get(name)
            if timer is not None and timer.at == at:
                return Instant(at)
            heapq.heappop(rings)
        return None

    @staticmethod
    def _handoff_wake(state: ExecutionState) -> Instant | None:
        """While a limit stops all else, only the gate that asks whether to go on minds the clock."""
        if state.handoff is None or state.handoff not in state.steps:
            return None
        return min((Instant(state.timers[name].at) for name in state.steps[state.handoff].timers), default=None)

    def _awaited(self, state: ExecutionState, events: Sequence[Event]) -> tuple[str, ...]:
        if len(state.awaited) == len(self._awaits) and not any(type(event) is EventAwaited for event in events):
            return self._awaits
        found = tuple(sorted(state.awaited))
        return self._awaits if found == self._awaits else found
