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
    """One of several edges that a step left by at once; or, with the edge `MET`, the place where they met again."""

    turn: int
    """Counts the splits and meetings along a line of control: what comes later is greater."""
    edge: int
    """Position in the document of the edge taken."""
    node: str
    """The node that was left."""


MERGED: Final = 1_000_000_000
"""The edge of a line whose ways have met: it comes after all of them."""

Lineage: TypeAlias = tuple[LineageEntry, ...]
"""The splits behind a token. Its order is the order of concurrent tokens of one scope, independent of time."""


class Branch(Struct, frozen=True, array_like=True, order=True, gc=False, cache_hash=True):
    """One branch of one opening of a parallel. The parallel's id keeps two parallels of one scope apart."""

    parallel: str
    visit: int
    branch: int
    lineage: Lineage = ()
    """Of the parallel's step."""


Scope: TypeAlias = tuple[Branch, ...]
"""The open branches around a step, outermost first. `()` is the execution itself."""


class Step(Struct, frozen=True, array_like=True, order=True, gc=False, cache_hash=True):
    """One visit of control to one node. Made of where it is, never of when it came: replays must agree."""

    node: str
    scope: Scope = ()
    visit: int = 1
    lineage: Lineage = ()
    """Only where several tokens may pass the node at once: behind `trigger: each`, beside cycles that split."""

    def __str__(self) -> str:
        return f"{scope_text(self.scope)}{self.node}{_behind(self.lineage)}" + (
            f"#{self.visit}" if self.visit > 1 else ""
        )


def scope_text(scope: Scope) -> str:
    """How a scope stands before its steps: `each[1.0]/`; nothing for the execution itself."""
    return "".join(f"{b.parallel}{_behind(b.lineage)}[{b.visit}.{b.branch}]/" for b in scope)


def _behind(thread: Lineage) -> str:
    return "".join(f"~{s.node}.{s.turn}.{'met' if s.edge == MERGED else s.edge}" for s in thread)


class NoSuchStep(CallerError):
    """A step was named that this execution does not have."""

    code = "no-such-step"
