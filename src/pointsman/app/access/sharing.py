"""Sharing: whose a workflow is, and whom its owner lets see and use it.

    private ─▶ its owner      groups ─▶ also members of these      everyone ─▶ whoever the server lets in

It narrows what the document's `allowedGroups` leaves open, and never widens it: both must let a caller in. Admins need
neither. What nobody owns (saved at a prompt without a name, or before there were owners) is everyone's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, get_args

import msgspec

from pointsman.app.access.callers import Caller, NotAllowed
from pointsman.app.marks import mark_at, mark_of, moved, put_after
from pointsman.errors import CallerError
from pointsman.journal.faults import EntryMoved
from pointsman.values import JsonObject

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman

Audience: TypeAlias = Literal["private", "groups", "everyone"]
AUDIENCES: Final[tuple[Audience, ...]] = get_args(Audience)
KIND: Final = "sharing"


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
        match self.audience:
            case "everyone":
                return True
            case "groups" if not set(self.groups).isdisjoint(caller.groups):
                return True
            case _:
                return self.is_of(caller)

    def is_of(self, caller: Caller) -> bool:
        """Whether it is the caller's to share and to delete."""
        return caller.role == "admin" or (bool(self.owner) and self.owner == caller.name)


EVERYONES: Final = Sharing()


async def sharing_of(app: Pointsman, workflow: str) -> Sharing:
    """Of a workflow by its id, with or without a revision; also of one that was deleted: what ran of it stays."""
    entry = await app.store.entries.find(KIND, workflow.partition("@")[0])
    return EVERYONES if entry is None else msgspec.convert(entry.value, Sharing, strict=False)


def sharing_mark(sharing: Sharing) -> str:
    """As `share` wants it. What is shared in no way of its own has that of what is shared with everyone."""
    return mark_of(msgspec.to_builtins(sharing))


async def claim(app: Pointsman, caller: Caller, workflow: str) -> bool:
    """Make a workflow the caller's, unless it was somebody's before. Whether it was made."""
    sharing = Sharing(owner=caller.name, audience=app.settings.access.new_workflows)
    try:
        await app.store.entries.put(KIND, workflow, msgspec.to_builtins(sharing), after=0)
    except EntryMoved:
        return False
    return True


async def disclaim(app: Pointsman, workflow: str) -> None:
    """Take back a claim of a workflow that was not saved after all."""
    await app.store.entries.delete(KIND, workflow)


async def share(
    app: Pointsman,
    caller: Caller,
    workflow: str,
    audience: Audience,
    *,
    groups: tuple[str, ...] = (),
    owner: str | None = None,
    after: str | None = None,
) -> Sharing:
    """Change who sees and uses it, and with `owner` whose it is. `after`: the mark that its sharing must have.

    Raises `UnknownWorkflow`, `NotAllowed`, `SharingInvalid`, `RevisionMoved`.
    """
    await app.library.saved(workflow)
    name, entries = workflow.partition("@")[0], app.store.entries
    looked_at = await mark_at(entries, KIND, name)
    known = await must_own(app, caller, name, "share it")
    if (audience == "groups") != bool(groups):
        raise SharingInvalid(
            f"{workflow!r} is shared with {audience}, and {len(groups)} groups are named",
            hint="Name groups with the audience `groups`, and with no other.",
        )
    what = f"the sharing of {name!r}"
    if after not in (None, sharing_mark(known)):
        raise moved(what)
    changed = Sharing(owner=known.owner if owner is None else owner, audience=audience, groups=groups)
    # In any case over what was looked at: who gave it away in this moment does not get it back by this.
    await put_after(entries, KIND, name, msgspec.to_builtins(changed), after=looked_at, what=what)
    return changed


async def must_own(app: Pointsman, caller: Caller, workflow: str, what: str) -> Sharing:
    """Raises `NotAllowed`; `what` as in "share it"."""
    sharing = await sharing_of(app, workflow)
    if not sharing.is_of(caller):
        owner = repr(sharing.owner) if sharing.owner else "nobody"
        raise NotAllowed(
            f"the workflow {workflow!r} is of {owner}, and {caller.name!r} may not {what}", hint="Admins may."
        )
    return sharing


def sharing_view(sharing: Sharing) -> JsonObject:
    return {"owner": sharing.owner or None, "audience": sharing.audience, "groups": [*sharing.groups]}
