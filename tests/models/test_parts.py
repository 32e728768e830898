"""Images and reasoning settings in every protocol that supports them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer

from pointsman.models.failures import ModelFailed
from pointsman.models.provider import Provider
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelRequest, ReasoningEffort
from pointsman.values import Json, JsonObject
from tests.http_server import http_server

pytestmark = pytest.mark.integration

KEY = "canary-key-0123456789"
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n a picture of nothing").decode()
LOOK: JsonObject = {
    "role": "user",
    "content": [{"text": "What is it?"}, {"type": "file", "mediaType": "image/png", "data": PICTURE}],
}


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with http_server() as running:
        running.expect_request(re.compile(".*")).respond_with_data("{}", status=400, content_type="application/json")
        yield running


@pytest.fixture(autouse=True)
def signing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")


async def sent(
    server: HTTPServer, kind: str, model: str, message: Json, thinking: ReasoningEffort | None = None
) -> str:
    """Return the request that a provider received; its answer is empty."""
    keys = () if kind == "bedrock" else (KEY,)
    provider = Provider(kind=kind, base_url=server.url_for("/v1"), keys=keys, retries=0, region="eu-west-1")
    models = PydanticModels(providers={"house": provider})
    asked = ModelRequest(model=f"house:{model}", messages=[message], thinking=thinking, max_tokens=9000, timeout_s=20.0)
    with pytest.raises(ModelFailed) as caught:
        await models.ask(asked)
    await models.close()
    assert server.log, caught.value.failure
    [(request, _)] = server.log
    return request.get_data(as_text=True)


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("openai-chat", "gpt-4.1"),
        ("openai-responses", "gpt-4.1"),
        ("openai-compatible", "small"),
        ("azure", "gpt-4.1"),
        ("anthropic", "small"),
        ("google", "gemini-2.5-flash"),
        ("groq", "meta-llama/llama-4-scout-17b-16e-instruct"),
        ("mistral", "mistral-small-latest"),
        ("bedrock", "small"),
        ("ollama", "qwen3-vl"),
        ("vllm", "small"),
        ("openrouter", "openai/gpt-4.1"),
    ],
)
async def test_an_image_reaches_the_model_on_every_wire(server: HTTPServer, kind: str, model: str) -> None:
    body = await sent(server, kind, model, LOOK)
    assert PICTURE.rstrip("=") in body or PICTURE.replace("+", "-").replace("/", "_").rstrip("=") in body
    assert "png" in body
    assert "What is it?" in body


@pytest.mark.parametrize(
    ("kind", "model", "thinking", "said"),
    [
        ("openai-responses", "gpt-5", ReasoningEffort(level="low"), r'"effort": ?"low"'),
        ("openai-chat", "gpt-5", ReasoningEffort(budget=500), r'"reasoning_effort": ?"low"'),
        ("anthropic", "small", ReasoningEffort(budget=2048), r'"budget_tokens": ?2048'),
        ("google", "gemini-2.5-flash", ReasoningEffort(budget=1024), r'"thinking_?[bB]udget": ?1024'),
        ("google", "gemini-2.5-flash", ReasoningEffort(enabled=False), r'"thinking_?[bB]udget": ?0'),
        (
            "vllm",
            "Qwen/Qwen3-8B",
            ReasoningEffort(chat_template_kwargs={"enable_thinking": False}),
            r'"chat_template_kwargs": ?{"enable_thinking": ?false}',
        ),
    ],
)
async def test_the_reasoning_effort_is_translated_for_each_wire(
    server: HTTPServer, kind: str, model: str, thinking: ReasoningEffort, said: str
) -> None:
    body = await sent(server, kind, model, {"role": "user", "content": "Think."}, thinking)
    assert re.search(said, body), body
