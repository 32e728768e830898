"""Scopes: what a branch of a parallel sees, keeps for itself, and gives back.

    around   ─ data as it was at the opening ──┬──▶ branch 0: base + its own writes ──┐
                                               ├──▶ branch 1: base + its own writes ──┤ writes, in branch order
                                               └──▶ …                                 ▼
    around   ◀───────────────────────────────────────────────── ScopesClosed ── data + all of them

Branches share the base tree; opening 10 000 of them copies nothing.
"""

from __future__ import annotations

from pointsman.engine import events
from pointsman.engine.concurrency import at_once
from pointsman.engine.data import Data
from pointsman.engine.events import Write
from pointsman.engine.failures import Failure
from pointsman.engine.state import BranchState, ExecutionState, Opening, ScopeState, Written
from pointsman.engine.steps import Scope, Step, Thread
from pointsman.engine.tokens import settle
from pointsman.values import Json


def item_of(opening: Opening, branch: int) -> tuple[Json, str | None, int]:
    """The item, its key, and its number, of a branch."""
    number = branch // len(opening.starts)
    if opening.items is None:
        key = opening.keys[branch] if branch < len(opening.keys) else None
        return None, key, branch
    return opening.items[number], opening.keys[number], number


def begin(state: ExecutionState, key: Scope) -> ScopeState:
    """Make the scope of a branch when its first step comes."""
    last = key[-1]
    step = Step(last.parallel, key[:-1], last.visit)
    opening = state.openings.get(step)
    if opening is None:  # behind `trigger: each` the parallel's step carries a thread
        step = next(s for s in state.openings if s[:3] == step[:3])
        opening = state.openings[step]
    item, item_key, number = item_of(opening, last.branch)
    names = dict(opening.scope.names)
    if opening.items is not None or item_key is not None:
        names |= {"item": item if opening.items is not None else item_key, "index": number, "key": item_key}
        if opening.item_name is not None:
            names[opening.item_name] = item
    scope = ScopeState(
        key, opening.scope, opening, Data(opening.base), names, opening.base_nodes, item_key or opening.scope.item_key
    )
    state.scopes[key] = scope
    opening.next = max(opening.next, last.branch + 1)
    opening.running += 1
    return scope


def remember(scope: ScopeState, write: Write, value: Json, thread: Thread) -> None:
    """Keep a write for the data around, in thread order among those that ran at once.

    A `set` of the same path replaces the one before it when nothing is between.
    """
    writes = scope.writes
    if (
        write.reduce in ("set", "last")
        and writes
        and writes[-1].write.path == write.path
        and writes[-1].thread == thread
    ):
        writes.pop()
    at = len(writes)
    while at and writes[at - 1].thread > thread and at_once(thread, writes[at - 1].thread):
        at -= 1
    writes.insert(at, Written(Write(write.path, write.reduce), value, thread))


def settle_branch(state: ExecutionState, event: events.BranchSettled) -> None:
    """Fold: a branch is accounted for. Its scope is gone; what it wrote waits for the join."""
    opening = state.openings[event.step]
    key = opening.branch_scope(event.branch)
    scope = state.scopes.pop(key, None)
    value: Json = None
    if event.after is not None:
        value = state.left[event.after].value
    elif event.merged and scope is not None:
        for arrival in event.merged:
            value = _parked_value(scope, arrival)
    elif event.failure is not None:
        value = failure_of(event.failure)
    if scope is not None:
        opening.running -= 1
        if opening.detached:
            if opening.running == 0:
                state.openings.pop(event.step, None)
            return
    opening.next = max(opening.next, event.branch + 1)
    opening.settled[event.branch] = BranchState(
        event.outcome,
        value,
        scope.writes if scope is not None else [],
        scope.nodes if scope is not None else {},
        event.failure,
    )
    opening.arrived += event.outcome == "arrived"


def _parked_value(scope: ScopeState, arrival: events.Arrival) -> Json:
    for parked in scope.parked.values():
        waiting = parked.get((arrival.edge, arrival.thread))
        if waiting is not None:
            return waiting.left.value
    return None


def failure_of(failure: Failure) -> Json:
    """A failure as a join shows it."""
    return {"error": {"code": failure.code, "message": failure.message, "retryable": failure.retryable}}


def close(state: ExecutionState, event: events.ScopesClosed) -> None:
    """Fold: the writes of the named branches join the data around; the parallel's step is over."""
    opening = state.openings[event.step]
    around = opening.scope
    parent = around.opening
    thread = state.steps[event.step].left.thread
    for branch in event.branches:
        settled = opening.settled[branch]
        for write, value, _ in settled.writes:
            around.data.write(write, value)
            if parent is not None:
                remember(around, write, value, thread)
        around.nodes.update(settled.nodes)
    value = event.result
    if event.brought is not None:
        value = [opening.settled[branch].value for branch in event.brought]
    opening.settled = {}
    at = settle(state, event.step)
    state.left[event.step] = at.left._replace(value=value)
    if not event.forgotten and opening.running > 0:
        opening.detached = True
        state.openings[event.step] = opening
