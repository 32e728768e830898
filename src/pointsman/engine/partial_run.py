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
"""Options of an execution that determine its plan (`engine.compile.partial_run`)."""


class PartialRun(Struct, frozen=True, kw_only=True, gc=False):
    """The differences of a partial run from a full one; empty: only the fact that it is partial."""

    mocks: Mapping[str, Json] = {}
    step_mocks: Mapping[str, Json] = {}
    """By step id, always with its visit (`each[1.0]/draft#1`). They override the mocks of nodes."""
    until: frozenset[str] = frozenset()
    performed: frozenset[str] = frozenset()
    """With `until`: the targets and the nodes that lead to them."""
    breakpoints: frozenset[str] = frozenset()
    alone: str | None = None
    given: Json = None
    """The input of the node that runs alone."""


def in_full(step: str) -> str:
    """Return a step id with its visit number, also for the first visit."""
    return step if _VISIT.search(step) else f"{step}#1"


class Breakpoints(Struct, eq=False):
    """Breakpoint state: the steps before which an execution paused."""

    passed_steps: dict[Step, None] = {}
    """Steps before which it has paused; it does not pause there again."""
    at: Step | None = None
    """The step before which it paused last; None: a caller paused it."""
    stepping: bool = False
    """Whether it runs only until the next step."""

    def stop(self, before: Step | None) -> None:
        """Fold: record a pause, before this step if a breakpoint caused it."""
        self.stepping, self.at = False, before
        if before is not None:
            self.passed_steps[before] = None
