"""Tools of MCP servers, with servers of the official SDK as peers, over both transports."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import httpx2
import pytest
import uvicorn

from pointsman.app import Pointsman, Workflow
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.ports import SecretRule
from pointsman.settings import Settings, SettingsInvalid, load_settings
from pointsman.tools.egress.addresses import SecretRefused
from pointsman.tools.mcp.server import McpServer, McpServerDescription
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject
from tests.tools.mcp.peer import server as peer
from tests.tools.mcp.registries import tools

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("ready_forks")]

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import EgressTransport

PEER = str(Path(__file__).with_name("peer.py"))
LISTED = ["add", "die", "fail", "flood", "hang", "who.am/i"]


def by_command(starts: Path, **more: object) -> Settings:
    described = {"command": [sys.executable, PEER, str(starts)], "tools": LISTED, "timeout": "20s", **more}
    return Settings.model_validate({"mcp": {"desk": described}, "secrets": {"T": "sesame"}})


async def called(registry: ToolRegistry, name: str, **arguments: Json) -> Json:
    return await registry.call(ToolCall(id="1", name=name, arguments=arguments), key="k")


async def failure(registry: ToolRegistry, name: str, **arguments: Json) -> Failure:
    with pytest.raises(ToolFailed) as failed:
        await called(registry, name, **arguments)
    return failed.value.failure


@asynccontextmanager
async def listening() -> AsyncGenerator[str]:
    """The same server over streamable HTTP."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    app = peer.streamable_http_app()
    http = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on", ws="none"))
    serving = asyncio.create_task(http.serve(sockets=[bound]))
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
    finally:
        http.should_exit = True
        await serving
        bound.close()


async def test_tools_of_a_command_are_listed_checked_and_called_over_one_connection(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with tools(by_command(starts)) as registry:
        assert not await asyncio.to_thread(starts.exists)
        await registry.prepare(["desk__add"])
        assert [name for name in registry.names() if name.startswith("desk")] == [
            *("desk__add", "desk__die", "desk__fail", "desk__flood", "desk__hang", "desk__who_am_i")
        ]
        spec = registry.find("desk__add")
        assert spec is not None
        assert (spec.description, registry.origin("desk__add")) == ("Add two numbers.", "mcp")
        assert await called(registry, "desk__add", a=1, b=2) == 3
        wrong = await failure(registry, "desk__add", a="one", b=2)
        assert wrong.code == "tool-arguments"
        assert len(await lines(starts)) == 1


async def test_an_unlisted_tool_cannot_be_called(tmp_path: Path) -> None:
    async with tools(by_command(tmp_path / "starts")) as registry:
        assert registry.find("desk__secret_thing") is None
        assert (await failure(registry, "desk__secret_thing")).code == "unknown-tool"
        assert registry.find("desk__secret_thing") is None


async def test_a_server_process_receives_only_its_configured_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKED", "the operator's own")
    async with tools(by_command(tmp_path / "starts", env={"TOKEN": "secret.T"})) as registry:
        assert await called(registry, "desk__who_am_i") == {"token": "sesame", "home": True, "leaked": ""}
    async with tools(by_command(tmp_path / "starts", env={"TOKEN": "secret.NOT_THERE"})) as registry:
        assert (await failure(registry, "desk__add", a=1, b=2)).code == "secret-missing"


async def test_an_error_is_a_typed_failure_and_keeps_the_connection(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with tools(by_command(starts)) as registry:
        failed = await failure(registry, "desk__fail")
        assert failed.code == "tool-failed"
        assert "desk__fail" in failed.message
        assert (await failure(registry, "desk__flood")).code == "tool-output-too-large"
        assert await called(registry, "desk__add", a=2, b=2) == 4
        assert len(await lines(starts)) == 1


async def test_a_server_that_does_not_answer_times_out(tmp_path: Path) -> None:
    async with tools(by_command(tmp_path / "starts", timeout="5s")) as registry:
        await registry.prepare(["desk__hang"])
        late = await failure(registry, "desk__hang")
        assert (late.code, late.retryable) == ("tool-timeout", True)
        assert await called(registry, "desk__add", a=2, b=2) == 4


async def test_a_crashed_server_is_restarted(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with tools(by_command(starts)) as registry:
        gone = await failure(registry, "desk__die")
        assert (gone.code, gone.retryable) == ("mcp-unreachable", True)
        assert await called(registry, "desk__add", a=2, b=2) == 4
        assert len(await lines(starts)) == 2


async def test_a_server_that_cannot_start_fails_its_calls_with_the_reason(tmp_path: Path) -> None:
    for command in (["/no/such/program"], [sys.executable, "-c", "pass"]):
        settings = by_command(tmp_path / "starts", command=command)
        async with tools(settings) as registry:
            await registry.prepare(["desk__add"])
            gone = await failure(registry, "desk__add", a=1, b=2)
            assert (gone.code, gone.retryable) == ("mcp-unreachable", True)
            assert "[mcp.desk]" in gone.hint


async def test_a_server_with_an_address_is_called_over_http() -> None:
    async with listening() as url:
        described = {"url": url, "headers": {"Authorization": "secret.T"}, "timeout": "20s"}
        settings = Settings.model_validate({"mcp": {"web": described}, "secrets": {"T": "Bearer sesame"}})
        async with tools(settings) as registry:
            assert await called(registry, "web__add", a=1, b=2) == 3
            assert (await failure(registry, "web__flood")).code == "tool-output-too-large"
            assert (await failure(registry, "web__fail")).code == "tool-failed"
            assert await called(registry, "web__add", a=2, b=2) == 4


async def test_a_workflow_calls_a_server_after_a_restart_and_its_process_ends_with_the_app(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    settings = by_command(starts)
    store = f"sqlite:///{tmp_path / 'store.db'}"
    config: JsonObject = {"tool": "desk__add", "parameters": {"a": "{input.n}", "b": 1}}
    workflow = Workflow.of({"id": "adds", "nodes": [{"id": "add", "type": "tool", "config": config}], "edges": []})
    for number in (1, 2):
        async with Pointsman(store, settings=settings) as app:
            assert (await app.check(workflow)).ok
            execution = await app.start(workflow, {"n": number})
            await execution.settled()
            assert (await app.view(execution.id))["output"] == number + 1
    pids = [int(line) for line in await lines(starts)]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    "described", ["{}", '{command = ["a"], url = "http://x"}', '{command = "a b"}', '{url = "x", more = 1}']
)
def test_a_server_is_either_a_command_or_an_address(
    described: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pointsman.toml").write_text(f"[mcp]\ndesk = {described}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsInvalid, match=r"mcp\.desk"):
        load_settings()


async def lines(file: Path) -> list[str]:
    return (await asyncio.to_thread(file.read_text)).splitlines()


async def test_secrets_in_headers_are_sent_only_to_the_server_and_allowed_hosts() -> None:
    seen: list[tuple[str, str | None]] = []

    class Peer(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            seen.append((str(request.url.host), request.headers.get("authorization")))
            return httpx2.Response(200)

    headers = {"Authorization": "secret.T", "X-Team": "sales"}
    described = McpServerDescription(url="https://desk.example/mcp", headers=headers)
    values = {"secret.T": "a-long-secret", "sales": "sales"}
    rule = SecretRule(hosts=("other.example",))
    server = McpServer(
        "desk",
        described,
        open_transport=lambda: cast("EgressTransport", Peer()),
        resolved=values.get,
        rule=lambda _: rule,
    )
    elsewhere = ("https://evil.example", "http://desk.example", "https://desk.example:8443", "https://a.desk.example")
    async with server.http_client() as client:
        for host in ("desk.example", "other.example"):
            await client.get(f"https://{host}/mcp")
        for url in elsewhere:
            with pytest.raises(SecretRefused, match="secret 'T'"):
                await client.get(url)
            await client.get(url, headers={"authorization": "none"})
    assert seen[:2] == [("desk.example", "a-long-secret"), ("other.example", "a-long-secret")]
    assert {said for _, said in seen[2:]} == {"none"}


async def test_a_result_schema_is_bounded() -> None:
    odd = {"command": [sys.executable, str(Path(__file__).with_name("odd_peer.py"))], "timeout": "20s"}
    async with tools(Settings.model_validate({"mcp": {"odd": odd}})) as registry:
        assert await called(registry, "odd__fit") == {"a": 1}
        for name, why in {
            "doubling": "takes more than",
            "backtracking": "does not match",
            "unfit": "required",
            "unresolved": "may only refer to itself",
            "silent": "does not fit its schema",
        }.items():
            failed = await failure(registry, f"odd__{name}")
            assert (failed.code, why in failed.message) == ("tool-failed", True), failed.message
