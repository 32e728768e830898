"""Errors of stores: by the caller, by the operator, and outages. No error leaves a partial row behind."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from pointsman.errors import CallerError, OperatorError, Outage


class JournalMoved(CallerError):
    """Another writer appended first. Nothing was written; read the rows again and decide again."""

    code: ClassVar[str] = "journal-moved"


class SessionMoved(CallerError):
    """Another turn of the conversation was saved first. Load it again; nothing was written."""

    code: ClassVar[str] = "session-moved"


class SessionClosed(CallerError):
    """The conversation has ended. Reopen it before adding a turn."""

    code: ClassVar[str] = "session-closed"


class EntryMoved(CallerError):
    """Another writer changed the entry first. Nothing was written; read it again."""

    code: ClassVar[str] = "entry-moved"


class RevisionMoved(CallerError):
    """The workflow was changed since it was read. Nothing was written."""

    code: ClassVar[str] = "revision-moved"

    @classmethod
    def of(cls, workflow: str, revision: int) -> RevisionMoved:
        """Return the error; `revision` is the present one, 0: there is none."""
        now = f"has been changed: its revision is {revision}" if revision else "does not exist"
        return cls(f"{workflow!r} {now}", hint="Read it again, and apply your change to that revision.")


class MemoryNotAList(CallerError):
    """Something was appended to a remembered value that is not a list. It stays as it is."""

    code: ClassVar[str] = "memory-not-a-list"


class MemoryFull(CallerError):
    """The quota of the memory is reached. Nothing was changed."""

    code: ClassVar[str] = "memory-full"


class UnstorableValue(CallerError):
    """Decoding would not return the value unchanged: NaN, infinity, a lone surrogate, or too deep nesting; or NUL in a
    summary."""

    code: ClassVar[str] = "unstorable-value"


class StoreClosed(CallerError):
    """The store was closed before this call."""

    code: ClassVar[str] = "store-closed"


class StoreUnknown(OperatorError):
    """No store is installed for this kind of address."""

    code: ClassVar[str] = "store-unknown"


class StoreFailed(OperatorError):
    """The database under the store failed. Acknowledged writes are safe."""

    code: ClassVar[str] = "store-failed"


class StoreNewer(StoreFailed):
    """A newer version of Pointsman wrote this store."""

    code: ClassVar[str] = "store-newer"


class StoreForeign(StoreFailed):
    """The file is not a store of Pointsman."""

    code: ClassVar[str] = "store-foreign"


class StoreMissing(StoreFailed):
    """The file, or its directory, is not where it should be."""

    code: ClassVar[str] = "store-missing"


class StoreLocked(StoreFailed, Outage):
    """Another process has locked the store for too long."""

    code: ClassVar[str] = "store-locked"


class StoreUnreachable(StoreFailed, Outage):
    """The server of the store does not answer, or refuses the login. Writing resumes when it accepts again."""

    code: ClassVar[str] = "store-unreachable"


class StoreOverloaded(StoreFailed, Outage):
    """The server of the store has no free connection or memory."""

    code: ClassVar[str] = "store-overloaded"


class VectorsDiffer(OperatorError):
    """A model of embeddings returns vectors of another length than the stored ones: they cannot be compared."""

    code: ClassVar[str] = "memory-vectors-differ"


class LeaderExists(OperatorError):
    """The store has a leader: one process recovers executions, fires timers and starts schedules."""

    code: ClassVar[str] = "leader-exists"


class LeaderSuperseded(OperatorError):
    """Another process became the leader. This opening of the store writes nothing any more."""

    code: ClassVar[str] = "leader-superseded"


class StoreFull(StoreFailed, Outage):
    """The disk is full. Reading works; writing resumes when there is space."""

    code: ClassVar[str] = "store-full"


class StoreReadOnly(StoreFailed, Outage):
    """The file or its directory cannot be written."""

    code: ClassVar[str] = "store-read-only"


class StoreForbidden(StoreReadOnly):
    """The user of the store lacks a right on the database, the schema or a table."""

    code: ClassVar[str] = "store-forbidden"


class StoreDamaged(StoreFailed):
    """The file contradicts itself."""

    code: ClassVar[str] = "store-damaged"


class RowUnreadable(StoreFailed):
    """A stored row has a shape that this version does not know."""

    code: ClassVar[str] = "row-unreadable"


_PASSWORD: Final = re.compile(r"((?://|:)[^:/?#@]*):.*@")
"""Up to the last @, because a password may contain one; masking too much does no harm."""
_NAMED: Final = re.compile(r"(password=)[^&\s]*", re.IGNORECASE)


def masked_address(url: str) -> str:
    """Return the address without passwords."""
    return _NAMED.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))
