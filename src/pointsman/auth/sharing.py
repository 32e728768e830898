"""Sharing: the owner of a saved workflow or agent, and the people whom the owner lets see and use it.

    private ─▶ its owner      groups ─▶ also members of these      everyone ─▶ everybody whom the server lets in

Sharing narrows what the document's `allowedGroups` leaves open, and never widens it: both must let a caller in. Admins
need neither. A workflow without an owner (saved at a prompt without a name) is for everyone.

    kind       seen and used by     changed by                           shared and deleted by
    workflow   its audience         editors of its audience              its owner, admins
    agent      its audience         its owner, admins                    its owner, admins
    schedule   as its workflow      its owner, admins                    its owner, admins

An agent is text that runs inside the workflows of others, with their data: only its owner changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, TypeAlias, get_args

import msgspec

from pointsman.auth.callers import Caller, NotAllowed
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.etags import mark_at, mark_of, moved, put_after
from pointsman.store.errors import EntryMoved
from pointsman.values import JsonObject

Audience: TypeAlias = Literal["private", "groups", "everyone"]
AUDIENCES: Final[tuple[Audience, ...]] = get_args(Audience)
KIND: Final = "sharing"
"""Kind of entry; its key is the id of a workflow."""
AGENT_KIND: Final = "agent-sharing"
"""Kind of entry; its key is the name of an agent."""
Shared: TypeAlias = Literal["workflow", "agent"]
KINDS: Final[Mapping[Shared, str]] = {"workflow": KIND, "agent": AGENT_KIND}


class SharingInvalid(CallerError):
    """The audience and its groups do not fit one another."""

    code: ClassVar[str] = "sharing-invalid"


class Sharing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whose a workflow is, and who else may see and use it."""

    owner: str = ""
    """Empty: nobody's."""
    audience: Audience = "everyone"
    groups: tuple[str, ...] = ()

    def lets_in(self, caller: Caller) -> bool:
        """Whether the caller may see and use it."""
        return all(self._lets_in_one(one) for one in caller.people)

    def _lets_in_one(self, caller: Caller) -> bool:
        match self.audience:
            case "everyone":
                return True
            case "groups" if not set(self.groups).isdisjoint(caller.groups):
                return True
            case _:
                return self.is_of(caller)

    def is_of(self, caller: Caller) -> bool:
        """Whether it is the caller's to share and to delete."""
        return all(one.role == "admin" or (bool(self.owner) and self.owner == one.name) for one in caller.people)


EVERYONES: Final = Sharing()


async def sharing_of(app: AppContext, name: str, kind: Shared = "workflow") -> Sharing:
    """Of a workflow or an agent, with or without a revision; also of a deleted one: what ran of it stays."""
    entry = await app.store.entries.find(KINDS[kind], name.partition("@")[0])
    return EVERYONES if entry is None else msgspec.convert(entry.value, Sharing, strict=False)


def sharing_mark(sharing: Sharing) -> str:
    """The mark that `share` takes. A workflow without sharing has the mark of one that is shared with everyone."""
    return mark_of(msgspec.to_builtins(sharing))


async def claim(app: AppContext, caller: Caller, name: str, kind: Shared = "workflow") -> bool:
    """Make the caller the owner of a new workflow or agent. Return whether it had no owner before."""
    sharing = Sharing(owner=caller.name, audience=app.settings.access.new_workflows)
    try:
        await app.store.entries.put(KINDS[kind], name, msgspec.to_builtins(sharing), after=0)
    except EntryMoved:
        return False
    return True


async def disclaim(app: AppContext, name: str, kind: Shared = "workflow") -> None:
    """Take back the claim of a workflow or agent that was not saved after all."""
    await app.store.entries.delete(KINDS[kind], name)


async def share(
    app: AppContext,
    caller: Caller,
    name: str,
    audience: Audience,
    *,
    kind: Shared = "workflow",
    groups: tuple[str, ...] = (),
    owner: str | None = None,
    after: str | None = None,
) -> Sharing:
    """Change who sees and uses it, and with `owner` its owner. `after`: the mark that its sharing must have.

    The caller has looked whether it exists. Raises `NotAllowed`, `SharingInvalid`, `RevisionMoved`.
    """
    bare, entries = name.partition("@")[0], app.store.entries
    looked_at = await mark_at(entries, KINDS[kind], bare)
    known = await must_own(app, caller, bare, "share it", kind)
    if (audience == "groups") != bool(groups):
        raise SharingInvalid(
            f"{name!r} is shared with {audience}, and {len(groups)} groups are named",
            hint="Name groups with the audience `groups`, and with no other.",
        )
    what = f"the sharing of {bare!r}"
    if after not in (None, sharing_mark(known)):
        raise moved(what)
    changed = Sharing(owner=known.owner if owner is None else owner, audience=audience, groups=groups)
    # Written only over what was read: an owner who gave it away in this moment does not get it back by this.
    await put_after(entries, KINDS[kind], bare, msgspec.to_builtins(changed), after=looked_at, what=what)
    return changed


async def must_own(app: AppContext, caller: Caller, name: str, what: str, kind: Shared = "workflow") -> Sharing:
    """Raises `NotAllowed`; `what` as in "share it"."""
    sharing = await sharing_of(app, name, kind)
    must_be_of(sharing, caller, f"the {kind} {name!r}", what)
    return sharing


def must_be_of(sharing: Sharing, caller: Caller, thing: str, what: str) -> None:
    """Raises `NotAllowed`; `what` as in "share it"."""
    if not sharing.is_of(caller):
        owner = f"belongs to {sharing.owner!r}" if sharing.owner else "has no owner"
        raise NotAllowed(f"{thing} {owner}, and {caller.name!r} may not {what}", hint="Its owner and admins may.")


def sharing_view(sharing: Sharing) -> JsonObject:
    return {"owner": sharing.owner or None, "audience": sharing.audience, "groups": [*sharing.groups]}
