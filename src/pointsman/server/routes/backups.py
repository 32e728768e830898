"""Download of a backup of the store."""

from __future__ import annotations

import tempfile
from pathlib import Path
from shutil import rmtree
from typing import Final

from fastapi import Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from pointsman.operations.verbs import OperationVerbs
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.routes.response_docs import bytes_answer, refusals

router = Operations(tags=["operations"])

MEDIA: Final = "application/vnd.sqlite3"
NAME: Final = "pointsman.backup"


@router.post(
    "/api/backup",
    verb=OperationVerbs.back_up,
    responses=bytes_answer(MEDIA) | refusals("store-uncopyable"),
    summary="Back up the store",
    response_class=Response,
)
async def back_up(session: CallerSession) -> Response:
    """Everything in the store as it is at this moment, verified, as the file that `pointsman restore` takes. It holds
    hashes of keys, and what executions were given: keep it as safe as the store."""
    folder = tempfile.mkdtemp(prefix="pointsman-")
    try:
        path = Path(folder) / NAME
        await session.operations.back_up(path)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    done = BackgroundTask(rmtree, folder, ignore_errors=True)
    return FileResponse(path, media_type=MEDIA, filename=NAME, background=done)
