"""Settings in effect, each with its source."""

from __future__ import annotations

from typing import Annotated, Final, cast

from fastapi import Depends, Response
from pydantic import Field

from pointsman import __version__
from pointsman.auth.callers import Caller
from pointsman.server.context import CurrentServer, RequireRole
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.requests import Answer, JsonValue, sample
from pointsman.settings import Loaded
from pointsman.settings.display import shown, store_shown
from pointsman.values import Json, JsonObject

router = Operations(tags=["operations"])

Admin = Annotated[Caller, Depends(RequireRole("admin", "read the settings"))]
SETTING: Final[JsonObject] = {"name": "language", "value": "en", "source": "default"}


class SettingEntry(Answer):
    """A setting in effect."""

    model_config = sample(**SETTING)
    name: str
    value: JsonValue = Field(description="What is secret in it is masked.")
    source: str = Field(description="A file, a variable of the environment, a flag; or `default`.")


class SettingsAnswer(Answer):
    """The installation."""

    model_config = sample(version="1.0.0", store="sqlite:///pointsman.db", settings=[SETTING])
    version: str
    store: str = Field(description="Where everything is kept; without its password.")
    settings: list[SettingEntry]


@router.get("/api/settings", responses=answers(SettingsAnswer), summary="Read the settings")
async def read_settings(desk: CurrentServer, caller: Admin) -> Response:
    """Those in effect, with where each comes from; nothing secret is told. They are changed in files and variables."""
    settings = desk.app.settings
    told = shown(Loaded(settings, settings.sources))
    entries: list[Json] = [{"name": name, **cast("JsonObject", one)} for name, one in told.items()]
    return JsonReply({"version": __version__, "store": store_shown(settings.store_url), "settings": entries})
