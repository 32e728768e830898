"""MCP servers that exit, refuse, answer with malformed results or write other lines than messages."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pointsman import Pointsman, Workflow
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject
from tests.quick_starts import fresh_starts
from tests.tools.mcp.registries import tools

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("ready_forks")]

PEER: Final = str(Path(__file__).with_name("broken_peer.py"))
AT_ONCE_S: Final = 10.0
"""Less than the timeout of the server, and enough for a busy machine."""


def broken(how: str, **more: Json) -> Settings:
    server: JsonObject = {"command": [sys.executable, PEER, how], "timeout": "30s", **more}
    return Settings.model_validate({"store": "memory:", "mcp": {"desk": server}})


async def called(registry: ToolRegistry) -> Json:
    return await registry.call(ToolCall(id="1", name="desk__add", arguments={}), key="k")


async def failure(settings: Settings) -> Failure:
    async with tools(settings) as registry:
        with pytest.raises(ToolFailed) as caught:
            await called(registry)
    return caught.value.failure


@pytest.mark.parametrize(
    ("how", "code"),
    [("start-exit", 3), ("start-exit-and-leave-child", 3), ("exit:4", 4), ("exit-and-leave-child", 4)],
)
async def test_the_exit_of_a_server_fails_its_call_with_exit_code_and_standard_error(how: str, code: int) -> None:
    began = time.monotonic()
    failed = await failure(broken(how))
    assert time.monotonic() - began < AT_ONCE_S
    assert (failed.code, failed.retryable) == ("mcp-unreachable", True)
    assert failed.message == (
        f"the MCP server 'desk' cannot be reached: its command exited with code {code};"
        " it printed: first line | no such table: desk"
    )
    assert failed.details == {"stderr": "first line\nno such table: desk", "exitCode": code}


async def test_exit_code_of_a_server_that_exits_while_it_is_started_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    start = loop.subprocess_exec
    exited = asyncio.Event()

    async def until_exit(make: Callable[[], Any], *command: Any, **named: Any) -> Any:
        def watched() -> Any:
            protocol = make()
            note_exit = protocol.process_exited
            protocol.process_exited = lambda: (note_exit(), exited.set())
            return protocol

        started = await start(watched, *command, **named)
        await exited.wait()
        return started

    monkeypatch.setattr(loop, "subprocess_exec", until_exit)
    failed = await failure(broken("start-exit"))
    assert failed.details == {"stderr": "first line\nno such table: desk", "exitCode": 3}


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("start-signal", "its command was ended by the signal SIGKILL"),
        ("start-close", "it closed its standard output; it printed: no such table: desk"),
        ("exit:0", "its command exited with code 0"),
    ],
)
async def test_a_failure_states_how_the_connection_ended(how: str, reason: str) -> None:
    failed = await failure(broken(how))
    assert failed.code == "mcp-unreachable"
    assert f"cannot be reached: {reason}" in failed.message


async def test_a_short_timeout_does_not_hide_the_exit_of_a_server() -> None:
    """The SDK takes longer to import than this timeout; a fresh interpreter imports it in the first call."""
    script = f"""
import asyncio, sys, threading
from pointsman.workflows.tools import registry_for
from pointsman.engine.reports import ToolCall
from pointsman.settings import Settings
from pointsman.tools.tool import ToolFailed
imported_by = set()
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "mcp_types", "httpx2"):
            imported_by.add(threading.current_thread() is threading.main_thread())
sys.meta_path.insert(0, Finder())
server = {{"command": [sys.executable, {PEER!r}, "start-exit"], "timeout": "1s"}}
async def main():
    registry = registry_for(Settings.model_validate({{"mcp": {{"desk": server}}}}), ())
    try:
        await registry.call(ToolCall(id="1", name="desk__add", arguments={{}}), key="k")
    except ToolFailed as why:
        print(why.failure.code, imported_by)
    await registry.close()
asyncio.run(main())
"""
    with fresh_starts():  # The import of packages is tested.
        ran = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
    assert ran.stdout.strip() == "mcp-unreachable {False}", ran.stderr


async def test_the_timeout_of_a_hanging_server_shows_its_output() -> None:
    failed = await failure(broken("hang", timeout="1s"))
    assert failed.code == "tool-timeout"
    assert "it printed: waits for a lock" in failed.message
    assert "`timeout` under [mcp.desk]" in failed.hint


@pytest.mark.parametrize("code", [-32000, -32001, -32602, 1])
async def test_an_error_of_a_server_is_a_failure_of_the_tool(code: int) -> None:
    async with tools(broken(f"error:{code}")) as registry:
        for _ in range(2):
            with pytest.raises(ToolFailed) as caught:
                await called(registry)
            failed = caught.value.failure
            assert (failed.code, failed.retryable) == ("tool-failed", False)
            assert failed.message == f"the MCP server 'desk' refused 'add' with the error {code}: server says no"


async def test_an_error_of_a_server_at_its_start_is_not_an_outage() -> None:
    failed = await failure(broken("refuse-all"))
    assert failed.code == "tool-failed"
    assert failed.message == "the MCP server 'desk' refused 'add' with the error -32000: server says no"


@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        ("malformed:content-text", "`content` should be a valid list"),
        ("malformed:content-without-text", "`content[0].text` is missing"),
        ("malformed:content-alien", "`content[0]` is of the unknown type 'alien'"),
        ("malformed:flag", "`isError` should be a valid boolean"),
        ("malformed:other", "`content` is missing"),
        ("malformed:none", "its answer is not a JSON-RPC result or error"),
        ("malformed:text", "its answer is not a JSON-RPC result or error"),
        ("malformed-start", "`capabilities` is missing"),
        ("list", "`tools[0].inputSchema` is missing"),
    ],
)
async def test_a_malformed_result_is_described(how: str, wrong: str) -> None:
    began = time.monotonic()
    failed = await failure(broken(how))
    assert time.monotonic() - began < AT_ONCE_S
    assert failed.code == "tool-failed"
    assert failed.message.startswith("the MCP server 'desk' answered ")
    assert "'add'" in failed.message
    assert f"with a malformed result: {wrong}" in failed.message
    for word in ("pydantic", "ValidationError", "input_value", "Traceback"):
        assert word not in f"{failed.message}{failed.details}"


async def test_a_malformed_list_of_tools_does_not_stop_a_check() -> None:
    document: JsonObject = {
        "id": "calls",
        "nodes": [{"id": "work", "type": "tool", "config": {"tool": "desk__add"}}],
        "edges": [],
    }
    async with Pointsman(settings=broken("list")) as app:
        await app.tools.prepare(["desk__add"])
        checked = await app.check(Workflow.of(document))
    (problem,) = [one for one in checked.problems if one.pointer == "/nodes/0/config/tool"]
    assert "malformed result" in problem.message


async def test_other_lines_on_standard_output_are_logged_once(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with tools(broken("noise")) as registry:
        for _ in range(3):
            assert await called(registry) == "fine"
    (record,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert record.getMessage() == (
        "the MCP server 'desk' wrote 5 lines to standard output that are not JSON-RPC messages; the first: noise 0"
    )
    assert record.exc_info is None
    assert "Traceback" not in capfd.readouterr().err


async def test_a_failure_shows_the_first_line_that_is_not_a_message() -> None:
    failed = await failure(broken("start-noise"))
    assert failed.details == {"exitCode": 2, "stdout": "noise 0"}


@asynccontextmanager
async def listening(called: Response | None = None) -> AsyncGenerator[tuple[str, set[str]]]:
    """A server at an address, and the sessions that it knows. `called`: what it answers calls with."""
    sessions: set[str] = set()

    async def answer(request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        asked = message.get("id")
        if asked is None:
            return Response(status_code=202)
        reply: JsonObject = {"jsonrpc": "2.0", "id": asked}
        if message["method"] == "initialize":
            session = f"s{len(sessions)}"
            sessions.add(session)
            about: JsonObject = {"name": "web", "version": "1"}
            version = message["params"]["protocolVersion"]
            reply["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            return JSONResponse(reply, headers={"mcp-session-id": session})
        if message["method"] == "tools/call" and called is not None:
            return called
        known = request.headers.get("mcp-session-id") in sessions
        if message["method"] == "tools/list" and known:
            reply["result"] = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
        else:
            reply["error"] = {"code": -32000, "message": "server says no"}
        return JSONResponse(reply, status_code=200 if known or message["method"] == "server/discover" else 404)

    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/mcp", answer, methods=["GET", "POST", "DELETE"])])
    http = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
    serving = asyncio.create_task(http.serve(sockets=[bound]))
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", sessions
    finally:
        http.should_exit = True
        await serving
        bound.close()


async def test_an_http_error_of_a_server_is_not_a_lost_session() -> None:
    async with listening() as (url, sessions):
        settings = Settings.model_validate({"mcp": {"desk": {"url": url, "timeout": "20s"}}})
        async with tools(settings) as registry:
            for codes in (("tool-failed", False), ("mcp-unreachable", True), ("tool-failed", False)):
                if codes[0] == "mcp-unreachable":
                    sessions.clear()
                with pytest.raises(ToolFailed) as caught:
                    await called(registry)
                assert (caught.value.failure.code, caught.value.failure.retryable) == codes


@pytest.mark.parametrize(
    ("status", "code", "why"),
    [
        (503, "mcp-unreachable", "cannot be reached: it answered with the HTTP status 503"),
        (200, "tool-failed", "malformed result: its answer is not a JSON-RPC result or error"),
    ],
)
async def test_an_http_answer_that_is_not_a_message_is_described(status: int, code: str, why: str) -> None:
    answer = Response("busy", status_code=status, media_type="application/json")
    async with listening(answer) as (url, _):
        failed = await failure(Settings.model_validate({"mcp": {"desk": {"url": url, "timeout": "20s"}}}))
    assert failed.code == code
    assert why in failed.message


async def test_an_address_where_nothing_listens_is_unreachable() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
        failed = await failure(Settings.model_validate({"mcp": {"desk": {"url": url, "timeout": "20s"}}}))
    assert (failed.code, failed.retryable) == ("mcp-unreachable", True)
