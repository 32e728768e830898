"""Handle a failed attempt: retry, error handler, error edge, enclosing scopes, execution. In that order.

    attempt fails ─▶ retry? ─▶ advice of a model? ─▶ `continue`? ─▶ error edge? ─▶ branch policy ─▶ … ─▶ execution fails

A failure that will fail the whole execution leaves all other steps in place, so that a retry can resume them.

An attempt that this process cannot perform does not fail; it waits for a worker that can:

    attempt ─▶ WorkerMissing ─▶ WorkerAwaited          no work runs; the execution waits
    a worker with the missing part ─▶ WorkerOffered ─▶ AttemptStarted(worker) ─▶ the same attempt is executed again

The same attempt is repeated, so its paid effects are answered from the record.
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.actions import ParallelAction, Retry, WorkAction, WorkflowAction
from pointsman.engine.decide import completion, loops, parallels
from pointsman.engine.decide.context import DecisionContext, EnterNode, ExitStep, PropagateFailure
from pointsman.engine.decide.entry import catching, execute, fail_open_step, set_timer
from pointsman.engine.decide.outputs import check_writes, evaluate_outputs, failure_from
from pointsman.engine.events.steps import AttemptStarted, StepFailed, StepSucceeded
from pointsman.engine.events.waits import WorkerAwaited
from pointsman.engine.failures import Failure, is_one_of
from pointsman.engine.fold.scopes import failure_of
from pointsman.engine.plan import PlanNode
from pointsman.engine.reports import Usage, WorkDone, WorkerOffered
from pointsman.engine.state import StepState
from pointsman.engine.steps import Step
from pointsman.errors import PointsmanError
from pointsman.values import Json, JsonObject

ADVICES_MAX: Final = 2
"""How often a model may be asked for advice about one step."""

ADVICE: Final = "recovery-advice"
"""Code of the warning that holds a model's explanation of its advice."""
REASON_CHARS_MAX: Final = 1000

REASKS_MAX: Final = 2
"""How often an agent is asked again after it chose no legal edge."""

NO_ROUTE: Final = "no-route"


def attempt_failed(ctx: DecisionContext, at: StepState, failure: Failure, usage: Usage | None) -> None:
    """Handle an attempt that failed in an executor, a child execution or a check."""
    step, node = at.step, ctx.node(at.step)
    action = node.action
    retry = action.retry if isinstance(action, WorkAction | WorkflowAction) else None
    tries_left = retry is not None and at.failures - at.reasks < retry.retries and at.phase == "work"
    if retry is not None and tries_left and _is_worth_it(retry, failure):
        ctx.emit(StepFailed(step=step, attempt=at.attempt, failure=failure, final=False, usage=usage))
        wait = retry_wait(retry, at.failures - at.reasks - 1, ctx.state.setup.seed, step)
        if failure.retry_after_s is not None:
            wait = max(wait, min(failure.retry_after_s, ctx.plan.limits.retry_after_s))
        set_timer(ctx, step, "retry", ctx.state.at + wait)
        return
    _after_retries(ctx, at, node, failure, usage)


def _is_worth_it(retry: Retry, failure: Failure) -> bool:
    """Return whether to retry: the `retryOn` of the node decides, else the failure itself."""
    return failure.retryable if retry.on is None else is_one_of(failure, retry.on)


def _after_retries(ctx: DecisionContext, at: StepState, node: PlanNode, failure: Failure, usage: Usage | None) -> None:
    action = node.action
    handler = action.on_failure if isinstance(action, WorkAction | WorkflowAction) else "fail"
    step = at.step
    caught = catching(node, failure)
    if (
        handler == "llm_recovery"
        and isinstance(action, WorkAction)
        and at.advices < ADVICES_MAX
        and at.phase == "work"
        and failure.code != NO_ROUTE
    ):
        ctx.emit(StepFailed(step=step, attempt=at.attempt, failure=failure, final=False, usage=usage))
        _ask_for_advice(ctx, at, node, failure)
        return
    if handler == "continue" and not caught:
        ctx.emit(StepFailed(step=step, attempt=at.attempt, failure=failure, final=False, usage=usage))
        value = failure_of(failure)
        ctx.emit(StepSucceeded(step=step, attempt=at.attempt, result=value, annotations={"failed": True}))
        if node.outputs:
            fields = ", ".join(repr(output.path.text) for output in node.outputs)
            ctx.warn(
                "outputs-not-written",
                f"{node.id!r} failed and the execution continues: {fields} keep their values",
                step,
            )
        ctx.dirty_scopes[step.scope] = None
        ctx.enqueue(ExitStep(step))
        return
    ctx.emit(StepFailed(step=step, attempt=at.attempt, failure=failure, usage=usage))
    ctx.dirty_scopes[step.scope] = None
    ctx.enqueue(ExitStep(step, failed=failure) if caught else PropagateFailure(step, failure))


def retry_wait(retry: Retry, failures: int, seed: int, step: Step) -> float:
    """Return the seconds until the next attempt: `wait_s` × `factor`^(previous failures), at most `wait_max_s`, with
    seeded jitter.
    """
    wait = min(retry.wait_s * retry.factor**failures, retry.wait_max_s)
    if retry.jitter:
        wait *= 1 + retry.jitter * (2 * chance(f"{seed}:{step}:{failures}") - 1)
    return wait


def chance(text: str) -> float:
    """Return a number in [0, 1) derived from the text alone (FNV-1a): the same on every machine and in every replay."""
    hashed = 0xCBF29CE484222325
    for byte in text.encode():
        hashed = ((hashed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return hashed / 2**64


def _ask_for_advice(ctx: DecisionContext, at: StepState, node: PlanNode, failure: Failure) -> None:
    routes: list[Json] = [edge.target for edge in node.exits.edges]
    question: JsonObject = {
        "failure": {"code": failure.code, "message": failure.message, "hint": failure.hint},
        "input": at.input,
        "routes": routes,
    }
    ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt + 1, reason="advice", phase="recover", input=question))
    execute(ctx, at.step)


def advised(ctx: DecisionContext, at: StepState, report: WorkDone) -> None:
    """Follow a model's advice after a failure: retry with other inputs, substitute a value, take another route, or
    fail.
    """
    step, node = at.step, ctx.node(at.step)
    advice = report.result if isinstance(report.result, dict) else {}
    choice, failure = advice.get("choice"), at.failure or Failure(code="failed", message="failed")
    if choice == "retry":
        inputs = advice.get("inputs")
        changed = {**(at.input or {}), **inputs} if isinstance(inputs, dict) else None
        ctx.emit(AttemptStarted(step=step, attempt=at.attempt + 1, reason="retry", input=changed))
        execute(ctx, step)
    elif choice == "substitute":
        _substitute(ctx, at, node, advice.get("value"), report.usage)
    elif choice == "route" and any(edge.target == advice.get("route") for edge in node.exits.edges):
        edge = next(edge for edge in node.exits.edges if edge.target == advice.get("route"))
        ctx.emit(StepSucceeded(step=step, attempt=at.attempt, result=failure_of(failure), usage=report.usage))
        ctx.dirty_scopes[step.scope] = None
        ctx.enqueue(EnterNode(edge.target, step.scope, edge, step, at.incoming.lineage))
    else:
        fail_open_step(ctx, step, failure)
    if isinstance(reason := advice.get("reason"), str) and reason:
        ctx.warn(ADVICE, f"advice of the model: {reason[:REASON_CHARS_MAX]}", step)


def _substitute(ctx: DecisionContext, at: StepState, node: PlanNode, value: Json, usage: Usage | None) -> None:
    """Use the value instead of the result, also in the outputs."""
    try:
        writes = evaluate_outputs(ctx, at.scope, node, value)
        check_writes(ctx, at.scope, node, at.incoming.lineage, writes, value)
    except PointsmanError as why:
        fail_open_step(ctx, at.step, failure_from(why))
        return
    ctx.emit(StepSucceeded(step=at.step, attempt=at.attempt, result=value, writes=writes, usage=usage))
    ctx.dirty_scopes[at.step.scope] = None
    ctx.enqueue(ExitStep(at.step))


def reask(ctx: DecisionContext, at: StepState, failure: Failure, usage: Usage | None) -> None:
    """Ask an agent again that chose no legal edge, with the legal labels; after `REASKS_MAX` times it fails."""
    if at.reasks >= REASKS_MAX:
        attempt_failed(ctx, at, failure, usage)
        return
    ctx.emit(StepFailed(step=at.step, attempt=at.attempt, failure=failure, final=False, usage=usage))
    message = f"{failure.message}. {failure.hint}"
    request = {**(at.input or {}), "correction": message}
    ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt + 1, reason="reask", input=request))
    execute(ctx, at.step)


def propagate(ctx: DecisionContext, move: PropagateFailure) -> None:
    """Propagate an uncaught failure to the enclosing loops, branches and parallels, then to the execution."""
    scope = ctx.state.scopes.get(move.step.scope)
    if scope is None:
        return
    if ctx.state.compensation is not None:
        completion.end_undo(ctx, move.failure)
        return
    if ctx.state.limits.escalation_gate == move.step and ctx.state.status == "interrupted":
        ctx.warn(
            "handoff-failed", f"no person decided whether the execution may continue: {move.failure.message}", move.step
        )
        return
    if loops.skip_round(ctx, move.step, move.failure):
        return
    if scope.opening is None or _is_fatal(ctx, move.step):
        completion.fail(ctx, move.failure, move.step)
    else:
        parallels.fail(ctx, scope, move.failure)


def _is_fatal(ctx: DecisionContext, step: Step) -> bool:
    """Return whether every enclosing parallel fails with its branch uncaught: the execution will fail."""
    scope = ctx.state.scopes[step.scope]
    while scope.opening is not None:
        fork = scope.opening.step
        node = ctx.node(fork)
        assert isinstance(node.action, ParallelAction)
        if node.action.on_branch_error != "fail" or node.exits.catches or scope.opening.detached:
            return False
        scope = scope.opening.scope
        if loops.skipping(ctx, fork) is not None:
            return False
    return True


def refused(ctx: DecisionContext, at: StepState, why: PointsmanError, usage: Usage | None) -> None:
    """Fail an attempt whose result cannot be accepted: its outputs, their size, or a conflict."""
    attempt_failed(ctx, at, failure_from(why), usage)


def worker_missing(ctx: DecisionContext, at: StepState, failure: Failure) -> None:
    """Leave the attempt to a worker that has what this process lacks."""
    ctx.emit(
        WorkerAwaited(step=at.step, attempt=at.attempt, needs=failure.needs, message=failure.message, hint=failure.hint)
    )


def worker_offered(ctx: DecisionContext, report: WorkerOffered) -> None:
    """Perform the attempt here. An offer that is late, or made while the execution is halted, has no effect."""
    at = ctx.state.steps.get(report.step)
    if at is None or not at.needs or at.attempt != report.attempt or ctx.state.status != "running":
        return
    advised = at.advised if at.phase == "recover" else None
    ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt, reason="worker", phase=at.phase, input=advised))
    execute(ctx, at.step)
