"""Every shipped example: its tests pass on every store, it is documented, and `check` finds no problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.testing.cases import WorkflowCase, find_tests, read_tests, run_case
from tests.boxes import needs_box
from tests.examples.plays import EXAMPLES

FOLDERS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
FILES = [*find_tests([EXAMPLES])]
CASES = [(file, case) for file in FILES for case in read_tests(file)]
IN_A_SANDBOX = {"basket"}
"""Examples that run code."""

EACH = pytest.mark.parametrize(
    ("file", "case"),
    [
        pytest.param(
            file,
            case,
            id=f"{file.parent.name}: {case.name}",
            marks=[needs_box] if file.parent.name in IN_A_SANDBOX else [],
        )
        for file, case in CASES
    ],
)


@EACH
@pytest.mark.integration
def test_an_example_passes_its_test_in_memory(file: Path, case: WorkflowCase) -> None:
    assert run_case(case, file.parent) == ()


@pytest.mark.integration
@EACH
def test_an_example_passes_its_test_on_disk(file: Path, case: WorkflowCase, tmp_path: Path) -> None:
    assert run_case(case, file.parent, store=f"sqlite:///{tmp_path / 'pointsman.db'}") == ()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_is_explained_and_tested(folder: Path) -> None:
    assert (folder / "README.md").read_text(encoding="utf-8").startswith("# ")
    assert [*folder.glob("*.test.yaml")] != []


def test_every_document_of_an_example_is_run_by_a_test() -> None:
    shown = {file.parent / name for file, case in CASES for name in (case.workflow, *case.saved)}
    documents = {
        path
        for path in EXAMPLES.glob("*/*")
        if path.suffix in (".json", ".yaml") and path.name != "script.yaml" and ".test." not in path.name
    }
    assert documents - shown == set()


@pytest.mark.parametrize("file", sorted((EXAMPLES / "patterns").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_pattern_fits_on_a_screen(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").count("\n")
    assert lines < 60 or file.name in ("script.yaml", "patterns.test.yaml")
