"""The identity of a step: its position in the graph, never its time.

execution ─┬─ step write            Step("write")
           ├─ step write, again     Step("write", visit=2)
           └─ parallel ─┬─ branch 0 ─ Step("draft", scope=(Branch("parallel", 1, 0),))
                        └─ branch 1 ─ Step("draft", scope=(Branch("parallel", 1, 1),))
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from pointsman.errors import CallerError


class LineageEntry(Struct, frozen=True, array_like=True, order=True, gc=False, cache_hash=True):
    """One of several edges by which a step left at once; with the edge `MET`, the place where the branches met
    again.
    """

    turn: int
    """Counts splits and meetings along a token's path: later ones are greater."""
    edge: int
    """Position in the document of the edge taken."""
    node: str
    """The node that split."""


MERGED: Final = 1_000_000_000
"""The edge of an entry whose branches have met: it sorts after all of them."""

Lineage: TypeAlias = tuple[LineageEntry, ...]
"""The splits behind a token. Its order is the order of concurrent tokens of one scope, independent of time."""


class Branch(Struct, frozen=True, array_like=True, order=True, gc=False, cache_hash=True):
    """One branch of one visit of a parallel. The parallel's id distinguishes two parallels of one scope."""

    parallel: str
    visit: int
    branch: int
    lineage: Lineage = ()
    """Visit of the parallel's step."""


Scope: TypeAlias = tuple[Branch, ...]
"""The open branches around a step, outermost first. `()` is the execution itself."""


class Step(Struct, frozen=True, array_like=True, order=True, gc=False, cache_hash=True):
    """One visit of control to one node, identified by position and never by time: replays must agree."""

    node: str
    scope: Scope = ()
    visit: int = 1
    lineage: Lineage = ()
    """Only if several tokens may pass the node at once: behind `trigger: each`, or beside cycles that split."""

    def __str__(self) -> str:
        return f"{scope_text(self.scope)}{self.node}{_behind(self.lineage)}" + (
            f"#{self.visit}" if self.visit > 1 else ""
        )


def scope_text(scope: Scope) -> str:
    """Return the prefix that a scope adds to its steps: `each[1.0]/`; empty for the execution itself."""
    return "".join(f"{b.parallel}{_behind(b.lineage)}[{b.visit}.{b.branch}]/" for b in scope)


def _behind(thread: Lineage) -> str:
    return "".join(f"~{s.node}.{s.turn}.{'met' if s.edge == MERGED else s.edge}" for s in thread)


class NoSuchStep(CallerError):
    """The execution has no step with this name."""

    code = "no-such-step"
