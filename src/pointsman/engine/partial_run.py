"""Partial run: an execution that performs a part of a workflow, with given results for the rest.

    mocks        these nodes are not performed: their steps complete with the given value
    step_mocks   the same for single steps: one branch, one round
    until        only nodes that lead to these are performed; a token that has left them ends
    breakpoints  the execution pauses before a step of these nodes, once before each
    alone        control starts at this node, with the given value, and ends behind it

It is part of the plan and derived from the options of the start row, so every reader of the journal decides alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from pointsman.engine.steps import Step
from pointsman.values import Json

_VISIT: Final = re.compile(r"#\d+$")

OPTION: Final = "trial"
"""Of an execution: what its plan is made of (`engine.compile.partial_run`)."""


class PartialRun(Struct, frozen=True, kw_only=True, gc=False):
    """What is different in a trial. Empty: nothing but that it is one."""

    mocks: Mapping[str, Json] = {}
    step_mocks: Mapping[str, Json] = {}
    """By how the step is written, always with its visit (`each[1.0]/draft#1`). They go before the pins of nodes."""
    until: frozenset[str] = frozenset()
    performed: frozenset[str] = frozenset()
    """With `until`: they, and what leads to them."""
    breakpoints: frozenset[str] = frozenset()
    alone: str | None = None
    given: Json = None
    """What reaches the node that is tried alone."""


def in_full(step: str) -> str:
    """A step as it is written, with its visit also where that is the first."""
    return step if _VISIT.search(step) else f"{step}#1"


class Breakpoints(Struct, eq=False):
    """Where an execution was paused short of a step."""

    passed_steps: dict[Step, None] = {}
    """The steps it was paused before: it is not again."""
    at: Step | None = None
    """The step it is, or was last, paused before; None: a caller paused it, not a breakpoint."""
    stepping: bool = False
    """It goes on only until the next step would begin."""

    def stop(self, before: Step | None) -> None:
        """Fold: it is paused, before this step where it is one that it stopped at."""
        self.stepping, self.at = False, before
        if before is not None:
            self.passed_steps[before] = None
