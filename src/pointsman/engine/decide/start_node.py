"""Starting: what happens when control enters a node that may begin. One function per kind of node.

Nodes that take no time pass in the same decision; the others become open steps and ask something of the world.
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
from pointsman.engine.decide.outputs import accept, check_values, failure_from, written
from pointsman.engine.events.lifecycle import ExecutionPaused
from pointsman.engine.events.waits import ChildRequested
from pointsman.engine.failures import Failure
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import ScopeState
from pointsman.engine.writes import Arrival, Write
from pointsman.errors import PointsmanError
from pointsman.values import Json, JsonObject


def start(
    desk: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, merged: tuple[Arrival, ...] = ()
) -> None:
    """Start a node. Limits come first: what they stop is held, not lost."""
    tripped = limits.before_step(desk, node, scope, move)
    if tripped is None and desk.plan.limits.budgets and not desk.state.handed_off:
        tripped = budgets.used_up(desk, node.does)
    if tripped is not None and desk.state.compensation is None:
        if not merged:
            limits.hold(desk, replace(move, again=True))
        limits.trip(desk, tripped)
        return
    if desk.before is not None and desk.before == desk.visit(scope, node, move.thread):
        if not merged:
            limits.hold(desk, replace(move, again=True))
        desk.emit(ExecutionPaused())
        return
    if (desk.plan.trial is not None or desk.state.stops.stepping) and _stops(desk, node, scope, move, merged):
        return
    entry = Entry(desk, node, scope, move, merged)
    try:
        if node.races:
            race_detection.read(entry)
        trial = desk.plan.trial
        if trial is not None and partial_run.is_pinned(trial, entry):
            partial_run.pin(entry, trial)
        elif node.skip is not None and node.skip(entry.environment()):
            _skip(entry)
        else:
            _start(entry)
    except PointsmanError as why:
        entry.failed(failure_from(why))


def _stops(
    desk: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, merged: tuple[Arrival, ...]
) -> bool:
    """A breakpoint, or one step on: it pauses, and the step begins when it goes on."""
    step = desk.visit(scope, node, move.thread)
    if not partial_run.stops_before(desk, node, step):
        return False
    if not merged:
        limits.hold(desk, replace(move, again=True))
    desk.emit(ExecutionPaused(before=step))
    return True


def _skip(entry: Entry) -> None:
    does = entry.node.does
    if isinstance(does, ParallelAction):
        parallels.skip(entry, does)
    else:
        entry.passed(said={"skipped": True})


def _start(entry: Entry) -> None:
    does = entry.node.does
    match does:
        case WorkAction():
            _work(entry, does)
        case DecisionAction():
            label = _label(entry.desk.value(entry.scope, does.branch, entry.environment()))
            entry.passed(label, said={"branch": label})
        case ParallelAction():
            parallels.open_branches(entry.desk, entry, does)
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
            entry.passed()
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
    """A branch as text: true and false as in the documents."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _work(entry: Entry, does: WorkAction) -> None:
    desk, scope = entry.desk, entry.scope
    work = _input(entry, does.input)
    if does.spec.kind == "tool_executor":
        work = _pending(entry)
        if not work["calls"]:
            desk.warn("nothing-pending", f"{entry.node.id!r} was reached without a tool call to run", entry.step)
            entry.passed()
            return
    if entry.node.approval.before:
        tool_approval.ask_to_start(entry, work=work, messages=_messages(scope) if does.listens else 0)
        return
    if does.delay_s > 0:
        entry.began(input=work, messages=_messages(scope) if does.listens else 0)
        set_timer(desk, entry.step, "delay", desk.state.at + does.delay_s)
        return
    entry.began(input=work, messages=_messages(scope) if does.listens else 0, runs=True)
    execute(desk, entry.step)


def _input(entry: Entry, compute: Value | None) -> JsonObject:
    """What the work is given."""
    if isinstance(compute, ConstantValue):
        return compute.value if isinstance(compute.value, dict) else {}
    env = entry.environment()
    found = entry.desk.object(entry.scope, compute, env)
    for path in env.missing or ():
        entry.desk.warn("template-missing", f"{path} had no value at {entry.node.id!r} and was left empty", entry.step)
    return found


def _pending(entry: Entry) -> JsonObject:
    calls: list[Json] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in entry.left.pending]
    return {"calls": calls, "caller": entry.left.caller}


def _messages(scope: ScopeState) -> int:
    found = scope.data.root.get("messages")
    return len(found) if isinstance(found, list) else 0


def _begin(entry: Entry, does: StartAction) -> None:
    writes: list[Write] = []
    env = entry.environment()
    for path, value in does.set:
        writes.append(Write(path.resolve(env), "set", entry.desk.value(entry.scope, value, env)))
    accept(entry.desk, entry.scope, entry.node, entry.move.thread, tuple(writes))
    entry.passed(writes=tuple(writes))


def _finish(entry: Entry, does: EndAction) -> None:
    desk = entry.desk
    output = entry.left.value
    if does.output is not None:
        output = desk.value(entry.scope, does.output, entry.environment())
    entry.passed(leaves=False)
    desk.end_token(entry.step, reason="end", output=output)
    if does.status == "failed":
        failure = Failure(code="ended-as-failed", message=f"the end {entry.node.id!r} was reached")
        completion.fail(desk, failure, entry.step)
    elif does.status == "cancelled":
        completion.cancel(desk, reason=f"the end {entry.node.id!r} was reached")
    elif does.terminate:
        completion.complete(desk)


def finish(desk: DecisionContext, move: EnterNode) -> None:
    """The reserved target END: the whole execution is completed."""
    if move.after in desk.state.left:  # else a branch of a parallel leads straight to the end
        desk.end_token(move.after)
    completion.complete(desk, closes_session=desk.plan.conversational)


def _change(entry: Entry, does: TransformAction) -> None:
    """Each operation sees what the ones before it wrote; all of it is one event."""
    desk, scope, node = entry.desk, entry.scope, entry.node
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
        result = entry.left.value
    more = written(desk, scope, node, result, env_state=draft.root)
    accept(desk, scope, node, entry.move.thread, (*writes, *more), result)
    if does.select is not None:
        check_values(desk, [result])
    entry.passed(replaces=does.answers, result=result, writes=(*writes, *more))


def _emit(entry: Entry, does: EmitAction) -> None:
    desk = entry.desk
    env = entry.environment()
    name = str(desk.value(entry.scope, does.event, env))
    data = None if does.data is None else desk.value(entry.scope, does.data, env)
    entry.passed(said={"event": name})
    outbox.publish(desk, entry.step, name, data)
    waits.deliver(desk, name, data)


def _call(entry: Entry, does: WorkflowAction) -> None:
    desk = entry.desk
    given = desk.object(entry.scope, does.input, entry.environment())
    if entry.node.approval.before:
        tool_approval.ask_to_start(entry, work=given)
        return
    entry.began(input=given)
    desk.emit(ChildRequested(step=entry.step, workflow=does.workflow))
    desk.command(StartChild(step=entry.step, attempt=1, workflow=does.workflow, input=given, wait=does.wait))
