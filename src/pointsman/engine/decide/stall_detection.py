"""Stall detection: stop agents that repeat themselves without progress, whatever their prompts are.

An agent stalls when it gives the same answer to the same input three times while no agent of its scope produces
anything new and the data hold nothing new. Two or more agents that pass the same work around stall likewise. Inside a
loop with bounded rounds repetition is not a stall: the loop ends it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from pointsman.engine.actions import LoopAction
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.limits import ReachedLimit, allowed
from pointsman.engine.repetitions import Repetition
from pointsman.engine.reports import WorkDone
from pointsman.engine.state import StepState
from pointsman.engine.steps import Step
from pointsman.values import Json, JsonObject

REPEATS_MAX: Final = 3


NONE: Final = Repetition(0, 0)
"""Result for work other than agents, which is not compared."""


def repeats(ctx: DecisionContext, at: StepState, report: WorkDone) -> Repetition:
    """Compare an answer with those of the agents of its scope. O(data), but only when an agent repeats itself."""
    if _ends_anyway(ctx, at.step):
        return NONE
    calls: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in report.pending]
    mark = _hash([at.input, report.result, report.next, calls])
    guard = ctx.state.limits.stall_guards.get(at.step.scope)
    last = guard.times(at.step.node, mark) if guard is not None else Repetition(mark, 0)
    if last.times == 0:
        return Repetition(mark, 1)
    seen = _hash(_things(at.scope.data.root))
    return Repetition(mark, last.times + 1 if last.seen in (0, seen) else 1, seen)


def _things(data: JsonObject) -> JsonObject:
    """Return the data with lists reduced to sets: another copy of the same element is not progress."""
    return {name: _members(found) if isinstance(found, list) else found for name, found in data.items()}


def _members(values: list[Json]) -> Json:
    return [*sorted({_hash(value) for value in values})]


def _hash(value: Json) -> int:
    return int.from_bytes(blake2b(msgspec.json.encode(value), digest_size=7).digest(), "big")


def tripped(ctx: DecisionContext, step: Step, repeats: Repetition) -> ReachedLimit | None:
    """Return the limit that the step reached by repetition, if any."""
    if repeats is NONE or ctx.state.is_escalated or ctx.state.compensation is not None:
        return None
    if repeats.times < (allowed(ctx, "no-progress", REPEATS_MAX) or REPEATS_MAX):
        return None
    said = f"{step.node!r} answered the same to the same {repeats.times} times, and nothing was new meanwhile"
    return ReachedLimit("no-progress", said, step)


def _ends_anyway(ctx: DecisionContext, step: Step) -> bool:
    around = ctx.plan.nodes[step.node].position.loops
    if not around:
        return False
    loops = (ctx.plan.nodes[loop].action for loop in around)
    return any(
        isinstance(does, LoopAction) and (does.rounds_max is not None or does.items is not None) for does in loops
    )
