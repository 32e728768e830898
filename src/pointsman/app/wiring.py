"""Wiring: models, tools and memory behind the executors of one installation."""

from __future__ import annotations

from dataclasses import dataclass

from pointsman.executors.registry import Executors
from pointsman.journal.store import Store
from pointsman.models.providers import Provider
from pointsman.models.script import Script
from pointsman.models.transport import PydanticModels
from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry


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
    models = PydanticModels(providers=providers, default=settings.model or "scripted", only=model, script=script)
    return Hands(Executors(models=models, tools=tools, memory=store.memory), models)
