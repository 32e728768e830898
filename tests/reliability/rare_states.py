"""The rare states that a simulation must reach, so that its silence is evidence: a name each, and how to recognise
it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.events.steps import Event
from pointsman.ports import Row

Shows: TypeAlias = Callable[[Event], bool]


def _depth(event: Event) -> int:
    step = getattr(event, "step", None)
    return len(getattr(step, "scope", ()))


def _merged(event: Event) -> int:
    return len(getattr(event, "merged", ()))


IN_EVENTS: Final[dict[str, Shows]] = {
    "an arrival waits for others": lambda e: isinstance(e, events.ArrivalParked),
    "two arrivals become one step": lambda e: (
        isinstance(e, events.StepStarted | events.InstantStepCompleted) and _merged(e) == 2
    ),
    "three arrivals become one step": lambda e: _merged(e) >= 3,
    "three parallels inside one another": lambda e: _depth(e) >= 3,
    "a parallel over nothing": lambda e: isinstance(e, events.ScopesOpened) and e.items == [],
    "a parallel without a join": lambda e: isinstance(e, events.ScopesOpened) and not e.joined,
    "a join fires while branches still run": lambda e: isinstance(e, events.ScopesClosed) and not e.forgotten,
    "a parallel that nobody closes is over": lambda e: isinstance(e, events.TokenEnded) and e.reason == "swallowed",
    "a branch ends early": lambda e: isinstance(e, events.BranchSettled) and e.outcome == "ended",
    "a branch fails": lambda e: isinstance(e, events.BranchSettled) and e.outcome == "failed",
    "a branch is cancelled": lambda e: isinstance(e, events.BranchSettled) and e.outcome == "cancelled",
    "a step is cancelled": lambda e: isinstance(e, events.StepCancelled),
    "an attempt fails and another follows": lambda e: isinstance(e, events.StepFailed) and not e.final,
    "a step fails finally": lambda e: isinstance(e, events.StepFailed) and e.final,
    "a second attempt": lambda e: isinstance(e, events.AttemptStarted) and e.reason == "retry",
    "an attempt after a delay": lambda e: isinstance(e, events.AttemptStarted) and e.reason == "delay",
    "no way on": lambda e: isinstance(e, events.ExitFailed),
    "a third round": lambda e: isinstance(e, events.LoopRound) and e.round >= 3,
    "a loop in a branch": lambda e: isinstance(e, events.LoopRound) and len(e.scope) >= 1,
    "a loop is left": lambda e: isinstance(e, events.LoopLeft),
    "an end ends everything": lambda e: isinstance(e, events.TokenEnded) and e.reason == "end",
    "a gate opens in a branch": lambda e: isinstance(e, wait_events.GateOpened) and _depth(e) >= 1,
    "a gate is answered": lambda e: isinstance(e, wait_events.GateClosed),
    "a timer rings": lambda e: isinstance(e, wait_events.TimerElapsed),
    "a gate has a timeout": lambda e: isinstance(e, wait_events.TimerSet) and e.purpose == "gate",
    "a join has a timeout": lambda e: isinstance(e, wait_events.TimerSet) and e.purpose == "join",
    "an outside event is taken": lambda e: isinstance(e, wait_events.EventConsumed),
    "a sub-workflow in a branch": lambda e: isinstance(e, wait_events.ChildRequested) and _depth(e) >= 1,
    "an arrival is held": lambda e: isinstance(e, events.ArrivalHeld),
    "a limit is hit": lambda e: isinstance(e, wait_events.LimitHit),
    "an interruption": lambda e: isinstance(e, life_events.ExecutionInterrupted),
    "limits are raised": lambda e: isinstance(e, life_events.LimitsRaised),
    "a pause": lambda e: isinstance(e, life_events.ExecutionPaused),
    "it goes on after standing still": lambda e: isinstance(e, life_events.ExecutionResumed),
    "a node of last resort takes over": lambda e: isinstance(e, life_events.LimitEscalated),
    "several failures at the end": lambda e: isinstance(e, life_events.ExecutionFailed) and len(e.steps) >= 2,
    "a failed execution is taken up": lambda e: isinstance(e, life_events.ExecutionRetried),
    "a retry enters a node again": lambda e: isinstance(e, life_events.ExecutionRetried) and len(e.reenter) > 0,
    "a place becomes free": lambda e: isinstance(e, life_events.ExecutionAdmitted),
    "one of several votes": lambda e: isinstance(e, wait_events.GateVoted),
    "the right must be delegated": lambda e: isinstance(e, wait_events.GateDelegated),
    "others are asked": lambda e: isinstance(e, wait_events.GateEscalated),
    "calls are approved": lambda e: isinstance(e, wait_events.ToolCallsReviewed),
    "sub-workflows carry out calls": lambda e: isinstance(e, wait_events.ToolCallEnded),
    "an event comes too early": lambda e: isinstance(e, wait_events.EventConsumed) and e.kept,
    "an event that came early is used": lambda e: isinstance(e, wait_events.BufferedEventUsed),
    "others are told": lambda e: isinstance(e, wait_events.OutboxDelivered),
    "a sub-workflow tells what it spends": lambda e: isinstance(e, wait_events.ChildUsageCounted),
    "a budget nears its end": lambda e: isinstance(e, wait_events.WarningRaised) and e.code == "budget-low",
    "a budget is spent": lambda e: isinstance(e, wait_events.LimitHit) and e.limit in ("toolCalls", "costUsd"),
    "a round fails and the loop goes on": lambda e: isinstance(e, events.LoopRoundFailed),
    "values are put in by hand": lambda e: isinstance(e, life_events.ExecutionSteered) and len(e.edits) > 0,
    "control is sent elsewhere": lambda e: isinstance(e, life_events.ControlRedirected),
    "a fork": lambda e: isinstance(e, life_events.ExecutionForked),
    "another definition": lambda e: isinstance(e, life_events.ExecutionMigrated),
    "a step is undone": lambda e: isinstance(e, life_events.UndoEnded) and e.failure is None,
    "a step cannot be undone": lambda e: isinstance(e, life_events.UndoEnded) and e.failure is not None,
    "a cancellation": lambda e: isinstance(e, life_events.ExecutionCancelled),
}

IN_ROWS: Final[dict[str, Callable[[Row], bool]]] = {
    "nodes that wait for each other start together": lambda row: sum(_merged(e) > 0 for e in row.events) >= 2,
    "one report starts five steps": lambda row: sum(isinstance(e, events.StepStarted) for e in row.events) >= 5,
}

IN_WORLDS: Final = frozenset({"a rival appends first", "a gate whose person never comes"})
"""States that only the simulated world can recognise."""

RARE: Final = frozenset({*IN_EVENTS, *IN_ROWS, *IN_WORLDS})


def seen_in(rows: Iterable[Row], known: AbstractSet[str] = frozenset()) -> set[str]:
    """Return the rare states in these rows, except those that are already `known`."""
    of_rows = {name: shows for name, shows in IN_ROWS.items() if name not in known}
    of_events = {name: shows for name, shows in IN_EVENTS.items() if name not in known}
    seen: set[str] = set()
    for row in rows:
        seen |= {name for name, shows in of_rows.items() if name not in seen and shows(row)}
        for event in row.events if of_events else ():
            found = [name for name, shows in of_events.items() if shows(event)]
            for name in found:
                seen.add(name)
                del of_events[name]
    return seen
