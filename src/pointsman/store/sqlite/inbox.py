"""Inboxes in SQLite: open gates, and whom each of them asks. Written with the summary of their execution."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from pointsman.store.records import GateEntry, InboxQuery, Summary
from pointsman.store.sqlite.transaction import Transaction

PEOPLE: Final = "INSERT OR IGNORE INTO gate_people (who, opened, execution, gate) VALUES (?, ?, ?, ?)"
OLDEST_FIRST: Final = "ORDER BY g.opened, g.execution, g.gate LIMIT ?"

_entries: Final = msgspec.json.Decoder(GateEntry)


def put_gates(transaction: Transaction, summary: Summary) -> None:
    """The gates of an execution are these, and no others; unless it does not say."""
    if summary.gates is None:
        return
    for table in ("gates", "gate_people"):
        transaction.execute(f"DELETE FROM {table} WHERE execution = ?", (summary.execution,))
    for entry in summary.gates:
        place = (entry.opened, entry.execution, entry.gate)
        transaction.execute(
            "INSERT INTO gates (opened, execution, gate, workflow, data) VALUES (?, ?, ?, ?, ?)",
            (*place, entry.workflow, msgspec.json.encode(entry)),
        )
        for who in entry.asked:
            transaction.execute(PEOPLE, (who, *place))


def select_gates(connection: sqlite3.Connection, query: InboxQuery) -> list[GateEntry]:
    """One page, oldest first. Every value is bound."""
    narrowing, values = ["1"], list[str | float | int]()
    if query.asked is not None:
        marks = ", ".join("?" * len(query.asked))
        asked = f"SELECT opened, execution, gate FROM gate_people WHERE who IN ({marks})"
        narrowing.append(f"(g.opened, g.execution, g.gate) IN ({asked})")
        values.extend(query.asked)
    if query.without is not None:
        narrowing.append(
            "NOT EXISTS (SELECT 1 FROM gate_people AS p WHERE p.who = ? AND p.opened = g.opened"
            " AND p.execution = g.execution AND p.gate = g.gate)"
        )
        values.append(query.without)
    if query.workflow is not None:
        narrowing.append("g.workflow = ?")
        values.append(query.workflow)
    if query.after is not None:
        narrowing.append("(g.opened, g.execution, g.gate) > (?, ?, ?)")
        values.extend(query.after)
    cursor = connection.execute(
        f"SELECT g.data FROM gates AS g WHERE {' AND '.join(narrowing)} {OLDEST_FIRST}", (*values, query.limit)
    )
    return [_entries.decode(data) for (data,) in cursor]
