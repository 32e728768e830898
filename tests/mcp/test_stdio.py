"""`pointsman mcp`: a real process behind a pipe."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, JSONRPCError

from mcp import Client, MCPError
from pointsman import Pointsman, Workflow, tool
from pointsman.auth.audit import Audit
from pointsman.definition.model.schema import SCHEMA_ID
from pointsman.mcp import stdio
from pointsman.mcp.stdio import MessageLines
from tests.definition.documents import CALC
from tests.mcp.conftest import MODES, SOURCES, Mode, at_prompt, call, names, refused
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # The SDK leaves pipes of the child to the garbage collector.

GATE: dict[str, Any] = {
    "pointsman": 1,
    "id": "gate",
    "entry": "ask",
    "nodes": [
        {"id": "ask", "type": "human", "config": {"message": "Go?", "options": [{"value": "yes"}, {"value": "no"}]}},
        {"id": "end", "type": "end"},
    ],
    "edges": [{"source": "ask", "target": "end"}],
}

LONG: dict[str, Any] = {
    "pointsman": 1,
    "id": "long",
    "nodes": [
        {"id": "first", "type": "transform", "config": {"operations": []}},
        {"id": "think", "type": "agent", "config": {"prompt": "Think."}},
    ],
    "edges": [{"source": "first", "target": "think"}],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.requirement("S4-39", "S4-40", "S4-41", "S4-42", "T4-11")
async def test_a_client_designs_saves_runs_changes_and_deletes_a_workflow(tmp_path: Path, mode: Mode) -> None:
    async with at_prompt(f"sqlite:///{tmp_path / 'store.db'}", mode) as client:
        assert (await call(client, "check_workflow", document=CALC))["ok"]
        saved = await call(client, "save_workflow", document=CALC)
        assert (saved["id"], saved["revision"], saved["ok"]) == ("calc", 1, True)
        assert saved["mermaid"].startswith("flowchart")
        listed = (await call(client, "list_workflows"))["workflows"]
        assert [one["id"] for one in listed if not one["builtIn"]] == ["calc"]
        assert any(one["builtIn"] for one in listed)
        ran = await call(client, "run_workflow", workflow="calc", input={"a": 4})
        assert (ran["status"], ran["output"]) == ("completed", 8)
        change = [{"op": "change_node", "node": "double", "set": {"/config/operations/0/evaluate": "a * 3"}}]
        shown = await call(client, "edit_workflow", workflow="calc", operations=change)
        assert (shown["applied"], shown["changes"]) == (
            False,
            [
                {
                    "op": "change_node",
                    "node": "double",
                    "set": {"/config/operations": [{"evaluate": "a * 3", "to": "b"}]},
                }
            ],
        )
        await call(client, "edit_workflow", workflow="calc", operations=change, apply=True, revision=1)
        assert (await call(client, "workflow__calc", a=4))["output"] == 12
        assert len((await call(client, "workflow_versions", workflow="calc"))["versions"]) == 2
        assert (await call(client, "rollback_workflow", workflow="calc", revision=1))["revision"] == 3
        assert (await call(client, "workflow__calc", a=4))["output"] == 8
        await call(client, "delete_workflow", workflow="calc")
        assert "workflow__calc" not in await names(client)


async def test_a_saved_workflow_is_available_to_the_next_client(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with at_prompt(store) as client:
        await call(client, "save_workflow", document=json.dumps(CALC))
        await call(client, "save_workflow", document=GATE)
        waiting = await call(client, "run_workflow", workflow="gate")
        assert waiting["status"] == "waiting"
        assert waiting["waiting"][0]["nodeId"] == "ask"
    async with at_prompt(store) as client:
        tool = next(one for one in (await client.list_tools()).tools if one.name == "workflow__calc")
        assert tool.description == "Doubles a number."
        assert tool.input_schema == CALC["input"]
        execution = waiting["executionId"]
        assert (await call(client, "get_execution", executionId=execution))["status"] == "waiting"
        bad = await refused(client, "answer_gate", executionId=execution, gate="ask", action="maybe")
        assert bad["error"]["code"] == "action-not-offered"
        ended = await call(client, "answer_gate", executionId=execution, gate="ask", action="yes")
        assert ended["status"] == "completed"


SHOWS: dict[str, Any] = {
    "pointsman": 1,
    "id": "letter",
    "input": {"type": "object"},
    "config": {"humanInLoop": "real_time"},
    "nodes": [{"id": "ask", "type": "human", "config": {"message": "Send {text}?", "show": ["text"]}}],
    "edges": [],
}


async def test_a_client_sees_which_worker_an_answered_execution_waits_for(tmp_path: Path) -> None:
    @tool
    async def polish(text: str) -> str:
        """Polish a text."""
        return text.upper()

    store = f"sqlite:///{tmp_path / 'store.db'}"
    work: Any = {"id": "work", "type": "tool", "config": {"tool": "polish", "parameters": {"text": "abc"}}}
    document: Any = {**SHOWS, "nodes": [*SHOWS["nodes"], work], "edges": [{"source": "ask", "target": "work"}]}
    async with Pointsman(store, tools=[polish], model="scripted") as starter:
        execution = await starter.start(Workflow.of(document), {"text": "x"})
        await execution.settled()
    async with at_prompt(store) as client:
        seen = await call(client, "answer_gate", executionId=execution.id, gate="ask", action="approve")
        assert (seen["status"], seen["waiting"], seen["errors"]) == ("waiting", [], [])
        assert [one["reason"] for one in seen["waitingFor"]] == ["a worker with the tool 'polish'"]


async def test_an_answer_to_earlier_contents_of_a_gate_is_refused(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with at_prompt(store) as client:
        await call(client, "save_workflow", document=SHOWS)
        waiting = await call(client, "run_workflow", workflow="letter", input={"text": "the old one"})
        execution, seen = waiting["executionId"], waiting["waiting"][0]["digest"]
        async with Pointsman(store) as other:
            await (await other.reach(execution)).steer(set={"text": "the new one"})
        answer = {"executionId": execution, "gate": "ask", "action": "approve"}
        told = await refused(client, "answer_gate", **answer, digest=seen)
        assert told["error"]["code"] == "gate-changed"
        (gate,) = (await call(client, "get_execution", executionId=execution))["waiting"]
        assert (gate["message"], gate["digest"] == seen) == ("Send the new one?", False)
        ended = await call(client, "answer_gate", **answer, digest=gate["digest"])
        assert ended["status"] == "completed"


async def test_changes_of_a_client_are_audited_with_their_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with at_prompt(store) as client:
        await call(client, "save_workflow", document=CALC)
        await call(client, "check_workflow", document=CALC)
        await call(client, "save_workflow", document=GATE)
        waiting = (await call(client, "run_workflow", workflow="gate"))["executionId"]
        await refused(client, "answer_gate", executionId=waiting, gate="ask", action="maybe")
    async with at_prompt(store) as client:
        await call(client, "answer_gate", executionId=waiting, gate="ask", action="yes", comment="a secret reason")
    async with Pointsman(store) as app:
        audit = Audit(app.store.entries, app.clock)
        deeds, _ = await audit.page()
        damage = await audit.damage()
    assert [(one["what"], one["target"], one["refused"]) for one in reversed(deeds)] == [
        ("mcp save_workflow", "id=calc, revision=1", None),
        ("mcp save_workflow", "id=gate, revision=1", None),
        ("mcp run_workflow", f"workflow=gate, executionId={waiting}", None),
        ("mcp answer_gate", f"executionId={waiting}, gate=ask", "action-not-offered"),
        ("mcp answer_gate", f"executionId={waiting}, gate=ask", None),
    ]
    assert {(one["who"], one["entrance"], one["origin"]) for one in deeds} == {("grace", "shell", "")}
    assert damage == []


@pytest.mark.requirement("S4-43")
async def test_an_invalid_call_returns_a_correction(tmp_path: Path) -> None:
    async with at_prompt(f"sqlite:///{tmp_path / 'store.db'}") as client:
        broken = {**CALC, "edges": [{"source": "start", "target": "duoble"}]}
        invalid = await refused(client, "save_workflow", document=broken)
        assert invalid["error"]["code"] == "workflow-invalid"
        assert any("duoble" in one["message"] and "double" in one["hint"] for one in invalid["problems"])
        await call(client, "save_workflow", document=CALC)
        assert (await refused(client, "workflow__calc", a="four"))["error"]["code"] == "input-invalid"
        nowhere = (await refused(client, "run_workflow", workflow="nope"))["error"]
        assert (nowhere["code"], nowhere["hint"][:16]) == ("unknown-workflow", "`list_workflows`")
        assert (await refused(client, "get_execution", executionId="../x"))["error"]["code"] == "unknown-execution"
        for arguments in (
            {},
            {"workflow": 7},
            {"workflow": "calc", "speed": 9},
            {"workflow": ""},
            {"workflow": "x" * 999},
        ):
            wrong = (await refused(client, "run_workflow", **arguments))["error"]
            assert (wrong["code"], wrong["hint"][:31]) == ("arguments-invalid", "Parameters: workflow (required)")
        bad = await refused(client, "edit_workflow", workflow="calc", operations=[{"op": "explode"}])
        assert bad["error"]["code"] == "operation-refused"
        with pytest.raises(MCPError, match="there is no tool 'workflow__nope'"):
            await client.call_tool("workflow__nope", {})
        huge = {**CALC, "metadata": {"x": "y" * 17_000_000}}
        assert not (await call(client, "check_workflow", document=huge))["ok"]
        assert (await call(client, "check_workflow", document=CALC))["ok"], "it is still there"


async def test_progress_is_reported_step_by_step(tmp_path: Path) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)
        assert progress == len(heard)

    async with at_prompt(f"sqlite:///{tmp_path / 'store.db'}") as client:
        await call(client, "save_workflow", document=CALC)
        await client.call_tool("run_workflow", {"workflow": "calc", "input": {"a": 1}}, progress_callback=hear)
    assert heard == ["start passed", "double passed", "end passed"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cancels_a_call_cancels_the_execution(tmp_path: Path, mode: Mode) -> None:
    async with at_prompt(f"sqlite:///{tmp_path / 'store.db'}", mode, script=slow(tmp_path)) as client:
        await call(client, "save_workflow", document=LONG)
        began = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            began.set()

        running = asyncio.create_task(client.call_tool("run_workflow", {"workflow": "long"}, progress_callback=hear))
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await ends(client, execution_in(tmp_path / "store.db")) == "cancelled"


async def test_a_client_that_exits_does_not_cancel_the_execution(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with at_prompt(store, script=slow(tmp_path)) as client:
        await call(client, "save_workflow", document=LONG)
        began = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            began.set()

        running = asyncio.create_task(client.call_tool("run_workflow", {"workflow": "long"}, progress_callback=hear))
        await began.wait()
        execution = execution_in(tmp_path / "store.db")
    running.cancel()
    with suppress(MCPError, asyncio.CancelledError):
        await running
    async with at_prompt(store) as client:
        assert (await call(client, "get_execution", executionId=execution))["status"] != "cancelled"


def slow(folder: Path) -> Path:
    """Write a script with an answer that takes an hour."""
    file = folder / "slow.yaml"
    file.write_text("rules: [{node: think, delay: 1h, text: Done.}]\n")
    return file


def execution_in(store: Path) -> str:
    """Return the only execution of a store while another process has it open."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        ((found,),) = connection.execute("SELECT id FROM executions").fetchall()
    return str(found)


async def ends(client: Client, execution: str) -> str:
    """Return its status after its end."""
    while True:
        status = str((await call(client, "get_execution", executionId=execution))["status"])
        if status not in ("running", "waiting"):
            return status


async def test_documents_and_prompts_are_readable(tmp_path: Path) -> None:
    async with at_prompt(f"sqlite:///{tmp_path / 'store.db'}") as client:
        await call(client, "save_workflow", document=json.dumps(CALC))
        listed = {str(one.uri) for one in (await client.list_resources()).resources}
        assert listed >= {
            "pointsman://guide",
            "pointsman://schema",
            "pointsman://operations",
            "pointsman://workflows/calc",
        }

        async def text(uri: str) -> str:
            (content,) = (await client.read_resource(uri)).contents
            return str(getattr(content, "text", ""))

        assert json.loads(await text("pointsman://schema"))["$id"] == SCHEMA_ID
        assert json.loads(await text("pointsman://operations"))["type"] == "array"
        assert json.loads(await text("pointsman://workflows/calc")) == CALC
        (designing,) = (await client.get_prompt("design_workflow", {"goal": "Write letters."})).messages
        said = str(getattr(designing.content, "text", ""))
        assert "Write letters." in said
        assert await text("pointsman://guide") in said
        changing = await client.get_prompt("change_workflow", {"workflow": "calc", "wish": "Triple it."})
        assert "Triple it." in str(changing.messages)
        for bad in (
            "pointsman://workflows/nope",
            "pointsman://nothing",
            "file:///etc/passwd",
            "pointsman://workflows/../x",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(bad)
        for name, arguments in (
            ("nope", {}),
            ("design_workflow", {}),
            ("change_workflow", {"workflow": "no", "wish": "x"}),
        ):
            with pytest.raises(MCPError):
                await client.get_prompt(name, arguments)


def test_lines_that_are_not_messages_do_not_end_the_session(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    lines = ["not json", '{"jsonrpc": "2.0"', "[]", "null", '{"id": 7}', json.dumps(hello)]
    done = subprocess.run(
        [sys.executable, "-m", "pointsman", "mcp", "--store", store],
        input="\n".join([*lines, ""]),
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin"},
        timeout=PATIENCE_S,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(answer.get("id") == 1 and "result" in answer for answer in answers)
    assert done.returncode == 0, done.stderr


PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


async def read_lines(text: bytes) -> tuple[list[str], list[JSONRPCError]]:
    """Return the messages of a text, and the errors that answer its other lines."""
    answers: list[JSONRPCError] = []

    async def send(answer: SessionMessage) -> None:
        assert isinstance(answer.message, JSONRPCError)
        answers.append(answer.message)

    lines = MessageLines(io.BytesIO(text))
    lines.send = send
    return [line async for line in lines], answers


@pytest.mark.parametrize(
    ("line", "code", "about"),
    [
        (b"hello", PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":2,"method":"\xff"}', PARSE_ERROR, None),
        (PING + PING, PARSE_ERROR, None),
        (b"[" + PING + b"]", INVALID_REQUEST, None),
        (b"5", INVALID_REQUEST, None),
        (b'{"id":2,"method":"ping"}', INVALID_REQUEST, 2),
        (b'{"jsonrpc":"2.0","id":"a"}', INVALID_REQUEST, "a"),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":2,"method":"ping","params":' + b"[" * 300 + b"]" * 300 + b"}", INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":' + b"9" * 200 + b"}}", INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":2,"method":"ping","params":[' + b"[]," * 300_000 + b"1]}", INVALID_REQUEST, None),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_line_that_is_not_a_message_is_answered_with_an_error(
    line: bytes, code: int, about: int | str | None
) -> None:
    messages, answers = await read_lines(b"\n" + line + b"\r\n" + PING + b"\n")
    assert [message.strip() for message in messages] == [PING.decode()]
    assert [(answer.error.code, answer.id) for answer in answers] == [(code, about)]
    assert all(answer.model_dump_json() for answer in answers), "each answer can be encoded"


async def test_a_line_over_the_limit_is_skipped_and_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "LINE_BYTES_MAX", 100)
    monkeypatch.setattr(stdio, "CHUNK_BYTES", 16)
    fits = b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 63 + b'"}\n'
    assert len(fits) == 100
    messages, answers = await read_lines(b"x" * 1000 + b"\n" + fits + b"y" * 100)
    assert [message.encode() for message in messages] == [fits]
    assert [(answer.error.code, "more than 100 bytes" in answer.error.message) for answer in answers] == [
        (INVALID_REQUEST, True),
        (INVALID_REQUEST, True),
    ]


def test_a_process_answers_an_invalid_line_and_continues(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pointsman", "mcp", "--store", f"sqlite:///{tmp_path / 'store.db'}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"hello\n" + PING + b"\n")
        process.stdin.flush()
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
    assert (first["id"], first["error"]["code"]) == (None, PARSE_ERROR)
    assert second == {"jsonrpc": "2.0", "id": 1, "result": {}}
