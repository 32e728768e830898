"""Enter a node: an arrival starts it, or waits there for other arrivals; then one function per kind of action.

    one incoming edge, or `each`            starts at once
    several edges, alone in the scope       starts at once
    several edges, others on their way      parked ──▶ released when no other token of the scope can arrive
    several parked nodes that only wait for each other      all released together, in document order
    the join of a branch                    when no other token of the branch moves

A token can arrive at N when the plan has a path from its position to N. Inner scopes count as one token at their
parallel. Queued transitions are processed first, so `release` sees a state in which nothing moves. Nodes that take no
time complete in the same decision; the others become open steps and issue commands.

    split ─┬─ a: writes x ─┬─ meet        whichever is first, the later one fails with `read-race`,
           └─ b: reads x ──┘              so the outcome does not depend on timing

The plan lists the nodes that may race: only those record their reads, and only while control is split around them.
Branches of a parallel see the data as of its opening; they cannot race.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Final, NamedTuple, assert_never

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
from pointsman.engine.data import Data, dotted
from pointsman.engine.decide import (
    completion,
    context,
    human_tasks,
    limits,
    loops,
    parallels,
    partial_run,
    tool_approval,
    waits,
)
from pointsman.engine.decide.context import DecisionContext, EnterNode, in_order
from pointsman.engine.decide.entry import Entry, execute, set_timer
from pointsman.engine.decide.outputs import (
    StepRefused,
    check_values,
    check_writes,
    evaluate_outputs,
    failure_from,
    read_race,
)
from pointsman.engine.decide.parallels import closes, was_fired
from pointsman.engine.events.lifecycle import ExecutionPaused
from pointsman.engine.events.steps import ArrivalParked, StateRead
from pointsman.engine.events.waits import ChildRequested
from pointsman.engine.failures import Failure
from pointsman.engine.fold.scopes import NOBODY
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.state import HALTED, ScopeState
from pointsman.engine.steps import Arrival, Lineage, Write, are_concurrent, joint_lineage, merged_lineage
from pointsman.errors import PointsmanError
from pointsman.expressions.environment import Environment
from pointsman.values import END, Json, JsonObject, Path

AT_ONCE: Final = ("arrival", "each")


def enter_node(ctx: DecisionContext, move: EnterNode) -> None:
    """Enter a node: start it, park the arrival, or hold it."""
    scope = ctx.state.scopes.get(move.scope)
    if scope is None:
        return  # the branch was settled while this transition was queued
    trial = ctx.plan.partial_run
    if trial is not None and not partial_run.may_enter(ctx, trial, move):
        ctx.dirty_scopes[scope.key] = None
        return
    if (ctx.state.status in HALTED or ctx.uncaught) and not _asks_on(ctx, scope, move):
        if not move.merged:
            limits.hold_arrival(ctx, move)
        return
    if move.node == END:
        finish(ctx, move)
        return
    node = ctx.plan.nodes[move.node]
    if node.enter in AT_ONCE:
        start(ctx, node, scope, move)
    elif isinstance(node.action, JoinAction) and closes(node, scope):
        if ctx.alone(scope) and move.after is not None:
            parallels.settle(ctx, scope, "arrived", after=move.after)
        else:
            park(ctx, scope, move)
    elif _starts_now(ctx, node, scope, move):
        thread = _thread(ctx.plan, node, [move.lineage], ends=loops.ends_round(node, scope, move.edge))
        move = move if thread == move.lineage else replace(move, lineage=thread)
        start(ctx, node, scope, move, move.merged)
    else:
        park(ctx, scope, move)


def _asks_on(ctx: DecisionContext, scope: ScopeState, move: EnterNode) -> bool:
    """Return whether control enters the gate that asks whether an interrupted execution may continue."""
    gate = ctx.state.limits.escalation_gate
    return gate is not None and move.after == NOBODY and ctx.visit(scope, ctx.plan.nodes[move.node], ()) == gate


def _starts_now(ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode) -> bool:
    if move.starts_node or move.after is None or was_fired(node, scope, move):
        return True
    if isinstance(node.action, LoopAction):
        return loops.starts_now(ctx, node, scope, move)
    return ctx.alone(scope)


def _thread(plan: Plan, node: PlanNode, threads: list[Lineage], *, ends: bool) -> Lineage:
    """Return the lineage of a token merged from several arrivals. `ends`: it ends a round, so it waited only for the
    body.
    """
    latest = max(threads)
    if not latest or node.enter not in ("merge", "loop"):
        return latest
    body = node.action.body if ends and isinstance(node.action, LoopAction) else None
    return merged_lineage(latest, lambda split: (body is None or split in body) and plan.meets(split, node.id))


def park(ctx: DecisionContext, scope: ScopeState, move: EnterNode) -> None:
    """Park an arrival at its node. It replaces an arrival over the same edge with the same lineage."""
    assert move.after is not None
    edge = "" if move.edge is None else move.edge.id
    ctx.emit(ArrivalParked(node=move.node, scope=scope.key, edge=edge, after=move.after, lineage=move.lineage))
    ctx.dirty_scopes[scope.key] = None


def release(ctx: DecisionContext) -> bool:
    """Start parked nodes that no moving token can reach. Return True if anything started."""
    if ctx.uncaught:
        return False
    while ctx.dirty_scopes:
        key = next(iter(ctx.dirty_scopes))
        scope = ctx.state.scopes.get(key)
        if scope is not None and ctx.state.status not in HALTED:
            if scope.parked and release_scope(ctx, scope):
                return True
            if key and scope.tokens == 0 and parallels.branch_ended(ctx, scope):
                return True
        ctx.dirty_scopes.pop(key, None)
    return False


def release_scope(ctx: DecisionContext, scope: ScopeState) -> bool:
    """Start the parked nodes of one scope that nothing can reach any more, or those that only wait for each other."""
    plan = ctx.plan
    parked = sorted(scope.parked, key=lambda n: plan.nodes[n].index)
    waits = {node: _waits_for(ctx, scope, plan.nodes[node], parked) for node in parked}
    before = {node: _all_before(node, waits) for node in parked}
    ready = [node for node in parked if _is_ready(node, before)]
    if len(ready) > 1 and (tripped := _forbidden(ctx, scope, ready)) is not None:
        limits.handle_reached_limit(ctx, tripped)
        return True
    starts = [_parked_start(ctx, scope, plan.nodes[node], before[node]) for node in ready]
    if len(ready) > 1 and _stops(ctx, scope, starts):
        return True
    moves_left = ctx.moves_left
    if len(starts) > 1:
        ctx.moves_left = inf  # They start together: none of them may continue after the next one has started.
    for ready_start in starts:
        _start_parked(ctx, scope, ready_start)
    if len(starts) > 1:
        ctx.moves_left = moves_left - len(starts)
    return bool(ready)


class ParkedStart(NamedTuple):
    """A node that starts with all its parked arrivals."""

    node: PlanNode
    merged: tuple[Arrival, ...]
    thread: Lineage


def _stops(ctx: DecisionContext, scope: ScopeState, starts: list[ParkedStart]) -> bool:
    """Pause before all nodes that start together if one of them has a breakpoint. Return True if paused."""
    if ctx.plan.partial_run is None and not ctx.state.pause.breakpoints.stepping:
        return False
    for node, _, thread in starts:
        step = ctx.visit(scope, node, thread)
        if not (isinstance(node.action, JoinAction) and closes(node, scope)) and partial_run.pauses_before(
            ctx, node, step
        ):
            ctx.emit(ExecutionPaused(before=step))
            return True
    return False


def _forbidden(ctx: DecisionContext, scope: ScopeState, ready: list[str]) -> limits.ReachedLimit | None:
    """Return a limit that stops one of several nodes that start together.

    It stops all of them: no token of one may join the others later.
    """
    if ctx.state.compensation is not None:
        return None
    for number, node in enumerate(ready):
        thread = max(arrival.incoming.lineage for arrival in scope.parked[node].values())
        move = EnterNode(node, scope.key, None, None, thread)
        tripped = limits.before_step(ctx, ctx.plan.nodes[node], scope, move, beside=number)
        if tripped is not None:
            return tripped
    return None


def _waits_for(ctx: DecisionContext, scope: ScopeState, node: PlanNode, parked: list[str]) -> set[str] | None:
    """Return the other parked nodes from which a node can be reached; None if a moving token can reach it."""
    if isinstance(node.action, LoopAction) and loops.next_arrival_ends_round(node, scope):
        return loops.waits_for(node.action, scope, parked)
    if closes(node, scope):  # a branch ends only when all its tokens have ended: later writes would be lost
        return None if scope.open_steps else {other for other in parked if other != node.id}
    before = ctx.plan.reaches(node.id)
    live = scope.open_steps
    if len(live) <= len(before):
        if any(at in before for at in live):
            return None
    elif any(at in live for at in before):
        return None
    return {other for other in parked if other != node.id and other in before and other not in node.position.loops}


def _is_ready(node: str, before: dict[str, set[str] | None]) -> bool:
    """Return whether no moving token can reach the node, and all nodes that it waits for also wait for it."""
    mine = before[node]
    return mine is not None and all(node in (before[other] or ()) for other in mine)


def _all_before(node: str, waits: dict[str, set[str] | None]) -> set[str] | None:
    """Return all nodes that it waits for, directly or indirectly; None if a moving token is among them."""
    nodes: set[str] = set()
    pending = [node]
    while pending:
        direct = waits[pending.pop()]
        if direct is None:
            return None
        pending += direct - nodes
        nodes |= direct
    return nodes - {node}


def _parked_start(ctx: DecisionContext, scope: ScopeState, node: PlanNode, mates: set[str] | None) -> ParkedStart:
    """Return the start of a parked node. `mates`: nodes that start together with it since they only wait for each
    other.
    """
    waiting = [(arrival.edge, arrival.incoming.lineage) for arrival in scope.parked[node.id].values()]
    keys = loops.arrivals_of_one_side(node, scope, waiting) if isinstance(node.action, LoopAction) else waiting
    merged = in_order(keys, ctx.plan.edge_index)
    ends = isinstance(node.action, LoopAction) and loops.next_arrival_ends_round(node, scope)
    thread = _thread(ctx.plan, node, [arrival.lineage for arrival in merged], ends=ends)
    if mates:
        first = min((node.id, *mates), key=lambda n: ctx.plan.nodes[n].index)
        thread = joint_lineage(thread, first, node.index)
    return ParkedStart(node, merged, thread)


def _start_parked(ctx: DecisionContext, scope: ScopeState, ready: ParkedStart) -> None:
    node, merged, thread = ready
    if isinstance(node.action, JoinAction) and closes(node, scope):
        parallels.settle(ctx, scope, "arrived", merged=merged)
    else:
        start(ctx, node, scope, EnterNode(node.id, scope.key, None, None, thread), merged)


def record_reads(entry: Entry) -> None:
    """Record the paths that the node reads and concurrent steps may write. Raises `StepRefused` if one has written
    them.
    """
    ctx, scope, thread = entry.ctx, entry.scope, entry.move.lineage
    if not thread:
        return  # control is not split around the node
    paths = tuple(_resolved(path, scope.item_key) for path in entry.node.position.races)
    for path in paths:
        failure = _raced(ctx, entry, path)
        if failure is not None:
            raise StepRefused(failure)
    ctx.emit(StateRead(node=entry.node.id, scope=scope.key, lineage=thread, paths=paths))


def _raced(ctx: DecisionContext, entry: Entry, path: Path) -> Failure | None:
    me = entry.move.lineage, entry.node.id
    for _, trail in entry.scope.write_log.overlapping(path):
        for write in trail.entries:
            if write.node != entry.node.id and are_concurrent(me, (write.lineage, write.node), ctx.plan.leads):
                return read_race(entry.node.id, write.node, dotted(path))
    return None


def _resolved(path: tuple[str | int | None, ...], item_key: str | None) -> Path:
    """Return the path with the key of the branch's item; below an unknown key it covers everything."""
    keys: list[str | int] = []
    for part in path:
        key = item_key if part is None else part
        if key is None:
            break
        keys.append(key)
    return tuple(keys)


def start(
    ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, merged: tuple[Arrival, ...] = ()
) -> None:
    """Start a node. Limits are checked first: an arrival that a limit stops is held, not lost."""
    tripped = limits.before_step(ctx, node, scope, move)
    if tripped is None and ctx.plan.limits.budgets and not ctx.state.is_escalated:
        tripped = limits.used_up_budget(ctx, node.action)
    if tripped is not None and ctx.state.compensation is None:
        if not merged:
            limits.hold_arrival(ctx, replace(move, starts_node=True))
        limits.handle_reached_limit(ctx, tripped)
        return
    if ctx.before is not None and ctx.before == ctx.visit(scope, node, move.lineage):
        if not merged:
            limits.hold_arrival(ctx, replace(move, starts_node=True))
        ctx.emit(ExecutionPaused())
        return
    if (ctx.plan.partial_run is not None or ctx.state.pause.breakpoints.stepping) and _pauses(
        ctx, node, scope, move, merged
    ):
        return
    entry = Entry(ctx, node, scope, move, merged)
    try:
        if node.position.races:
            record_reads(entry)
        trial = ctx.plan.partial_run
        if trial is not None and partial_run.is_mocked(trial, entry):
            partial_run.complete_mocked(entry, trial)
        elif node.policy.skip is not None and node.policy.skip(entry.environment()):
            _skip(entry)
        else:
            _start(entry)
    except PointsmanError as why:
        entry.failed(failure_from(why))


def _pauses(
    ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, merged: tuple[Arrival, ...]
) -> bool:
    """Pause at a breakpoint or after a single step; the step starts when the execution resumes. Return True if
    paused.
    """
    step = ctx.visit(scope, node, move.lineage)
    if not partial_run.pauses_before(ctx, node, step):
        return False
    if not merged:
        limits.hold_arrival(ctx, replace(move, starts_node=True))
    ctx.emit(ExecutionPaused(before=step))
    return True


def _skip(entry: Entry) -> None:
    action = entry.node.action
    if isinstance(action, ParallelAction):
        parallels.skip(entry, action)
    else:
        entry.complete_instantly(view={"skipped": True})


def _start(entry: Entry) -> None:
    action = entry.node.action
    match action:
        case WorkAction():
            _work(entry, action)
        case DecisionAction():
            label = _label(entry.ctx.value(entry.scope, action.branch, entry.environment()))
            entry.complete_instantly(label, view={"branch": label})
        case ParallelAction():
            parallels.open_branches(entry.ctx, entry, action)
        case JoinAction():
            parallels.gather(entry, action)
        case LoopAction():
            loops.next_round(entry, action)
        case HumanTaskAction():
            human_tasks.open_gate(entry, action)
        case WaitAction():
            waits.begin(entry, action)
        case WorkflowAction():
            _call(entry, action)
        case NoOpAction():
            entry.complete_instantly()
        case _:
            _pass_through(entry, action)


def _pass_through(entry: Entry, action: StartAction | EndAction | TransformAction | EmitAction) -> None:
    match action:
        case StartAction():
            _begin(entry, action)
        case EndAction():
            _finish(entry, action)
        case TransformAction():
            _change(entry, action)
        case EmitAction():
            _emit(entry, action)
        case _:
            assert_never(action)


def _label(value: Json) -> str:
    """Return a branch label as text: booleans as in documents."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _work(entry: Entry, action: WorkAction) -> None:
    ctx, scope = entry.ctx, entry.scope
    work = _input(entry, action.input)
    if action.spec.kind == "tool_executor":
        work = _pending(entry)
        if not work["calls"]:
            ctx.warn("nothing-pending", f"{entry.node.id!r} was reached without a tool call to run", entry.step)
            entry.complete_instantly()
            return
    if entry.node.policy.approval.before:
        tool_approval.ask_to_start(entry, work=work, messages=_messages(scope) if action.receives_messages else 0)
        return
    if action.delay_s > 0:
        entry.open_step(input=work, messages=_messages(scope) if action.receives_messages else 0)
        set_timer(ctx, entry.step, "delay", ctx.state.at + action.delay_s)
        return
    entry.open_step(input=work, messages=_messages(scope) if action.receives_messages else 0, runs=True)
    execute(ctx, entry.step)


def _input(entry: Entry, compute: Value | None) -> JsonObject:
    """Return the input of the work, with a warning for each template name without a value."""
    if isinstance(compute, ConstantValue):
        return compute.value if isinstance(compute.value, dict) else {}
    env = entry.environment()
    values = entry.ctx.object(entry.scope, compute, env)
    for path in env.missing or ():
        entry.ctx.warn("template-missing", f"{path} had no value at {entry.node.id!r} and was left empty", entry.step)
    return values


def _pending(entry: Entry) -> JsonObject:
    calls: list[Json] = [
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in entry.incoming.pending
    ]
    return {"calls": calls, "caller": entry.incoming.caller}


def _messages(scope: ScopeState) -> int:
    messages = scope.data.root.get("messages")
    return len(messages) if isinstance(messages, list) else 0


def _begin(entry: Entry, action: StartAction) -> None:
    writes: list[Write] = []
    env = entry.environment()
    for path, value in action.set:
        writes.append(Write(path.resolve(env), "set", entry.ctx.value(entry.scope, value, env)))
    check_writes(entry.ctx, entry.scope, entry.node, entry.move.lineage, tuple(writes))
    entry.complete_instantly(writes=tuple(writes))


def _finish(entry: Entry, action: EndAction) -> None:
    ctx = entry.ctx
    output = entry.incoming.value
    if action.output is not None:
        output = ctx.value(entry.scope, action.output, entry.environment())
    entry.complete_instantly(leaves=False)
    ctx.end_token(entry.step, reason="end", output=output)
    if action.status == "failed":
        failure = Failure(code="ended-as-failed", message=f"the end {entry.node.id!r} was reached")
        completion.fail(ctx, failure, entry.step)
    elif action.status == "cancelled":
        completion.cancel(ctx, reason=f"the end {entry.node.id!r} was reached")
    elif action.terminate:
        completion.complete(ctx)


def finish(ctx: DecisionContext, move: EnterNode) -> None:
    """Complete the whole execution at the reserved target END."""
    if move.after in ctx.state.row.outputs:  # otherwise a branch of a parallel leads straight to the end
        ctx.end_token(move.after)
    completion.complete(ctx, closes_session=ctx.plan.conversational)


def _change(entry: Entry, action: TransformAction) -> None:
    """Apply the operations of a transform as one event; each sees the writes of the previous ones."""
    _operate(entry, action, entry.environment(), Data(entry.scope.data.shared()), [])


def _operate(
    entry: Entry, action: TransformAction, env: Environment, draft: Data, writes: list[Write], position: int = 0
) -> None:
    """Apply the operations from `position` on; leave to the next part of the decision what this one has no moves
    for.
    """
    ctx, scope, node = entry.ctx, entry.scope, entry.node
    for number, operation in enumerate(action.steps[position:] if position else action.steps, position):
        if ctx.moves_left < 0:
            ctx.continue_first(entry.step, partial(_operate_on, entry, action, env, draft, writes, number))
            return
        ctx.moves_left -= 1
        env.state = draft.shared()
        for path, reduce, value in operation(env):
            write = Write(path, reduce, value)
            draft.write(write, value)
            writes.append(write)
    result = writes[-1].value if writes else None
    env.state = draft.shared()
    if action.select is not None:
        result = action.select(env)
    elif not action.answers:
        result = entry.incoming.value
    more = evaluate_outputs(ctx, scope, node, result, env_state=draft.root)
    check_writes(ctx, scope, node, entry.move.lineage, (*writes, *more), result)
    if action.select is not None:
        check_values(ctx, [result])
    entry.complete_instantly(replaces=action.answers, result=result, writes=(*writes, *more))


def _operate_on(
    entry: Entry, action: TransformAction, env: Environment, draft: Data, writes: list[Write], position: int
) -> None:
    """Continue a transform in the next part of the decision."""
    try:
        _operate(entry, action, env, draft, writes, position)
    except PointsmanError as why:
        entry.failed(failure_from(why))


def _emit(entry: Entry, action: EmitAction) -> None:
    ctx = entry.ctx
    env = entry.environment()
    name = str(ctx.value(entry.scope, action.event, env))
    data = None if action.data is None else ctx.value(entry.scope, action.data, env)
    entry.complete_instantly(view={"event": name})
    context.publish(ctx, entry.step, name, data)
    waits.deliver(ctx, name, data)


def _call(entry: Entry, action: WorkflowAction) -> None:
    ctx = entry.ctx
    values = ctx.object(entry.scope, action.input, entry.environment())
    if entry.node.policy.approval.before:
        tool_approval.ask_to_start(entry, work=values)
        return
    entry.open_step(input=values)
    ctx.emit(ChildRequested(step=entry.step, workflow=action.workflow))
    ctx.command(StartChild(step=entry.step, attempt=1, workflow=action.workflow, input=values, wait=action.wait))
