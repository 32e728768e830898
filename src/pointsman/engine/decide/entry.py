"""An entry: one node that is about to start, with the operations that all kinds of nodes share.

`outstanding` returns the commands that were issued and not yet answered: after a crash exactly these are issued again.
"""

from __future__ import annotations

from pointsman.engine.actions import PlanEdge, ProposedCall, WorkAction, WorkflowAction
from pointsman.engine.commands import AnnounceGate, Command, Execute, SetTimer, StartChild
from pointsman.engine.decide import limits
from pointsman.engine.decide.context import DecisionContext, EnterNode, ExitStep, PropagateFailure
from pointsman.engine.decide.limits import halt_children
from pointsman.engine.events.steps import InstantStepCompleted, StepFailed, StepStarted
from pointsman.engine.events.waits import TimerSet
from pointsman.engine.failures import Failure, is_one_of
from pointsman.engine.fold.scopes import parked
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.state import ExecutionState, ScopeState, StepOutput, StepState
from pointsman.engine.steps import Arrival, Step, Write
from pointsman.expressions.environment import Environment
from pointsman.values import Json, JsonObject


class Entry:
    """One node that is about to start: the data that all kinds of nodes need."""

    __slots__ = ("ctx", "incoming", "merged", "move", "node", "scope", "step")

    def __init__(
        self, ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, merged: tuple[Arrival, ...]
    ) -> None:
        self.ctx = ctx
        self.node = node
        self.scope = scope
        self.move = move
        self.merged = merged
        self.step = ctx.visit(scope, node, move.lineage)
        if merged:
            self.incoming = parked(scope, node.id, merged[-1])
        elif move.after is not None:
            self.incoming = ctx.left(scope, move.after)
        else:
            self.incoming = StepOutput(None)

    def environment(self) -> Environment:
        """Return the data for formulas of the node; it collects the names that templates left empty."""
        env = self.ctx.environment(self.scope, self.node, self.incoming.value)
        env.missing = []
        return env

    def open_step(
        self, *, input: JsonObject | None = None, messages: int = 0, runs: bool = False, caller: str | None = None
    ) -> None:
        """Emit the start of the step; it is open from here on."""
        self.ctx.emit(
            StepStarted(
                step=self.step,
                edge="" if self.move.edge is None else self.move.edge.id,
                after=None if self.merged else self.move.after,
                merged=self.merged,
                lineage=self.move.lineage,
                input=input,
                messages=messages,
                runs=runs,
                caller=caller,
            )
        )

    def complete_instantly(
        self,
        *labels: str,
        view: JsonObject | None = None,
        replaces: bool = False,
        takes: bool = False,
        result: Json = None,
        writes: tuple[Write, ...] = (),
        leaves: bool = True,
        pinned: bool = False,
    ) -> None:
        """Emit the completion of an instant step and enqueue its exit."""
        self.ctx.emit(
            InstantStepCompleted(
                step=self.step,
                edge="" if self.move.edge is None else self.move.edge.id,
                after=None if self.merged else self.move.after,
                merged=self.merged,
                lineage=self.move.lineage,
                replaces=replaces,
                takes=takes,
                result=result,
                annotations=view,
                writes=writes,
                pinned=pinned,
            )
        )
        self.ctx.dirty_scopes[self.scope.key] = None
        if leaves:
            self.ctx.enqueue(ExitStep(self.step, labels))

    def failed(self, failure: Failure) -> None:
        """Fail the step before its work starts."""
        self.open_step()
        fail_open_step(self.ctx, self.step, failure)


def fail_open_step(ctx: DecisionContext, step: Step, failure: Failure) -> None:
    """Fail an open step finally: its error edges, then the scopes around it, handle the failure."""
    at = ctx.state.steps[step]
    ctx.emit(StepFailed(step=step, attempt=at.attempt, failure=failure))
    ctx.dirty_scopes[step.scope] = None
    node = ctx.node(step)
    if catching(node, failure):
        ctx.enqueue(ExitStep(step, failed=failure))
    else:
        ctx.enqueue(PropagateFailure(step, failure))


def catching(node: PlanNode, failure: Failure) -> list[PlanEdge]:
    """Return the error edges that catch a failure."""
    return [edge for edge in node.exits.catches if not edge.codes or is_one_of(failure, edge.codes)]


def execute(ctx: DecisionContext, step: Step) -> None:
    """Issue the command for the current attempt of an open step."""
    ctx.command(execution_of(ctx, step))
    limits.set_limit_timers(ctx)


def execution_of(ctx: DecisionContext, step: Step) -> Execute:
    """Return the command for the current attempt. It is the same after a crash."""
    action = ctx.plan.nodes[step.node].action
    assert isinstance(action, WorkAction)
    at = ctx.state.steps[step]
    messages: tuple[Json, ...] | list[Json] = ()
    if action.receives_messages and at.messages:
        conversation = at.scope.data.shared().get("messages")
        if isinstance(conversation, list):
            history = ctx.state.setup.options.get("history") if action.own_messages_only else None
            began = history if isinstance(history, int) else 0
            messages = (
                conversation if len(conversation) == at.messages and not began else conversation[began : at.messages]
            )
    return Execute(
        step=step,
        attempt=at.attempt,
        work=action.spec.kind,
        input=(at.advised if at.phase == "recover" else at.input) or {},
        messages=messages,
        phase=at.phase,
        timeout_s=action.timeout_s if not ctx.state.limits.raised else _timeout(ctx, action),
        call_timeout_s=limits.allowed(ctx, "nodeTime", None) if ctx.state.limits.raised else None,
        verdicts=tuple(at.verdicts.values()) if at.verdicts else (),
    )


def _timeout(ctx: DecisionContext, action: WorkAction) -> float | None:
    """Return the time limit of an attempt. Without one of the node's own, a raised `nodeTime` applies."""
    if action.timeout_s is None or action.own_time:
        return action.timeout_s
    return limits.allowed(ctx, "nodeTime", action.timeout_s)


def set_timer(ctx: DecisionContext, step: Step, purpose: str, at: float) -> None:
    """Set a timer for a step at `at` (unix seconds)."""
    timer = f"{purpose}:{step}:{ctx.state.steps[step].attempt}"
    ctx.emit(TimerSet(timer=timer, purpose=purpose, at=at, step=step))  # pyright: ignore[reportArgumentType] - the purposes of the callers
    ctx.command(SetTimer(timer=timer, at=at))


def start_child(plan: Plan, state: ExecutionState, at: StepState) -> StartChild:
    """Return the command for the child of a step. The same step and attempt always identify the same child."""
    action = plan.nodes[at.step.node].action
    assert isinstance(action, WorkflowAction)
    return StartChild(
        step=at.step, attempt=at.attempt, workflow=action.workflow, input=at.input or {}, wait=action.wait
    )


def start_for_call(at: StepState, call: ProposedCall) -> StartChild:
    """Return the command for the child that performs a tool call."""
    return StartChild(step=at.step, attempt=at.attempt, workflow=call.workflow, input=call.arguments, call=call.number)


def _whether_to_go_on(state: ExecutionState) -> list[Command]:
    """Return the commands of the escalation gate, the only one open while a limit interrupts the execution."""
    if state.limits.escalation_gate is None or state.limits.escalation_gate not in state.steps:
        return []
    timers = [
        SetTimer(timer=name, at=state.timers[name].at)
        for name in sorted(state.steps[state.limits.escalation_gate].timers)
    ]
    return [AnnounceGate(step=state.limits.escalation_gate), *timers]


def outstanding(plan: Plan, state: ExecutionState) -> list[Command]:
    """Return the commands whose answers the state still waits for, in a stable order."""
    commands: list[Command] = [*state.outbox.values()]
    if state.ended or state.status == "pending":
        return commands
    if state.status == "interrupted":
        return [*commands, *halt_children(state), *_whether_to_go_on(state)]
    ctx = DecisionContext(plan, state)
    for at in sorted(state.steps.values(), key=lambda a: a.step):
        if at.child:
            commands.append(start_child(plan, state, at))
        elif at.workflow_calls:
            commands += [start_for_call(at, workflow_call.call) for workflow_call in at.workflow_calls.values()]
        elif at.is_running and at.step not in state.limits.budget_stopped:
            commands.append(execution_of(ctx, at.step))
        elif at.gate is not None:
            commands.append(AnnounceGate(step=at.step))
    commands += [SetTimer(timer=name, at=timer.at) for name, timer in sorted(state.timers.items())]
    return commands
