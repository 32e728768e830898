"""What executions spent, in PostgreSQL: in the row that lists show of each."""

from __future__ import annotations

from typing import Final, LiteralString, cast

from pointsman.engine.state import ENDED
from pointsman.store.budget_usage import (
    APART,
    COLUMN,
    TOGETHER,
    Spenders,
    SpendersRow,
    SpendingQuery,
    spenders_in,
)
from pointsman.store.postgres.connections import Connection

SPENT: Final = "tokens, model_calls, tool_calls, cost_usd"
COUNT: Final = f"UPDATE summaries SET ({SPENT}) = (%s, %s, %s, %s) WHERE execution = %s AND tokens IS NULL"


async def select_spenders(connection: Connection, query: SpendingQuery) -> list[Spenders]:
    """Every value is bound; only these column names ever enter the statement."""
    ended: list[LiteralString] = ["true"]
    values: list[object] = []
    bounds: tuple[tuple[LiteralString, object], ...] = (("updated >= %s", query.since), ("updated < %s", query.until))
    for condition, value in bounds:
        if value is not None:
            ended.append(condition)
            values.append(value)
    amount: LiteralString = COLUMN[query.measure]
    apart: LiteralString = APART if query.apart else TOGETHER
    grouped: LiteralString = f"GROUP BY {APART}" if query.apart else ""
    cursor = await connection.execute(
        "SELECT count(*), count(*) FILTER (WHERE amount >= %s AND amount < %s),"
        " count(*) FILTER (WHERE amount >= %s AND amount > 0), max(amount),"
        f" (array_agg(execution ORDER BY amount DESC))[1], {apart}"
        f" FROM (SELECT execution, {APART}, coalesce({amount}, 0)::float8 AS amount FROM summaries"
        f" WHERE workflow = %s AND revision > 0 AND (status <> ALL(%s) OR ({' AND '.join(ended)})))"
        f" AS each_of_them {grouped}",
        [query.near, query.most, query.most, query.workflow, sorted(ENDED), *values],
    )
    return [spenders_in(cast("SpendersRow", row)) for row in await cursor.fetchall() if row[0]]
