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
        value = self._values.get((scope, namespace), {}).get(key)
        return value.value if value is not None and is_unexpired(value, at) else None

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
        stored = owned.get(change.key)
        current = stored if stored is not None and is_unexpired(stored, change.at) else None
        result = change_result(change, None if current is None else current.value)
        if result.value is None:
            owned.pop(change.key, None)
            past.pop(change.key, None)
            return result.answer
        if current is None:
            for key in [key for key, value in owned.items() if not is_unexpired(value, change.at)]:
                del owned[key]
                if key != change.key:
                    past.pop(key, None)
            check_room(change, len(owned))
        if change.by is not None:
            _trace(change, current, result, past.setdefault(change.key, {}))
        owned[change.key] = RememberedValue(
            key=change.key, value=result.value, changed=change.at, expires=change.expires
        )
        return result.answer

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int = 10, within: str = "", at: float = 0.0
    ) -> list[tuple[str, Json]]:
        words = {*words_of(text)}
        counted = [
            (len(words & {*words_of(" ".join([value.key, *texts(value.value)]))}), value.key, value.value)
            for value in await self.every(scope, namespace, within=within, at=at)
        ]
        best = sorted((hit for hit in counted if hit[0]), key=lambda hit: (-hit[0], hit[1]))
        return [(key, value) for _, key, value in best[:limit]]

    async def forget(self, scope: str, namespace: str, *, within: str = "") -> int:
        owned = self._values.get((scope, namespace), {})
        keys = [key for key in owned if key.startswith(within)]
        past = self._past.get((scope, namespace), {})
        for key in keys:
            del owned[key]
            past.pop(key, None)
        if not owned:
            self._values.pop((scope, namespace), None)
            self._past.pop((scope, namespace), None)
        return len(keys)

    async def every(
        self, scope: str, namespace: str, *, within: str = "", after: str = "", limit: int = -1, at: float = 0.0
    ) -> list[RememberedValue]:
        owned = self._values.get((scope, namespace), {})
        fit = (owned[key] for key in sorted(owned) if key > after and key.startswith(within))
        values = [value for value in fit if is_unexpired(value, at)]
        return values if limit < 0 else values[:limit]

    async def history(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> list[PastValue]:
        value = self._values.get((scope, namespace), {}).get(key)
        if value is None or not is_unexpired(value, at):
            return []
        rows = [*self._past.get((scope, namespace), {}).get(key, {}).values()]
        return history_of_rows(_current(value), rows[::-1], at=at)

    async def holdings(self, *, at: float = 0.0) -> list[Holding]:
        holdings: list[Holding] = []
        for (scope, namespace), owned in sorted(self._values.items()):
            values = [value for value in owned.values() if is_unexpired(value, at)]
            if values:
                size, changed = (
                    sum(len(encode_json(value.value)) for value in values),
                    max(value.changed for value in values),
                )
                holdings.append(
                    Holding(scope=scope, namespace=namespace, keys=len(values), bytes=size, changed=changed)
                )
        return holdings

    async def purge(self, at: float, *, dry_run: bool = False) -> int:
        keys = [
            (owner, key)
            for owner, owned in self._values.items()
            for key, value in owned.items()
            if not is_unexpired(value, at)
        ]
        for owner, key in [] if dry_run else keys:
            del self._values[owner][key]
            self._past[owner].pop(key, None)
        if not dry_run:
            self._forget_expired_past(at)
        return len(keys)

    def _forget_expired_past(self, at: float) -> None:
        for past in self._past.values():
            for key, rows in past.items():
                past[key] = {number: row for number, row in rows.items() if row.expires is None or row.expires > at}


def _current(value: RememberedValue) -> CurrentValue:
    return CurrentValue(encode_json(value.value), value.changed, value.expires)


def _trace(
    change: MemoryChange, current: RememberedValue | None, result: ChangeResult, rows: dict[int, HistoryRow]
) -> None:
    last = next(reversed(rows.values()), None)
    beside = history_update(change, None if current is None else _current(current), result, last)
    for row in beside.rows:
        rows[row.number] = row
    while (oldest := next(iter(rows))) < beside.first:
        del rows[oldest]


def is_unexpired(value: RememberedValue, at: float) -> bool:
    return value.expires is None or value.expires > at


class MemoryVectors:
    """Vectors by owner and model, then by key, each with the digest of its value."""

    def __init__(self, memory: MemoryMemories) -> None:
        self._memory = memory
        self._placed: dict[tuple[str, str, str], dict[str, tuple[bytes, array[float]]]] = {}

    async def missing(self, scope: str, namespace: str, model: str, *, limit: int, at: float) -> list[UnembeddedValue]:
        placed = self._placed.get((scope, namespace, model), {})
        values = await self._memory.every(scope, namespace, at=at)
        marked = ((value, _mark(value.value)) for value in values)
        missing = (
            UnembeddedValue(value.key, value.value, mark)
            for value, mark in marked
            if placed.get(value.key, (b"",))[0] != mark
        )
        return [value for value, _ in zip(missing, range(limit), strict=False)]

    async def place(self, scope: str, namespace: str, model: str, placed: Sequence[Embedding]) -> None:
        vectors = self._placed.setdefault((scope, namespace, model), {})
        marks = {value.key: _mark(value.value) for value in await self._memory.every(scope, namespace)}
        lengths = {len(vector) for key, (mark, vector) in vectors.items() if marks.get(key) == mark}
        for placement in placed:
            check_length(model, lengths, len(placement.vector))
        for placement in placed:
            if marks.get(placement.key) == placement.mark:
                vectors[placement.key] = (placement.mark, normalized(placement.vector))

    async def nearest(
        self, scope: str, namespace: str, model: str, vector: Sequence[float], *, limit: int, within: str, at: float
    ) -> list[SimilarValue]:
        query = normalized(vector)
        placed = self._placed.get((scope, namespace, model), {})
        similar: list[SimilarValue] = []
        for value in await self._memory.every(scope, namespace, within=within, at=at):
            mark, its = placed.get(value.key, (b"", array("f")))
            if its and mark == _mark(value.value):
                check_length(model, [len(its)], len(query))
                similar.append(SimilarValue(value.key, value.value, sum(map(mul, its, query))))
        return sorted(similar, key=lambda near: (-near.similarity, near.key))[:limit]

    async def clear(self) -> int:
        count = sum(len(vectors) for vectors in self._placed.values())
        self._placed.clear()
        return count


def _mark(value: Json) -> bytes:
    return mark_of(encode_json(value))
