"""Sharing: the owner of a saved workflow or agent, and the people whom the owner lets see and use it.

    private ─▶ its owner      groups ─▶ also members of these      everyone ─▶ everybody whom the server admits

Sharing narrows what the document's `allowedGroups` leaves open and never widens it: both must admit a caller. Admins
need neither. A workflow without an owner (saved at a prompt without a name) is for everyone.

    kind       seen and used by     changed by                           shared and deleted by
    workflow   its audience         editors of its audience              its owner, admins
    agent      its audience         its owner, admins                    its owner, admins
    folder     its audience         its owner, admins                    its owner, admins
    schedule   as its workflow      its owner, admins                    its owner, admins

A workflow may lie in a folder: then its own sharing, that of the folder and that of each folder around it must admit a
caller. A folder that does not exist admits only admins.

An agent is text that runs inside the workflows of others, with their data: only its owner changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, TypeAlias, get_args

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller, NotAllowed
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.etags import content_etag, entry_etag, put_after, revision_moved
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved

Audience: TypeAlias = Literal["private", "groups", "everyone"]
AUDIENCES: Final[tuple[Audience, ...]] = get_args(Audience)
KIND: Final = "sharing"
"""Kind of entry; its key is the id of a workflow."""
AGENT_KIND: Final = "agent-sharing"
"""Kind of entry; its key is the name of an agent."""
FOLDER_KIND: Final = "folder-sharing"
"""Kind of entry; its key is the path of a folder. A folder exists if it has this entry."""
Shared: TypeAlias = Literal["workflow", "agent", "folder"]
KINDS: Final[Mapping[Shared, str]] = {"workflow": KIND, "agent": AGENT_KIND, "folder": FOLDER_KIND}


class SharingInvalid(CallerError):
    """The audience and the groups contradict one another."""

    code: ClassVar[str] = "sharing-invalid"


class Sharing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Owner of a workflow, agent or folder, and the people who may see and use it."""

    owner: str = ""
    """Empty: no owner."""
    audience: Audience = "everyone"
    groups: tuple[str, ...] = ()
    folder: str = ""
    """The path of the folder in which a workflow lies; empty: none."""

    def lets_in(self, caller: Caller) -> bool:
        """Return whether this sharing admits the caller; `is_shared_with` also asks the folders."""
        return all(self._lets_in_one(person) for person in caller.people)

    def _lets_in_one(self, caller: Caller) -> bool:
        match self.audience:
            case "everyone":
                return True
            case "groups" if not set(self.groups).isdisjoint(caller.groups):
                return True
            case _:
                return self.is_of(caller)

    def is_of(self, caller: Caller) -> bool:
        """Return whether the caller may share and delete the thing."""
        return all(
            person.role == "admin" or (bool(self.owner) and self.owner == person.name) for person in caller.people
        )


EVERYONES: Final = Sharing()


async def sharing_of(app: AppContext, name: str, kind: Shared = "workflow") -> Sharing:
    """Return the sharing of a workflow or agent, named with or without a revision. It also exists for a deleted one,
    whose executions remain."""
    entry = await app.store.entries.find(KINDS[kind], name.partition("@")[0])
    return EVERYONES if entry is None else msgspec.convert(entry.value, Sharing, strict=False)


async def is_shared_with(app: AppContext, caller: Caller, name: str, kind: Shared = "workflow") -> bool:
    """Return whether a workflow or agent is shared with the caller: its sharing and its folders admit the caller."""
    sharing = await sharing_of(app, name, kind)
    return sharing.lets_in(caller) and await folder_lets_in(app, caller, sharing.folder)


async def folder_lets_in(app: AppContext, caller: Caller, path: str) -> bool:
    """Return whether a folder and all folders around it admit the caller. A missing one admits only admins."""
    if all(person.role == "admin" for person in caller.people):
        return True
    for one in folders_on(path):
        entry = await app.store.entries.find(FOLDER_KIND, one)
        if entry is None or not msgspec.convert(entry.value, Sharing, strict=False).lets_in(caller):
            return False
    return True


def folders_on(path: str) -> list[str]:
    """Return the paths of a folder and of the folders around it, outermost first. Empty for no folder."""
    parts = path.split("/") if path else []
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]


def parent_of(path: str) -> str:
    """Return the path of the folder around a folder; empty for none."""
    return path.rpartition("/")[0]


def is_within(folder: str, path: str) -> bool:
    """Return whether a folder is `path` or lies in it."""
    return folder == path or folder.startswith(f"{path}/")


async def folders_of(entries: ConfigStore) -> dict[str, str]:
    """Return workflow -> path of its folder, for the workflows that lie in one."""
    sharings = {one.key: msgspec.convert(one.value, Sharing, strict=False) for one in await entries.list(KIND)}
    return {workflow: sharing.folder for workflow, sharing in sharings.items() if sharing.folder}


def sharing_etag(sharing: Sharing) -> str:
    """Return the ETag that `share` takes. No sharing has the ETag of sharing with everyone."""
    return content_etag(msgspec.to_builtins(sharing))


async def claim(app: AppContext, caller: Caller, name: str, kind: Shared = "workflow", *, folder: str = "") -> bool:
    """Make the caller the owner of a new workflow, agent or folder. Return whether it had no owner before. `folder`:
    where a new workflow lies."""
    sharing = Sharing(owner=caller.name, audience=app.settings.access.new_workflows, folder=folder)
    try:
        await app.store.entries.put(KINDS[kind], name, msgspec.to_builtins(sharing), after=0)
    except EntryMoved:
        return False
    return True


async def release_claim(app: AppContext, name: str, kind: Shared = "workflow") -> None:
    """Undo the claim of a workflow or agent that could not be saved."""
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
    """Change the audience, and with `owner` the owner. `after` is the ETag that the present sharing must have.

    The caller of this function has checked that the thing exists. Raises `NotAllowed`, `SharingInvalid`,
    `RevisionMoved`.
    """
    bare, entries = name.partition("@")[0], app.store.entries
    looked_at = await entry_etag(entries, KINDS[kind], bare)
    current = await must_own(app, caller, bare, "share it", kind)
    if (audience == "groups") != bool(groups):
        raise SharingInvalid(
            f"the audience of {name!r} is {audience}, but {len(groups)} groups are named",
            hint="Name groups with the audience `groups`, and only with it.",
        )
    what = f"the sharing of {bare!r}"
    if after not in (None, sharing_etag(current)):
        raise revision_moved(what)
    new_owner = current.owner if owner is None else owner
    changed = msgspec.structs.replace(current, owner=new_owner, audience=audience, groups=groups)
    # Writes only over the version read above: a former owner must not take back what they gave away in between.
    await put_after(entries, KINDS[kind], bare, msgspec.to_builtins(changed), after=looked_at, what=what)
    return changed


async def must_own(app: AppContext, caller: Caller, name: str, what: str, kind: Shared = "workflow") -> Sharing:
    """Return the sharing, or raise `NotAllowed` if the caller is not the owner; `what` as in "share it"."""
    sharing = await sharing_of(app, name, kind)
    must_be_of(sharing, caller, f"the {kind} {name!r}", what)
    return sharing


def must_be_of(sharing: Sharing, caller: Caller, thing: str, what: str) -> None:
    """Raise `NotAllowed` if the caller is not the owner; `what` as in "share it"."""
    if not sharing.is_of(caller):
        owner = f"belongs to {sharing.owner!r}" if sharing.owner else "has no owner"
        raise NotAllowed(
            f"{thing} {owner}, and {caller.name!r} may not {what}", hint="Its owner and admins may do this."
        )


class SharingView(TypedDict):
    """The owner of a workflow or an agent, and who else may see and use it. The `allowedGroups` of a document narrow
    it."""

    owner: str | None
    """Null: no owner; admins share and delete it."""
    audience: Audience
    groups: list[str]


def sharing_view(sharing: Sharing) -> SharingView:
    return {"owner": sharing.owner or None, "audience": sharing.audience, "groups": [*sharing.groups]}
