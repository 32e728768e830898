"""Racing: a step that reads what another line of control writes at the same time.

    split ─┬─ a: writes x ─┬─ meet        whichever of the two is first: the later one fails with `read-race`,
           └─ b: reads x ──┘              and the outcome does not depend on which was faster

The plan knows which nodes may: only they say what they read, and only while control is split around them. Branches of
a parallel see the data as they were when it opened; nothing races there.
"""

from __future__ import annotations

from pointsman.engine.data import dotted
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import Entry
from pointsman.engine.decide.outputs import StepRefused, read_race
from pointsman.engine.events.steps import StateRead
from pointsman.engine.failures import Failure
from pointsman.engine.lineage import at_once
from pointsman.values import Path


def read(entry: Entry) -> None:
    """Say what the node reads that others may write meanwhile. Raises `StepRefused` where one of them has."""
    desk, scope, thread = entry.desk, entry.scope, entry.move.thread
    if not thread:
        return  # control is not split around it
    paths = tuple(_resolved(path, scope.item_key) for path in entry.node.races)
    for path in paths:
        failure = _raced(desk, entry, path)
        if failure is not None:
            raise StepRefused(failure)
    desk.emit(StateRead(node=entry.node.id, scope=scope.key, thread=thread, paths=paths))


def _raced(desk: DecisionContext, entry: Entry, path: Path) -> Failure | None:
    me = entry.move.thread, entry.node.id
    for _, trail in entry.scope.trails.overlapping(path):
        for one in trail.entries:
            if one.node != entry.node.id and at_once(me, (one.thread, one.node), desk.plan.leads):
                return read_race(entry.node.id, one.node, dotted(path))
    return None


def _resolved(path: tuple[str | int | None, ...], item_key: str | None) -> Path:
    """With the key of the branch's item; what is below an unknown one is all of it."""
    found: list[str | int] = []
    for part in path:
        key = item_key if part is None else part
        if key is None:
            break
        found.append(key)
    return tuple(found)
