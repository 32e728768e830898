"""Conformance suite of the history of remembered values: part of `STORE_RULES`."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace

from pointsman.ports import ChangeAuthor, ChangeId, MemoryChange, MemoryOperation, Quota
from pointsman.store.api import Store
from pointsman.store.errors import MemoryFull
from pointsman.store.records import PastValue
from pointsman.testing.journals import Rule, opened, refused
from pointsman.values import ExecutionId, Json

ANN: Final = ChangeAuthor(person="ann", entrance="login")
NEWS: Final = ChangeAuthor(execution="exec-1", workflow="news", node="keep")


def changing(
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


async def a_key_tells_what_it_was_and_who_wrote_it(url: str) -> None:
    async with opened(url) as store:
        assert await history(store) == []
        await store.memory.change(changing("set", "short", at=1.0, by=ANN))
        assert await history(store) == [PastValue(1, "short", 1.0, None, ANN)]
        await store.memory.change(changing("set", {"long": [1, 10**30]}, at=2.0, by=NEWS, expires=9.0))
        await store.memory.change(changing("set", "short", at=3.0, by=ANN))
        assert await history(store, at=4.0) == [
            PastValue(3, "short", 3.0, None, ANN),
            PastValue(2, {"long": [1, 10**30]}, 2.0, 9.0, NEWS),
            PastValue(1, "short", 1.0, None, ANN),
        ]
        assert await store.memory.get("user", "ann", "tone") == "short"


async def what_is_written_again_has_no_past_but_another_writer(url: str) -> None:
    async with opened(url) as store:
        await store.memory.change(changing("set", "short", at=1.0, by=ANN))
        await store.memory.change(changing("set", "short", at=2.0, by=NEWS))
        assert await history(store) == [PastValue(1, "short", 2.0, None, NEWS)]
        await store.memory.change(changing("set", "long", at=3.0, by=ANN))
        assert [(one.value, one.by) for one in await history(store)] == [("long", ANN), ("short", NEWS)]


async def a_list_tells_how_it_grew(url: str) -> None:
    async with opened(url) as store:
        for number in range(4):
            by = ChangeAuthor(execution=f"exec-{number}")
            await store.memory.change(changing("append", number, key="log", at=float(number), by=by))
        await store.memory.change(changing("set", [9], key="log", at=5.0))
        await store.memory.change(changing("append", 10, key="log", at=6.0))
        assert await values_of(store, "log") == [[9, 10], [9], [0, 1, 2, 3], [0, 1, 2], [0, 1], [0]]
        assert [one.by.execution for one in (await history(store, "log"))[2:] if one.by] == [
            "exec-3",
            "exec-2",
            "exec-1",
            "exec-0",
        ]


async def only_so_much_of_the_past_is_kept(url: str) -> None:
    async with opened(url) as store:
        for number in range(30):
            await store.memory.change(changing("set", number, at=float(number), earlier=3))
            await store.memory.change(changing("append", number, key="log", earlier=3))
        assert [(one.number, one.value) for one in await history(store)] == [(30, 29), (29, 28), (28, 27), (27, 26)]
        assert await values_of(store, "log") == [[*range(length)] for length in (30, 29, 28, 27)]
        await store.memory.change(changing("set", "x", earlier=1))
        assert await values_of(store) == ["x", 29], "fewer from now on"
        await store.memory.change(changing("set", "y", earlier=0))
        assert [(one.value, one.by) for one in await history(store)] == [("y", ANN)], "who wrote it is always known"


async def nobody_finds_the_past(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.change(changing("set", "an old harbour", at=1.0))
        await memory.change(changing("set", "a new street", at=2.0))
        assert await memory.search("user", "ann", "harbour") == []
        assert await memory.search("past user", "ann", "harbour") == []
        assert [key for key, _ in await memory.search("user", "ann", "tone street")] == ["tone"]
        assert [one.key for one in await memory.every("user", "ann")] == ["tone"]
        holdings = [(one.scope, one.keys, one.bytes, one.changed) for one in await memory.holdings()]
        assert holdings == [("user", 1, 14, 2.0)]
        full = Quota(2, 1000, 20)
        await memory.change(replace(changing("set", "x", key="other"), quota=full))
        assert await refused(memory.change(replace(changing("set", "x", key="third"), quota=full)), MemoryFull)
        assert await history(store, "third") == []
        await memory.change(replace(changing("set", "y", key="other"), quota=full))


async def what_is_forgotten_takes_its_past_along(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory

        async def write(*keys: str) -> None:
            for key in keys:
                await memory.change(changing("set", "old", key=key))
                await memory.change(changing("set", "new", key=key))

        await write("tone", "tone2", "notes/a", "notes/ab", "notes2")
        assert await memory.change(changing("delete", by=None)) is True
        await memory.change(changing("set", None, key="notes2"))
        assert await history(store) == []
        await memory.change(changing("set", "again"))
        assert [(one.number, one.value) for one in await history(store)] == [(1, "again")], "it begins anew"
        assert await values_of(store, "tone2") == ["new", "old"]
        assert await memory.forget("user", "ann", within="notes/") == 2
        await write("notes/a")
        assert [one.number for one in await history(store, "notes/a")] == [2, 1]
        other = replace(changing("set", "old"), namespace="ben")
        await memory.change(other)
        await memory.change(replace(other, value="new"))
        assert await memory.forget("user", "ann") == 3
        assert await left_of(store) == 0
        assert [one.value for one in await memory.history("user", "ben", "tone")] == ["new", "old"]


async def what_has_expired_is_not_told(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.change(changing("set", "soon gone", at=1.0, expires=10.0))
        await memory.change(changing("set", "for long", at=2.0, expires=20.0))
        await memory.change(changing("set", "now", at=3.0, expires=30.0))
        assert await values_of(store, at=9.9) == ["now", "for long", "soon gone"]
        assert await values_of(store, at=10.0) == ["now", "for long"]
        assert await values_of(store, at=30.0) == []
        await memory.change(changing("set", "anew", at=30.0))
        assert await values_of(store, at=30.0) == ["anew"], "the past of what expired is none of its"
        await memory.change(changing("set", "kept for ever", key="a", at=1.0))
        await memory.change(changing("set", "not for ever", key="a", at=2.0, expires=40.0))
        assert await memory.purge(40.0, dry_run=True) == 1
        assert await values_of(store, "a", at=39.0) == ["not for ever", "kept for ever"]
        assert await memory.purge(40.0) == 1
        await memory.forget("user", "ann", within="tone")
        assert await left_of(store) == 0
        full = Quota(1, 1000, 20)
        await memory.change(replace(changing("set", 1, key="b", at=41.0, expires=50.0), quota=full))
        await memory.change(replace(changing("set", 2, key="b", at=42.0, expires=50.0), quota=full))
        await memory.change(replace(changing("set", 3, key="c", at=50.0), quota=full))
        assert await values_of(store, "c", at=50.0) == [3]
        await memory.change(changing("delete", key="c", at=50.0))
        assert await left_of(store) == 0


async def what_happens_once_leaves_one_trace(url: str) -> None:
    once = ChangeId(ExecutionId("exec-1"), "keep")
    async with opened(url) as store:
        for _ in range(3):
            await store.memory.change(changing("append", "a", by=NEWS), once=once)
        await store.memory.change(changing("append", "b", by=ANN))
        await store.memory.change(changing("append", "a", by=NEWS), once=once)
        assert [(one.value, one.by) for one in await history(store)] == [(["a", "b"], ANN), (["a"], NEWS)]


async def what_was_written_without_a_trace_is_nobodys(url: str) -> None:
    async with opened(url) as store:
        memory = store.memory
        await memory.put("user", "ann", "tone", "from before")
        assert await history(store) == [PastValue(1, "from before", 0.0)]
        await memory.change(changing("append", 1, key="log", at=1.0))
        await memory.change(changing("append", 2, key="log", at=2.0))
        await memory.change(changing("set", ["x", "y"], key="log", at=3.0, by=None))
        told = [(one.value, one.by) for one in await history(store, "log")]
        assert told == [(["x", "y"], None)], "nothing is told of a list that is lost"
        await memory.change(changing("append", "z", key="log", at=4.0))
        await memory.change(changing("set", "short", at=4.0))
        told = [(one.value, one.by) for one in await history(store, "log")]
        assert told == [(["x", "y", "z"], ANN), (["x", "y"], None)]
        assert [(one.number, one.value, one.by) for one in await history(store)] == [
            (2, "short", ANN),
            (1, "from before", None),
        ]


async def of_writers_at_the_same_time_each_is_told(url: str) -> None:
    async with opened(url) as store:
        written = (changing("set", number, by=ChangeAuthor(person=f"{number}"), earlier=50) for number in range(40))
        await asyncio.gather(*(store.memory.change(one) for one in written))
        told = await history(store)
        assert [one.number for one in told] == [*range(40, 0, -1)]
        assert sorted(one.value for one in told if isinstance(one.value, int)) == [*range(40)]
        assert [one.by.person for one in told if one.by] == [f"{one.value}" for one in told]


RECALLING_RULES: Final[list[Rule]] = [
    a_key_tells_what_it_was_and_who_wrote_it,
    what_is_written_again_has_no_past_but_another_writer,
    a_list_tells_how_it_grew,
    only_so_much_of_the_past_is_kept,
    nobody_finds_the_past,
    what_is_forgotten_takes_its_past_along,
    what_has_expired_is_not_told,
    what_happens_once_leaves_one_trace,
    what_was_written_without_a_trace_is_nobodys,
    of_writers_at_the_same_time_each_is_told,
]
