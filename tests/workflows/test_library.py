"""Saved workflows: revisions, disabled ones, owners, and the sources of definitions."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.definition.model.schema import native_schema
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.testing.clock import run_virtually
from pointsman.values import Json, JsonObject
from pointsman.workflows.library import Disabled
from pointsman.workflows.revisions import list_workflows
from tests.scenarios import installation, written

ASKS = """\
pointsman: 1
id: asks
nodes:
  - {id: ok, type: human, config: {message: Well?, options: [{value: go}]}}
  - {id: say, type: transform, config: {set: {said: "'%s'"}}}
edges: [{source: ok, target: say, condition: {type: label, label: go}}]
"""


def one(name: str, **more: Json) -> Workflow:
    return written({"id": name, "nodes": [{"id": "a", "type": "transform"}], "edges": [], **more})


@pytest.mark.requirement("S1-89", "S1-20")
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_disabled_workflow_is_listed_only_on_request_and_does_not_run(store: str, tmp_path: Path) -> None:
    async with installation(store="memory:" if store == "memory" else f"sqlite:///{tmp_path / 'a.db'}") as app:
        for name, enabled in (("on", True), ("off", False)):
            await app.save(one(name, enabled=enabled))
        await app.save(one("silent"))

        async def listed(*, include_disabled: bool) -> list[Json]:
            return [
                entry["id"]
                for entry in await list_workflows(app.context, include_disabled=include_disabled, built_in=False)
            ]

        assert await listed(include_disabled=False) == ["on", "silent"]
        assert await listed(include_disabled=True) == ["off", "on", "silent"]
        with pytest.raises(Disabled, match="'off' is disabled"):
            await app.start("off")


async def test_a_disabled_workflow_cannot_start_in_any_revision_or_from_other_workflows() -> None:
    call: JsonObject = {"id": "call", "type": "workflow", "config": {"workflow": "news"}}
    earlier: JsonObject = {"id": "call", "type": "workflow", "config": {"workflow": "news@1"}}
    async with installation() as app:
        await app.save(one("news"))
        begun = await app.start("news")
        await begun.settled()
        for name, node in (("caller", call), ("pinned", earlier)):
            await app.save(written({"id": name, "nodes": [node], "edges": []}))
        await app.save(one("news", enabled=False))
        for reference in ("news", "news@1", "news@2", "caller", "pinned"):
            with pytest.raises(Disabled, match="'news' is disabled"):
                await app.start(reference)
        with pytest.raises(Disabled, match="'news' is disabled"):
            await app.fork(begun.id)
        await app.save(one("news", enabled=True))
        for reference in ("news@1", "caller", "pinned"):
            assert await (await app.start(reference)).settled() == "completed"


@pytest.mark.requirement("T0-11")
def test_a_new_revision_applies_to_new_executions_only() -> None:
    async def run() -> list[Json]:
        async with installation() as app:
            first = await app.save(written(ASKS % "old"))
            running = await app.start("asks", {})
            await running.settled()
            second = await app.save(written(ASKS % "new"))
            assert (first.revision, second.revision) == (1, 2)
            later = await app.start("asks", {})
            pinned = await app.start("asks@1", {})
            for execution in (running, later, pinned):
                await drive(execution, (GivenAnswer("ok", "go"),))
            assert (await app.source("asks@1")).original == written(ASKS % "old").original
            return [execution.state.root.data.root["said"] for execution in (running, later, pinned)]

    assert run_virtually(run()) == ["old", "new", "old"]


@pytest.mark.requirement("S1-60")
def test_a_workflow_file_loads_runs_and_is_stored_unchanged(tmp_path: Path) -> None:
    document: JsonObject = {"id": "w", "nodes": [{"id": "a", "type": "transform", "config": {"set": {"n": "1"}}}]}
    file = tmp_path / "contents" / "workflows" / "w.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**document, "edges": []}), encoding="utf-8")

    async def run(app: Pointsman, workflow: Workflow | str) -> Json:
        execution = await app.start(workflow, {})
        await execution.settled()
        return execution.state.root.data.root

    async def both() -> list[Json]:
        async with installation() as app:
            by_file = await run(app, Workflow.load(file))
            await app.save(Workflow.load(file))
            assert (await app.source("w")).document.text == file.read_text(encoding="utf-8")
            return [by_file, await run(app, "w")]

    assert run_virtually(both()) == [{"n": 1}, {"n": 1}]


@pytest.mark.requirement("S1-O5", "S1-O7", "S1-O8")
def test_settings_of_editors_chats_and_triggers_are_stored() -> None:
    document: JsonObject = {
        "pointsman": 1,
        "id": "w",
        "status": "published",
        "canvas": {"zoom": 1.5, "offsetX": 10, "offsetY": -4},
        "chatIntegration": {
            "enabled": True,
            "passthroughResult": True,
            "toolDescription": "Asks.",
            "outputFormat": "markdown",
        },
        "sources": ["https://example.org"],
        "triggers": [
            {"id": "t1", "type": "schedule", "cron": "0 8 * * 1", "timezone": "Europe/Berlin", "initialData": {"a": 1}},
            {"id": "t2", "type": "webhook", "path": "in", "secret": "0123456789abcdef"},
        ],
        "nodes": [{"id": "a", "type": "transform", "chatVisible": True}, {"id": "b", "type": "transform"}],
        "edges": [
            {"id": "e", "source": "a", "target": "b", "sourceHandle": "out", "targetHandle": "in", "label": "on"},
        ],
    }
    workflow = written(document)
    assert [problem for problem in workflow.problems if problem.severity == "error"] == []
    again = workflow.definition.to_document()
    for key in ("status", "canvas", "chatIntegration", "sources", "triggers", "edges"):
        assert again[key] == document[key], key


@pytest.mark.requirement("S1-86", "T1-10")
@pytest.mark.parametrize("word", ["executions", "validate", "check", "generate"])
def test_a_word_of_api_paths_is_refused_as_a_workflow_id(word: str) -> None:
    (problem,) = [problem for problem in one(word).problems if problem.severity == "error"]
    assert (problem.pointer, "must not be a reserved word of URLs" in problem.message) == ("/id", True)
    assert one(f"my-{word}").problems == ()
    assert jsonschema_rs.is_valid(native_schema(), {"id": f"my-{word}", "nodes": [], "edges": []})
    assert not jsonschema_rs.is_valid(native_schema(), {"id": word, "nodes": [], "edges": []})
