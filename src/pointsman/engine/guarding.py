"""The progress guard: agents that go in circles are stopped, whatever their prompts say.

An agent that says the same to the same three times in a row makes no progress. Two agents that hand the same work to
and fro trip it too: each of them repeats itself. In the body of a loop whose rounds are bounded repeating is no circle:
the loop ends it, and what the author wanted after the last round still happens.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from pointsman.engine.desk import Desk
from pointsman.engine.limits import Tripped, allowed
from pointsman.engine.plan import Repeat
from pointsman.engine.reports import WorkDone
from pointsman.engine.state import StepState
from pointsman.engine.steps import Step
from pointsman.values import Json

REPEATS_MAX: Final = 3


class Repeats(NamedTuple):
    """What an agent said to what, as a hash, and how often in a row now."""

    mark: int
    times: int


NONE: Final = Repeats(0, 0)
"""Of work that is no agent's: nobody compares."""


def repeats(desk: Desk, at: StepState, report: WorkDone) -> Repeats:
    """Compare with what the agent node said last."""
    if _ends_anyway(desk, at.step):
        return NONE
    calls: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in report.pending]
    said: list[Json] = [at.input, report.result, report.next, calls]
    digest = blake2b(msgspec.json.encode(said), digest_size=7).digest()
    mark = int.from_bytes(digest, "big")
    last, times = desk.state.guard.get((at.step.node, at.step.scope), (0, 0))
    return Repeats(mark, times + 1 if mark == last else 1)


def tripped(desk: Desk, step: Step, repeats: Repeats) -> Tripped | None:
    """The limit it reached by repeating itself, if it did."""
    if repeats is NONE or desk.state.handed_off or desk.state.compensation is not None:
        return None
    if repeats.times < (allowed(desk, "no-progress", REPEATS_MAX) or REPEATS_MAX):
        return None
    return Tripped("no-progress", f"{step.node!r} answered the same to the same {repeats.times} times", step)


def _ends_anyway(desk: Desk, step: Step) -> bool:
    loops = (desk.plan.nodes[loop].does for loop in desk.plan.nodes[step.node].loops)
    return any(isinstance(does, Repeat) and (does.rounds_max is not None or does.items is not None) for does in loops)
