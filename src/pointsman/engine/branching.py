"""Branching: a parallel opens one scope per branch, its join closes them.

    parallel ──┬─ branch 0 ─ … ─┐ arrived
               ├─ branch 1 ─ … ─┤ ended / failed / cancelled      join: fires when `wait` is met,
               └─ branch 2 ─ … ─┘                                 or when every branch is settled

Branches begin in order, at most `parallel_max` at a time. What the join sees, and what is written around, comes in
branch order, never in arrival order.
"""

from __future__ import annotations

from pointsman.engine import cancelling
from pointsman.engine.desk import Arrive, Desk, Fall, Leave, key_of
from pointsman.engine.entry import Entry, set_timer
from pointsman.engine.events import Arrival, BranchSettled, ScopesClosed, ScopesOpened, StepFailed
from pointsman.engine.failures import Failure
from pointsman.engine.joining import aggregated, check_branches, check_expected, results, seen_by
from pointsman.engine.outputs import StepRefused, failure_from
from pointsman.engine.plan import Fork, Gather, PlanEdge, PlanNode
from pointsman.engine.state import Opening, ScopeState
from pointsman.engine.steps import Scope, Step
from pointsman.errors import PointsmanError
from pointsman.expressions.environment import Environment
from pointsman.values import Json


def open_for(desk: Desk, scope: Scope) -> bool:
    """Whether a scope that does not exist yet may still begin: its opening is there and waits for it."""
    opening = opening_of(desk, scope)
    return opening is not None and not opening.detached


def opening_of(desk: Desk, scope: Scope) -> Opening | None:
    """The opening that a branch scope belongs to."""
    held = desk.state.scopes.get(scope)
    if held is not None:
        return held.opening
    last = scope[-1]
    found = desk.state.openings.get(Step(last.parallel, scope[:-1], last.visit))
    if found is not None:
        return found
    wanted = (last.parallel, scope[:-1], last.visit)
    return next((o for s, o in desk.state.openings.items() if s[:3] == wanted), None)


def open_branches(desk: Desk, entry: Entry, does: Fork) -> None:
    """Open one scope per (item × start)."""
    env = entry.environment()
    items = _items(entry, does, env)
    starts = tuple(edge for edge in does.starts if edge.test is None or edge.test(env))
    keys = _keys(entry, does, items, starts)
    entry.began()
    desk.emit(
        ScopesOpened(
            step=entry.step,
            starts=tuple(edge.id for edge in starts),
            items=items,
            keys=keys,
            item_name=does.item_name,
            joined=does.join is not None,
        )
    )
    opening = desk.state.openings[entry.step]
    _set_join_timer(desk, opening, does)
    if opening.total == 0:
        check(desk, opening)
    else:
        pump(desk, opening)


def _items(entry: Entry, does: Fork, env: Environment) -> list[Json] | None:
    if does.items is None:
        return None
    found = entry.desk.value(entry.scope, does.items, env)
    if isinstance(found, list):
        return found
    if isinstance(found, dict):
        return [{"key": key, "value": value} for key, value in found.items()]
    if found is None:
        return None if does.one_scope else []
    raise StepRefused(
        Failure(
            code="items-not-a-list",
            message=f"the items of {entry.node.id!r} are a {type(found).__name__}, not a list",
            hint="Let `items` name a list; one branch is opened for each of its elements.",
        )
    )


def _keys(entry: Entry, does: Fork, items: list[Json] | None, starts: tuple[PlanEdge, ...]) -> tuple[str, ...]:
    if items is None:
        return tuple(edge.target for edge in starts) if does.one_scope else ()
    keys = [key_of(item, number) for number, item in enumerate(items)]
    if len(set(keys)) == len(keys):
        return tuple(keys)
    if does.duplicate_keys == "fail":
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise StepRefused(
            Failure(
                code="duplicate-item-key",
                message=f"two items of {entry.node.id!r} have the key {twice!r}",
                hint="Items are told apart by their text, or by `key`, `id` or `name`: make those differ.",
            )
        )
    entry.desk.warn("duplicate-item-key", f"items of {entry.node.id!r} share keys; they were numbered", entry.step)
    return tuple(key if keys.index(key) == number else f"{key}_{number}" for number, key in enumerate(keys))


def _set_join_timer(desk: Desk, opening: Opening, does: Fork) -> None:
    join = desk.plan.nodes[does.join] if does.join is not None else None
    if join is not None and isinstance(join.does, Gather) and join.does.timeout_s is not None:
        set_timer(desk, opening.step, "join", desk.state.at + join.does.timeout_s)


def pump(desk: Desk, opening: Opening) -> None:
    """Begin further branches, as many as may run at a time."""
    does = desk.node(opening.step).does
    assert isinstance(does, Fork)
    most = does.parallel_max or desk.plan.limits.parallel
    raised = desk.state.limits.get("parallel")
    most = int(raised) if raised is not None and does.parallel_max is None else most
    edges = {edge.id: edge for edge in does.starts}
    while opening.running < most and opening.next < opening.total and not opening.detached:
        branch = opening.next
        scope = desk.scope(opening.branch_scope(branch))
        edge = edges[opening.starts[branch % len(opening.starts)]]
        desk.arrive(Arrive(edge.target, scope.key, edge, opening.step))


def branch_arrived(
    desk: Desk, join: PlanNode, scope: ScopeState, *, after: Step | None = None, merged: tuple[Arrival, ...] = ()
) -> None:
    """A branch has reached its join, and nothing of it can come there any more."""
    settle(desk, scope, "arrived", after=after, merged=merged)


def branch_ended(desk: Desk, scope: ScopeState) -> bool:
    """No token is left in a branch. True if it went on (or was settled)."""
    opening = scope.opening
    if opening is None:
        return False
    does = desk.node(opening.step).does
    assert isinstance(does, Fork)
    fresh = [edge for edge in does.after if (edge.target, ()) not in scope.visits]
    if fresh and not opening.detached:
        for edge in fresh:
            desk.arrive(Arrive(edge.target, scope.key, edge, opening.step))
        return True
    settle(desk, scope, "ended")
    return True


def settle(
    desk: Desk,
    scope: ScopeState,
    outcome: str,
    *,
    after: Step | None = None,
    merged: tuple[Arrival, ...] = (),
    failure: Failure | None = None,
) -> None:
    """Account for a branch; its join may fire, others may begin."""
    opening = scope.opening
    assert opening is not None
    desk.touched.pop(scope.key, None)
    desk.emit(
        BranchSettled(
            step=opening.step,
            branch=scope.key[-1].branch,
            outcome=outcome,  # pyright: ignore[reportArgumentType] - the four outcomes
            after=after,
            merged=merged,
            failure=failure,
        )
    )
    if opening.detached:
        desk.touched[opening.scope.key] = None
        return
    if not check(desk, opening):
        pump(desk, opening)


def check(desk: Desk, opening: Opening) -> bool:
    """Fire the join of an opening if its time has come. True if it did."""
    does = desk.node(opening.step).does
    assert isinstance(does, Fork)
    settled = len(opening.settled) == opening.total
    if does.join is None:
        if settled:
            _close_unjoined(desk, opening)
        return settled
    join = desk.plan.nodes[does.join]
    assert isinstance(join.does, Gather)
    if join.does.closes[0] != opening.step.node:  # an inner one: its list arrives as one value further out
        if settled:
            _close_inner(desk, opening, join)
        return settled
    if not settled and not _met(desk, opening, join, join.does):
        return False
    fire(desk, opening, join)
    return True


def _met(desk: Desk, opening: Opening, join: PlanNode, does: Gather) -> bool:
    """Whether enough branches have arrived."""
    wait = does.wait
    if isinstance(wait, str):
        return wait == "any" and opening.arrived > 0
    if isinstance(wait, int):
        return opening.arrived >= wait
    if isinstance(wait, float):
        return opening.arrived >= wait * opening.total
    if opening.arrived == 0:
        return False
    env = desk.environment(opening.scope, join, None, seen_by(desk, opening))
    return wait(env)


def fire(desk: Desk, opening: Opening, join: PlanNode) -> None:
    """Close the opening and let control through its join."""
    does = join.does
    assert isinstance(does, Gather)
    if does.cancel_rest:
        cancelling.cancel_branches(desk, opening)
    branches = tuple(sorted(opening.settled))
    try:
        check_branches(desk, opening)
        value = aggregated(desk, opening, join, does)
        check_expected(desk, opening, does)
    except PointsmanError as why:
        fail_opening(desk, opening, failure_from(why))
        return
    brought = None
    if does.aggregate is None and does.aggregate_value is None:
        brought = tuple(one.branch for one in results(desk, opening))
    desk.emit(
        ScopesClosed(
            step=opening.step,
            branches=branches,
            forgotten=opening.running == 0,
            brought=brought,
            result=None if brought is not None else value,
        )
    )
    desk.touched[opening.scope.key] = None
    desk.arrive(Arrive(join.id, opening.scope.key, None, opening.step, desk.left(opening.step).thread))


def _close_inner(desk: Desk, opening: Opening, join: PlanNode) -> None:
    try:
        check_branches(desk, opening)
    except StepRefused as why:
        fail_opening(desk, opening, why.failure)
        return
    brought = tuple(one.branch for one in results(desk, opening))
    desk.emit(ScopesClosed(step=opening.step, branches=tuple(sorted(opening.settled)), brought=brought))
    desk.touched[opening.scope.key] = None
    desk.arrive(Arrive(join.id, opening.scope.key, None, opening.step, desk.left(opening.step).thread))


def _close_unjoined(desk: Desk, opening: Opening) -> None:
    """Without a join the parallel is over when its branches are; nothing follows it."""
    try:
        check_branches(desk, opening)
    except StepRefused as why:
        fail_opening(desk, opening, why.failure)
        return
    desk.emit(ScopesClosed(step=opening.step, branches=tuple(sorted(opening.settled))))
    desk.end_token(opening.step, reason="swallowed")


def fail_opening(desk: Desk, opening: Opening, failure: Failure) -> None:
    """The parallel itself fails: its branches are stopped, its error edges or the scopes around decide."""
    cancelling.cancel_branches(desk, opening)
    step = opening.step
    at = desk.state.steps[step]
    desk.emit(StepFailed(step=step, attempt=at.attempt, failure=failure))
    desk.touched[step.scope] = None
    node = desk.node(step)
    if node.catches:
        desk.queue.append(Leave(step, failed=failure))
    else:
        desk.queue.append(Fall(step, failure))
