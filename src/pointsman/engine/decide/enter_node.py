"""Entering: when an arrival starts a node, and when it has to wait there for others.

    one incoming edge, or `each`            starts at once
    several edges, alone in the scope       starts at once
    several edges, others on their way      parked ──▶ released when no other token of the scope can arrive
    several parked nodes that only wait for each other      all released together, in document order
    the join of a branch                    when nothing else of the branch moves

A token can arrive at N when the plan has a path from where it is to N. Inner scopes count as one token at their
parallel. Tokens in the queue are settled first, so `release` looks at a state that stands still.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from pointsman.engine.actions import JoinAction, LoopAction
from pointsman.engine.decide import limits, loops, parallels, partial_run, start_node
from pointsman.engine.decide.context import DecisionContext, EnterNode, in_order
from pointsman.engine.decide.join_values import closes, was_fired
from pointsman.engine.events.lifecycle import ExecutionPaused
from pointsman.engine.events.steps import ArrivalParked
from pointsman.engine.fold.arrivals import NOBODY
from pointsman.engine.lineage import closed, together
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.state import STANDS_STILL, ScopeState
from pointsman.engine.steps import Lineage
from pointsman.engine.writes import Arrival
from pointsman.values import END

AT_ONCE: Final = ("arrival", "each")


def arrive(desk: DecisionContext, move: EnterNode) -> None:
    """Control comes to a node."""
    scope = desk.state.scopes.get(move.scope)
    if scope is None:
        return  # the branch was settled while this was on its way
    trial = desk.plan.trial
    if trial is not None and not partial_run.goes_on(desk, trial, move):
        desk.touched[scope.key] = None
        return
    if (desk.state.status in STANDS_STILL or desk.fatal) and not _asks_on(desk, scope, move):
        if not move.merged:
            limits.hold(desk, move)
        return
    if move.node == END:
        start_node.finish(desk, move)
        return
    node = desk.plan.nodes[move.node]
    if node.enter in AT_ONCE:
        start_node.start(desk, node, scope, move)
    elif isinstance(node.does, JoinAction) and closes(node, scope):
        if desk.alone(scope) and move.after is not None:
            parallels.settle(desk, scope, "arrived", after=move.after)
        else:
            park(desk, scope, move)
    elif _starts_now(desk, node, scope, move):
        thread = _thread(desk.plan, node, [move.thread], ends=loops.ends_round(node, scope, move.edge))
        move = move if thread == move.thread else replace(move, thread=thread)
        start_node.start(desk, node, scope, move, move.merged)
    else:
        park(desk, scope, move)


def _asks_on(desk: DecisionContext, scope: ScopeState, move: EnterNode) -> bool:
    """Control comes to the gate that asks whether an interrupted execution may go on."""
    gate = desk.state.handoff
    return gate is not None and move.after == NOBODY and desk.visit(scope, desk.plan.nodes[move.node], ()) == gate


def _starts_now(desk: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode) -> bool:
    if move.again or move.after is None or was_fired(node, scope, move):
        return True
    if isinstance(node.does, LoopAction):
        return loops.starts_now(desk, node, scope, move)
    return desk.alone(scope)


def _thread(plan: Plan, node: PlanNode, threads: list[Lineage], *, ends: bool) -> Lineage:
    """The thread of a token made of all that arrived. `ends`: it ends a round, so it waited for the body alone."""
    latest = max(threads)
    if not latest or node.enter not in ("merge", "loop"):
        return latest
    body = node.does.body if ends and isinstance(node.does, LoopAction) else None
    return closed(latest, lambda split: (body is None or split in body) and plan.meets(split, node.id))


def park(desk: DecisionContext, scope: ScopeState, move: EnterNode) -> None:
    """The arrival waits. One of the same edge and thread that waits there already is replaced."""
    assert move.after is not None
    edge = "" if move.edge is None else move.edge.id
    desk.emit(ArrivalParked(node=move.node, scope=scope.key, edge=edge, after=move.after, thread=move.thread))
    desk.touched[scope.key] = None


def release(desk: DecisionContext) -> bool:
    """Start what is parked and cannot be joined by anything that still moves. True if anything started."""
    if desk.fatal:
        return False
    while desk.touched:
        key = next(iter(desk.touched))
        scope = desk.state.scopes.get(key)
        if scope is not None and desk.state.status not in STANDS_STILL:
            if scope.parked and release_scope(desk, scope):
                return True
            if key and scope.tokens == 0 and parallels.branch_ended(desk, scope):
                return True
        desk.touched.pop(key, None)
    return False


def release_scope(desk: DecisionContext, scope: ScopeState) -> bool:
    """Start the parked nodes of one scope that nothing can reach any more; else those that only wait for each other."""
    plan = desk.plan
    parked = sorted(scope.parked, key=lambda n: plan.nodes[n].index)
    waits = {node: _waits_for(desk, scope, plan.nodes[node], parked) for node in parked}
    before = {node: _all_before(node, waits) for node in parked}
    ready = [node for node in parked if _is_ready(node, before)]
    if len(ready) > 1 and (tripped := _forbidden(desk, scope, ready)) is not None:
        limits.trip(desk, tripped)
        return True
    starts = [_parked_start(desk, scope, plan.nodes[node], before[node]) for node in ready]
    if len(ready) > 1 and _stops(desk, scope, starts):
        return True
    for start in starts:
        _start_parked(desk, scope, start)
    return bool(ready)


class ParkedStart(NamedTuple):
    """A node that starts with all that is parked there."""

    node: PlanNode
    merged: tuple[Arrival, ...]
    thread: Lineage


def _stops(desk: DecisionContext, scope: ScopeState, starts: list[ParkedStart]) -> bool:
    """A pause before one of several that start together comes before all of them."""
    if desk.plan.trial is None and not desk.state.stops.stepping:
        return False
    for node, _, thread in starts:
        step = desk.visit(scope, node, thread)
        if not (isinstance(node.does, JoinAction) and closes(node, scope)) and partial_run.stops_before(
            desk, node, step
        ):
            desk.emit(ExecutionPaused(before=step))
            return True
    return False


def _forbidden(desk: DecisionContext, scope: ScopeState, ready: list[str]) -> limits.ReachedLimit | None:
    """A limit that stops one of several that start together stops all: what one leads to must not join the rest."""
    if desk.state.compensation is not None:
        return None
    for number, node in enumerate(ready):
        thread = max(one.left.thread for one in scope.parked[node].values())
        move = EnterNode(node, scope.key, None, None, thread)
        tripped = limits.before_step(desk, desk.plan.nodes[node], scope, move, beside=number)
        if tripped is not None:
            return tripped
    return None


def _waits_for(desk: DecisionContext, scope: ScopeState, node: PlanNode, parked: list[str]) -> set[str] | None:
    """The other parked nodes from which it can be reached; None when something that moves can reach it."""
    if isinstance(node.does, LoopAction) and loops.comes_back(node, scope):
        return loops.waits_for(node.does, scope, parked)
    if closes(node, scope):  # a branch is over when all of it is: what it still wrote later would be lost
        return None if scope.live else {other for other in parked if other != node.id}
    before = desk.plan.reaches(node.id)
    live = scope.live
    if len(live) <= len(before):
        if any(at in before for at in live):
            return None
    elif any(at in live for at in before):
        return None
    return {other for other in parked if other != node.id and other in before and other not in node.loops}


def _is_ready(node: str, before: dict[str, set[str] | None]) -> bool:
    """Nothing that moves can reach it, and all that it waits for waits for it, directly or not."""
    mine = before[node]
    return mine is not None and all(node in (before[other] or ()) for other in mine)


def _all_before(node: str, waits: dict[str, set[str] | None]) -> set[str] | None:
    """All that it waits for, directly or not; None when something that moves is among it."""
    found: set[str] = set()
    pending = [node]
    while pending:
        direct = waits[pending.pop()]
        if direct is None:
            return None
        pending += direct - found
        found |= direct
    return found - {node}


def _parked_start(desk: DecisionContext, scope: ScopeState, node: PlanNode, mates: set[str] | None) -> ParkedStart:
    """`mates`: nodes that start together with it because they only wait for each other."""
    waiting = [(one.edge, one.left.thread) for one in scope.parked[node.id].values()]
    keys = loops.side(node, scope, waiting) if isinstance(node.does, LoopAction) else waiting
    merged = in_order(keys, desk.plan.edge_index)
    ends = isinstance(node.does, LoopAction) and loops.comes_back(node, scope)
    thread = _thread(desk.plan, node, [arrival.thread for arrival in merged], ends=ends)
    if mates:
        first = min((node.id, *mates), key=lambda n: desk.plan.nodes[n].index)
        thread = together(thread, first, node.index)
    return ParkedStart(node, merged, thread)


def _start_parked(desk: DecisionContext, scope: ScopeState, start: ParkedStart) -> None:
    node, merged, thread = start
    if isinstance(node.does, JoinAction) and closes(node, scope):
        parallels.settle(desk, scope, "arrived", merged=merged)
    else:
        start_node.start(desk, node, scope, EnterNode(node.id, scope.key, None, None, thread), merged)
