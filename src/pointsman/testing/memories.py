"""Conformance suite of remembered values, their history and their vectors: part of `STORE_RULES`."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace

from pointsman.ports import ChangeAuthor, ChangeId, MemoryChange, MemoryOperation, Quota
from pointsman.store.api import Store
from pointsman.store.errors import MemoryFull, MemoryNotAList, VectorsDiffer
from pointsman.store.records import Embedding, PastValue
from pointsman.testing.journals import Rule, opened, refused
from pointsman.values import ExecutionId, Json


async def memory_keeps_scopes_and_namespaces_apart(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.put("session", "ann", "name", "Ann")
        await memory.put("session", "bob", "name", "Bob")
        await memory.put("shared", "ann", "name", {"first": "Ann"})
        assert await memory.get("session", "ann", "name") == "Ann"
        assert await memory.get("shared", "ann", "name") == {"first": "Ann"}
        assert await memory.get("execution", "ann", "name") is None
        await memory.put("session", "ann", "name", None)
        assert await memory.get("session", "ann", "name") is None
        assert await memory.get("session", "bob", "name") == "Bob"
        await memory.forget("session", "bob")
        assert await memory.get("session", "bob", "name") is None
        assert await memory.search("session", "bob", "Bob") == []


async def concurrent_appends_to_memory_are_all_stored(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await asyncio.gather(*(memory.change(appended("log", number)) for number in range(50)))
        log = await memory.get("session", "ann", "log")
        assert isinstance(log, list)
        assert log == list(range(50))
        await memory.put("session", "ann", "name", "Ann")
        assert await refused(memory.change(appended("name", 1)), MemoryNotAList)
        assert await memory.get("session", "ann", "name") == "Ann"


def appended(key: str, value: Json) -> MemoryChange:
    return changing("append", key, value)


def changing(
    operation: MemoryOperation,
    key: str,
    value: Json = None,
    *,
    at: float = 0.0,
    keys: int = 100,
    expires: float | None = None,
) -> MemoryChange:
    """Return a change of a value of session `ann`."""
    return MemoryChange(
        scope="session",
        namespace="ann",
        key=key,
        operation=operation,
        value=value,
        at=at,
        quota=Quota(keys, 1000),
        expires=expires,
    )


async def memory_change_of_one_id_happens_once(url: str) -> None:
    first, other = ChangeId(ExecutionId("exec-1"), "log"), ChangeId(ExecutionId("exec-2"), "log")
    async with opened(url) as store:
        memory = store.memory
        assert await memory.change(appended("log", "a"), once=first) == ["a"]
        assert await memory.change(appended("log", "b")) == ["a", "b"]
        assert await memory.change(appended("log", "a"), once=first) == ["a"], "the answer of then"
        assert await memory.change(appended("log", "c"), once=other) == ["a", "b", "c"]
        assert await memory.get("session", "ann", "log") == ["a", "b", "c"]
        assert await store.effects.recorded(ExecutionId("exec-1"), "log") == {1: ["a"]}
        big = ChangeId(ExecutionId("exec-1"), "big")
        large = replace(changing("set", "big", "x" * 200_000), quota=Quota(9, 300_000))
        assert await memory.change(large, once=big) == "x" * 200_000
        assert await memory.change(changing("delete", "big")) is True
        assert await memory.change(large, once=big) == "x" * 200_000
        assert await memory.get("session", "ann", "big") is None
        name = ChangeId(ExecutionId("exec-1"), "name")
        await memory.put("session", "ann", "name", "Ann")
        assert await refused(memory.change(appended("name", 1), once=name), MemoryNotAList)
        await memory.put("session", "ann", "name", None)
        assert await memory.change(appended("name", 1), once=name) == [1], "what was refused did not happen"


async def memory_deletes_expired_values(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.change(changing("set", "soon", "tea", at=10.0, expires=20.0))
        await memory.change(changing("set", "never", "tea", at=10.0))
        assert await memory.get("session", "ann", "soon", at=19.9) == "tea"
        assert await memory.get("session", "ann", "soon", at=20.0) is None
        assert [key for key, _ in await memory.search("session", "ann", "tea", at=19.0)] == ["never", "soon"]
        assert [key for key, _ in await memory.search("session", "ann", "tea", at=20.0)] == ["never"]
        assert [one.key for one in await memory.every("session", "ann", at=20.0)] == ["never"]
        assert [(one.changed, one.expires) for one in await memory.every("session", "ann")] == [
            (10.0, None),
            (10.0, 20.0),
        ]
        assert await memory.change(changing("delete", "soon", at=20.0)) is False, "it was not there any more"
        await memory.change(changing("append", "log", 1, at=10.0, expires=20.0))
        assert await memory.change(changing("append", "log", 2, at=20.0, expires=30.0)) == [2]
        assert await memory.change(changing("append", "log", 3, at=25.0)) == [2, 3], "it never expires from now on"
        await memory.change(changing("set", "late", 1, at=10.0, expires=40.0))
        assert await memory.purge(40.0, dry_run=True) == 1
        assert [one.key for one in await memory.every("session", "ann")] == ["late", "log", "never"]
        assert await memory.purge(40.0) == 1
        assert [one.key for one in await memory.every("session", "ann")] == ["log", "never"]
        assert await memory.search("session", "ann", "late") == []


async def memory_is_bounded_for_each_owner(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.change(changing("set", "a", 1, keys=2, at=1.0, expires=5.0))
        await memory.change(changing("set", "b", 1, keys=2, at=1.0))
        assert await refused(memory.change(changing("set", "c", 1, keys=2, at=4.0)), MemoryFull)
        assert await memory.change(changing("set", "b", 2, keys=2, at=4.0)) == 2, "no new key"
        assert await memory.change(changing("set", "c", 1, keys=2, at=5.0)) == 1, "one of them has expired"
        assert [one.key for one in await memory.every("session", "ann")] == ["b", "c"]
        await memory.put("session", "bob", "a", 1)
        assert await refused(memory.change(changing("set", "b", "x" * 999)), MemoryFull)
        assert await memory.get("session", "ann", "b") == 2


async def memory_is_listed_and_cleared_by_owner_and_key_prefix(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        for key in ("notes/a", "notes/b", "notes", "%", "_"):
            await memory.change(changing("set", key, "tea", at=7.0))
        await memory.put("user", "ann", "notes/a", "tea")

        async def keys(**narrowing: str | int) -> list[str]:
            every = await memory.every(
                "session", "ann", within=str(narrowing.get("within", "")), limit=int(narrowing.get("limit", -1))
            )
            return [one.key for one in every]

        assert await keys() == ["%", "_", "notes", "notes/a", "notes/b"]
        assert await keys(within="notes/") == ["notes/a", "notes/b"]
        assert await keys(within="%") == ["%"], "nothing in a key is a wildcard"
        assert await keys(within="_") == ["_"]
        assert await keys(limit=2) == ["%", "_"]
        assert [one.key for one in await memory.every("session", "ann", after="notes")] == ["notes/a", "notes/b"]
        found = await memory.search("session", "ann", "tea", within="notes/", limit=1)
        assert [key for key, _ in found] == ["notes/a"]
        assert [(one.scope, one.namespace, one.keys, one.bytes, one.changed) for one in await memory.holdings()] == [
            ("session", "ann", 5, 25, 7.0),
            ("user", "ann", 1, 5, 0.0),
        ]
        assert await memory.forget("session", "ann", within="notes/") == 2
        assert await keys() == ["%", "_", "notes"]
        assert await memory.forget("session", "ann") == 3
        assert await memory.get("user", "ann", "notes/a") == "tea"


async def memory_search_finds_words_of_every_language(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        for key, text in {"de": "Die Köche sind müde", "ja": "港湾のストライキ", "ru": "Ёлка в Москве"}.items():
            await memory.put("user", "ann", key, text)
        for query, key in {"koche": "de", "KÖCHE": "de", "ストライキ": "ja", "港湾": "ja", "елка": "ru"}.items():
            assert [found for found, _ in await memory.search("user", "ann", query)] == [key], query


async def memory_search_matches_only_whole_words(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.put("shared", "ann", "harbour", {"note": "The harbour strike began on Monday"})
        await memory.put("shared", "ann", "strike", ["a strike", "of lightning"])
        await memory.put("shared", "ann", "cats", "Cats sleep")
        await memory.put("shared", "bob", "harbour", "The harbour strike, of somebody else")
        found = await memory.search("shared", "ann", "harbour strike")
        assert [key for key, _ in found] == ["harbour", "strike"]
        assert found[0][1] == {"note": "The harbour strike began on Monday"}
        assert await memory.search("shared", "ann", "harbour strike", limit=1) == found[:1]
        for hostile in ('"', "NEAR(", "harb*", "words:dogs", "cat OR", "'; DROP TABLE memory --", "", "*", "-"):
            assert await memory.search("shared", "ann", hostile) == []
        await memory.put("shared", "ann", "harbour", "quiet now")
        assert [key for key, _ in await memory.search("shared", "ann", "monday")] == []


ANN: Final = ChangeAuthor(person="ann", entrance="login")
NEWS: Final = ChangeAuthor(execution="exec-1", workflow="news", node="keep")


def traced_change(
    operation: MemoryOperation,
    value: Json = None,
    *,
    key: str = "tone",
    at: float = 0.0,
    by: ChangeAuthor | None = ANN,
    expires: float | None = None,
    earlier: int = 20,
) -> MemoryChange:
    """Return a change of a value of ann."""
    quota = Quota(100, 1000, earlier)
    return MemoryChange(
        scope="user",
        namespace="ann",
        key=key,
        operation=operation,
        value=value,
        at=at,
        expires=expires,
        quota=quota,
        by=by,
    )


async def history(store: Store, key: str = "tone", *, at: float = 0.0) -> list[PastValue]:
    return await store.memory.history("user", "ann", key, at=at)


async def values_of(store: Store, key: str = "tone", *, at: float = 0.0) -> list[Json]:
    return [one.value for one in await history(store, key, at=at)]


async def left_of(store: Store) -> int:
    """Return the number of stored history rows of ann, visible or not."""
    return len(await store.memory.every("past user", "ann"))


async def history_lists_earlier_values_and_their_authors(url: str) -> None:
    async with opened(url) as store:
        assert await history(store) == []
        await store.memory.change(traced_change("set", "short", at=1.0, by=ANN))
        assert await history(store) == [PastValue(1, "short", 1.0, None, ANN)]
        await store.memory.change(traced_change("set", {"long": [1, 10**30]}, at=2.0, by=NEWS, expires=9.0))
        await store.memory.change(traced_change("set", "short", at=3.0, by=ANN))
        assert await history(store, at=4.0) == [
            PastValue(3, "short", 3.0, None, ANN),
            PastValue(2, {"long": [1, 10**30]}, 2.0, 9.0, NEWS),
            PastValue(1, "short", 1.0, None, ANN),
        ]
        assert await store.memory.get("user", "ann", "tone") == "short"


async def equal_value_adds_no_history_but_changes_the_author(url: str) -> None:
    async with opened(url) as store:
        await store.memory.change(traced_change("set", "short", at=1.0, by=ANN))
        await store.memory.change(traced_change("set", "short", at=2.0, by=NEWS))
        assert await history(store) == [PastValue(1, "short", 2.0, None, NEWS)]
        await store.memory.change(traced_change("set", "long", at=3.0, by=ANN))
        assert [(one.value, one.by) for one in await history(store)] == [("long", ANN), ("short", NEWS)]


async def history_of_a_list_contains_each_append(url: str) -> None:
    async with opened(url) as store:
        for number in range(4):
            by = ChangeAuthor(execution=f"exec-{number}")
            await store.memory.change(traced_change("append", number, key="log", at=float(number), by=by))
        await store.memory.change(traced_change("set", [9], key="log", at=5.0))
        await store.memory.change(traced_change("append", 10, key="log", at=6.0))
        assert await values_of(store, "log") == [[9, 10], [9], [0, 1, 2, 3], [0, 1, 2], [0, 1], [0]]
        assert [one.by.execution for one in (await history(store, "log"))[2:] if one.by] == [
            "exec-3",
            "exec-2",
            "exec-1",
            "exec-0",
        ]


async def history_is_bounded(url: str) -> None:
    async with opened(url) as store:
        for number in range(30):
            await store.memory.change(traced_change("set", number, at=float(number), earlier=3))
            await store.memory.change(traced_change("append", number, key="log", earlier=3))
        assert [(one.number, one.value) for one in await history(store)] == [(30, 29), (29, 28), (28, 27), (27, 26)]
        assert await values_of(store, "log") == [[*range(length)] for length in (30, 29, 28, 27)]
        await store.memory.change(traced_change("set", "x", earlier=1))
        assert await values_of(store) == ["x", 29], "fewer from now on"
        await store.memory.change(traced_change("set", "y", earlier=0))
        assert [(one.value, one.by) for one in await history(store)] == [("y", ANN)], "who wrote it is always known"


async def search_ignores_earlier_values(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.change(traced_change("set", "an old harbour", at=1.0))
        await memory.change(traced_change("set", "a new street", at=2.0))
        assert await memory.search("user", "ann", "harbour") == []
        assert await memory.search("past user", "ann", "harbour") == []
        assert [key for key, _ in await memory.search("user", "ann", "tone street")] == ["tone"]
        assert [one.key for one in await memory.every("user", "ann")] == ["tone"]
        holdings = [(one.scope, one.keys, one.bytes, one.changed) for one in await memory.holdings()]
        assert holdings == [("user", 1, 14, 2.0)]
        full = Quota(2, 1000, 20)
        await memory.change(replace(traced_change("set", "x", key="other"), quota=full))
        assert await refused(memory.change(replace(traced_change("set", "x", key="third"), quota=full)), MemoryFull)
        assert await history(store, "third") == []
        await memory.change(replace(traced_change("set", "y", key="other"), quota=full))


async def deleting_a_value_deletes_its_history(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory

        async def write(*keys: str) -> None:
            for key in keys:
                await memory.change(traced_change("set", "old", key=key))
                await memory.change(traced_change("set", "new", key=key))

        await write("tone", "tone2", "notes/a", "notes/ab", "notes2")
        assert await memory.change(traced_change("delete", by=None)) is True
        await memory.change(traced_change("set", None, key="notes2"))
        assert await history(store) == []
        await memory.change(traced_change("set", "again"))
        assert [(one.number, one.value) for one in await history(store)] == [(1, "again")], "it begins anew"
        assert await values_of(store, "tone2") == ["new", "old"]
        assert await memory.forget("user", "ann", within="notes/") == 2
        await write("notes/a")
        assert [one.number for one in await history(store, "notes/a")] == [2, 1]
        other = replace(traced_change("set", "old"), namespace="ben")
        await memory.change(other)
        await memory.change(replace(other, value="new"))
        assert await memory.forget("user", "ann") == 3
        assert await left_of(store) == 0
        assert [one.value for one in await memory.history("user", "ben", "tone")] == ["new", "old"]


async def expired_values_have_no_visible_history(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.change(traced_change("set", "soon gone", at=1.0, expires=10.0))
        await memory.change(traced_change("set", "for long", at=2.0, expires=20.0))
        await memory.change(traced_change("set", "now", at=3.0, expires=30.0))
        assert await values_of(store, at=9.9) == ["now", "for long", "soon gone"]
        assert await values_of(store, at=10.0) == ["now", "for long"]
        assert await values_of(store, at=30.0) == []
        await memory.change(traced_change("set", "anew", at=30.0))
        assert await values_of(store, at=30.0) == ["anew"], "the past of what expired is none of its"
        await memory.change(traced_change("set", "kept for ever", key="a", at=1.0))
        await memory.change(traced_change("set", "not for ever", key="a", at=2.0, expires=40.0))
        assert await memory.purge(40.0, dry_run=True) == 1
        assert await values_of(store, "a", at=39.0) == ["not for ever", "kept for ever"]
        assert await memory.purge(40.0) == 1
        await memory.forget("user", "ann", within="tone")
        assert await left_of(store) == 0
        full = Quota(1, 1000, 20)
        await memory.change(replace(traced_change("set", 1, key="b", at=41.0, expires=50.0), quota=full))
        await memory.change(replace(traced_change("set", 2, key="b", at=42.0, expires=50.0), quota=full))
        await memory.change(replace(traced_change("set", 3, key="c", at=50.0), quota=full))
        assert await values_of(store, "c", at=50.0) == [3]
        await memory.change(traced_change("delete", key="c", at=50.0))
        assert await left_of(store) == 0


async def repeated_change_adds_one_history_entry(url: str) -> None:
    once = ChangeId(ExecutionId("exec-1"), "keep")
    async with opened(url) as store:
        for _ in range(3):
            await store.memory.change(traced_change("append", "a", by=NEWS), once=once)
        await store.memory.change(traced_change("append", "b", by=ANN))
        await store.memory.change(traced_change("append", "a", by=NEWS), once=once)
        assert [(one.value, one.by) for one in await history(store)] == [(["a", "b"], ANN), (["a"], NEWS)]


async def value_written_without_history_has_no_author(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.put("user", "ann", "tone", "from before")
        assert await history(store) == [PastValue(1, "from before", 0.0)]
        await memory.change(traced_change("append", 1, key="log", at=1.0))
        await memory.change(traced_change("append", 2, key="log", at=2.0))
        await memory.change(traced_change("set", ["x", "y"], key="log", at=3.0, by=None))
        authors = [(one.value, one.by) for one in await history(store, "log")]
        assert authors == [(["x", "y"], None)], "nothing is told of a list that is lost"
        await memory.change(traced_change("append", "z", key="log", at=4.0))
        await memory.change(traced_change("set", "short", at=4.0))
        authors = [(one.value, one.by) for one in await history(store, "log")]
        assert authors == [(["x", "y", "z"], ANN), (["x", "y"], None)]
        assert [(one.number, one.value, one.by) for one in await history(store)] == [
            (2, "short", ANN),
            (1, "from before", None),
        ]


async def history_names_each_concurrent_writer(url: str) -> None:
    async with opened(url) as store:
        written = (
            traced_change("set", number, by=ChangeAuthor(person=f"{number}"), earlier=50) for number in range(40)
        )
        await asyncio.gather(*(store.memory.change(one) for one in written))
        versions = await history(store)
        assert [one.number for one in versions] == [*range(40, 0, -1)]
        assert sorted(one.value for one in versions if isinstance(one.value, int)) == [*range(40)]
        assert [one.by.person for one in versions if one.by] == [f"{one.value}" for one in versions]


RECALLING_RULES: Final[list[Rule]] = [
    history_lists_earlier_values_and_their_authors,
    equal_value_adds_no_history_but_changes_the_author,
    history_of_a_list_contains_each_append,
    history_is_bounded,
    search_ignores_earlier_values,
    deleting_a_value_deletes_its_history,
    expired_values_have_no_visible_history,
    repeated_change_adds_one_history_entry,
    value_written_without_history_has_no_author,
    history_names_each_concurrent_writer,
]


EMBEDDER: Final = "own:places"
NOW: Final = 100.0
PLACES: Final[dict[str, tuple[float, ...]]] = {
    "tea": (1.0, 0.0, 0.0),
    "coffee": (0.8, 0.6, 0.0),
    "rain": (0.0, 0.0, 2.0),
    "": (0.0, 1.0, 0.0),
}
"""Vectors of values, by the beginning of their text."""


async def remember_text(
    store: Store, key: str, value: Json, *, owner: str = "ann", expires: float | None = None
) -> None:
    change = MemoryChange(
        scope="user",
        namespace=owner,
        key=key,
        operation="set",
        value=value,
        at=NOW,
        expires=expires,
        quota=Quota(100, 10_000),
    )
    await store.memory.change(change)


async def place_vectors(store: Store, *, owner: str = "ann") -> list[str]:
    """Store the missing vectors and return their keys."""
    missing = await store.vectors.missing("user", owner, EMBEDDER, limit=100, at=NOW)
    placed = [
        Embedding(one.key, one.mark, next(place for name, place in PLACES.items() if str(one.value).startswith(name)))
        for one in missing
    ]
    await store.vectors.place("user", owner, EMBEDDER, placed)
    return [one.key for one in missing]


async def near_texts(
    store: Store, *, owner: str = "ann", within: str = "", at: float = NOW, limit: int = 10
) -> list[str]:
    found = await store.vectors.nearest("user", owner, EMBEDDER, (3.0, 0.0, 0.0), limit=limit, within=within, at=at)
    return [f"{one.key} {one.value} {one.similarity:.2f}" for one in found]


async def nearest_vectors_are_found_first(url: str) -> None:
    async with opened(url) as store:
        for key, value in (("x/1", "coffee, black"), ("x/2", "rain again"), ("y", "tea with milk")):
            await remember_text(store, key, value)
        await remember_text(store, "z", "tea", owner="ben")
        assert await place_vectors(store) == ["x/1", "x/2", "y"]
        assert await place_vectors(store, owner="ben") == ["z"]
        assert await place_vectors(store) == []
        assert await near_texts(store) == ["y tea with milk 1.00", "x/1 coffee, black 0.80", "x/2 rain again 0.00"]
        assert await near_texts(store, limit=1) == ["y tea with milk 1.00"]
        assert await near_texts(store, within="x/") == ["x/1 coffee, black 0.80", "x/2 rain again 0.00"]
        assert await near_texts(store, owner="nobody") == []
        other = await store.vectors.missing("user", "ann", "own:another", limit=2, at=NOW)
        assert [one.key for one in other] == ["x/1", "x/2"], "each model has its own"


async def changed_or_deleted_value_loses_its_vector(url: str) -> None:
    async with opened(url) as store:
        for key in ("a", "b", "c"):
            await remember_text(store, key, "tea")
        await remember_text(store, "short", "tea", expires=NOW + 1)
        [before, *_] = await store.vectors.missing("user", "ann", EMBEDDER, limit=1, at=NOW)
        await place_vectors(store)
        assert len(await near_texts(store)) == 4
        assert len(await near_texts(store, at=NOW + 2)) == 3, "what expired is not found"
        await remember_text(store, "a", "rain")
        await store.memory.forget("user", "ann", within="b")
        await store.memory.put("user", "ann", "c", None)
        assert await near_texts(store) == ["short tea 1.00"]
        await store.vectors.place("user", "ann", EMBEDDER, [Embedding("a", before.mark, PLACES["tea"])])
        assert await near_texts(store) == ["short tea 1.00"], "a vector of the value before is of no use"
        assert await place_vectors(store) == ["a"]
        assert await near_texts(store) == ["short tea 1.00", "a rain 0.00"]
        await remember_text(store, "a", "rain")
        assert await place_vectors(store) == [], "the same again is the same"


async def vectors_of_another_length_are_refused(url: str) -> None:
    async with opened(url) as store:
        await remember_text(store, "a", "tea")
        await place_vectors(store)
        await remember_text(store, "b", "tea")
        [one] = await store.vectors.missing("user", "ann", EMBEDDER, limit=10, at=NOW)
        assert await refused(
            store.vectors.place("user", "ann", EMBEDDER, [Embedding("b", one.mark, (1.0, 0.0))]), VectorsDiffer
        )
        query = store.vectors.nearest("user", "ann", EMBEDDER, (1.0, 0.0), limit=1, within="", at=NOW)
        assert await refused(query, VectorsDiffer)
        await store.vectors.place("user", "ann", EMBEDDER, [Embedding("b", one.mark, ())])
        assert await near_texts(store) == ["a tea 1.00"], "of `b` it cannot be said"
        assert await place_vectors(store) == []
        assert await store.vectors.clear() == 2
        assert await near_texts(store) == []
        assert [key for key, _ in await store.memory.search("user", "ann", "tea")] == ["a", "b"], (
            "no value is forgotten"
        )
        assert await place_vectors(store) == ["a", "b"]


VECTOR_RULES: Final[list[Rule]] = [
    nearest_vectors_are_found_first,
    changed_or_deleted_value_loses_its_vector,
    vectors_of_another_length_are_refused,
]


MEMORY_RULES: Final[list[Rule]] = [
    memory_keeps_scopes_and_namespaces_apart,
    concurrent_appends_to_memory_are_all_stored,
    memory_change_of_one_id_happens_once,
    memory_deletes_expired_values,
    memory_is_bounded_for_each_owner,
    memory_is_listed_and_cleared_by_owner_and_key_prefix,
    memory_search_finds_words_of_every_language,
    memory_search_matches_only_whole_words,
    *RECALLING_RULES,
]
