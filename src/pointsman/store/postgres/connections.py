"""Connections to one PostgreSQL database: its address, its errors, a few pooled connections, and separate ones.

    postgresql://user:password@host:5432/database?schema=name&patience=30&sslmode=require

Everything except `schema` and `patience` belongs to libpq: URL parameters, `PG*` variables, the password file.

A connection that broke is dropped, and its work is repeated on another one until the configured patience ends: reads
and writes wait for a server that restarts.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from pointsman.errors import PointsmanError
from pointsman.store.coordination import superseded
from pointsman.store.errors import (
    LeaderSuperseded,
    StoreClosed,
    StoreDamaged,
    StoreFailed,
    StoreForbidden,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreOverloaded,
    StoreReadOnly,
    StoreUnknown,
    StoreUnreachable,
    UnstorableValue,
    masked_address,
)

SCHEMA: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
PATIENCE_S: Final = 15.0
"""How long to wait for a server that cannot be reached."""
OURS: Final = frozenset({"schema", "patience"})
PATIENCE: Final = re.compile(r"\d{1,4}(\.\d{1,3})?")
DEFAULTS: Final = {
    "application_name": "pointsman",
    "connect_timeout": "10",
    # A server that disappeared silently is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Connection parameters for the driver, and the address as shown to people."""

    conninfo: str
    schema: str
    """Schema, created if missing; empty: the server's default."""
    shown: str
    patience_s: float = PATIENCE_S
    """How long each call waits for a server that went away."""

    def within(self, schema: str) -> str:
        """Return the parameters of a connection that sees only this schema."""
        options = conninfo_to_dict(self.conninfo).get("options") or ""
        path = '"' + schema.replace('"', '""') + '"'
        escaped = re.sub(r"([\\\s])", r"\\\1", path)
        return make_conninfo(self.conninfo, options=f"{options} -c search_path={escaped}".strip())


def address_of(url: str) -> Address:
    """Parse an address. Raises `StoreUnknown`, without the password, for an invalid one."""
    address = masked_address(url).partition("?")[0]
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        query = urlencode([pair for pair in pairs if pair[0] not in OURS], quote_via=quote)
        # A value that is not a number is rejected here, not at the first connection.
        _ = parts.port
        options = conninfo_to_dict(urlunsplit(("postgresql", parts.netloc, parts.path, query, "")))
    except (ValueError, psycopg.Error):
        # The parser's message may quote its input, including the password.
        raise StoreUnknown(
            f"{address!r} is not the address of a PostgreSQL store",
            hint="Write postgresql://user:password@host/database; signs such as @ and / in a password as %40 and %2F.",
        ) from None
    own = dict(pairs)
    schema, patience = own.get("schema", ""), own.get("patience", str(PATIENCE_S))
    if schema and SCHEMA.fullmatch(schema) is None:
        raise StoreUnknown(
            f"{schema!r} is not a valid schema name", hint="Use letters, digits and _, beginning with a letter."
        )
    if PATIENCE.fullmatch(patience) is None:
        raise StoreUnknown(f"{patience!r} is not a number of seconds", hint="For half a minute write …?patience=30.")
    # An empty value has its own meaning: `host=` differs from no host.
    conninfo = make_conninfo("", **{**DEFAULTS, **{key: value for key, value in options.items() if value}})
    return Address(conninfo, schema, address, float(patience))


T = TypeVar("T")
Connection: TypeAlias = psycopg.AsyncConnection[TupleRow]
Work: TypeAlias = Callable[[Connection], Awaitable[T]]

AT_ONCE: Final = 4
"""Connections for reads and for writes other than rows: one long read must not block the others."""
WAIT_S: Final = 0.05
STATEMENT_S_MAX: Final = 10.0
"""Time limit of a statement that writes rows, effects or claims."""
READ_S_MAX: Final = 60.0
"""Time limit of a query, or of another transaction."""
LIMITS: Final = (
    "-c statement_timeout=60s -c idle_in_transaction_session_timeout=15s"
    " -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3"
)
"""Limits that the server applies to each session, so that no lock of a process that stopped or vanished stays. Options
in the address replace them."""
WAIT_S_MAX: Final = 1.0
UNDONE_MAX: Final = 20
FENCE: Final = "SELECT 1 FROM leader WHERE epoch = %s FOR SHARE"


class Fence:
    """The epoch that every write of this opened store checks once it is the leader."""

    def __init__(self) -> None:
        self.epoch: int | None = None
        self._superseded = False
        self.on_loss: Callable[[], None] = lambda: None
        """Called when another process has become the leader."""

    def check(self) -> None:
        if self._superseded:
            raise superseded(self.epoch or 0)

    def step_down(self) -> None:
        """Write as a process that does not lead, from here on."""
        self.epoch, self._superseded = None, False

    def broken(self) -> LeaderSuperseded:
        """Record that another process raised the epoch: nothing is written through this opened store any more."""
        if not self._superseded:
            self._superseded = True
            self.on_loss()
        return superseded(self.epoch or 0)


class Patience:
    """Retry policy: how long to retry, with growing pauses."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        """`seconds` is asked before each attempt: a process that ends becomes less patient."""
        self._seconds = seconds
        self._began = time.monotonic()
        self._wait = WAIT_S
        self._undone = 0

    async def outlasts(self, why: psycopg.Error) -> bool:
        """Return whether to retry after this error; pauses first."""
        if is_undone(why):
            self._undone += 1
            return self._undone <= UNDONE_MAX
        if not (is_lost(why) or is_crowded(why)) or time.monotonic() - self._began >= self._seconds():
            return False
        await asyncio.sleep(self._wait)
        self._wait = min(self._wait * 2, WAIT_S_MAX)
        return True


@contextmanager
def limited(connection: Connection, seconds: float | None) -> Generator[None, None, None]:
    """Break the connection if the block takes longer: a server or a network that never answers must not hold it.

    The driver waits for the answer of a cancelled statement, so the socket is shut down instead.
    """
    timer = None
    if seconds is not None:
        timer = asyncio.get_running_loop().call_later(seconds, _shut_down, connection)
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


def _shut_down(connection: Connection) -> None:
    if not connection.closed:
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as its_own, suppress(OSError):
            its_own.shutdown(socket.SHUT_RDWR)


class Connections:
    """Opens, lends and closes connections. Belongs to one event loop."""

    def __init__(self, conninfo: str, address: str, *, patience_s: float) -> None:
        self.shown = address
        self.fence = Fence()
        self.patience_s = patience_s
        # All sessions of this opened store share a name, by which a process that must end them all finds them.
        named = conninfo_to_dict(conninfo).get("application_name") or f"pointsman {secrets.token_hex(8)}"
        options = f"{LIMITS} {conninfo_to_dict(conninfo).get('options') or ''}".strip()
        self._conninfo = make_conninfo(conninfo, application_name=str(named), options=options)
        self._idle: list[Connection] = []
        self._places = asyncio.Semaphore(AT_ONCE)
        self._closed = False

    def check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"the store {self.shown!r} was closed")

    async def open(self) -> Connection:
        """Open a separate connection in autocommit mode. Raises the driver's errors."""
        return await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)

    def patience(self) -> Patience:
        return Patience(lambda: self.patience_s)

    async def read(self, work: Work[T], *, limit_s: float | None = READ_S_MAX) -> T:
        """Run a query; repeat it if the connection breaks, or if no answer comes within the limit."""
        self.check_open()
        patience = self.patience()
        while True:
            try:
                return await self._lent(work, limit_s)
            except UnicodeEncodeError as why:
                raise fault(why, self.shown) from why
            except psycopg.Error as why:
                if not await patience.outlasts(why):
                    raise fault(why, self.shown) from why

    async def write(self, work: Work[T], *, repeatable: bool = True) -> T:
        """Run a transaction behind the fence.

        If it is unknown whether a transaction that is not `repeatable` was committed, it is not retried:
        `StoreUnreachable` is raised.
        """
        self.check_open()
        self.fence.check()
        patience = self.patience()
        transaction = FencedTransaction(work, self.fence)
        while True:
            try:
                return await self._lent(transaction.run, READ_S_MAX)
            except UnicodeEncodeError as why:
                raise fault(why, self.shown) from why
            except psycopg.Error as why:
                unknown = transaction.began and not repeatable and is_lost(why)
                if unknown or not await patience.outlasts(why):
                    raise fault(why, self.shown) from why

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    async def _lent(self, work: Work[T], limit_s: float | None) -> T:
        async with self._places:
            connection = self._idle.pop() if self._idle else await self.open()
            try:
                with limited(connection, limit_s):
                    return await work(connection)
            finally:
                # A connection whose work was cancelled is not idle.
                idle = connection.info.transaction_status == TransactionStatus.IDLE
                if self._closed or connection.closed or not idle:
                    await connection.close()
                else:
                    self._idle.append(connection)


class FencedTransaction(Generic[T]):
    """Work between BEGIN and COMMIT; `began`: whether the server may have executed a part of it."""

    def __init__(self, work: Work[T], fence: Fence) -> None:
        self.began = False
        self._work = work
        self._fence = fence

    async def run(self, connection: Connection) -> T:
        self.began = False
        async with connection.transaction():
            self.began = True
            epoch = self._fence.epoch
            if epoch is not None and await (await connection.execute(FENCE, (epoch,))).fetchone() is None:
                raise self._fence.broken()
            return await self._work(connection)


async def lock(connection: Connection, *names: str) -> None:
    """Wait until no other transaction, of any process, holds the lock of these names; hold it until this one ends."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (repr(names),))


SHUT: Final = ("57P01", "57P02", "57P03", "57P05", "25P03")
"""The server is going down, has crashed, is not up yet, or ended a session that was idle or idle in a transaction."""
REFUSALS: Final = (
    ("too many connections", "53300"),
    ("too many clients", "53300"),
    ("connection slots", "53300"),
    ("authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("no pg_hba.conf entry", "28000"),
    ("not permitted to log in", "28000"),
    ("does not exist", "3D000"),
)
"""For a refused connection the driver passes on the server's message, not its code."""


def state_of(why: psycopg.Error) -> str:
    """Return the SQLSTATE; empty for an error of the driver itself, such as a broken connection."""
    if why.sqlstate is not None or not isinstance(why, psycopg.OperationalError):
        return why.sqlstate or ""
    message = str(why)
    return next((state for words, state in REFUSALS if "FATAL" in message and words in message), "")


def is_lost(why: psycopg.Error) -> bool:
    """Return whether the outcome is unknown, because the server or the connection to it is gone."""
    state = state_of(why)
    return state.startswith("08") or state in SHUT or (isinstance(why, psycopg.OperationalError) and not state)


def is_crowded(why: psycopg.Error) -> bool:
    return state_of(why) == "53300"


def is_undone(why: psycopg.Error) -> bool:
    """Return whether the server rolled back only because of concurrent transactions."""
    return isinstance(why, errors.SerializationFailure | errors.DeadlockDetected)


def fault(why: psycopg.Error | UnicodeEncodeError, address: str) -> PointsmanError:
    """Return the store error for a driver error. `shown` is the address without a password."""
    if isinstance(why, UnicodeEncodeError):
        return UnstorableValue("a text cannot be stored: it holds half a character (a lone surrogate)")
    message = f"{address}: {first_line(why)}"
    state = state_of(why)
    kind, hint = next(((kind, hint) for begin, kind, hint in FAULTS if state.startswith(begin)), (StoreFailed, ""))
    if is_lost(why):
        kind, hint = StoreUnreachable, "Check that the server runs. Acknowledged writes are safe."
    elif not state and isinstance(why, psycopg.DataError):
        kind, hint = UnstorableValue, "PostgreSQL's texts cannot hold the character NUL."
    return kind(message, hint=hint)


FAULTS: Final[tuple[tuple[str, type[PointsmanError], str], ...]] = (
    ("53100", StoreFull, "Free space on the server's disk; no restart is needed."),
    ("53", StoreOverloaded, "Raise max_connections, or let fewer processes use the server."),
    ("25006", StoreReadOnly, "The server is a standby, or default_transaction_read_only is on: write to the primary."),
    ("42501", StoreForbidden, "Grant this user the rights that the guide to PostgreSQL lists."),
    ("3D000", StoreMissing, "Create the database and its user: createuser NAME, createdb NAME."),
    ("3F000", StoreMissing, "Its schema no longer exists: restore a backup, or open the store anew."),
    ("42P01", StoreMissing, "Its tables no longer exist: restore a backup, or open the store anew."),
    ("28", StoreUnreachable, "Check user and password, and what pg_hba.conf allows."),
    ("55P03", StoreLocked, "Another session holds a lock for too long: pg_stat_activity shows which."),
    ("57014", StoreLocked, "It took longer than statement_timeout allows."),
    ("40", StoreLocked, "Other processes write the same data at the same time: try again."),
    ("XX00", StoreDamaged, "Restore a backup; `pointsman verify` lists what is damaged."),
    ("54", UnstorableValue, "Names and keys must be shorter than 2 KB."),
    ("22", UnstorableValue, "PostgreSQL cannot store this value."),
)
"""By prefix of the SQLSTATE; the first match counts."""


def first_line(why: psycopg.Error) -> str:
    return (why.diag.message_primary or str(why)).strip().partition("\n")[0] or type(why).__name__
