"""Callers: the identity of the sender of a request, and what its role allows.

    viewer ─▶ sees    operator ─▶ also starts, answers, stops    editor ─▶ also writes workflows    admin ─▶ everything

A workflow with `allowedGroups` is available to members of these groups only: other callers neither see nor run it, and
do not see its executions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from typing_extensions import TypedDict

from pointsman.errors import CallerError
from pointsman.values import Instant

Role: TypeAlias = Literal["viewer", "operator", "editor", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""Ordered from the least to the most privileged role."""
Entrance: TypeAlias = Literal["local", "key", "login", "token", "shell", "link"]
"""How a caller was authenticated: not at all; by an API key; by a browser login; by a token of an identity provider; at
the command line of this machine; by the signed link of a notification, which opens one gate only."""
MACHINE: Final[frozenset[Entrance]] = frozenset({"local", "shell"})
"""Entrances of users who work on the machine of the store."""


class NotAllowed(CallerError):
    """The caller is authenticated but not allowed to do this."""

    code: ClassVar[str] = "not-allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Sender of a request: name, role, groups, and how it was authenticated."""

    name: str
    role: Role
    groups: tuple[str, ...] = ()
    entrance: Entrance = "key"
    until: Instant | None = field(default=None, compare=False)
    """When the authentication expires; None if it does not expire or the time is not known."""
    proof: str = field(default="", compare=False, repr=False)
    """The hash of the credential, with which it can be checked again; empty for callers without a revocable one."""
    parties: tuple[Caller, ...] = ()
    """Set for an execution that acts for several people (its starter and the authors of what it runs): each of them,
    alone, must be allowed what the execution does. Empty: the caller acts for themselves only."""

    @property
    def people(self) -> tuple[Caller, ...]:
        """Everybody who must be allowed what this caller requests."""
        return self.parties or (self,)

    @property
    def is_machine(self) -> bool:
        """Whether all of them work on the machine of the store, which they could open without the product."""
        return all(person.entrance in MACHINE for person in self.people)

    def has(self, role: Role) -> bool:
        """Return whether the caller may do what `role` may do."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def is_among(self, groups: Collection[str]) -> bool:
        """Return whether the caller may see what is restricted to these groups. No groups: no restriction. Admins see
        everything."""
        return not groups or all(
            person.role == "admin" or not set(groups).isdisjoint(person.groups) for person in self.people
        )

    def must_have(self, role: Role, what: str) -> None:
        """Raise `NotAllowed` if the caller lacks the role. `what` names the action, as in "save workflows"."""
        if not self.has(role):
            raise NotAllowed(
                f"{self.name!r} is {a(self.role)} and may not {what}", hint=f"This requires {a(role)} or a higher role."
            )

    def must_be_among(self, groups: Collection[str], what: str) -> None:
        """Raise `NotAllowed` if the caller is in none of the groups. `what` names the thing, as in "the workflow
        'news'"."""
        if not self.is_among(groups):
            group_names = ", ".join(sorted(groups))
            raise NotAllowed(
                f"{what} is shared with members of {group_names} only", hint="Ask an admin to add you to one of them."
            )


LOCAL: Final = Caller(name="local", role="admin", entrance="local")
"""The caller of every request to a server without authentication, which listens on this machine only."""
NOBODY: Final = Caller(name="\0", role="viewer")
"""Stands for a person whose key was revoked or who was never known: no owner and no group has this name."""


def lower_role(one: Role, other: Role) -> Role:
    return ROLES[min(ROLES.index(one), ROLES.index(other))]


def combined_caller(starter: Caller, *others: Caller, cap: Role = "admin") -> Caller:
    """Return one caller for an execution that acts for several people, with their lowest role, at most `cap`."""
    everybody = (*starter.people, *(person for other in others for person in other.people))
    parties = tuple(dict.fromkeys(replace(one, role=lower_role(one.role, cap), parties=()) for one in everybody))
    role = min((party.role for party in parties), key=ROLES.index)
    return replace(starter, role=role, parties=parties)


def a(role: str) -> str:
    return f"{'an' if role[0] in 'aeiou' else 'a'} {role}"


class CallerView(TypedDict):
    """The caller, as the server knows it."""

    name: str
    role: Role
    groups: list[str]
    entrance: Entrance
    """How it was authenticated."""
    expiresAt: float | None
    """When the authentication expires; null: never, or the time is not known."""


def caller_view(caller: Caller) -> CallerView:
    return {
        "name": caller.name,
        "role": caller.role,
        "groups": [*caller.groups],
        "entrance": caller.entrance,
        "expiresAt": caller.until,
    }
