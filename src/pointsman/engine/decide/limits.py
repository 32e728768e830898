"""Limits that no prompt can override: steps, time, budgets and repetition; and raises of limits by people.

    step is about to start ─▶ limit reached? ─▶ the arrival is held, the execution is interrupted and can continue
    attempt requests a call ─▶ budget exceeded? ─▶ fails with `budget-spent`; the step itself has not failed ─▶ the same
    agent answers ─▶ the same answer to the same input for the third time, and nothing new in the data ─▶ the same
    used 5 of 5 steps ─▶ interrupted ─▶ resume steps=5   refused: it would stop again at once
                                     └▶ resume steps=20  continues

Budgets bound tokens, cost and calls of models and tools, child executions included. A budget that is used up exactly is
not exceeded: only further spending is stopped. Each budget warns once near its end.

An agent stalls when it gives the same answer to the same input three times while no agent of its scope produces
anything new and the data hold nothing new. Two or more agents that pass the same work around stall likewise. Inside a
loop with bounded rounds repetition is not a stall: the loop ends it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from pointsman.engine.actions import ASKING_MODELS, Action, HumanTaskAction, LoopAction, WorkAction, WorkflowAction
from pointsman.engine.commands import HoldChild, SetTimer
from pointsman.engine.decide import completion
from pointsman.engine.decide.context import DecisionContext, EnterNode
from pointsman.engine.events.lifecycle import ExecutionInterrupted, ExecutionPaused, LimitEscalated
from pointsman.engine.events.steps import ArrivalHeld
from pointsman.engine.events.waits import ChildUsageCounted, LimitHit, TimerSet, WarningRaised
from pointsman.engine.failures import Failure
from pointsman.engine.fold.scopes import NOBODY
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.reports import ChildUsageReported, Usage, WorkDone
from pointsman.engine.state import ExecutionState, Repetition, ScopeState, StepState, UsageTotal
from pointsman.engine.steps import Step
from pointsman.errors import CallerError
from pointsman.values import Json, JsonObject

WORKED: Final = "executionTime"
CLOCK: Final = "deadline"
"""Timers of the whole execution: for working time and for clock time."""


TOLERANCE_S: Final = 1e-6


class ReachedLimit(NamedTuple):
    """A limit that was reached."""

    limit: str
    message: str
    step: Step | None = None


SOURCES: Final = {"definition": "set by the workflow", "operator": "set by the operator", "": "the default"}


def allowed(ctx: DecisionContext, name: str, planned: float | None) -> float | None:
    """Return the limit in force: the raised value of this execution, else the plan's; None = unlimited."""
    return allowed_in(ctx.plan, ctx.state, name, planned)


def allowed_in(plan: Plan, state: ExecutionState, name: str, planned: float | None) -> float | None:
    """Return the limit in force without a context. A lowered cap of the operator applies at once."""
    raised = state.limits.raised.get(name)
    if raised is None:
        return planned
    most = plan.limits.caps.get(name)
    return raised if most is None else min(raised, most)


def planned(plan: Plan, name: str) -> float | None:
    """Return the plan's value of a limit that interrupts; for visits, the highest of all nodes."""
    match name:
        case "steps":
            return plan.limits.steps
        case "executionTime":
            return plan.limits.execution_time_s
        case "deadline":
            return plan.limits.deadline_s
        case "visits":
            bounds = (node.policy.visits_max for node in plan.nodes.values())
            return max((bound for bound in bounds if bound is not None), default=None)
        case _:
            return dict(plan.limits.budgets).get(name)


def limit_message(plan: Plan, state: ExecutionState, name: str, what: str) -> str:
    """Return a message about a reached limit, with its source."""
    source = "raised before" if name in state.limits.raised else SOURCES[plan.limits.sources.get(name, "")]
    return f"{what} (`{name}`, {source})"


def before_step(
    ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, *, beside: int = 0
) -> ReachedLimit | None:
    """Return a limit that forbids starting this node now, given `beside` other nodes that start with it."""
    state, limits, reached = ctx.state, ctx.plan.limits, ctx.state.limits
    if reached.escalation_gate is not None and state.status == "interrupted":
        return None  # this is the gate that asks whether to continue: nothing else starts meanwhile
    raised = reached.raised
    steps = limits.steps if not raised else allowed(ctx, "steps", limits.steps)
    if steps is not None and state.counters.steps + beside - (reached.escalated_at_step or 0) >= steps:
        return ReachedLimit(
            "steps", limit_message(ctx.plan, state, "steps", f"the limit of {int(steps)} steps is reached")
        )
    if reached.escalated_at_step is not None:
        return None
    visits = node.policy.visits_max
    if raised:
        visits = raised.get(f"visits:{node.id}", raised.get("visits", visits))
    if visits is not None:
        count = scope.visits.get((node.id, move.lineage if node.position.has_lineage else ()), 0)
        if count >= visits:
            message = f"{node.id!r} was visited {count} times, its limit"
            return ReachedLimit("visits", limit_message(ctx.plan, state, "visits", message))
    return None


def hold_arrival(ctx: DecisionContext, move: EnterNode) -> None:
    """Hold an arrival until the execution continues."""
    edge = "" if move.edge is None else move.edge.id
    ctx.emit(
        ArrivalHeld(
            node=move.node,
            scope=move.scope,
            edge=edge,
            after=move.after,
            lineage=move.lineage,
            caller=move.caller,
            again=move.starts_node,
        )
    )


def handle_reached_limit(ctx: DecisionContext, tripped: ReachedLimit) -> None:
    """Handle a reached limit: route to the fallback node, or interrupt the execution and keep its state."""
    if ctx.state.ended or ctx.state.is_halted or ctx.uncaught or ctx.state.compensation is not None:
        return
    if tripped.limit in dict(ctx.plan.limits.budgets) and ctx.plan.limits.budget_policy == "pause":
        ctx.emit(LimitHit(limit=tripped.limit, message=tripped.message, step=tripped.step))
        ctx.emit(ExecutionPaused(by=f"limits.{tripped.limit}"))
        ctx.commands += halt_children(ctx.state)
        return
    handler = ctx.plan.limits.on_limit if not ctx.state.is_escalated else None
    asks_person = handler is not None and _asks(ctx.plan.nodes[handler])
    if handler is not None and not asks_person:
        ctx.emit(LimitHit(limit=tripped.limit, message=tripped.message, step=tripped.step))
        completion.cancel_steps(ctx, ())
        ctx.discard_all()
        completion.hand_over(ctx, handler, tripped.message)
        return
    for at in ctx.state.steps.values():
        completion.stop_step(ctx, at, children=False)
    ctx.commands += halt_children(ctx.state)
    ctx.emit(ExecutionInterrupted(limit=tripped.limit, message=tripped.message))
    if handler is not None:
        gate = ctx.visit(ctx.state.root, ctx.plan.nodes[handler], ())
        ctx.emit(LimitEscalated(node=handler, value=tripped.message, gate=gate))
        ctx.enqueue(EnterNode(handler, (), None, NOBODY, starts_node=True))


def _asks(node: PlanNode) -> bool:
    """Return whether people may let the execution continue at this gate."""
    return isinstance(node.action, HumanTaskAction) and bool(node.action.limit_raises)


def halt_children(state: ExecutionState) -> list[HoldChild]:
    """Return commands that also halt the child executions of a halted execution."""
    return [
        HoldChild(step=at.step, attempt=at.attempt, call=call) for at in state.steps.values() for call in at.children
    ]


def set_limit_timers(ctx: DecisionContext) -> None:
    """Set the timers of the time limits."""
    state, limits = ctx.state, ctx.plan.limits
    if limits.execution_time_s is None and limits.deadline_s is None and not state.limits.raised:
        return
    worked, most = allowed(ctx, WORKED, limits.execution_time_s), allowed(ctx, CLOCK, limits.deadline_s)
    if state.is_escalated or state.compensation is not None:
        return
    if worked is not None and state.counters.running_steps and WORKED not in state.timers:
        _set(ctx, WORKED, state.at + max(0.0, worked - worked_s(state)))
    if most is not None and CLOCK not in state.timers:
        _set(ctx, CLOCK, state.setup.started_at + most)


def _set(ctx: DecisionContext, timer: str, at: float) -> None:
    ctx.emit(TimerSet(timer=timer, purpose="deadline", at=at))
    ctx.command(SetTimer(timer=timer, at=at))


def worked_s(state: ExecutionState) -> float:
    """Return the seconds until now during which any step ran."""
    works = state.counters.running_steps and state.status != "interrupted"
    return state.counters.worked_s + (state.at - state.counters.working_since if works else 0.0)


def timer_fired(ctx: DecisionContext, timer: str) -> None:
    """Check on a timer of the execution whether the time limit is reached; otherwise set the timer again."""
    state, limits = ctx.state, ctx.plan.limits
    if timer == CLOCK:
        most, used, what = (
            allowed(ctx, CLOCK, limits.deadline_s),
            state.at - state.setup.started_at,
            "the execution lasted",
        )
    else:
        most, used, what = allowed(ctx, WORKED, limits.execution_time_s), worked_s(state), "work ran for"
        if state.counters.running_steps == 0:
            return
    if most is None or state.is_escalated or state.compensation is not None:
        return
    if used + TOLERANCE_S >= most:
        handle_reached_limit(
            ctx, ReachedLimit(timer, limit_message(ctx.plan, state, timer, f"{what} {most:g} seconds, the limit"))
        )
    else:
        set_limit_timers(ctx)


BUDGET_SPENT: Final = "budget-spent"
"""Code of a refused attempt: the step has not failed, it waits for more budget."""

Spending: TypeAlias = Usage | UsageTotal
Kind: TypeAlias = Literal["model", "tool"]

AMOUNT: Final[Mapping[str, Callable[[Spending], float]]] = {
    "tokens": lambda usage: usage.input_tokens + usage.output_tokens,
    "modelCalls": lambda usage: usage.model_calls,
    "toolCalls": lambda usage: usage.tool_calls,
    "costUsd": lambda usage: usage.cost_usd or 0.0,
}
"""Function per budget that returns the part of a usage that counts against it."""

COUNTED: Final[Mapping[Kind, str]] = {"model": "modelCalls", "tool": "toolCalls"}

UNITS: Final = {
    "tokens": "tokens",
    "modelCalls": "model calls",
    "toolCalls": "tool calls",
    "costUsd": "US dollars",
}


def used_up_budget(ctx: DecisionContext, action: Action) -> ReachedLimit | None:
    """Return the used-up budget that forbids starting an action which would spend more of it, or None."""
    if not isinstance(action, WorkAction | WorkflowAction) or ctx.plan.limits.budget_policy == "warn":
        return None
    tools = isinstance(action, WorkAction) and action.spec.kind in ("tool", "tool_executor")
    models = isinstance(action, WorkAction) and action.spec.kind in ASKING_MODELS
    for name, most in _in_force(ctx.plan, ctx.state):
        matters = (
            name in ("tokens", "costUsd")
            or isinstance(action, WorkflowAction)
            or (tools if name == "toolCalls" else models)
        )
        if matters and AMOUNT[name](ctx.state.usage) >= most:
            return _reached_budget(ctx.plan, ctx.state, name, most)
    return None


def refused_by_budget(
    plan: Plan, state: ExecutionState, kind: Kind, calls: int, under_way: Iterable[Spending]
) -> ReachedLimit | None:
    """Return the budget that forbids further calls inside an attempt. `under_way`: usage of open attempts so far."""
    if plan.limits.budget_policy == "warn" or state.is_escalated or state.compensation is not None:
        return None
    usages = [state.usage, *under_way]
    for name, most in _in_force(plan, state):
        total = sum(AMOUNT[name](usage) for usage in usages)
        over = total + calls > most if name == COUNTED[kind] else name in ("tokens", "costUsd") and total >= most
        if over:
            return _reached_budget(plan, state, name, most)
    return None


def budget_failure(tripped: ReachedLimit) -> Failure:
    """Return the failure by which a refused attempt reports the limit."""
    return Failure(code=BUDGET_SPENT, message=tripped.message, details={"limit": tripped.limit})


def limit_reported_by(at: StepState, failure: Failure) -> ReachedLimit:
    """Return the limit that a refused attempt reported."""
    limit = (failure.details or {}).get("limit")
    return ReachedLimit(str(limit), failure.message, at.step)


def wait_for_budget(ctx: DecisionContext, at: StepState, failure: Failure) -> None:
    """Handle an attempt refused half-way. It is repeated from its recorded effects once the budget allows more."""
    tripped = limit_reported_by(at, failure)
    if ctx.state.status != "paused":
        handle_reached_limit(ctx, tripped)
    elif at.step not in ctx.state.limits.budget_stopped:
        ctx.emit(LimitHit(limit=tripped.limit, message=tripped.message, step=at.step))


def warn_of_budgets(ctx: DecisionContext) -> None:
    """Warn once per budget: it is nearly or fully spent, or the price of a model is unknown."""
    state, plan = ctx.state, ctx.plan
    for name, most in _in_force(plan, state):
        amount = AMOUNT[name](state.usage)
        if name == "costUsd" and state.usage.unpriced_calls:
            _warn(
                ctx,
                "cost-unknown",
                name,
                "a model without a known price was called: the budget does not count these calls",
            )
        if amount >= most * plan.limits.budget_warn_at and amount < most:
            message = f"{_number(amount)} of {_number(most)} {UNITS[name]} are spent"
            _warn(ctx, "budget-low", f"{name}:{_number(most)}", message)
        elif amount >= most and plan.limits.budget_policy == "warn":
            message = f"{_number(amount)} {UNITS[name]} are spent, and the budget is {_number(most)}"
            _warn(ctx, BUDGET_SPENT, f"{name}:{_number(most)}", message)


def count_child_usage(ctx: DecisionContext, at: StepState, report: ChildUsageReported) -> ReachedLimit | None:
    """Count the present usage of a running sub-workflow here, and return the budget that it exceeds, if any."""
    ctx.emit(ChildUsageCounted(step=at.step, usage=report.usage, call=report.call))
    if ctx.plan.limits.budget_policy == "warn":
        return None
    for name, most in _in_force(ctx.plan, ctx.state):
        if AMOUNT[name](ctx.state.usage) > most:
            return _reached_budget(ctx.plan, ctx.state, name, most)
    return None


def _in_force(plan: Plan, state: ExecutionState) -> Iterable[tuple[str, float]]:
    budgets = plan.limits.budgets
    if not state.limits.raised:
        return budgets
    return [(name, allowed_in(plan, state, name, most) or most) for name, most in budgets]


def _reached_budget(plan: Plan, state: ExecutionState, name: str, most: float) -> ReachedLimit:
    return ReachedLimit(name, limit_message(plan, state, name, f"the budget of {_number(most)} {UNITS[name]} is spent"))


def _warn(ctx: DecisionContext, code: str, about: str, message: str) -> None:
    if f"{code}:{about}" not in ctx.state.warning_keys:
        ctx.emit(WarningRaised(code=code, message=message, about=about))


def _number(number: float) -> str:
    return f"{number:g}" if number < 1e6 else str(int(number))


REPEATS_MAX: Final = 3


NO_REPETITION: Final = Repetition(0, 0)
"""Result for work other than agents, which is not compared."""


def repetition_of(ctx: DecisionContext, at: StepState, report: WorkDone) -> Repetition:
    """Compare an answer with those of the agents of its scope. O(data), but only when an agent repeats itself."""
    if _ends_anyway(ctx, at.step):
        return NO_REPETITION
    calls: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in report.pending]
    mark = _hash([at.input, report.result, report.next, calls])
    guard = ctx.state.limits.stall_guards.get(at.step.scope)
    last = guard.times(at.step.node, mark) if guard is not None else Repetition(mark, 0)
    if last.times == 0:
        return Repetition(mark, 1)
    digest = _hash(_things(at.scope.data.root))
    return Repetition(mark, last.times + 1 if last.seen in (0, digest) else 1, digest)


def _things(data: JsonObject) -> JsonObject:
    """Return the data with lists reduced to sets: another copy of the same element is not progress."""
    return {name: _members(value) if isinstance(value, list) else value for name, value in data.items()}


def _members(values: list[Json]) -> Json:
    return [*sorted({_hash(value) for value in values})]


def _hash(value: Json) -> int:
    return int.from_bytes(blake2b(msgspec.json.encode(value), digest_size=7).digest(), "big")


def reached_by_repetition(ctx: DecisionContext, step: Step, repeats: Repetition) -> ReachedLimit | None:
    """Return the limit that the step reached by repetition, if any."""
    if repeats is NO_REPETITION or ctx.state.is_escalated or ctx.state.compensation is not None:
        return None
    if repeats.times < (allowed(ctx, "no-progress", REPEATS_MAX) or REPEATS_MAX):
        return None
    message = (
        f"{step.node!r} gave the same answer to the same input {repeats.times} times, and no data changed in between"
    )
    return ReachedLimit("no-progress", message, step)


def _ends_anyway(ctx: DecisionContext, step: Step) -> bool:
    around = ctx.plan.nodes[step.node].position.loops
    if not around:
        return False
    loops = (ctx.plan.nodes[loop].action for loop in around)
    return any(
        isinstance(action, LoopAction) and (action.rounds_max is not None or action.items is not None)
        for action in loops
    )


RAISABLE: Final = (
    "steps",
    "visits",
    "executionTime",
    "deadline",
    "nodeTime",
    "stateSize",
    "tokens",
    "modelCalls",
    "toolCalls",
    "costUsd",
    "no-progress",
)
VISITS: Final = "visits"
NO_PROGRESS: Final = "no-progress"
SMALLEST: Final[Mapping[str, float]] = {"costUsd": 0.0001}
"""The unit to which a suggested value is rounded up; 1 for all others."""


class UnknownLimit(CallerError):
    """A limit to raise does not exist."""

    code = "unknown-limit"


class LimitCapped(CallerError):
    """A limit would be raised above the operator's cap."""

    code = "limit-capped"


class LimitUsed(CallerError):
    """The usage has already reached the requested value."""

    code = "limit-used"


class RaisableLimit(NamedTuple):
    """The limit that stopped an execution, and a value that is enough to continue."""

    name: str
    now: float
    used: float
    next: float | None
    """None: the operator allows no more than is used."""
    most: float | None
    """The operator's cap; None: no cap."""


def may_raise(plan: Plan, state: ExecutionState, limits: Mapping[str, float]) -> None:
    """Check that limits can be raised. Raises `UnknownLimit`, `LimitCapped`, `LimitUsed`; then nothing is raised."""
    for name, number in limits.items():
        kind, _, node = name.partition(":")
        if name not in RAISABLE and not (kind == VISITS and node in plan.nodes):
            raise UnknownLimit(f"there is no limit {name!r}", hint=f"Limits: {', '.join(RAISABLE)}, visits:NODE.")
        most = plan.limits.caps.get(kind)
        if most is not None and number > most:
            raise LimitCapped(
                f"{name!r} cannot be raised to {number:g}: the operator allows {most:g}",
                hint="The operator's limits are under [limits] in pointsman.toml.",
            )
        used = _visited(state, node) if kind == VISITS else usage_of(state).get(name, 0.0)
        if used > 0 and number <= used:
            raise LimitUsed(
                f"{name!r} cannot be {number:g}: {used:g} are already used", hint=f"Give more than {used:g}."
            )


def offer(plan: Plan, state: ExecutionState, name: str, at: float) -> RaisableLimit | None:
    """Return the suggested raise of a limit; None if the plan has no number for it. `at`: the present time."""
    now = allowed_in(plan, state, name, REPEATS_MAX if name == NO_PROGRESS else planned(plan, name))
    if now is None:
        return None
    used = _spent(state, name, at)
    most = plan.limits.caps.get(name)
    base, unit = max(now, used), SMALLEST.get(name, 1.0)
    if most is not None and base >= most:
        return RaisableLimit(name, now, used, None, most)
    # Floats leave a remainder of much less than a unit; it must not add one more unit.
    rounded = round(math.ceil((base + now) / unit - 1e-6) * unit, 6)
    return RaisableLimit(name, now, used, rounded if most is None else min(rounded, most), most)


def _spent(state: ExecutionState, name: str, at: float) -> float:
    """Return the usage of one limit. Clock time is counted until now."""
    match name:
        case "visits":
            return _visited(state, "")
        case "deadline":
            return max(0.0, at - state.setup.started_at)
        case _:
            return usage_of(state).get(name, 0.0)


def usage_of(state: ExecutionState) -> dict[str, float]:
    """Return the usage of each countable limit."""
    return {
        "steps": float(state.counters.steps),
        "executionTime": worked_s(state),
        "deadline": state.at - state.setup.started_at,
        **{name: amount(state.usage) for name, amount in AMOUNT.items()},
    }


def _visited(state: ExecutionState, node: str) -> float:
    """Return the most visits to this node in one scope; without a name, those of the most visited node."""
    counts = (
        count
        for scope in state.scopes.values()
        for (visited, _), count in scope.visits.items()
        if node in ("", visited)
    )
    return float(max(counts, default=0))
