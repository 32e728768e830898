"""Embeddings: calls embedding models with the keys and the pacing of their provider.

Models are named `provider:name`. Supported are providers with OpenAI's wire format (including Azure, Mistral, Ollama,
vLLM, OpenRouter and custom addresses) and Google.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pointsman.engine.failures import Failure
from pointsman.engine.reports import Usage
from pointsman.models.failures import ModelFailed, ModelUnusable
from pointsman.models.key_pool import REFUSED_S, Days
from pointsman.models.prices import Prices, cost_usd
from pointsman.models.providers import ModelRoute, Providers

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, EmbeddingSettings

    from pointsman.models.clients import Closing

AT_ONCE: Final = 64
"""Maximum number of texts per call."""
TIMEOUT_S: Final = 60.0


class Embedded(NamedTuple):
    """Vectors of texts, and the usage of the call."""

    vectors: list[tuple[float, ...]]
    usage: Usage


class Embedders:
    """Clients of embedding models, opened at their first call and kept open."""

    def __init__(self, providers: Providers, days: Days, prices: Prices | None = None) -> None:
        self._providers = providers
        self._prices = prices or Prices()
        self._days = days
        self._open: dict[tuple[str, str, int], EmbeddingModel] = {}
        self._connections: list[Closing] = []

    async def embed(
        self, name: str, texts: Sequence[str], *, query: bool = False, dimensions: int | None = None
    ) -> Embedded:
        """Return one vector per text, at most `AT_ONCE`. `query`: the text is a search query, not a stored text. Raises
        `ModelFailed`, `ModelUnusable`."""
        provider, _, model = name.partition(":")
        if not model:
            raise ModelUnusable(f"{name!r} has no provider", hint="Write provider:model.")
        line = self._providers.line(provider, model)
        key = await self._payer(line)
        try:
            found = await self._request(self._model(line, key), texts, query=query, dimensions=dimensions)
            usage = self._prices.paid(line.provider, line.model, _usage_of(found, line))
            await self._days.paid(line.provider, key, line.day, usage)
            return Embedded(_vectors_of(found, texts), usage)
        except ModelFailed as why:
            line.pool.failed(key, why.failure)
            if why.failure.code == "model-rate-limited":
                line.pool.rest(key, why.failure.retry_after_s or line.wait_s, why.failure)
                await line.pool.tell(key)
            raise
        finally:
            line.pool.give_back(key)

    async def _payer(self, line: ModelRoute) -> int:
        """Return a key with budget left today, to be given back. Raises `ModelFailed` if there is none."""
        while True:
            key = await line.pool.take()
            try:
                refusal = await self._days.refusal(line.provider, key, line.day)
                if refusal is None:
                    return key
                line.pool.rest(key, REFUSED_S, refusal)
            except BaseException:
                line.pool.give_back(key)
                raise
            line.pool.give_back(key)

    def reopen(self) -> None:
        """Let each model open a new client at its next call: providers were replaced."""
        self._open.clear()

    async def close(self) -> None:
        """Close all connections."""
        connections, self._connections = self._connections, []
        self._open.clear()
        for connection in connections:
            await connection.aclose()

    def _model(self, line: ModelRoute, key: int) -> EmbeddingModel:
        place = (line.provider, line.model, key)
        if place not in self._open:
            from pointsman.models.clients import open_embedder  # Clients are imported at their first use.

            if line.settings is None:
                raise ModelUnusable(
                    f"there is no provider {line.provider!r}", hint=f"Add it under [providers.{line.provider}]."
                )
            secret = line.settings.keys[key] if line.settings.keys else None
            self._open[place], connections = open_embedder(line.provider, line.model, line.settings, key=secret)
            self._connections.append(connections)
        return self._open[place]

    async def _request(
        self, model: EmbeddingModel, texts: Sequence[str], *, query: bool, dimensions: int | None
    ) -> EmbeddingResult:
        from pointsman.models.exchange import exchanging  # As above.

        settings: EmbeddingSettings = {} if dimensions is None else {"dimensions": dimensions}
        try:
            async with asyncio.timeout(TIMEOUT_S):
                with exchanging(model):
                    return await model.embed([*texts], input_type="query" if query else "document", settings=settings)
        except TimeoutError:
            message = f"the embedding model did not answer within {TIMEOUT_S:g} s"
            raise ModelFailed(Failure(code="model-timeout", message=message, retryable=True)) from None


def _vectors_of(result: EmbeddingResult, texts: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the vectors. Raises `ModelFailed` unless there is one per text, all of the same length."""
    vectors = [tuple(map(float, embedding)) for embedding in result.embeddings]
    if len(vectors) != len(texts) or len({*map(len, vectors)}) > 1 or not all(vectors):
        message = f"the embedding model answered {len(texts)} texts with {len(vectors)} vectors"
        raise ModelFailed(Failure(code="model-answer-unreadable", message=message, retryable=True))
    return vectors


def _usage_of(result: EmbeddingResult, line: ModelRoute) -> Usage:
    tokens = result.usage.input_tokens
    cost = cost_usd(result.provider_name or "", result.model_name or line.model, input_tokens=tokens, output_tokens=0)
    return Usage(input_tokens=tokens, model_calls=1, cost_usd=cost)
