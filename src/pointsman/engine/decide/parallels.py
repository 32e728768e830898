"""Parallels: open one scope per branch; the join closes them.

    parallel ──┬─ branch 0 ─ … ─┐ arrived
               ├─ branch 1 ─ … ─┤ ended / failed / cancelled      ─▶ `joins`
               └─ branch 2 ─ … ─┘

Branches start in order, at most `parallel_max` at a time.
"""

from __future__ import annotations

from typing import Literal

from pointsman.engine.actions import JoinAction, ParallelAction, PlanEdge
from pointsman.engine.decide import cancellation, joins
from pointsman.engine.decide.context import DecisionContext, EnterNode, key_of
from pointsman.engine.decide.entry import Entry, set_timer
from pointsman.engine.decide.outputs import StepRefused, listed_items
from pointsman.engine.decide.partial_run import is_short_of
from pointsman.engine.events.steps import BranchSettled, ScopesOpened
from pointsman.engine.failures import Failure
from pointsman.engine.state import ParallelFrame, ScopeState
from pointsman.engine.steps import Step
from pointsman.engine.writes import Arrival
from pointsman.expressions.environment import Environment
from pointsman.values import Json


def open_branches(ctx: DecisionContext, entry: Entry, does: ParallelAction) -> None:
    """Open one scope per (item × start)."""
    env = entry.environment()
    items = _items(entry, does, env)
    # A partial run does not start branches that lead to none of its targets: a branch counts from its first step on.
    starts = tuple(edge for edge in _starts(does, env) if not is_short_of(ctx.plan, edge.target))
    keys = _keys(entry, does, items, starts)
    entry.open_step()
    ctx.emit(
        ScopesOpened(
            step=entry.step,
            starts=tuple(edge.id for edge in starts),
            items=items,
            keys=keys,
            item_name=does.item_name,
            joined=does.join is not None,
        )
    )
    opening = ctx.state.parallel_frames[entry.step]
    _set_join_timer(ctx, opening, does)
    if opening.total == 0:
        joins.check(ctx, opening)
    else:
        pump(ctx, opening)


def _starts(does: ParallelAction, env: Environment) -> tuple[PlanEdge, ...]:
    """Return the start edges whose conditions hold, else the default edges."""
    holds = tuple(e for e in does.starts if e.kind == "plain" or (e.test is not None and e.test(env)))
    return holds or tuple(edge for edge in does.starts if edge.kind == "default")


def skip(entry: Entry, does: ParallelAction) -> None:
    """Skip the parallel: the incoming value continues at its join."""
    entry.complete_instantly(said={"skipped": True}, leaves=False)
    if does.join is not None:
        entry.ctx.enqueue(EnterNode(does.join, entry.scope.key, None, entry.step, entry.move.lineage))
    else:
        entry.ctx.end_token(entry.step)


def _items(entry: Entry, does: ParallelAction, env: Environment) -> list[Json] | None:
    if does.items is None:
        return None
    found = entry.ctx.value(entry.scope, does.items, env)
    if not found and does.one_scope and found in (None, [], {}):
        return None
    return listed_items(found, of=f"the items of {entry.node.id!r}", field="items")


def _keys(
    entry: Entry, does: ParallelAction, items: list[Json] | None, starts: tuple[PlanEdge, ...]
) -> tuple[str, ...]:
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
    entry.ctx.warn("duplicate-item-key", f"items of {entry.node.id!r} share keys; they were numbered", entry.step)
    return _numbered(keys)


def _numbered(keys: list[str]) -> tuple[str, ...]:
    """Append the position to repeated keys."""
    found: dict[str, None] = {}
    for number, key in enumerate(keys):
        own = key if key not in found else f"{key}_{number}"
        while own in found:
            own += "_"
        found[own] = None
    return tuple(found)


def _set_join_timer(ctx: DecisionContext, opening: ParallelFrame, does: ParallelAction) -> None:
    gather = ctx.plan.nodes[does.join].action if does.join is not None else None
    if isinstance(gather, JoinAction) and gather.timeout_s is not None and gather.closes[0] == opening.step.node:
        set_timer(ctx, opening.step, "join", ctx.state.at + gather.timeout_s)


def pump(ctx: DecisionContext, opening: ParallelFrame) -> None:
    """Start further branches, up to the limit of parallel branches."""
    does = ctx.node(opening.step).action
    assert isinstance(does, ParallelAction)
    most = does.parallel_max or ctx.plan.limits.parallel
    raised = ctx.state.limits.raised.get("parallel")
    most = int(raised) if raised is not None and does.parallel_max is None else most
    while opening.running < most and opening.next < opening.total:
        branch = opening.next
        scope = ctx.scope(opening.branch_scope(branch))
        edge = does.by_id[opening.starts[branch % len(opening.starts)]]
        ctx.enqueue(EnterNode(edge.target, scope.key, edge, opening.step))


def branch_ended(ctx: DecisionContext, scope: ScopeState) -> bool:
    """Handle a branch without tokens: start its `after` edges once, then settle it. Return True if it belongs to a
    parallel.
    """
    opening = scope.opening
    if opening is None:
        return False
    does = ctx.node(opening.step).action
    assert isinstance(does, ParallelAction)
    fresh = [edge for edge in does.after if (edge.target, ()) not in scope.visits]
    fresh = [edge for edge in fresh if not is_short_of(ctx.plan, edge.target)]
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
        joins.check(ctx, opening)
    if ctx.state.parallel_frames.get(opening.step) is opening:
        pump(ctx, opening)
    ctx.dirty_scopes[opening.scope.key] = None


def fail(ctx: DecisionContext, scope: ScopeState, failure: Failure) -> None:
    """Handle a failed branch: the parallel fails with it, or continues without it."""
    opening = scope.opening
    assert opening is not None
    does = ctx.node(opening.step).action
    assert isinstance(does, ParallelAction)
    if does.on_branch_error == "fail" and not opening.detached:
        joins.fail_opening(ctx, opening, failure)
        return
    cancellation.cancel_steps(ctx, scope.key)
    settle(ctx, scope, "failed", failure=failure)
