"""Rules of partial runs (see `PartialRun` of the plan): mocks, breakpoints and the nodes at which a run ends.

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
from pointsman.engine.fold.scopes import NOBODY
from pointsman.engine.plan import PartialRun, Plan, PlanNode, in_full
from pointsman.engine.state import StepOutput
from pointsman.engine.steps import Step
from pointsman.values import Json


def begin(ctx: DecisionContext, trial: PartialRun) -> None:
    """Start control at the first node of the partial run."""
    if trial.alone is None:
        ctx.enqueue(EnterNode(ctx.plan.entry, (), None, None))
        return
    ctx.emit(ControlRedirected(node=trial.alone, value=trial.given))
    ctx.enqueue(EnterNode(trial.alone, (), None, NOBODY))


def may_enter(ctx: DecisionContext, trial: PartialRun, move: EnterNode) -> bool:
    """Return whether control enters the node; otherwise the token ends. Error handlers run in any case."""
    if not trial.until or move.node in trial.performed or move.after in (None, NOBODY):
        return True
    state = ctx.state
    return state.is_escalated or state.compensation is not None


def ends_before(plan: Plan, node: str) -> bool:
    """Return whether the partial run ends before this node."""
    trial = plan.partial_run
    return trial is not None and bool(trial.until) and node not in trial.performed


def pauses_before(ctx: DecisionContext, node: PlanNode, step: Step) -> bool:
    """Return whether the execution pauses before this step; it does so once per step."""
    state, trial = ctx.state, ctx.plan.partial_run
    if node.hidden or step in state.pause.breakpoints.passed_steps or state.compensation is not None:
        return False
    return state.pause.breakpoints.stepping or (trial is not None and node.id in trial.breakpoints)


def ends_here(trial: PartialRun, node: PlanNode, output: StepOutput, move: ExitStep) -> bool:
    """Return whether the partial run ends after this step: no round and no call of it remains."""
    if node.id not in trial.until or output.pending or move.failed is not None:
        return False
    return not (isinstance(node.action, LoopAction) and BODY in move.labels)


def is_mocked(trial: PartialRun, entry: Entry) -> bool:
    """Return whether a mock replaces the step."""
    return entry.node.id in trial.mocks or (bool(trial.step_mocks) and in_full(str(entry.step)) in trial.step_mocks)


def complete_mocked(entry: Entry, trial: PartialRun) -> None:
    """Complete a step with its mocked value. Raises if its outputs cannot be written from that value."""
    ctx, node, scope = entry.ctx, entry.node, entry.scope
    name = in_full(str(entry.step))
    value = trial.step_mocks[name] if name in trial.step_mocks else trial.mocks[node.id]
    if isinstance(node.action, DecisionAction):
        label = branch_of(value)
        entry.complete_instantly(label, view={"branch": label}, pinned=True)
        return
    writes = evaluate_outputs(ctx, scope, node, value) if node.outputs else ()
    check_writes(ctx, scope, node, entry.move.lineage, writes, value)
    entry.complete_instantly(*labels_of(value), replaces=not node.transparent, result=value, writes=writes, pinned=True)


def branch_of(value: Json) -> str:
    """Return the branch of a decision that is mocked with this value."""
    branch = value.get("branch") if isinstance(value, dict) else value
    return "true" if branch is True else "false" if branch is False else str(branch)


def labels_of(value: Json) -> tuple[str, ...]:
    """Return the labels of a step with this mocked result, read as an agent's or a person's answer."""
    if isinstance(value, str):
        return (value,)
    labels = (value.get(key) for key in ("next", "action")) if isinstance(value, dict) else ()
    return tuple(label for label in labels if isinstance(label, str))
