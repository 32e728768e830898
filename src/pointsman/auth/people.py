"""People and their browser logins.

A browser sends a key or a token once, and a cookie from then on:

    key ──▶ 256 random bits in a cookie ── SHA-256 ──▶ the store: name, start, expiry

Scripts of a page can read neither: the cookie is HTTP-only. A login by a key has the present rights of the key and ends
with it; a login by a token keeps the rights in the token until the login expires.

People are listed by name:

    keys ─────────────┐
    logins ───────────┼─▶ one entry per name, with the most privileged of its roles
    tokens, once seen ┘

Tokens are not stored. So the people who send them are recorded: at the first token, whenever role or groups change, and
again after ten minutes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import ClassVar, Final, Literal, NamedTuple

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import ROLES, Caller, Role
from pointsman.auth.keys import KEYS, RANDOM_BYTES, ApiKey, Keys, digest_of
from pointsman.context import AppContext, Part
from pointsman.errors import CallerError
from pointsman.ports import Clock
from pointsman.store.api import ConfigStore
from pointsman.values import Instant, Seconds

LOGIN_KIND: Final = "login"
EACH_MAX: Final = 20
"""Concurrent logins of one person: a further one ends the oldest."""
ID_CHARS: Final = 16
AGENT_CHARS_MAX: Final = 200


class NoSuchLogin(CallerError):
    """No login has that id, or it belongs to another person."""

    code: ClassVar[str] = "no-such-login"


class Login(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored record of a login; its key is the hash of the cookie."""

    name: str
    role: Role
    began: Instant
    expires: Instant
    groups: tuple[str, ...] = ()
    key: str = ""
    """The hash of the key of the login; empty if it did not start with a key."""
    agent: str = ""
    """The `User-Agent` of the browser."""


class LoginView(TypedDict):
    """A browser that is logged in."""

    id: str
    name: str
    beganAt: float
    expiresAt: float
    agent: str


class LoginPage(TypedDict):
    """Logins, newest first."""

    logins: list[LoginView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


class EndedLogins(TypedDict):
    """How many logins were ended."""

    ended: int


class Logins:
    """Browser logins of one store."""

    def __init__(self, entries: ConfigStore, clock: Clock, keys: Keys, *, lasts: Seconds) -> None:
        self._entries = entries
        self._clock = clock
        self._keys = keys
        self._lasts = lasts

    async def begin(
        self, caller: Caller, *, key: str = "", agent: str = "", instead_of: str = ""
    ) -> tuple[str, Caller]:
        """Start a login. Return the value of the cookie, which cannot be read again later, and the caller. `key` is the
        key that was shown; `instead_of` is the cookie that this one replaces, whose login ends."""
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
        await self._entries.put(LOGIN_KIND, digest_of(token), msgspec.to_builtins(login))
        return token, _entered(login, caller, digest_of(token))

    async def caller(self, token: str) -> Caller | None:
        """Return the caller of a cookie; None if the login was ended or has expired, or if its key is not valid any
        more."""
        return await self.caller_of(digest_of(token))

    async def caller_of(self, digest: str) -> Caller | None:
        """Return the caller of a cookie as `caller` does, by the hash of the cookie."""
        entry = await self._entries.find(LOGIN_KIND, digest)
        if entry is None:
            return None
        login = _read(entry.value)
        if login.expires <= self._clock.now():
            return None
        if not login.key:
            return _entered(login, Caller(name=login.name, role=login.role, groups=login.groups), digest)
        now_worth = await self._keys.caller_of(login.key)
        return None if now_worth is None else _entered(login, now_worth, digest)

    async def all(self, name: str | None = None) -> list[LoginView]:
        """Return the logins that have not expired, newest first, of one person or of everybody."""
        now = self._clock.now()
        logins = [
            (entry.key, login)
            for entry in await self._entries.list(LOGIN_KIND)
            if (login := _read(entry.value)).expires > now and name in (None, login.name)
        ]
        return [_view(digest, login) for digest, login in sorted(logins, key=lambda one: -one[1].began)]

    async def end(self, id: str, *, name: str | None = None) -> None:
        """End the login with an id as lists show it; with `name`, only if it belongs to that person. Raises
        `NoSuchLogin`."""
        for entry in await self._entries.list(LOGIN_KIND):
            if entry.key[:ID_CHARS] == id and name in (None, _read(entry.value).name):
                await self._entries.delete(LOGIN_KIND, entry.key)
                return
        raise NoSuchLogin(f"there is no login {id!r}", hint="GET /api/logins lists them.")

    async def end_all(self, name: str) -> int:
        """End all logins of a person. Return their number."""
        own = [entry.key for entry in await self._entries.list(LOGIN_KIND) if _read(entry.value).name == name]
        for key in own:
            await self._entries.delete(LOGIN_KIND, key)
        return len(own)

    async def end_this(self, token: str) -> None:
        """End the login of a cookie. Idempotent."""
        await self._entries.delete(LOGIN_KIND, digest_of(token))

    async def purge(self) -> int:
        """Delete expired logins. Return their number."""
        now = self._clock.now()
        expired = [entry.key for entry in await self._entries.list(LOGIN_KIND) if _read(entry.value).expires <= now]
        for key in expired:
            await self._entries.delete(LOGIN_KIND, key)
        return len(expired)

    async def _make_room(self, name: str) -> None:
        await self.purge()
        own = [
            (login.began, entry.key)
            for entry in await self._entries.list(LOGIN_KIND)
            if (login := _read(entry.value)).name == name
        ]
        for _, key in sorted(own, reverse=True)[EACH_MAX - 1 :]:
            await self._entries.delete(LOGIN_KIND, key)


def _logins(app: AppContext) -> Logins:
    return Logins(app.store.entries, app.clock, app[KEYS], lasts=app.settings.access.login.seconds)


LOGINS: Final = Part[Logins]("logins", _logins)


def _read(value: object) -> Login:
    return msgspec.convert(value, Login, strict=False)


def _entered(login: Login, worth: Caller, digest: str) -> Caller:
    return Caller(
        name=worth.name, role=worth.role, groups=worth.groups, entrance="login", until=login.expires, proof=digest
    )


def _view(digest: str, login: Login) -> LoginView:
    return {
        "id": digest[:ID_CHARS],
        "name": login.name,
        "beganAt": login.began,
        "expiresAt": login.expires,
        "agent": login.agent,
    }


PERSON_KIND: Final = "person"
NOTED_EVERY_S: Final = 600.0
KNOWN_MAX: Final = 10_000


class Person(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person whom the identity provider named, with the latest role and groups."""

    name: str
    role: Role
    seen: Instant
    groups: tuple[str, ...] = ()


class _Claims(NamedTuple):
    role: Role
    groups: tuple[str, ...]
    at: float


class KnownPeople:
    """People whom the identity provider named, in one store."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock
        self._last_claims: dict[str, _Claims] = {}

    async def note(self, caller: Caller) -> None:
        """Record that a person sent a token."""
        now, before = self._clock.now(), self._last_claims.get(caller.name)
        is_news = before is None or (before.role, before.groups) != (caller.role, caller.groups)
        if not is_news and before is not None and now - before.at < NOTED_EVERY_S:
            return
        if len(self._last_claims) >= KNOWN_MAX:
            self._last_claims.clear()
        self._last_claims[caller.name] = _Claims(caller.role, caller.groups, now)
        person = Person(name=caller.name, role=caller.role, seen=Instant(now), groups=caller.groups)
        await self._entries.put(PERSON_KIND, caller.name, msgspec.to_builtins(person))

    async def all(self) -> list[Person]:
        return [msgspec.convert(entry.value, Person, strict=False) for entry in await self._entries.list(PERSON_KIND)]


PEOPLE: Final = Part[KnownPeople]("known people", lambda app: KnownPeople(app.store.entries, app.clock))


class PersonView(TypedDict):
    """A person who has a key, or whom the identity provider named."""

    name: str
    role: Role
    """The most privileged role of the person's keys and tokens."""
    groups: list[str]
    ways: list[Literal["key", "token"]]
    logins: int
    """Number of browsers in which the person is logged in now."""
    seenAt: float | None
    """When the person was last seen, as far as that is recorded."""


class PeoplePage(TypedDict):
    """People by name."""

    people: list[PersonView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


def people(
    keys: Iterable[ApiKey], logins: Iterable[LoginView], persons: Iterable[Person], now: float
) -> list[PersonView]:
    """Return the people by name, from the `keys` that have not expired, the `logins`, and the people `persons` with
    tokens."""
    views: dict[str, PersonView] = {}
    for key in keys:
        if key.is_good_at(now):
            _add(views, key.name, "key", key.role, key.groups, key.used)
    for person in persons:
        _add(views, person.name, "token", person.role, person.groups, person.seen)
    for login in logins:
        account = views.get(login["name"])
        if account is not None:
            account["logins"] += 1
            account["seenAt"] = max(account["seenAt"] or 0.0, login["beganAt"])
    return [views[name] for name in sorted(views)]


def _add(
    persons: dict[str, PersonView],
    name: str,
    entrance: Literal["key", "token"],
    role: Role,
    groups: tuple[str, ...],
    seen_at: float | None,
) -> None:
    new: PersonView = {"name": name, "role": role, "groups": [], "ways": [], "logins": 0, "seenAt": None}
    person = persons.setdefault(name, new)
    person["ways"].append(entrance)
    person["groups"] = sorted({*person["groups"], *groups})
    person["role"] = role if ROLES.index(role) > ROLES.index(person["role"]) else person["role"]
    if seen_at is not None:
        person["seenAt"] = max(person["seenAt"] or 0.0, seen_at)
