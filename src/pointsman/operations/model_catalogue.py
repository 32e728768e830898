"""Model catalogue: which models the settings name, their providers, keys and prices, and whether they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, Literal

from typing_extensions import TypedDict

from pointsman.context import AppContext
from pointsman.errors import sentences
from pointsman.models.failures import ModelUnusable
from pointsman.models.key_pool import KeyPool
from pointsman.models.prices import LIST, PER, cost_usd, list_day, list_version
from pointsman.models.provider import FROM_ENVIRONMENT, HANDLE, KINDS, Provider, ProviderSettings
from pointsman.models.transport import is_scripted
from pointsman.operations.model_connections import connected_records, default_etag, provider_etag
from pointsman.operations.model_ping import ModelPing, ping_model
from pointsman.workflows.models import models_for, provider_for

SHOWN: Final = 4
SHOWN_OF_MIN: Final = 12
"""Of a shorter key no characters are shown."""
CONNECTED: Final = "app"
"""Source of providers that an admin connected, and of the default model that an admin chose."""
ITS_CLIENT: Final = "client"
"""Source of keys that only the provider's own client knows."""
EMBEDDINGS: Final = "embeddings of memory"


class NamedModelView(TypedDict):
    """A model that the settings name."""

    name: str
    uses: list[str]
    scripted: bool
    inputUsdPerMillion: float | None
    outputUsdPerMillion: float | None
    priceFrom: Literal["settings", "list"] | None
    """Source of the price; null: the price is unknown."""


class PriceListView(TypedDict):
    """The price list for models whose price is not in the settings."""

    name: str
    version: str | None
    """null: the list is not installed."""
    installed: str | None
    """Day on which the list was installed: it has no newer price."""


class ModelProviderView(TypedDict):
    """A provider of models. Of its keys only the last characters are shown."""

    name: str
    kind: str
    baseUrl: str | None
    keys: int
    masked: list[str]
    strategy: str
    """Order in which its keys are used."""
    interval: float
    """Minimum seconds between two calls."""
    source: str
    """Source of its keys: `settings`, an environment variable, its own `client`, or `app` if an admin connected it."""
    missing: str | None
    """Why it cannot be called; null: it can."""
    etag: str
    """ETag of the present connection, for `If-Match`; empty: it was not connected in the app."""


class ModelCatalogue(TypedDict):
    """The models of the installation."""

    default: str | None
    defaultFrom: str | None
    """Source of the default model: a file, a variable, an option, or `app` if an admin chose it; null: there is
    none."""
    defaultEtag: str
    """ETag of the chosen default model, for `If-Match`; empty: none was chosen in the app."""
    forEveryAgent: bool
    """The default model is used for all agents, whatever model they name."""
    models: list[NamedModelView]
    providers: list[ModelProviderView]
    prices: PriceListView


class ModelPings(TypedDict):
    """The result of a request to every named model."""

    models: list[ModelPing]


def list_models(app: AppContext) -> ModelCatalogue:
    """Return the named models with their prices, and the configured providers. Keys are masked to their last
    characters."""
    settings = app.settings
    answers = app.services.model or app.services.models.choice.default or None
    connected = connected_records(app)
    providers = [_provider(app, name, provider) for name, provider in settings.providers.items()]
    for name, variable in settings.providers_by_key().items():
        if name not in settings.providers:
            providers.append(_provider(app, name, ProviderSettings(kind=name), source=variable))
    for name, one in connected.items():
        view = _provider(app, name, one.settings, source=CONNECTED)
        view["etag"] = provider_etag(one)
        providers.append(view)
    configured = settings.providers.keys() | settings.providers_by_key().keys() | connected.keys()
    pools = app.services.models.pools()
    providers += [
        _unconfigured_provider(app, name, pool) for name, pool in sorted(pools.items()) if name not in configured
    ]
    return {
        "default": answers,
        "defaultFrom": None if answers is None else _source_of_default(app),
        "defaultEtag": default_etag(app),
        "forEveryAgent": app.services.model is not None,
        "models": [_model(app, name, uses) for name, uses in named_models(app).items()],
        "providers": providers,
        "prices": _price_list(),
    }


def _source_of_default(app: AppContext) -> str:
    settings = app.settings
    if app.services.model is not None and app.services.model != settings.model:
        return "--model"
    return settings.sources.get("model", "settings") if settings.model else CONNECTED


def named_models(app: AppContext) -> dict[str, list[str]]:
    """Return every model that the settings name, with its uses."""
    names: dict[str, list[str]] = {}
    for name, use in _uses(app):
        if name:
            names.setdefault(name, []).append(use)
    return names


def _uses(app: AppContext) -> Iterator[tuple[str, str]]:
    settings = app.settings
    if app.services.model is not None:
        yield app.services.model, "every agent"
        if not is_scripted(app.services.model):
            yield embeddings_of(app), EMBEDDINGS
        return
    yield app.services.models.choice.default, "default"
    for purpose, name in settings.models.items():
        yield name, purpose
    for name in settings.fallback:
        yield name, "fallback"
    for agent, config in settings.agents.items():
        yield config.model or "", f"agent {agent}"
        for name in config.fallback or ():
            yield name, f"fallback of agent {agent}"
    yield embeddings_of(app), EMBEDDINGS


def embeddings_of(app: AppContext) -> str:
    """Return the embedding model of memory; empty if there is none."""
    embeddings = app.settings.memory.embeddings
    return "" if embeddings is None else embeddings.model


def _model(app: AppContext, name: str, uses: list[str]) -> NamedModelView:
    provider, _, model = name.partition(":")
    connected = connected_records(app).get(provider)
    configured = app.settings.providers.get(provider) or (None if connected is None else connected.settings)
    kind = provider if configured is None or not configured.kind else configured.kind
    kind = kind.removesuffix("-chat").removesuffix("-responses")
    own = app.settings.price_list.own(provider, model)
    prices: tuple[float | None, float | None] = (None, None)
    if own is not None:
        prices = own.input, own.output
    elif not is_scripted(name):
        prices = _listed(kind, model)
    return {
        "name": name,
        "uses": uses,
        "scripted": is_scripted(name),
        "inputUsdPerMillion": prices[0],
        "outputUsdPerMillion": prices[1],
        "priceFrom": "settings" if own is not None else "list" if prices[0] is not None else None,
    }


def _listed(kind: str, model: str) -> tuple[float | None, float | None]:
    """Return the list prices of small calls; some providers charge more beyond a certain length."""
    one, other = (cost_usd(kind, model, input_tokens=tokens, output_tokens=1000 - tokens) for tokens in (1000, 0))
    return None if one is None else one * PER / 1000, None if other is None else other * PER / 1000


def _price_list() -> PriceListView:
    """Return the price list that applies where the settings have no price."""
    day = list_day()
    return {"name": LIST, "version": list_version(), "installed": None if day is None else day.isoformat()}


def _provider(app: AppContext, name: str, settings: ProviderSettings, *, source: str = "settings") -> ModelProviderView:
    provider = provider_for(app.settings, name, settings)
    missing = None
    try:
        resolved: Provider = provider.resolved(name)
    except ModelUnusable as why:
        resolved, missing = provider, sentences(str(why), why.hint)
    return {
        "name": name,
        "kind": provider.kind,
        "baseUrl": settings.base_url or None,
        "keys": len(resolved.keys),
        "masked": [*settings.keys] if source == CONNECTED else [masked(key) for key in resolved.keys],
        "strategy": settings.strategy,
        "interval": settings.interval.seconds,
        "source": source if source != "settings" or settings.keys else provider.key_variable() or "settings",
        "missing": missing,
        "etag": "",
    }


def _unconfigured_provider(app: AppContext, name: str, pool: KeyPool) -> ModelProviderView:
    """Return a provider that was called but is not configured: its own client finds the credentials."""
    if name in KINDS:
        return _provider(app, name, ProviderSettings(kind=name), source=ITS_CLIENT)
    settings = ProviderSettings()
    return {
        "name": name,
        "kind": name,
        "baseUrl": None,
        "keys": len(pool.look()),
        "masked": [],
        "strategy": settings.strategy,
        "interval": settings.interval.seconds,
        "source": ITS_CLIENT,
        "missing": None,
        "etag": "",
    }


def masked(key: str) -> str:
    """Return a key for display: its source if it is a reference, else its last characters."""
    if key.startswith((FROM_ENVIRONMENT, HANDLE)):
        return key
    return f"…{key[-SHOWN:]}" if len(key) >= SHOWN_OF_MIN else "…"


async def ping_models(app: AppContext) -> list[ModelPing]:
    """Send a one-word request to every named model, all at once, rotating keys. Return each answer or failure."""
    models = models_for(app.settings, model=None, script=app.services.script, connected=app.services.models.connected)
    try:
        models_by_name = named_models(app).items()
        pings = (ping_model(models, name, embeds=uses == [EMBEDDINGS]) for name, uses in models_by_name)
        return [*await asyncio.gather(*pings)]
    finally:
        await models.close()
