"""Wiring: models, tools and memory behind the executors of one installation."""

from __future__ import annotations

from dataclasses import dataclass

from pointsman.executors.registry import Executors
from pointsman.journal.store import Store
from pointsman.models.providers import Provider
from pointsman.models.script import Script
from pointsman.models.transport import PydanticModels, is_scripted
from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.unscripted import UnscriptedTools


@dataclass(frozen=True, slots=True)
class Hands:
    """What carries out work."""

    executors: Executors
    models: PydanticModels

    async def close(self) -> None:
        await self.models.close()


def wire(settings: Settings, tools: ToolRegistry, store: Store, *, model: str | None, script: Script | None) -> Hands:
    """Connect nothing yet: providers are opened by the first call."""
    providers = {name: Provider(base_url=one.base_url, keys=one.keys) for name, one in settings.providers.items()}
    default = settings.model_in_effect
    models = PydanticModels(providers=providers, default=default, only=model, script=script)
    played = is_scripted(model or default)
    hands = Executors(models=models, tools=UnscriptedTools(tools) if played else tools, memory=store.memory)
    return Hands(hands, models)
