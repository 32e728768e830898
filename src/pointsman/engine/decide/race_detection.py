"""Race detection: a step reads what a concurrent line of control writes.

    split ─┬─ a: writes x ─┬─ meet        whichever is first, the later one fails with `read-race`,
           └─ b: reads x ──┘              so the outcome does not depend on timing

The plan lists the nodes that may race: only those record their reads, and only while control is split around them.
Branches of a parallel see the data as of its opening; they cannot race.
"""

from __future__ import annotations

from pointsman.engine.data import dotted
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import Entry
from pointsman.engine.decide.outputs import StepRefused, read_race
from pointsman.engine.events.steps import StateRead
from pointsman.engine.failures import Failure
from pointsman.engine.lineage import are_concurrent
from pointsman.values import Path


def read(entry: Entry) -> None:
    """Record the paths that the node reads and concurrent steps may write. Raises `StepRefused` if one has written
    them.
    """
    ctx, scope, thread = entry.ctx, entry.scope, entry.move.lineage
    if not thread:
        return  # control is not split around the node
    paths = tuple(_resolved(path, scope.item_key) for path in entry.node.position.races)
    for path in paths:
        failure = _raced(ctx, entry, path)
        if failure is not None:
            raise StepRefused(failure)
    ctx.emit(StateRead(node=entry.node.id, scope=scope.key, lineage=thread, paths=paths))


def _raced(ctx: DecisionContext, entry: Entry, path: Path) -> Failure | None:
    me = entry.move.lineage, entry.node.id
    for _, trail in entry.scope.write_log.overlapping(path):
        for one in trail.entries:
            if one.node != entry.node.id and are_concurrent(me, (one.lineage, one.node), ctx.plan.leads):
                return read_race(entry.node.id, one.node, dotted(path))
    return None


def _resolved(path: tuple[str | int | None, ...], item_key: str | None) -> Path:
    """Return the path with the key of the branch's item; below an unknown key it covers everything."""
    found: list[str | int] = []
    for part in path:
        key = item_key if part is None else part
        if key is None:
            break
        found.append(key)
    return tuple(found)
