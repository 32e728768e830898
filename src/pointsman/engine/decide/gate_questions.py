"""Gate contents: open a gate, update it when its content changes, and set its deadline.

    gate opens ─▶ GateOpened(digest) ─▶ a decision changes what it shows ─▶ GateChanged(new digest)

`ask_again` runs at the end of every decision, whatever caused the change: another step, a join, a person, a fork,
another definition. An open gate therefore always shows the present data, and an answer with another digest is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from pointsman.engine.actions import (
    GateAbout,
    GateApprovers,
    GateTerms,
    HumanTaskAction,
    Value,
    WorkAction,
    WorkflowAction,
)
from pointsman.engine.commands import AnnounceGate, SetTimer
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import Entry, fail_open_step
from pointsman.engine.decide.outputs import failure_from
from pointsman.engine.digests import digest_of, is_same, values_at
from pointsman.engine.events.lifecycle import ExecutionForked, ExecutionMigrated, ExecutionSteered
from pointsman.engine.events.steps import Event
from pointsman.engine.events.waits import GateChanged, GateOpened, TimerSet
from pointsman.engine.fold.waits import gate_of
from pointsman.engine.state import ExecutionState, GateState, StepState
from pointsman.engine.steps import Scope, Step
from pointsman.errors import PointsmanError
from pointsman.expressions.environment import Environment
from pointsman.values import Json, JsonObject, Path


class GateContent(NamedTuple):
    """The question and contents of a human node, evaluated with the present data."""

    message: str
    messages: dict[str, str]
    shown: Json
    editable: tuple[Path, ...]


def shown_of(ctx: DecisionContext, at: Entry | StepState, action: HumanTaskAction, env: Environment) -> GateContent:
    """Evaluate the question and contents of a human node. Raises the errors of its formulas."""
    message = str(action.message(env) or "")
    if not message and at.step == ctx.state.limits.escalation_gate:
        message = str(at.incoming.value)  # which limit was reached
    return GateContent(
        message=message,
        messages=localized_messages(ctx, at, action.messages, message, env),
        shown=None if action.displayed is None else action.displayed(env),
        editable=tuple(path.resolve(env) for path in action.editable),
    )


def announce_gate(ctx: DecisionContext, question: GateOpened, terms: GateTerms) -> None:
    """Open a gate with these terms and announce it."""
    step = question.step
    at = ctx.state.steps[step]
    env = ctx.environment(at.scope, ctx.node(step), at.incoming.value)
    loop = env.names.get("loop")
    iteration = loop.get("iteration") if isinstance(loop, dict) else None
    deadline = None if terms.timeout_s is None else ctx.state.at + terms.timeout_s
    at.scope.data.shared()
    ctx.emit(
        replace(
            question,
            approvers=terms.approvers,
            deadline=deadline,
            item=env.item_key,
            round=iteration if isinstance(iteration, int) else None,
            called=ctx.node(step).display_name,
            digest=digest_of(question, values_at(at, question.editable), _work(ctx, question.about, step)),
        )
    )
    ctx.command(AnnounceGate(step=step))
    if deadline is not None:
        set_deadline(ctx, step, deadline)


def _work(ctx: DecisionContext, about: GateAbout, step: Step) -> Json:
    """Return the work that a gate lets start, as part of its digest: the same input to another tool needs a new
    consent.
    """
    if about != "start":
        return None
    match ctx.node(step).action:
        case WorkAction(spec=spec):
            return [spec.kind, spec.config]
        case WorkflowAction(workflow=workflow):
            return workflow
        case _:
            return None


def localized_messages(
    ctx: DecisionContext, at: Entry | StepState, messages: Mapping[str, Value], usual: str, env: Environment
) -> dict[str, str]:
    """Return the message in every language that it is written in.

    A text that fails is replaced by the one in the execution's language (`usual`), with a warning when the gate opens.
    """
    texts: dict[str, str] = {}
    for language, value in messages.items():
        try:
            texts[language] = str(value(env) or "")
        except PointsmanError as why:
            if isinstance(at, Entry):
                node = at.step.node
                ctx.warn("text-not-localized", f"what {node!r} asks cannot be said in {language!r}: {why}", at.step)
            texts[language] = usual
    return texts


# Updates of open gates


def ask_again(ctx: DecisionContext, since: int) -> None:
    """Update each open gate whose contents the events from `since` on have changed.

    A gate whose formulas fail on the new data fails as it would on opening.
    """
    state, events = ctx.state, ctx.events[since:]
    has_moved = any(isinstance(event, ExecutionMigrated) for event in events)
    for key in _written(state, events):
        for step in tuple(state.gates.get(key, ())):
            at = state.steps[step]
            try:
                changed = _changed(ctx, at, has_moved=has_moved)
            except PointsmanError as why:
                fail_open_step(ctx, step, failure_from(why))
                continue
            if changed is not None:
                ctx.emit(changed)
                ctx.command(AnnounceGate(step=step))


def _written(state: ExecutionState, events: Sequence[Event]) -> Iterable[Scope]:
    """Return the scopes whose gates may show other contents after these events."""
    scopes: dict[Scope, None] = {}
    for event in events:
        if isinstance(event, ExecutionForked | ExecutionSteered | ExecutionMigrated):
            return tuple(state.gates)
        step = getattr(event, "step", None)
        scope = step.scope if isinstance(step, Step) else getattr(event, "scope", None)
        if scope is not None and scope in state.gates:
            scopes[scope] = None
    return scopes


def _changed(ctx: DecisionContext, at: StepState, *, has_moved: bool) -> GateChanged | None:
    """Return the update of an open gate; None if nothing has changed."""
    gate, node = gate_of(at), ctx.node(at.step)
    if gate.about == "node" and isinstance(node.action, HumanTaskAction):
        return _node_changed(ctx, at, gate, node.action, has_moved=has_moved)
    if gate.about == "start" and has_moved:
        return _start_changed(ctx, at, gate)
    return None  # tool calls are made as they are shown, or not at all


def _node_changed(
    ctx: DecisionContext, at: StepState, gate: GateState, action: HumanTaskAction, *, has_moved: bool
) -> GateChanged | None:
    now = shown_of(ctx, at, action, _environment(ctx, at, gate))
    values = tuple(at.scope.data.at(path) for path in now.editable)
    before: list[Json] = [gate.message, {**gate.messages}, gate.displayed, [*gate.values]]
    after: list[Json] = [now.message, {**now.messages}, now.shown, [*values]]
    terms = (action.options, action.form, _approvers(gate, action.terms)) if has_moved else _terms(gate)
    if is_same(before, after) and now.editable == gate.editable and terms == _terms(gate):
        return None
    at.scope.data.shared()
    options, form, approvers = terms
    changed = GateChanged(
        step=at.step,
        gate=gate.id,
        message=now.message,
        messages=now.messages,
        options=options,
        form=form,
        shown=now.shown,
        editable=now.editable,
        approvers=approvers,
        called=ctx.node(at.step).display_name,
        digest="",
    )
    return replace(changed, digest=digest_of(changed, values))


def _start_changed(ctx: DecisionContext, at: StepState, gate: GateState) -> GateChanged | None:
    """Return the update of a start approval after migration: the other definition may change the input or the work."""
    node = ctx.node(at.step)
    env = _environment(ctx, at, gate)
    work = at.input or {}
    if isinstance(node.action, WorkAction | WorkflowAction) and node.type != "tool_executor":
        work = ctx.object(at.scope, node.action.input, env)
    message = gate.message if node.policy.approval.message is None else str(node.policy.approval.message(env) or "")
    changed = GateChanged(
        step=at.step,
        gate=gate.id,
        message=message,
        messages=localized_messages(ctx, at, node.policy.approval.messages, message, env),
        options=gate.options,
        shown=work,
        approvers=_approvers(gate, node.policy.approval.terms),
        called=node.display_name,
        input=work,
        digest="",
    )
    digest = digest_of(changed, (), _work(ctx, gate.about, at.step))
    return None if digest == gate.digest and changed.approvers == gate.approvers else replace(changed, digest=digest)


def _environment(ctx: DecisionContext, at: StepState, gate: GateState) -> Environment:
    """Return the data for formulas of an open gate: the names as on opening, with the present data."""
    more: dict[str, Json] = {}
    if ctx.plan.engine_names:
        more = {"_currentStep": ctx.current_step(gate.number), "_currentNodeIteration": at.step.visit}
    return ctx.environment(at.scope, ctx.node(at.step), at.incoming.value, more)


def _terms(gate: GateState) -> tuple[tuple[JsonObject, ...], JsonObject | None, GateApprovers | None]:
    return gate.options, gate.form, gate.approvers


def _approvers(gate: GateState, terms: GateTerms) -> GateApprovers | None:
    """Return the approvers under another definition, at the escalation level that the gate has reached."""
    if gate.level == 0:
        return terms.approvers
    return terms.levels[gate.level - 1].approvers if gate.level <= len(terms.levels) else gate.approvers


def set_deadline(ctx: DecisionContext, step: Step, at: float) -> None:
    """Set the timer of an open gate at `at` (unix seconds). Each level has its own timer, so a late one has no
    effect.
    """
    gate = gate_of(ctx.state.steps[step])
    timer = f"gate:{gate.id.removeprefix('gate-')}:{gate.level}"
    ctx.emit(TimerSet(timer=timer, purpose="gate", at=at, step=step))
    ctx.command(SetTimer(timer=timer, at=at))


def terms_of(ctx: DecisionContext, at: StepState) -> GateTerms:
    """Return the terms of the open gate of a step."""
    node = ctx.node(at.step)
    return node.action.terms if isinstance(node.action, HumanTaskAction) else node.policy.approval.terms
