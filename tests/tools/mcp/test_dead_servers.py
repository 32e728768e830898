"""MCP servers that do not answer are seen before anything needs them, with what they printed."""

from __future__ import annotations

import asyncio
import gc
import os
import sys

import pytest

from pointsman import Pointsman, Workflow
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.operations.health import findings
from pointsman.settings import Settings
from pointsman.tools.mcp.process import ServerProcess
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject
from pointsman.workflows.tool_verbs import list_tools, server_views

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("ready_forks")]

DYING = "import os, sys; print('no such table: ' + os.environ.get('WORD', ''), file=sys.stderr); sys.exit(3)"
CALLS = Workflow.of(
    {"id": "calls", "nodes": [{"id": "work", "type": "tool", "config": {"tool": "desk__add"}}], "edges": []}
)


def dead(**more: Json) -> Settings:
    server: JsonObject = {"command": [sys.executable, "-c", DYING], "tools": ["*"], **more}
    return Settings.model_validate({"store": "memory:", "mcp": {"desk": server}, "secrets": {"T": "sesame-sesame"}})


async def test_a_failed_call_names_the_setting_and_shows_the_tail_of_standard_error() -> None:
    async with Pointsman(settings=dead()) as app:
        with pytest.raises(ToolFailed) as caught:
            await app.tools.call(ToolCall(id="1", name="desk__add", arguments={}), key="k")
        failure: Failure = caught.value.failure
    assert failure.code == "mcp-unreachable"
    assert "it printed: no such table:" in failure.message
    assert "`command` under [mcp.desk]" in failure.hint
    assert (failure.details or {})["stderr"] == "no such table:"


async def test_check_warns_of_a_server_that_does_not_answer() -> None:
    async with Pointsman(settings=dead()) as app:
        await app.tools.prepare(["desk__add"])  # as `pointsman check` does
        checked = await app.check(CALLS)
    (problem,) = [one for one in checked.problems if one.code == "mcp-unreachable"]
    assert (problem.severity, problem.pointer) == ("warning", "/nodes/0/config/tool")
    assert "no such table" in problem.message


async def test_doctor_and_the_list_of_tools_show_an_unreachable_server() -> None:
    async with Pointsman(settings=dead()) as app:
        (found,) = [one for one in await findings(app.context) if one.code == "mcp-unreachable"]
        assert (found.severity, "no such table" in found.message) == ("error", True)
        await list_tools(app.context)
        (view,) = server_views(app.context, with_stderr=True)
        assert isinstance(view["failure"], dict)
        assert view["failure"].get("stderr") == "no such table:"
        (shown,) = server_views(app.context)
        assert isinstance(shown["failure"], dict)
        assert "stderr" not in shown["failure"], "others than the operator do not see it"


async def test_the_output_of_a_server_is_shown_without_its_secrets() -> None:
    async with Pointsman(settings=dead(env={"WORD": "secret.T"})) as app:
        (found,) = [one for one in await findings(app.context) if one.code == "mcp-unreachable"]
    assert "sesame" not in found.message
    assert "no such table: ***" in found.message


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ({"command": ["/nowhere/server"]}, "No such file or directory: '/nowhere/server'"),
        ({"url": "http://127.0.0.1:9/mcp"}, "the connection was refused"),
    ],
)
async def test_the_reason_of_an_unreachable_server_is_a_sentence(server: JsonObject, reason: str) -> None:
    settings = Settings.model_validate({"store": "memory:", "mcp": {"desk": {**server, "tools": ["*"]}}})
    async with Pointsman(settings=settings) as app:
        with pytest.raises(ToolFailed) as caught:
            await app.tools.call(ToolCall(id="1", name="desk__add", arguments={}), key="k")
    assert str(caught.value.failure.message) == f"the MCP server 'desk' cannot be reached: {reason}"


DEAF = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)


def process_id(process: ServerProcess) -> int:
    pid = process._transport.get_pid() if process._transport else None  # pyright: ignore[reportPrivateUsage] - for its end
    assert pid is not None
    return pid


@pytest.mark.parametrize("turns", range(0, 12, 2))
@pytest.mark.filterwarnings("always::ResourceWarning")
def test_the_end_of_an_event_loop_leaves_no_server_process(turns: int, recwarn: pytest.WarningsRecorder) -> None:
    """A call that is cancelled again while it stops a server, which ignores SIGTERM, kills the server."""
    started = list[int]()

    async def use(process: ServerProcess) -> None:
        async with process.transport():
            while not process.noise_lines:  # noqa: ASYNC110 - the process prints when it ignores the signal
                await asyncio.sleep(0.005)
            started.append(process_id(process))
            await asyncio.Event().wait()

    async def use_and_cancel() -> None:
        process = ServerProcess([sys.executable, "-I", "-S", "-c", DEAF], {}, str)
        call = asyncio.create_task(use(process))
        while not started:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.005)
        call.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)

    asyncio.run(use_and_cancel())
    gc.collect()
    assert [str(one.message) for one in recwarn] == []
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)
