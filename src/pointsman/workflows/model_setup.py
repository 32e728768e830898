"""Setup of an installation's models from its settings. Connects to no provider."""

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
    """Return the models of the settings. Providers are connected to on the first call."""
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
    """Return a provider with its secrets. A handle without a secret stays in place and is rejected on first use."""
    provider = one.provider(name)
    return replace(provider, keys=tuple(_resolved(settings, key) for key in provider.keys))


def _resolved(settings: Settings, key: str) -> str:
    try:
        return settings.resolved(key) or key
    except OperatorError:
        return key  # An unusable provider must not disable the others.
