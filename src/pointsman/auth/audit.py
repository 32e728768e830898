"""Audit log: who requested which change, when and from where, in a hash chain that reveals deleted or altered rows.

    request ─▶ a durable row in the store ─▶ the change ─▶ refused? a second row that records the refusal

A row is written before the change it describes, so no change is made without an audit entry, and a change that is then
refused, or cut off by a crash, has an entry too. Rows are entries of the store, numbered without gaps; each contains
the hash of the row before. If two processes write at once, the slower one reads the new last row and retries. Entries
that arrive while a row is being written go into the next row.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.context import Part
from pointsman.errors import OperatorError
from pointsman.ports import Clock
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved
from pointsman.values import Instant, Json

KIND: Final = "audit"
ROWS_OF_KIND: Final = 500
"""Rows per kind of entry: a kind is always read as a whole."""
ENTRIES_PER_ROW_MAX: Final = 100
TARGET_CHARS_MAX: Final = 300
FIRST: Final = sha256(b"audit").hexdigest()
GATHERED_S: Final = 0.5
"""How long outcomes of changes are collected before they are written: answers to callers do not wait for them."""
FAILED_LOGIN: Final = "failed login"
FAILED_EVERY_S: Final = 60.0
"""How long failed logins are collected before they are written, so that strangers cannot flood the log."""
ADDRESSES_MAX: Final = 20
ELSEWHERE: Final = "other addresses"
KINDS_READ_MAX: Final = 20
"""How many kinds one query reads; the answer contains the position at which to continue."""


class AuditAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One requested change, or the refusal or outcome of one."""

    at: Instant
    who: str
    entrance: str
    what: str
    """The operation: `PUT /api/workflows/{id}`, `pointsman keys add`."""
    target: str = ""
    origin: str = ""
    """The address of the client."""
    of: str = ""
    """The id of the action that was refused or that created something."""
    refused: str = ""
    """The error code of the refusal."""
    made: str = ""
    """The ids that the action `of` created, or would have created if it was refused."""


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """The actions that were requested while the previous row was written."""

    entries: tuple[AuditAction, ...] = msgspec.field(name="deeds")
    """Stored under its first name, `deeds`."""
    hash: str


class AuditEntryView(TypedDict):
    """A requested change."""

    id: str
    at: float
    who: str
    entrance: str
    """How the caller was authenticated."""
    what: str
    """The operation."""
    target: str
    """The changed thing, as the request names it."""
    origin: str
    """The address of the client."""
    refused: str | None
    """The error code of the refusal; null: it was not refused."""


class AuditPage(TypedDict):
    """Entries of the audit log, newest first."""

    entries: list[AuditEntryView]
    deeds: list[AuditEntryView]
    """Deprecated: the same as `entries`."""
    next: str | None
    """The `before` of the next page; null: this was the last."""


class AuditState(TypedDict):
    """The hash chain of the audit log."""

    rows: int
    """Number of rows; a row contains the entries of one moment."""
    hash: str
    """Hash of the last row. A copy stored elsewhere reveals whether the end of the log was cut off."""
    damage: list[str]
    """Every contradiction, one sentence each."""


class Audit:
    """Audit log of one store."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock
        self._writing = asyncio.Lock()
        self._waiting: deque[tuple[AuditAction, asyncio.Future[str]]] = deque()
        self._head: tuple[int, str] | None = None
        self._later: asyncio.Task[None] | None = None
        self._failed: Counter[str] = Counter()
        """Failed logins that are not in the log yet, by address."""
        self._failed_later: asyncio.Task[None] | None = None

    async def record_request(
        self, caller: Caller, what: str, *, target: str = "", origin: str = "", refused: str = ""
    ) -> str:
        """Record a requested change before it is made; it is durable on return. Return the id of the entry, which
        `record_refusal` and `record_outcome` take as `of`. `refused`: the error code of a request that is refused at
        once."""
        entry = AuditAction(
            at=Instant(self._clock.now()),
            who=caller.name,
            entrance=caller.entrance,
            what=what,
            target=target[:TARGET_CHARS_MAX],
            origin=origin,
            refused=refused,
        )
        return await self._add(entry)

    async def record_refusal(self, caller: Caller, what: str, of: str, code: str, *, tried: str = "") -> None:
        """Record that the action `of` was refused. `tried`: the ids that it would have created."""
        at = Instant(self._clock.now())
        await self._add(
            AuditAction(
                at=at,
                who=caller.name,
                entrance=caller.entrance,
                what=what,
                of=of,
                refused=code,
                made=tried[:TARGET_CHARS_MAX],
            )
        )

    def record_outcome(self, caller: Caller, what: str, of: str, target: str) -> None:
        """Record what the action `of` created. It is written within 0.5 s, together with others; a crash before that
        loses only this outcome."""
        at, made = Instant(self._clock.now()), target[:TARGET_CHARS_MAX]
        entry = AuditAction(at=at, who=caller.name, entrance=caller.entrance, what=what, of=of, made=made)
        self._waiting.append((entry, asyncio.get_running_loop().create_future()))
        if self._later is None or self._later.done():
            self._later = asyncio.create_task(self._write_later())

    def failed_login(self, origin: str) -> None:
        """Count a failed login: a key, token or cookie that is not valid. Failed logins within a minute are written
        together: one entry for each of up to 20 addresses, and one for all others."""
        self._failed[origin if origin in self._failed or len(self._failed) < ADDRESSES_MAX else ELSEWHERE] += 1
        if self._failed_later is None or self._failed_later.done():
            self._failed_later = asyncio.create_task(self._write_failed_later())

    async def _write_failed_later(self) -> None:
        await asyncio.sleep(FAILED_EVERY_S)
        with suppress(OperatorError):  # The store is unavailable: written with the next entry.
            await self.flush()

    def _take_failed(self) -> None:
        failed, self._failed = self._failed, Counter()
        for origin, times in failed.items():
            entry = AuditAction(
                at=Instant(self._clock.now()),
                who="",
                entrance="",
                what=FAILED_LOGIN,
                target=f"{times} times",
                origin=origin,
                refused="not-signed-in",
            )
            self._waiting.append((entry, asyncio.get_running_loop().create_future()))

    async def flush(self) -> None:
        """Write all pending actions."""
        self._take_failed()
        async with self._writing:
            while self._waiting:
                await self._write()

    async def close(self) -> None:
        """Write all pending actions as `flush` does; drop them if the store is unavailable."""
        for task in (self._later, self._failed_later):
            if task is not None:
                task.cancel()
        with suppress(OperatorError):
            await self.flush()

    async def page(
        self,
        *,
        who: str | None = None,
        what: str | None = None,
        since: float | None = None,
        until: float | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> tuple[list[AuditEntryView], str | None]:
        """Return a page of entries, newest first, and the `before` of the next page, or None on the last page. `what`
        is a substring of the operation or its target; `since` and `until` are instants, both inclusive."""
        await self.flush()
        last, _ = await self._find_head(0, FIRST)
        start = min(last, int(before) - 1) if before is not None and before.isdecimal() else last
        after, wanted = _After(), _Wanted(who, what, since, until)
        entries: list[AuditEntryView] = []
        first_kind = max(start - 1, 0) // ROWS_OF_KIND
        for kind in range(first_kind, max(first_kind - KINDS_READ_MAX, -1), -1):
            for seq, row in reversed(await self._rows(kind)):
                if seq > start:
                    after.take(row)
                    continue
                if since is not None and row.entries[-1].at < since:
                    return entries, None
                after.take(row)
                for number, entry in reversed([*enumerate(row.entries)]):
                    name = f"{seq}.{number}"
                    shown = after.view(name, entry)
                    if not entry.of and wanted.has(entry, shown["target"]):
                        entries.append(shown)
                if len(entries) >= limit:
                    return entries, str(seq) if seq > 1 else None
        through = max(first_kind - KINDS_READ_MAX + 1, 0) * ROWS_OF_KIND
        return entries, str(through + 1) if through > 0 else None

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the whole chained log, oldest first: one line of JSON per row, with row number, hash and actions."""
        await self.flush()
        kind = 0
        while rows := await self._rows(kind):
            kind += 1
            for seq, row in rows:
                line = {"row": seq, "hash": row.hash, "entries": msgspec.to_builtins(row.entries)}
                yield msgspec.json.encode(line) + b"\n"

    async def state(self) -> AuditState:
        """Return the number of rows, the last hash and the damage to the chain. Reads every row."""
        await self.flush()
        damage = await self.damage()
        last, head = await self._find_head(0, FIRST)
        return {"rows": last, "hash": head, "damage": damage}

    async def damage(self) -> list[str]:
        """Return every contradiction in the chain, one sentence each. Reads every row. A log truncated at its end looks
        intact: store its last hash elsewhere to detect that."""
        names: list[str] = []
        expected, before = 1, FIRST
        kind = 0
        while rows := await self._rows(kind):
            kind += 1
            for seq, row in rows:
                if seq != expected:
                    names.append(f"the audit log has no row {expected}")
                if row.hash != _hash(before, seq, row.entries):
                    names.append(f"row {seq} of the audit log was changed, or does not follow the row before it")
                expected, before = seq + 1, row.hash
        return names

    async def _add(self, entry: AuditAction) -> str:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, future))
        async with self._writing:
            while not future.done():
                await self._write()
        return future.result()

    async def _write(self) -> None:
        taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), ENTRIES_PER_ROW_MAX))]
        entries = tuple(entry for entry, _ in taken)
        try:
            seq = await self._append(entries)
        except BaseException:
            self._waiting.extendleft(one for one in reversed(taken) if not one[1].cancelled())
            raise
        for number, (_, future) in enumerate(taken):
            if not future.done():
                future.set_result(f"{seq}.{number}")

    async def _write_later(self) -> None:
        await asyncio.sleep(GATHERED_S)
        with suppress(OperatorError):  # The store is unavailable: written with the next action.
            await self.flush()

    async def _append(self, entries: tuple[AuditAction, ...]) -> int:
        while True:
            last, before = self._head if self._head is not None else await self._find_head(0, FIRST)
            seq = last + 1
            row = AuditRow(entries=entries, hash=_hash(before, seq, entries))
            try:
                await self._entries.put(_kind(seq), _key(seq), msgspec.to_builtins(row), after=0)
            except EntryMoved:
                self._head = await self._find_head(last, before)  # another process wrote this row first
                continue
            self._head = (seq, row.hash)
            return seq

    async def _find_head(self, verified: int, before: str) -> tuple[int, str]:
        """Return the number and hash of the last row at or after a known one. Rows have no gaps, so it is found by
        doubling the distance and then halving it."""
        low, step = verified, 1
        while await self._row(low + step) is not None:
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            if await self._row(middle) is None:
                high = middle
            else:
                low = middle
        row = None if low == verified else await self._row(low)
        return (verified, before) if row is None else (low, row.hash)

    async def _row(self, seq: int) -> AuditRow | None:
        entry = await self._entries.find(_kind(seq), _key(seq))
        return None if entry is None else msgspec.convert(entry.value, AuditRow, strict=False)

    async def _rows(self, kind: int) -> list[tuple[int, AuditRow]]:
        listed = await self._entries.list(f"{KIND}-{kind:06d}")
        return [(int(entry.key), msgspec.convert(entry.value, AuditRow, strict=False)) for entry in listed]


AUDIT: Final = Part[Audit]("audit log", lambda app: Audit(app.store.entries, app.clock), close=Audit.close)


def _kind(seq: int) -> str:
    return f"{KIND}-{(seq - 1) // ROWS_OF_KIND:06d}"


def _key(seq: int) -> str:
    return f"{seq:012d}"


def _hash(before: str, seq: int, entries: tuple[AuditAction, ...]) -> str:
    fields: Json = msgspec.to_builtins(entries)
    return sha256(f"{before}|{seq}|".encode() + msgspec.json.encode(fields, order="sorted")).hexdigest()


class _After:
    """Refusals and outcomes in the rows read so far, by the id of the action they belong to."""

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}
        self._made: dict[str, str] = {}

    def take(self, row: AuditRow) -> None:
        for entry in row.entries:
            if entry.of and entry.refused:
                self._refused[entry.of] = entry.refused
            if entry.of and entry.made:
                self._made[entry.of] = entry.made

    def view(self, name: str, entry: AuditAction) -> AuditEntryView:
        targets = [one for one in (entry.target, self._made.get(name, "")) if one]
        return {
            "id": name,
            "at": entry.at,
            "who": entry.who,
            "entrance": entry.entrance,
            "what": entry.what,
            "target": ", ".join(targets),
            "origin": entry.origin,
            "refused": self._refused.get(name) or entry.refused or None,
        }


class _Wanted(NamedTuple):
    """Filter of a query."""

    who: str | None
    what: str | None
    since: float | None
    until: float | None

    def has(self, entry: AuditAction, target: str) -> bool:
        is_then = (self.since is None or self.since <= entry.at) and (self.until is None or entry.at <= self.until)
        is_that = self.what is None or self.what in entry.what or self.what in target
        return is_then and is_that and self.who in (None, entry.who)
