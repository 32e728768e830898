"""Joining: what a join makes of what its branches brought. Values only; when it fires is `branching`'s."""

from __future__ import annotations

from pointsman.engine.desk import Arrive, Desk
from pointsman.engine.entry import Entry
from pointsman.engine.failures import Failure
from pointsman.engine.outputs import StepRefused, check_conflicts, check_size, written
from pointsman.engine.plan import Fork, Gather, GatheredResult, PlanNode
from pointsman.engine.state import Opening, ScopeState
from pointsman.expressions.paths import Path
from pointsman.values import Json


def closes(node: PlanNode, scope: ScopeState) -> bool:
    """Whether this join closes the opening that `scope` is a branch of."""
    return isinstance(node.does, Gather) and scope.opening is not None and scope.opening.step.node in node.does.closes


def was_fired(node: PlanNode, scope: ScopeState, move: Arrive) -> bool:
    """The arrival is the engine's own, from the opening that this join has just closed."""
    return move.edge is None and isinstance(node.does, Gather) and bool(node.does.closes) and not closes(node, scope)


def results(desk: Desk, opening: Opening) -> list[GatheredResult]:
    """What the branches brought, in branch order; failures too where they are wanted."""
    does = desk.node(opening.step).does
    assert isinstance(does, Fork)
    edges = {edge.id: edge.target for edge in does.starts}
    found: list[GatheredResult] = []
    for branch in sorted(opening.settled):
        settled = opening.settled[branch]
        wanted = settled.outcome == "arrived" or (settled.outcome == "failed" and does.on_branch_error == "continue")
        if wanted:
            start = edges[opening.starts[branch % len(opening.starts)]]
            number = branch // len(opening.starts)
            key = opening.keys[number] if number < len(opening.keys) and opening.items is not None else start
            found.append(
                GatheredResult(branch=branch, key=key, start=start, outcome=settled.outcome, value=settled.value)
            )
    return found


def seen_by(desk: Desk, opening: Opening) -> dict[str, Json]:
    seen = results(desk, opening)
    values: list[Json] = [one.value for one in seen]
    branches: list[Json] = [
        {"index": one.branch, "key": one.key, "node": one.start, "outcome": one.outcome, "result": one.value}
        for one in seen
    ]
    counts: dict[str, Json] = {"arrived": opening.arrived, "total": opening.total}
    return {"results": values, "items": values, "branches": branches, **counts}


def aggregated(desk: Desk, opening: Opening, join: PlanNode, does: Gather) -> Json:
    """The value of a join."""
    seen = results(desk, opening)
    if does.aggregate_value is not None:
        env = desk.environment(opening.scope, join, [one.value for one in seen], seen_by(desk, opening))
        return desk.value(opening.scope, does.aggregate_value, env)
    if does.aggregate is not None:
        return does.aggregate(seen)
    return [one.value for one in seen]


def check_branches(desk: Desk, opening: Opening) -> None:
    """Branches must not overwrite one another: the last one would win and the others be lost."""
    owner: dict[tuple[str | int, ...], int] = {}
    for branch in sorted(opening.settled):
        for write, _, _ in opening.settled[branch].writes:
            if write.reduce == "set" and owner.setdefault(write.path, branch) != branch:
                other = owner[write.path]
                text = ".".join(str(part) for part in write.path)
                raise StepRefused(
                    Failure(
                        code="write-conflict",
                        message=f"branches {other} and {branch} of {opening.step.node!r} both wrote {text!r}",
                        hint=f"Declare a reducer for {text!r} in `state`, or let each branch write its own key.",
                    )
                )


def check_expected(desk: Desk, opening: Opening, does: Gather) -> None:
    """Keys that the document expects at the join, and that nobody brought: said, not waited for."""
    expected = does.expected_keys
    if does.expected is not None:
        found = does.expected(desk.environment(opening.scope, desk.node(opening.step), None))
        expected = tuple(str(one) for one in found) if isinstance(found, list) else ()
    if not expected or does.merge_path is None:
        return
    have: set[str] = set()
    path = tuple(part for part in does.merge_path.segments if isinstance(part, str))
    held = opening.scope.data.at(path)
    if isinstance(held, dict):
        have |= set(held)
    for settled in opening.settled.values():
        have |= {
            str(w.path[len(path)])
            for w, _, _ in settled.writes
            if w.path[: len(path)] == path and len(w.path) > len(path)
        }
    missing = [key for key in expected if key not in have]
    if missing:
        desk.warn("missing-keys", f"the join expected {', '.join(missing)} below {'.'.join(path)!r}", opening.step)


def gather(entry: Entry, does: Gather) -> None:
    """Control passes a join: with the value its opening gave, or of the arrivals of plain splits."""
    desk, scope, node = entry.desk, entry.scope, entry.node
    fired = not entry.merged and was_fired(node, scope, entry.move)
    value = entry.left.value if fired else _of_arrivals(entry, does)
    if does.merge_path is not None:
        fired, value = False, _of_path(entry, does, does.merge_path, value)
    writes = written(desk, scope, node, value)
    check_conflicts(scope, writes, entry.move.thread)
    check_size(desk, scope, writes, value)
    if fired:
        entry.passed(takes=True, writes=writes)
    else:
        entry.passed(replaces=True, result=value, writes=writes)


def _of_path(entry: Entry, does: Gather, path: Path, brought: Json) -> Json:
    """A join of what stands in the state; what the branches brought where nobody wrote there."""
    scope = entry.scope
    held = scope.data.at(path.resolve(entry.environment()))
    if not isinstance(held, dict) or not held:
        if held is None:
            entry.desk.warn("nothing-to-merge", f"nothing was written to {path.text!r}", entry.step)
        return brought if held is None else held
    scope.data.shared()
    seen = [
        GatheredResult(branch=number, key=key, start=key, outcome="arrived", value=value)
        for number, (key, value) in enumerate(held.items())
    ]
    return _aggregate(entry, does, seen) if does.aggregate is not None or does.aggregate_value is not None else held


def _aggregate(entry: Entry, does: Gather, seen: list[GatheredResult]) -> Json:
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
    env = entry.desk.environment(entry.scope, entry.node, values, more)
    return entry.desk.value(entry.scope, does.aggregate_value, env)


def _of_arrivals(entry: Entry, does: Gather) -> Json:
    """A join of plain splits: the arrivals are its branches, in document order."""
    desk, scope = entry.desk, entry.scope
    parked = scope.parked.get(entry.node.id, {})
    values: list[Json] = (
        [parked[a.edge, a.thread].left.value for a in entry.merged] if entry.merged else [entry.left.value]
    )
    edges = [a.edge for a in entry.merged] or ["" if entry.move.edge is None else entry.move.edge.id]
    sources = [desk.plan.edge_source.get(edge, "") for edge in edges]
    seen = [
        GatheredResult(branch=n, key=sources[n], start=sources[n], outcome="arrived", value=value)
        for n, value in enumerate(values)
    ]
    return _aggregate(entry, does, seen)
