"""Database work that is written once for every SQL store.

    work ── yield step ──▶ store executes it ── result ──▶ work ── … ──▶ return value

A work is a generator: it yields statements and receives their results, and does no IO itself. SQLite runs it in its
writer thread or in a reader thread, PostgreSQL on an asynchronous connection. Statements mark parameters by `%s`. What
differs between the stores is a text or a method of the `SqlDialect`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, LiteralString, NamedTuple, Protocol, TypeAlias, TypeVar

from pointsman.store.compression import VERIFY, Form, blobs_behind, unpack
from pointsman.store.errors import StoreDamaged
from pointsman.store.records import InboxQuery, Summary
from pointsman.values import ExecutionId

T = TypeVar("T")
NO_LIMIT: Final = 1 << 62
"""For `LIMIT`: every row."""


class Statement(NamedTuple):
    """One statement and the values of its parameters."""

    text: LiteralString
    values: Sequence[object] = ()


class Many(NamedTuple):
    """One statement, executed once for each row of values. Returns nothing."""

    text: LiteralString
    rows: Sequence[Sequence[object]]


class Batch(NamedTuple):
    """Statements whose results are not needed, sent in one round trip if the store has round trips."""

    statements: Sequence[Statement]


class Lock(NamedTuple):
    """A lock by name: no other transaction acquires it until this one ends."""

    names: tuple[str, ...]


class KeepBlobs(NamedTuple):
    """Store contents by their hashes, as used by an execution."""

    execution: ExecutionId
    blobs: Mapping[bytes, bytes]


class Native(NamedTuple):
    """A call with the connection of the store; only a dialect yields it. Its answer is the one value of the result."""

    call: Callable[[Any], object]


Step: TypeAlias = Statement | Many | Batch | Lock | KeepBlobs | Native


class Result(NamedTuple):
    """The rows that a statement returned, and how many it changed."""

    rows: Sequence[tuple[Any, ...]] = ()
    changed: int = 0


NO_RESULT: Final = Result()
Work: TypeAlias = Generator[Step, Result, T]


class MemoryRow(NamedTuple):
    """A row of the table of remembered values."""

    scope: str
    namespace: str
    key: str
    data: bytes
    changed: float
    expires: float | None
    text: str | None
    """The searchable text; None: the value is not searched."""


class SqlDialect(Protocol):
    """The differences between the SQL stores."""

    put_entry: LiteralString
    """Insert or replace (kind, key, value) under a version that was never given before, and return it."""
    workflow_fields: LiteralString
    """A JSON array of `enabled`, `description`, `tags`, `name` of the document in the column `native`."""
    awaits: LiteralString
    """The condition that an execution waits for the event of one name."""
    dearest: LiteralString
    """Beside `max(amount)`: the execution that has it."""
    vector_length: LiteralString
    """How many numbers the column `v.vector` has."""
    for_share: LiteralString
    """After a SELECT: the rows stay as they are until the transaction ends."""

    def put_summary(self, summary: Summary, seq: int | None) -> Work[None]:
        """Insert or replace a summary, unless the journal of its execution has rows after `seq`."""
        ...

    def select_gates(self, query: InboxQuery) -> Statement:
        """One page of open gates as JSON, oldest first."""
        ...

    def search(
        self, words: Sequence[str], scope: str, namespace: str, *, limit: int, within: str, at: float
    ) -> Statement:
        """Keys and values with any of these words, the most relevant first. No word is an operator."""
        ...

    def put_values(self, rows: Sequence[MemoryRow], then: Sequence[Statement] = ()) -> Work[None]:
        """Insert or replace remembered values, and execute some statements after that."""
        ...

    def vector(self, numbers: array[float]) -> object:
        """Return the value of a column for a vector."""
        ...

    def similarity(self, numbers: array[float]) -> Work[tuple[LiteralString, Sequence[object]]]:
        """Return the expression of the cosine of `v.vector` with this vector, and the values of its parameters."""
        ...


class Database(Protocol):
    """Runs works. They may be started again, so they come as functions that return a new one."""

    @property
    def dialect(self) -> SqlDialect: ...

    async def read(self, work: Callable[[], Work[T]], *, brief: bool = False) -> T:
        """Run a work that only reads, without a transaction around its statements. `brief`: it finds a few short rows
        by their keys."""
        ...

    async def write(self, work: Callable[[], Work[T]], *, repeatable: bool = True, in_order: bool = False) -> T:
        """Run a work in one transaction. `repeatable`: it may be done again where a connection broke and no answer
        tells whether it was committed; otherwise `StoreUnreachable` is raised then. Works that are `in_order` run in
        the order in which this process asked for them."""
        ...


def first(text: LiteralString, *values: object) -> Work[tuple[Any, ...] | None]:
    """Return the first row."""
    result = yield Statement(text, values)
    return result.rows[0] if result.rows else None


def count(text: LiteralString, *values: object) -> Work[int]:
    """Return the number that an aggregate has."""
    result = yield Statement(text, values)
    return int(result.rows[0][0])


def marks(count: int) -> LiteralString:
    """Return parameters for a list: `%s, %s`."""
    each: list[LiteralString] = ["%s" for _ in range(count)]
    return ", ".join(each)


def opened(form: int, data: bytes) -> Work[bytes]:
    """Return the plain bytes of a column, with the contents that it refers to."""
    contents: dict[bytes, bytes] = {}
    for digest in blobs_behind(form, data):
        content = yield from find_content(digest)
        if content is None:
            raise StoreDamaged(f"the blob {digest.hex()} is missing", hint="Restore a backup.")
        contents[digest] = content
    return unpack(form, data, contents.__getitem__)


def find_content(digest: bytes) -> Work[bytes | None]:
    """Return the plain content of a blob; None where there is none."""
    row = yield from first("SELECT form, data FROM blobs WHERE hash = %s", digest)
    return None if row is None else plain_content(digest, *row)


def plain_content(digest: bytes, form: int, data: bytes) -> bytes:
    """Return the content of a stored blob. Raises `StoreDamaged`."""
    if form not in (Form.PLAIN, Form.ZSTD):
        raise StoreDamaged(f"the blob {digest.hex()} refers to another one", hint=VERIFY)
    return unpack(form, data, lambda _: b"")
