"""Inboxes in PostgreSQL: the open gates of an execution lie beside its summary, indexed by whom they ask."""

from __future__ import annotations

from typing import Final, LiteralString

import msgspec

from pointsman.store.postgres.connections import Connection
from pointsman.store.records import GateEntry, InboxQuery, Summary

SELECT: Final = (
    "SELECT e->>'entry' FROM summaries AS s, jsonb_array_elements(s.gates) AS e"
    " WHERE s.gates IS NOT NULL AND s.gates <> '[]'"
)
OLDEST_FIRST: Final = " ORDER BY (e->>'opened')::float8, s.execution, e->>'gate' COLLATE \"C\" LIMIT %s"

_entries: Final = msgspec.json.Decoder(GateEntry)


def gates_of(summary: Summary) -> str | None:
    """The open gates as JSON; None: those it had stay. An entry is a text in it, which comes back exactly."""
    if summary.gates is None:
        return None
    found = [
        {"opened": entry.opened, "gate": entry.gate, "asked": entry.asked, "entry": msgspec.json.encode(entry).decode()}
        for entry in summary.gates
    ]
    return msgspec.json.encode(found).decode()


async def select_gates(connection: Connection, query: InboxQuery) -> list[GateEntry]:
    """One page, oldest first. Every value is bound; only these texts ever enter the statement."""
    narrowing: list[LiteralString] = []
    values: list[object] = []
    if query.asked is not None:
        # The first condition finds executions by the index, the second the gates in them.
        places: list[LiteralString] = ["s.gates @> %s::jsonb" for _ in query.asked]
        narrowing.append("(" + " OR ".join(places) + ") AND e->'asked' ?| %s")
        values += [msgspec.json.encode([{"asked": [who]}]).decode() for who in query.asked]
        values.append([*query.asked])
    if query.without is not None:
        narrowing.append("NOT e->'asked' ? %s")
        values.append(query.without)
    if query.workflow is not None:
        narrowing.append("s.workflow = %s")
        values.append(query.workflow)
    if query.after is not None:
        narrowing.append("((e->>'opened')::float8, s.execution, e->>'gate' COLLATE \"C\") > (%s, %s, %s)")
        values += query.after
    narrowed: LiteralString = "".join([f" AND {condition}" for condition in narrowing])
    cursor = await connection.execute(SELECT + narrowed + OLDEST_FIRST, [*values, query.limit])
    return [_entries.decode(str(text)) for (text,) in await cursor.fetchall()]
