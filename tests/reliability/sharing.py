"""The sharing matrix: people × kinds of sharing × ways in which one workflow can execute another.

Every way is set up while the target is shared with all, then the target is restricted, then the way is used. The target
may execute only if the person who started it may execute the target, and if the author of the text that names it sees
the target. Otherwise the answer must be the one for a target that does not exist.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias, cast

from pointsman.authoring.tools import offer_verbs
from pointsman.settings import Settings
from pointsman.settings.sections import AccessSettings
from pointsman.store.records import ExecutionQuery
from pointsman.values import JsonObject, WorkflowId
from pointsman.workflows.scripts import parse_script
from tests.reliability.findings import Finding
from tests.reliability.servers import server
from tests.server.conftest import Served, serving

Headers: TypeAlias = dict[str, str]

GROUP: Final = "desk"
AUDIENCES: Final = ("private", "groups", "everyone")
PEOPLE: Final = {"ada": "editor", "cleo": "editor", "bob": "editor", "olga": "operator", "root": "admin"}
"""`ada` owns the target; `cleo` is in the group; the others have no relation to it."""
WRITERS: Final = ("ada", "cleo", "bob", "root")
TARGET: Final = """\
pointsman: 1
id: inner
description: Word for word.
input: {type: object}
nodes: [{id: say, type: transform, config: {set: {said: "1"}}}]
triggers: [{id: on, type: event, event: go}]
"""
SCRIPT: Final = """\
rules:
  - {node: ask, call: 1, toolCalls: [{name: workflow__inner, arguments: {}}]}
  - {node: run, call: 1, toolCalls: [{name: run_workflow, arguments: {workflow: inner, input: {}}}]}
  - {contains: Try it, call: 1, toolCalls: [{name: workflow__inner, arguments: {}}]}
  - {text: Done.}
"""
NODES: Final = {
    "node": "{id: call, type: workflow, config: {workflow: inner}}",
    "tool": "{id: call, type: tool, config: {tool: workflow__inner}}",
    "agent": "{id: ask, type: agent, config: {prompt: Go, tools: [workflow__inner]}}",
    "verb": "{id: run, type: agent, config: {prompt: Go, tools: [run_workflow]}}",
    "emit": "{id: tell, type: emit, config: {event: go}}",
}
"""Way -> the node of the author's workflow that uses it."""
TEXT: Final = "{type: object, properties: {message: {type: string}}, required: [message]}"
PLAIN: Final = '{id: call, type: transform, config: {set: {a: "1"}}}'
SHOWN_MAX: Final = 20
MISSING: Final = "innet"
"""The id of a workflow that does not exist, as similar to other ids as the id of the target is."""
MARK: Final = re.compile(r"exec-\w+|try-\w+|inner|outer\d+")


class Cell(NamedTuple):
    """One person uses a way that another person wrote."""

    way: str
    audience: str
    starter: str
    author: str
    """The author of the text that names the target; empty: only the starter names it."""

    @property
    def executes(self) -> bool:
        """Whether the target may execute. An admin who acts through an agent is an editor, as the settings define
        it."""
        people = [self.starter, *filter(None, [self.author])]
        capped = self.way in BY_VERB
        return all(sees("an editor" if capped and one == "root" else one, self.audience) for one in people)

    def __str__(self) -> str:
        wrote = f", written by {self.author}" if self.author else ""
        return f"{self.way} by {self.starter}{wrote}, target for {self.audience}"


def sees(name: str, audience: str) -> bool:
    """Return whether a person sees the target, as docs/how-to/access.md defines it."""
    return audience == "everyone" or name in ("ada", "root") or (audience == "groups" and name == "cleo")


class World:
    """A server, its users, and the ways that are tested on it."""

    def __init__(self, served: Served, keys: dict[str, Headers]) -> None:
        self.served = served
        self.keys = keys
        self.count = 0
        self.wrong: list[str] = []
        self.check_cells = 0

    async def ask(self, method: str, path: str, by: str, *, expect: int | None = None, **more: Any) -> Any:
        reply = await self.served.client.request(method, path, headers=self.keys[by], **more)
        assert expect is None or reply.status_code == expect, f"{method} {path} by {by}: {reply.text}"
        assert reply.status_code < 500, f"{method} {path} by {by}: {reply.text}"
        return reply

    async def share(self, audience: str) -> None:
        body = {"audience": audience, "groups": [GROUP] if audience == "groups" else []}
        await self.ask("PUT", "/api/workflows/inner/sharing", "ada", expect=200, json=body)

    async def save(
        self, by: str, *nodes: str, more: str = "", draft: bool = False, input: str = "{type: object}"
    ) -> str:
        self.count += 1
        name = f"outer{self.count}"
        chain = [one.removeprefix("{id: ").partition(",")[0] for one in nodes]
        edges = ", ".join(f"{{source: {a}, target: {b}}}" for a, b in pairwise(chain))
        text = f"pointsman: 1\nid: {name}\ninput: {input}\nnodes: [{', '.join(nodes)}]\nedges: [{edges}]\n"
        await self.ask("POST", f"/api/workflows?draft={str(draft).lower()}", by, expect=201, content=f"{text}{more}")
        return name

    async def execute(self, workflow: str, by: str) -> Any:
        reply = await self.ask("POST", f"/api/workflows/{workflow}/execute", by, json={"input": {}, "wait": True})
        await self.settle()
        return reply

    async def mcp(self, by: str, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool over MCP."""
        params = {"name": tool, "arguments": arguments}
        told = await self.mcp_asked(by, "tools/call", params)
        await self.settle()
        return told

    async def mcp_asked(self, by: str, method: str, params: dict[str, Any]) -> Any:
        headers = {**self.keys[by], "accept": "application/json, text/event-stream"}
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        began = await self.served.client.post("/mcp", json=hello, headers=headers)
        headers |= {"mcp-session-id": began.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.served.client.post("/mcp", json=ready, headers=headers)
        body = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
        reply = await self.served.client.post("/mcp", json=body, headers=headers)
        await self.served.client.request("DELETE", "/mcp", headers=headers)
        assert reply.status_code == 200, reply.text
        return reply.text

    async def settle(self) -> None:
        """Return when no execution is in progress."""
        unfinished = ExecutionQuery(statuses=frozenset({"pending", "running"}), limit=1)
        while await self.served.app.executions(unfinished):  # noqa: ASYNC110 - the store has no notification
            await asyncio.sleep(0.005)

    async def executed(self) -> int:
        query = ExecutionQuery(workflow=WorkflowId("inner"), limit=1000)
        return len(await self.served.app.executions(query))

    async def take(self, cell: Cell) -> None:
        """Set up a way, restrict the target, use the way, and check the result."""
        self.check_cells += 1
        await self.share("everyone")
        go = await WAYS[cell.way](self, cell)
        await self.share(cell.audience)
        before = await self.executed()
        try:
            await go()
        except AssertionError as why:
            self.wrong.append(f"{cell}: {why}")
            return
        await self.settle()
        executed = await self.executed() > before
        if executed != cell.executes:
            self.wrong.append(f"{cell}: the target {'executed' if executed else 'did not execute'}")


Go: TypeAlias = Callable[[], Awaitable[Any]]
Way: TypeAlias = Callable[[World, Cell], Awaitable[Go]]


async def _direct(world: World, cell: Cell) -> Go:
    return lambda: world.execute("inner", cell.starter)


async def _run(world: World, cell: Cell) -> Go:
    return lambda: world.ask("POST", "/run", cell.starter, json={"goal": "Word for word"})


def _chat_way(path: str, body: JsonObject) -> Way:
    """Return a way for workflows that take a text, through the endpoints for OpenAI clients."""

    async def way(world: World, cell: Cell) -> Go:
        name = await world.save("ada", PLAIN, input=TEXT)

        async def go() -> None:
            shared = {"audience": cell.audience, "groups": [GROUP] if cell.audience == "groups" else []}
            await world.ask("PUT", f"/api/workflows/{name}/sharing", "ada", expect=200, json=shared)
            await world.ask("POST", path, cell.starter, json={**body, "model": name})
            await world.settle()
            if await world.served.app.executions(ExecutionQuery(workflow=WorkflowId(name), limit=1)):
                # Counted with the executions of the target.
                await world.ask("POST", "/api/workflows/inner/execute", "root", json={"input": {}, "wait": True})

        return go

    return way


async def _files(world: World, cell: Cell) -> Go:
    files = {"file": ("a.txt", b"a", "text/plain")}
    return lambda: world.ask("POST", "/api/workflows/inner/execute/files", cell.starter, files=files)


async def _mcp_tool(world: World, cell: Cell) -> Go:
    return lambda: world.mcp(cell.starter, "workflow__inner", {})


async def _mcp_verb(world: World, cell: Cell) -> Go:
    return lambda: world.mcp(cell.starter, "run_workflow", {"workflow": "inner", "input": {}})


async def _agent_trial(world: World, cell: Cell) -> Go:
    world.count += 1
    name = f"ask{world.count}"
    agent = {"agent": {"system": "Help.", "tools": ["workflow__inner"]}, "name": name}
    await world.ask("POST", "/api/agents", cell.author, expect=201, json=agent)
    return lambda: world.ask("POST", f"/api/agents/{name}/try", cell.starter, json={"message": "Try it"})


async def _draft_trial(world: World, cell: Cell) -> Go:
    name = await world.save(cell.starter, NODES["node"])
    return lambda: world.ask("POST", f"/api/workflows/{name}/try", cell.starter, json={"input": {}})


async def _trial(world: World, cell: Cell) -> Go:
    name = await world.save(cell.author, NODES["node"])
    return lambda: world.ask("POST", f"/api/workflows/{name}/try", cell.starter, json={"input": {}})


async def _written(world: World, cell: Cell) -> Go:
    name = await world.save(cell.author, NODES[cell.way])
    return lambda: world.execute(name, cell.starter)


async def _nested(world: World, cell: Cell) -> Go:
    within = await world.save(cell.author, NODES["node"])
    name = await world.save("ada", f"{{id: call, type: workflow, config: {{workflow: {within}}}}}")
    return lambda: world.execute(name, cell.starter)


async def _saved_agent(world: World, cell: Cell) -> Go:
    name = f"helper{world.count}"
    agent = {"agent": {"system": "Help.", "tools": ["workflow__inner"]}, "name": name}
    await world.ask("POST", "/api/agents", cell.author, expect=201, json=agent)
    outer = await world.save("ada", f"{{id: ask, type: agent, config: {{prompt: Go, agent: {name}}}}}")
    return lambda: world.execute(outer, cell.starter)


async def _agent_verb(world: World, cell: Cell) -> Go:
    name = f"runner{world.count}"
    agent = {"agent": {"system": "Help.", "tools": ["run_workflow"]}, "name": name}
    await world.ask("POST", "/api/agents", cell.author, expect=201, json=agent)
    outer = await world.save("ada", f"{{id: run, type: agent, config: {{prompt: Go, agent: {name}}}}}")
    return lambda: world.execute(outer, cell.starter)


async def _later(world: World, cell: Cell) -> Go:
    """A draft that named the target before the target existed."""
    name = await world.save(cell.author, NODES["node"].replace("inner", "later"), draft=True)
    later = TARGET.replace("id: inner", "id: later").replace("event: go", "event: other")
    await world.ask("POST", "/api/workflows", "ada", content=later)

    async def go() -> None:
        body = {"audience": cell.audience, "groups": [GROUP] if cell.audience == "groups" else []}
        await world.ask("PUT", "/api/workflows/later/sharing", "ada", expect=200, json=body)
        query = ExecutionQuery(workflow=WorkflowId("later"), limit=1000)
        before = len(await world.served.app.executions(query))
        await world.execute(name, cell.starter)
        if len(await world.served.app.executions(query)) > before:
            # Counted with the executions of the target.
            await world.ask("POST", "/api/workflows/inner/execute", "root", json={"input": {}, "wait": True})
        await world.ask("DELETE", "/api/workflows/later", "ada", expect=204)

    return go


async def _gated(world: World, cell: Cell) -> tuple[str, str]:
    """Return an execution of `ada` that waits at a gate before the call: its id, and that of the gate."""
    gate = "{id: wait, type: human, config: {message: Go on, options: [{value: approve}]}}"
    name = await world.save(cell.author, gate, NODES["node"], more="config: {humanInLoop: real_time}\n")
    begun = (await world.execute(name, "ada")).json()
    return begun["executionId"], begun["waiting"][0]["gateId"]


async def _fork(world: World, cell: Cell) -> Go:
    execution, _ = await _gated(world, cell)

    async def go() -> None:
        reply = await world.ask("POST", f"/api/workflows/executions/{execution}/fork", cell.starter, json={})
        forked = reply.json()["executionId"]
        await world.settle()
        view = (await world.ask("GET", f"/api/workflows/executions/{forked}", "root")).json()
        answer = {"gateId": view["waiting"][0]["gateId"], "action": "approve"}
        await world.ask("POST", f"/api/workflows/executions/{forked}/respond", "root", expect=200, json=answer)

    return go


async def _steer(world: World, cell: Cell) -> Go:
    execution, _ = await _gated(world, cell)
    steer = {"goto": "call"}
    return lambda: world.ask("POST", f"/api/workflows/executions/{execution}/steer", cell.starter, json=steer)


async def _move(world: World, cell: Cell) -> Go:
    gate = "{id: wait, type: human, config: {message: Go on, options: [{value: approve}]}}"
    plain = await world.save("ada", gate, PLAIN)
    begun = (await world.execute(plain, "ada")).json()
    execution, gate_id = begun["executionId"], begun["waiting"][0]["gateId"]
    other = await world.save(cell.author, gate, NODES["node"])

    async def go() -> None:
        path = f"/api/workflows/executions/{execution}"
        await world.ask("POST", f"{path}/move", cell.starter, json={"to": other})
        answer = {"gateId": gate_id, "action": "approve"}
        await world.ask("POST", f"{path}/respond", "root", expect=200, json=answer)

    return go


async def _event(world: World, cell: Cell) -> Go:
    return lambda: world.ask("POST", "/api/events", cell.starter, expect=200, json={"name": "go"})


async def _planned(world: World, cell: Cell) -> str:
    """Return the id of a schedule of the target."""
    world.count += 1
    name = f"plan{world.count}"
    plan = {"workflow": "inner", "every": 3600, "id": name}
    await world.ask("POST", "/api/schedules", cell.author, expect=201, json=plan)
    return name


async def _schedule(world: World, cell: Cell) -> Go:
    name = await _planned(world, cell)
    return lambda: world.served.app.triggers.scheduler.run_now(name)


async def _schedule_by_hand(world: World, cell: Cell) -> Go:
    name = await _planned(world, cell)
    return lambda: world.ask("POST", f"/api/schedules/{name}/run", cell.starter)


async def _webhook(world: World, cell: Cell) -> Go:
    path = f"hook{world.count}"
    await world.save(
        cell.author, NODES["node"], more=f"triggers: [{{id: on, type: webhook, path: {path}, auth: none}}]\n"
    )
    return lambda: world.served.client.post(f"/api/webhooks/{path}", json={})


WAYS: Final[dict[str, Way]] = {
    **dict.fromkeys(NODES, _written),
    "direct": _direct,
    "run": _run,
    "model": _chat_way("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}]}),
    "response": _chat_way("/v1/responses", {"input": "Hello"}),
    "files": _files,
    "mcp-tool": _mcp_tool,
    "mcp-verb": _mcp_verb,
    "agent-trial": _agent_trial,
    "draft-trial": _draft_trial,
    "trial": _trial,
    "nested": _nested,
    "saved-agent": _saved_agent,
    "agent-verb": _agent_verb,
    "later": _later,
    "fork": _fork,
    "steer": _steer,
    "move": _move,
    "event": _event,
    "schedule": _schedule,
    "schedule-by-hand": _schedule_by_hand,
    "webhook": _webhook,
}
WITHOUT_AUTHOR: Final = frozenset(
    {"direct", "run", "draft-trial", "event", "model", "response", "files", "mcp-tool", "mcp-verb"}
)
WITHOUT_STARTER: Final = frozenset({"schedule", "webhook"})
BY_VERB: Final = frozenset({"verb", "agent-verb"})
EDITORS_START: Final = frozenset({"draft-trial", "trial", "agent-trial", "move"})


def cells() -> Iterator[Cell]:
    """Yield all cells."""
    for way in WAYS:
        starters = [one for one in PEOPLE if way not in EDITORS_START or one != "olga"]
        for audience in AUDIENCES:
            if way in WITHOUT_AUTHOR:
                yield from (Cell(way, audience, one, "") for one in starters)
            elif way in WITHOUT_STARTER:
                yield from (Cell(way, audience, one, one) for one in WRITERS)
            else:
                yield from (Cell(way, audience, one, author) for one in starters for author in WRITERS)


async def answers_are_the_same(world: World) -> None:
    """Compare the answers that `bob` receives about a hidden target with those about one that does not exist."""
    await world.share("private")
    for method, path, body in QUESTIONS:
        found: list[tuple[int, str]] = []
        for name in ("inner", MISSING):
            asked = {} if body is None else {"json": _named(body, name)}
            reply = await world.ask(method, path.replace("NAME", name), "bob", **asked)
            found.append((reply.status_code, MARK.sub("…", reply.text).replace(name, "…")))
        world.check_cells += 1
        if found[0] != found[1]:
            world.wrong.append(f"{method} {path}: hidden {found[0]}, missing {found[1]}")
    for method, params in MCP_QUESTIONS:
        answers = [await world.mcp_asked("bob", method, _named(params, name)) for name in ("inner", MISSING)]
        said = [MARK.sub("…", one).replace(MISSING, "…") for one in answers]
        world.check_cells += 1
        if said[0] != said[1]:
            world.wrong.append(f"MCP {method} {params}: hidden {said[0]}, missing {said[1]}")


def _named(body: Any, name: str) -> Any:
    match body:
        case str():
            return body.replace("NAME", name)
        case dict():
            return {key: _named(one, name) for key, one in cast("dict[str, Any]", body).items()}
        case list():
            return [_named(one, name) for one in cast("list[Any]", body)]
        case _:
            return body


def _calling(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"document": {"pointsman": 1, "id": "mine", "nodes": [*nodes], **more}}


BY_NODE: Final = {"id": "call", "type": "workflow", "config": {"workflow": "NAME"}}
BY_REVISION: Final = {"id": "call", "type": "workflow", "config": {"workflow": "NAME@1"}}
BY_TOOL: Final = {"id": "call", "type": "tool", "config": {"tool": "workflow__NAME"}}
BY_AGENT: Final = {"id": "ask", "type": "agent", "config": {"prompt": "Go", "tools": ["workflow__NAME"]}}
QUESTIONS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("GET", "/api/workflows/NAME", None),
    ("GET", "/api/workflows/NAME@1", None),
    ("GET", "/api/workflows/NAME?dialect=mermaid", None),
    ("GET", "/api/workflows/NAME/versions", None),
    ("GET", "/api/workflows/NAME/diff", None),
    ("GET", "/api/workflows/NAME/changes", None),
    ("GET", "/api/workflows/NAME/sharing", None),
    ("PUT", "/api/workflows/NAME/sharing", {"audience": "everyone"}),
    ("PUT", "/api/workflows/NAME", {"pointsman": 1, "id": "NAME", "nodes": []}),
    ("PATCH", "/api/workflows/NAME", {"name": "Mine"}),
    ("DELETE", "/api/workflows/NAME", None),
    ("POST", "/api/workflows/NAME/clone", {"id": "copy"}),
    ("POST", "/api/workflows/NAME/rollback", {"revision": 1}),
    ("POST", "/api/workflows/NAME/edit", {"operations": []}),
    ("POST", "/api/workflows/NAME/execute", {"input": {}}),
    ("POST", "/api/workflows/NAME/dry-run", {"input": {}}),
    ("POST", "/api/workflows/NAME/try", {"input": {}}),
    ("GET", "/api/workflows/NAME/triggers/on/deliveries", None),
    ("POST", "/api/workflows/NAME/triggers/on/try", {"data": 1}),
    ("GET", "/api/workflows/executions?workflow=NAME", None),
    ("GET", "/api/workflows?id=NAME", None),
    ("GET", "/api/usage?workflow=NAME", None),
    ("GET", "/api/inbox?workflow=NAME", None),
    ("GET", "/api/sessions?workflow=NAME", None),
    ("GET", "/api/schedules?workflow=NAME", None),
    ("GET", "/api/schedules/NAME", None),
    ("PUT", "/api/schedules/NAME", {"workflow": "NAME", "every": 60}),
    ("DELETE", "/api/schedules/NAME", None),
    ("POST", "/api/schedules/NAME/run", None),
    ("POST", "/api/schedules/NAME/pause", None),
    ("POST", "/api/schedules", {"workflow": "NAME", "every": 60, "id": "fresh"}),
    ("GET", "/api/tools/workflow__NAME", None),
    ("POST", "/api/tools/workflow__NAME/try", {"arguments": {}}),
    ("GET", "/api/agents/NAME", None),
    ("GET", "/api/agents/NAME@1", None),
    ("PUT", "/api/agents/NAME", {"agent": {"system": "Mine."}}),
    ("DELETE", "/api/agents/NAME", None),
    ("GET", "/api/agents/NAME/versions", None),
    ("GET", "/api/agents/NAME/uses", None),
    ("GET", "/api/agents/NAME/sharing", None),
    ("PUT", "/api/agents/NAME/sharing", {"audience": "everyone"}),
    ("POST", "/api/agents/NAME/try", {"message": "Hello"}),
    ("GET", "/v1/models/NAME", None),
    ("POST", "/v1/chat/completions", {"model": "NAME", "messages": [{"role": "user", "content": "Hello"}]}),
    ("POST", "/v1/responses", {"model": "NAME", "input": "Hello"}),
    ("GET", "/api/memory?scope=workflow&owner=NAME", None),
    ("GET", "/api/memory/workflow?owner=NAME", None),
    ("POST", "/api/workflows/check", _calling(BY_NODE)),
    ("POST", "/api/workflows/check", _calling(BY_REVISION)),
    ("POST", "/api/workflows/check", _calling(BY_TOOL)),
    ("POST", "/api/workflows/check", _calling(BY_AGENT)),
    ("POST", "/api/workflows/check", _calling({"id": "ask", "type": "agent", "config": {"agent": "NAME"}})),
    ("POST", "/api/workflows/check", {"document": {"pointsman": 1, "id": "NAME", "nodes": []}}),
    ("POST", "/api/workflows", _calling(BY_NODE)["document"]),
    ("POST", "/api/workflows", _calling(BY_TOOL)["document"]),
)
"""All requests about a name."""
MCP_QUESTIONS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("tools/call", {"name": "workflow__NAME", "arguments": {}}),
    ("tools/call", {"name": "run_workflow", "arguments": {"workflow": "NAME", "input": {}}}),
    ("tools/call", {"name": "get_workflow", "arguments": {"workflow": "NAME"}}),
    ("tools/call", {"name": "workflow_versions", "arguments": {"workflow": "NAME"}}),
    ("tools/call", {"name": "diff_workflow", "arguments": {"workflow": "NAME"}}),
    ("tools/call", {"name": "edit_workflow", "arguments": {"workflow": "NAME", "operations": []}}),
    ("tools/call", {"name": "delete_workflow", "arguments": {"workflow": "NAME"}}),
    ("tools/call", {"name": "check_workflow", "arguments": {"document": _calling(BY_NODE)["document"]}}),
    ("tools/call", {"name": "check_workflow", "arguments": {"document": _calling(BY_TOOL)["document"]}}),
    ("resources/read", {"uri": "pointsman://workflows/NAME"}),
    ("prompts/get", {"name": "NAME"}),
)
"""The same requests over MCP."""


@asynccontextmanager
async def world(store: str) -> AsyncGenerator[World]:
    settings = Settings(
        delays=False, authoring="editor", pipeline="inner", access=AccessSettings(starts_per_minute=1_000_000)
    )
    async with serving(store, is_local=False, settings=settings, script=parse_script(SCRIPT)) as served:
        offer_verbs(served.app.tools, lambda: served.app.context, "editor")
        keys = {
            name: await served.key(name, role, *([GROUP] if name == "cleo" else []))  # pyright: ignore[reportArgumentType] - roles
            for name, role in PEOPLE.items()
        }
        made = World(served, keys)
        await made.ask("POST", "/api/workflows", "ada", expect=201, content=TARGET)
        plan = {"workflow": "inner", "every": 86_400, "id": "inner"}
        await made.ask("POST", "/api/schedules", "ada", expect=201, json=plan)
        agent = {"name": "inner", "agent": {"system": "Help."}}
        await made.ask("POST", "/api/agents", "ada", expect=201, json=agent)
        await made.ask("PUT", "/api/agents/inner/sharing", "ada", expect=200, json={"audience": "private"})
        yield made


async def check_cells(size: int, seed: int, store: str = "memory:") -> tuple[list[str], str]:
    """Test `size` cells that the seed selects, or all if there are fewer, and all requests."""
    every = list(cells())
    chosen = every if size >= len(every) else Random(seed).sample(every, size)
    async with world(store) as one:
        await answers_are_the_same(one)
        for cell in chosen:
            await one.take(cell)
        questions = len(QUESTIONS) + len(MCP_QUESTIONS)
        ways = len({cell.way for cell in chosen})
        figure = f"{len(chosen)} of {len(every)} cells, {ways} ways, {questions} questions, {len(one.wrong)} wrong"
        return one.wrong, figure


def examine(size: int, seed: int) -> Finding:
    """Test `size` cells."""
    return _finding(check_cells(size, seed))


def on_postgres(size: int, seed: int) -> Finding:
    """Test the same on a PostgreSQL server of this experiment."""
    with server() as cluster:
        return _finding(check_cells(size, seed, cluster.url(schema="sharing")))


def _finding(trial: Coroutine[None, None, tuple[list[str], str]]) -> Finding:
    wrong, figure = asyncio.run(trial)
    return Finding(figure, tuple(wrong[:SHOWN_MAX]))
