"""Uses of a secret: the saved workflows, agents and settings that name its handle (`secret.NAME`)."""

from __future__ import annotations

import os
import re
from typing import Final

from pointsman.context import AppContext
from pointsman.settings import PREFIX, Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.agent_library import SavedAgents

_OWN: Final = f"{PREFIX}SECRET_"


async def uses_of(app: AppContext, name: str) -> JsonObject:
    """Return the uses of a secret. Reads every saved agent and the latest revision of every saved workflow."""
    handle = re.compile(rf"(?<![A-Za-z0-9_])secret\.{re.escape(name)}(?![A-Za-z0-9_])")
    workflows: list[Json] = []
    for entry in await app.store.workflows.list():
        saved = await app.store.workflows.find(entry.id)
        if saved is not None and handle.search(saved.draft.text):
            workflows.append(entry.id)
    agents: list[Json] = [
        one.name for one in await SavedAgents(app).list() if any(handle.search(text) for text in _texts(one.agent))
    ]
    settings: list[Json] = [
        key
        for key, value in app.settings.model_dump(mode="json").items()
        if key not in ("secrets", "vault") and any(handle.search(text) for text in _texts(value))
    ]
    return {"workflows": workflows, "agents": agents, "settings": settings}


def secrets_elsewhere(settings: Settings) -> dict[str, str]:
    """Return name -> origin of the secrets outside the store. They take precedence over those of the store."""
    found = {name: "settings" for name, one in settings.own_secrets.items() if one.value}
    for name, value in os.environ.items():
        if name.startswith(_OWN) and value:
            found[name.removeprefix(_OWN)] = "environment"
    return found


def _texts(value: Json) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for one in value.values() for text in _texts(one)]
        case list():
            return [text for one in value for text in _texts(one)]
        case _:
            return []
