"""The models of an installation, as its settings describe them. Connects to nothing."""

from __future__ import annotations

from dataclasses import replace

from pointsman.errors import OperatorError
from pointsman.models.key_budgets import Spending
from pointsman.models.key_leases import Turns
from pointsman.models.provider import Provider, ProviderSettings
from pointsman.models.script import Script
from pointsman.models.transport import PydanticModels
from pointsman.settings import Settings


def models_for(
    settings: Settings,
    *,
    model: str | None,
    script: Script | None,
    spending: Spending | None = None,
    turns: Turns | None = None,
) -> PydanticModels:
    """Connects nothing yet: providers are opened by the first call."""
    return PydanticModels(
        providers={name: provider_for(settings, name, one) for name, one in settings.providers.items()},
        default=settings.model,
        purposes=settings.models,
        temperatures=settings.temperatures,
        fallback=settings.fallback,
        only=model,
        script=script,
        spending=spending,
        turns=turns,
        prices=settings.price_list,
    )


def provider_for(settings: Settings, name: str, one: ProviderSettings) -> Provider:
    """A provider with its secrets. A handle of which there is none stays, and is refused when it is first asked."""
    provider = one.provider(name)
    return replace(provider, keys=tuple(_resolved(settings, key) for key in provider.keys))


def _resolved(settings: Settings, key: str) -> str:
    try:
        return settings.resolved(key) or key
    except OperatorError:
        return key  # One provider that cannot be asked must not shut the rest.
