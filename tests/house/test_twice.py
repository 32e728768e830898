"""A test that fails in CI is run once more, and only a success then is accepted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import twice

ROOT = Path(__file__).parents[2]
STEADY = "def test_steady(): pass\n"
ONCE = """
def test_fails_once():
    from pathlib import Path
    told = Path("told")
    if not told.exists():
        told.touch()
        raise AssertionError("bad luck")
"""


def gate(folder: Path, tests: str) -> tuple[int, str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_all.py").write_text(tests)
    program = [sys.executable, "-m", "tests.twice", "-q"]
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    surroundings = {"PYTHONPATH": str(ROOT), **plugins}
    ended = subprocess.run(program, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout


def test_a_test_that_holds_when_asked_alone_is_let_through_and_named(tmp_path: Path) -> None:
    code, said = gate(tmp_path, STEADY + ONCE)
    assert code == 0
    assert "bad luck" in said
    assert "UNSTEADY" in said
    assert said.rstrip().endswith("test_all.py::test_fails_once")


def test_a_test_that_fails_again_is_not_let_through(tmp_path: Path) -> None:
    code, said = gate(tmp_path, STEADY + "def test_wrong(): assert 1 == 2\n")
    assert code == 1
    assert "Once more" in said
    assert "UNSTEADY" not in said


def test_many_failures_are_not_asked_again(tmp_path: Path) -> None:
    wrong = "".join(f"def test_wrong_{number}(): assert False\n" for number in range(twice.UNSTEADY_MAX + 1))
    code, said = gate(tmp_path, wrong)
    assert code == 1
    assert "Once more" not in said


def test_a_run_that_breaks_off_is_not_let_through(tmp_path: Path) -> None:
    broken = ONCE + "def test_ends_it_all():\n    import pytest\n    pytest.exit('broken off')\n"
    code, said = gate(tmp_path, broken)
    assert code != 0
    assert "Once more" not in said


def test_a_file_that_cannot_be_read_is_not_let_through(tmp_path: Path) -> None:
    assert gate(tmp_path, "import nowhere_at_all\n")[0] != 0


def test_a_passing_test_is_run_once(tmp_path: Path) -> None:
    code, said = gate(tmp_path, STEADY)
    assert code == 0
    assert "Once more" not in said
