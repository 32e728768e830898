"""Memory for people: list, search, correct and delete remembered values.

    execution ID │ session ID │ user NAME │ workflow ID │ shared NAME      each a memory of its own

Changes by people have the same quotas as writes of workflows, and the same history: authors and former
values, which are listed page by page, the latest first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Final, NotRequired, cast

import msgspec
from msgspec import Struct
from typing_extensions import TypedDict

from pointsman import ports
from pointsman.arguments import checks_arguments
from pointsman.auth.callers import Caller
from pointsman.context import AppContext, MeaningIndex
from pointsman.errors import CallerError, OperatorError
from pointsman.executions.pages import PositionInvalid
from pointsman.executors.failures import WorkRefused
from pointsman.executors.memory import SCOPES, check_name, key_in, names_of, prefix_of
from pointsman.ports import ChangeAuthor, MemoryChange, MemoryOperation
from pointsman.store.records import Holding, PastValue, RememberedValue
from pointsman.values import Json

PAGE: Final = 100
NOBODY: Final = ChangeAuthor()
"""The author is unknown."""


class UnknownMemory(CallerError):
    """There is no such scope of memory."""

    code: ClassVar[str] = "unknown-memory"


class MemoryKeyInvalid(CallerError):
    """The text cannot be the name of an owner, a namespace or a key."""

    code: ClassVar[str] = "memory-key-invalid"


class NoSuchMemory(CallerError):
    """The key has no value, or its value has expired."""

    code: ClassVar[str] = "no-such-memory"


class StoredMemory(Struct, frozen=True, kw_only=True):
    """One remembered value."""

    namespace: str
    key: str
    value: Json
    changed: float
    """Unix seconds; 0 if unknown."""
    expires: float | None


class EmbeddingsOff(OperatorError):
    """No embedding model is configured."""

    code: ClassVar[str] = "embeddings-off"


class FoundMemory(Struct, frozen=True, kw_only=True):
    """A value found by a search."""

    namespace: str
    key: str
    value: Json


class MemorySearchResult(Struct, frozen=True):
    """Result of a search."""

    values: list[FoundMemory]
    warnings: tuple[str, ...] = ()
    """Warnings about how the values were found."""


class Searched(TypedDict):
    """Options of a search."""

    within: str
    limit: int
    at: float


class OwnerView(TypedDict):
    """An owner of memory, and the size of it."""

    id: str
    """Scope and owner; lists are ordered by it."""
    scope: str
    owner: str
    keys: int
    bytes: int
    changedAt: float


class OwnerPage(TypedDict):
    """Owners by scope and name."""

    owners: list[OwnerView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


class ValueView(TypedDict):
    """A remembered value."""

    namespace: str
    key: str
    value: Json
    changedAt: NotRequired[float | None]
    expiresAt: NotRequired[float | None]


class ValuePage(TypedDict):
    """Values by namespace and key; of a search the best match first."""

    values: list[ValueView]
    next: str | None
    """The `after` of the next page; null: this was the last."""
    warnings: NotRequired[list[str]]
    """Warnings about how the values were found."""


@checks_arguments
class Memories:
    """Memories of one app."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._meaning = app.services.meaning

    async def owners(self) -> list[Holding]:
        """Return the owners with the size of their memories. Cached results of steps are not included."""
        return [holding for holding in await self._app.store.memory.holdings(at=self._now) if holding.scope in SCOPES]

    def of(self, scope: str, owner: str, *, namespace: str = "") -> OneMemory:
        """Return the memory of one owner, or its part under a namespace. Raises `UnknownMemory`, `MemoryKeyInvalid`."""
        if scope not in SCOPES:
            raise UnknownMemory(f"{scope!r} is not a memory scope", hint=f"Scopes: {', '.join(SCOPES)}.")
        _named("an owner", owner)
        if namespace:
            _named("a namespace", namespace)
        return OneMemory(self._app, scope, owner, namespace, self._meaning)

    async def reindex(self) -> int:
        """Compute all embeddings again and return their number. Raises `EmbeddingsOff` and the errors of the model."""
        if self._meaning is None:
            raise EmbeddingsOff(
                "memory can be searched by words only: no embedding model is configured",
                hint="Set `model` under [memory.embeddings].",
            )
        return await self._meaning.reindex(await self.owners())

    @property
    def _now(self) -> float:
        return self._app.clock.now()


@checks_arguments
class OneMemory:
    """Memory of one owner; with a namespace, only the values under it."""

    def __init__(
        self, app: AppContext, scope: str, owner: str, namespace: str, meaning: MeaningIndex | None = None
    ) -> None:
        self._app = app
        self._meaning = meaning
        self._owner = (scope, owner)
        self._namespace = namespace

    async def get(self, key: str) -> Json | None:
        """Return the value of a key; None if there is none or it has expired."""
        _named("a key", key)
        return await self._app.store.memory.get(*self._owner, key_in(self._namespace, key), at=self._now)

    async def list(self, *, after: StoredMemory | None = None, limit: int = PAGE) -> list[StoredMemory]:
        """Return the values by namespace and key; `after` is the last value of the previous page."""
        values = await self._app.store.memory.every(
            *self._owner,
            within=prefix_of(self._namespace),
            after=key_in(after.namespace, after.key) if after is not None else "",
            limit=limit,
            at=self._now,
        )
        return [_owner_of(value) for value in values]

    async def search(self, text: str, *, limit: int = PAGE) -> list[FoundMemory]:
        """Return values that share words with the text or have a similar meaning, the best match first."""
        return (await self.find(text, limit=limit)).values

    async def find(self, text: str, *, limit: int = PAGE) -> MemorySearchResult:
        """Search as `search` does, and return warnings about how the values were found."""
        narrowing: Searched = {"within": prefix_of(self._namespace), "limit": limit, "at": self._now}
        if self._meaning is not None:
            matches = await self._meaning.search(*self._owner, text, **narrowing)
        else:
            matches = ports.MemoryMatches(await self._app.store.memory.search(*self._owner, text, **narrowing))
        named_values = ((names_of(stored), value) for stored, value in matches.values)
        values = [FoundMemory(namespace=namespace, key=key, value=value) for (namespace, key), value in named_values]
        return MemorySearchResult(values, matches.warnings)

    async def history(self, key: str) -> Sequence[PastValue]:
        """Return the present value of a key with its author, then its former values; empty if the key was deleted."""
        _named("a key", key)
        return await self._app.store.memory.history(*self._owner, key_in(self._namespace, key), at=self._now)

    async def set(self, key: str, value: Json, *, ttl: float | None = None, by: ChangeAuthor = NOBODY) -> Json:
        """Set a value, for `ttl` seconds or for ever. Raises `MemoryFull`, `MemoryKeyInvalid`."""
        return await self._change("set", key, value, expires=self._in(ttl), by=by)

    async def append(self, key: str, value: Json, *, ttl: float | None = None, by: ChangeAuthor = NOBODY) -> Json:
        """Append to a list and return all of it. Raises as `set`, and `MemoryNotAList`."""
        return await self._change("append", key, value, expires=self._in(ttl), by=by)

    async def put_back(self, key: str, number: int, *, by: ChangeAuthor = NOBODY) -> Json:
        """Restore a former value of a key, with its original expiry. Raises `NoSuchMemory`."""
        change = next((one for one in await self.history(key) if one.number == number), None)
        if change is None:
            raise NoSuchMemory(
                f"there is no change number {number} of {key!r}",
                hint="It was too long ago, has expired, or never existed: the history of the key lists the "
                "stored changes.",
            )
        return await self._change("set", key, change.value, expires=change.expires, by=by)

    async def delete(self, key: str) -> bool:
        """Delete a value and its history. Return False if there was none."""
        return bool(await self._change("delete", key, None))

    async def clear(self) -> int:
        """Delete all values and their history. Return the number of values."""
        return await self._app.store.memory.forget(*self._owner, within=prefix_of(self._namespace))

    def _in(self, ttl: float | None) -> float | None:
        return None if ttl is None else self._now + ttl

    async def _change(
        self,
        operation: MemoryOperation,
        key: str,
        value: Json,
        *,
        expires: float | None = None,
        by: ChangeAuthor = NOBODY,
    ) -> Json:
        _named("a key", key)
        scope, owner = self._owner
        change = MemoryChange(
            scope=scope,
            namespace=owner,
            key=key_in(self._namespace, key),
            operation=operation,
            value=value,
            at=self._now,
            expires=expires,
            quota=self._app.settings.memory.quota,
            by=by,
        )
        answer = await self._app.store.memory.change(change)
        if self._meaning is not None:
            self._meaning.changed(scope, owner)
        return answer

    @property
    def _now(self) -> float:
        return self._app.clock.now()


def nothing_remembered(key: str) -> NoSuchMemory:
    return NoSuchMemory(
        f"memory has no value for the key {key!r}", hint="It was deleted, has expired, or never existed."
    )


async def memory_page(memory: OneMemory, *, search: str | None, after: str | None, limit: int) -> ValuePage:
    """Return a page of values. A search has one page only. Raises `PositionInvalid`."""
    if search is not None:
        matches = await memory.find(search, limit=limit)
        values: list[ValueView] = [
            {"namespace": value.namespace, "key": value.key, "value": value.value} for value in matches.values
        ]
        result: ValuePage = {"values": values, "next": None}
        if matches.warnings:
            result["warnings"] = [*matches.warnings]
        return result
    last = None if after is None else _position_after(after)
    entries = await memory.list(after=last, limit=limit + 1)
    page = entries[:limit]
    following = msgspec.json.encode((page[-1].namespace, page[-1].key)).decode() if len(entries) > limit else None
    return {"values": [known_view(entry) for entry in page], "next": following}


def _position_after(after: str) -> StoredMemory:
    try:
        namespace, key = msgspec.json.decode(after, type=tuple[str, str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise PositionInvalid(
            f"{after[:60]!r} is not a position in a memory", hint="Use `next` of the previous page."
        ) from None
    if namespace:
        _named("a namespace", namespace)
    _named("a key", key)
    return StoredMemory(namespace=namespace, key=key, value=None, changed=0.0, expires=None)


def known_view(memory: StoredMemory) -> ValueView:
    return {
        "namespace": memory.namespace,
        "key": memory.key,
        "value": memory.value,
        "changedAt": memory.changed or None,
        "expiresAt": memory.expires,
    }


def owner_view(holding: Holding) -> OwnerView:
    return {
        "id": f"{holding.scope}/{holding.namespace}",
        "scope": holding.scope,
        "owner": holding.namespace,
        "keys": holding.keys,
        "bytes": holding.bytes,
        "changedAt": holding.changed,
    }


def _owner_of(value: RememberedValue) -> StoredMemory:
    namespace, key = names_of(value.key)
    return StoredMemory(namespace=namespace, key=key, value=value.value, changed=value.changed, expires=value.expires)


def _named(what: str, name: str) -> None:
    try:
        check_name(what, name)
    except WorkRefused as why:
        raise MemoryKeyInvalid(why.failure.message, hint=why.failure.hint) from None


DIGITS_MAX: Final = 18
"""Maximum digits of a change number."""


class WriterView(TypedDict, total=False):
    """The author of a value: a step of an execution, or a person."""

    execution: str
    """The execution of the step."""
    workflow: str
    node: str
    agent: str
    """The agent that the node names."""
    tool: str
    """The memory tool that an agent called."""
    person: str
    """The person, if no execution wrote the value."""
    entrance: str
    """How the person was authenticated: `key`, `login`, `shell` …"""


class ChangeView(TypedDict):
    """A present or former value of a key."""

    number: int
    """Number of the change, from 1 for each key; some may be missing."""
    value: Json
    changedAt: float | None
    expiresAt: float | None
    by: WriterView | None
    """null: the author is unknown, or the caller may not see that execution."""


class HistoryPage(TypedDict):
    """The present value of a key, then its former values, the latest first."""

    changes: list[ChangeView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


def writer_for(caller: Caller) -> ChangeAuthor:
    return ChangeAuthor(person=caller.name, entrance=caller.entrance)


async def history_page(
    memory: OneMemory, key: str, *, sees: Callable[[str], Awaitable[bool]], after: str | None, limit: int
) -> HistoryPage:
    """Return a page of the history. `sees` returns whether the caller may see an execution.

    Raises `NoSuchMemory`, `PositionInvalid`.
    """
    before = None if after is None else _number(after)
    history = await memory.history(key)
    if not history:
        raise nothing_remembered(key)
    behind = [change for change in history if before is None or change.number < before]
    page = behind[:limit]
    executions = {entry.by.execution for entry in page if entry.by is not None} - {""}
    hidden = {execution for execution in executions if not await sees(execution)}
    changes = [change_view(entry, is_hidden=entry.by is not None and entry.by.execution in hidden) for entry in page]
    return {"changes": changes, "next": str(page[-1].number) if len(behind) > limit else None}


def change_view(value: PastValue, *, is_hidden: bool = False) -> ChangeView:
    is_known = value.by is not None and value.by != NOBODY and not is_hidden
    return {
        "number": value.number,
        "value": value.value,
        "changedAt": value.changed or None,
        "expiresAt": value.expires,
        "by": cast("WriterView", msgspec.to_builtins(value.by)) if is_known else None,
    }


def writer_text(by: WriterView | None) -> str:
    """Return the author as `desk/note in exec-…`, `ann`, or `?`."""
    if by is None:
        return "?"
    if "execution" not in by:
        return by.get("person", "?")
    tool = f" by {by['tool']}" if "tool" in by else ""
    return f"{by.get('workflow', '')}/{by.get('node', '')}{tool} in {by['execution']}"


def _number(after: str) -> int:
    if after.isascii() and after.isdecimal() and len(after) <= DIGITS_MAX:
        return int(after)
    raise PositionInvalid(f"{after[:60]!r} is not a position in a history", hint="Use `next` of the previous page.")
