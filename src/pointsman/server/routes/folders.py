"""Operations on folders of workflows: list, create, share, rename, delete, and move a workflow."""

from __future__ import annotations

from typing import Final

from fastapi import Response
from pydantic import Field

from pointsman.auth.sharing import SharingView
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.access import SharingBody, sharing_reply
from pointsman.server.routes.parameters import PATH_CHARS_MAX, Folder, Id, IfMatch
from pointsman.server.schemas.answers import answers, example, refusals
from pointsman.server.schemas.requests import Body, sample
from pointsman.workflows.folders import FolderList, FolderVerbs, FolderView, MovedWorkflow

router = Operations(tags=["folders"])


class FolderBody(Body):
    """A path of a folder."""

    model_config = sample(path="sales/mail")
    path: str = Field(min_length=1, max_length=PATH_CHARS_MAX, description="Names separated by `/`.")


class WorkflowFolderBody(Body):
    """Where a workflow is to lie."""

    model_config = sample(folder="sales/mail")
    folder: str = Field(max_length=PATH_CHARS_MAX, description="Path of an existing folder; empty: in none.")


FOLDER: Final[FolderView] = {
    "path": "sales/mail",
    "owner": "ada",
    "audience": "groups",
    "groups": ["desk"],
    "workflows": 3,
    "etag": '"0b1f6c0ad1e2c3d4"',
}
example(FolderView, FOLDER)
example(FolderList, {"folders": [FOLDER]})
example(MovedWorkflow, {"id": "letter", "folder": "sales/mail"})


@router.get("/api/folders", verb=FolderVerbs.list, responses=answers(FolderList), summary="List folders")
async def list_(session: CallerSession) -> Response:
    """All folders that the caller may see, by path, with the number of workflows that the caller sees in each."""
    return JsonReply(await session.folders.list())


@router.post(
    "/api/folders",
    verb=FolderVerbs.create,
    responses=answers(FolderView, "folder-invalid", "folder-exists", status=201, body=True),
    status_code=201,
    summary="Create a folder",
)
async def create(session: CallerSession, body: FolderBody) -> Response:
    """Create a folder, and those around it that are missing. The caller owns them; new folders have the audience of the
    setting `access.new_workflows`."""
    return JsonReply(await session.folders.create(body.path), status=201)


@router.patch(
    "/api/folders",
    verb=FolderVerbs.rename,
    status_code=204,
    responses=refusals("unknown-folder", "folder-invalid", "folder-exists", body=True),
    summary="Rename a folder",
)
async def rename(session: CallerSession, path: Folder, body: FolderBody) -> Response:
    """Give a folder another path, with everything in it. For its owner and admins; out of a folder also that one's."""
    await session.folders.rename(path, body.path)
    return Response(status_code=204)


@router.delete(
    "/api/folders",
    verb=FolderVerbs.delete,
    status_code=204,
    responses=refusals("unknown-folder", "folder-not-empty"),
    summary="Delete a folder",
)
async def delete(session: CallerSession, path: Folder) -> Response:
    """Delete an empty folder. For its owner and admins."""
    await session.folders.delete(path)
    return Response(status_code=204)


@router.get(
    "/api/folders/sharing",
    verb=FolderVerbs.sharing,
    responses=answers(SharingView, "unknown-folder"),
    summary="Read the sharing of a folder",
)
async def read_sharing(session: CallerSession, path: Folder) -> Response:
    """The owner of a folder, and its audience."""
    return sharing_reply(await session.folders.sharing(path))


@router.put(
    "/api/folders/sharing",
    verb=FolderVerbs.share,
    responses=answers(SharingView, "unknown-folder", "revision-moved", "sharing-invalid", body=True),
    summary="Share a folder",
)
async def change_sharing(session: CallerSession, path: Folder, body: SharingBody, if_match: IfMatch = None) -> Response:
    """Allowed for its owner and admins. It narrows who sees the workflows in the folder and in the folders in it."""
    groups = tuple(body.groups)
    return sharing_reply(
        await session.folders.share(path, body.audience, groups=groups, owner=body.owner, match=if_match)
    )


@router.put(
    "/api/workflows/{id}/folder",
    verb=FolderVerbs.move,
    responses=answers(MovedWorkflow, "unknown-workflow", "unknown-folder", body=True),
    summary="Move a workflow",
)
async def move(session: CallerSession, id: Id, body: WorkflowFolderBody) -> Response:
    """Put a workflow into a folder, or with an empty path into none. For its owner and admins. Its id stays."""
    return JsonReply(await session.folders.move(id, body.folder))
