"""Write log: which node wrote what, while several branches of control share one scope.

    x   base [] ── (1, A) append "a" ── (1, B) append "b"      B first, A later: the list is still [a, b]

Writes to one path are applied in the order of their lineages, not of their arrival. A scope in which control never
splits has an empty log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from pointsman.engine.data import Data
from pointsman.engine.steps import Lineage
from pointsman.engine.writes import Reducer, Write
from pointsman.values import Json, Path

REPLACING: Final = ("set", "last")


class LogEntry(Struct, eq=False):
    """Writes of one node with one lineage, in order."""

    lineage: Lineage
    node: str
    writes: list[tuple[Reducer, Json]]
    reduce: Reducer
    """Reducer of its last write."""


class LoggedPath(Struct, eq=False):
    """Everything written to one path since control split."""

    base: Json
    lineages: list[Lineage] = []
    entries: list[LogEntry] = []
    reducers: set[Reducer] = set()

    def add(self, thread: Lineage, node: str, reduce: Reducer, value: Json) -> bool:
        """Record a write. Return True if it is the last in order and may simply be applied."""
        at = bisect_right(self.lineages, thread)
        last = at == len(self.lineages)
        if reduce in REPLACING and last:
            self._forget_values(node)
            at = len(self.lineages)
        if at and self.lineages[at - 1] == thread and self.entries[at - 1].node == node:
            self.entries[at - 1].writes.append((reduce, value))
            self.entries[at - 1].reduce = reduce
            self.reducers.add(reduce)
            return last
        self.lineages.insert(at, thread)
        self.entries.insert(at, LogEntry(thread, node, [(reduce, value)], reduce))
        self.reducers.add(reduce)
        return last

    def _forget_values(self, replacing: str) -> None:
        """Drop replaced values. Of each writer only the latest position is kept, to detect conflicts."""
        latest = {entry.node: entry for entry in self.entries}
        latest.pop(replacing, None)
        self.entries = [entry for entry in self.entries if latest.get(entry.node) is entry]
        self.lineages = [entry.lineage for entry in self.entries]
        for entry in self.entries:
            entry.writes = []
        self.reducers = {entry.reduce for entry in self.entries}

    def value(self) -> Json:
        """Return the value at the path with all writes applied in order."""
        draft = Data({"value": self.base})
        for entry in self.entries:
            for reduce, value in entry.writes:
                draft.write(Write(("value",), reduce), value)
        return draft.root["value"]


class WriteLog(Struct, eq=False):
    """The write log of one scope, by path."""

    by_path: dict[Path, LoggedPath] = {}
    below: dict[Path, set[Path]] = {}
    """Logged paths, by each path above them."""
    readers: dict[Path, dict[str, Lineage]] = {}
    """Nodes that read a path while others may write it, with the lineage of the last read."""

    def __bool__(self) -> bool:
        return bool(self.by_path or self.readers)

    def clear(self) -> None:
        self.by_path.clear()
        self.below.clear()
        self.readers.clear()

    def read(self, path: Path, thread: Lineage, node: str) -> None:
        """Record a read."""
        known = self.readers.setdefault(path, {})
        known[node] = max(thread, known.get(node, ()))

    def readers_of(self, path: Path) -> Iterator[tuple[str, Lineage]]:
        """Yield the readers at a path, above it, or below it."""
        for known, nodes in self.readers.items():
            if all(one == other for one, other in zip(known, path, strict=False)):
                yield from nodes.items()

    def forget(self, path: Path) -> None:
        """Drop the writes at, above or below a path."""
        for known, _ in [*self.overlapping(path)]:
            del self.by_path[known]
            for width in range(1, len(known)):
                self.below[known[:width]].discard(known)

    def write(self, data: Data, write: Write, value: Json, thread: Lineage, node: str) -> None:
        """Apply a write at its position among those of other lineages."""
        path = write.path
        trail = self.by_path.get(path)
        if trail is None:
            data.shared()  # the log keeps a list at the path: later writes must not change it
            trail = self.by_path[path] = LoggedPath(data.at(path))
            for width in range(1, len(path)):
                self.below.setdefault(path[:width], set()).add(path)
        if trail.add(thread, node, write.reduce, value):
            data.write(write, value)
        else:
            data.write(Write(path), trail.value())

    def overlapping(self, path: Path) -> Iterator[tuple[Path, LoggedPath]]:
        """Yield the logged paths at a path, above it, and below it."""
        for width in range(1, len(path) + 1):
            trail = self.by_path.get(path[:width])
            if trail is not None:
                yield path[:width], trail
        for below in sorted(self.below.get(path, ()), key=repr):
            yield below, self.by_path[below]
