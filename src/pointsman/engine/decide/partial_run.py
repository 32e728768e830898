"""Rules of partial runs (see `engine.partial_run`): mocks, breakpoints and the nodes at which a run ends.

    enter ─▶ does the node lead to an end of the partial run? no: the token ends ─▶ start ─▶ breakpoint? pause, once
                                                                                     └─▶ mocked? complete instantly
    exit  ─▶ does the partial run end here? the value is an output, the token ends

Stepping works for every execution: after `resume --step` it pauses before the next step that starts.
"""

from __future__ import annotations

from pointsman.engine.actions import DecisionAction, LoopAction
from pointsman.engine.decide.context import DecisionContext, EnterNode, ExitStep
from pointsman.engine.decide.entry import Entry
from pointsman.engine.decide.loops import BODY
from pointsman.engine.decide.outputs import check_writes, evaluate_outputs
from pointsman.engine.events.lifecycle import ControlRedirected
from pointsman.engine.fold.arrivals import NOBODY
from pointsman.engine.partial_run import PartialRun, in_full
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.state import StepOutput
from pointsman.engine.steps import Step
from pointsman.values import Json


def begin(ctx: DecisionContext, trial: PartialRun) -> None:
    """Control begins where the trial does."""
    if trial.alone is None:
        ctx.enqueue(EnterNode(ctx.plan.entry, (), None, None))
        return
    ctx.emit(ControlRedirected(node=trial.alone, value=trial.given))
    ctx.enqueue(EnterNode(trial.alone, (), None, NOBODY))


def goes_on(ctx: DecisionContext, trial: PartialRun, move: EnterNode) -> bool:
    """Whether control enters the node; else it ends here. What takes over after a failure is performed in any case."""
    if not trial.until or move.node in trial.performed or move.after in (None, NOBODY):
        return True
    state = ctx.state
    return state.is_escalated or state.compensation is not None


def is_short_of(plan: Plan, node: str) -> bool:
    """The trial ends before this node."""
    trial = plan.partial_run
    return trial is not None and bool(trial.until) and node not in trial.performed


def pauses_before(ctx: DecisionContext, node: PlanNode, step: Step) -> bool:
    """Whether the execution pauses instead of beginning this step: once before each."""
    state, trial = ctx.state, ctx.plan.partial_run
    if node.hidden or step in state.breakpoints.passed_steps or state.compensation is not None:
        return False
    return state.breakpoints.stepping or (trial is not None and node.id in trial.breakpoints)


def ends_here(trial: PartialRun, node: PlanNode, left: StepOutput, move: ExitStep) -> bool:
    """Whether the trial goes no further than this step: it is over, and no round of it or call of it is left."""
    if node.id not in trial.until or left.pending or move.failed is not None:
        return False
    return not (isinstance(node.action, LoopAction) and BODY in move.labels)


def is_mocked(trial: PartialRun, entry: Entry) -> bool:
    """Whether the step is not performed, because what it brings was given."""
    return entry.node.id in trial.mocks or (bool(trial.step_mocks) and in_full(str(entry.step)) in trial.step_mocks)


def complete_mocked(entry: Entry, trial: PartialRun) -> None:
    """The step passes with the value that was given for it; raises where its outputs cannot be written from that."""
    ctx, node, scope = entry.ctx, entry.node, entry.scope
    name = in_full(str(entry.step))
    value = trial.step_mocks[name] if name in trial.step_mocks else trial.mocks[node.id]
    if isinstance(node.action, DecisionAction):
        label = branch_of(value)
        entry.complete_instantly(label, said={"branch": label}, pinned=True)
        return
    writes = evaluate_outputs(ctx, scope, node, value) if node.outputs else ()
    check_writes(ctx, scope, node, entry.move.lineage, writes, value)
    entry.complete_instantly(*labels_of(value), replaces=not node.transparent, result=value, writes=writes, pinned=True)


def branch_of(value: Json) -> str:
    """By which branch a decision leaves that is pinned to this."""
    branch = value.get("branch") if isinstance(value, dict) else value
    return "true" if branch is True else "false" if branch is False else str(branch)


def labels_of(value: Json) -> tuple[str, ...]:
    """By which labels a step with this result leaves: as an agent says it, or a person."""
    if isinstance(value, str):
        return (value,)
    found = (value.get(key) for key in ("next", "action")) if isinstance(value, dict) else ()
    return tuple(one for one in found if isinstance(one, str))
