"""Entering: when an arrival starts a node, and when it has to wait there for others.

    one incoming edge, or `each`            starts at once
    several edges, alone in the scope       starts at once
    several edges, others on their way      parked ──▶ released when no other token of the scope can arrive
    several parked nodes that only wait for each other      all released together, in document order

A token can arrive at N when the plan has a path from where it is to N. Inner scopes count as one token at their
parallel. Tokens in the queue are settled first, so `release` looks at a state that stands still.
"""

from __future__ import annotations

from pointsman.engine import branching, joining, looping, starting
from pointsman.engine.concurrency import common
from pointsman.engine.desk import Arrive, Desk, in_order
from pointsman.engine.events import Arrival, Held, Parked
from pointsman.engine.plan import Gather, PlanNode, Repeat
from pointsman.engine.state import ScopeState
from pointsman.values import END


def arrive(desk: Desk, move: Arrive) -> None:
    """Control comes to a node."""
    desk.in_flight[move.scope] -= 1
    state = desk.state
    if move.scope and move.scope not in state.scopes and not branching.open_for(desk, move.scope):
        return
    if state.stands_still:
        desk.emit(_held(move))
        return
    if move.node == END:
        starting.finish(desk, move)
        return
    node = desk.plan.nodes[move.node]
    scope = desk.scope(move.scope)
    if (
        move.after is None
        or node.enter in ("arrival", "each")
        or joining.was_fired(node, scope, move)
        or _starts_alone(desk, node, scope)
    ):
        starting.start(desk, node, scope, move)
        return
    if isinstance(node.does, Repeat) and looping.starts_now(desk, node, scope, move):
        starting.start(desk, node, scope, move)
        return
    if isinstance(node.does, Gather) and joining.closes(node, scope) and desk.alone(scope):
        branching.branch_arrived(desk, node, scope, after=move.after)
        return
    park(desk, scope, move)


def _starts_alone(desk: Desk, node: PlanNode, scope: ScopeState) -> bool:
    if node.enter == "merge" or (isinstance(node.does, Gather) and not joining.closes(node, scope)):
        return desk.alone(scope)
    return False


def _held(move: Arrive) -> Held:
    return Held(
        node=move.node,
        scope=move.scope,
        edge="" if move.edge is None else move.edge.id,
        after=move.after,
        thread=move.thread,
        caller=move.caller,
    )


def park(desk: Desk, scope: ScopeState, move: Arrive) -> None:
    """The arrival waits. One of the same edge and thread that waits there already is replaced."""
    assert move.after is not None
    edge = "" if move.edge is None else move.edge.id
    desk.emit(Parked(node=move.node, scope=scope.key, edge=edge, after=move.after, thread=move.thread))
    desk.touched[scope.key] = None


def release(desk: Desk) -> bool:
    """Start what is parked and cannot be joined by anything that still moves. True if anything started."""
    touched, desk.touched = desk.touched, {}
    for key in touched:
        scope = desk.state.scopes.get(key)
        if scope is None or desk.state.ended or desk.state.stands_still:
            continue
        if scope.parked and release_scope(desk, scope):
            desk.touched |= touched
            return True
        if key and scope.tokens == 0 and not desk.in_flight.get(key) and branching.branch_ended(desk, scope):
            desk.touched |= touched
            return True
    return False


def release_scope(desk: Desk, scope: ScopeState) -> bool:
    """Start the parked nodes of one scope that nothing can reach any more; else those that only wait for each other."""
    plan = desk.plan
    parked = sorted(scope.parked, key=lambda n: plan.nodes[n].index)
    waits = {node: _waits_for(desk, scope, plan.nodes[node], parked) for node in parked}
    ready = [node for node in parked if _is_ready(node, waits)]
    for node_id in ready:
        _start_parked(desk, scope, plan.nodes[node_id])
    return bool(ready)


def _waits_for(desk: Desk, scope: ScopeState, node: PlanNode, parked: list[str]) -> set[str] | None:
    """The other parked nodes from which it can be reached; None when something that moves can reach it."""
    if isinstance(node.does, Repeat):
        return looping.waits_for(desk, scope, node, parked)
    before = desk.plan.reaches(node.id)
    live = scope.live
    if len(live) <= len(before):
        if any(at in before for at in live):
            return None
    elif any(at in live for at in before):
        return None
    return {other for other in parked if other != node.id and other in before}


def _is_ready(node: str, waits: dict[str, set[str] | None]) -> bool:
    """Nothing that moves can reach it, and all that it waits for waits for it, directly or not."""
    mine = waits[node]
    if mine is None:
        return False
    for other in mine:
        theirs = waits[other]
        if theirs is None or node not in theirs:
            return False
    return True


def _start_parked(desk: Desk, scope: ScopeState, node: PlanNode) -> None:
    waiting = scope.parked[node.id]
    keys = looping.side(node, scope, list(waiting)) if isinstance(node.does, Repeat) else list(waiting)
    merged = in_order(keys, desk.plan.edge_index)
    if isinstance(node.does, Gather) and joining.closes(node, scope):
        branching.branch_arrived(desk, node, scope, merged=merged)
        return
    starting.start(desk, node, scope, _merged_move(scope, node, merged), merged)


def _merged_move(scope: ScopeState, node: PlanNode, merged: tuple[Arrival, ...]) -> Arrive:
    thread = common([arrival.thread for arrival in merged])
    return Arrive(node.id, scope.key, None, None, thread)
