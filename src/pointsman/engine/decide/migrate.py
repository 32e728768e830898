"""Migrate and fork: continue an execution with another definition, or a copy of an execution independently.

Completed steps stay completed. Everything open, parked, held or failed must find its node with the same kind of action,
in the same parallels and loops, behind the same edges. A single mismatch refuses the migration.

    origin  1 ── 2 ── 3 ── 4 ── 5 …
    fork    1 ── 2 ── 3 ── ExecutionForked (edits) ── 5' …        at row 3: what was open there runs again

To run a step again, the report of the row in which it started is decided once more, up to that step:

    origin  1 ── 2 ── 3 [A completed, B starts] …
    fork    1 ── 2 ── 3'[A completed, B held] ── ExecutionForked (edits) ── B starts …
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from pointsman.engine.actions import (
    DecisionAction,
    EmitAction,
    EndAction,
    HumanTaskAction,
    JoinAction,
    LoopAction,
    NoOpAction,
    ParallelAction,
    StartAction,
    TransformAction,
    WaitAction,
    WorkAction,
    WorkflowAction,
)
from pointsman.engine.decide import lifecycle, limits
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import outstanding
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.engine.decide.outputs import check_edits
from pointsman.engine.events.lifecycle import ExecutionForked, ExecutionMigrated
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.reports import ForkRequested, MigrationRequested, ResumeRequested, RetryRequested
from pointsman.engine.state import ExecutionState, LoopState, ParallelFrame, PendingArrival, StepState, status_of
from pointsman.engine.steps import DataEdit, Scope, scope_text
from pointsman.errors import CallerError
from pointsman.values import END

KINDS: Final[Mapping[type, str]] = {
    StartAction: "start",
    EndAction: "end",
    DecisionAction: "decision",
    ParallelAction: "parallel",
    JoinAction: "join",
    LoopAction: "loop",
    HumanTaskAction: "human",
    TransformAction: "transform",
    WaitAction: "wait",
    EmitAction: "emit",
    NoOpAction: "note",
}
"""The node type of each action without a name of its own, for messages about steps that do not fit."""


class MigrationRefused(CallerError):
    """An open part of the execution does not fit into the other definition."""

    code = "migration-refused"


class MigrationMismatch(Struct, frozen=True):
    """An open part of the execution that does not fit into another definition."""

    code: str
    where: str
    """The step, or the node with its branch."""
    message: str


def move(ctx: DecisionContext, report: MigrationRequested) -> None:
    """Continue with the plan of the context. Raises `MigrationRefused`, `WrongStatus`."""
    state = ctx.state
    if not may_move(state):
        raise WrongStatus(
            f"an execution that is {status_of(state)} and has a step in progress cannot be migrated",
            hint="Pause it, or wait until it waits, fails or is interrupted. A step whose sub-workflow waits is in "
            "progress: pause the execution, or migrate the execution of the sub-workflow.",
        )
    settle_in(ctx, report)
    if state.status == "running":
        limits.set_limit_timers(ctx)
        for key in state.scopes:
            ctx.dirty_scopes[key] = None


def settle_in(ctx: DecisionContext, report: MigrationRequested) -> None:
    """Switch to the plan of the context. Raises `MigrationRefused`."""
    check_fits(ctx.plan, ctx.state)
    ctx.emit(
        ExecutionMigrated(
            workflow=ctx.plan.workflow,
            version=ctx.plan.version,
            definition=report.definition,
            options=report.options,
            by=report.by,
        )
    )


def check_fits(plan: Plan, state: ExecutionState) -> None:
    """Raise `MigrationRefused` if an open part of the execution does not fit into the plan."""
    mismatches = [*misfits(plan, state)]
    if mismatches:
        more = f" (and {len(mismatches) - 1} more)" if len(mismatches) > 1 else ""
        raise MigrationRefused(
            f"{mismatches[0].where}: {mismatches[0].message}{more}",
            hint="`pointsman move … --check` lists all of them.",
        )


def may_move(state: ExecutionState) -> bool:
    """Return whether the execution is halted, has failed, or only waits for people, timers and events."""
    return state.status in ("paused", "interrupted", "failed") or (
        state.status == "running" and not any(at.is_running or at.children for at in state.steps.values())
    )


def misfits(plan: Plan, state: ExecutionState, was: Plan | None = None) -> Iterator[MigrationMismatch]:
    """Yield every open part that does not fit into the plan, in the order of steps. `was`: the present plan."""
    failed = [step_state for step_state in state.outcome.failed_work if isinstance(step_state, StepState)]
    for at in sorted((*state.steps.values(), *failed), key=lambda at: at.step):
        yield from _step(plan, state, at, was)
    for step in sorted(state.parallel_frames):
        yield from _opening(plan, state.parallel_frames[step])
    for waits in _waiting(state):
        yield from _arrival(plan, waits)
    for key, scope in sorted(state.scopes.items()):
        for node, loop in sorted(scope.loops.items()):
            yield from _loop(plan, f"{scope_text(key)}{node}", node, loop)


def _waiting(state: ExecutionState) -> Iterable[PendingArrival]:
    for _, scope in sorted(state.scopes.items()):
        for node in sorted(scope.parked):
            yield from scope.parked[node].values()
    yield from state.held_arrivals
    for work in state.outcome.failed_work:
        if isinstance(work, PendingArrival):
            yield work


def _missing_node(where: str) -> MigrationMismatch:
    return MigrationMismatch("node-gone", where, "the other definition has no such node")


def _step(plan: Plan, state: ExecutionState, at: StepState, was: Plan | None) -> Iterator[MigrationMismatch]:
    where, node = str(at.step), plan.nodes.get(at.step.node)
    if node is None:
        yield _missing_node(where)
        return
    if node.position.parallels != _parallels(at.step.scope):
        yield MigrationMismatch(
            "scope-changed",
            where,
            f"in the other definition it is in {' in '.join(reversed(node.position.parallels)) or 'no parallel'}",
        )
    if at.step.lineage and not node.position.has_lineage:
        yield MigrationMismatch(
            "trigger-changed", where, "in the other definition only one of its steps can be open at a time"
        )
    before = kind_of(was.nodes[at.step.node]) if was is not None else _kind_seen(state, at)
    if before not in (None, kind_of(node)):
        yield MigrationMismatch(
            "kind-changed", where, f"it is a {before} step; in the other definition it is a {kind_of(node)} step"
        )


def _parallels(scope: Scope) -> tuple[str, ...]:
    return tuple(branch.parallel for branch in scope)


def kind_of(node: PlanNode) -> str:
    """Return the kind of action at a node, in one word."""
    match node.action:
        case WorkAction(spec=spec):
            return spec.kind
        case WorkflowAction(workflow=workflow):
            return f"workflow {workflow}"
        case action:
            return KINDS[type(action)]


def _kind_seen(state: ExecutionState, at: StepState) -> str | None:
    """Return the kind of an open step as far as its state shows it; None: unknown."""
    if at.gate is not None and at.gate.about == "node":
        return "human"
    if at.event is not None:
        return "wait"
    return "parallel" if at.step in state.parallel_frames else None


def _opening(plan: Plan, opening: ParallelFrame) -> Iterator[MigrationMismatch]:
    node = plan.nodes.get(opening.step.node)
    if node is None or not isinstance(node.action, ParallelAction):
        return  # reported for its step
    where = str(opening.step)
    missing = [edge for edge in opening.starts if edge not in node.action.by_id]
    if missing:
        yield MigrationMismatch(
            "edge-gone", where, f"a branch began over the edge {missing[0]!r}, which the other definition lacks"
        )
    if opening.joined != (node.action.join is not None):
        yield MigrationMismatch("join-changed", where, "a join closes it in only one of the two definitions")


def _arrival(plan: Plan, waits: PendingArrival) -> Iterator[MigrationMismatch]:
    where = f"{scope_text(waits.scope)}{waits.node}"
    if waits.node == END:
        return
    node = plan.nodes.get(waits.node)
    if node is None:
        yield _missing_node(where)
    elif waits.edge and waits.edge not in plan.edge_index:
        yield MigrationMismatch(
            "edge-gone", where, f"control waits behind the edge {waits.edge!r}, which the other definition lacks"
        )
    elif node.position.parallels != _parallels(waits.scope) and node.enter != "join":
        yield MigrationMismatch(
            "scope-changed", where, "control waits inside other parallels than in the other definition"
        )


def _loop(plan: Plan, where: str, node: str, loop: LoopState) -> Iterator[MigrationMismatch]:
    there = plan.nodes.get(node)
    if there is None:
        yield _missing_node(where)
    elif not isinstance(there.action, LoopAction):
        yield MigrationMismatch(
            "kind-changed", where, f"round {loop.round} of a loop is open; in the other definition it is not a loop"
        )
    elif (there.action.items is None) != (loop.items is None):
        yield MigrationMismatch("kind-changed", where, "it goes over items in only one of the two definitions")


def fork(ctx: DecisionContext, report: ForkRequested) -> None:
    """Continue the copy: request open work again, resume a halted execution, retry a failed one."""
    state = ctx.state
    if state.ended and not (state.status == "failed" and state.outcome.failed_work):
        raise WrongStatus(
            f"{report.origin!r} is {state.status} at row {report.row}: there is nothing to continue",
            hint="Fork it from an earlier row (--at), or run a step again (retry --from).",
        )
    new_input = report.input or {}
    edits = (*(DataEdit((name,), value) for name, value in new_input.items()), *report.edits)
    check_edits(ctx, edits)
    if report.onto is not None:
        check_fits(ctx.plan, state)
    stands, failed = state.is_halted, state.status == "failed"
    ctx.emit(
        ExecutionForked(
            origin=report.origin,
            row=report.row,
            before=report.before,
            input={**state.setup.input, **new_input} if new_input else None,
            edits=edits,
            session=report.session,
            by=report.by,
            undoes=report.undoes,
        )
    )
    if report.onto is not None:
        settle_in(ctx, report.onto)
    if failed:
        lifecycle.retry(ctx, RetryRequested(limits=report.limits, by=report.by))
        return
    if state.status != "interrupted":  # otherwise they are requested on resumption
        ctx.commands += outstanding(ctx.plan, state)
    if stands:
        lifecycle.resume(ctx, ResumeRequested(limits=report.limits, by=report.by))
        return
    lifecycle.raise_limits(ctx, report.limits)
    limits.set_limit_timers(ctx)
    for key in state.scopes:
        ctx.dirty_scopes[key] = None
