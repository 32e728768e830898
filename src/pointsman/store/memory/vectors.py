"""What values of the store in memory mean: one vector beside each value, gone when that is another one."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import mul

from pointsman.store.codec import encode_json
from pointsman.store.memory.memories import MemoryMemories
from pointsman.store.records import Embedding, SimilarValue, UnembeddedValue
from pointsman.store.vectors import check_length, mark_of, normalized
from pointsman.values import Json


class MemoryVectors:
    """Known by owner and model, then by key; each with the mark of the value it was made of."""

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
