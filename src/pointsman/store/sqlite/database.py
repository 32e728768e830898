"""Runs the work of the SQL stores on SQLite: reads in a reader thread, writes in a transaction of the writer."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import itemgetter, mul
from typing import Any, Final, LiteralString, TypeVar, assert_never, cast

import msgspec

from pointsman.extras import is_installed
from pointsman.store.records import InboxQuery, Summary
from pointsman.store.remembered_values import folded
from pointsman.store.sql.executions import COLUMNS, PUT_ANSWER, SUMMARY_COLUMNS, answer_values, summary_values
from pointsman.store.sql.work import (
    NO_RESULT,
    Batch,
    KeepBlobs,
    Lock,
    Many,
    MemoryRow,
    Native,
    Result,
    Statement,
    Step,
    Work,
    find_content,
    marks,
)
from pointsman.store.sqlite.connection import ReaderPool
from pointsman.store.sqlite.writer import Transaction, WriterThread, hold_blob, read_head

T = TypeVar("T")

NAMES: Final = tuple(column.name for column in SUMMARY_COLUMNS)
PUT_SUMMARY: Final = f"INSERT OR REPLACE INTO summaries ({COLUMNS}) VALUES ({', '.join('?' * len(NAMES))})"
SPENT: Final = ("updated", "tokens", "model_calls", "tool_calls", "cost_usd")
OTHERS: Final = tuple(name for name in NAMES if name not in {"execution", *SPENT})
UPDATE_SPENT: Final = (
    f"UPDATE summaries SET ({', '.join(SPENT)}) = ({', '.join('?' * len(SPENT))})"
    f" WHERE execution = ? AND {' AND '.join(f'{name} IS ?' for name in OTHERS)}"
)
"""Where only time and cost changed: replacing the row would write a page of every index into the log."""
spent_values: Final = itemgetter(*map(NAMES.index, (*SPENT, "execution", *OTHERS)))
"""Select the values of `UPDATE_SPENT` from those of `SUMMARY_COLUMNS`."""
PUT_GATE: Final = "INSERT INTO gates (opened, execution, gate, workflow, data) VALUES (?, ?, ?, ?, ?)"
PUT_PERSON: Final = "INSERT OR IGNORE INTO gate_people (who, opened, execution, gate) VALUES (?, ?, ?, ?)"
PUT_VALUE: Final = """
    INSERT INTO memory (scope, namespace, key, value, changed, expires) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (scope, namespace, key) DO UPDATE
    SET value = excluded.value, changed = excluded.changed, expires = excluded.expires RETURNING no
"""
SEARCH: Final = """
    SELECT m.key, m.value FROM memory_words AS w JOIN memory AS m ON m.no = w.rowid
    WHERE w.words MATCH %s AND m.scope = %s AND m.namespace = %s AND substr(m.key, 1, %s) = %s
        AND (m.expires IS NULL OR m.expires > %s)
    ORDER BY w.rank, m.key LIMIT %s
"""


class SqliteDatabase:
    """`Database` of one file."""

    def __init__(self, writer: WriterThread, reader: ReaderPool) -> None:
        self._submit = writer.submit
        self._reader = reader
        self.dialect = SqliteDialect()

    async def read(self, work: Callable[[], Work[T]], *, brief: bool = False) -> T:
        read = self._reader.run_brief if brief else self._reader.run
        return await read(lambda connection: run(work(), connection))

    async def write(self, work: Callable[[], Work[T]], *, repeatable: bool = True, in_order: bool = False) -> T:
        # The writer applies requests in order, and none is lost on the way.
        return await self._submit(lambda transaction: run(work(), transaction.connection, transaction))


class SqliteBlobs:
    """`Blobs` in the table that large rows use too: the same content is kept once."""

    def __init__(self, writer: WriterThread, reader: ReaderPool) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def put(self, content: bytes) -> str:
        return (await self._submit(lambda transaction: hold_blob(transaction.connection, content))).hex()

    async def get(self, digest: str) -> bytes | None:
        return await self._read(lambda connection: run(find_content(bytes.fromhex(digest)), connection))


def run(work: Work[T], connection: sqlite3.Connection, transaction: Transaction | None = None) -> T:
    """Run a work to its end. Raises the errors of its statements."""
    result = NO_RESULT
    try:
        step = next(work)
        while True:
            result = execute(step, connection, transaction)
            step = work.send(result)
    except StopIteration as end:
        return cast("T", end.value)


def execute(step: Step, connection: sqlite3.Connection, transaction: Transaction | None) -> Result:
    match step:
        case Statement():
            cursor = connection.execute(marked(step.text), step.values)
            rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
            return Result(rows, cursor.rowcount)
        case Many():
            connection.executemany(marked(step.text), step.rows)
        case Batch():
            for statement in step.statements:
                execute(statement, connection, transaction)
        case KeepBlobs():
            assert transaction is not None, "contents are kept by works that write"
            transaction.keep_blobs(step.execution, step.blobs)
        case Native():
            return Result([(step.call(connection),)])
        case Lock():
            pass  # SQLite has only one writer.
        case _:
            assert_never(step)
    return NO_RESULT


@cache
def marked(text: LiteralString) -> str:
    """Return the statement with this driver's parameter marks."""
    return text.replace("%s", "?")


class SqliteDialect:
    """`SqlDialect` of SQLite."""

    put_entry: LiteralString = "INSERT OR REPLACE INTO entries (kind, key, value) VALUES (%s, %s, %s) RETURNING version"
    workflow_fields: LiteralString = (
        "json_extract(CAST(native AS TEXT), '$.enabled', '$.description', '$.tags', '$.name')"
    )
    awaits: LiteralString = "execution IN (SELECT execution FROM awaited WHERE name = %s)"
    dearest: LiteralString = "execution"  # Beside max() the other columns are of the row that has it.
    vector_length: LiteralString = "length(v.vector) / 4"
    for_share: LiteralString = ""

    def put_summary(self, summary: Summary, seq: int | None) -> Work[None]:
        def put(connection: sqlite3.Connection) -> None:
            if seq is None or read_head(connection, summary.execution).seq <= seq:
                put_summary(connection, summary)

        yield Native(put)

    def select_gates(self, query: InboxQuery) -> Statement:
        narrowing: list[LiteralString] = ["1 = 1"]
        values: list[object] = []
        if query.asked is not None:
            condition: LiteralString = (
                f"SELECT opened, execution, gate FROM gate_people WHERE who IN ({marks(len(query.asked))})"
            )
            narrowing.append(f"(g.opened, g.execution, g.gate) IN ({condition})")
            values.extend(query.asked)
        if query.without is not None:
            narrowing.append(
                "NOT EXISTS (SELECT 1 FROM gate_people AS p WHERE p.who = %s AND p.opened = g.opened"
                " AND p.execution = g.execution AND p.gate = g.gate)"
            )
            values.append(query.without)
        if query.workflow is not None:
            narrowing.append("g.workflow = %s")
            values.append(query.workflow)
        if query.after is not None:
            narrowing.append("(g.opened, g.execution, g.gate) > (%s, %s, %s)")
            values.extend(query.after)
        where: LiteralString = " AND ".join(narrowing)
        return Statement(
            f"SELECT g.data FROM gates AS g WHERE {where} ORDER BY g.opened, g.execution, g.gate LIMIT %s",
            (*values, query.limit),
        )

    def search(
        self, words: Sequence[str], scope: str, namespace: str, *, limit: int, within: str, at: float
    ) -> Statement:
        # Each word is quoted, so that none is an operator of the search language.
        pattern = " OR ".join(f'"{word}"' for word in words)
        return Statement(SEARCH, (pattern, scope, namespace, len(within), within, at, limit))

    def put_values(self, rows: Sequence[MemoryRow], then: Sequence[Statement] = ()) -> Work[None]:
        for *columns, text in rows:
            written = yield Statement(PUT_VALUE, columns)
            if text is not None:
                (no,) = written.rows[0]
                yield Statement(
                    "INSERT OR REPLACE INTO memory_words (rowid, words) VALUES (%s, %s)", (no, folded(text))
                )
        if then:
            yield Batch(then)

    def vector(self, numbers: array[float]) -> object:
        return numbers.tobytes()

    def similarity(self, numbers: array[float]) -> Work[tuple[LiteralString, Sequence[object]]]:
        """By the extension `sqlite-vec` where it can be loaded; by this process otherwise, some four times slower."""
        loaded = yield Native(load_extension)
        if loaded.rows[0][0]:
            return "1 - vec_distance_cosine(v.vector, %s)", (numbers.tobytes(),)
        yield Native(partial(add_similarity, numbers))
        return "similarity(v.vector)", ()


def put_summary(connection: sqlite3.Connection, summary: Summary) -> None:
    """Insert or replace a summary, with what its execution waits for."""
    values = summary_values(summary)
    if summary.answers:
        connection.executemany(marked(PUT_ANSWER), map(answer_values, summary.answers))
    if summary.gates is None and connection.execute(UPDATE_SPENT, spent_values(values)).rowcount:
        return
    connection.execute(PUT_SUMMARY, values)
    connection.execute("DELETE FROM awaited WHERE execution = ?", (summary.execution,))
    for name in summary.awaits:
        connection.execute("INSERT INTO awaited (name, execution) VALUES (?, ?)", (name, summary.execution))
    if summary.gates is not None:
        put_gates(connection, summary)


def put_gates(connection: sqlite3.Connection, summary: Summary) -> None:
    """Replace the open gates of an execution."""
    connection.execute("DELETE FROM gates WHERE execution = ?", (summary.execution,))
    connection.execute("DELETE FROM gate_people WHERE execution = ?", (summary.execution,))
    for entry in summary.gates or ():
        place = (entry.opened, entry.execution, entry.gate)
        connection.execute(PUT_GATE, (*place, entry.workflow, msgspec.json.encode(entry)))
        connection.executemany(PUT_PERSON, [(approver, *place) for approver in entry.asked])


def add_similarity(numbers: array[float], connection: sqlite3.Connection) -> None:
    """Let a connection compare vectors with this one."""

    def similarity(data: bytes) -> float:
        # Numbers are read off the bytes as they lie: an array of its own would have to be filled first.
        return float(sum(map(mul, memoryview(data).cast("f"), numbers)))

    connection.create_function("similarity", 1, similarity)


def load_extension(connection: sqlite3.Connection) -> bool:
    """Return whether `sqlite-vec` compares. Many builds of Python load no extensions of SQLite."""
    if not hasattr(connection, "enable_load_extension") or not is_installed("embeddings"):
        return False
    statement = "SELECT 1 FROM pragma_function_list WHERE name = 'vec_distance_cosine'"
    if connection.execute(statement).fetchone() is None:
        import sqlite_vec  # An extra.

        connection.enable_load_extension(True)  # noqa: FBT003 - positional only
        try:
            sqlite_vec.load(connection)
        finally:
            connection.enable_load_extension(False)  # noqa: FBT003 - positional only
    return True
