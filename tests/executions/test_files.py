"""Files of an execution as attachments of an agent's request."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script

pytestmark = pytest.mark.integration

SCRIPT = (
    'rules: [{node: reader, contains: "up to 16 metres", text: They are high.}, {node: reader, text: Nothing here.}]'
)


def reading(attached: str, **write: Json) -> Workflow:
    """Return a workflow that writes a file, then gives an agent the files of `attached`."""
    parameters: JsonObject = {"path": "notes/tides.md", **(write or {"text": "They are up to 16 metres."})}
    writer: JsonObject = {
        "id": "write",
        "type": "tool",
        "config": {"tool": "write_file", "parameters": parameters},
        "outputs": {"report": "result"},
    }
    reader: JsonObject = {"id": "reader", "type": "agent", "config": {"prompt": "Read.", "inputFiles": [attached]}}
    lister: JsonObject = {
        "id": "list",
        "type": "tool",
        "config": {"tool": "list_files"},
        "outputs": {"all": "result"},
    }
    edges: list[Json] = [{"source": "write", "target": "list"}, {"source": "list", "target": "reader"}]
    return Workflow.of({"id": "reads", "input": {}, "nodes": [writer, lister, reader], "edges": edges})


def installation(folder: Path, **more: Json) -> Pointsman:
    said: JsonObject = {"delays": False, "files": {"directory": str(folder / "files")}, **more}
    settings = Settings.model_validate(said)
    return Pointsman(f"sqlite:///{folder}/store.db", settings=settings, script=parse_script(SCRIPT))


@pytest.mark.parametrize("attached", ["report", "all"])
async def test_files_that_a_tool_wrote_or_listed_are_attached_by_path(tmp_path: Path, attached: str) -> None:
    async with installation(tmp_path) as app:
        execution = await app.start(reading(attached), {})
        assert await execution.output() == "They are high."
    async with installation(tmp_path) as app:
        assert (await app.view(execution.id)).get("artifacts") == [{"path": "notes/tides.md", "bytes": 25}]


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ("notes/none.md", "file-missing"),
        ("../store.db", "file-refused"),
        ("/etc/passwd", "file-refused"),
        ("a/" * 40 + "b", "file-refused"),
    ],
)
async def test_a_path_cannot_reach_another_file(tmp_path: Path, named: str, code: str) -> None:
    async with installation(tmp_path) as app:
        execution = await app.start(reading("wanted"), {"wanted": {"path": named}})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert execution.state.outcome.failure.code == code


async def test_bytes_that_no_model_accepts_are_refused(tmp_path: Path) -> None:
    async with installation(tmp_path) as app:
        execution = await app.start(reading("report", path="a.bin", base64="/wABAg=="), {})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert execution.state.outcome.failure.code == "file-unreadable"


async def test_no_files_exist_without_a_directory() -> None:
    flow = Workflow.of(
        {
            "id": "reads",
            "input": {},
            "nodes": [{"id": "reader", "type": "agent", "config": {"prompt": "Read.", "inputFiles": ["wanted"]}}],
            "edges": [],
        }
    )
    async with Pointsman("memory:", settings=Settings(), script=parse_script(SCRIPT)) as app:
        execution = await app.start(flow, {"wanted": {"path": "a.md"}})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert "[files] directory" in execution.state.outcome.failure.hint
