"""Enter a node: an arrival starts it, or waits there for other arrivals.

    one incoming edge, or `each`            starts at once
    several edges, alone in the scope       starts at once
    several edges, others on their way      parked ──▶ released when no other token of the scope can arrive
    several parked nodes that only wait for each other      all released together, in document order
    the join of a branch                    when no other token of the branch moves

A token can arrive at N when the plan has a path from its position to N. Inner scopes count as one token at their
parallel. Queued transitions are processed first, so `release` sees a state in which nothing moves.
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
from pointsman.engine.lineage import joint_lineage, merged_lineage
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.state import HALTED, ScopeState
from pointsman.engine.steps import Lineage
from pointsman.engine.writes import Arrival
from pointsman.values import END

AT_ONCE: Final = ("arrival", "each")


def enter_node(ctx: DecisionContext, move: EnterNode) -> None:
    """Enter a node: start it, park the arrival, or hold it."""
    scope = ctx.state.scopes.get(move.scope)
    if scope is None:
        return  # the branch was settled while this transition was queued
    trial = ctx.plan.partial_run
    if trial is not None and not partial_run.goes_on(ctx, trial, move):
        ctx.dirty_scopes[scope.key] = None
        return
    if (ctx.state.status in HALTED or ctx.uncaught) and not _asks_on(ctx, scope, move):
        if not move.merged:
            limits.hold(ctx, move)
        return
    if move.node == END:
        start_node.finish(ctx, move)
        return
    node = ctx.plan.nodes[move.node]
    if node.enter in AT_ONCE:
        start_node.start(ctx, node, scope, move)
    elif isinstance(node.action, JoinAction) and closes(node, scope):
        if ctx.alone(scope) and move.after is not None:
            parallels.settle(ctx, scope, "arrived", after=move.after)
        else:
            park(ctx, scope, move)
    elif _starts_now(ctx, node, scope, move):
        thread = _thread(ctx.plan, node, [move.lineage], ends=loops.ends_round(node, scope, move.edge))
        move = move if thread == move.lineage else replace(move, lineage=thread)
        start_node.start(ctx, node, scope, move, move.merged)
    else:
        park(ctx, scope, move)


def _asks_on(ctx: DecisionContext, scope: ScopeState, move: EnterNode) -> bool:
    """Return whether control enters the gate that asks whether an interrupted execution may continue."""
    gate = ctx.state.limits.escalation_gate
    return gate is not None and move.after == NOBODY and ctx.visit(scope, ctx.plan.nodes[move.node], ()) == gate


def _starts_now(ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode) -> bool:
    if move.starts_node or move.after is None or was_fired(node, scope, move):
        return True
    if isinstance(node.action, LoopAction):
        return loops.starts_now(ctx, node, scope, move)
    return ctx.alone(scope)


def _thread(plan: Plan, node: PlanNode, threads: list[Lineage], *, ends: bool) -> Lineage:
    """Return the lineage of a token merged from several arrivals. `ends`: it ends a round, so it waited only for the
    body.
    """
    latest = max(threads)
    if not latest or node.enter not in ("merge", "loop"):
        return latest
    body = node.action.body if ends and isinstance(node.action, LoopAction) else None
    return merged_lineage(latest, lambda split: (body is None or split in body) and plan.meets(split, node.id))


def park(ctx: DecisionContext, scope: ScopeState, move: EnterNode) -> None:
    """Park an arrival at its node. It replaces an arrival over the same edge with the same lineage."""
    assert move.after is not None
    edge = "" if move.edge is None else move.edge.id
    ctx.emit(ArrivalParked(node=move.node, scope=scope.key, edge=edge, after=move.after, lineage=move.lineage))
    ctx.dirty_scopes[scope.key] = None


def release(ctx: DecisionContext) -> bool:
    """Start parked nodes that no moving token can reach. Return True if anything started."""
    if ctx.uncaught:
        return False
    while ctx.dirty_scopes:
        key = next(iter(ctx.dirty_scopes))
        scope = ctx.state.scopes.get(key)
        if scope is not None and ctx.state.status not in HALTED:
            if scope.parked and release_scope(ctx, scope):
                return True
            if key and scope.tokens == 0 and parallels.branch_ended(ctx, scope):
                return True
        ctx.dirty_scopes.pop(key, None)
    return False


def release_scope(ctx: DecisionContext, scope: ScopeState) -> bool:
    """Start the parked nodes of one scope that nothing can reach any more, or those that only wait for each other."""
    plan = ctx.plan
    parked = sorted(scope.parked, key=lambda n: plan.nodes[n].index)
    waits = {node: _waits_for(ctx, scope, plan.nodes[node], parked) for node in parked}
    before = {node: _all_before(node, waits) for node in parked}
    ready = [node for node in parked if _is_ready(node, before)]
    if len(ready) > 1 and (tripped := _forbidden(ctx, scope, ready)) is not None:
        limits.trip(ctx, tripped)
        return True
    starts = [_parked_start(ctx, scope, plan.nodes[node], before[node]) for node in ready]
    if len(ready) > 1 and _stops(ctx, scope, starts):
        return True
    for start in starts:
        _start_parked(ctx, scope, start)
    return bool(ready)


class ParkedStart(NamedTuple):
    """A node that starts with all its parked arrivals."""

    node: PlanNode
    merged: tuple[Arrival, ...]
    thread: Lineage


def _stops(ctx: DecisionContext, scope: ScopeState, starts: list[ParkedStart]) -> bool:
    """Pause before all nodes that start together if one of them has a breakpoint. Return True if paused."""
    if ctx.plan.partial_run is None and not ctx.state.pause.breakpoints.stepping:
        return False
    for node, _, thread in starts:
        step = ctx.visit(scope, node, thread)
        if not (isinstance(node.action, JoinAction) and closes(node, scope)) and partial_run.pauses_before(
            ctx, node, step
        ):
            ctx.emit(ExecutionPaused(before=step))
            return True
    return False


def _forbidden(ctx: DecisionContext, scope: ScopeState, ready: list[str]) -> limits.ReachedLimit | None:
    """Return a limit that stops one of several nodes that start together.

    It stops all of them: no token of one may join the others later.
    """
    if ctx.state.compensation is not None:
        return None
    for number, node in enumerate(ready):
        thread = max(one.incoming.lineage for one in scope.parked[node].values())
        move = EnterNode(node, scope.key, None, None, thread)
        tripped = limits.before_step(ctx, ctx.plan.nodes[node], scope, move, beside=number)
        if tripped is not None:
            return tripped
    return None


def _waits_for(ctx: DecisionContext, scope: ScopeState, node: PlanNode, parked: list[str]) -> set[str] | None:
    """Return the other parked nodes from which a node can be reached; None if a moving token can reach it."""
    if isinstance(node.action, LoopAction) and loops.comes_back(node, scope):
        return loops.waits_for(node.action, scope, parked)
    if closes(node, scope):  # a branch ends only when all its tokens have ended: later writes would be lost
        return None if scope.open_steps else {other for other in parked if other != node.id}
    before = ctx.plan.reaches(node.id)
    live = scope.open_steps
    if len(live) <= len(before):
        if any(at in before for at in live):
            return None
    elif any(at in live for at in before):
        return None
    return {other for other in parked if other != node.id and other in before and other not in node.position.loops}


def _is_ready(node: str, before: dict[str, set[str] | None]) -> bool:
    """Return whether no moving token can reach the node, and all nodes that it waits for also wait for it."""
    mine = before[node]
    return mine is not None and all(node in (before[other] or ()) for other in mine)


def _all_before(node: str, waits: dict[str, set[str] | None]) -> set[str] | None:
    """Return all nodes that it waits for, directly or indirectly; None if a moving token is among them."""
    found: set[str] = set()
    pending = [node]
    while pending:
        direct = waits[pending.pop()]
        if direct is None:
            return None
        pending += direct - found
        found |= direct
    return found - {node}


def _parked_start(ctx: DecisionContext, scope: ScopeState, node: PlanNode, mates: set[str] | None) -> ParkedStart:
    """Return the start of a parked node. `mates`: nodes that start together with it since they only wait for each
    other.
    """
    waiting = [(one.edge, one.incoming.lineage) for one in scope.parked[node.id].values()]
    keys = loops.side(node, scope, waiting) if isinstance(node.action, LoopAction) else waiting
    merged = in_order(keys, ctx.plan.edge_index)
    ends = isinstance(node.action, LoopAction) and loops.comes_back(node, scope)
    thread = _thread(ctx.plan, node, [arrival.lineage for arrival in merged], ends=ends)
    if mates:
        first = min((node.id, *mates), key=lambda n: ctx.plan.nodes[n].index)
        thread = joint_lineage(thread, first, node.index)
    return ParkedStart(node, merged, thread)


def _start_parked(ctx: DecisionContext, scope: ScopeState, start: ParkedStart) -> None:
    node, merged, thread = start
    if isinstance(node.action, JoinAction) and closes(node, scope):
        parallels.settle(ctx, scope, "arrived", merged=merged)
    else:
        start_node.start(ctx, node, scope, EnterNode(node.id, scope.key, None, None, thread), merged)
