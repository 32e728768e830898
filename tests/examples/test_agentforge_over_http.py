"""The agentforge pipeline with a model server on a socket and three keys: key selection, pacing, fail-over."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.app import Pointsman, Workflow
from pointsman.executions.timeline import timeline
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject, json_of
from tests.examples.example_runs import EXAMPLES
from tests.http_server import http_server

pytestmark = pytest.mark.integration

KEYS: Final = ("canary-first-0123456789", "canary-second-0123456789", "canary-third-0123456789")
INTERVAL_S: Final = 0.1
PLAN: Final = {"plan": [{"step": 1, "task": "look"}], "research": "found"}
REPORT: Final = {
    "confidence_score": 60,
    "confidence_reasoning": "",
    "hallucination_risk": "medium",
    "hallucination_reasoning": "",
    "hallucination_issues": ["no source"],
}


class ModelServer:
    """Speaks Chat Completions. `refuses`: (key, number of its call) -> the status of the answer."""

    def __init__(self, http: HTTPServer) -> None:
        self.http = http
        self.calls: list[tuple[int, str, float]] = []
        """(index of the key, model, temperature)."""
        self.arrived: list[float] = []
        self.refuses: Callable[[int, int], int] = lambda key, nth: 200
        http.expect_request(re.compile(".*")).respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        said = json.loads(request.data)
        secret = request.headers["authorization"].removeprefix("Bearer ")
        key = KEYS.index(secret)
        self.arrived.append(time.time())
        self.calls.append((key, said["model"], said["temperature"]))
        status = self.refuses(key, Counter(one[0] for one in self.calls)[key])
        if status != 200:
            about = {"error": {"message": f"the key {secret} may not", "code": status}}
            return Response(json.dumps(about), status, content_type="application/json")
        text = self._text(json.dumps(said["messages"]))
        message: JsonObject = {"role": "assistant", "content": text}
        usage: JsonObject = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        body: JsonObject = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": said["model"],
            "usage": usage,
        }
        if not said.get("stream"):
            choices: list[Json] = [{"index": 0, "message": message, "finish_reason": "stop"}]
            return Response(json.dumps({**body, "choices": choices}), content_type="application/json")
        body["object"] = "chat.completion.chunk"
        parts: list[JsonObject] = [
            {**body, "usage": None, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**body, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        stream = "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"
        return Response(stream, content_type="text/event-stream")

    @staticmethod
    def _text(messages: str) -> str:
        for agent, answer in (("CEO", json.dumps(PLAN)), ("confidence", json.dumps(REPORT)), ("reviewer", "Better.")):
            if f"you are the {agent} agent." in messages:
                return answer
        return "A text."


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with http_server() as running:
        yield ModelServer(running)


async def ran(server: ModelServer, folder: Path) -> tuple[JsonObject, JsonObject, float]:
    """Return the view and the timeline of the pipeline on a store in a file, and its start time."""
    provider: JsonObject = {
        "kind": "openai-compatible",
        "base_url": server.http.url_for("/v1"),
        "keys": [*KEYS],
        "interval": f"{INTERVAL_S}s",
    }
    settings: JsonObject = {
        "store": f"sqlite:///{folder / 'pipeline.db'}",
        "delays": False,
        "providers": {"groq": provider},
    }
    async with Pointsman(settings=Settings.model_validate(settings)) as app:
        begun = time.time()
        execution = await app.start(Workflow.load(EXAMPLES / "agentforge/agentforge.yaml"), {"goal": "Write a memo"})
        await execution.settled()
        return json_of(await execution.view()), json_of(await timeline(app.context, execution.id)), begun


def kept(folder: Path) -> bytes:
    """Return every byte of the store."""
    found = b"".join(file.read_bytes() for file in sorted(folder.glob("pipeline.db*")))
    assert b"agentforge" in found
    return found


def keys_of(told: JsonObject) -> list[Json]:
    nodes = told["nodes"]
    assert isinstance(nodes, list)
    return [node["keyIndex"] for node in nodes if isinstance(node, dict)]


@pytest.mark.requirement("S2-13", "S2-16", "S2-17", "S2-22", "S2-25", "S2-30", "S2-36", "S2-51", "S2-68", "S2-69")
async def test_five_calls_are_made_with_their_keys_and_temperatures_in_the_pace_of_the_provider(
    server: ModelServer, tmp_path: Path
) -> None:
    view, told, begun = await ran(server, tmp_path)
    model = "llama-3.1-8b-instant"
    assert view["status"] == "completed", view["errors"]
    assert server.calls == [(0, model, 0.7), (1, model, 0.7), (2, model, 0.7), (0, model, 0.3), (1, model, 0.5)]
    assert keys_of(told) == [0, 1, 2, 0, 1]
    assert [at - begun >= n * INTERVAL_S for n, at in enumerate(server.arrived)] == [True] * 5
    assert not any(key.encode() in kept(tmp_path) for key in KEYS)


@pytest.mark.requirement("S2-56", "S2-74")
async def test_a_rate_limited_key_waits_twice_the_interval_and_retries(server: ModelServer, tmp_path: Path) -> None:
    server.refuses = lambda key, nth: 429 if (key, nth) == (1, 1) else 200
    view, _, _ = await ran(server, tmp_path)
    assert view["status"] == "completed", view["errors"]
    assert [key for key, _, _ in server.calls] == [0, 1, 1, 2, 0, 1]
    assert server.arrived[2] - server.arrived[1] >= 2 * INTERVAL_S
    assert not any(key.encode() in kept(tmp_path) for key in KEYS)


@pytest.mark.requirement("S2-68", "S2-74")
async def test_another_key_replaces_a_refused_one(server: ModelServer, tmp_path: Path) -> None:
    server.refuses = lambda key, nth: 401 if key == 1 else 200
    view, told, _ = await ran(server, tmp_path)
    assert view["status"] == "completed", view["errors"]
    nodes = told["nodes"]
    assert isinstance(nodes, list)
    used = [node["keysUsed"] for node in nodes if isinstance(node, dict) and node["modelCalls"]]
    assert used == [[0], [2], [2], [0], [2]], "the table tells who paid"
    assert [key for key, _, _ in server.calls] == [0, 1, 2, 2, 0, 2], "the second key is asked once, and never again"
    assert "key 1 of 'groq' is not available now" in json.dumps(view["warnings"])
    assert not any(key in json.dumps(view) or key.encode() in kept(tmp_path) for key in KEYS)


@pytest.mark.requirement("S2-57", "S2-74")
@pytest.mark.parametrize("status", [401, 429, 500, 400])
async def test_a_server_that_refuses_everybody_fails_the_execution_without_a_word_of_the_keys(
    server: ModelServer, tmp_path: Path, status: int
) -> None:
    server.refuses = lambda key, nth: status
    view, told, _ = await ran(server, tmp_path)
    assert view["status"] == "failed"
    assert not any(key in json.dumps([view, told]) or key.encode() in kept(tmp_path) for key in KEYS)
