"""The corpus of foreign documents: one folder per dialect; the name of a file states what it shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, cast

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.dialects import graph, plan, rows, steps
from pointsman.dialects.readers import ImportedDocument, WrittenDocument
from pointsman.dialects.shapes import unwrapped
from pointsman.values import JsonObject

CORPUS: Final = Path(__file__).parent / "corpus"
SKETCH: Final = "graph/schema-sketch"


class DialectUnderTest(NamedTuple):
    read: Callable[..., ImportedDocument]
    write: Callable[[WorkflowDefinition, JsonObject | None], WrittenDocument]


MODULES: Final = {"rows": rows, "graph": graph, "steps": steps, "plan": plan}
FILES: Final = sorted(f"{path.parent.name}/{path.stem}" for name in MODULES for path in (CORPUS / name).glob("*.json"))
WORKFLOWS: Final = [file for file in FILES if file != SKETCH]


def document(file: str) -> JsonObject:
    return cast(JsonObject, json.loads((CORPUS / f"{file}.json").read_text(encoding="utf-8")))


def dialect_of(file: str) -> DialectUnderTest:
    module = MODULES[file.partition("/")[0]]
    return DialectUnderTest(module.read, module.write)


def imported(file: str) -> ImportedDocument:
    """Read a document like the product does, without its envelope."""
    return dialect_of(file).read(unwrapped(document(file))[0].document, name="")


def workflow_of(found: ImportedDocument) -> WorkflowDefinition:
    workflow, problems = WorkflowDefinition.from_document(found.document)
    assert workflow is not None, problems
    return workflow


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return [problem.code for problem in problems]


def changed(workflow: WorkflowDefinition, change: Callable[[JsonObject], object]) -> WorkflowDefinition:
    """Return the workflow after an edit of its native document."""
    native = workflow.to_document()
    change(native)
    edited, problems = WorkflowDefinition.from_document(native)
    assert edited is not None, problems
    return edited
