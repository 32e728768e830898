"""`pointsman models`, and runs with a real server behind a provider of the settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.values import JsonObject
from tests.cli.conftest import Prompt
from tests.http_server import http_server

KEYS = ("canary-first-0123456789", "canary-second-0123456789", "canary-third-0123456789")
pytestmark = pytest.mark.usefixtures("no_scripted_model")

ANYWHERE = re.compile(".*")

FLOW = """
id: pair
nodes:
  - {id: one, type: agent, config: {prompt: "Say one.", keyIndex: 0}}
  - {id: two, type: agent, config: {prompt: "Say two.", keyIndex: 4, purpose: validation}}
  - {id: ask, type: human, config: {message: "Go on?", options: [approve]}}
  - {id: three, type: agent, config: {prompt: "Say three.", keyIndex: 2}}
edges: [{source: one, target: two}, {source: two, target: ask}, {source: ask, target: three}]
"""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with http_server() as running:
        yield running


def speak(request: Request) -> Response:
    """Answer in the Chat Completions format; refuse the second key, and repeat it in the refusal."""
    key = request.headers["authorization"].removeprefix("Bearer ")
    if key == KEYS[1]:
        return Response(json.dumps({"error": {"message": f"{key} is not known"}}), 401, content_type="application/json")
    message: JsonObject = {"role": "assistant", "content": "fine"}
    usage: JsonObject = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    body: JsonObject = {"id": "1", "object": "chat.completion", "created": 0, "model": "small-1", "usage": usage}
    if b'"stream": true' in request.data or b'"stream":true' in request.data:
        body["object"] = "chat.completion.chunk"
        parts: list[JsonObject] = [
            {**body, "usage": None, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**body, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        text = "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"
        return Response(text, content_type="text/event-stream")
    whole = {**body, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return Response(json.dumps(whole), content_type="application/json")


def settings(own_place: Path, server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings with a provider whose keys have all three origins."""
    server.expect_request(ANYWHERE).respond_with_handler(speak)
    monkeypatch.setenv("SECOND_KEY", KEYS[1])
    monkeypatch.setenv("POINTSMAN_SECRET_THIRD", KEYS[2])
    (own_place / "pointsman.toml").write_text(
        f"""
model = "house:small"
store = "sqlite:///desk.db"
[models]
validation = "house:strict"
[providers.house]
base_url = "{server.url_for("/v1")}"
keys = ["{KEYS[0]}", "env:SECOND_KEY", "secret.THIRD"]
""",
        encoding="utf-8",
    )


def test_models_are_listed_with_their_uses_prices_and_masked_keys(
    own_place: Path, prompt: Prompt, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(own_place, server, monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-9876543210")
    found = prompt("models", "--json").json
    assert [(one["name"], one["uses"]) for one in found["models"]] == [
        ("house:small", ["default"]),
        ("house:strict", ["validation"]),
    ]
    house, openai = found["providers"]
    assert (house["kind"], house["keys"], house["masked"]) == ("openai-compatible", 3, ["…6789"] * 3)
    assert (openai["name"], openai["masked"], openai["source"]) == ("openai", ["…3210"], "OPENAI_API_KEY")
    shown = prompt("models").out
    assert "house:strict                     validation · no price: set one under [prices]" in shown
    assert not any(key in shown for key in KEYS)
    assert server.log == [], "nobody is asked"
    priced = prompt("models", "--json", "--model", "openai:gpt-4o").json["models"]
    assert priced == [
        {
            "name": "openai:gpt-4o",
            "uses": ["every agent"],
            "scripted": False,
            "inputUsdPerMillion": pytest.approx(2.5),
            "outputUsdPerMillion": pytest.approx(10),
            "priceFrom": "list",
        }
    ]


def test_a_ping_calls_each_model_once_and_prints_failures(
    own_place: Path, prompt: Prompt, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(own_place, server, monkeypatch)
    printed = prompt("models", "--ping", "--json")
    assert printed.code == 0
    assert [(one["name"], one["ok"], one["model"]) for one in printed.json["pings"]] == [
        ("house:small", True, "small-1"),
        ("house:strict", True, "small-1"),
    ]
    failed = prompt("models", "--ping", "--model", "groq:x")
    assert failed.code == 1
    assert "model-unusable: the provider 'groq' has no key" in failed.out
    assert "→ Set GROQ_API_KEY, or `keys` under [providers.groq]." in failed.out


def test_the_scripted_model_is_shown_as_scripted(prompt: Prompt) -> None:
    printed = prompt("models", "--ping", "--model", "scripted")
    assert printed.code == 0
    assert re.search(r"scripted +every agent · scripted · answered in", printed.out)


def test_an_unknown_kind_of_provider_is_an_unknown_setting(own_place: Path, prompt: Prompt) -> None:
    (own_place / "pointsman.toml").write_text('[providers.house]\nkind = "antropic"\n', encoding="utf-8")
    printed = prompt("models")
    assert printed.code == 1
    assert "settings-invalid" in printed.err
    assert "'antropic' is not a kind of provider" in printed.err
    assert "anthropic" in printed.err


@pytest.mark.requirement("S2-74", "S2-73", "S2-68", "S1-O13")
def test_a_run_with_keys_resumes_after_a_restart_and_stores_no_key(
    own_place: Path, prompt: Prompt, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(own_place, server, monkeypatch)
    (own_place / "flow.yaml").write_text(FLOW, encoding="utf-8")
    waiting = prompt("run", "flow.yaml", "--json")
    assert waiting.code == 3, waiting.err
    execution = waiting.json["executionId"]
    done = prompt("answer", execution, "ask", "approve", "--json")
    assert (done.code, done.json["status"]) == (0, "completed"), done.err
    asked = [(request.headers["authorization"][7:], json.loads(request.data)["model"]) for request, _ in server.log]
    assert asked == [(KEYS[0], "small"), (KEYS[1], "strict"), (KEYS[2], "strict"), (KEYS[2], "small")]
    events = prompt("events", execution, "--jsonl").out
    assert "keyIndex 4 is greater than the number of keys of 'house' (3): key 1 is used" in events
    assert "key 1 of 'house' is not available now: key 2 was used" in events
    nodes = {node["node"]: node for node in prompt("timeline", execution, "--json").json["nodes"]}
    assert [nodes[name]["keyIndex"] for name in ("one", "two", "three")] == [0, 4, 2], "as the definition names them"
    assert [nodes[name]["keysUsed"] for name in ("one", "two", "three")] == [[0], [2], [2]], "as they paid"
    assert [nodes[name]["modelsUsed"] for name in ("one", "two")] == [["small-1"], ["small-1"]]
    rows = {
        line.split()[0]: line.split()[5] for line in prompt("timeline", execution).out.splitlines() if " 1  " in line
    }
    assert (rows["one"], rows["two"], rows["three"]) == ("0", "2", "2")
    assert prompt("export", execution, "-o", "out.jsonl").code == 0
    left = b"".join(file.read_bytes() for file in own_place.iterdir() if file.name != "pointsman.toml")
    shown = waiting.out + waiting.err + done.out + done.err + events + prompt("settings", "--json").out
    assert not any(key.encode() in left or key in shown for key in KEYS)


def test_keys_are_listed_with_names_and_daily_limits(
    own_place: Path, prompt: Prompt, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(own_place, server, monkeypatch)
    with (own_place / "pointsman.toml").open("a", encoding="utf-8") as file:
        file.write("day = {calls = 1}\n")
    (own_place / "flow.yaml").write_text(FLOW, encoding="utf-8")
    assert prompt("run", "flow.yaml").code == 3
    shown = prompt("models", "--keys").out
    (line,) = [line for line in shown.splitlines() if "house/0" in line]
    assert "spent until" in line
    assert "1 of 1 calls" in line
    assert "(env:SECOND_KEY)" in shown
    assert not any(key in shown for key in KEYS)
    told = prompt("models", "--keys", "--json").json["paying"]["providers"][0]["keys"]
    assert told[0]["condition"] == "spent"
    assert told[1]["name"] == "env:SECOND_KEY"
