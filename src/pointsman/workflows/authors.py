"""Authors: the people in whose name things are saved and started, and what they may do now.

What a person may do is looked up when it matters: a role that was lowered since is lower, and a key that was revoked
opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from pointsman.auth.callers import LOCAL, MACHINE, NOBODY, ROLES, Caller, Entrance, Role, lesser, together
from pointsman.auth.keys import KIND as KEY
from pointsman.auth.keys import ApiKey
from pointsman.auth.people import KIND as PERSON
from pointsman.auth.people import Person
from pointsman.context import AppContext
from pointsman.store.records import SavedWorkflow
from pointsman.values import Json
from pointsman.workflows.builtin.documents import is_built_in

WRITTEN: Final = "revision-actors"
"""Kind of entry: the people in whose name a revision was saved, where that is not the one author that the revision
names: none for people at the machine of the store, several for an agent. Its key is `workflow@revision`."""


class Party(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person, as they are recorded with what they start or save."""

    name: str
    role: Role = "admin"
    """The role they had then: they never have a higher one here."""
    entrance: Entrance = "key"


def recorded(caller: Caller) -> list[Json]:
    """Return what is recorded of a caller; people at the machine are left out."""
    return [
        msgspec.to_builtins(Party(name=one.name, role=one.role, entrance=one.entrance))
        for one in caller.people
        if one.entrance not in MACHINE
    ]


def owner_of(caller: Caller) -> list[Party]:
    """Return the people in whose name a thing of the caller starts executions later."""
    return [msgspec.convert(one, Party) for one in recorded(caller)]


async def standing(app: AppContext, party: Party) -> Caller:
    """Return what a recorded person may do now: `NOBODY` where no key and no identity provider knows them any more."""
    if party.entrance in MACHINE:
        return Caller(name=party.name, role=party.role, entrance=party.entrance)
    entries, now = app.store.entries, app.clock.now()
    found: list[tuple[Role, tuple[str, ...]]] = []
    if (entry := await entries.find(KEY, party.name)) is not None:
        key = msgspec.convert(entry.value, ApiKey, strict=False)
        if key.is_good_at(now):
            found.append((key.role, key.groups))
    if app.settings.access.oidc is not None and (entry := await entries.find(PERSON, party.name)) is not None:
        person = msgspec.convert(entry.value, Person, strict=False)
        found.append((person.role, person.groups))
    if not found:
        return NOBODY
    role = ROLES[max(ROLES.index(role) for role, _ in found)]
    groups = tuple(sorted({group for _, some in found for group in some}))
    return Caller(name=party.name, role=lesser(role, party.role), groups=groups, entrance=party.entrance)


async def authors_of(app: AppContext, saved: SavedWorkflow) -> tuple[Party, ...]:
    """Return the people in whose name a revision was saved. Empty: the product, or people at the machine."""
    if is_built_in(saved.draft.id) or not saved.draft.author:
        return ()
    entry = await app.store.entries.find(WRITTEN, f"{saved.draft.id}@{saved.revision}")
    return (Party(name=saved.draft.author),) if entry is None else msgspec.convert(entry.value, tuple[Party, ...])


async def author_of(app: AppContext, saved: SavedWorkflow) -> Caller:
    """Return what the author of a saved revision may do now; of one that an agent saved: what all of its people may."""
    return await all_of(app, await authors_of(app, saved))


async def all_of(app: AppContext, parties: Iterable[Party]) -> Caller:
    """Return what all of these people may do now; people at the machine where there are none."""
    people = [await standing(app, one) for one in parties]
    return together(*people) if people else LOCAL


async def note_authors(app: AppContext, caller: Caller, saved: SavedWorkflow) -> None:
    """Record in whose name a revision was saved, where its author alone does not say that."""
    if saved.draft.author and (caller.is_machine or caller.parties):
        # The role that a person had when they saved it does not bound what they may see later.
        people = [Party(name=one.name, entrance=one.entrance) for one in caller.people if one.entrance not in MACHINE]
        await app.store.entries.put(WRITTEN, f"{saved.draft.id}@{saved.revision}", msgspec.to_builtins(people))
