"""`web_search`: each engine has its own request and a common result."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from pointsman.app import Pointsman
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.settings import Settings, shown
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject
from tests.tools.outgoing.peer import Peer, answer, peering

SEARXNG: JsonObject = {
    "query": "tides",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://a.example/1",
            "title": "Tides &amp; more",
            "content": "They come.",
            "engine": "x",
            "score": 1.0,
        },
        {"url": "javascript:alert(1)", "title": "Bad", "content": ""},
        {"title": "No address"},
        {"url": "https://a.example/2", "title": "Second", "content": None},
    ],
}
TAVILY: JsonObject = {
    "query": "tides",
    "answer": None,
    "images": [],
    "results": [{"title": "T", "url": "https://t.example", "content": "text", "score": 0.9, "raw_content": None}],
    "response_time": 1.1,
}
BRAVE: JsonObject = {
    "type": "search",
    "query": {"original": "tides"},
    "web": {
        "type": "search",
        "results": [{"title": "B", "url": "https://b.example", "description": "<strong>Ti</strong>des"}],
    },
}


def installed(peer: Peer, engine: str, **more: object) -> Pointsman:
    search = {"engine": engine, "url": f"{peer.url}/s", "key": "secret.ENGINE", **more}
    return Pointsman(
        "memory:", settings=Settings.model_validate({"search": search, "secrets": {"ENGINE": "key-12345"}})
    )


async def found(app: Pointsman, **arguments: Json) -> Json:
    call = ToolCall(id="1", name="web_search", arguments={"query": "tides & <x>", **arguments})
    return await app.tools.call(call, key="k")


async def refusal(app: Pointsman, **arguments: Json) -> Failure:
    with pytest.raises(ToolFailed) as caught:
        await found(app, **arguments)
    return caught.value.failure


def ok(said: JsonObject) -> bytes:
    return answer(json.dumps(said).encode(), "content-type: application/json")


@pytest.mark.integration
async def test_searxng_receives_the_query() -> None:
    async with peering() as peer:
        peer.next = [ok(SEARXNG)]
        assert await found(installed(peer, "searxng", url=peer.url, key="")) == [
            {"title": "Tides & more", "url": "https://a.example/1", "text": "They come."},
            {"title": "Second", "url": "https://a.example/2", "text": ""},
        ]
        assert peer.asked[0].startswith("GET /search?q=tides+%26+%3Cx%3E&format=json HTTP/1.1")
        assert "authorization" not in peer.asked[0].lower()


@pytest.mark.integration
async def test_tavily_receives_query_and_key() -> None:
    async with peering() as peer:
        peer.next = [ok(TAVILY)]
        assert await found(installed(peer, "tavily"), limit=3) == [
            {"title": "T", "url": "https://t.example", "text": "text"}
        ]
        head, _, body = peer.asked[0].partition("\r\n\r\n")
        assert "authorization: Bearer key-12345" in head
        assert json.loads(body) == {"query": "tides & <x>", "max_results": 3}


@pytest.mark.integration
async def test_brave_receives_query_and_token() -> None:
    async with peering() as peer:
        peer.next = [ok(BRAVE), ok({"type": "search", "query": {}})]
        app = installed(peer, "brave")
        assert await found(app, limit=2) == [{"title": "B", "url": "https://b.example", "text": "Tides"}]
        assert peer.asked[0].startswith("GET /s?q=tides+%26+%3Cx%3E&count=2 HTTP/1.1")
        assert "x-subscription-token: key-12345" in peer.asked[0]
        assert await found(app) == []


@pytest.mark.integration
async def test_a_failing_search_engine_is_a_typed_failure_without_its_key() -> None:
    async with peering() as peer:
        app = installed(peer, "tavily")
        peer.next = [b"HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 9\r\n\r\nkey-12345"]
        failure = await refusal(app)
        assert (failure.code, failure.retryable, failure.retry_after_s) == ("http-status", True, 7.0)
        assert "key-12345" not in repr(failure)
        peer.next = [answer(b"<html>", "content-type: text/html")]
        assert (await refusal(app)).code == "answer-unreadable"
        peer.next = [ok({"detail": "odd"})]
        assert (await refusal(app)).code == "search-unreadable"
        peer.next = [f"HTTP/1.1 302 F\r\nlocation: {peer.url}/other\r\ncontent-length: 0\r\n\r\n".encode()]
        assert (await refusal(app)).code == "redirect-refused"
        asked = len(peer.asked)
        assert (await refusal(app, limit=1000)).code == "tool-arguments"
        assert (await refusal(installed(peer, "brave", key="secret.NONE"))).code == "secret-missing"
        assert len(peer.asked) == asked


@pytest.mark.parametrize(
    "said",
    [{"engine": "searxng"}, {"engine": "tavily"}, {"engine": "ask"}, {"engine": "brave", "key": "k", "url": "ftp://x"}],
)
def test_incomplete_settings_are_refused(said: JsonObject) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"search": said})


def test_the_key_is_not_shown_with_the_settings() -> None:
    loaded = Settings.model_validate({"search": {"engine": "brave", "key": "key-12345"}})
    assert "key-12345" not in json.dumps(shown(loaded))
