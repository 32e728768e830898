"""Order among tokens that run at once inside one scope, so that no result depends on which was faster.

    S ─┬─ thread (S,1,0) ─ A ─┐
       └─ thread (S,1,1) ─ B ─┴─ merge ─ thread ()

Two threads are ordered when one is a prefix of the other (it came before the split, or after the merge); otherwise
they ran at once. Appends are put in thread order, not in arrival order; two that ran at once and set the same path are
a conflict. Trails exist only while a scope holds several tokens.
"""

from __future__ import annotations

from bisect import bisect_right, insort

from pointsman.engine.state import ScopeState
from pointsman.engine.steps import Thread


def place(scope: ScopeState, path: tuple[str | int, ...], thread: Thread) -> int | None:
    """Where in the list at `path` an append of `thread` goes; None: at its end. Remembers it."""
    trail = scope.trails.setdefault(path, [])
    at = bisect_right(trail, thread)
    behind = len(trail) - at
    trail.insert(at, thread)
    if not behind:
        return None
    held = scope.data.at(path)
    return len(held) - behind if isinstance(held, list) else None


def wrote(scope: ScopeState, path: tuple[str | int, ...], thread: Thread) -> None:
    """Remember whose the value at `path` is."""
    scope.trails[path] = [thread]


def wins(scope: ScopeState, path: tuple[str | int, ...], thread: Thread) -> bool:
    """Whether a `last` of `thread` is the last in thread order so far. Remembers it."""
    trail = scope.trails.setdefault(path, [])
    beaten = any(one > thread and at_once(thread, one) for one in trail)
    if thread not in trail:
        insort(trail, thread)
    return not beaten


def at_once(one: Thread, other: Thread) -> bool:
    """Neither came before the other: they left the same split, at the same visit, by different edges."""
    for a, b in zip(one, other, strict=False):
        if a != b:
            return a.node == b.node and a.visit == b.visit
    return False


def conflict(scope: ScopeState, path: tuple[str | int, ...], thread: Thread) -> tuple[str | int, ...] | None:
    """The path at or above or below `path` that another thread set at the same time; None is the good case."""
    for other, trail in scope.trails.items():
        shorter = min(len(other), len(path))
        if other[:shorter] == path[:shorter] and any(at_once(thread, one) for one in trail):
            return other
    return None


def merge(scope: ScopeState, thread: Thread) -> None:
    """Threads below `thread` have merged: what they wrote came before what follows."""
    width = len(thread)
    for trail in scope.trails.values():
        trail[:] = [thread if one[:width] == thread else one for one in trail]


def common(threads: list[Thread]) -> Thread:
    """The longest prefix of all: the thread of a token made of several."""
    first, last = min(threads), max(threads)
    width = 0
    for a, b in zip(first, last, strict=False):
        if a != b:
            break
        width += 1
    return first[:width]
