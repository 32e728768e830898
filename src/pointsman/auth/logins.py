"""Logins: a browser shows a key or a token once, and a cookie from then on.

    key ──▶ 256 random bits in a cookie ── SHA-256 ──▶ the store: whose, since when, until when

A page can read neither: the cookie is for the server alone. A login by a key is worth what the key is worth now, and
ends with it; one by a token keeps what the token said, until it expires.
"""

from __future__ import annotations

import secrets
from typing import ClassVar, Final

import msgspec

from pointsman.auth.callers import Caller, Role
from pointsman.auth.keys import RANDOM_BYTES, Keys, digest_of
from pointsman.errors import CallerError
from pointsman.ports import Clock
from pointsman.store.api import ConfigStore
from pointsman.values import Instant, JsonObject, Seconds

KIND: Final = "login"
EACH_MAX: Final = 20
"""Logins that one person may have at once: the oldest makes room."""
ID_CHARS: Final = 16
AGENT_CHARS_MAX: Final = 200


class NoSuchLogin(CallerError):
    """There is no login of that id, or it is somebody else's."""

    code: ClassVar[str] = "no-such-login"


class Login(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a login, by the hash of its cookie."""

    name: str
    role: Role
    began: Instant
    expires: Instant
    groups: tuple[str, ...] = ()
    key: str = ""
    """The hash of the key it was begun with; empty: another way."""
    agent: str = ""
    """What the browser called itself."""


class Logins:
    """The logins of one store."""

    def __init__(self, entries: ConfigStore, clock: Clock, keys: Keys, *, lasts: Seconds) -> None:
        self._entries = entries
        self._clock = clock
        self._keys = keys
        self._lasts = lasts

    async def begin(
        self, caller: Caller, *, key: str = "", agent: str = "", instead_of: str = ""
    ) -> tuple[str, Caller]:
        """What the cookie says, told this once, and who is let in by it. `key`: what was shown for it; `instead_of`:
        the cookie that it replaces, whose login ends."""
        now = self._clock.now()
        if instead_of:
            await self.end_this(instead_of)
        await self._make_room(caller.name)
        login = Login(
            name=caller.name,
            role=caller.role,
            began=Instant(now),
            expires=Instant(min(now + self._lasts, caller.until if caller.until is not None else now + self._lasts)),
            groups=caller.groups,
            key=digest_of(key) if key else "",
            agent=agent[:AGENT_CHARS_MAX],
        )
        token = secrets.token_urlsafe(RANDOM_BYTES)
        await self._entries.put(KIND, digest_of(token), msgspec.to_builtins(login))
        return token, _entered(login, caller, digest_of(token))

    async def caller(self, token: str) -> Caller | None:
        """Who is let in by a cookie; None: it was ended, has expired, or its key opens nothing any more."""
        return await self.caller_of(digest_of(token))

    async def caller_of(self, digest: str) -> Caller | None:
        """As `caller`, by the hash of a cookie."""
        entry = await self._entries.find(KIND, digest)
        if entry is None:
            return None
        login = _read(entry.value)
        if login.expires <= self._clock.now():
            return None
        if not login.key:
            return _entered(login, Caller(name=login.name, role=login.role, groups=login.groups), digest)
        now_worth = await self._keys.caller_of(login.key)
        return None if now_worth is None else _entered(login, now_worth, digest)

    async def all(self, name: str | None = None) -> list[JsonObject]:
        """Those that have not expired, newest first; of one person, or of everybody."""
        now = self._clock.now()
        found = [
            (entry.key, login)
            for entry in await self._entries.list(KIND)
            if (login := _read(entry.value)).expires > now and name in (None, login.name)
        ]
        return [_view(digest, login) for digest, login in sorted(found, key=lambda one: -one[1].began)]

    async def end(self, id: str, *, name: str | None = None) -> None:
        """By the id that lists show; `name`: only if it is that person's. Raises `NoSuchLogin`."""
        for entry in await self._entries.list(KIND):
            if entry.key[:ID_CHARS] == id and name in (None, _read(entry.value).name):
                await self._entries.delete(KIND, entry.key)
                return
        raise NoSuchLogin(f"there is no login {id!r}", hint="GET /api/logins lists them.")

    async def end_all(self, name: str) -> int:
        """Wherever this person is logged in; how many."""
        own = [entry.key for entry in await self._entries.list(KIND) if _read(entry.value).name == name]
        for key in own:
            await self._entries.delete(KIND, key)
        return len(own)

    async def end_this(self, token: str) -> None:
        """From now on the cookie opens nothing. Saying it again changes nothing."""
        await self._entries.delete(KIND, digest_of(token))

    async def purge(self) -> int:
        """Forget those that have expired; how many."""
        now = self._clock.now()
        gone = [entry.key for entry in await self._entries.list(KIND) if _read(entry.value).expires <= now]
        for key in gone:
            await self._entries.delete(KIND, key)
        return len(gone)

    async def _make_room(self, name: str) -> None:
        await self.purge()
        own = [
            (login.began, entry.key)
            for entry in await self._entries.list(KIND)
            if (login := _read(entry.value)).name == name
        ]
        for _, key in sorted(own, reverse=True)[EACH_MAX - 1 :]:
            await self._entries.delete(KIND, key)


def _read(value: object) -> Login:
    return msgspec.convert(value, Login, strict=False)


def _entered(login: Login, worth: Caller, digest: str) -> Caller:
    return Caller(
        name=worth.name, role=worth.role, groups=worth.groups, entrance="login", until=login.expires, proof=digest
    )


def _view(digest: str, login: Login) -> JsonObject:
    return {
        "id": digest[:ID_CHARS],
        "name": login.name,
        "beganAt": login.began,
        "expiresAt": login.expires,
        "agent": login.agent,
    }
