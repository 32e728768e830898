"""Secrets in the parameters of tool nodes: inserted where the document names them, and nowhere else."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.authoring.tools import offer_verbs
from pointsman.settings import Settings
from pointsman.tools.tool import Tool
from pointsman.values import Json, JsonObject, json_of

CANARY = "sesame-open-the-door"
HANDLES: JsonObject = {"key": "secret.DOOR", "headers": [{"Authorization": "Bearer {secret.DOOR}"}]}


class EchoTool:
    """A tool that returns its arguments and records them."""

    def __init__(self) -> None:
        self.given: list[Json] = []

    def tool(self) -> Tool:
        @tool
        async def echo(key: str, headers: list[dict[str, str]] | None = None, who: str = "") -> Json:
            """Return the arguments."""
            self.given.append([key, [{**one} for one in headers or []], who])
            if who == "raise":
                raise ValueError(f"wrong key {key}")
            return {"said": f"you have {key}", key: [key, who]}

        return echo


def installation(door: EchoTool, store: str = "memory:", **more: Json) -> Pointsman:
    secrets = {"DOOR": {"value": CANARY, "tools": ["echo"]}}
    settings = Settings.model_validate({"secrets": secrets, "delays": False, **more})
    return Pointsman(store, tools=[door.tool()], settings=settings, model="scripted")


def echoing(parameters: JsonObject, **node: Json) -> Workflow:
    one: JsonObject = {"id": "echo", "type": "tool", "config": {"tool": "echo", "parameters": parameters}, **node}
    return Workflow.of({"id": "door", "nodes": [one], "edges": []})


async def everything_said(app: Pointsman, execution: str, folder: Path) -> str:
    """Return everything that callers can read of an execution, and every stored byte of it."""
    exported = b"".join([line async for line in app.storage.export(execution)])
    _, events = await app.state_and_events(execution)
    told: list[Json] = [json_of(await app.view(execution)), [*events], [*await app.public_events(execution)]]
    return str(told) + (exported + kept_in(folder)).decode(errors="replace")


def kept_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.mark.integration
async def test_a_secret_reaches_the_tool_and_no_journal_log_event_or_export(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    door, url, seen = EchoTool(), f"sqlite:///{tmp_path}/store.db", list[str]()
    caplog.set_level(logging.DEBUG)
    async with installation(door, url) as app:
        app.watch(lambda event: seen.append(str(event)))
        execution = await app.start(echoing({**HANDLES, "who": "{input.who}"}), {"who": "ada"})
        assert await execution.output() == {"said": "you have ***", "***": ["***", "ada"]}
        assert door.given == [[CANARY, [{"Authorization": f"Bearer {CANARY}"}], "ada"]]
        said = await everything_said(app, execution.id, tmp_path)
    assert "secret.DOOR" in said, "what is kept names the handle"
    assert CANARY not in said + str(seen) + caplog.text
    async with installation(door, url) as app:
        assert CANARY not in await everything_said(app, execution.id, tmp_path)
        assert (await app.replay(execution.id)).differences == []
    assert len(door.given) == 1


async def test_handles_in_data_stay_text() -> None:
    door = EchoTool()
    async with installation(door) as app:
        flow = echoing({"key": "{input.key}", "who": "{input.who}"})
        await (await app.start(flow, {"key": "secret.DOOR", "who": "{secret.DOOR}"})).output()
        inputs: JsonObject = {"key": "input.key", "who": "input.who"}
        node: JsonObject = {"id": "echo", "type": "tool", "config": {"tool": "echo"}, "inputs": inputs}
        whole = Workflow.of({"id": "door", "nodes": [node], "edges": []})
        await (await app.start(whole, {"key": "secret.DOOR", "who": "{secret.DOOR}"})).output()
    assert door.given == [["secret.DOOR", [], "{secret.DOOR}"]] * 2


async def test_a_failure_contains_no_secret() -> None:
    door = EchoTool()
    async with installation(door) as app:
        execution = await app.start(echoing({"key": "secret.DOOR", "who": "raise"}), {})
        assert await execution.settled() == "failed"
        view = await app.view(execution.id)
        assert "wrong key ***" in str(view["errors"])
        assert CANARY not in str(view) + str(await app.state_and_events(execution.id))


async def test_an_unknown_secret_fails_the_step_before_the_tool_call() -> None:
    door = EchoTool()
    async with installation(door) as app:
        execution = await app.start(echoing({"key": "secret.WINDOW"}), {})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert (
            execution.state.outcome.failure.code,
            "POINTSMAN_SECRET_WINDOW" in execution.state.outcome.failure.hint,
        ) == (
            "secret-missing",
            True,
        )
    assert door.given == []


@pytest.mark.integration
async def test_an_approver_sees_the_handle_and_not_the_secret(tmp_path: Path) -> None:
    """Also after a restart: the secret is read when the call is made, not when the gate opens."""
    door, url = EchoTool(), f"sqlite:///{tmp_path}/store.db"
    flow = echoing(HANDLES, requiresApproval=True)
    async with installation(door, url) as app:
        execution = await app.start(flow, {})
        assert await execution.settled() == "waiting"
        assert CANARY not in str(await app.view(execution.id))
    async with installation(door, url) as app:
        again = await app.open(execution.id)
        await again.answer("echo", "approve", by="ada")
        assert await again.output() == {"said": "you have ***", "***": ["***", ""]}
    assert len(door.given) == 1


@pytest.mark.integration
async def test_text_that_replaces_a_handle_in_an_approval_stays_text(tmp_path: Path) -> None:
    given: list[Json] = []

    @tool(requires_approval=True)
    async def echo(key: str, who: str) -> str:
        """Return the arguments."""
        given.append([key, who])
        return "in"

    url = f"sqlite:///{tmp_path}/store.db"
    secrets = {name: {"value": value, "tools": ["echo"]} for name, value in (("DOOR", CANARY), ("SAFE", "the-safe"))}
    settings = Settings.model_validate({"secrets": secrets, "delays": False})
    flow = echoing({"key": "secret.DOOR", "who": "ada"})
    for arguments, expected in (
        ({"key": "secret.SAFE", "who": "secret.DOOR"}, ["secret.SAFE", "secret.DOOR"]),
        ({"key": "secret.DOOR", "who": "ben"}, [CANARY, "ben"]),
    ):
        async with Pointsman(url, tools=[echo], settings=settings, model="scripted") as app:
            execution = await app.start(flow, {})
            assert await execution.settled() == "waiting"
            assert CANARY not in str(await app.view(execution.id))
        async with Pointsman(url, tools=[echo], settings=settings, model="scripted") as app:
            again = await app.open(execution.id)
            await again.answer("echo", "edit", {"1": {**arguments}}, by="ada")
            assert await again.output() == "in"
        assert given.pop() == expected


async def test_a_secret_is_not_passed_to_sub_workflows() -> None:
    called: JsonObject = {"tool": "iterate", "parameters": {"items": ["secret.DOOR"], "instruction": "Say"}}
    flow = Workflow.of({"id": "door", "nodes": [{"id": "call", "type": "tool", "config": called}], "edges": []})
    async with installation(EchoTool()) as app:
        execution = await app.start(flow, {})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert execution.state.outcome.failure.code == "secret-not-allowed"


async def test_a_dry_run_needs_no_secret() -> None:
    door = EchoTool()
    async with installation(door) as app:
        dry = await app.dry_run(echoing({"key": "secret.WINDOW"}), {})
        assert (dry.status, door.given) == ("completed", [])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("write_file", {"path": "a.txt", "text": "secret.DOOR"}),
        ("write_file", {"path": "secret.DOOR", "text": "a"}),
        ("memory_set", {"key": "a", "value": "secret.DOOR"}),
        ("save_workflow", {"document": "secret.DOOR"}),
        ("run_workflow", {"workflow": "a", "input": {"key": "secret.DOOR"}}),
    ],
)
async def test_a_secret_is_not_passed_to_nodes_that_store_it(tmp_path: Path, name: str, parameters: JsonObject) -> None:
    called: JsonObject = {"tool": name, "parameters": parameters}
    flow = Workflow.of({"id": "door", "nodes": [{"id": "call", "type": "tool", "config": called}], "edges": []})
    everywhere: JsonObject = {"DOOR": {"value": CANARY, "tools": ["*"]}}
    files: JsonObject = {"directory": str(tmp_path / "files")}
    async with installation(EchoTool(), secrets=everywhere, files=files, authoring="editor") as app:
        offer_verbs(app.tools, lambda: app.context, "editor")
        execution = await app.start(flow, {})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert execution.state.outcome.failure.code == "secret-not-allowed"
        assert "stores its parameters" in execution.state.outcome.failure.message
