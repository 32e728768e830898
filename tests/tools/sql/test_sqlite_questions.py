"""Queries on SQLite: one reading statement; anything else is refused before it runs, and no query runs for long."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pointsman.tools.registry import ToolRegistry
from tests.tools.sql.sql_calls import asked, asking, refusal

pytestmark = pytest.mark.integration


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE orders (id INTEGER PRIMARY KEY, who TEXT, total REAL, photo BLOB);
        INSERT INTO orders VALUES (1, 'Ada', 12.5, x'00ff'), (2, 'Bo', 9e999, NULL), (3, 'O''Neil', 3, NULL);
        """
    )
    connection.close()
    yield path
    assert [one.name for one in tmp_path.iterdir() if one.name != "shop.db"] == []


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def shop(file: Path) -> ToolRegistry:
    return asking(f"sqlite:///{file}", timeout="2s")


async def test_a_select_returns_columns_and_rows(shop: ToolRegistry) -> None:
    assert await asked(shop, "SELECT id, who, total, photo FROM orders ORDER BY id;") == {
        "columns": ["id", "who", "total", "photo"],
        "rows": [[1, "Ada", 12.5, "AP8="], [2, "Bo", "inf", None], [3, "O'Neil", 3.0, None]],
    }


async def test_values_are_passed_as_parameters_and_not_as_code(shop: ToolRegistry) -> None:
    query = "SELECT id FROM orders WHERE who = $1 OR id = $2"
    assert (await asked(shop, query, "O'Neil", 1))["rows"] == [[1], [3]]
    assert (await asked(shop, query, "x' OR 1=1 --", None))["rows"] == []


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM orders",
        "UPDATE orders SET total = 0",
        "INSERT INTO orders VALUES (9, 'x', 1, NULL)",
        "WITH x AS (SELECT 1) INSERT INTO orders SELECT 8, 'x', 1, NULL FROM x",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "DROP TABLE orders",
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "PRAGMA query_only = OFF",
        "PRAGMA table_info(orders)",
        "SELECT * FROM pragma_table_info('orders')",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT writefile('/tmp/x', 'y')",
        "BEGIN IMMEDIATE",
        "REINDEX",
        "ANALYZE",
        "SELECT 1; DROP TABLE orders",
        "SELECT fts3_tokenizer('simple')",
    ],
)
async def test_a_statement_that_writes_is_refused_without_effect(
    shop: ToolRegistry, file: Path, statement: str
) -> None:
    before = digest(file)
    failure = await refusal(shop, statement)
    assert failure.code in ("sql-refused", "sql-failed"), failure
    assert failure.code == "sql-refused" or "no such function" in failure.message
    assert not failure.retryable
    assert digest(file) == before


async def test_an_endless_query_ends_at_its_timeout(file: Path) -> None:
    bomb = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    failure = await refusal(asking(f"sqlite:///{file}", timeout="0.05s"), bomb)
    assert (failure.code, failure.retryable) == ("tool-timeout", True)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT hex(randomblob(900000000))",
        "SELECT replace(hex(zeroblob(8000000)), '0', 'xxxxxxxxxx')",
        "SELECT group_concat(x, hex(zeroblob(4000000))) FROM (VALUES (1), (2), (3), (4)) AS t(x)",
    ],
)
async def test_the_size_of_a_value_is_bounded(shop: ToolRegistry, query: str) -> None:
    failure = await refusal(shop, query)
    assert failure.code == "sql-failed"


async def test_many_rows_are_truncated_with_a_note(file: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT i FROM n"
    few = await asked(asking(f"sqlite:///{file}", rows_max=3), numbers)
    assert few["rows"] == [[1], [2], [3]]
    assert few["truncated"] == "only the first 3 rows were returned. Select less."
    small = await asked(asking(f"sqlite:///{file}", bytes_max=12), numbers)
    assert small["rows"] == [[1], [2], [3], [4]]
    assert "the maximum is 12 bytes" in str(small["truncated"])


async def test_an_sql_error_is_reported_so_that_a_model_can_correct_it(shop: ToolRegistry) -> None:
    failure = await refusal(shop, "SELECT nme FROM orders")
    assert (failure.code, failure.hint) == ("sql-failed", "Correct the query.")
    assert "no such column: nme" in failure.message
    assert (await refusal(shop, "SELECT $1", 2**70)).code == "sql-failed"
    assert (await refusal(shop, "SELECT $3", 1)).code == "sql-failed"
    assert (await refusal(shop, "-- nothing")).code == "sql-refused"
    assert (await refusal(shop, "SELECT '\x00'")).code == "sql-failed"


async def test_a_missing_or_broken_file_is_reported(tmp_path: Path) -> None:
    assert (await refusal(asking(f"sqlite:///{tmp_path}/none.db"), "SELECT 1")).code == "sql-unreachable"
    (tmp_path / "text.db").write_text("no database at all, but long enough to be read as the header of one" * 20)
    assert (await refusal(asking(f"sqlite:///{tmp_path}/text.db"), "SELECT * FROM sqlite_master")).code == "sql-failed"


async def test_a_query_does_not_block_a_writer(shop: ToolRegistry, file: Path) -> None:
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE orders SET total = 1")
    assert (await asked(shop, "SELECT total FROM orders WHERE id = 1"))["rows"] == [[12.5]]
    writer.execute("COMMIT")
    writer.close()
    assert (await asked(shop, "SELECT total FROM orders WHERE id = 1"))["rows"] == [[1.0]]
