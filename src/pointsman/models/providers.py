"""Who speaks: `provider:model` names opened as clients, each imported only when it is first asked.

A provider named in the settings is any service that speaks the Chat Completions wire; every other name is one that
pydantic-ai knows, configured by its usual environment variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pointsman.models.failures import ModelUnusable

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A service that speaks the Chat Completions wire."""

    base_url: str
    """Where `chat/completions` is, such as `http://127.0.0.1:8080/v1`."""
    keys: tuple[str, ...] = field(default=(), repr=False)
    """API keys; an agent's `keyIndex` chooses one, modulo their number. None: the service asks for none."""
    http: httpx2.AsyncBaseTransport | None = None
    """How requests travel; absent: over the network."""


class Providers:
    """Opens models and keeps them open. One client per provider and key."""

    def __init__(self, known: Mapping[str, Provider] | None = None) -> None:
        self._known = dict(known or {})
        self._open: dict[tuple[str, str, int], Model] = {}
        self._clients: list[httpx2.AsyncClient] = []

    @property
    def keys(self) -> list[str]:
        """All of them: they must not be shown."""
        return [key for provider in self._known.values() for key in provider.keys]

    def open_model(
        self,
        provider: str,
        name: str,
        *,
        key_index: int | None = None,
        otherwise: Callable[[], Provider] | None = None,
    ) -> Model:
        """The client of a model. `otherwise` describes a provider that no settings name.

        Raises `ModelUnusable` naming what is missing: the provider, its key, or a part that is not installed.
        """
        settings = self._known.get(provider)
        key_at = (key_index or 0) % len(settings.keys) if settings is not None and settings.keys else 0
        opened = self._open.get((provider, name, key_at))
        if opened is None:
            if settings is None and otherwise is not None:
                settings = otherwise()
            opened = _infer(provider, name) if settings is None else self._connect(provider, name, settings, key_at)
            self._open[provider, name, key_at] = opened
        return opened

    async def close(self) -> None:
        """Hang up. Models opened here are of no use afterwards."""
        clients, self._clients = self._clients, []
        self._open.clear()
        for client in clients:
            await client.aclose()

    def _connect(self, provider: str, name: str, settings: Provider, key_at: int) -> Model:
        import httpx2
        from openai import AsyncOpenAI
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        # The proxy and certificate variables of the environment count for the network only.
        http = httpx2.AsyncClient(transport=settings.http, trust_env=settings.http is None)
        self._clients.append(http)
        key = settings.keys[key_at] if settings.keys else "none"
        client = AsyncOpenAI(api_key=key, base_url=settings.base_url, http_client=http, max_retries=0)
        return OpenAIChatModel(name, provider=OpenAICompatibleProvider(provider, openai_client=client))


def _infer(provider: str, name: str) -> Model:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    try:
        return infer_model(f"{provider}:{name}")
    except ImportError as why:
        raise ModelUnusable(
            f"the client for the provider {provider!r} is not installed: {why}",
            hint=f"Install it: pip install 'pydantic-ai-slim[{provider.split('-')[0]}]'.",
        ) from why
    except (UserError, ValueError) as why:
        raise ModelUnusable(
            f"the model '{provider}:{name}' cannot be used: {why}",
            hint="Name the provider in the settings, or set what the message asks for in the environment.",
        ) from why
