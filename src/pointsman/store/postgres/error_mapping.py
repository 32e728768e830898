"""Maps errors of PostgreSQL to errors of the store, and decides which are temporary."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors

from pointsman.errors import PointsmanError
from pointsman.store.errors import (
    StoreCrowded,
    StoreDamaged,
    StoreFailed,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
    StoreUnreachable,
    UnstorableValue,
)

SHUT: Final = ("57P01", "57P02", "57P03", "57P05")
"""The server is going down, has crashed, is not up yet, or ended an idle session."""
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
    said = str(why)
    return next((state for words, state in REFUSALS if "FATAL" in said and words in said), "")


def is_lost(why: psycopg.Error) -> bool:
    """Return whether the outcome is unknown, because the server or the connection to it is gone."""
    state = state_of(why)
    return state.startswith("08") or state in SHUT or (isinstance(why, psycopg.OperationalError) and not state)


def is_crowded(why: psycopg.Error) -> bool:
    return state_of(why) == "53300"


def is_undone(why: psycopg.Error) -> bool:
    """Return whether the server rolled back only because of concurrent transactions."""
    return isinstance(why, errors.SerializationFailure | errors.DeadlockDetected)


def fault(why: psycopg.Error | UnicodeEncodeError, shown: str) -> PointsmanError:
    """Return the store error for a driver error. `shown` is the address without a password."""
    if isinstance(why, UnicodeEncodeError):
        return UnstorableValue("a text cannot be stored: it holds half a character (a lone surrogate)")
    message = f"{shown}: {first_line(why)}"
    state = state_of(why)
    kind, hint = next(((kind, hint) for begin, kind, hint in FAULTS if state.startswith(begin)), (StoreFailed, ""))
    if is_lost(why):
        kind, hint = StoreUnreachable, "Is the server up? What was acknowledged before is safe."
    elif not state and isinstance(why, psycopg.DataError):
        kind, hint = UnstorableValue, "PostgreSQL's texts cannot hold the character NUL."
    return kind(message, hint=hint)


FAULTS: Final[tuple[tuple[str, type[PointsmanError], str], ...]] = (
    ("53100", StoreFull, "Make room on the server's disk; nothing needs to be restarted."),
    ("53", StoreCrowded, "Raise max_connections, or let fewer processes use the server."),
    ("25006", StoreReadOnly, "The server is a standby, or default_transaction_read_only is on: write to the primary."),
    ("42501", StoreReadOnly, "Let this user write, and create tables where they are missing."),
    ("3D000", StoreMissing, "Create the database and its user: createuser NAME, createdb NAME."),
    ("3F000", StoreMissing, "Its schema is gone: restore a backup, or open the store anew."),
    ("42P01", StoreMissing, "Its tables are gone: restore a backup, or open the store anew."),
    ("28", StoreUnreachable, "Check user and password, and what pg_hba.conf allows."),
    ("55P03", StoreLocked, "Another session holds it for too long: pg_stat_activity tells which."),
    ("57014", StoreLocked, "It took longer than statement_timeout allows."),
    ("40", StoreLocked, "Others write the same at the same time: try again."),
    ("XX00", StoreDamaged, "Restore a backup; `pointsman verify` lists what is damaged."),
    ("54", UnstorableValue, "Names and keys must be shorter than 2 KB."),
    ("22", UnstorableValue, "The value is not one that PostgreSQL can hold."),
)
"""By prefix of the SQLSTATE; the first match counts."""


def first_line(why: psycopg.Error) -> str:
    return (why.diag.message_primary or str(why)).strip().partition("\n")[0] or type(why).__name__
