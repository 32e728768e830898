"""Documents as teams of the five systems write them: each is read, checked, converted, written back and executed.

Executions of `NAME.json` or `NAME.yaml` are in `NAME.test.yaml`; `findings.yaml` lists the results of `check`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Final, cast

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.definition.reading.documents import read_document
from pointsman.dialects.detect import read_workflow, write_workflow
from pointsman.settings import Settings
from pointsman.testing.cases import WorkflowCase, read_tests, run_case
from pointsman.values import JsonObject
from tests.dialects.corpus_files import CORPUS

TEAMS: Final = CORPUS / "teams"
DOCUMENTS: Final = sorted(
    path for path in TEAMS.glob("*/*") if path.suffix in (".json", ".yaml") and not path.name.endswith(".test.yaml")
)
CASES: Final[list[tuple[Path, WorkflowCase]]] = [
    (path.parent, case) for path in sorted(TEAMS.glob("*/*.test.yaml")) for case in read_tests(path)
]
FINDINGS: Final = cast(JsonObject, read_document((TEAMS / "findings.yaml").read_bytes()).value)


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def definition_of(path: Path) -> tuple[Definition, JsonObject]:
    read = read_workflow(read_document(path.read_bytes()), name=path.stem)
    assert read.workflow is not None, read.problems
    assert isinstance(read.document.value, dict)
    return read.workflow, read.document.value


RUNNABLE: Final = [path for path in DOCUMENTS if not path.name.startswith("empty")]


def test_each_dialect_has_eight_documents_or_more() -> None:
    counts = Counter(path.parent.name for path in DOCUMENTS)
    assert len(counts) == 5
    assert min(counts.values()) >= 8, counts


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
async def test_each_document_is_detected_with_the_expected_problems(path: Path) -> None:
    source = Workflow.parse(path.read_text(encoding="utf-8"), name=path.stem)  # noqa: ASYNC240 - a small file
    async with Pointsman("memory:", settings=Settings(delays=False), model="scripted") as app:
        checked = await app.check(source)
    assert checked.dialect in (path.parent.name, None)
    found = sorted(f"{one.severity} {one.code} {one.pointer}".strip() for one in checked.problems)
    assert found == FINDINGS.get(name_of(path), [])


@pytest.mark.parametrize("path", RUNNABLE, ids=name_of)
def test_each_document_is_written_back_unchanged(path: Path) -> None:
    workflow, original = definition_of(path)
    written = write_workflow(workflow, dialect=path.parent.name, original=original)
    assert (written.document, written.losses) == (original, ())


@pytest.mark.parametrize("path", RUNNABLE, ids=name_of)
def test_each_converted_document_behaves_the_same(path: Path) -> None:
    workflow, _ = definition_of(path)
    native = json.dumps(workflow.to_document(), ensure_ascii=False)
    again = read_workflow(read_document(native.encode()), name=path.stem)
    assert again.workflow == workflow
    assert [one for one in again.problems if one.severity == "error"] == []


@pytest.mark.parametrize(("folder", "case"), CASES, ids=[f"{folder.name}: {case.name}" for folder, case in CASES])
def test_each_document_passes_the_tests_of_its_authors(folder: Path, case: WorkflowCase) -> None:
    assert run_case(case, folder) == ()
