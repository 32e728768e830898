"""People: everybody who has a key, is logged in, or sent a token of the identity provider; by name.

    keys ─────────────┐
    logins ───────────┼─▶ one entry per name, with the most privileged of its roles
    tokens, once seen ┘

Tokens are not stored. So the people who send them are recorded: at the first token, whenever role or groups change, and
again after ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import ROLES, Caller, Role
from pointsman.auth.keys import ApiKey
from pointsman.auth.logins import LoginView
from pointsman.context import Part
from pointsman.ports import Clock
from pointsman.store.api import ConfigStore
from pointsman.values import Instant

KIND: Final = "person"
NOTED_EVERY_S: Final = 600.0
KNOWN_MAX: Final = 10_000


class Person(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person whom the identity provider named, with the latest role and groups."""

    name: str
    role: Role
    seen: Instant
    groups: tuple[str, ...] = ()


class _Told(NamedTuple):
    role: Role
    groups: tuple[str, ...]
    at: float


class KnownPeople:
    """People whom the identity provider named, in one store."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock
        self._told: dict[str, _Told] = {}

    async def note(self, caller: Caller) -> None:
        """Record that a person sent a token."""
        now, before = self._clock.now(), self._told.get(caller.name)
        is_news = before is None or (before.role, before.groups) != (caller.role, caller.groups)
        if not is_news and before is not None and now - before.at < NOTED_EVERY_S:
            return
        if len(self._told) >= KNOWN_MAX:
            self._told.clear()
        self._told[caller.name] = _Told(caller.role, caller.groups, now)
        person = Person(name=caller.name, role=caller.role, seen=Instant(now), groups=caller.groups)
        await self._entries.put(KIND, caller.name, msgspec.to_builtins(person))

    async def all(self) -> list[Person]:
        return [msgspec.convert(entry.value, Person, strict=False) for entry in await self._entries.list(KIND)]


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


def people(keys: Iterable[ApiKey], logins: Iterable[LoginView], seen: Iterable[Person], now: float) -> list[PersonView]:
    """Return the people by name, from the `keys` that have not expired, the `logins`, and the people `seen` with
    tokens."""
    found: dict[str, PersonView] = {}
    for key in keys:
        if key.is_good_at(now):
            _add(found, key.name, "key", key.role, key.groups, key.used)
    for person in seen:
        _add(found, person.name, "token", person.role, person.groups, person.seen)
    for login in logins:
        known = found.get(login["name"])
        if known is not None:
            known["logins"] += 1
            known["seenAt"] = max(known["seenAt"] or 0.0, login["beganAt"])
    return [found[name] for name in sorted(found)]


def _add(
    found: dict[str, PersonView],
    name: str,
    way: Literal["key", "token"],
    role: Role,
    groups: tuple[str, ...],
    seen: float | None,
) -> None:
    new: PersonView = {"name": name, "role": role, "groups": [], "ways": [], "logins": 0, "seenAt": None}
    known = found.setdefault(name, new)
    known["ways"].append(way)
    known["groups"] = sorted({*known["groups"], *groups})
    known["role"] = role if ROLES.index(role) > ROLES.index(known["role"]) else known["role"]
    if seen is not None:
        known["seenAt"] = max(known["seenAt"] or 0.0, seen)
