"""Steps: their identity, their lineage, and the values that they write.

A step is identified by its position in the graph, never by its time:

    execution ─┬─ step write            Step("write")
               ├─ step write, again     Step("write", visit=2)
               └─ parallel ─┬─ branch 0 ─ Step("draft", scope=(Branch("parallel", 1, 0),))
                            └─ branch 1 ─ Step("draft", scope=(Branch("parallel", 1, 1),))

A lineage holds the splits behind a token inside one scope, so that no result depends on which token was faster:

    S ─┬─ (1, S's first edge) ── A ─┐
       └─ (1, S's second edge) ─ B ─┴─ merge ─ (1, met) ─ T ─┬─ (2, T's first edge)
                                                             └─ …

A split adds one entry. Where some of its tokens meet, the greatest lineage continues; where all meet, `MERGED` replaces
the entry and the next split counts on. A token that returns to a split replaces that split's entry, so a lineage is
never longer than the number of splits. No two tokens share a lineage. Of two lineages the greater is later in control
flow or later in the document; it never depends on time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from pointsman.errors import CallerError
from pointsman.values import Json


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
        if self.visit == 1 and not self.scope and not self.lineage:
            return self.node
        return f"{scope_text(self.scope)}{self.node}{_lineage_text(self.lineage)}" + (
            f"#{self.visit}" if self.visit > 1 else ""
        )


def scope_text(scope: Scope) -> str:
    """Return the prefix that a scope adds to its steps: `each[1.0]/`; empty for the execution itself."""
    return "".join(f"{b.parallel}{_lineage_text(b.lineage)}[{b.visit}.{b.branch}]/" for b in scope)


def _lineage_text(thread: Lineage) -> str:
    return "".join(f"~{s.node}.{s.turn}.{'met' if s.edge == MERGED else s.edge}" for s in thread)


class NoSuchStep(CallerError):
    """The execution has no step with this name."""

    code = "no-such-step"


Reducer: TypeAlias = Literal["set", "append", "merge", "add", "min", "max", "union", "last"]
"""How a write joins the present value. `last` is a `set` that never conflicts: in branch order, the last one wins."""

Undoes: TypeAlias = Literal["own", "all"]
"""The scope of compensation of a fork: its own steps, or also those of its origin."""


class Write(Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """One change of the data: `path` joined with `value` by `reduce`. `whole`: the value is the step's result."""

    path: tuple[str | int, ...]
    reduce: Reducer = "set"
    value: Json = None
    whole: bool = False


class DataEdit(Struct, frozen=True, array_like=True, gc=False):
    """A value that a person writes into the data of an open scope (`()`: the execution's), replacing any value."""

    path: tuple[str | int, ...]
    value: Json
    scope: Scope = ()


class Arrival(Struct, frozen=True, array_like=True, gc=False):
    """An arrival that waits at a node: its edge (`""`: none, the engine sent it) and its lineage."""

    edge: str
    lineage: Lineage


class EventBase(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """Base of every stored event. Events are trees of plain data: the garbage collector need not walk them."""


class BufferedEvent(Struct, frozen=True, gc=False):
    """An event that waits in the buffer for a step."""

    name: str
    data: Json


LineagePath: TypeAlias = tuple[tuple[str, int], ...]


def lineage_path(thread: Lineage) -> LineagePath:
    """Return the edges of a lineage without their counters: the same in every round of a cycle."""
    return tuple((entry.node, entry.edge) for entry in thread)


def split_lineage(thread: Lineage, node: str, edge: int, *, apart: bool) -> Lineage:
    """Return the lineage of a token that leaves `node` by one of several edges. `apart`: tokens pass the node
    separately.
    """
    if not apart:
        for depth, entry in enumerate(thread):
            if entry.node == node:
                return (*thread[:depth], LineageEntry(entry.turn + 1, edge, node))
    if thread and thread[-1].edge == MERGED:
        return (*thread[:-1], LineageEntry(thread[-1].turn + 1, edge, node))
    return (*thread, LineageEntry(1, edge, node))


def joint_lineage(thread: Lineage, first: str, place: int) -> Lineage:
    """Return the lineage of one of several nodes that start together; `first` is the first of them."""
    return split_lineage(thread, first, place, apart=False)


def merged_lineage(thread: Lineage, meets_here: Callable[[str], bool]) -> Lineage:
    """Return the lineage at a merge: splits all of whose branches meet here are over, whichever branches arrived."""
    while thread:
        at = len(thread) - 1
        if thread[at].edge == MERGED:
            at -= 1
        if at < 0 or not meets_here(thread[at].node):
            break
        thread = (*thread[:at], LineageEntry(thread[at].turn, MERGED, thread[at].node))
    return thread


def are_concurrent(
    one: tuple[Lineage, str], other: tuple[Lineage, str], reaches: Callable[[str, str, str], bool]
) -> bool:
    """Return whether nothing orders two visits, given as (lineage, node).

    `reaches(a, b, without)`: control can come from `a` to `b` without passing the node `without` (empty: any path).
    Branches
    that meet wait for each other, so a visit from which the other is reachable came first; paths through their own
    split do
    not count.
    """
    (earlier, before), (later, after) = sorted((one, other))
    if earlier == later:
        return False
    width = 0
    while width < len(earlier) and earlier[width] == later[width]:
        width += 1
    if width == len(earlier):
        return False  # the branch before it split
    a, b = earlier[width], later[width]
    if a.turn == b.turn and a.node == b.node and b.edge != MERGED:
        return not reaches(before, after, a.node) and not reaches(after, before, a.node)
    return not reaches(before, after, "")
