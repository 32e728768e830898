"""Conformance suite of remembered values: part of `STORE_RULES`."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace

from pointsman.ports import ChangeId, MemoryChange, MemoryOperation, Quota
from pointsman.store.errors import MemoryFull, MemoryNotAList
from pointsman.testing.journals import Rule, opened, refused
from pointsman.testing.memory_history import RECALLING_RULES
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


async def nothing_appended_to_memory_at_the_same_time_is_lost(url: str) -> None:
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


async def a_change_of_memory_happens_once_under_one_name(url: str) -> None:
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


async def memory_forgets_what_has_expired(url: str) -> None:
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


async def memory_is_told_and_emptied_by_owner_and_beginning_of_keys(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        for key in ("notes/a", "notes/b", "notes", "%", "_"):
            await memory.change(changing("set", key, "tea", at=7.0))
        await memory.put("user", "ann", "notes/a", "tea")

        async def keys(**how: str | int) -> list[str]:
            every = await memory.every(
                "session", "ann", within=str(how.get("within", "")), limit=int(how.get("limit", -1))
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


async def memory_is_found_in_every_language(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        for key, text in {"de": "Die Köche sind müde", "ja": "港湾のストライキ", "ru": "Ёлка в Москве"}.items():
            await memory.put("user", "ann", key, text)
        for query, key in {"koche": "de", "KÖCHE": "de", "ストライキ": "ja", "港湾": "ja", "елка": "ru"}.items():
            assert [found for found, _ in await memory.search("user", "ann", query)] == [key], query


async def memory_is_searched_by_words_and_nothing_else(url: str) -> None:
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


MEMORY_RULES: Final[list[Rule]] = [
    memory_keeps_scopes_and_namespaces_apart,
    nothing_appended_to_memory_at_the_same_time_is_lost,
    a_change_of_memory_happens_once_under_one_name,
    memory_forgets_what_has_expired,
    memory_is_bounded_for_each_owner,
    memory_is_told_and_emptied_by_owner_and_beginning_of_keys,
    memory_is_found_in_every_language,
    memory_is_searched_by_words_and_nothing_else,
    *RECALLING_RULES,
]
