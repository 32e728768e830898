"""Exit a step: choose the outgoing edges of a finished step.

    all     every edge whose condition holds; several edges split the token
    first   edges in document order, the first that holds
    label   (1) the edge with the emitted label  (2) else the one plain or default edge  (3) else by type

`default` edges count only when no other edge does; `error` edges only after a final failure.
"""

from __future__ import annotations

from pointsman.engine.actions import LoopAction, PlanEdge
from pointsman.engine.decide import completion, lifecycle, loops, partial_run
from pointsman.engine.decide.context import DecisionContext, EnterNode, ExitStep, PropagateFailure
from pointsman.engine.decide.entry import catching
from pointsman.engine.decide.outputs import failure_from
from pointsman.engine.events.steps import ExitFailed, LoopLeft
from pointsman.engine.failures import Failure
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import ScopeState, StepOutput
from pointsman.engine.steps import Step, split_lineage
from pointsman.errors import PointsmanError
from pointsman.expressions.environment import Environment
from pointsman.values import END


def exit_step(ctx: DecisionContext, move: ExitStep) -> None:
    """Send control along the edges of a finished step, or end the token."""
    step = move.step
    node = ctx.plan.nodes[step.node]
    output = ctx.state.row.outputs[step]
    if step.scope not in ctx.state.scopes:
        return  # the branch was settled while this transition was queued
    ctx.dirty_scopes[step.scope] = None
    if ctx.state.limits.escalation_gate == step and not lifecycle.escalation_answered(ctx, move):
        return
    trial = ctx.plan.partial_run
    if trial is not None and partial_run.ends_here(trial, node, output, move):
        ctx.end_token(step, reason="end", output=output.value)
        return
    if move.failed is not None:
        _leave_failed(ctx, node, step, output, move.failed)
        return
    straight = node.exits.straight
    if straight is not None and not output.pending:
        ctx.enqueue(EnterNode(straight.target, step.scope, straight, step, output.lineage))
        return
    if output.pending and node.exits.tool_executor is not None:
        edge = node.exits.tool_executor
        ctx.enqueue(EnterNode(edge.target, step.scope, edge, step, output.lineage, node.id))
        return
    try:
        edges = _edges_taken(ctx, node, step, output, move.labels)
        if edges:
            _take(ctx, step, output, edges)
        else:
            _nowhere(ctx, node, step, output, move.labels)
    except PointsmanError as why:
        record_exit_failure(ctx, node, step, failure_from(why))


def _take(ctx: DecisionContext, step: Step, output: StepOutput, edges: list[PlanEdge]) -> None:
    apart = ctx.node(step).position.splits_apart
    for edge in edges:
        own = output.lineage if len(edges) == 1 else split_lineage(output.lineage, step.node, edge.index, apart=apart)
        ctx.enqueue(EnterNode(edge.target, step.scope, edge, step, own))


def _leave_failed(ctx: DecisionContext, node: PlanNode, step: Step, output: StepOutput, failure: Failure) -> None:
    edges = catching(node, failure)
    if edges:
        _take(ctx, step, output, edges)
    else:
        ctx.enqueue(PropagateFailure(step, failure))


def record_exit_failure(ctx: DecisionContext, node: PlanNode, step: Step, failure: Failure) -> None:
    """Record that a completed step has no legal edge; error edges may catch that failure."""
    ctx.emit(ExitFailed(step=step, failure=failure))
    caught = catching(node, failure)
    if caught:
        _take(ctx, step, ctx.state.row.outputs[step], caught)
    else:
        ctx.enqueue(PropagateFailure(step, failure))


def _edges_taken(
    ctx: DecisionContext, node: PlanNode, step: Step, output: StepOutput, labels: tuple[str, ...]
) -> list[PlanEdge]:
    if node.exits.mode == "label":
        return by_label(ctx, node, step, output, labels)
    edges = node.exits.edges
    if isinstance(node.action, LoopAction):
        edges = node.action.body_edges if loops.BODY in labels else node.action.exit_edges
    return edges_to_follow(ctx, node, step, output, labels, edges)


def edges_to_follow(
    ctx: DecisionContext,
    node: PlanNode,
    step: Step,
    output: StepOutput,
    labels: tuple[str, ...],
    edges: tuple[PlanEdge, ...],
) -> list[PlanEdge]:
    """For `all` and `first`: return the edges whose conditions hold, else the default edges."""
    scope = ctx.state.scopes[step.scope]
    env: Environment | None = None
    selected: list[PlanEdge] = []
    defaults: list[PlanEdge] = []
    for edge in edges:
        if edge.kind == "plain":
            holds = True
        elif edge.kind == "test" and edge.test is not None:
            env = env or exit_environment(ctx, scope, node, output, labels, edges)
            holds = edge.test(env)
        elif edge.kind == "label":
            holds = edge.label in labels
        else:
            holds = False
            if edge.kind == "default":
                defaults.append(edge)
        if holds:
            selected.append(edge)
            if node.exits.mode == "first":
                break
    return selected or defaults[: 1 if node.exits.mode == "first" else None]


def exit_environment(
    ctx: DecisionContext,
    scope: ScopeState,
    node: PlanNode,
    output: StepOutput,
    labels: tuple[str, ...],
    edges: tuple[PlanEdge, ...],
) -> Environment:
    """Return the data for conditions on a node's own edges: `next` is the emitted label, also as `state.next`."""
    emitted = labels[0] if labels else None
    env = ctx.environment(scope, node, output.value, {"next": emitted})
    if emitted is not None and any(edge.reads_next for edge in edges):
        env.state = {**env.state, "next": emitted}
    return env


def by_label(
    ctx: DecisionContext, node: PlanNode, step: Step, output: StepOutput, labels: tuple[str, ...]
) -> list[PlanEdge]:
    """Return the edge of the first label that has one; else of a condition that holds; else the plain or default
    edge.
    """
    for label in labels:
        edge = match(node, label)
        if edge is not None:
            if edge.label != label:
                ctx.warn("label-case", f"the label {label!r} was read as {edge.label!r}", step)
            return [edge]
    scope = ctx.state.scopes[step.scope]
    env: Environment | None = None
    for edge in node.exits.edges:
        if edge.kind == "test" and edge.test is not None:
            env = env or exit_environment(ctx, scope, node, output, labels, node.exits.edges)
            if edge.test(env):
                return [edge]
    if node.exits.fallback is not None and "reject" not in labels:
        return [node.exits.fallback]
    return []


def match(node: PlanNode, label: str) -> PlanEdge | None:
    """Return the edge of a label: an exact match, else a unique match that ignores case."""
    exact = node.exits.labels.get(label)
    if exact is not None:
        return exact
    folded = label.casefold()
    alike = [edge for name, edge in node.exits.labels.items() if name.casefold() == folded]
    return alike[0] if len(alike) == 1 else None


def legal(node: PlanNode, labels: tuple[str, ...]) -> bool:
    """Return whether an exit with these labels finds an edge or needs none."""
    if any(match(node, label) is not None for label in labels) or node.exits.fallback is not None:
        return True
    if any(edge.kind == "test" for edge in node.exits.edges):
        return True
    if labels and node.exits.edges and node.exits.no_route == "turn":
        return END in labels
    return node.exits.no_route != "fail"


def no_route(node: PlanNode, labels: tuple[str, ...]) -> Failure:
    """Return the failure of a step that finds no edge; it lists the legal labels."""
    labels_offered = sorted(node.exits.labels) or [edge.target for edge in node.exits.edges]
    label = f"{labels[0]!r}" if labels else "no label"
    return Failure(
        code="no-route",
        message=f"{node.id!r} returned {label}, but no edge accepts it",
        hint=f"Legal values: {', '.join(labels_offered) or 'none, it has no edges'}.",
        details={"legal": [*labels_offered], "left": [*labels]},
    )


def _nowhere(ctx: DecisionContext, node: PlanNode, step: Step, output: StepOutput, labels: tuple[str, ...]) -> None:
    """Handle an exit without an edge: the token ends, or the type of the node decides."""
    if node.exits.no_route == "undone":
        completion.exit_undo(ctx, labels)
        return
    if END in labels and node.exits.no_route in ("turn", "end"):
        ctx.end_token(step)
        completion.complete(ctx, closes_session=ctx.plan.conversational)
        return
    if node.exits.no_route == "caller" and output.caller is not None and output.caller in ctx.plan.nodes:
        ctx.enqueue(EnterNode(output.caller, step.scope, None, step, output.lineage))
        return
    if node.exits.no_route == "cancel" and "reject" in labels:
        ctx.end_token(step)
        completion.cancel(ctx, reason=f"rejected at {node.id!r}")
        return
    if node.exits.no_route == "fail" or (node.exits.no_route == "cancel" and node.exits.edges):
        record_exit_failure(ctx, node, step, no_route(node, labels))
        return
    _end_here(ctx, node, step, output)


def _end_here(ctx: DecisionContext, node: PlanNode, step: Step, output: StepOutput) -> None:
    """End the token. At the end of a loop body whose loop ends with its body, control continues at the loop's exits."""
    for loop_id in node.position.loops:
        loop = ctx.plan.nodes[loop_id]
        if isinstance(loop.action, LoopAction) and loop.action.ends_with_body:
            scope = ctx.state.scopes[step.scope]
            if loop_id not in scope.loops or loops.body_moves(ctx, scope, loop.action):
                break
            ctx.emit(LoopLeft(node=loop_id, scope=scope.key))
            exits = edges_to_follow(ctx, loop, step, output, (), loop.action.exit_edges)
            if exits:
                _take(ctx, step, output, exits)
                return
    ctx.end_token(step)
