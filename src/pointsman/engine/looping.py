"""Loops: rounds of an entry, and entries one after another.

                 ┌────────── back ──────────┐
                 ▼                          │
    in ──▶ loop node ── body edge ──▶ … body …
                 └───── exit edge ──▶

Control over an edge from the body continues the entry; over any other edge it is a new entry, counted from zero. The
two never merge: rounds finish first. A round begins when a body arrival is there and nothing in the body moves.
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.desk import Arrive, Desk, key_of
from pointsman.engine.entry import Entry
from pointsman.engine.events import LoopEntered, LoopLeft, LoopRound
from pointsman.engine.plan import PlanNode, Repeat
from pointsman.engine.state import LoopState, ScopeState
from pointsman.engine.steps import Thread
from pointsman.values import Json

BODY: Final = "body"
EXIT: Final = "exit"


def body_moves(desk: Desk, scope: ScopeState, does: Repeat) -> bool:
    """Something in the body is running, parked, or on its way."""
    if any(node in does.body for node in scope.live) or any(node in does.body for node in scope.parked):
        return True
    if not desk.in_flight.get(scope.key):
        return False
    return any(isinstance(m, Arrive) and m.scope == scope.key and m.node in does.body for m in desk.queue)


def side(node: PlanNode, scope: ScopeState, waiting: list[tuple[str, Thread]]) -> list[tuple[str, Thread]]:
    """Of the arrivals parked at a loop node, those that may start it together: the body's first."""
    does = node.does
    assert isinstance(does, Repeat)
    if node.id in scope.loops:
        back = [key for key in waiting if key[0] in does.back]
        if back:
            return back
    return [key for key in waiting if key[0] not in does.back] or waiting


def starts_now(desk: Desk, node: PlanNode, scope: ScopeState, move: Arrive) -> bool:
    """Whether an arrival may start the loop node at once."""
    does = node.does
    assert isinstance(does, Repeat)
    parked = scope.parked.get(node.id)
    if node.id in scope.loops and (move.edge is None or move.edge.id in does.back):
        return not body_moves(desk, scope, does) and not parked
    return desk.alone(scope)


def waits_for(desk: Desk, scope: ScopeState, node: PlanNode, parked: list[str]) -> set[str] | None:
    """As for other parked nodes; a round waits for the body alone, an entry for the rounds before it too."""
    does = node.does
    assert isinstance(does, Repeat)
    chosen = side(node, scope, list(scope.parked[node.id]))
    if node.id in scope.loops and chosen[0][0] in does.back:
        return None if any(at in does.body for at in scope.live) else {n for n in parked if n in does.body}
    before = desk.plan.reaches(node.id)
    if any(at in before for at in scope.live):
        return None
    return {other for other in parked if other != node.id and other in before}


def next_round(entry: Entry, does: Repeat) -> None:
    """Control reached the loop node: another round, or out."""
    desk, scope, node = entry.desk, entry.scope, entry.node
    loop = scope.loops.get(node.id)
    continues = loop is not None and _came_back(entry, does)
    if loop is not None and not continues:
        desk.emit(LoopLeft(node=node.id, scope=scope.key))  # its body ended without coming back
    items = loop.items if loop is not None and continues else _items(entry, does)
    done = loop.round if loop is not None and continues else 0
    goes_on = _goes_on(entry, does, items, done, loop if continues else None)
    label = BODY if goes_on else EXIT
    entry.passed(label, said={"branch": label, "round": done + goes_on})
    if goes_on:
        if not continues:
            desk.emit(LoopEntered(node=node.id, scope=scope.key, items=items, item_name=does.item_name))
        desk.emit(LoopRound(node=node.id, scope=scope.key, round=done + 1, after=entry.step))
    elif continues:
        desk.emit(LoopLeft(node=node.id, scope=scope.key))


def _came_back(entry: Entry, does: Repeat) -> bool:
    if entry.merged:
        return entry.merged[0].edge in does.back
    edge = entry.move.edge
    return edge is None or edge.id in does.back


def _items(entry: Entry, does: Repeat) -> list[Json] | None:
    if does.items is None:
        return None
    found = entry.desk.value(entry.scope, does.items, entry.environment())
    if found is None:
        return []
    if isinstance(found, dict):
        return [{"key": key, "value": value} for key, value in found.items()]
    if isinstance(found, list):
        return found
    return [found]


def _goes_on(entry: Entry, does: Repeat, items: list[Json] | None, done: int, loop: LoopState | None) -> bool:
    if does.rounds_max is not None and done >= does.rounds_max:
        return False
    if items is not None and done >= len(items):
        return False
    if does.goes_on is None:
        return True
    env = entry.desk.environment(entry.scope, entry.node, entry.left.value)
    if loop is None:  # before the first round the loop has no previous one
        item: Json = items[done] if items is not None else None
        env.names = {**env.names, "loop": {"iteration": 0, "index": 0, "previous": None}}
        if items is not None:
            env.names = {**env.names, "item": item, "index": done, "key": key_of(item, done)}
    return does.goes_on(env)
