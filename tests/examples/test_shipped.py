"""Every shipped example: its tests pass on every store, it is documented, and `check` finds no problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.testing.cases import WorkflowCase, find_tests, read_tests, run_case
from tests.examples.example_runs import EXAMPLES
from tests.sandboxes import needs_box

COOKBOOK = EXAMPLES / "cookbook"
RECIPES = sorted(path for path in COOKBOOK.iterdir() if path.is_dir())
FOLDERS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir() and path != COOKBOOK)
FILES = [*find_tests([EXAMPLES])]
CASES = [(file, case) for file in FILES for case in read_tests(file)]
IN_A_SANDBOX = {"basket", "code-statistics"}
"""Examples that run code."""


def each(cases: list[tuple[Path, WorkflowCase]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("file", "case"),
        [
            pytest.param(
                file,
                case,
                id=f"{file.parent.name}: {case.name}",
                marks=[needs_box] if file.parent.name in IN_A_SANDBOX else [],
            )
            for file, case in cases
        ],
    )


@each(CASES)
@pytest.mark.integration
def test_an_example_passes_its_test_in_memory(file: Path, case: WorkflowCase) -> None:
    assert run_case(case, file.parent) == ()


@pytest.mark.integration
@each([(file, case) for file, case in CASES if case.time_passes is None])  # On disk the days would pass.
def test_an_example_passes_its_test_on_disk(file: Path, case: WorkflowCase, tmp_path: Path) -> None:
    assert run_case(case, file.parent, store=f"sqlite:///{tmp_path / 'pointsman.db'}") == ()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_is_explained_and_tested(folder: Path) -> None:
    assert (folder / "README.md").read_text(encoding="utf-8").startswith("# ")
    assert [*folder.glob("*.test.yaml")] != []


@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: folder.name)
def test_a_recipe_has_a_page_and_tests(folder: Path) -> None:
    page = EXAMPLES.parent / "docs" / "cookbook" / f"{folder.name}.md"
    assert f"examples/cookbook/{folder.name}/workflow.yaml" in page.read_text(encoding="utf-8")
    assert {path.name for path in folder.iterdir()} == {"script.yaml", "workflow.test.yaml", "workflow.yaml"}


def test_every_document_of_an_example_is_run_by_a_test() -> None:
    shown = {(file.parent / name).resolve() for file, case in CASES for name in (case.workflow, *case.saved)}
    documents = {
        path
        for path in [*EXAMPLES.glob("*/*"), *COOKBOOK.glob("*/*")]
        if path.suffix in (".json", ".yaml") and path.name != "script.yaml" and ".test." not in path.name
    }
    assert documents - shown == set()


@pytest.mark.parametrize("file", sorted((EXAMPLES / "patterns").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_pattern_fits_on_a_screen(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").count("\n")
    assert lines < 60 or file.name in ("script.yaml", "patterns.test.yaml")
