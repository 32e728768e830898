"""API keys: generated once, shown once, stored as a hash.

    pm_<random>  ── SHA-256 ──▶  the store: name, role, groups, expiry, last use

The random part has 256 bits and cannot be guessed, so a plain hash is enough.

A store that ever had a key, or an identity provider, always requires one (`KeyGuard`), also after the last key was
revoked or expired. A user who can open the store on its machine creates another: `pointsman keys add`.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import ClassVar, Final

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller, Role
from pointsman.context import Part
from pointsman.errors import CallerError
from pointsman.paging import has_words
from pointsman.ports import Clock
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved
from pointsman.values import Instant

KIND: Final = "api-key"
GUARD: Final = ("access", "keys")
"""Kind and key of the entry that records whether the store requires keys."""
PREFIX: Final = "pm_"
RANDOM_BYTES: Final = 32
NAME_CHARS_MAX: Final = 100
USED_EVERY_S: Final = 60.0
"""Precision of the last use, so that not every request writes to the store."""
KNOWN_FOR_S: Final = 1.0
"""How long the keys read from the store are cached: a key that another process revokes is valid for at most so long."""


class NoSuchKey(CallerError):
    """The store has no API key of that name."""

    code: ClassVar[str] = "no-such-key"


class KeyExists(CallerError):
    """The store already has an API key of that name."""

    code: ClassVar[str] = "key-exists"


class NameInvalid(CallerError):
    """The text cannot be the name of a key or a secret."""

    code: ClassVar[str] = "name-invalid"


class LastAdmin(CallerError):
    """Revoking the key would leave the store without an admin key that lasts as long."""

    code: ClassVar[str] = "last-admin"


class ApiKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored record of an API key."""

    name: str
    role: Role
    digest: str
    created: Instant
    groups: tuple[str, ...] = ()
    expires: Instant | None = None
    used: Instant | None = None

    def is_good_at(self, now: float) -> bool:
        return self.expires is None or now < self.expires


class KeyGuard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a store requires keys, and which admin keys are being revoked."""

    asks: bool = False
    revoking: tuple[str, ...] = ()


class Keys:
    """API keys of one store."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock
        self._known: dict[str, ApiKey] = {}
        self._asks = False
        self._read_at = -math.inf

    async def make(self, name: str, role: Role, *, groups: tuple[str, ...] = (), expires: Instant | None = None) -> str:
        """Create a key and return its token, which cannot be read again later. Raises `KeyExists`, `NameInvalid`."""
        check_name(name)
        token = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
        key = ApiKey(
            name=name,
            role=role,
            digest=digest_of(token),
            created=Instant(self._clock.now()),
            groups=groups,
            expires=expires,
        )
        await self.require()  # First: a crash in between must not leave a store with a key that does not require one.
        try:
            await self._entries.put(KIND, name, msgspec.to_builtins(key), after=0)
        except EntryMoved:
            raise KeyExists(f"there is a key named {name!r}", hint="Choose another name, or revoke that key.") from None
        await self._change(lambda guard: _without(guard, name))
        self._read_at = -math.inf
        return token

    async def are_made(self) -> bool:
        """Return whether the store requires a key, because it has or ever had one."""
        await self._by_digest()
        return self._asks

    async def require(self) -> None:
        """Require a key from every caller from now on, even if the store has none."""
        await self._change(lambda guard: msgspec.structs.replace(guard, asks=True))
        self._read_at = -math.inf

    async def all(self) -> list[ApiKey]:
        """Return all keys, by name."""
        return [msgspec.convert(entry.value, ApiKey, strict=False) for entry in await self._entries.list(KIND)]

    async def found(self, words: str = "", *, role: Role | None = None) -> list[ApiKey]:
        """Return the keys whose name or groups contain all of these words, with this role, by name."""
        return [
            key for key in await self.all() if role in (None, key.role) and has_words(words, key.name, [*key.groups])
        ]

    async def revoke(self, name: str, *, but_last_admin: bool = False) -> None:
        """Revoke a key. Raises `NoSuchKey`; with `but_last_admin`, raises `LastAdmin` for the last admin key, without
        which callers who have no other access would lock themselves out."""
        self._read_at = -math.inf
        if but_last_admin:
            await self._begin_revoking(name)
        is_deleted = await self._entries.delete(KIND, name)
        await self._change(lambda guard: _without(guard, name))
        if not is_deleted:
            key_names = ", ".join(repr(key.name) for key in await self.all()) or "none"
            raise NoSuchKey(f"there is no key named {name!r}", hint=f"Existing keys: {key_names}.")

    async def caller(self, token: str) -> Caller | None:
        """Return the caller of a key; None if the key is unknown or expired."""
        return await self.caller_of(digest_of(token))

    async def caller_of(self, digest: str) -> Caller | None:
        """Return the caller of a key as `caller` does, by the hash of the key."""
        now = self._clock.now()
        caller = (await self._by_digest()).get(digest)
        if caller is None or not caller.is_good_at(now):
            return None
        await self._note_use(caller, Instant(now))
        return Caller(name=caller.name, role=caller.role, groups=caller.groups, until=caller.expires, proof=digest)

    async def admins(self) -> list[ApiKey]:
        """Return the admin keys that are valid now."""
        now = self._clock.now()
        return [key for key in await self.all() if key.role == "admin" and key.is_good_at(now)]

    async def _begin_revoking(self, name: str) -> None:
        """Record that an admin key is being revoked, so that concurrent revocations cannot delete the last admin keys:
        one of them writes first, and the others then read its record. Raises `LastAdmin`."""
        while True:
            guard, version = await self._guard()  # Read before the keys: a concurrent change gets a new version.
            left = {key.name: _lasts_until(key) for key in await self.admins() if key.name not in guard.revoking}
            until = left.pop(name, None)
            if until is None:
                return
            if not left or max(left.values()) < until:
                others = f", and the others expire before it: {', '.join(map(repr, sorted(left)))}" if left else ""
                raise LastAdmin(
                    f"{name!r} is the {'last' if left else 'only'} admin key{others}",
                    hint="Create another one that lasts as long first, or use `pointsman keys revoke`.",
                )
            if await self._put_guard(msgspec.structs.replace(guard, revoking=(*guard.revoking, name)), version):
                return

    async def _change(self, change: Callable[[KeyGuard], KeyGuard]) -> None:
        """Change the guard; retry if another process changed it first."""
        while True:
            guard, version = await self._guard()
            changed = change(guard)
            if changed == guard or await self._put_guard(changed, version):
                return

    async def _guard(self) -> tuple[KeyGuard, int]:
        entry = await self._entries.find(*GUARD)
        return (KeyGuard(), 0) if entry is None else (msgspec.convert(entry.value, KeyGuard), entry.version)

    async def _put_guard(self, guard: KeyGuard, version: int) -> bool:
        """Write the guard. Return False if another process changed it first."""
        try:
            await self._entries.put(*GUARD, msgspec.to_builtins(guard), after=version)
        except EntryMoved:
            return False
        return True

    async def _by_digest(self) -> dict[str, ApiKey]:
        now = self._clock.now()
        if not self._read_at <= now < self._read_at + KNOWN_FOR_S:
            by_digest = {key.digest: key for key in await self.all()}
            asks = (await self._guard())[0].asks
            if by_digest and not asks:  # The keys were written into the store by hand.
                await self.require()
            self._known, self._asks, self._read_at = by_digest, asks or bool(by_digest), now
        return self._known

    async def _note_use(self, key: ApiKey, now: Instant) -> None:
        if key.used is not None and now - key.used < USED_EVERY_S:
            return
        entry = await self._entries.find(KIND, key.name)
        if entry is None:
            return
        used = msgspec.structs.replace(key, used=now)
        try:
            await self._entries.put(KIND, key.name, msgspec.to_builtins(used), after=entry.version)
        except EntryMoved:
            return  # Another process recorded the use, or the key was revoked meanwhile.


KEYS: Final = Part[Keys]("keys", lambda app: Keys(app.store.entries, app.clock))


def _lasts_until(key: ApiKey) -> float:
    return math.inf if key.expires is None else key.expires


def _without(guard: KeyGuard, name: str) -> KeyGuard:
    return msgspec.structs.replace(guard, revoking=tuple(one for one in guard.revoking if one != name))


def check_name(name: str) -> None:
    """Raise `NameInvalid` for a text that cannot be the name of a key."""
    if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable() or "/" in name or name in (".", ".."):
        raise NameInvalid(
            f"{name[:60]!r} is not a valid name",
            hint=f"It must have 1 to {NAME_CHARS_MAX} printable characters and no slash, because it is part of "
            "addresses.",
        )


def digest_of(token: str) -> str:
    return sha256(token.encode()).hexdigest()


class KeyView(TypedDict):
    """An API key, without its token."""

    name: str
    role: Role
    groups: list[str]
    createdAt: float
    expiresAt: float | None
    usedAt: float | None


class KeyPage(TypedDict):
    """API keys by name."""

    keys: list[KeyView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


class NewKeyView(TypedDict):
    """A new API key with its token, which cannot be read again later."""

    name: str
    role: Role
    key: str


def key_view(key: ApiKey) -> KeyView:
    return {
        "name": key.name,
        "role": key.role,
        "groups": [*key.groups],
        "createdAt": key.created,
        "expiresAt": key.expires,
        "usedAt": key.used,
    }
