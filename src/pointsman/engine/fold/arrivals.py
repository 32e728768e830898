"""Arrivals: the output that reaches a step, arrivals parked at a node, arrivals held while the execution is halted.

`decide` reads the input of a step from here, `fold` consumes it.
"""

from __future__ import annotations

from msgspec.structs import replace

from pointsman.engine.events import steps as step_events
from pointsman.engine.fold import scopes
from pointsman.engine.state import ExecutionState, PendingArrival, ScopeState, StepOutput
from pointsman.engine.steps import Arrival, Lineage, Scope, Step, lineage_path

NOBODY = Step("", (), 0)
"""Pseudo-step used as the sender when the engine routes to the fallback node."""


def held_step(number: int) -> Step:
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
        return on_thread(StepOutput(None) if after is None else output_of(state, scope, after), thread)
    parked = scope.parked[node]
    left = StepOutput(None)
    for arrival in merged:
        left = parked.pop((arrival.edge, lineage_path(arrival.lineage))).incoming
    if not parked:
        del scope.parked[node]
    scope.tokens -= len(merged)  # the consuming step counts as a token from here on
    return on_thread(left, thread)


def on_thread(left: StepOutput, thread: Lineage) -> StepOutput:
    """Return an output with the given lineage; almost always it has that lineage already."""
    return left if left.lineage == thread else replace(left, lineage=thread)


def output_of(state: ExecutionState, scope: ScopeState, step: Step) -> StepOutput:
    """Return the output of a step for a step in `scope`; inside a parallel, the branches receive its incoming
    output.
    """
    opening = scope.opening
    return opening.incoming if opening is not None and opening.step == step else state.row.outputs[step]


def scope_of(state: ExecutionState, key: Scope) -> ScopeState:
    """Return the scope; the scope of a branch is created on its first step."""
    scope = state.scopes.get(key)
    return scope if scope is not None else scopes.begin_scope(state, key)


def parked(scope: ScopeState, node: str, arrival: Arrival) -> StepOutput:
    """Return the output that a parked arrival carries."""
    return scope.parked[node][arrival.edge, lineage_path(arrival.lineage)].incoming


def waiting(scope: ScopeState, node: str, merged: tuple[Arrival, ...]) -> tuple[PendingArrival, ...]:
    """Return those of these arrivals that are parked at a node."""
    return tuple(scope.parked[node][arrival.edge, lineage_path(arrival.lineage)] for arrival in merged)


def repark(scope: ScopeState, arrived: tuple[PendingArrival, ...]) -> None:
    """Park again the arrivals that started a step together."""
    for one in arrived:
        scope.parked.setdefault(one.node, {})[one.edge, lineage_path(one.incoming.lineage)] = one
    scope.tokens += len(arrived)


def park(state: ExecutionState, event: step_events.ArrivalParked) -> None:
    """Fold: of two arrivals over the same edges the one with the greater lineage stays, independent of timing."""
    scope = scope_of(state, event.scope)
    at_node = scope.parked.setdefault(event.node, {})
    key = (event.edge, lineage_path(event.lineage))
    known = at_node.get(key)
    scope.tokens += known is None
    if known is None or known.incoming.lineage <= event.lineage:
        left = on_thread(output_of(state, scope, event.after), event.lineage)
        at_node[key] = PendingArrival(event.node, event.scope, event.edge, left)


def hold(state: ExecutionState, event: step_events.ArrivalHeld) -> None:
    scope = scope_of(state, event.scope)
    left = StepOutput(None) if event.after is None else output_of(state, scope, event.after)
    left = replace(left, lineage=event.lineage, caller=event.caller or left.caller)
    state.held_arrivals.append(PendingArrival(event.node, event.scope, event.edge, left, event.again))
    scope.tokens += 1


def resume_held(state: ExecutionState) -> int:
    """Release the held arrivals as outputs of pseudo-steps, numbered in holding order. Return how many there were."""
    count = len(state.held_arrivals)
    for number, waiting in enumerate(state.held_arrivals):
        state.scopes[waiting.scope].tokens -= 1
        state.row.outputs[held_step(number)] = waiting.incoming
    state.held_arrivals = []
    return count
