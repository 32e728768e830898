"""What executions spent, in SQLite: in the row that lists show of each."""

from __future__ import annotations

import sqlite3
from typing import Final

from pointsman.engine.state import ENDED
from pointsman.store.budget_usage import (
    APART,
    COLUMN,
    TOGETHER,
    Spenders,
    SpendingQuery,
    Spent,
    spenders_in,
    values_of,
)
from pointsman.store.sqlite.transaction import Transaction
from pointsman.values import ExecutionId

SPENT: Final = "tokens, model_calls, tool_calls, cost_usd"
COUNT: Final = f"UPDATE summaries SET ({SPENT}) = (?, ?, ?, ?) WHERE execution = ? AND tokens IS NULL"


def put_spent(transaction: Transaction, execution: ExecutionId, spent: Spent) -> None:
    transaction.execute(COUNT, (*values_of(spent), execution))


def select_spenders(connection: sqlite3.Connection, query: SpendingQuery) -> list[Spenders]:
    """Every value is bound; only these column names ever enter the statement."""
    ended, values = ["1"], list[float]()
    for condition, value in (("updated >= ?", query.since), ("updated < ?", query.until)):
        if value is not None:
            ended.append(condition)
            values.append(value)
    some = (
        f"SELECT execution, {APART}, coalesce({COLUMN[query.measure]}, 0.0) AS amount FROM summaries"
        f" WHERE workflow = ? AND revision > 0"
        f" AND (status NOT IN ({', '.join('?' * len(ENDED))}) OR ({' AND '.join(ended)}))"
    )
    # Beside max() the other columns are of the row that has it.
    cursor = connection.execute(
        "SELECT count(*), sum(amount >= ? AND amount < ?), sum(amount >= ? AND amount > 0), max(amount), execution,"
        f" {APART if query.apart else TOGETHER} FROM ({some}) {f'GROUP BY {APART}' if query.apart else ''}",
        (query.near, query.most, query.most, query.workflow, *sorted(ENDED), *values),
    )
    return [spenders_in(row) for row in cursor if row[0]]
