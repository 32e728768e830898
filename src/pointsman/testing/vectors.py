"""Conformance suite of vectors of remembered values: part of `STORE_RULES`."""

from __future__ import annotations

from typing import Final

from pointsman.ports import MemoryChange, Quota
from pointsman.store.api import Store
from pointsman.store.errors import VectorsDiffer
from pointsman.store.records import Embedding
from pointsman.testing.journals import Rule, opened, refused
from pointsman.values import Json

MODEL: Final = "own:places"
AT: Final = 100.0
WHERE: Final[dict[str, tuple[float, ...]]] = {
    "tea": (1.0, 0.0, 0.0),
    "coffee": (0.8, 0.6, 0.0),
    "rain": (0.0, 0.0, 2.0),
    "": (0.0, 1.0, 0.0),
}
"""Vectors of values, by the beginning of their text."""


async def remember(store: Store, key: str, value: Json, *, owner: str = "ann", expires: float | None = None) -> None:
    change = MemoryChange(
        scope="user",
        namespace=owner,
        key=key,
        operation="set",
        value=value,
        at=AT,
        expires=expires,
        quota=Quota(100, 10_000),
    )
    await store.memory.change(change)


async def place(store: Store, *, owner: str = "ann") -> list[str]:
    """Store the missing vectors and return their keys."""
    missing = await store.vectors.missing("user", owner, MODEL, limit=100, at=AT)
    placed = [
        Embedding(one.key, one.mark, next(place for name, place in WHERE.items() if str(one.value).startswith(name)))
        for one in missing
    ]
    await store.vectors.place("user", owner, MODEL, placed)
    return [one.key for one in missing]


async def near(store: Store, *, owner: str = "ann", within: str = "", at: float = AT, limit: int = 10) -> list[str]:
    found = await store.vectors.nearest("user", owner, MODEL, (3.0, 0.0, 0.0), limit=limit, within=within, at=at)
    return [f"{one.key} {one.value} {one.similarity:.2f}" for one in found]


async def values_are_found_by_where_they_lie_the_nearest_first(url: str) -> None:
    async with opened(url) as store:
        for key, value in (("x/1", "coffee, black"), ("x/2", "rain again"), ("y", "tea with milk")):
            await remember(store, key, value)
        await remember(store, "z", "tea", owner="ben")
        assert await place(store) == ["x/1", "x/2", "y"]
        assert await place(store, owner="ben") == ["z"]
        assert await place(store) == []
        assert await near(store) == ["y tea with milk 1.00", "x/1 coffee, black 0.80", "x/2 rain again 0.00"]
        assert await near(store, limit=1) == ["y tea with milk 1.00"]
        assert await near(store, within="x/") == ["x/1 coffee, black 0.80", "x/2 rain again 0.00"]
        assert await near(store, owner="nobody") == []
        other = await store.vectors.missing("user", "ann", "own:another", limit=2, at=AT)
        assert [one.key for one in other] == ["x/1", "x/2"], "each model has its own"


async def a_value_that_changes_or_goes_takes_its_vector_along(url: str) -> None:
    async with opened(url) as store:
        for key in ("a", "b", "c"):
            await remember(store, key, "tea")
        await remember(store, "short", "tea", expires=AT + 1)
        [before, *_] = await store.vectors.missing("user", "ann", MODEL, limit=1, at=AT)
        await place(store)
        assert len(await near(store)) == 4
        assert len(await near(store, at=AT + 2)) == 3, "what expired is not found"
        await remember(store, "a", "rain")
        await store.memory.forget("user", "ann", within="b")
        await store.memory.put("user", "ann", "c", None)
        assert await near(store) == ["short tea 1.00"]
        await store.vectors.place("user", "ann", MODEL, [Embedding("a", before.mark, WHERE["tea"])])
        assert await near(store) == ["short tea 1.00"], "a vector of the value before is of no use"
        assert await place(store) == ["a"]
        assert await near(store) == ["short tea 1.00", "a rain 0.00"]
        await remember(store, "a", "rain")
        assert await place(store) == [], "the same again is the same"


async def vectors_of_another_length_are_refused(url: str) -> None:
    async with opened(url) as store:
        await remember(store, "a", "tea")
        await place(store)
        await remember(store, "b", "tea")
        [one] = await store.vectors.missing("user", "ann", MODEL, limit=10, at=AT)
        assert await refused(
            store.vectors.place("user", "ann", MODEL, [Embedding("b", one.mark, (1.0, 0.0))]), VectorsDiffer
        )
        asked = store.vectors.nearest("user", "ann", MODEL, (1.0, 0.0), limit=1, within="", at=AT)
        assert await refused(asked, VectorsDiffer)
        await store.vectors.place("user", "ann", MODEL, [Embedding("b", one.mark, ())])
        assert await near(store) == ["a tea 1.00"], "of `b` it cannot be said"
        assert await place(store) == []
        assert await store.vectors.clear() == 2
        assert await near(store) == []
        assert [key for key, _ in await store.memory.search("user", "ann", "tea")] == ["a", "b"], (
            "no value is forgotten"
        )
        assert await place(store) == ["a", "b"]


VECTOR_RULES: Final[list[Rule]] = [
    values_are_found_by_where_they_lie_the_nearest_first,
    a_value_that_changes_or_goes_takes_its_vector_along,
    vectors_of_another_length_are_refused,
]
