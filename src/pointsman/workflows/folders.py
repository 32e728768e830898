"""Folders of saved workflows: paths such as `sales/mail`, with an owner and an audience for all that lies in them.

    a workflow in `sales/mail` is seen by callers whom its own sharing, `sales/mail` and `sales` all admit

The folder of a workflow is a member of its sharing, a folder itself is a sharing under its path: see `auth.sharing`. A
workflow keeps its id wherever it lies.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, Final

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_see_workflow, sees_entry
from pointsman.auth.sharing import (
    FOLDER_KIND,
    KIND,
    Audience,
    Sharing,
    SharingView,
    claim,
    folder_lets_in,
    folders_of,
    folders_on,
    is_within,
    must_own,
    parent_of,
    share,
    sharing_etag,
    sharing_of,
    sharing_view,
)
from pointsman.auth.verbs import Verbs, verb
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.etags import entry_etag, etag_of, match_etag, put_after, revision_moved
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved
from pointsman.workflows.revisions import list_workflows, shown_revisions

SEGMENT_CHARS_MAX: Final = 60
DEPTH_MAX: Final = 8


class FolderInvalid(CallerError):
    """A text cannot be the path of a folder."""

    code: ClassVar[str] = "folder-invalid"


class UnknownFolder(CallerError):
    """The folder does not exist, or the caller may not see it."""

    code: ClassVar[str] = "unknown-folder"


class FolderExists(CallerError):
    """A folder has this path."""

    code: ClassVar[str] = "folder-exists"


class FolderNotEmpty(CallerError):
    """The folder contains workflows or folders."""

    code: ClassVar[str] = "folder-not-empty"


class FolderView(SharingView):
    """A folder that the caller may see."""

    path: str
    workflows: int
    """Workflows in it, without those in its folders, as far as the caller may see them."""
    etag: str
    """For `If-Match` of a change of its sharing."""


class FolderList(TypedDict):
    """All folders that the caller may see, by path."""

    folders: list[FolderView]


class MovedWorkflow(TypedDict):
    """A workflow that was moved."""

    id: str
    folder: str


def must_be_path(path: str) -> None:
    """Raise `FolderInvalid` for a text that cannot be the path of a folder."""
    parts = path.split("/")
    fits = all(0 < len(part) <= SEGMENT_CHARS_MAX and part.isprintable() and part == part.strip() for part in parts)
    if not fits or len(parts) > DEPTH_MAX or "@" in path or {".", ".."} & set(parts):
        raise FolderInvalid(
            f"{path[:100]!r} cannot be the path of a folder",
            hint=f"Write names of 1 to {SEGMENT_CHARS_MAX} characters, without @, separated by /, at most {DEPTH_MAX}:"
            " sales/mail.",
        )


def unknown_folder(path: str) -> UnknownFolder:
    """Return the refusal for a folder that does not exist, or that the caller may not see."""
    return UnknownFolder(
        f"there is no folder {path[:300]!r}",
        hint="`pointsman folders list` shows yours.",
    )


async def must_see_folder(app: AppContext, caller: Caller, path: str) -> None:
    """Raise `UnknownFolder` for a folder that does not exist and for one that the caller may not see."""
    if not path.isprintable() or await app.store.entries.find(FOLDER_KIND, path) is None:
        raise unknown_folder(path)
    if not await folder_lets_in(app, caller, path):
        raise unknown_folder(path)


async def create_folder(app: AppContext, caller: Caller, path: str) -> None:
    """Create a folder, and those around it that are missing; the caller owns them. Raises `FolderInvalid`, and
    `FolderExists` also for one around it that the caller may not see."""
    must_be_path(path)
    *around, _ = folders_on(path)
    for one in around:
        exists = await app.store.entries.find(FOLDER_KIND, one) is not None
        if exists and not await folder_lets_in(app, caller, one):
            raise FolderExists(f"the folder {one!r} exists", hint="Choose another name.")
    for one in around:
        await claim(app, caller, one, "folder")
    if not await claim(app, caller, path, "folder"):
        raise FolderExists(f"the folder {path!r} exists", hint="Choose another name.")


async def move_workflow(app: AppContext, caller: Caller, workflow: str, folder: str) -> None:
    """Put a workflow into a folder; empty: into none. Its owner and admins may, because it changes who sees it.

    Raises `NotAllowed`, `UnknownFolder`, `RevisionMoved`.
    """
    looked_at = await entry_etag(app.store.entries, KIND, workflow)
    current = await must_own(app, caller, workflow, "move it")
    if folder:
        await must_see_folder(app, caller, folder)
    moved = msgspec.to_builtins(msgspec.structs.replace(current, folder=folder))
    what = f"the sharing of {workflow!r}"
    await put_after(app.store.entries, KIND, workflow, moved, after=looked_at, what=what)


async def rename_folder(app: AppContext, caller: Caller, path: str, new: str) -> None:
    """Give a folder another path, with everything in it; its owner and admins may.

    The new folders exist before the workflows move, and the old ones until they have moved: a crash in between hides
    nothing and opens nothing. Raises `NotAllowed`, `UnknownFolder`, `FolderInvalid`, `FolderExists`.
    """
    must_be_path(new)
    await must_see_folder(app, caller, path)
    await must_own(app, caller, path, "rename it", "folder")
    if is_within(new, path):
        raise FolderInvalid(f"{new!r} lies in {path!r}", hint="Choose a path outside the folder.")
    before, after = parent_of(path), parent_of(new)
    if before and before != after:  # Its workflows were hidden by the folders around it.
        await must_own(app, caller, before, "move folders out of it", "folder")
    if after:
        await must_see_folder(app, caller, after)
    entries = app.store.entries
    there = {entry.key: entry.value for entry in await entries.list(FOLDER_KIND)}
    moving = {old: new + old.removeprefix(path) for old in sorted(there) if is_within(old, path)}
    for target in moving.values():
        must_be_path(target)
        if target in there:
            raise FolderExists(f"the folder {target!r} exists", hint="Choose another name.")
    for old, target in moving.items():
        await entries.put(FOLDER_KIND, target, there[old])
    for workflow, folder in (await folders_of(entries)).items():
        if folder in moving:
            await _put_into(entries, workflow, folder, moving[folder])
    for old in moving:
        await entries.delete(FOLDER_KIND, old)


async def _put_into(entries: ConfigStore, workflow: str, old: str, new: str) -> None:
    """Move a workflow from one folder to another, unless it lies elsewhere meanwhile."""
    while True:
        entry = await entries.find(KIND, workflow)
        sharing = None if entry is None else msgspec.convert(entry.value, Sharing, strict=False)
        if entry is None or sharing is None or sharing.folder != old:
            return
        with suppress(EntryMoved):
            value = msgspec.to_builtins(msgspec.structs.replace(sharing, folder=new))
            await entries.put(KIND, workflow, value, after=entry.version)
            return


async def delete_folder(app: AppContext, caller: Caller, path: str) -> None:
    """Delete an empty folder; its owner and admins may. Raises `NotAllowed`, `UnknownFolder`, `FolderNotEmpty`."""
    await must_see_folder(app, caller, path)
    await must_own(app, caller, path, "delete it", "folder")
    inner = [one.key for one in await app.store.entries.list(FOLDER_KIND) if one.key != path]
    used = (await folders_of(app.store.entries)).values()
    if any(is_within(one, path) for one in (*inner, *used)):
        raise FolderNotEmpty(f"the folder {path!r} is not empty", hint="Move its workflows and folders first.")
    await app.store.entries.delete(FOLDER_KIND, path)


class FolderVerbs(Verbs):
    """Actions of a caller on folders."""

    @verb("viewer", "see workflows", audit=False)
    async def list(self) -> FolderList:
        """Return all folders that the caller may see, by path."""
        counts: dict[str, int] = {}
        for entry in await list_workflows(self.app, include_disabled=True, built_in=False):
            if entry["folder"] and await sees_entry(self.app, self.caller, entry["id"], shown_revisions(entry)):
                counts[entry["folder"]] = counts.get(entry["folder"], 0) + 1
        views: list[FolderView] = []
        for one in await self.app.store.entries.list(FOLDER_KIND):
            with suppress(UnknownFolder):
                await must_see_folder(self.app, self.caller, one.key)
                sharing = msgspec.convert(one.value, Sharing, strict=False)
                etag = etag_of(sharing_etag(sharing))
                view = sharing_view(sharing)
                views.append({**view, "path": one.key, "workflows": counts.get(one.key, 0), "etag": etag})
        return {"folders": views}

    @verb("editor", "write workflows", target=("path",))
    async def create(self, path: str) -> FolderView:
        """Create a folder; see `create_folder`."""
        await create_folder(self.app, self.caller, path)
        sharing = await sharing_of(self.app, path, "folder")
        return {**sharing_view(sharing), "path": path, "workflows": 0, "etag": etag_of(sharing_etag(sharing))}

    @verb("viewer", "see sharing", audit=False)
    async def sharing(self, path: str) -> Sharing:
        """Return the sharing of a folder. Raises `UnknownFolder`."""
        await must_see_folder(self.app, self.caller, path)
        return await sharing_of(self.app, path, "folder")

    @verb("editor", "write workflows", target=("path", "audience", "groups", "owner"))
    async def share(
        self,
        path: str,
        audience: Audience,
        *,
        groups: tuple[str, ...] = (),
        owner: str | None = None,
        match: str | None = None,
    ) -> Sharing:
        """Change who sees a folder and all that lies in it, as its owner or an admin. `match`: see `etags.match_etag`.
        Raises `UnknownFolder`, `NotAllowed`, `SharingInvalid`, `RevisionMoved`."""
        await must_see_folder(self.app, self.caller, path)
        mark = sharing_etag(await sharing_of(self.app, path, "folder"))
        after = match_etag(match, etag_of(mark), mark, revision_moved(f"the sharing of {path!r}"))
        return await share(
            self.app, self.caller, path, audience, kind="folder", groups=groups, owner=owner, after=after
        )

    @verb("editor", "write workflows", target=("path", "new"))
    async def rename(self, path: str, new: str) -> None:
        """Give a folder another path, with everything in it; see `rename_folder`."""
        await rename_folder(self.app, self.caller, path, new)

    @verb("editor", "write workflows", target=("path",))
    async def delete(self, path: str) -> None:
        """Delete an empty folder; see `delete_folder`."""
        await delete_folder(self.app, self.caller, path)

    @verb("editor", "write workflows", target=("workflow", "folder"))
    async def move(self, workflow: str, folder: str) -> MovedWorkflow:
        """Put a workflow into a folder; empty: into none. See `move_workflow`; raises `UnknownWorkflow` too."""
        await must_see_workflow(self.app, self.caller, workflow)
        name = workflow.partition("@")[0]
        await move_workflow(self.app, self.caller, name, folder)
        return {"id": name, "folder": folder}
