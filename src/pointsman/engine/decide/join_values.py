"""The value that leaves a join: the result of its parallel, the arrivals of plain splits, or a path of the data."""

from __future__ import annotations

from pointsman.engine.actions import BranchResult, JoinAction
from pointsman.engine.decide.context import EnterNode
from pointsman.engine.decide.entry import Entry
from pointsman.engine.decide.outputs import check_values, check_writes, evaluate_outputs
from pointsman.engine.fold.arrivals import parked
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import ScopeState
from pointsman.expressions.paths import Path
from pointsman.values import Json


def closes(node: PlanNode, scope: ScopeState) -> bool:
    """Return whether this join closes the parallel of which `scope` is a branch."""
    return (
        isinstance(node.action, JoinAction)
        and scope.opening is not None
        and scope.opening.step.node in node.action.closes
    )


def was_fired(node: PlanNode, scope: ScopeState, move: EnterNode) -> bool:
    """Return whether the engine itself sent the arrival, from the parallel that this join has just closed."""
    return (
        move.edge is None
        and isinstance(node.action, JoinAction)
        and bool(node.action.closes)
        and not closes(node, scope)
    )


def gather(entry: Entry, does: JoinAction) -> None:
    """Complete a join with the value of its parallel, or with the arrivals of plain splits."""
    ctx, scope, node = entry.ctx, entry.scope, entry.node
    fired = not entry.merged and was_fired(node, scope, entry.move)
    value = entry.incoming.value if fired else _of_arrivals(entry, does)
    if does.merge_path is not None:
        fired, value = False, _of_path(entry, does, does.merge_path, value)
    writes = evaluate_outputs(ctx, scope, node, value)
    check_writes(ctx, scope, node, entry.move.lineage, writes, value)
    if fired:
        entry.complete_instantly(takes=True, writes=writes)
    else:
        entry.complete_instantly(replaces=True, result=value, writes=writes)


def _of_path(entry: Entry, does: JoinAction, path: Path, brought: Json) -> Json:
    """Return the joined values at a state path; the results of the branches if the path was not written."""
    scope = entry.scope
    held = scope.data.at(path.resolve(entry.environment()))
    if not isinstance(held, dict) or not held:
        if held is None:
            entry.ctx.warn("nothing-to-merge", f"nothing was written to {path.text!r}", entry.step)
        return brought if held is None else held
    scope.data.shared()
    seen = [
        BranchResult(branch=number, key=key, start=key, outcome="arrived", value=value)
        for number, (key, value) in enumerate(held.items())
    ]
    return _aggregate(entry, does, seen) if does.aggregate is not None or does.aggregate_value is not None else held


def _aggregate(entry: Entry, does: JoinAction, seen: list[BranchResult]) -> Json:
    values: list[Json] = [one.value for one in seen]
    if does.aggregate_value is None:
        return does.aggregate(seen) if does.aggregate is not None else values
    branches: list[Json] = [{"index": s.branch, "key": s.key, "node": s.start, "result": s.value} for s in seen]
    more: dict[str, Json] = {
        "results": values,
        "items": values,
        "branches": branches,
        "arrived": len(values),
        "total": len(values),
    }
    env = entry.ctx.environment(entry.scope, entry.node, values, more)
    return entry.ctx.value(entry.scope, does.aggregate_value, env)


def _of_arrivals(entry: Entry, does: JoinAction) -> Json:
    """Return the value of a join of plain splits: the arrivals are its branches, in document order."""
    ctx, scope = entry.ctx, entry.scope
    values: list[Json] = (
        [parked(scope, entry.node.id, one).value for one in entry.merged] if entry.merged else [entry.incoming.value]
    )
    check_values(ctx, values)
    edges = [a.edge for a in entry.merged] or ["" if entry.move.edge is None else entry.move.edge.id]
    sources = [ctx.plan.edge_source.get(edge, "") for edge in edges]
    seen = [
        BranchResult(branch=n, key=sources[n], start=sources[n], outcome="arrived", value=value)
        for n, value in enumerate(values)
    ]
    return _aggregate(entry, does, seen)
