"""Authors: the people in whose name things are saved and started, and their present permissions.

Permissions are looked up when they are needed, so that a lowered role or a revoked key takes effect at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from pointsman.auth.callers import LOCAL, MACHINE, NOBODY, ROLES, Caller, Entrance, Role, combined_caller, lower_role
from pointsman.auth.keys import KIND as KEY
from pointsman.auth.keys import ApiKey
from pointsman.auth.people import PERSON_KIND, Person
from pointsman.context import AppContext
from pointsman.store.records import SavedWorkflow
from pointsman.values import Json
from pointsman.workflows.builtin import is_built_in

WRITTEN: Final = "revision-actors"
"""Kind of the config entry with the people in whose name a revision was saved. Its key is `workflow@revision`. It
exists only where the revision's one author is not enough: the list is empty for a user on the machine, and has several
people for an agent."""


class Party(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person, as recorded with what they start or save."""

    name: str
    role: Role = "admin"
    """The person's role at that time: an upper bound of the role that they act with later."""
    entrance: Entrance = "key"


def recorded(caller: Caller) -> list[Json]:
    """Return the people of a caller as records, without those on the machine of the store."""
    return [
        msgspec.to_builtins(Party(name=person.name, role=person.role, entrance=person.entrance))
        for person in caller.people
        if person.entrance not in MACHINE
    ]


def owner_of(caller: Caller) -> list[Party]:
    """Return the people in whose name an object of the caller starts executions later."""
    return [msgspec.convert(one, Party) for one in recorded(caller)]


async def present_permissions(app: AppContext, party: Party) -> Caller:
    """Return the present permissions of a recorded person: `NOBODY` if no key and no identity provider lists them any
    more."""
    if party.entrance in MACHINE:
        return Caller(name=party.name, role=party.role, entrance=party.entrance)
    entries, now = app.store.entries, app.clock.now()
    result: list[tuple[Role, tuple[str, ...]]] = []
    if (entry := await entries.find(KEY, party.name)) is not None:
        key = msgspec.convert(entry.value, ApiKey, strict=False)
        if key.is_good_at(now):
            result.append((key.role, key.groups))
    if app.settings.access.oidc is not None and (entry := await entries.find(PERSON_KIND, party.name)) is not None:
        person = msgspec.convert(entry.value, Person, strict=False)
        result.append((person.role, person.groups))
    if not result:
        return NOBODY
    role = ROLES[max(ROLES.index(role) for role, _ in result)]
    groups = tuple(sorted({group for _, some in result for group in some}))
    return Caller(name=party.name, role=lower_role(role, party.role), groups=groups, entrance=party.entrance)


async def authors_of(app: AppContext, saved: SavedWorkflow) -> tuple[Party, ...]:
    """Return the people in whose name a revision was saved. Empty: the product, or a user on the machine."""
    if is_built_in(saved.draft.id) or not saved.draft.author:
        return ()
    entry = await app.store.entries.find(WRITTEN, f"{saved.draft.id}@{saved.revision}")
    return (Party(name=saved.draft.author),) if entry is None else msgspec.convert(entry.value, tuple[Party, ...])


async def author_of(app: AppContext, saved: SavedWorkflow) -> Caller:
    """Return the present permissions of the author of a saved revision; for a revision that an agent saved, the
    permissions that all of its people have."""
    return await all_of(app, await authors_of(app, saved))


async def all_of(app: AppContext, parties: Iterable[Party]) -> Caller:
    """Return the permissions that all of these people have now; those of the machine if there are no people."""
    people = [await present_permissions(app, party) for party in parties]
    return combined_caller(*people) if people else LOCAL


async def note_authors(app: AppContext, caller: Caller, saved: SavedWorkflow) -> None:
    """Record the people in whose name a revision was saved, unless the revision's author is enough."""
    if saved.draft.author and (caller.is_machine or caller.parties):
        # The role at the time of saving does not limit what the person may see later.
        people = [
            Party(name=person.name, entrance=person.entrance)
            for person in caller.people
            if person.entrance not in MACHINE
        ]
        await app.store.entries.put(WRITTEN, f"{saved.draft.id}@{saved.revision}", msgspec.to_builtins(people))
