"""Start a node: one function per kind of action.

Nodes that take no time complete in the same decision; the others become open steps and issue commands.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from pointsman.engine.actions import (
    ConstantValue,
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
    Value,
    WaitAction,
    WorkAction,
    WorkflowAction,
)
from pointsman.engine.commands import StartChild
from pointsman.engine.data import Data
from pointsman.engine.decide import (
    budgets,
    completion,
    human_tasks,
    join_values,
    limits,
    loops,
    outbox,
    parallels,
    partial_run,
    race_detection,
    tool_approval,
    waits,
)
from pointsman.engine.decide.context import DecisionContext, EnterNode
from pointsman.engine.decide.entry import Entry, execute, set_timer
from pointsman.engine.decide.outputs import check_values, check_writes, evaluate_outputs, failure_from
from pointsman.engine.events.lifecycle import ExecutionPaused
from pointsman.engine.events.waits import ChildRequested
from pointsman.engine.failures import Failure
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import ScopeState
from pointsman.engine.writes import Arrival, Write
from pointsman.errors import PointsmanError
from pointsman.values import Json, JsonObject


def start(
    ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, merged: tuple[Arrival, ...] = ()
) -> None:
    """Start a node. Limits are checked first: an arrival that a limit stops is held, not lost."""
    tripped = limits.before_step(ctx, node, scope, move)
    if tripped is None and ctx.plan.limits.budgets and not ctx.state.is_escalated:
        tripped = budgets.used_up(ctx, node.action)
    if tripped is not None and ctx.state.compensation is None:
        if not merged:
            limits.hold(ctx, replace(move, starts_node=True))
        limits.trip(ctx, tripped)
        return
    if ctx.before is not None and ctx.before == ctx.visit(scope, node, move.lineage):
        if not merged:
            limits.hold(ctx, replace(move, starts_node=True))
        ctx.emit(ExecutionPaused())
        return
    if (ctx.plan.partial_run is not None or ctx.state.pause.breakpoints.stepping) and _stops(
        ctx, node, scope, move, merged
    ):
        return
    entry = Entry(ctx, node, scope, move, merged)
    try:
        if node.position.races:
            race_detection.read(entry)
        trial = ctx.plan.partial_run
        if trial is not None and partial_run.is_mocked(trial, entry):
            partial_run.complete_mocked(entry, trial)
        elif node.policy.skip is not None and node.policy.skip(entry.environment()):
            _skip(entry)
        else:
            _start(entry)
    except PointsmanError as why:
        entry.failed(failure_from(why))


def _stops(
    ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, merged: tuple[Arrival, ...]
) -> bool:
    """Pause at a breakpoint or after a single step; the step starts when the execution resumes. Return True if
    paused.
    """
    step = ctx.visit(scope, node, move.lineage)
    if not partial_run.pauses_before(ctx, node, step):
        return False
    if not merged:
        limits.hold(ctx, replace(move, starts_node=True))
    ctx.emit(ExecutionPaused(before=step))
    return True


def _skip(entry: Entry) -> None:
    does = entry.node.action
    if isinstance(does, ParallelAction):
        parallels.skip(entry, does)
    else:
        entry.complete_instantly(said={"skipped": True})


def _start(entry: Entry) -> None:
    does = entry.node.action
    match does:
        case WorkAction():
            _work(entry, does)
        case DecisionAction():
            label = _label(entry.ctx.value(entry.scope, does.branch, entry.environment()))
            entry.complete_instantly(label, said={"branch": label})
        case ParallelAction():
            parallels.open_branches(entry.ctx, entry, does)
        case JoinAction():
            join_values.gather(entry, does)
        case LoopAction():
            loops.next_round(entry, does)
        case HumanTaskAction():
            human_tasks.open_gate(entry, does)
        case WaitAction():
            waits.begin(entry, does)
        case WorkflowAction():
            _call(entry, does)
        case NoOpAction():
            entry.complete_instantly()
        case _:
            _pass_through(entry, does)


def _pass_through(entry: Entry, does: StartAction | EndAction | TransformAction | EmitAction) -> None:
    match does:
        case StartAction():
            _begin(entry, does)
        case EndAction():
            _finish(entry, does)
        case TransformAction():
            _change(entry, does)
        case EmitAction():
            _emit(entry, does)
        case _:
            assert_never(does)


def _label(value: Json) -> str:
    """Return a branch label as text: booleans as in documents."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _work(entry: Entry, does: WorkAction) -> None:
    ctx, scope = entry.ctx, entry.scope
    work = _input(entry, does.input)
    if does.spec.kind == "tool_executor":
        work = _pending(entry)
        if not work["calls"]:
            ctx.warn("nothing-pending", f"{entry.node.id!r} was reached without a tool call to run", entry.step)
            entry.complete_instantly()
            return
    if entry.node.policy.approval.before:
        tool_approval.ask_to_start(entry, work=work, messages=_messages(scope) if does.receives_messages else 0)
        return
    if does.delay_s > 0:
        entry.open_step(input=work, messages=_messages(scope) if does.receives_messages else 0)
        set_timer(ctx, entry.step, "delay", ctx.state.at + does.delay_s)
        return
    entry.open_step(input=work, messages=_messages(scope) if does.receives_messages else 0, runs=True)
    execute(ctx, entry.step)


def _input(entry: Entry, compute: Value | None) -> JsonObject:
    """Return the input of the work, with a warning for each template name without a value."""
    if isinstance(compute, ConstantValue):
        return compute.value if isinstance(compute.value, dict) else {}
    env = entry.environment()
    found = entry.ctx.object(entry.scope, compute, env)
    for path in env.missing or ():
        entry.ctx.warn("template-missing", f"{path} had no value at {entry.node.id!r} and was left empty", entry.step)
    return found


def _pending(entry: Entry) -> JsonObject:
    calls: list[Json] = [
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in entry.incoming.pending
    ]
    return {"calls": calls, "caller": entry.incoming.caller}


def _messages(scope: ScopeState) -> int:
    found = scope.data.root.get("messages")
    return len(found) if isinstance(found, list) else 0


def _begin(entry: Entry, does: StartAction) -> None:
    writes: list[Write] = []
    env = entry.environment()
    for path, value in does.set:
        writes.append(Write(path.resolve(env), "set", entry.ctx.value(entry.scope, value, env)))
    check_writes(entry.ctx, entry.scope, entry.node, entry.move.lineage, tuple(writes))
    entry.complete_instantly(writes=tuple(writes))


def _finish(entry: Entry, does: EndAction) -> None:
    ctx = entry.ctx
    output = entry.incoming.value
    if does.output is not None:
        output = ctx.value(entry.scope, does.output, entry.environment())
    entry.complete_instantly(leaves=False)
    ctx.end_token(entry.step, reason="end", output=output)
    if does.status == "failed":
        failure = Failure(code="ended-as-failed", message=f"the end {entry.node.id!r} was reached")
        completion.fail(ctx, failure, entry.step)
    elif does.status == "cancelled":
        completion.cancel(ctx, reason=f"the end {entry.node.id!r} was reached")
    elif does.terminate:
        completion.complete(ctx)


def finish(ctx: DecisionContext, move: EnterNode) -> None:
    """Complete the whole execution at the reserved target END."""
    if move.after in ctx.state.row.outputs:  # otherwise a branch of a parallel leads straight to the end
        ctx.end_token(move.after)
    completion.complete(ctx, closes_session=ctx.plan.conversational)


def _change(entry: Entry, does: TransformAction) -> None:
    """Apply the operations of a transform as one event; each sees the writes of the previous ones."""
    ctx, scope, node = entry.ctx, entry.scope, entry.node
    draft = Data(scope.data.shared())
    writes: list[Write] = []
    result: Json = None
    env = entry.environment()
    for operation in does.steps:
        env.state = draft.shared()
        for path, reduce, value in operation(env):
            one = Write(path, reduce, value)
            draft.write(one, value)
            writes.append(one)
            result = value
    env.state = draft.shared()
    if does.select is not None:
        result = does.select(env)
    elif not does.answers:
        result = entry.incoming.value
    more = evaluate_outputs(ctx, scope, node, result, env_state=draft.root)
    check_writes(ctx, scope, node, entry.move.lineage, (*writes, *more), result)
    if does.select is not None:
        check_values(ctx, [result])
    entry.complete_instantly(replaces=does.answers, result=result, writes=(*writes, *more))


def _emit(entry: Entry, does: EmitAction) -> None:
    ctx = entry.ctx
    env = entry.environment()
    name = str(ctx.value(entry.scope, does.event, env))
    data = None if does.data is None else ctx.value(entry.scope, does.data, env)
    entry.complete_instantly(said={"event": name})
    outbox.publish(ctx, entry.step, name, data)
    waits.deliver(ctx, name, data)


def _call(entry: Entry, does: WorkflowAction) -> None:
    ctx = entry.ctx
    given = ctx.object(entry.scope, does.input, entry.environment())
    if entry.node.policy.approval.before:
        tool_approval.ask_to_start(entry, work=given)
        return
    entry.open_step(input=given)
    ctx.emit(ChildRequested(step=entry.step, workflow=does.workflow))
    ctx.command(StartChild(step=entry.step, attempt=1, workflow=does.workflow, input=given, wait=does.wait))
