"""Settings in effect, each with its source."""

from __future__ import annotations

from fastapi import Response

from pointsman.operations.verbs import OperationVerbs
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.views import example
from pointsman.settings.display import SettingsView

router = Operations(tags=["operations"])

example(
    SettingsView,
    {
        "version": "1.0.0",
        "store": "sqlite:///pointsman.db",
        "settings": [{"name": "language", "value": "en", "source": "default"}],
    },
)


@router.get("/api/settings", verb=OperationVerbs.settings, responses=answers(SettingsView), summary="Read the settings")
async def read_settings(session: CallerSession) -> Response:
    """The settings in effect, each with its source; secrets are masked. They are changed in files and variables."""
    return JsonReply(await session.operations.settings())
