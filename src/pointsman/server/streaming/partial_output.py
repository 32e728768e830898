"""Partial output: the text that models have produced so far in running steps, for subscribers that join in between.

Text deltas are not stored, so a new subscriber has missed them. This keeps the text of open steps of this process until
their result is in the journal. A reopened page then shows what it had shown.
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.events.steps import StepCancelled, StepFailed, StepSucceeded
from pointsman.engine.steps import Step
from pointsman.runtime.feed import Committed, Delta
from pointsman.values import ExecutionId

EXECUTIONS_MAX: Final = 1000
"""Limit of executions; those with the most recent text are kept."""
CHARS_MAX: Final = 100_000
"""Limit per step; of a longer text nothing is kept, since its beginning would be missing."""


class PartialOutput:
    """Partial output by execution and step."""

    def __init__(self) -> None:
        self._said: dict[ExecutionId, dict[Step, list[str]]] = {}
        self._chars: dict[tuple[ExecutionId, Step], int] = {}

    def hear(self, seen: Committed | Delta) -> None:
        if isinstance(seen, Delta):
            self._hear(seen)
        elif (steps := self._said.get(seen.execution)) is not None:
            for event in seen.row.events:
                if isinstance(event, StepSucceeded | StepFailed | StepCancelled):
                    self._forget(seen.execution, steps, event.step)

    def so_far(self, execution: ExecutionId) -> dict[Step, str]:
        """Return the partial output of an execution's steps."""
        return {step: "".join(said) for step, said in self._said.get(execution, {}).items() if said}

    def _hear(self, seen: Delta) -> None:
        kind = seen.delta.get("kind")
        if kind == "text":
            steps = self._said.pop(seen.execution, {})
            self._said[seen.execution] = steps  # Keep the most recent one last.
            self._add(seen, steps.setdefault(seen.step, []), str(seen.delta["text"]))
            if len(self._said) > EXECUTIONS_MAX:
                oldest = next(iter(self._said))
                for step in [*self._said[oldest]]:
                    self._forget(oldest, self._said[oldest], step)
        elif kind == "discarded" and (steps := self._said.get(seen.execution)) is not None:
            self._forget(seen.execution, steps, seen.step)

    def _add(self, seen: Delta, said: list[str], text: str) -> None:
        name = seen.execution, seen.step
        chars = self._chars[name] = self._chars.get(name, 0) + len(text)
        if chars > CHARS_MAX:
            said.clear()
        else:
            said.append(text)

    def _forget(self, execution: ExecutionId, steps: dict[Step, list[str]], step: Step) -> None:
        steps.pop(step, None)
        self._chars.pop((execution, step), None)
        if not steps:
            self._said.pop(execution, None)
