"""Remembered values of the in-memory store: dicts by scope and namespace; search counts words."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Protocol

from pointsman.ports import ChangeId, MemoryChange
from pointsman.store.codec import encode_json
from pointsman.store.records import Embedding, Holding, PastValue, RememberedValue, SimilarValue, UnembeddedValue
from pointsman.store.remembered_values import (
    NUMBER,
    UNBOUNDED,
    ChangeResult,
    CurrentValue,
    HistoryRow,
    change_result,
    check_length,
    check_room,
    history_of_rows,
    history_update,
    mark_of,
    normalized,
    texts,
    words_of,
)
from pointsman.values import ExecutionId, Json


class ChangeResults(Protocol):
    """The store of answers to changes."""

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None: ...
    async def recorded(self, execution: ExecutionId, attempt: str) -> Mapping[int, Json]: ...


class MemoryMemories:
    """Every change is atomic: nothing awaits between reading and writing."""

    def __init__(self, answers: ChangeResults) -> None:
        self._values: defaultdict[tuple[str, str], dict[str, RememberedValue]] = defaultdict(dict)
        self._past: defaultdict[tuple[str, str], dict[str, dict[int, HistoryRow]]] = defaultdict(
            dict[str, dict[int, HistoryRow]]
        )
        """By key and number, the lowest first."""
        self._answers = answers

    async def get(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> Json | None:
        found = self._values.get((scope, namespace), {}).get(key)
        return found.value if found is not None and is_unexpired(found, at) else None

    async def put(self, scope: str, namespace: str, key: str, value: Json | None) -> None:
        change = MemoryChange(
            scope=scope, namespace=namespace, key=key, operation="set", value=value, at=0.0, quota=UNBOUNDED
        )
        await self.change(change)

    async def change(self, change: MemoryChange, *, once: ChangeId | None = None) -> Json:
        encode_json(change.value)
        if once is not None:
            recorded = await self._answers.recorded(once.execution, once.name)
            if NUMBER in recorded:
                return recorded[NUMBER]
        answer = await self._make(change)
        if once is not None:
            await self._answers.record(once.execution, once.name, NUMBER, answer)
        return answer

    async def _make(self, change: MemoryChange) -> Json:
        owner = (change.scope, change.namespace)
        owned, past = self._values[owner], self._past[owner]
        found = owned.get(change.key)
        known = found if found is not None and is_unexpired(found, change.at) else None
        made = change_result(change, None if known is None else known.value)
        if made.value is None:
            owned.pop(change.key, None)
            past.pop(change.key, None)
            return made.answer
        if known is None:
            for key in [key for key, one in owned.items() if not is_unexpired(one, change.at)]:
                del owned[key]
                if key != change.key:
                    past.pop(key, None)
            check_room(change, len(owned))
        if change.by is not None:
            _trace(change, known, made, past.setdefault(change.key, {}))
        owned[change.key] = RememberedValue(key=change.key, value=made.value, changed=change.at, expires=change.expires)
        return made.answer

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int = 10, within: str = "", at: float = 0.0
    ) -> list[tuple[str, Json]]:
        wanted = {*words_of(text)}
        counted = [
            (len(wanted & {*words_of(" ".join([one.key, *texts(one.value)]))}), one.key, one.value)
            for one in await self.every(scope, namespace, within=within, at=at)
        ]
        best = sorted((hit for hit in counted if hit[0]), key=lambda hit: (-hit[0], hit[1]))
        return [(key, value) for _, key, value in best[:limit]]

    async def forget(self, scope: str, namespace: str, *, within: str = "") -> int:
        owned = self._values.get((scope, namespace), {})
        gone = [key for key in owned if key.startswith(within)]
        past = self._past.get((scope, namespace), {})
        for key in gone:
            del owned[key]
            past.pop(key, None)
        if not owned:
            self._values.pop((scope, namespace), None)
            self._past.pop((scope, namespace), None)
        return len(gone)

    async def every(
        self, scope: str, namespace: str, *, within: str = "", after: str = "", limit: int = -1, at: float = 0.0
    ) -> list[RememberedValue]:
        owned = self._values.get((scope, namespace), {})
        fit = (owned[key] for key in sorted(owned) if key > after and key.startswith(within))
        found = [one for one in fit if is_unexpired(one, at)]
        return found if limit < 0 else found[:limit]

    async def history(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> list[PastValue]:
        found = self._values.get((scope, namespace), {}).get(key)
        if found is None or not is_unexpired(found, at):
            return []
        rows = [*self._past.get((scope, namespace), {}).get(key, {}).values()]
        return history_of_rows(_current(found), rows[::-1], at=at)

    async def holdings(self, *, at: float = 0.0) -> list[Holding]:
        found: list[Holding] = []
        for (scope, namespace), owned in sorted(self._values.items()):
            kept = [one for one in owned.values() if is_unexpired(one, at)]
            if kept:
                size, changed = sum(len(encode_json(one.value)) for one in kept), max(one.changed for one in kept)
                found.append(Holding(scope=scope, namespace=namespace, keys=len(kept), bytes=size, changed=changed))
        return found

    async def purge(self, at: float, *, dry_run: bool = False) -> int:
        gone = [
            (owner, key)
            for owner, owned in self._values.items()
            for key, one in owned.items()
            if not is_unexpired(one, at)
        ]
        for owner, key in [] if dry_run else gone:
            del self._values[owner][key]
            self._past[owner].pop(key, None)
        if not dry_run:
            self._forget_expired_past(at)
        return len(gone)

    def _forget_expired_past(self, at: float) -> None:
        for past in self._past.values():
            for key, rows in past.items():
                past[key] = {number: row for number, row in rows.items() if row.expires is None or row.expires > at}


def _current(one: RememberedValue) -> CurrentValue:
    return CurrentValue(encode_json(one.value), one.changed, one.expires)


def _trace(
    change: MemoryChange, known: RememberedValue | None, made: ChangeResult, rows: dict[int, HistoryRow]
) -> None:
    last = next(reversed(rows.values()), None)
    beside = history_update(change, None if known is None else _current(known), made, last)
    for row in beside.rows:
        rows[row.number] = row
    while (oldest := next(iter(rows))) < beside.first:
        del rows[oldest]


def is_unexpired(one: RememberedValue, at: float) -> bool:
    return one.expires is None or one.expires > at


class MemoryVectors:
    """Vectors by owner and model, then by key, each with the digest of its value."""

    def __init__(self, memory: MemoryMemories) -> None:
        self._memory = memory
        self._placed: dict[tuple[str, str, str], dict[str, tuple[bytes, array[float]]]] = {}

    async def missing(self, scope: str, namespace: str, model: str, *, limit: int, at: float) -> list[UnembeddedValue]:
        placed = self._placed.get((scope, namespace, model), {})
        values = await self._memory.every(scope, namespace, at=at)
        marked = ((one, _mark(one.value)) for one in values)
        found = (
            UnembeddedValue(one.key, one.value, mark) for one, mark in marked if placed.get(one.key, (b"",))[0] != mark
        )
        return [one for one, _ in zip(found, range(limit), strict=False)]

    async def place(self, scope: str, namespace: str, model: str, placed: Sequence[Embedding]) -> None:
        known = self._placed.setdefault((scope, namespace, model), {})
        marks = {one.key: _mark(one.value) for one in await self._memory.every(scope, namespace)}
        lengths = {len(vector) for key, (mark, vector) in known.items() if marks.get(key) == mark}
        for one in placed:
            check_length(model, lengths, len(one.vector))
        for one in placed:
            if marks.get(one.key) == one.mark:
                known[one.key] = (one.mark, normalized(one.vector))

    async def nearest(
        self, scope: str, namespace: str, model: str, vector: Sequence[float], *, limit: int, within: str, at: float
    ) -> list[SimilarValue]:
        wanted = normalized(vector)
        placed = self._placed.get((scope, namespace, model), {})
        found: list[SimilarValue] = []
        for one in await self._memory.every(scope, namespace, within=within, at=at):
            mark, its = placed.get(one.key, (b"", array("f")))
            if its and mark == _mark(one.value):
                check_length(model, [len(its)], len(wanted))
                found.append(SimilarValue(one.key, one.value, sum(map(mul, its, wanted))))
        return sorted(found, key=lambda near: (-near.similarity, near.key))[:limit]

    async def clear(self) -> int:
        count = sum(len(known) for known in self._placed.values())
        self._placed.clear()
        return count


def _mark(value: Json) -> bytes:
    return mark_of(encode_json(value))
