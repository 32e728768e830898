"""Lineage: the splits behind a token inside one scope, so that no result depends on which token was faster.

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
from typing import TypeAlias

from pointsman.engine.steps import MERGED, Lineage, LineageEntry

LineagePath: TypeAlias = tuple[tuple[str, int], ...]


def lineage_path(thread: Lineage) -> LineagePath:
    """Return the edges of a lineage without their counters: the same in every round of a cycle."""
    return tuple((one.node, one.edge) for one in thread)


def split_lineage(thread: Lineage, node: str, edge: int, *, apart: bool) -> Lineage:
    """Return the lineage of a token that leaves `node` by one of several edges. `apart`: tokens pass the node
    separately.
    """
    if not apart:
        for depth, one in enumerate(thread):
            if one.node == node:
                return (*thread[:depth], LineageEntry(one.turn + 1, edge, node))
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
