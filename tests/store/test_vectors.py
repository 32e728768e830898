"""Extensions of databases that compare vectors obey the rules of stores that do it by themselves."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from pointsman.store.sqlite.database import load_extension
from pointsman.testing.journals import Rule
from pointsman.testing.memories import VECTOR_RULES
from tests.postgres import Cluster


def name_of(rule: Rule) -> str:
    return getattr(rule, "__name__", repr(rule))


@pytest.mark.parametrize("rule", VECTOR_RULES, ids=name_of)
async def test_sqlite_vec_compares_as_this_process_does(rule: Rule, tmp_path: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        if not load_extension(connection):
            pytest.skip("this build of Python loads no extensions of SQLite")
    await rule(f"sqlite:///{tmp_path}/store.db")


async def test_pgvector_compares_as_plain_sql_does(cluster: Cluster) -> None:
    if cluster.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == "0":
        pytest.skip("the server has no pgvector (apt-get install postgresql-NN-pgvector)")
    cluster.sql("CREATE EXTENSION vector")
    for rule in VECTOR_RULES:
        await rule(cluster.url(schema=f"test_{uuid4().hex}"))
