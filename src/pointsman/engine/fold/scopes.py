"""Scopes: the data of a branch of a parallel, its writes and their merge, its open steps, and arrivals that wait.

    around   ─ data as it was at the opening ──┬──▶ branch 0: base + its own writes ──┐
                                               ├──▶ branch 1: base + its own writes ──┤ writes, in branch order
                                               └──▶ …                                 ▼
    around   ◀───────────────────────────────────────────────── ScopesClosed ── data + all of them

Branches share the base tree; opening 10 000 of them copies nothing. Both `decide` and `fold` rely on exact counters of
open steps, running steps and tokens. An arrival is parked at a node that waits for others, or held while the execution
is halted; `decide` reads the input of a step from here, `fold` consumes it.
"""

from __future__ import annotations

from msgspec.structs import replace

from pointsman.engine.data import REPLACING, Data
from pointsman.engine.events import steps as step_events
from pointsman.engine.failures import Failure
from pointsman.engine.state import (
    BranchState,
    ExecutionState,
    ParallelFrame,
    PendingArrival,
    ScopeState,
    StepOutput,
    StepState,
)
from pointsman.engine.steps import Arrival, DataEdit, Lineage, Scope, Step, Write, lineage_path
from pointsman.values import Json


def item_of(opening: ParallelFrame, branch: int) -> tuple[Json, str | None, int]:
    """Return the item of a branch, its key and its number."""
    number = branch // len(opening.starts)
    if opening.items is None:
        key = opening.keys[branch] if branch < len(opening.keys) else None
        return None, key, branch
    return opening.items[number], opening.keys[number], number


def opened(state: ExecutionState, event: step_events.ScopesOpened) -> None:
    """Fold: open a parallel. The scope of a branch is created when control enters it."""
    at = state.steps[event.step]
    scope = at.scope
    nodes: dict[str, Json] = {**scope.base_nodes, **scope.nodes}
    state.parallel_frames[event.step] = ParallelFrame(
        event.step,
        scope,
        event.starts,
        event.items,
        event.keys,
        event.item_name,
        at.incoming,
        scope.data.shared(),
        nodes,
        event.joined,
        len(event.starts) * (1 if event.items is None else len(event.items)),
    )


def begin_scope(state: ExecutionState, key: Scope) -> ScopeState:
    """Create the scope of a branch on its first step."""
    last = key[-1]
    opening = state.parallel_frames[Step(last.parallel, key[:-1], last.visit, last.lineage)]
    item, item_key, number = item_of(opening, last.branch)
    names = dict(opening.scope.names)
    if opening.items is not None or item_key is not None:
        names |= {"item": item if opening.items is not None else item_key, "index": number, "key": item_key}
        if opening.item_name is not None:
            names[opening.item_name] = item
    inherited = opening.scope.item_key if item_key is None else item_key
    scope = ScopeState(key, opening.scope, opening, Data(opening.base), names, opening.base_nodes, inherited)
    state.scopes[key] = scope
    opening.next = max(opening.next, last.branch + 1)
    opening.running += 1
    return scope


def write(scope: ScopeState, node: str, thread: Lineage, writes: tuple[Write, ...], result: Json) -> None:
    """Apply the writes of a step to its scope; in a branch, record them for the surrounding scope."""
    for write in writes:
        _apply(scope, node, thread, write, result if write.whole else write.value)


def _apply(scope: ScopeState, node: str, thread: Lineage, write: Write, value: Json) -> None:
    if thread or scope.write_log:
        scope.write_log.write(scope.data, write, value, thread, node)
    else:
        scope.data.write(write, value)
    if scope.opening is not None:
        _remember(scope, write, value, thread)


def _remember(scope: ScopeState, write: Write, value: Json, thread: Lineage) -> None:
    """Record a write for the surrounding scope. A `set` of the same path replaces the directly preceding one."""
    if write.reduce in REPLACING and scope.writes:
        last, _, before = scope.writes[-1]
        if last.path == write.path and before == thread:
            scope.writes.pop()
    scope.writes.append((Write(write.path, write.reduce), value, thread))


def write_of(edit: DataEdit) -> Write:
    """Return an edit as a write that never conflicts."""
    return Write(edit.path, "last", edit.value)


def edit(state: ExecutionState, change: DataEdit) -> None:
    """Fold: a person replaces a value, regardless of earlier writers. In a branch, the edit follows the writes it
    covers.
    """
    scope = state.scopes[change.scope]
    scope.write_log.forget(change.path)
    scope.data.write(write_of(change), change.value)
    if scope.opening is not None:
        threads = [thread for write, _, thread in scope.writes if _overlap(write.path, change.path)]
        scope.writes.append((Write(change.path, "last"), change.value, max(threads, default=())))


def _overlap(first: tuple[str | int, ...], other: tuple[str | int, ...]) -> bool:
    """Return whether one path is at, above or below the other."""
    width = min(len(first), len(other))
    return first[:width] == other[:width]


def settle_branch(state: ExecutionState, event: step_events.BranchSettled) -> None:
    """Fold: settle a branch. Its scope is removed; its writes wait for the join."""
    opening = state.parallel_frames[event.step]
    key = opening.branch_scope(event.branch)
    scope = state.scopes.pop(key, None)
    if scope is None:  # it went straight to its join
        scope = begin_scope(state, key)
        del state.scopes[key]
    if state.held_arrivals:
        state.held_arrivals = [arrival for arrival in state.held_arrivals if arrival.scope[: len(key)] != key]
    opening.running -= 1
    if opening.detached:
        if opening.running == 0 and opening.next == opening.total:
            del state.parallel_frames[event.step]
        return
    gives = event.outcome in ("arrived", "ended")
    opening.settled[event.branch] = BranchState(
        event.outcome,
        _settled_value(state, scope, event),
        [(write, value) for write, value, _ in _in_order(scope)] if gives and scope.writes else (),
        scope.nodes if gives else {},
        event.failure,
    )
    opening.arrived += event.outcome == "arrived"


def _in_order(scope: ScopeState) -> list[tuple[Write, Json, Lineage]]:
    return sorted(scope.writes, key=lambda write: write[2]) if scope.write_log else scope.writes


def _settled_value(state: ExecutionState, scope: ScopeState, event: step_events.BranchSettled) -> Json:
    if event.after is not None:
        opening = state.parallel_frames[event.step]
        return opening.incoming.value if event.after == event.step else state.row.outputs[event.after].value
    if event.merged:
        last = event.merged[-1]
        (at_join,) = scope.parked.values()  # the branch has no other parked arrivals
        return at_join[last.edge, lineage_path(last.lineage)].incoming.value
    return failure_of(event.failure) if event.failure is not None else None


def failure_of(failure: Failure) -> Json:
    """Return a failure as the value that a join receives."""
    return {"error": {"code": failure.code, "message": failure.message, "retryable": failure.retryable}}


def close_scopes(state: ExecutionState, event: step_events.ScopesClosed) -> None:
    """Fold: merge the writes of the named branches into the surrounding scope and end the step of the parallel."""
    opening = state.parallel_frames[event.step]
    around = opening.scope
    at = settle_step(state, event.step)
    for branch in event.branches:
        settled = opening.settled[branch]
        for write, value in settled.writes:
            _apply(around, event.step.node, at.incoming.lineage, write, value)
        around.nodes.update(settled.nodes)
    value = event.result
    if event.brought is not None:
        value = [opening.settled[branch].value for branch in event.brought]
    opening.settled = {}
    state.row.outputs[event.step] = replace(at.incoming, value=value)
    if not event.forgotten:
        opening.detached = True
        state.parallel_frames[event.step] = opening


def tick(state: ExecutionState, more: int = 0) -> None:
    """Add the working time up to now. Call it before the status changes; `more` is the change in running steps."""
    counters = state.counters
    if counters.running_steps and state.status in ("running", "paused"):
        counters.worked_s += state.at - counters.working_since
    counters.working_since = state.at
    counters.running_steps += more


def add_step(state: ExecutionState, at: StepState) -> None:
    """Add an open step."""
    scope, node = at.scope, at.step.node
    scope.open_steps[node] = scope.open_steps.get(node, 0) + 1
    scope.tokens += 1
    state.steps[at.step] = at
    if at.is_running:
        tick(state, 1)


def _stop_awaiting(state: ExecutionState, name: str) -> None:
    remaining = state.events.waiters[name] - 1
    if remaining:
        state.events.waiters[name] = remaining
    else:
        del state.events.waiters[name]


def remove_gate(state: ExecutionState, at: StepState) -> None:
    """Remove the gate of the step."""
    at.gate = None
    beside = state.gates[at.step.scope]
    del beside[at.step]
    if not beside:
        del state.gates[at.step.scope]


def settle_step(state: ExecutionState, step: Step) -> StepState:
    """Remove a finished step from the open steps."""
    at = state.steps.pop(step)
    if at.gate is not None:
        state.row.changed_gates[step] = None
        remove_gate(state, at)
    state.parallel_frames.pop(step, None)
    if at.is_running:
        tick(state, -1)
        at.is_running = False
    if at.needs:
        at.needs = ""
        del state.steps_without_worker[step]
    scope, node = at.scope, step.node
    remaining = scope.open_steps[node] - 1
    if remaining:
        scope.open_steps[node] = remaining
    else:
        del scope.open_steps[node]
    if at.timers:
        for timer in at.timers:
            state.timers.pop(timer, None)
        at.timers = ()
    if at.event is not None:
        _stop_awaiting(state, at.event)
    scope.tokens -= 1
    return at


NOBODY = Step("", (), 0)
"""Pseudo-step used as the sender when the engine routes to the fallback node."""


def held_sender(number: int) -> Step:
    """Return the pseudo-step that stands for the sender of a held arrival."""
    return Step("", (), number + 1)


def consume_arrivals(
    state: ExecutionState,
    scope: ScopeState,
    node: str,
    after: Step | None,
    merged: tuple[Arrival, ...],
    thread: Lineage,
) -> StepOutput:
    """Consume the parked arrivals of a step and return its input."""
    if not merged:
        return with_lineage(StepOutput(None) if after is None else output_of(state, scope, after), thread)
    parked = scope.parked[node]
    output = StepOutput(None)
    for arrival in merged:
        output = parked.pop((arrival.edge, lineage_path(arrival.lineage))).incoming
    if not parked:
        del scope.parked[node]
    scope.tokens -= len(merged)  # the consuming step counts as a token from here on
    return with_lineage(output, thread)


def with_lineage(output: StepOutput, thread: Lineage) -> StepOutput:
    """Return an output with the given lineage; almost always it has that lineage already."""
    return output if output.lineage == thread else replace(output, lineage=thread)


def output_of(state: ExecutionState, scope: ScopeState, step: Step) -> StepOutput:
    """Return the output of a step for a step in `scope`; inside a parallel, the branches receive its incoming
    output.
    """
    opening = scope.opening
    return opening.incoming if opening is not None and opening.step == step else state.row.outputs[step]


def scope_of(state: ExecutionState, key: Scope) -> ScopeState:
    """Return the scope; the scope of a branch is created on its first step."""
    scope = state.scopes.get(key)
    return scope if scope is not None else begin_scope(state, key)


def parked(scope: ScopeState, node: str, arrival: Arrival) -> StepOutput:
    """Return the output that a parked arrival carries."""
    return scope.parked[node][arrival.edge, lineage_path(arrival.lineage)].incoming


def arrivals_parked(scope: ScopeState, node: str, merged: tuple[Arrival, ...]) -> tuple[PendingArrival, ...]:
    """Return those of these arrivals that are parked at a node."""
    return tuple(scope.parked[node][arrival.edge, lineage_path(arrival.lineage)] for arrival in merged)


def repark(scope: ScopeState, arrived: tuple[PendingArrival, ...]) -> None:
    """Park again the arrivals that started a step together."""
    for arrival in arrived:
        scope.parked.setdefault(arrival.node, {})[arrival.edge, lineage_path(arrival.incoming.lineage)] = arrival
    scope.tokens += len(arrived)


def park_arrival(state: ExecutionState, event: step_events.ArrivalParked) -> None:
    """Fold: of two arrivals over the same edges the one with the greater lineage stays, independent of timing."""
    scope = scope_of(state, event.scope)
    at_node = scope.parked.setdefault(event.node, {})
    key = (event.edge, lineage_path(event.lineage))
    arrivals = at_node.get(key)
    scope.tokens += arrivals is None
    if arrivals is None or arrivals.incoming.lineage <= event.lineage:
        output = with_lineage(output_of(state, scope, event.after), event.lineage)
        at_node[key] = PendingArrival(event.node, event.scope, event.edge, output)


def hold_arrival(state: ExecutionState, event: step_events.ArrivalHeld) -> None:
    scope = scope_of(state, event.scope)
    output = StepOutput(None) if event.after is None else output_of(state, scope, event.after)
    output = replace(output, lineage=event.lineage, caller=event.caller or output.caller)
    state.held_arrivals.append(PendingArrival(event.node, event.scope, event.edge, output, event.again))
    scope.tokens += 1


def resume_held(state: ExecutionState) -> int:
    """Release the held arrivals as outputs of pseudo-steps, numbered in holding order. Return how many there were."""
    count = len(state.held_arrivals)
    for number, waiting in enumerate(state.held_arrivals):
        state.scopes[waiting.scope].tokens -= 1
        state.row.outputs[held_sender(number)] = waiting.incoming
    state.held_arrivals = []
    return count
