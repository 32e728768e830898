"""Callers: who asks, as whoever let them in knows it, and what that allows.

    viewer ─▶ sees    operator ─▶ also starts, answers, stops    editor ─▶ also writes workflows    admin ─▶ everything

A workflow that names `allowedGroups` is there for them alone: others neither see nor run it, nor its executions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from pointsman.errors import CallerError
from pointsman.values import Instant, JsonObject

Role: TypeAlias = Literal["viewer", "operator", "editor", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""From the one that may least to the one that may most."""
Entrance: TypeAlias = Literal["local", "key", "login", "token", "shell"]
"""How a caller was let in: nobody was asked; by an API key; by a login in a browser; by a token of an identity
provider; at this machine's prompt."""
MACHINE: Final[frozenset[Entrance]] = frozenset({"local", "shell"})
"""Entrances of people who work on the machine of the store."""


class NotAllowed(CallerError):
    """The caller is known, and may not do this."""

    code: ClassVar[str] = "not-allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks."""

    name: str
    role: Role
    groups: tuple[str, ...] = ()
    entrance: Entrance = "key"
    until: Instant | None = field(default=None, compare=False)
    """When it will not be let in this way any more; None: nobody knows."""
    proof: str = field(default="", compare=False, repr=False)
    """The hash of what was shown, so that it can be looked at again; empty: nothing that can be taken back."""
    parties: tuple[Caller, ...] = ()
    """Set for an execution that acts for several people, its starter and the authors of what it runs: each of them,
    alone, must be allowed what the execution does. Empty: the caller acts for themselves only."""

    @property
    def people(self) -> tuple[Caller, ...]:
        """Everybody who must be allowed what this caller asks for."""
        return self.parties or (self,)

    @property
    def is_machine(self) -> bool:
        """Whether all of them work on the machine of the store, which they could open without the product."""
        return all(one.entrance in MACHINE for one in self.people)

    def has(self, role: Role) -> bool:
        """Whether it may do what `role` may."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def is_among(self, groups: Collection[str]) -> bool:
        """Whether it may see what is there for these groups. None named: for everybody. Admins see everything."""
        return not groups or all(one.role == "admin" or not set(groups).isdisjoint(one.groups) for one in self.people)

    def must_have(self, role: Role, what: str) -> None:
        """Raises `NotAllowed`. `what` says what was asked, as in "save workflows"."""
        if not self.has(role):
            raise NotAllowed(
                f"{self.name!r} is {a(self.role)} and may not {what}", hint=f"It takes {a(role)}, or more."
            )

    def must_be_among(self, groups: Collection[str], what: str) -> None:
        """Raises `NotAllowed`. `what` names the thing, as in "the workflow 'news'"."""
        if not self.is_among(groups):
            named = ", ".join(sorted(groups))
            raise NotAllowed(f"{what} is there for members of {named}", hint="Ask an admin to add you to one of them.")


LOCAL: Final = Caller(name="local", role="admin", entrance="local")
"""Whoever can reach a server that asks nobody for a key: it listens on this machine only."""
NOBODY: Final = Caller(name="\0", role="viewer")
"""Stands for a person whose key was revoked or who was never known: no owner and no group has this name."""


def lesser(one: Role, other: Role) -> Role:
    return ROLES[min(ROLES.index(one), ROLES.index(other))]


def together(starter: Caller, *others: Caller, cap: Role = "admin") -> Caller:
    """One caller for an execution that acts for several people: it has the least of their roles, at most `cap`."""
    everybody = (*starter.people, *(person for one in others for person in one.people))
    parties = tuple(dict.fromkeys(replace(one, role=lesser(one.role, cap), parties=()) for one in everybody))
    role = min((one.role for one in parties), key=ROLES.index)
    return replace(starter, role=role, parties=parties)


def a(role: str) -> str:
    return f"{'an' if role[0] in 'aeiou' else 'a'} {role}"


def caller_view(caller: Caller) -> JsonObject:
    """What callers may know of themselves."""
    return {
        "name": caller.name,
        "role": caller.role,
        "groups": [*caller.groups],
        "entrance": caller.entrance,
        "expiresAt": caller.until,
    }
