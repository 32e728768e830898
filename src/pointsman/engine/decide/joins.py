"""Joins: decide when a parallel is over and which value continues.

    branches ─ settle one by one ─▶ check ─▶ fire: `wait` is met, or every branch is settled ─▶ the join
                                      └────▶ without a join: over when every branch is settled

The join sees results in branch order, never in arrival order; writes are applied in branch order, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from pointsman.engine.actions import BranchResult, JoinAction, ParallelAction
from pointsman.engine.data import Data, dotted
from pointsman.engine.decide import cancellation
from pointsman.engine.decide.context import DecisionContext, EnterNode, ExitStep, PropagateFailure
from pointsman.engine.decide.entry import catching
from pointsman.engine.decide.outputs import StepRefused, check_conflicts, check_values, failure_from
from pointsman.engine.decide.partial_run import is_short_of
from pointsman.engine.events.steps import ScopesClosed, StepFailed
from pointsman.engine.failures import Failure
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import JoinProgress, ParallelFrame
from pointsman.engine.writes import Write
from pointsman.errors import PointsmanError
from pointsman.values import Json, JsonObject

NEARLY: float = 1e-9
"""Tolerance for comparing a share with a count: 7 % of 100 are 7 in spite of rounding."""


def check(ctx: DecisionContext, opening: ParallelFrame) -> bool:
    """Fire the join of a parallel if its condition is met. Return True if it fired."""
    does = ctx.node(opening.step).action
    assert isinstance(does, ParallelAction)
    settled = len(opening.settled) == opening.total
    if does.join is None:
        if settled:
            _close_unjoined(ctx, opening)
        return settled
    join = ctx.plan.nodes[does.join]
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
    fire(ctx, opening, join)
    return True


def _met(ctx: DecisionContext, opening: ParallelFrame, join: PlanNode, does: JoinAction) -> bool:
    """Return whether enough branches have arrived."""
    wait = does.wait
    if isinstance(wait, str):
        return wait == "any" and opening.arrived > 0
    if isinstance(wait, int):
        return opening.arrived >= wait
    if isinstance(wait, float):
        return opening.arrived >= wait * opening.total - NEARLY
    if opening.arrived == 0:
        return False
    names: dict[str, Json] = {"arrived": opening.arrived, "total": opening.total}
    if does.wait_sees:
        seen = _seen_by_now(ctx, opening)
        names |= {"results": seen.results, "branches": seen.told}
    return wait(ctx.environment(opening.scope, join, None, names))


def _seen_by_now(ctx: DecisionContext, opening: ParallelFrame) -> JoinProgress:
    """Return the results of the branches so far. Only branches settled since the last call are processed."""
    fork = ctx.node(opening.step).action
    assert isinstance(fork, ParallelAction)
    seen = opening.progress = opening.progress or JoinProgress()
    for branch in islice(reversed(opening.settled), len(opening.settled) - seen.settled):
        one = _result(fork, opening, branch)
        if one is not None:
            place = bisect_left(seen.branches, branch)
            seen.branches.insert(place, branch)
            seen.results.insert(place, one.value)
            seen.told.insert(place, _told(one))
    seen.settled = len(opening.settled)
    return seen


def results(ctx: DecisionContext, opening: ParallelFrame) -> list[BranchResult]:
    """Return the results of the branches in branch order, with failures if `on_branch_error` is `continue`."""
    fork = ctx.node(opening.step).action
    assert isinstance(fork, ParallelAction)
    found = (_result(fork, opening, branch) for branch in sorted(opening.settled))
    return [one for one in found if one is not None]


def _result(fork: ParallelAction, opening: ParallelFrame, branch: int) -> BranchResult | None:
    """Return the result of a settled branch; None if it does not count."""
    settled = opening.settled[branch]
    if settled.outcome != "arrived" and not (settled.outcome == "failed" and fork.on_branch_error == "continue"):
        return None
    start = fork.by_id[opening.starts[branch % len(opening.starts)]].target
    number = branch // len(opening.starts)
    key = opening.keys[number] if number < len(opening.keys) and opening.items is not None else start
    return BranchResult(branch=branch, key=key, start=start, outcome=settled.outcome, value=settled.value)


def _told(one: BranchResult) -> JsonObject:
    return {"index": one.branch, "key": one.key, "node": one.start, "outcome": one.outcome, "result": one.value}


def _seen(ctx: DecisionContext, opening: ParallelFrame) -> dict[str, Json]:
    """Return the names for the aggregate of a join."""
    seen = results(ctx, opening)
    values: list[Json] = [one.value for one in seen]
    counts: dict[str, Json] = {"arrived": opening.arrived, "total": opening.total}
    return {"results": values, "items": values, "branches": [_told(one) for one in seen], **counts}


def fire(ctx: DecisionContext, opening: ParallelFrame, join: PlanNode, *, ends: bool = False) -> None:
    """Close a parallel and let control through its join. `ends`: branches that have not started never start."""
    does = join.action
    assert isinstance(does, JoinAction)
    if is_short_of(ctx.plan, join.id):
        _close(ctx, opening, join, (), None)
        return
    if does.cancel_rest:
        cancellation.cancel_branches(ctx, opening)
    try:
        _check_branches(ctx, opening)
        check_values(ctx, (settled.value for settled in opening.settled.values()))
        value = aggregated(ctx, opening, join, does)
        _check_expected(ctx, opening, does)
    except PointsmanError as why:
        fail_opening(ctx, opening, failure_from(why))
        return
    brought = None
    if does.aggregate is None and does.aggregate_value is None:
        brought = tuple(one.branch for one in results(ctx, opening))
    over = opening.running == 0 and (ends or does.cancel_rest or opening.next == opening.total)
    _close(ctx, opening, join, brought, None if brought is not None else value, over=over)


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


def aggregated(ctx: DecisionContext, opening: ParallelFrame, join: PlanNode, does: JoinAction) -> Json:
    """Return the value of a join."""
    seen = results(ctx, opening)
    if does.aggregate_value is not None:
        env = ctx.environment(opening.scope, join, [one.value for one in seen], _seen(ctx, opening))
        return ctx.value(opening.scope, does.aggregate_value, env)
    if does.aggregate is not None:
        return does.aggregate(seen)
    return [one.value for one in seen]


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
        found = owners.get(write.path[:width])
        if found is not None and found[1].reduce != "last":
            yield found
    found = above.get(write.path)
    if found is not None:
        yield found


def _clash(opening: ParallelFrame, branches: tuple[int, int], write: Write) -> Failure:
    path = dotted(write.path)
    return Failure(
        code="write-conflict",
        message=f"branches {branches[0]} and {branches[1]} of {opening.step.node!r} both wrote {path!r}",
        hint=f"Declare a reducer for {path!r} in `state`, or let each branch write its own key.",
    )


def _check_expected(ctx: DecisionContext, opening: ParallelFrame, does: JoinAction) -> None:
    """Warn about keys that the document expects at the join and no branch produced. The join does not wait for them."""
    expected = does.expected_keys
    if does.expected is not None:
        found = does.expected(ctx.environment(opening.scope, ctx.node(opening.step), None))
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
    _close(ctx, opening, join, tuple(one.branch for one in results(ctx, opening)), None)


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
    cancellation.cancel_branches(ctx, opening)
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
    ctx.warn("join-timeout", f"{join.id!r} goes on without all its branches", opening.step)
    cancellation.cancel_branches(ctx, opening)
    fire(ctx, opening, join, ends=True)
