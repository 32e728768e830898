"""Parallels and joins: open one scope per branch; decide when the parallel is over and which value continues.

    parallel ──┬─ branch 0 ─ … ─┐ arrived
               ├─ branch 1 ─ … ─┤ ended / failed / cancelled  ─▶ `wait` is met, or every branch is settled ─▶ the join
               └─ branch 2 ─ … ─┘

Branches start in order, at most `parallel_max` at a time. Without a join the parallel is over when every branch is
settled. The join sees results in branch order, never in arrival order; writes are applied in branch order, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from pointsman.engine.actions import BranchResult, JoinAction, ParallelAction, PlanEdge
from pointsman.engine.data import Data, dotted
from pointsman.engine.decide import completion
from pointsman.engine.decide.context import DecisionContext, EnterNode, ExitStep, PropagateFailure, key_of
from pointsman.engine.decide.entry import Entry, catching, set_timer
from pointsman.engine.decide.outputs import (
    StepRefused,
    check_conflicts,
    check_values,
    check_writes,
    evaluate_outputs,
    failure_from,
    listed_items,
)
from pointsman.engine.decide.partial_run import ends_before
from pointsman.engine.events.steps import BranchSettled, ScopesClosed, ScopesOpened, StepFailed
from pointsman.engine.failures import Failure
from pointsman.engine.fold.scopes import parked
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import JoinProgress, ParallelFrame, ScopeState
from pointsman.engine.steps import Arrival, Step, Write
from pointsman.errors import PointsmanError
from pointsman.expressions.environment import Environment
from pointsman.expressions.paths import Path
from pointsman.values import Json, JsonObject


def open_branches(ctx: DecisionContext, entry: Entry, action: ParallelAction) -> None:
    """Open one scope per (item × start)."""
    env = entry.environment()
    items = _items(entry, action, env)
    # A partial run does not start branches that lead to none of its targets: a branch counts from its first step on.
    starts = tuple(edge for edge in _starts(action, env) if not ends_before(ctx.plan, edge.target))
    keys = _keys(entry, action, items, starts)
    entry.open_step()
    ctx.emit(
        ScopesOpened(
            step=entry.step,
            starts=tuple(edge.id for edge in starts),
            items=items,
            keys=keys,
            item_name=action.item_name,
            joined=action.join is not None,
        )
    )
    opening = ctx.state.parallel_frames[entry.step]
    _set_join_timer(ctx, opening, action)
    if opening.total == 0:
        check(ctx, opening)
    else:
        start_branches(ctx, opening)


def _starts(action: ParallelAction, env: Environment) -> tuple[PlanEdge, ...]:
    """Return the start edges whose conditions hold, else the default edges."""
    holds = tuple(e for e in action.starts if e.kind == "plain" or (e.test is not None and e.test(env)))
    return holds or tuple(edge for edge in action.starts if edge.kind == "default")


def skip(entry: Entry, action: ParallelAction) -> None:
    """Skip the parallel: the incoming value continues at its join."""
    entry.complete_instantly(view={"skipped": True}, leaves=False)
    if action.join is not None:
        entry.ctx.enqueue(EnterNode(action.join, entry.scope.key, None, entry.step, entry.move.lineage))
    else:
        entry.ctx.end_token(entry.step)


def _items(entry: Entry, action: ParallelAction, env: Environment) -> list[Json] | None:
    if action.items is None:
        return None
    items = entry.ctx.value(entry.scope, action.items, env)
    if not items and action.one_scope and items in (None, [], {}):
        return None
    return listed_items(items, of=f"the items of {entry.node.id!r}", field="items")


def _keys(
    entry: Entry, action: ParallelAction, items: list[Json] | None, starts: tuple[PlanEdge, ...]
) -> tuple[str, ...]:
    if items is None:
        return tuple(edge.target for edge in starts) if action.one_scope else ()
    keys = [key_of(item, number) for number, item in enumerate(items)]
    if len(set(keys)) == len(keys):
        return tuple(keys)
    if action.duplicate_keys == "fail":
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise StepRefused(
            Failure(
                code="duplicate-item-key",
                message=f"two items of {entry.node.id!r} have the key {twice!r}",
                hint="Items are identified by their text, or by `key`, `id` or `name`: make these differ.",
            )
        )
    entry.ctx.warn("duplicate-item-key", f"items of {entry.node.id!r} share keys; they were numbered", entry.step)
    return _numbered(keys)


def _numbered(keys: list[str]) -> tuple[str, ...]:
    """Append the position to repeated keys."""
    names: dict[str, None] = {}
    for number, key in enumerate(keys):
        own = key if key not in names else f"{key}_{number}"
        while own in names:
            own += "_"
        names[own] = None
    return tuple(names)


def _set_join_timer(ctx: DecisionContext, opening: ParallelFrame, action: ParallelAction) -> None:
    gather = ctx.plan.nodes[action.join].action if action.join is not None else None
    if isinstance(gather, JoinAction) and gather.timeout_s is not None and gather.closes[0] == opening.step.node:
        set_timer(ctx, opening.step, "join", ctx.state.at + gather.timeout_s)


def start_branches(ctx: DecisionContext, opening: ParallelFrame) -> None:
    """Start further branches, up to the limit of parallel branches."""
    action = ctx.node(opening.step).action
    assert isinstance(action, ParallelAction)
    most = action.parallel_max or ctx.plan.limits.parallel
    raised = ctx.state.limits.raised.get("parallel")
    most = int(raised) if raised is not None and action.parallel_max is None else most
    while opening.running < most and opening.next < opening.total:
        branch = opening.next
        scope = ctx.scope(opening.branch_scope(branch))
        edge = action.by_id[opening.starts[branch % len(opening.starts)]]
        ctx.enqueue(EnterNode(edge.target, scope.key, edge, opening.step))


def branch_ended(ctx: DecisionContext, scope: ScopeState) -> bool:
    """Handle a branch without tokens: start its `after` edges once, then settle it. Return True if it belongs to a
    parallel.
    """
    opening = scope.opening
    if opening is None:
        return False
    action = ctx.node(opening.step).action
    assert isinstance(action, ParallelAction)
    fresh = [edge for edge in action.after if (edge.target, ()) not in scope.visits]
    fresh = [edge for edge in fresh if not ends_before(ctx.plan, edge.target)]
    if fresh and not opening.detached:
        for edge in fresh:
            ctx.enqueue(EnterNode(edge.target, scope.key, edge, opening.step))
        return True
    settle(ctx, scope, "ended")
    return True


def settle(
    ctx: DecisionContext,
    scope: ScopeState,
    outcome: Literal["arrived", "ended", "failed"],
    *,
    after: Step | None = None,
    merged: tuple[Arrival, ...] = (),
    failure: Failure | None = None,
) -> None:
    """Settle a branch; its join may fire, and further branches may start."""
    opening = scope.opening
    assert opening is not None
    ctx.dirty_scopes.pop(scope.key, None)
    ctx.emit(
        BranchSettled(
            step=opening.step,
            branch=scope.key[-1].branch,
            outcome=outcome,
            after=after,
            merged=merged,
            failure=failure,
        )
    )
    if not opening.detached:
        check(ctx, opening)
    if ctx.state.parallel_frames.get(opening.step) is opening:
        start_branches(ctx, opening)
    ctx.dirty_scopes[opening.scope.key] = None


def fail(ctx: DecisionContext, scope: ScopeState, failure: Failure) -> None:
    """Handle a failed branch: the parallel fails with it, or continues without it."""
    opening = scope.opening
    assert opening is not None
    action = ctx.node(opening.step).action
    assert isinstance(action, ParallelAction)
    if action.on_branch_error == "fail" and not opening.detached:
        fail_opening(ctx, opening, failure)
        return
    completion.cancel_steps(ctx, scope.key)
    settle(ctx, scope, "failed", failure=failure)


NEARLY: float = 1e-9
"""Tolerance for comparing a share with a count: 7 % of 100 are 7 in spite of rounding."""


def check(ctx: DecisionContext, opening: ParallelFrame) -> bool:
    """Fire the join of a parallel if its condition is met. Return True if it fired."""
    action = ctx.node(opening.step).action
    assert isinstance(action, ParallelAction)
    settled = len(opening.settled) == opening.total
    if action.join is None:
        if settled:
            _close_unjoined(ctx, opening)
        return settled
    join = ctx.plan.nodes[action.join]
    assert isinstance(join.action, JoinAction)
    if join.action.closes[0] != opening.step.node:  # an inner parallel: its list becomes one value of the outer one
        if settled:
            _close_inner(ctx, opening, join)
        return settled
    try:
        if not settled and not _met(ctx, opening, join, join.action):
            return False
    except PointsmanError as why:
        fail_opening(ctx, opening, failure_from(why))
        return True
    close_parallel(ctx, opening, join)
    return True


def _met(ctx: DecisionContext, opening: ParallelFrame, join: PlanNode, action: JoinAction) -> bool:
    """Return whether enough branches have arrived."""
    wait = action.wait
    if isinstance(wait, str):
        return wait == "any" and opening.arrived > 0
    if isinstance(wait, int):
        return opening.arrived >= wait
    if isinstance(wait, float):
        return opening.arrived >= wait * opening.total - NEARLY
    if opening.arrived == 0:
        return False
    names: dict[str, Json] = {"arrived": opening.arrived, "total": opening.total}
    if action.wait_sees:
        progress = _seen_by_now(ctx, opening)
        names |= {"results": progress.results, "branches": progress.views}
    return wait(ctx.environment(opening.scope, join, None, names))


def _seen_by_now(ctx: DecisionContext, opening: ParallelFrame) -> JoinProgress:
    """Return the results of the branches so far. Only branches settled since the last call are processed."""
    fork = ctx.node(opening.step).action
    assert isinstance(fork, ParallelAction)
    progress = opening.progress = opening.progress or JoinProgress()
    for branch in islice(reversed(opening.settled), len(opening.settled) - progress.settled):
        result = _result(fork, opening, branch)
        if result is not None:
            place = bisect_left(progress.branches, branch)
            progress.branches.insert(place, branch)
            progress.results.insert(place, result.value)
            progress.views.insert(place, _branch_view(result))
    progress.settled = len(opening.settled)
    return progress


def results(ctx: DecisionContext, opening: ParallelFrame) -> list[BranchResult]:
    """Return the results of the branches in branch order, with failures if `on_branch_error` is `continue`."""
    fork = ctx.node(opening.step).action
    assert isinstance(fork, ParallelAction)
    results = (_result(fork, opening, branch) for branch in sorted(opening.settled))
    return [result for result in results if result is not None]


def _result(fork: ParallelAction, opening: ParallelFrame, branch: int) -> BranchResult | None:
    """Return the result of a settled branch; None if it does not count."""
    settled = opening.settled[branch]
    if settled.outcome != "arrived" and not (settled.outcome == "failed" and fork.on_branch_error == "continue"):
        return None
    start = fork.by_id[opening.starts[branch % len(opening.starts)]].target
    number = branch // len(opening.starts)
    key = opening.keys[number] if number < len(opening.keys) and opening.items is not None else start
    return BranchResult(branch=branch, key=key, start=start, outcome=settled.outcome, value=settled.value)


def _branch_view(result: BranchResult) -> JsonObject:
    return {
        "index": result.branch,
        "key": result.key,
        "node": result.start,
        "outcome": result.outcome,
        "result": result.value,
    }


def _aggregate_names(ctx: DecisionContext, opening: ParallelFrame) -> dict[str, Json]:
    """Return the names for the aggregate of a join."""
    arrived = results(ctx, opening)
    values: list[Json] = [result.value for result in arrived]
    counts: dict[str, Json] = {"arrived": opening.arrived, "total": opening.total}
    return {"results": values, "items": values, "branches": [_branch_view(result) for result in arrived], **counts}


def close_parallel(ctx: DecisionContext, opening: ParallelFrame, join: PlanNode, *, ends: bool = False) -> None:
    """Close a parallel and let control through its join. `ends`: branches that have not started never start."""
    action = join.action
    assert isinstance(action, JoinAction)
    if ends_before(ctx.plan, join.id):
        _close(ctx, opening, join, (), None)
        return
    if action.cancel_rest:
        completion.cancel_branches(ctx, opening)
    try:
        _check_branches(ctx, opening)
        check_values(ctx, (settled.value for settled in opening.settled.values()))
        value = aggregated(ctx, opening, join, action)
        _check_expected(ctx, opening, action)
    except PointsmanError as why:
        fail_opening(ctx, opening, failure_from(why))
        return
    branches = None
    if action.aggregate is None and action.aggregate_value is None:
        branches = tuple(result.branch for result in results(ctx, opening))
    over = opening.running == 0 and (ends or action.cancel_rest or opening.next == opening.total)
    _close(ctx, opening, join, branches, None if branches is not None else value, over=over)


def _close(
    ctx: DecisionContext,
    opening: ParallelFrame,
    join: PlanNode,
    brought: tuple[int, ...] | None,
    value: Json,
    *,
    over: bool = True,
) -> None:
    step = opening.step
    branches = tuple(sorted(opening.settled))
    ctx.emit(ScopesClosed(step=step, branches=branches, forgotten=over, brought=brought, result=value))
    ctx.dirty_scopes[step.scope] = None
    ctx.enqueue(EnterNode(join.id, step.scope, None, step, opening.incoming.lineage))


def aggregated(ctx: DecisionContext, opening: ParallelFrame, join: PlanNode, action: JoinAction) -> Json:
    """Return the value of a join."""
    arrived = results(ctx, opening)
    if action.aggregate_value is not None:
        env = ctx.environment(opening.scope, join, [result.value for result in arrived], _aggregate_names(ctx, opening))
        return ctx.value(opening.scope, action.aggregate_value, env)
    if action.aggregate is not None:
        return action.aggregate(arrived)
    return [result.value for result in arrived]


def _check_branches(ctx: DecisionContext, opening: ParallelFrame) -> None:
    """Check that merging the writes of the branches into the surrounding data loses no write."""
    writes = [(branch, write, value) for branch, write, value in _writes(opening)]
    owners: dict[tuple[str | int, ...], tuple[int, Write]] = {}
    above: dict[tuple[str | int, ...], tuple[int, Write]] = {}
    for branch, write, _ in writes:
        for other, written in _clashing(write, owners, above):
            if other != branch and not (write.path == written.path and write.reduce == written.reduce != "set"):
                raise StepRefused(_clash(opening, (other, branch), write))
        owners[write.path] = branch, write
        for width in range(1, len(write.path)):
            above[write.path[:width]] = branch, write
    if not writes:
        return
    node, around = ctx.node(opening.step), opening.scope
    check_conflicts(ctx, around, node, opening.incoming.lineage, tuple(write for _, write, _ in writes))
    draft = Data(around.data.shared())
    for _, write, value in writes:
        draft.write(write, value)


def _writes(opening: ParallelFrame) -> Iterator[tuple[int, Write, Json]]:
    for branch in sorted(opening.settled):
        for write, value in opening.settled[branch].writes:
            yield branch, write, value


def _clashing(
    write: Write,
    owners: dict[tuple[str | int, ...], tuple[int, Write]],
    above: dict[tuple[str | int, ...], tuple[int, Write]],
) -> Iterator[tuple[int, Write]]:
    """Yield earlier writes at the path, above it, or below it."""
    if write.reduce == "last":
        return
    for width in range(1, len(write.path) + 1):
        owner = owners.get(write.path[:width])
        if owner is not None and owner[1].reduce != "last":
            yield owner
    owner = above.get(write.path)
    if owner is not None:
        yield owner


def _clash(opening: ParallelFrame, branches: tuple[int, int], write: Write) -> Failure:
    path = dotted(write.path)
    return Failure(
        code="write-conflict",
        message=f"branches {branches[0]} and {branches[1]} of {opening.step.node!r} both wrote {path!r}",
        hint=f"Declare a reducer for {path!r} in `state`, or let each branch write its own key.",
    )


def _check_expected(ctx: DecisionContext, opening: ParallelFrame, action: JoinAction) -> None:
    """Warn about keys that the document expects at the join and no branch produced. The join does not wait for them."""
    expected = action.expected_keys
    if action.expected is not None:
        keys = action.expected(ctx.environment(opening.scope, ctx.node(opening.step), None))
        expected = tuple(str(key) for key in keys) if isinstance(keys, list) else ()
    if not expected or action.merge_path is None:
        return
    have: set[str] = set()
    path = tuple(part for part in action.merge_path.segments if isinstance(part, str))
    value = opening.scope.data.at(path)
    if isinstance(value, dict):
        have |= set(value)
    for settled in opening.settled.values():
        have |= {
            str(w.path[len(path)]) for w, _ in settled.writes if w.path[: len(path)] == path and len(w.path) > len(path)
        }
    missing = [key for key in expected if key not in have]
    if missing:
        ctx.warn("missing-keys", f"the join expected {', '.join(missing)} below {'.'.join(path)!r}", opening.step)


def _close_inner(ctx: DecisionContext, opening: ParallelFrame, join: PlanNode) -> None:
    try:
        _check_branches(ctx, opening)
        check_values(ctx, (settled.value for settled in opening.settled.values()))
    except PointsmanError as why:
        fail_opening(ctx, opening, failure_from(why))
        return
    _close(ctx, opening, join, tuple(result.branch for result in results(ctx, opening)), None)


def _close_unjoined(ctx: DecisionContext, opening: ParallelFrame) -> None:
    """Complete a parallel without a join when all its branches are settled; nothing follows it."""
    try:
        _check_branches(ctx, opening)
    except PointsmanError as why:
        fail_opening(ctx, opening, failure_from(why))
        return
    ctx.emit(ScopesClosed(step=opening.step, branches=tuple(sorted(opening.settled))))
    ctx.end_token(opening.step, reason="swallowed")


def fail_opening(ctx: DecisionContext, opening: ParallelFrame, failure: Failure) -> None:
    """Fail a parallel: stop its branches; its error edges or the scopes around it handle the failure."""
    completion.cancel_branches(ctx, opening)
    step = opening.step
    at = ctx.state.steps[step]
    ctx.emit(StepFailed(step=step, attempt=at.attempt, failure=failure))
    ctx.dirty_scopes[step.scope] = None
    node = ctx.node(step)
    if catching(node, failure):
        ctx.enqueue(ExitStep(step, failed=failure))
    else:
        ctx.enqueue(PropagateFailure(step, failure))


def timed_out(ctx: DecisionContext, opening: ParallelFrame) -> None:
    """Handle the timeout of a join: fail the parallel, or continue with the branches that have arrived."""
    fork = ctx.node(opening.step).action
    assert isinstance(fork, ParallelAction)
    assert fork.join is not None
    join = ctx.plan.nodes[fork.join]
    assert isinstance(join.action, JoinAction)
    if join.action.on_timeout == "fail":
        failure = Failure(code="join-timeout", message=f"not all branches reached {join.id!r} in time")
        fail_opening(ctx, opening, failure)
        return
    ctx.warn("join-timeout", f"{join.id!r} continues without all its branches", opening.step)
    completion.cancel_branches(ctx, opening)
    close_parallel(ctx, opening, join, ends=True)


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


def gather(entry: Entry, action: JoinAction) -> None:
    """Complete a join with the value of its parallel, or with the arrivals of plain splits."""
    ctx, scope, node = entry.ctx, entry.scope, entry.node
    fired = not entry.merged and was_fired(node, scope, entry.move)
    value = entry.incoming.value if fired else _of_arrivals(entry, action)
    if action.merge_path is not None:
        fired, value = False, _of_path(entry, action, action.merge_path, value)
    writes = evaluate_outputs(ctx, scope, node, value)
    check_writes(ctx, scope, node, entry.move.lineage, writes, value)
    if fired:
        entry.complete_instantly(takes=True, writes=writes)
    else:
        entry.complete_instantly(replaces=True, result=value, writes=writes)


def _of_path(entry: Entry, action: JoinAction, path: Path, brought: Json) -> Json:
    """Return the joined values at a state path; the results of the branches if the path was not written."""
    scope = entry.scope
    stored = scope.data.at(path.resolve(entry.environment()))
    if not isinstance(stored, dict) or not stored:
        if stored is None:
            entry.ctx.warn("nothing-to-merge", f"nothing was written to {path.text!r}", entry.step)
        return brought if stored is None else stored
    scope.data.shared()
    results = [
        BranchResult(branch=number, key=key, start=key, outcome="arrived", value=value)
        for number, (key, value) in enumerate(stored.items())
    ]
    return (
        _aggregate(entry, action, results)
        if action.aggregate is not None or action.aggregate_value is not None
        else stored
    )


def _aggregate(entry: Entry, action: JoinAction, results: list[BranchResult]) -> Json:
    values: list[Json] = [result.value for result in results]
    if action.aggregate_value is None:
        return action.aggregate(results) if action.aggregate is not None else values
    branches: list[Json] = [{"index": s.branch, "key": s.key, "node": s.start, "result": s.value} for s in results]
    more: dict[str, Json] = {
        "results": values,
        "items": values,
        "branches": branches,
        "arrived": len(values),
        "total": len(values),
    }
    env = entry.ctx.environment(entry.scope, entry.node, values, more)
    return entry.ctx.value(entry.scope, action.aggregate_value, env)


def _of_arrivals(entry: Entry, action: JoinAction) -> Json:
    """Return the value of a join of plain splits: the arrivals are its branches, in document order."""
    ctx, scope = entry.ctx, entry.scope
    values: list[Json] = (
        [parked(scope, entry.node.id, arrival).value for arrival in entry.merged]
        if entry.merged
        else [entry.incoming.value]
    )
    check_values(ctx, values)
    edges = [a.edge for a in entry.merged] or ["" if entry.move.edge is None else entry.move.edge.id]
    sources = [ctx.plan.edge_source.get(edge, "") for edge in edges]
    results = [
        BranchResult(branch=n, key=sources[n], start=sources[n], outcome="arrived", value=value)
        for n, value in enumerate(values)
    ]
    return _aggregate(entry, action, results)
