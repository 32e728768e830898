"""2nChat with real tools: Python functions and an HTTP tool, with all three ways of routing after a tool, in one
conversation."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from msgspec.structs import replace

from pointsman.app import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.scripts import Script, load_script
from tests.examples.example_runs import EXAMPLES
from tests.tools.outgoing.peer import answer, peering

FOLDER = EXAMPLES / "2nchat"
ROUTER, RC2, DM2, TOOLS, CALLER = "node-uuid-1", "node-uuid-2", "node-uuid-3", "node-uuid-5", "node-uuid-6"
RESEARCH: JsonObject = {
    "description": "Research a question in the news.",
    "url": "{peer}/news",
    "query": {"q": "{question}"},
    "parameters": {"type": "object", "required": ["question"], "properties": {"question": {"type": "string"}}},
}


def tools_of_the_example() -> ModuleType:
    """Import its tools with their original records."""
    spec = importlib.util.spec_from_file_location("tools_of_2nchat", FOLDER / "tools.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def script() -> Script:
    """Return the answers of the models; no tool is scripted."""
    return replace(load_script(FOLDER / "script.yaml"), tools={})


def installation(module: ModuleType, store: str, *, without: str = "", settings: Settings | None = None) -> Pointsman:
    tools = [one for one in module.TOOLS if one.name != without]
    return Pointsman(store, tools=tools, model="scripted", script=script(), settings=settings or Settings())


async def ask(app: Pointsman, text: str, *, workflow: Workflow | None = None, session: str = "desk") -> JsonObject:
    chat = workflow if workflow is not None else Workflow.load(FOLDER / "2nchat.json")
    execution = await app.start(chat, text, session=session, by="ann")
    assert await execution.settled() == "completed"
    return json_of(await execution.view())


@pytest.mark.integration
@pytest.mark.requirement("S0-38", "S0-41", "S0-43", "S0-61", "S1-74")
async def test_a_conversation_uses_real_tools_from_turn_to_turn_and_across_restarts(tmp_path: Path) -> None:
    module, store = tools_of_the_example(), f"sqlite:///{tmp_path}/chat.db"
    async with installation(module, store) as app:
        help_ = await ask(app, "How do I import contacts?")
        assert help_["path"] == [ROUTER, "node-uuid-4", TOOLS, ROUTER]
        assert help_["output"] == "Open Settings > Import and drop your file there. Anything else?"
    async with installation(module, store) as app:
        found = await ask(app, "Which companies in Oslo have we not called this month?")
        assert found["path"] == [ROUTER, RC2, TOOLS, ROUTER]
        assert found["output"] == "Two companies in Oslo wait for a call: Nordlys Shipping and Fjordkraft."
        conversation = await app.storage.conversation("desk")
    assert conversation.closed, "the Router ended it"
    said = [cast(JsonObject, one) for one in conversation.messages]
    assert [one["content"] for one in said if one["role"] == "user"] == [
        "How do I import contacts?",
        "Which companies in Oslo have we not called this month?",
    ]
    [records] = [one["content"] for one in said if one.get("tool") == "find_records"]
    assert [one["name"] for one in json.loads(str(records))] == ["Nordlys Shipping", "Fjordkraft"], "no Bergen, no ship"


async def test_a_real_change_is_made_once_by_the_worker_it_was_handed_to() -> None:
    module = tools_of_the_example()
    async with installation(module, "memory:") as app:
        changed = await ask(app, "Move Nordlys to stage Won.")
    assert changed["path"] == [ROUTER, RC2, ROUTER, DM2, TOOLS, ROUTER]
    assert changed["output"] == "Nordlys is now at stage Won."
    assert [one["stage"] for one in module.RECORDS if one["object"] == "opportunity"] == ["Won"]


@pytest.mark.integration
@pytest.mark.requirement("S0-40", "S0-45")
async def test_control_follows_the_edge_of_an_http_tool() -> None:
    async with peering() as peer:
        peer.next = [answer(b'{"found": ["a battery farm"]}', "content-type: application/json")]
        http: JsonObject = {"networks": ["127.0.0.0/8"], "ports": [peer.port]}
        research = {**RESEARCH, "url": f"{peer.url}/news"}
        settings = Settings.model_validate({"http": http, "tools": {"external_research": research}})
        module = tools_of_the_example()
        async with installation(module, "memory:", without="external_research", settings=settings) as app:
            found = await ask(app, "What is known about Fjordkraft outside our records?")
        assert found["path"] == [ROUTER, CALLER, TOOLS, CALLER, ROUTER]
        assert len(peer.asked) == 1
        assert peer.asked[0].startswith("GET /news?q=What+is+Fjordkraft+planning+in+2027%3F HTTP/1.1")
    messages = cast("list[JsonObject]", cast(JsonObject, found["state"])["messages"])
    assert [json.loads(str(one["content"])) for one in messages if one["role"] == "tool"] == [
        {"found": ["a battery farm"]}
    ]


@pytest.mark.requirement("S0-43", "S0-44")
async def test_without_an_edge_of_its_own_or_a_plain_one_a_real_tool_returns_to_its_caller() -> None:
    document = cast(JsonObject, Workflow.load(FOLDER / "2nchat.json").original)
    edges: list[Json] = [
        one for one in cast("list[JsonObject]", document["edges"]) if one["sourceNodeId"] != "node-uuid-5"
    ]
    workflow = Workflow.of({**document, "edges": edges})
    module = tools_of_the_example()
    async with installation(module, "memory:") as app:
        execution = await app.start(workflow, "Which companies in Oslo have we not called this month?")
        await execution.settled()
        path = (await execution.view())["path"]
    assert path[:4] == [ROUTER, RC2, TOOLS, RC2]
