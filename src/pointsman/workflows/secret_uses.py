"""Uses of a secret: the saved workflows, agents and settings that name its handle (`secret.NAME`)."""

from __future__ import annotations

import os
import re
from typing import Final, Literal, TypeAlias

from typing_extensions import TypedDict

from pointsman.auth.vault import SecretRuleView, SecretView
from pointsman.context import AppContext
from pointsman.settings import PREFIX, Settings
from pointsman.values import Json
from pointsman.workflows.saving import SavedAgents

_OWN: Final = f"{PREFIX}SECRET_"
SecretSource: TypeAlias = Literal["settings", "environment"]


class SecretUses(TypedDict):
    """The saved workflows, agents and settings that name a secret."""

    workflows: list[str]
    agents: list[str]
    settings: list[str]


class OtherSecretView(SecretRuleView):
    """A secret that is not in the store. It takes precedence over one of the same name in the store."""

    name: str
    source: SecretSource


class SecretPage(TypedDict):
    """Secrets by name."""

    secrets: list[SecretView]
    elsewhere: list[OtherSecretView]
    """All secrets outside the store, on each page."""
    next: str | None
    """The `after` of the next page; null: this was the last."""


async def uses_of(app: AppContext, name: str) -> SecretUses:
    """Return the uses of a secret. Reads every saved agent and the latest revision of every saved workflow."""
    handle = re.compile(rf"(?<![A-Za-z0-9_])secret\.{re.escape(name)}(?![A-Za-z0-9_])")
    workflows: list[str] = []
    for entry in await app.store.workflows.list():
        saved = await app.store.workflows.find(entry.id)
        if saved is not None and handle.search(saved.draft.text):
            workflows.append(entry.id)
    agents = [
        one.name for one in await SavedAgents(app).list() if any(handle.search(text) for text in _texts(one.agent))
    ]
    settings = [
        key
        for key, value in app.settings.model_dump(mode="json").items()
        if key not in ("secrets", "vault") and any(handle.search(text) for text in _texts(value))
    ]
    return {"workflows": workflows, "agents": agents, "settings": settings}


def secrets_elsewhere(settings: Settings) -> dict[str, SecretSource]:
    """Return name -> origin of the secrets outside the store. They take precedence over those of the store."""
    found: dict[str, SecretSource] = {name: "settings" for name, one in settings.own_secrets.items() if one.value}
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
