"""Arrivals: the output that reaches a step, arrivals parked at a node, arrivals held while the execution is halted.

`decide` uses it to see what a step will receive, `fold` to consume it.
"""

from __future__ import annotations

from msgspec.structs import replace

from pointsman.engine.events import steps as step_events
from pointsman.engine.fold import scopes
from pointsman.engine.lineage import lineage_path
from pointsman.engine.state import ExecutionState, PendingArrival, ScopeState, StepOutput
from pointsman.engine.steps import Lineage, Scope, Step
from pointsman.engine.writes import Arrival

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
    scope.tokens -= len(merged)  # the step that consumes them counts from here on
    return on_thread(left, thread)


def on_thread(left: StepOutput, thread: Lineage) -> StepOutput:
    """The same on a line of control; almost always its own."""
    return left if left.lineage == thread else replace(left, lineage=thread)


def output_of(state: ExecutionState, scope: ScopeState, step: Step) -> StepOutput:
    """What a step left behind for a step in `scope`; a parallel gives its branches what reached it."""
    opening = scope.opening
    return opening.incoming if opening is not None and opening.step == step else state.step_outputs[step]


def scope_of(state: ExecutionState, key: Scope) -> ScopeState:
    """The scope; a branch's is made when its first step comes."""
    scope = state.scopes.get(key)
    return scope if scope is not None else scopes.begin(state, key)


def parked(scope: ScopeState, node: str, arrival: Arrival) -> StepOutput:
    """What a parked arrival brought."""
    return scope.parked[node][arrival.edge, lineage_path(arrival.lineage)].incoming


def waiting(scope: ScopeState, node: str, merged: tuple[Arrival, ...]) -> tuple[PendingArrival, ...]:
    """What is parked at a node of these arrivals."""
    return tuple(scope.parked[node][arrival.edge, lineage_path(arrival.lineage)] for arrival in merged)


def repark(scope: ScopeState, arrived: tuple[PendingArrival, ...]) -> None:
    """What started a step together waits at its node as it did before."""
    for one in arrived:
        scope.parked.setdefault(one.node, {})[one.edge, lineage_path(one.incoming.lineage)] = one
    scope.tokens += len(arrived)


def park(state: ExecutionState, event: step_events.ArrivalParked) -> None:
    """Fold: of two arrivals that came the same way the later one stays, whichever was faster."""
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
    """What was held may arrive now: it is left by stand-in steps, numbered as it was held. How many there were."""
    count = len(state.held_arrivals)
    for number, waiting in enumerate(state.held_arrivals):
        state.scopes[waiting.scope].tokens -= 1
        state.step_outputs[held_step(number)] = waiting.incoming
    state.held_arrivals = []
    return count
