"""Loops: rounds of one entry, and entries one after another.

                 ┌────────── back ──────────┐
                 ▼                          │
    in ──▶ loop node ── body edge ──▶ … body …
                 └───── exit edge ──▶

An arrival over an edge from the body continues the entry; over any other edge it begins a new entry at round zero. The
two never merge: rounds finish first. A round begins when a body arrival is parked and nothing in the body moves.
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.actions import LoopAction, PlanEdge
from pointsman.engine.decide import completion
from pointsman.engine.decide.context import DecisionContext, EnterNode, key_of, node_of, scope_key
from pointsman.engine.decide.entry import Entry
from pointsman.engine.decide.outputs import check_writes, listed_items
from pointsman.engine.events.steps import (
    LoopEntered,
    LoopLeft,
    LoopRound,
    LoopRoundFailed,
)
from pointsman.engine.failures import Failure
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import LoopState, ScopeState
from pointsman.engine.steps import Lineage, Step, Write
from pointsman.expressions.paths import Path
from pointsman.values import Json

BODY: Final = "body"
EXIT: Final = "exit"


def body_moves(ctx: DecisionContext, scope: ScopeState, action: LoopAction) -> bool:
    """Return whether a token of the body is running, parked or queued."""
    if any(node in action.body for node in scope.open_steps) or any(node in action.body for node in scope.parked):
        return True
    if not ctx.in_flight(scope.key):
        return False
    return any(scope_key(move) == scope.key and node_of(move) in action.body for move in ctx.queue)


def arrival_ends_round(action: LoopAction, edge: str) -> bool:
    """Return whether an arrival ends a round: it comes over an edge from the body, or the engine sent it back."""
    return edge in action.back or not edge


def arrivals_of_one_side(
    node: PlanNode, scope: ScopeState, waiting: list[tuple[str, Lineage]]
) -> list[tuple[str, Lineage]]:
    """Return the arrivals parked at a loop node that may start it together: those from the body first."""
    action = node.action
    assert isinstance(action, LoopAction)
    if node.id in scope.loops:
        back = [key for key in waiting if arrival_ends_round(action, key[0])]
        if back:
            return back
    return [key for key in waiting if not arrival_ends_round(action, key[0])] or waiting


def ends_round(node: PlanNode, scope: ScopeState, edge: PlanEdge | None) -> bool:
    """Return whether an arrival over this edge ends a round of this loop."""
    action = node.action
    return (
        isinstance(action, LoopAction)
        and node.id in scope.loops
        and arrival_ends_round(action, "" if edge is None else edge.id)
    )


def starts_now(ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode) -> bool:
    """Return whether an arrival may start the loop node at once."""
    action = node.action
    assert isinstance(action, LoopAction)
    if ends_round(node, scope, move.edge):
        return not body_moves(ctx, scope, action) and not any(
            arrival_ends_round(action, key[0]) for key in scope.parked.get(node.id, ())
        )
    return ctx.alone(scope)


def next_arrival_ends_round(node: PlanNode, scope: ScopeState) -> bool:
    """Return whether the next parked arrivals of a loop node end a round."""
    action = node.action
    assert isinstance(action, LoopAction)
    return node.id in scope.loops and any(arrival_ends_round(action, key[0]) for key in scope.parked[node.id])


def waits_for(action: LoopAction, scope: ScopeState, parked: list[str]) -> set[str] | None:
    """Return the parked nodes that the end of a round waits for (only those of the body); None while the body runs."""
    return None if any(at in action.body for at in scope.open_steps) else {n for n in parked if n in action.body}


def next_round(entry: Entry, action: LoopAction) -> None:
    """Start another round of a loop, or leave the loop."""
    ctx, scope, node = entry.ctx, entry.scope, entry.node
    loop = scope.loops.get(node.id)
    if loop is not None and not _came_back(entry, action):
        ctx.emit(LoopLeft(node=node.id, scope=scope.key))  # its body ended without returning to the loop node
        loop = None
    items = loop.items if loop is not None else _items(entry, action)
    rounds = loop.round if loop is not None else 0
    goes_on = _goes_on(entry, action, items, loop)
    writes = _writes(entry, action, loop)
    check_writes(ctx, scope, node, entry.move.lineage, writes)
    label = BODY if goes_on else EXIT
    entry.complete_instantly(label, view={"branch": label, "round": rounds + goes_on}, writes=writes)
    if goes_on:
        if loop is None:
            ctx.emit(LoopEntered(node=node.id, scope=scope.key, items=items, item_name=action.item_name))
        ctx.emit(LoopRound(node=node.id, scope=scope.key, round=rounds + 1, after=entry.step))
    elif loop is not None:
        ctx.emit(LoopLeft(node=node.id, scope=scope.key))


def _came_back(entry: Entry, action: LoopAction) -> bool:
    if entry.merged:
        return arrival_ends_round(action, entry.merged[0].edge)
    return arrival_ends_round(action, "" if entry.move.edge is None else entry.move.edge.id)


def _writes(entry: Entry, action: LoopAction, loop: LoopState | None) -> tuple[Write, ...]:
    """Return the writes of a loop: empty lists and a count of 0 on entry, then one entry per round."""
    if action.collect is None and action.count_into is None and action.failures_into is None:
        return ()
    env = entry.environment()
    saved: list[tuple[Path | None, Json, bool, Json]] = [
        (action.collect, [], loop is not None and loop.failure is None, entry.incoming.value),
        (action.failures_into, [], loop is not None and loop.failure is not None, _failed_round(loop)),
        (action.count_into, 0, loop is not None, 1),
    ]
    writes: list[Write] = []
    for path, empty, adds, value in saved:
        if path is None:
            continue
        if loop is None:
            writes.append(Write(path.resolve(env), "last", empty))
        elif adds:
            writes.append(Write(path.resolve(env), "add" if empty == 0 else "append", value))
    return tuple(writes)


def _failed_round(loop: LoopState | None) -> Json:
    if loop is None or loop.failure is None:
        return None
    item = loop.items[loop.round - 1] if loop.items is not None else None
    return {"round": loop.round, "item": item, "code": loop.failure.code, "message": loop.failure.message}


def skipping(ctx: DecisionContext, step: Step) -> PlanNode | None:
    """Return the innermost open loop around a step that skips failed rounds."""
    scope = ctx.state.scopes[step.scope]
    for name in ctx.node(step).position.loops:
        loop = ctx.plan.nodes[name]
        if isinstance(loop.action, LoopAction) and loop.action.skips_failures and name in scope.loops:
            return loop
    return None


def skip_round(ctx: DecisionContext, step: Step, failure: Failure) -> bool:
    """End the round of a loop that skips failures. Return False without such a loop."""
    loop = skipping(ctx, step)
    if loop is None:
        return False
    assert isinstance(loop.action, LoopAction)
    scope, body = ctx.state.scopes[step.scope], loop.action.body
    completion.cancel_steps(ctx, scope.key, within=body)
    ctx.discard(scope.key, body)
    for inner in [loop for loop in scope.loops if loop in body]:
        ctx.emit(LoopLeft(node=inner, scope=scope.key))
    dropped = tuple(sorted(node for node in scope.parked if node in body))
    ctx.emit(LoopRoundFailed(node=loop.id, scope=scope.key, failure=failure, dropped=dropped))
    ctx.enqueue(EnterNode(loop.id, scope.key, None, step, ctx.left(scope, step).lineage))
    return True


def _items(entry: Entry, action: LoopAction) -> list[Json] | None:
    if action.items is None:
        return None
    items = entry.ctx.value(entry.scope, action.items, entry.environment())
    return listed_items(items, of=f"the items of loop {entry.node.id!r}", field="over")


def _goes_on(entry: Entry, action: LoopAction, items: list[Json] | None, loop: LoopState | None) -> bool:
    rounds = loop.round if loop is not None else 0
    if action.rounds_max is not None and rounds >= action.rounds_max:
        return False
    if items is not None and rounds >= len(items):
        return False
    if action.condition is None:
        return True
    env = entry.ctx.environment(entry.scope, entry.node, entry.incoming.value)
    if loop is None:  # the first round has no previous result
        item: Json = items[rounds] if items is not None else None
        env.names = {**env.names, "loop": {"iteration": 0, "index": 0, "previous": None}}
        if items is not None:
            env.names = {**env.names, "item": item, "index": rounds, "key": key_of(item, rounds)}
    return action.condition(env)
