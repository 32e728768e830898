"""The data of a scope, and the log of its writes.

    root {a: {x: 1}, b: {…}}   write a.x = 2   ▶   root' {a: {x: 2}, b: the same b}

`Data` is a JSON tree that is copied along the written path only. A tree that another object may hold is never changed.
Containers that a write created and that no other object holds are *owned* and changed in place, so a loop that appends
to a list pays O(1) per round. Call `shared` before giving a container away; the next write copies again.

    x   base [] ── (1, A) append "a" ── (1, B) append "b"      B first, A later: the list is still [a, b]

`WriteLog` records which node wrote what while several branches of control share the scope. Writes to one path are
applied in the order of their lineages, not of their arrival. A scope in which control never splits has an empty log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, cast

from msgspec import Struct

from pointsman.engine.steps import Lineage, Reducer, Write
from pointsman.errors import PointsmanError
from pointsman.values import CONTAINERS, Json, JsonObject, Path

OWNED_MAX: Final = 256
"""Maximum number of owned containers; each is kept alive by this record."""


class WriteFailed(PointsmanError):
    """A value cannot be joined to the value at the path. It becomes a failure of the step that wrote it."""

    code = "write-failed"


def _number(value: Json) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_list(old: Json, path: Sequence[str | int], reduce: str) -> list[Json]:
    if old is None:
        return []
    if isinstance(old, list):
        return old
    raise WriteFailed(
        f"cannot {reduce} to {dotted(path)!r}: it holds a {type(old).__name__}, not a list",
        hint="Give the field an empty list at the start, or another reducer.",
    )


def dotted(path: Sequence[str | int]) -> str:
    """Return the path as authors write it: `a.b[0].c`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def reduced(old: Json, value: Json, reduce: Reducer, path: Sequence[str | int]) -> Json:
    """Return the value at a path after the write. `old` is the present value, or None. Never changes its arguments."""
    match reduce:
        case "set" | "last":
            return value
        case "append":
            return [*_as_list(old, path, "append"), value]
        case "union":
            have = _as_list(old, path, "union")
            new = value if isinstance(value, list) else [value]
            return [*have, *(v for i, v in enumerate(new) if v not in have and v not in new[:i])]
        case "merge":
            if value is None:
                return old
            if not isinstance(value, dict) or not isinstance(old, dict | None):
                raise WriteFailed(
                    f"cannot merge into {dotted(path)!r}: both sides must be objects",
                    hint="Write an object, or choose the reducer `set`.",
                )
            return {**(old or {}), **value}
        case "add" | "min" | "max":
            new, have = _number(value), _number(old)
            if new is None or (old is not None and have is None):
                raise WriteFailed(
                    f"cannot {reduce} at {dotted(path)!r}: both sides must be numbers", hint="Write a number."
                )
            if have is None:
                return new
            return have + new if reduce == "add" else min(have, new) if reduce == "min" else max(have, new)


class Data(Struct, eq=False, gc=False):
    """One version of a scope's data, written by one owner."""

    root: JsonObject
    owned: dict[int, Json] = {}

    def shared(self) -> JsonObject:
        """Return the tree for a holder that keeps it: from now on every write copies."""
        if self.owned:
            self.owned = {}
        return self.root

    def write(self, write: Write, value: Json) -> None:
        """Apply one write. O(length of the path), plus one copy of each container on it that is not owned."""
        path = write.path
        if not path:
            raise WriteFailed("cannot write the whole state at once", hint="Write its fields one by one.")
        holder = self._own(self.root)
        self.root = cast(JsonObject, holder)
        for at, part in enumerate(path[:-1]):
            child = _child(holder, part, path[: at + 1])
            owned = self._own({} if child is None else child, path[: at + 1])
            _put(holder, part, owned, path[: at + 1])
            holder = owned
        self._join(holder, path, write.reduce, value)

    def check(self, write: Write, value: Json) -> None:
        """Raise `WriteFailed` if the write cannot be applied. Changes nothing, copies nothing."""
        path = write.path
        if not path:
            raise WriteFailed("cannot write the whole state at once", hint="Write its fields one by one.")
        holder: JsonObject | list[Json] = self.root
        for at, part in enumerate(path[:-1]):
            child = _child(holder, part, path[: at + 1])
            if child is None:
                _check_place(holder, part, path[: at + 1])
                return
            holder = _container(child, path[: at + 1])
        _check_join(_child(holder, path[-1], path), value, write.reduce, path)
        _check_place(holder, path[-1], path)

    def _join(self, holder: JsonObject | list[Json], path: tuple[str | int, ...], reduce: Reducer, value: Json) -> None:
        old = _child(holder, path[-1], path)
        if reduce == "append" and isinstance(old, list) and id(old) in self.owned:
            old.append(value)
            return
        new = reduced(old, value, reduce, path)
        if reduce == "append":
            self.owned[id(new)] = new
        _put(holder, path[-1], new, path)

    def at(self, path: tuple[str | int, ...]) -> Json:
        """Return the value at the path, or None."""
        here: Json = self.root
        for part in path:
            if isinstance(here, list) and not isinstance(part, int):
                return None
            if not isinstance(here, CONTAINERS):
                return None
            here = _child(here, part, path)
        return here

    def _own(self, container: Json, path: Sequence[str | int] = ()) -> JsonObject | list[Json]:
        target = _container(container, path)
        if id(target) in self.owned:
            return target
        if len(self.owned) >= OWNED_MAX:
            self.owned = {}
        copy = target.copy()
        self.owned[id(copy)] = copy
        return copy


def _container(value: Json, path: Sequence[str | int]) -> JsonObject | list[Json]:
    if isinstance(value, CONTAINERS):
        return value
    raise WriteFailed(
        f"cannot write below {dotted(path)!r}: it holds a {type(value).__name__}",
        hint="Only objects have fields, and only lists have elements.",
    )


def _check_join(old: Json, value: Json, reduce: Reducer, path: Sequence[str | int]) -> None:
    """Check as `reduced` does, without building lists and objects, whose contents do not matter."""
    if reduce in ("append", "union"):
        _as_list(old, path, reduce)
    elif reduce == "merge":
        reduced({} if isinstance(old, dict) else old, {} if isinstance(value, dict) else value, reduce, path)
    else:
        reduced(old, value, reduce, path)


def _check_place(holder: JsonObject | list[Json], part: str | int, path: Sequence[str | int]) -> None:
    if isinstance(holder, list) and not (isinstance(part, int) and -len(holder) <= part <= len(holder)):
        raise WriteFailed(f"cannot write {dotted(path)!r}: the list is shorter", hint="Append instead.")


def _child(holder: JsonObject | list[Json], part: str | int, path: Sequence[str | int]) -> Json:
    if isinstance(holder, dict):
        return holder.get(str(part))
    if isinstance(part, int):
        return holder[part] if -len(holder) <= part < len(holder) else None
    raise WriteFailed(f"cannot write {dotted(path)!r}: a list has positions, not keys", hint="Use [0], [1], …")


def _put(holder: JsonObject | list[Json], part: str | int, value: Json, path: Sequence[str | int]) -> None:
    if isinstance(holder, dict):
        holder[str(part)] = value
    elif isinstance(part, int) and -len(holder) <= part < len(holder):
        holder[part] = value
    elif part == len(holder):
        holder.append(value)
    else:
        raise WriteFailed(f"cannot write {dotted(path)!r}: the list is shorter", hint="Append instead.")


REPLACING: Final = ("set", "last")


class LogEntry(Struct, eq=False, gc=False):
    """Writes of one node with one lineage, in order."""

    lineage: Lineage
    node: str
    writes: list[tuple[Reducer, Json]]
    reduce: Reducer
    """Reducer of its last write."""


class LoggedPath(Struct, eq=False, gc=False):
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


class WriteLog(Struct, eq=False, gc=False):
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
        nodes = self.readers.setdefault(path, {})
        nodes[node] = max(thread, nodes.get(node, ()))

    def readers_of(self, path: Path) -> Iterator[tuple[str, Lineage]]:
        """Yield the readers at a path, above it, or below it."""
        for read_path, nodes in self.readers.items():
            if all(part == other for part, other in zip(read_path, path, strict=False)):
                yield from nodes.items()

    def forget(self, path: Path) -> None:
        """Drop the writes at, above or below a path."""
        for read_path, _ in [*self.overlapping(path)]:
            del self.by_path[read_path]
            for width in range(1, len(read_path)):
                self.below[read_path[:width]].discard(read_path)

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
