"""Stores in which usage was a record of each execution and day: the sums say what those records say, once."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from random import Random

import psycopg
import pytest

from pointsman.app import Pointsman
from pointsman.executions.usage_rollup import History
from pointsman.operations.usage_migration import take_over
from pointsman.settings import Settings
from pointsman.store.api import open_store
from pointsman.store.codec import encode_json
from pointsman.store.postgres.address import address_of
from pointsman.store.sqlite.schema import MIGRATIONS, migrate
from pointsman.store.sqlite.seals import bring_seal
from pointsman.store.usage import UsageQuery
from pointsman.values import Json, JsonObject
from tests import postgres

EXECUTIONS = 120
BEFORE = 4
"""The version of the last file in which usage was remembered."""


def records() -> Iterator[tuple[str, list[Json], Decimal, Decimal]]:
    """A record under its key, with the seconds and dollars in it."""
    chance = Random(7)
    for number in range(EXECUTIONS):
        day = f"2026-11-{20 + number % 2}"
        seconds, cost = round(chance.random() * 9, 6), round(chance.random() / 50, 9)
        entries: list[Json] = [
            [[day, "ask", "", ""], {"steps": 1, "seconds": seconds}],
            [[day, "ask", "gpt-5", "openai/1"], {"model_calls": 2, "unpriced_calls": 1, "cost_usd": cost}],
            [[day, "ask", "scripted", ""], {"model_calls": 1, "unpriced_calls": 1}],
        ]
        yield f"{day}/exec-{number:03}", ["desk", 1, entries, "ann"], Decimal(str(seconds)), Decimal(str(cost))


def older_file(path: Path) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        bring_seal(database)
        migrate(database, MIGRATIONS[:BEFORE])
        for number, (key, value, *_) in enumerate(records(), start=1):
            database.execute(
                "INSERT INTO memory (no, scope, namespace, key, value) VALUES (?, 'usage', 'all', ?, ?)",
                (number, key, encode_json(value)),
            )
            database.execute("INSERT INTO memory_words (rowid, words) VALUES (?, 'desk')", (number,))
    return f"sqlite:///{path}"


async def older_database(url: str) -> str:
    await (await open_store(url)).close()
    address = address_of(url)
    with psycopg.connect(address.within(address.schema), autocommit=True) as connection:
        connection.execute("DROP TABLE usage, usage_sums")
        connection.execute("ALTER TABLE summaries DROP COLUMN needs, DROP COLUMN worker, DROP COLUMN scripted")
        connection.execute("UPDATE pointsman_version SET version_num = '3'")
        for key, value, *_ in records():
            connection.execute(
                "INSERT INTO memory (scope, namespace, key, value, words)"
                " VALUES ('usage', 'all', %s, %s, array_to_tsvector(ARRAY['desk']))",
                (key, encode_json(value)),
            )
    return url


@pytest.fixture(params=["sqlite", "postgres"])
async def older(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return older_file(tmp_path / "old.db")
    postgres.need_binaries()
    return await older_database(request.getfixturevalue("postgres_url"))


def opened(url: str) -> Pointsman:
    return Pointsman(url, settings=Settings(delays=False), model="scripted")


def rounded(amounts: list[Decimal], digits: str) -> float:
    return float(sum(amounts, Decimal(0)).quantize(Decimal(digits)))


async def test_the_records_of_before_are_added_up_by_whoever_asks_first(older: str) -> None:
    *_, seconds, costs = zip(*records(), strict=True)
    async with opened(older) as one, opened(older) as other:
        first, second = await asyncio.gather(History(one).usage(), History(other).usage(("user",)))
        (row,), (ann,) = first, second
        assert {**row, "user": "ann"} == {**ann, "workflow": "desk"}
        wanted: JsonObject = {"steps": EXECUTIONS, "modelCalls": 3 * EXECUTIONS, "unpricedCalls": EXECUTIONS}
        assert {name: row[name] for name in wanted} == wanted
        assert (row["seconds"], row["costUsd"]) == (rounded([*seconds], "0.001"), rounded([*costs], "0.000001"))
        assert row["scriptedCalls"] == EXECUTIONS, "they were taken for some without a known price"
        by_model = {entry["model"]: entry["costUsd"] for entry in await History(one).usage(("model",))}
        assert (by_model["scripted"], by_model[""]) == (None, None), "nobody knows is not zero"
        assert await one.store.memory.every("usage", "all") == []
        assert await one.store.verify() == []
    async with opened(older) as again:
        await take_over(again.store)
        assert await History(again).usage() == first


async def test_what_is_known_by_now_is_not_replaced_by_the_record_of_before(older: str) -> None:
    async with opened(older) as app:
        await take_over(app.store)
        key, value, *_ = next(records())
        stale: list[Json] = [*value[:2], [], "eve"]
        await app.store.memory.put("usage", "all", key, stale)
        before = await app.store.usage.sums(UsageQuery(by=("owner",)))
        await take_over(app.store)
        assert await app.store.usage.sums(UsageQuery(by=("owner",))) == before
