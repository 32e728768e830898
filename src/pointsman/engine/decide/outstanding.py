"""Outstanding commands: issued and not yet answered. After a crash exactly these are issued again."""

from __future__ import annotations

from pointsman.engine.actions import WorkflowAction
from pointsman.engine.commands import AnnounceGate, Command, SetTimer, StartChild
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import execution_of
from pointsman.engine.decide.limits import held_below
from pointsman.engine.plan import Plan
from pointsman.engine.state import ExecutionState, StepState
from pointsman.engine.tool_calls import ProposedCall


def start_child(plan: Plan, state: ExecutionState, at: StepState) -> StartChild:
    """Return the command for the child of a step. The same step and attempt always identify the same child."""
    does = plan.nodes[at.step.node].action
    assert isinstance(does, WorkflowAction)
    return StartChild(step=at.step, attempt=at.attempt, workflow=does.workflow, input=at.input or {}, wait=does.wait)


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
    asked: list[Command] = [*state.outbox.values()]
    if state.ended or state.status == "pending":
        return asked
    if state.status == "interrupted":
        return [*asked, *held_below(state), *_whether_to_go_on(state)]
    ctx = DecisionContext(plan, state)
    for at in sorted(state.steps.values(), key=lambda a: a.step):
        if at.child:
            asked.append(start_child(plan, state, at))
        elif at.workflow_calls:
            asked += [start_for_call(at, one.call) for one in at.workflow_calls.values()]
        elif at.is_running and at.step not in state.limits.budget_stopped:
            asked.append(execution_of(ctx, at.step))
        elif at.gate is not None:
            asked.append(AnnounceGate(step=at.step))
    asked += [SetTimer(timer=name, at=timer.at) for name, timer in sorted(state.timers.items())]
    return asked
