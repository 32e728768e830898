"""Recent answers of the agents of one scope, folded for stall detection (`decide.stall_detection`).

A: x   B: u   A: x   B: u   A: x   B: u        nothing new since the first `u`: B repeats it for the third time
A: x   B: u   A: x   B: v   A: x   B: w        B answers something new each time: no stall
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pointsman.engine.steps import Scope, Step

REMEMBERED: Final = 64
"""Longer cycles are left to the limits of steps and visits."""


class Repetition(Struct, frozen=True, gc=False):
    """Hash of an agent's input and answer, the number of repetitions, and a hash of the data at that time."""

    mark: int
    times: int
    seen: int = 0


class StallGuard(Struct, eq=False):
    """The latest different answers of the agents of a scope, the latest last."""

    news: int = 0
    """Number of new answers so far."""
    repetitions: dict[tuple[str, int], tuple[int, int, int]] = {}
    """By node and hash: repetitions since the last new answer, a hash of the data then, and the number of that
    answer.
    """

    def times(self, node: str, mark: int) -> Repetition:
        """Return the repetition that this answer would be; 0 times if it is new, or the first since the last new
        answer.
        """
        times, seen, news = self.repetitions.get((node, mark), (0, 0, 0))
        return Repetition(mark, times, seen) if news == self.news else Repetition(mark, 0)


def record_repetition(guards: dict[Scope, StallGuard], step: Step, said: Repetition) -> None:
    """Fold: record the answer of an agent."""
    guard = guards.get(step.scope)
    if guard is None:
        guard = guards[step.scope] = StallGuard()
    known = guard.repetitions.pop((step.node, said.mark), None)
    if known is None:
        guard.news += 1
        if len(guard.repetitions) >= REMEMBERED:
            del guard.repetitions[next(iter(guard.repetitions))]
    guard.repetitions[step.node, said.mark] = (said.times, said.seen, guard.news)
