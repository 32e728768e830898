"""Every shipped store obeys every rule."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from pointsman.store.sqlite.database import load_extension
from pointsman.testing.journals import DURABLE_LEADER_RULES, DURABLE_RULES, JOURNAL_RULES, Rule
from pointsman.testing.memories import VECTOR_RULES
from pointsman.testing.stores import DURABLE_FOLLOWER_RULES, STORE_RULES
from tests.postgres import Cluster

ALL_RULES: Final = [*JOURNAL_RULES, *DURABLE_RULES, *DURABLE_LEADER_RULES, *DURABLE_FOLLOWER_RULES, *STORE_RULES]


def name_of(rule: Rule) -> str:
    return getattr(rule, "__name__", repr(rule))


@pytest.mark.requirement("S1-71", "S2-64", "X-6")
@pytest.mark.parametrize("rule", [*JOURNAL_RULES, *STORE_RULES], ids=name_of)
async def test_the_store_in_memory_conforms(rule: Rule) -> None:
    await rule("memory:")


@pytest.mark.integration
@pytest.mark.requirement("S1-71", "S1-110", "S1-118", "S1-161", "S2-64", "S4-53", "X-6")
@pytest.mark.parametrize("rule", ALL_RULES, ids=name_of)
async def test_the_sqlite_store_conforms(rule: Rule, tmp_path: Path) -> None:
    await rule(f"sqlite:///{tmp_path}/store.db")


@pytest.mark.requirement("S1-71", "S1-110", "S1-118", "S1-161", "S2-64", "X-6")
@pytest.mark.parametrize("rule", ALL_RULES, ids=name_of)
async def test_the_postgresql_store_conforms(rule: Rule, postgres_url: str) -> None:
    await rule(postgres_url)


@pytest.mark.integration
@pytest.mark.parametrize("rule", VECTOR_RULES, ids=name_of)
async def test_sqlite_vec_compares_vectors_like_this_process(rule: Rule, tmp_path: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        if not load_extension(connection):
            pytest.skip("this build of Python loads no extensions of SQLite")
    await rule(f"sqlite:///{tmp_path}/store.db")


async def test_pgvector_compares_vectors_like_plain_sql(cluster: Cluster) -> None:
    if cluster.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == "0":
        pytest.skip("the server has no pgvector (apt-get install postgresql-NN-pgvector)")
    cluster.sql("CREATE EXTENSION vector")
    for rule in VECTOR_RULES:
        await rule(cluster.url(schema=f"test_{uuid4().hex}"))
