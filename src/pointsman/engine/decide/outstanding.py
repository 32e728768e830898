"""Outstanding: what was asked of the world and not answered yet. After a crash, exactly this is asked again."""

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
    """The command for the child of a step. The same step and attempt always mean the same child."""
    does = plan.nodes[at.step.node].does
    assert isinstance(does, WorkflowAction)
    return StartChild(step=at.step, attempt=at.attempt, workflow=does.workflow, input=at.input or {}, wait=does.wait)


def start_for_call(at: StepState, call: ProposedCall) -> StartChild:
    """The command for the child that carries out a tool call."""
    return StartChild(step=at.step, attempt=at.attempt, workflow=call.workflow, input=call.arguments, call=call.number)


def _whether_to_go_on(state: ExecutionState) -> list[Command]:
    """While a limit stops all else, people may be asked."""
    if state.handoff is None or state.handoff not in state.steps:
        return []
    timers = [SetTimer(timer=name, at=state.timers[name].at) for name in sorted(state.steps[state.handoff].timers)]
    return [AnnounceGate(step=state.handoff), *timers]


def outstanding(plan: Plan, state: ExecutionState) -> list[Command]:
    """The commands whose answers the state still waits for, in a stable order."""
    asked: list[Command] = [*state.undelivered.values()]
    if state.ended or state.status == "pending":
        return asked
    if state.status == "interrupted":
        return [*asked, *held_below(state), *_whether_to_go_on(state)]
    desk = DecisionContext(plan, state)
    for at in sorted(state.steps.values(), key=lambda a: a.step):
        if at.child:
            asked.append(start_child(plan, state, at))
        elif at.calling:
            asked += [start_for_call(at, one.call) for one in at.calling.values()]
        elif at.runs and at.step not in state.refused:
            asked.append(execution_of(desk, at.step))
        elif at.gate is not None:
            asked.append(AnnounceGate(step=at.step))
    asked += [SetTimer(timer=name, at=timer.at) for name, timer in sorted(state.timers.items())]
    return asked
