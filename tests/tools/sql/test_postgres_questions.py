"""Queries on a real PostgreSQL: the server itself refuses everything but reads, through a role without rights."""

from __future__ import annotations

import fcntl
from urllib.parse import quote
from uuid import uuid4

import pytest

from pointsman.tools.registry import ToolRegistry
from tests import postgres
from tests.tools.sql.sql_calls import asked, asking, refusal


@pytest.fixture(scope="module")
def cluster() -> postgres.Cluster:
    cluster = postgres.shared_cluster()
    with (cluster.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # The workers of a run share the server.
        if cluster.value("SELECT to_regclass('sql_tool_orders') IS NULL") == "t":
            _make(cluster)
    return cluster


def _make(cluster: postgres.Cluster) -> None:
    cluster.sql(
        "CREATE TABLE sql_tool_orders (id int, who text, total numeric, at timestamptz, photo bytea)",
        "INSERT INTO sql_tool_orders VALUES (1, 'Ada', 12.50, '2026-01-02T03:04:05Z', '\\x00ff'), "
        "(2, 'Bo', 'NaN', NULL, NULL), (3, 'O''Neil', 12345678901234567890.123, NULL, NULL)",
        "CREATE SEQUENCE sql_tool_seq",
        "GRANT SELECT ON sql_tool_orders TO guarded",
        "GRANT ALL ON sql_tool_seq TO guarded",
    )


def url(cluster: postgres.Cluster, user: str = "guarded") -> str:
    return f"postgresql://{user}:{postgres.PASSWORD}@/postgres?host={quote(str(cluster.folder), safe='')}"


@pytest.fixture
def shop(cluster: postgres.Cluster) -> ToolRegistry:
    return asking(url(cluster), timeout="5s")


@pytest.mark.integration
async def test_a_select_returns_columns_and_rows(shop: ToolRegistry) -> None:
    found = await asked(shop, "SELECT id, who, total, photo, at IS NULL AS late FROM sql_tool_orders ORDER BY id;")
    assert found == {
        "columns": ["id", "who", "total", "photo", "late"],
        "rows": [
            [1, "Ada", 12.5, "\\x00ff", False],
            [2, "Bo", "NaN", None, True],
            [3, "O'Neil", "12345678901234567890.123", None, True],
        ],
    }


async def test_values_are_passed_as_parameters_and_not_as_code(shop: ToolRegistry) -> None:
    query = "SELECT id FROM sql_tool_orders WHERE who = $1 OR id = $2 ORDER BY id -- 100 %s"
    assert (await asked(shop, query, "O'Neil", 1))["rows"] == [[1], [3]]
    assert (await asked(shop, query, "x' OR 1=1 --", None))["rows"] == []


async def test_columns_with_the_same_name_are_all_returned(shop: ToolRegistry) -> None:
    assert await asked(shop, "SELECT 1 AS a, 2 AS a, 3") == {"columns": ["a", "a", "?column?"], "rows": [[1, 2, 3]]}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM sql_tool_orders",
        "WITH gone AS (DELETE FROM sql_tool_orders RETURNING *) SELECT * FROM gone",
        "CREATE TABLE t (a int)",
        "SELECT * INTO t FROM sql_tool_orders",
        "COPY sql_tool_orders TO '/tmp/x'",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "DO $$ BEGIN RAISE NOTICE 'x'; END $$",
        "SET transaction_read_only = off",
        "SET TRANSACTION READ WRITE",
        "COMMIT",
        "SELECT 1; DELETE FROM sql_tool_orders",
        "EXPLAIN ANALYZE SELECT 1",
        "LISTEN x",
        "SELECT nextval('sql_tool_seq')",
        "SELECT set_config('transaction_read_only', 'off', false), nextval('sql_tool_seq')",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT * FROM pg_authid",
        "SELECT * FROM sql_tool_orders FOR UPDATE",
        "SELECT 1) AS q UNION ALL SELECT (2",
        "SELECT 1) AS q(c0) --",
        "SELECT 1 /*",
        "SELECT 'open",
        "",
        " ; ",
    ],
)
async def test_a_statement_that_writes_is_refused_without_effect(
    shop: ToolRegistry, cluster: postgres.Cluster, statement: str
) -> None:
    failure = await refusal(shop, statement)
    assert failure.code in ("sql-refused", "sql-failed", "tool-arguments"), failure
    assert not failure.retryable
    assert cluster.value("SELECT count(*) FROM sql_tool_orders") == "3"
    assert cluster.value("SELECT is_called FROM sql_tool_seq") == "f"
    assert cluster.value("SELECT count(*) FROM pg_largeobject_metadata") == "0"
    assert cluster.value("SELECT to_regclass('t') IS NULL") == "t"


async def test_a_superuser_role_is_refused(cluster: postgres.Cluster) -> None:
    failure = await refusal(asking(url(cluster, postgres.OWNER)), "SELECT 1")
    assert failure.code == "sql-role-privileged"
    assert "SELECT" in failure.hint


@pytest.mark.parametrize(
    "query",
    [
        "SELECT pg_sleep(60)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "SELECT set_config('statement_timeout', '0', false), pg_sleep(60)",
        "SELECT set_config('statement_timeout', '0', false) FROM (VALUES (1), (2)) t(i) WHERE pg_sleep(30) IS NULL",
    ],
)
async def test_an_endless_query_ends_at_its_timeout_and_leaves_nothing_behind(
    cluster: postgres.Cluster, query: str
) -> None:
    name = f"asked-{uuid4().hex}"
    failure = await refusal(asking(f"{url(cluster)}&application_name={name}", timeout="0.3s"), query)
    assert (failure.code, failure.retryable) == ("tool-timeout", True)
    running = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND state = 'active'"
    assert cluster.value(running) == "0"


async def test_a_too_large_row_is_not_sent(cluster: postgres.Cluster) -> None:
    found = await asked(asking(url(cluster), bytes_max=1000), "SELECT repeat('x', 5000000)")
    assert found["rows"] == []
    assert "the maximum is 1000 bytes" in str(found["truncated"])
    rows = await asked(asking(url(cluster), rows_max=2), "SELECT i FROM generate_series(1, 1000) AS i")
    assert (rows["rows"], rows["truncated"]) == ([[1], [2]], "only the first 2 rows were returned. Select less.")


async def test_no_state_of_a_query_survives_it(shop: ToolRegistry, cluster: postgres.Cluster) -> None:
    await asked(shop, "SELECT lo_from_bytea(0, 'x') IS NULL")
    assert cluster.value("SELECT count(*) FROM pg_largeobject_metadata") == "0"
    await asked(shop, "SELECT pg_advisory_lock(4711), pg_notify('x', 'y'), set_config('role', 'guarded', false)")
    assert cluster.value("SELECT pg_try_advisory_lock(4711)") == "t"


async def test_an_sql_error_is_reported_so_that_a_model_can_correct_it(shop: ToolRegistry) -> None:
    failure = await refusal(shop, "SELECT nme FROM sql_tool_orders")
    assert (failure.code, failure.hint) == ("sql-failed", "Correct the query.")
    assert "nme" in failure.message
    assert (await refusal(shop, "SELECT $2", 1)).code == "sql-failed"
    assert (await refusal(shop, "SELECT '\x00'")).code == "sql-failed"


async def test_an_unreachable_server_is_reported_without_its_password() -> None:
    failure = await refusal(asking("postgresql://me:hidden@127.0.0.1:1/x"), "SELECT 1")
    assert (failure.code, failure.retryable) == ("sql-unreachable", True)
    assert "hidden" not in failure.message
