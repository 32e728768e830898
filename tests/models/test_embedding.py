"""Embedding models in the protocols of their providers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from pointsman.app import Pointsman
from pointsman.models.failures import ModelFailed, ModelUnusable
from pointsman.models.provider import Provider
from pointsman.models.transport import PydanticModels
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from tests.http_server import http_server
from tests.local_model.server import EMBEDDING, ModelServer, running

pytestmark = pytest.mark.integration

KEY = "canary-key-0123456789"
OPENAI: JsonObject = {
    "object": "list",
    "model": "small",
    "data": [
        {"object": "embedding", "index": 0, "embedding": [0.5, -0.5]},
        {"object": "embedding", "index": 1, "embedding": [0.25, 1]},
    ],
    "usage": {"prompt_tokens": 8, "total_tokens": 8},
}
GOOGLE: JsonObject = {"embeddings": [{"values": [0.5, -0.5]}, {"values": [0.25, 1]}]}


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with http_server() as running:
        yield running


def answer(server: HTTPServer, body: Json, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
    given = {"content-type": "application/json", **(headers or {})}
    server.expect_request(re.compile(".*")).respond_with_data(json.dumps(body), status=status, headers=given)


async def embed(server: HTTPServer, kind: str, *, dimensions: int | None = None) -> list[tuple[float, ...]]:
    models = PydanticModels(providers={"house": Provider(kind=kind, base_url=server.url_for("/v1"), keys=(KEY,))})
    try:
        return (await models.embed("house:small", ["one", "two"], dimensions=dimensions)).vectors
    finally:
        await models.close()


@pytest.mark.parametrize(
    "kind", ["openai-compatible", "openai", "azure", "mistral", "ollama", "vllm", "openrouter", "google"]
)
async def test_each_provider_kind_sends_texts_with_its_key_and_reads_vectors(server: HTTPServer, kind: str) -> None:
    answer(server, GOOGLE if kind == "google" else OPENAI)
    assert await embed(server, kind, dimensions=2) == [(0.5, -0.5), (0.25, 1.0)]
    [(request, _)] = server.log
    sent = request.get_data(as_text=True)
    assert '"one"' in sent
    assert '"two"' in sent
    assert re.search(r'"(dimensions|outputDimensionality)": ?2', sent)
    assert KEY in str(request.headers)


@pytest.mark.parametrize(
    ("status", "code"), [(401, "model-unauthorized"), (429, "model-rate-limited"), (503, "model-unavailable")]
)
async def test_embedding_failures_have_the_codes_of_other_models_and_contain_no_key(
    server: HTTPServer, status: int, code: str
) -> None:
    answer(server, {"error": {"message": f"not with {KEY}"}}, status=status, headers={"retry-after": "7"})
    with pytest.raises(ModelFailed) as caught:
        await embed(server, "openai-compatible")
    assert caught.value.failure.code == code
    assert KEY not in f"{caught.value!r}{caught.value.failure!r}"
    assert len(server.log) == 1, "the client tries nothing again"


@pytest.mark.parametrize("body", [{**OPENAI, "data": []}, {"data": 5}, [], "welcome"])
async def test_an_invalid_answer_is_a_failure(server: HTTPServer, body: Json) -> None:
    answer(server, body)
    with pytest.raises(ModelFailed) as caught:
        await embed(server, "openai-compatible")
    assert caught.value.failure.code in ("model-answer-unreadable", "model-failed", "model-unreachable")


@pytest.mark.parametrize(("kind", "named"), [("anthropic", "house:small"), ("openai-compatible", "small")])
async def test_a_provider_without_embeddings_is_reported_by_name(server: HTTPServer, kind: str, named: str) -> None:
    provider = Provider(kind=kind, base_url=server.url_for("/v1"), keys=(KEY,))
    models = PydanticModels(providers={"house": provider})
    with pytest.raises(ModelUnusable) as caught:
        await models.embed(named, ["one"])
    await models.close()
    assert caught.value.hint


@pytest.fixture(scope="module")
def local_embeddings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """A real embedding server on this machine."""
    yield from running(tmp_path_factory.mktemp("embeddings"), *EMBEDDING)


def at(server: ModelServer, *keys: str) -> Settings:
    own: JsonObject = {"base_url": f"{server.address}/v1", "keys": [*keys]}
    embeddings: JsonObject = {"model": f"own:{server.name}", "similarity_min": 0.999}
    return Settings.model_validate({"providers": {"own": own}, "memory": {"embeddings": embeddings}})


async def test_a_real_server_embeds_memory(local_embeddings: ModelServer, tmp_path: Path) -> None:
    async with Pointsman(f"sqlite:///{tmp_path}/store.db", settings=at(local_embeddings, "wrong")) as app:
        ann = app.memory.of("user", "ann")
        await ann.set("pets", "a dog")
        await ann.set("sky", "no rain before Thursday")
        [warning] = (await ann.find("nothing of this")).warnings
        assert "model-unauthorized" in warning
    async with Pointsman(
        f"sqlite:///{tmp_path}/store.db", settings=at(local_embeddings, *local_embeddings.keys)
    ) as app:
        finding = await app.memory.of("user", "ann").find("pets a dog")
        assert (finding.values[0].key, finding.warnings) == ("pets", ())
        model = f"own:{local_embeddings.name}"
        assert await app.store.vectors.missing("user", "ann", model, limit=9, at=0.0) == []
        assert await app.store.vectors.clear() == 2
