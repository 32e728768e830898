"""Typed workflows: inputs, outputs and gates as Python types; and what type checkers find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from pointsman import Gate, Pointsman, Workflow
from pointsman.json_conversion import NotJson, TypeMismatch, TypeUnsupported
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from tests.typing import sample

ROWS = Path(__file__).parents[2] / "examples" / "2nchat" / "2nchat.json"
NODE: Json = {"id": "copy", "type": "transform", "config": {"set": {"result": "input"}}}
DOCUMENT: JsonObject = {"id": "copy", "nodes": [NODE], "edges": [], "output": "input"}


class Person(BaseModel):
    name: str = Field(description="Of the person.")
    age: int = Field(default=18, ge=0)


@dataclass
class Pair:
    left: int
    right: int


class Named(TypedDict):
    name: str


def opened() -> Pointsman:
    return Pointsman("memory:", settings=Settings(), model="scripted")


async def test_the_sample_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_MODEL", "scripted")
    assert await sample.main() == sample.Report("100 words about tides", 21)


async def test_a_model_is_checked_documented_and_returned() -> None:
    workflow = Workflow.of(DOCUMENT).typed(Person, Person)
    schema = workflow.definition.input_schema
    assert schema is not None
    assert schema["properties"] == {
        "name": {"description": "Of the person.", "title": "Name", "type": "string"},
        "age": {"default": 18, "minimum": 0, "title": "Age", "type": "integer"},
    }
    async with opened() as app:
        execution = await app.run(workflow, Person(name="Ada"))
        assert await execution.output() == Person(name="Ada", age=18)
        again = await app.open(execution.id)
        assert await again.output() == {"name": "Ada", "age": 18}
        assert await again.returning(Person).output() == Person(name="Ada", age=18)


async def test_dataclasses_and_typed_dicts_are_types_of_inputs_and_outputs() -> None:
    async with opened() as app:
        execution = await app.run(Workflow.of(DOCUMENT).typed(Pair, Pair), Pair(1, 2))
        assert await execution.output() == Pair(1, 2)
        named = await app.run(Workflow.of(DOCUMENT).typed(Named, Named), {"name": "Ada"})
        assert await named.output() == {"name": "Ada"}


async def test_inputs_and_outputs_that_do_not_fit_are_refused() -> None:
    async with opened() as app:
        typed = Workflow.of(DOCUMENT, name="copy").typed(Person, Pair)
        with pytest.raises(TypeMismatch, match="the input of the workflow 'copy' does not fit 'Person': age: Input"):
            await app.run(typed, {"name": "Ada", "age": "old"})  # pyright: ignore[reportCallIssue, reportArgumentType] - this is tested
        execution = await app.run(typed, Person(name="Ada"))
        with pytest.raises(TypeMismatch, match="does not fit 'Pair': left: Field required; right: Field required"):
            await execution.output()


class Odd:
    """Not JSON."""


@pytest.mark.parametrize("given", [int, list[int], Odd])
def test_types_without_fields_cannot_be_inputs(given: type[object]) -> None:
    with pytest.raises(TypeUnsupported) as caught:
        Workflow.of(DOCUMENT).typed(given, Person)
    assert caught.value.hint


async def test_a_value_of_an_open_type_must_still_be_json() -> None:
    class Open(BaseModel):
        model_config = {"extra": "allow"}

    async with opened() as app:
        with pytest.raises(NotJson):
            await app.run(Workflow.of(DOCUMENT).typed(Open, Person), Open.model_validate({"odd": Odd()}))


YAML = """# A comment.
id: copy
nodes:
  - id: copy
    typo: 1
edges: []
"""


@pytest.mark.parametrize("text", [YAML, Workflow.of(DOCUMENT).data.decode()])
def test_the_schema_does_not_move_the_positions_of_problems(text: str) -> None:
    source = Workflow.parse(text)
    typed = source.typed(Person, Person)
    assert [(one.line, one.column) for one in typed.problems] == [(one.line, one.column) for one in source.problems]
    assert typed.document.text.splitlines()[: len(text.splitlines()) - 1] == text.splitlines()[:-1]


def test_a_document_that_describes_its_input_keeps_its_description() -> None:
    own: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}}
    typed = Workflow.of({**DOCUMENT, "input": own}).typed(Person, Person)
    assert typed.definition.input_schema == own


def test_a_document_of_another_dialect_receives_the_schema() -> None:
    rows = Workflow.load(ROWS)
    assert rows.read.dialect != "native"
    typed = rows.typed(Person, Person)
    assert typed.definition.input_schema is not None
    assert len(typed.definition.nodes) == len(rows.definition.nodes)


async def test_the_type_of_a_gate_is_checked() -> None:
    gate = Gate("review", shows=Named, takes=Pair)
    assert gate.read({"name": "Ada"}) == {"name": "Ada"}
    assert gate.written(Pair(1, 2)) == {"left": 1, "right": 2}
    assert gate.written(None) is None
    with pytest.raises(TypeMismatch, match="what the gate 'review' shows does not fit 'Named': name: Field required"):
        gate.read({})
