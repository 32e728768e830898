"""The progress guard: agents that go in circles are stopped, whatever their prompts say.

An agent that says the same to the same three times in a row makes no progress. Two agents that hand the same work to
and fro trip it too: each of them repeats itself.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from pointsman.engine.desk import Desk
from pointsman.engine.limits import Tripped
from pointsman.engine.reports import WorkDone
from pointsman.engine.state import StepState
from pointsman.engine.steps import Step
from pointsman.values import Json

REPEATS_MAX: Final = 3


class Repeats(NamedTuple):
    """What an agent said to what, as a hash, and how often in a row now."""

    mark: int
    times: int

    def tripped(self, step: Step) -> Tripped | None:
        """The limit it reached by repeating itself, if it did."""
        if self.times < REPEATS_MAX:
            return None
        return Tripped("no-progress", f"{step.node!r} answered the same to the same {self.times} times", step)


def repeats(desk: Desk, at: StepState, report: WorkDone) -> Repeats:
    """Compare with what the agent node said last."""
    calls: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in report.pending]
    said: list[Json] = [at.input, report.result, report.next, calls]
    digest = blake2b(msgspec.json.encode(said), digest_size=7).digest()
    mark = int.from_bytes(digest, "big")
    last, times = desk.state.guard.get((at.step.node, at.step.scope), (0, 0))
    return Repeats(mark, times + 1 if mark == last else 1)
