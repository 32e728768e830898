"""Download of a backup of the store."""

from __future__ import annotations

import tempfile
from pathlib import Path
from shutil import rmtree
from typing import Annotated, Final

from fastapi import Depends, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from pointsman.auth.callers import Caller
from pointsman.server.context import CurrentServer, RequireRole
from pointsman.server.operation import Operations
from pointsman.server.routes.response_docs import bytes_answer, refusals

router = Operations(tags=["operations"])

Admin = Annotated[Caller, Depends(RequireRole("admin", "back the store up"))]
MEDIA: Final = "application/vnd.sqlite3"
NAME: Final = "pointsman.backup"


@router.post(
    "/api/backup",
    responses=bytes_answer(MEDIA) | refusals("store-uncopyable"),
    summary="Back up the store",
    response_class=Response,
)
async def back_up(desk: CurrentServer, caller: Admin) -> Response:
    """Everything in the store as it is at this moment, verified, as the file that `pointsman restore` takes. It holds
    hashes of keys, and what executions were given: keep it as safe as the store."""
    folder = tempfile.mkdtemp(prefix="pointsman-")
    try:
        path = Path(folder) / NAME
        await desk.app.storage.back_up(path)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    done = BackgroundTask(rmtree, folder, ignore_errors=True)
    return FileResponse(path, media_type=MEDIA, filename=NAME, background=done)
