"""The front door: everything that can be started, and errors for what cannot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pointsman import Pointsman, PointsmanError, Workflow
from pointsman.json_conversion import NotJson
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.sources import FileUnreadable, WorkflowUnusable


def echo(text: str) -> str:
    """Return a text."""
    return text


NODE: Json = {"id": "echo", "type": "tool", "config": {"tool": "echo", "parameters": {"text": "{text}"}}}
DOCUMENT: JsonObject = {"id": "echo", "nodes": [NODE], "edges": []}


def opened() -> Pointsman:
    return Pointsman("memory:", tools=[echo], settings=Settings(), model="scripted")


@pytest.mark.integration
async def test_a_workflow_a_dict_a_path_and_a_saved_id_can_be_started(tmp_path: Path) -> None:
    file = tmp_path / "echo.yaml"
    file.write_bytes(Workflow.of(DOCUMENT).data)
    async with opened() as app:
        await app.save(Workflow.of(DOCUMENT))
        for given in (Workflow.of(DOCUMENT), DOCUMENT, file, str(file), "echo"):
            execution = await app.start(given, {"text": "hello"})
            assert await execution.output() == "hello"


@dataclass
class Request:
    text: str
    day: date


async def test_run_returns_a_finished_execution_and_takes_a_dataclass_as_input() -> None:
    async with opened() as app:
        execution = await app.run(DOCUMENT, Request("hello", date(2026, 1, 2)))
        assert execution.status == "completed"
        assert (await execution.view())["input"] == {"text": "hello", "day": "2026-01-02"}


class Odd:
    """Not JSON."""


@pytest.mark.parametrize(
    ("workflow", "input", "error", "why"),
    [
        (3, None, WorkflowUnusable, "a 'int' object is not a workflow"),
        (None, None, WorkflowUnusable, "a 'NoneType' object is not a workflow"),
        (echo, None, WorkflowUnusable, "a 'function' object is not a workflow"),
        ({"id": Odd()}, None, WorkflowUnusable, "the document is not JSON: document.id is a value of type .*Odd"),
        (DOCUMENT, {"text": Odd()}, NotJson, "the input is not JSON: input.text is a value of type .*Odd"),
        (DOCUMENT, {("a", "b"): 1}, NotJson, "the input is not JSON: an object has a key of type tuple"),
        (DOCUMENT, 3, PointsmanError, "the input must be an object or a text"),
        ("no/such.yaml", None, FileUnreadable, "'no/such.yaml' cannot be read"),
    ],
)
async def test_other_types_are_refused(workflow: Any, input: Any, error: type[PointsmanError], why: str) -> None:
    async with opened() as app:
        with pytest.raises(error, match=why) as caught:
            await app.start(workflow, input)
        assert caught.value.hint
