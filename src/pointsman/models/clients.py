"""Opens the client of a model with one key. The client library of a kind is imported at its first use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from pointsman.extras import install_hint, is_importable, need
from pointsman.models.failures import ModelUnusable
from pointsman.models.provider import COMPATIBLE, COMPATIBLE_RESPONSES, KINDS, Provider

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.embeddings import EmbeddingModel
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider as SpeakerOf

    from pointsman.models.direct_wire import DirectWire
    from pointsman.models.provider_http import ProviderClient
    from pointsman.models.wire_format import Format

    Speaker: TypeAlias = SpeakerOf[Any]
"""Generic in the client type of an SDK."""

READ_S: Final = 600.0
"""Read timeout. Calls have their own, shorter limits; this one applies to requests without a limit."""
CONNECT_S: Final = 10.0
_ADDRESSES: Final = {
    "openrouter": "https://openrouter.ai/api/v1",
    "deepseek": "https://api.deepseek.com",
    "mistral": "https://api.mistral.ai/v1",
}
_NO_EMBEDDINGS: Final = frozenset({"anthropic", "bedrock", "deepseek", "groq"})


class Closing(Protocol):
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model's client and its connections, which the caller must close."""

    model: Model
    connections: Closing | None = None
    wire: DirectWire | None = None
    """Sends the requests of the model; None: its client does."""


def open_model(label: str, model: str, provider: Provider, *, key: str | None) -> OpenedModel:
    """Return the client of a model. Raises `ModelUnusable` naming what is missing, `ExtraMissing`."""
    need("agents", f"The provider {label!r}")
    from pydantic_ai.exceptions import UserError

    try:
        return _opened(label, model, provider, key=key)
    except ImportError as why:
        raise ModelUnusable(
            f"the client for the provider {label!r} is not installed: {why}",
            hint=install_hint(KINDS[provider.kind].extra),
        ) from None
    except (UserError, ValueError) as why:
        raise ModelUnusable(
            f"the model '{label}:{model}' cannot be used: {why}",
            hint=f"Set what the message requires under [providers.{label}] or in the environment.",
        ) from None


def _opened(label: str, model: str, provider: Provider, *, key: str | None) -> OpenedModel:
    from pydantic_ai.models import infer_model

    if provider.kind == "bedrock":
        speaker = _bedrock(provider, key=key)
        return OpenedModel(infer_model(f"bedrock:{model}", provider_factory=lambda _: speaker))
    if provider.kind == "groq":
        return _groq(model, provider, key=key)
    http = _http(provider)
    if provider.kind in (COMPATIBLE, COMPATIBLE_RESPONSES):
        opened = _compatible(label, model, provider, key=key, http=http)
    else:
        full_name = f"{provider.kind}:{model}"
        opened = infer_model(full_name, provider_factory=lambda _: _client_of(provider, key=key, http=http))
    return OpenedModel(opened, http, _wire(opened, http))


def _wire(model: Model, http: ProviderClient) -> DirectWire | None:
    """Return the wire of a model with a known format."""
    from pointsman.models.direct_wire import DirectWire

    found = _format(model)
    return None if found is None else DirectWire(model, http, found[0], reads=found[1])


def _format(model: Model) -> tuple[Format, bool] | None:
    """Return the format of a model's API, and whether its replies have no form of their own."""
    if model.system == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel

        from pointsman.models.anthropic_format import MESSAGES

        return (MESSAGES, True) if type(model) is AnthropicModel else None
    if not is_importable("openai"):
        return None
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

    from pointsman.models.openai_formats import CHAT, RESPONSES

    if isinstance(model, OpenAIChatModel):
        # Subclasses, such as that of OpenRouter, read replies in their own way.
        return CHAT, type(model) in (OpenAIChatModel, OllamaModel)
    return (RESPONSES, True) if type(model) is OpenAIResponsesModel else None


def open_embedder(
    label: str, model: str, provider: Provider, *, key: str | None
) -> tuple[EmbeddingModel, httpx2.AsyncClient]:
    """Return the client of an embedding model and its connections. Raises `ModelUnusable`, `ExtraMissing`."""
    need("agents", f"The provider {label!r}")
    if provider.kind in _NO_EMBEDDINGS:
        raise ModelUnusable(
            f"the provider {label!r} is of a kind without embeddings here: {provider.kind!r}",
            hint="Use a model of another provider under [memory.embeddings].",
        )
    http = _http(provider)
    if provider.kind == "google":
        from pydantic_ai.embeddings.google import GoogleEmbeddingModel

        return GoogleEmbeddingModel(model, provider=_client_of(provider, key=key, http=http)), http
    from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel

    if provider.kind in (COMPATIBLE, COMPATIBLE_RESPONSES):
        return OpenAIEmbeddingModel(model, provider=_compatible_speaker(label, provider, key=key, http=http)), http
    if provider.kind == "azure":
        return OpenAIEmbeddingModel(model, provider=_client_of(provider, key=key, http=http)), http
    return OpenAIEmbeddingModel(model, provider=_openai(provider, key=key, http=http)), http


def infer(provider: str, model: str) -> Model:
    """Return the client of a provider that only pydantic-ai supports, configured by its environment variables.

    Raises `ModelUnusable`, `ExtraMissing`.
    """
    need("agents", f"The provider {provider!r}")
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    try:
        return infer_model(f"{provider}:{model}")
    except ImportError as why:
        raise ModelUnusable(
            f"the client for the provider {provider!r} is not installed: {why}",
            hint=f"Install it: pip install 'pydantic-ai-slim[{provider.split('-')[0]}]'.",
        ) from None
    except (UserError, ValueError) as why:
        raise ModelUnusable(
            f"the model '{provider}:{model}' cannot be used: {why}",
            hint="Configure the provider in the settings, or set what the message requires in the environment.",
        ) from None


def _http(provider: Provider) -> ProviderClient:
    import httpx2

    from pointsman.models.http1 import transport_for_environment
    from pointsman.models.provider_http import ProviderClient, record_response

    # Proxy and certificate variables apply only to network transports.
    return ProviderClient(
        transport=provider.http or transport_for_environment(),
        trust_env=provider.http is None,
        timeout=httpx2.Timeout(READ_S, connect=CONNECT_S),
        headers=dict(provider.headers),
        event_hooks={"response": [record_response]},
    )


def _compatible(label: str, model: str, provider: Provider, *, key: str | None, http: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

    speaker = _compatible_speaker(label, provider, key=key, http=http)
    if provider.kind == COMPATIBLE_RESPONSES:
        return OpenAIResponsesModel(model, provider=speaker)
    return OpenAIChatModel(model, provider=speaker)


def _compatible_speaker(label: str, provider: Provider, *, key: str | None, http: httpx2.AsyncClient) -> Speaker:
    from openai import AsyncOpenAI
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    client = AsyncOpenAI(api_key=key or "none", base_url=provider.base_url, http_client=http, max_retries=0)
    return OpenAICompatibleProvider(label, openai_client=client)


def _client_of(provider: Provider, *, key: str | None, http: httpx2.AsyncClient) -> Speaker:
    at = provider.base_url or None
    match provider.kind:
        case "anthropic":
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicProvider(api_key=key, base_url=at, http_client=http)
        case "google":
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleProvider(api_key=key, base_url=at, http_client=http)
        case "mistral":
            from pydantic_ai.providers.mistral import MistralProvider

            return MistralProvider(api_key=key, base_url=at, http_client=http)
        case "azure":
            from pydantic_ai.providers.azure import AzureProvider

            version = provider.api_version or None
            return AzureProvider(azure_endpoint=at, api_key=key, api_version=version, http_client=http)
        case _:
            return _openai(provider, key=key, http=http)


def _openai(provider: Provider, *, key: str | None, http: httpx2.AsyncClient) -> Speaker:
    """Return the provider for kinds that use the OpenAI client."""
    from openai import AsyncOpenAI
    from pydantic_ai.providers.deepseek import DeepSeekProvider
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openrouter import OpenRouterProvider
    from pydantic_ai.providers.vllm import VLLMProvider

    at = provider.base_url or _ADDRESSES.get(provider.kind)
    client = AsyncOpenAI(api_key=key or "none", base_url=at, http_client=http, max_retries=0)
    match provider.kind:
        case "ollama":
            return OllamaProvider(openai_client=client)
        case "vllm":
            return VLLMProvider(openai_client=client)
        case "openrouter":
            return OpenRouterProvider(openai_client=client)
        case "deepseek":
            return DeepSeekProvider(openai_client=client)
        case _:
            return OpenAIProvider(openai_client=client)


def _groq(model: str, provider: Provider, *, key: str | None) -> OpenedModel:
    import httpx  # The SDK requires httpx; httpx2 is not supported.
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    http = httpx.AsyncClient(timeout=httpx.Timeout(READ_S, connect=CONNECT_S), headers=dict(provider.headers))
    speaker = GroqProvider(api_key=key, base_url=provider.base_url or None, http_client=http)
    return OpenedModel(GroqModel(model, provider=speaker), http)


def _bedrock(provider: Provider, *, key: str | None) -> Speaker:
    from pydantic_ai.providers.bedrock import BedrockProvider

    at, region = provider.base_url or None, provider.region or None
    if key is None:
        opened = BedrockProvider(region_name=region, base_url=at)
    else:
        opened = BedrockProvider(api_key=key, region_name=region, base_url=at)
    # The SDK retries four times; an open client offers no other way to disable this.
    events = cast("_Events", opened.client.meta.events)
    events.unregister("needs-retry.bedrock-runtime", unique_id="retry-config-bedrock-runtime")
    return opened


class _Events(Protocol):
    def unregister(self, event_name: str, *, unique_id: str) -> None: ...
