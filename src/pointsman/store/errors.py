"""What can go wrong with a store, sorted by who must act. No fault leaves half a row behind."""

from __future__ import annotations

from typing import ClassVar

from pointsman.errors import CallerError, OperatorError, Outage


class JournalMoved(CallerError):
    """Someone else appended first. Read again and decide again; nothing was written."""

    code: ClassVar[str] = "journal-moved"


class SessionMoved(CallerError):
    """Another turn of the conversation was saved first. Load it again; nothing was written."""

    code: ClassVar[str] = "session-moved"


class SessionClosed(CallerError):
    """The conversation has ended. Reopen it before saying more."""

    code: ClassVar[str] = "session-closed"


class EntryMoved(CallerError):
    """Someone else changed the entry first. Read it again; nothing was written."""

    code: ClassVar[str] = "entry-moved"


class RevisionMoved(CallerError):
    """The workflow was changed since it was read. Nothing was written."""

    code: ClassVar[str] = "revision-moved"

    @classmethod
    def of(cls, workflow: str, revision: int) -> RevisionMoved:
        """`revision`: the one it is at; 0: there is none."""
        now = f"is at revision {revision} now" if revision else "is not there"
        return cls(f"{workflow!r} {now}", hint="Read it again, and change that.")


class MemoryNotAList(CallerError):
    """Something was appended to a remembered value that is not a list. It stays as it is."""

    code: ClassVar[str] = "memory-not-a-list"


class MemoryFull(CallerError):
    """As much is remembered as may be. Nothing was changed."""

    code: ClassVar[str] = "memory-full"


class UnstorableValue(CallerError):
    """A value would not come back as it is: NaN, infinity, half a character, or nesting too deep to read."""

    code: ClassVar[str] = "unstorable-value"


class StoreClosed(CallerError):
    """The store was closed before this call."""

    code: ClassVar[str] = "store-closed"


class StoreUnknown(OperatorError):
    """No store is installed for this kind of address."""

    code: ClassVar[str] = "store-unknown"


class StoreFailed(OperatorError):
    """The store could not do it, for a reason outside. What was acknowledged before is safe."""

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
    """Another process holds the store for too long."""

    code: ClassVar[str] = "store-locked"


class StoreUnreachable(StoreFailed, Outage):
    """The server of the store does not answer, or does not let us in. Writing goes on as soon as it does."""

    code: ClassVar[str] = "store-unreachable"


class StoreCrowded(StoreFailed, Outage):
    """The server of the store has no connection or memory left for us."""

    code: ClassVar[str] = "store-crowded"


class VectorsDiffer(OperatorError):
    """A model of embeddings gives other vectors than those that are kept under its name: they cannot be compared."""

    code: ClassVar[str] = "memory-vectors-differ"


class LeaderExists(OperatorError):
    """The store has a keeper already: one process recovers, wakes and schedules for all."""

    code: ClassVar[str] = "store-kept"


class LeaderSuperseded(OperatorError):
    """Another process became the keeper. Nothing more is written through this opening of the store."""

    code: ClassVar[str] = "keeper-superseded"


class StoreFull(StoreFailed, Outage):
    """There is no room left. Reading goes on; writing goes on as soon as there is room."""

    code: ClassVar[str] = "store-full"


class StoreReadOnly(StoreFailed, Outage):
    """The file or its directory cannot be written."""

    code: ClassVar[str] = "store-read-only"


class StoreDamaged(StoreFailed):
    """The file contradicts itself."""

    code: ClassVar[str] = "store-damaged"


class RowUnreadable(StoreFailed):
    """A stored row has a shape this version does not know."""

    code: ClassVar[str] = "row-unreadable"
