"""`tests.twice`: the second run of the failed tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.processes import ROOT

OPTION = """
def pytest_addoption(parser):
    parser.addoption("--tier", default="unit")
"""
PASSES_THE_SECOND_TIME = """
import pathlib

import pytest


def test_unsteady(pytestconfig):
    if pytestconfig.getoption("tier") == "scale":
        seen = pathlib.Path("seen")
        was_seen = seen.exists()
        seen.touch()
        assert was_seen
    else:
        pytest.skip("another tier")
"""
FAILS = """
def test_broken():
    raise AssertionError
"""


@pytest.mark.integration
@pytest.mark.parametrize(("tests", "code"), [(PASSES_THE_SECOND_TIME, 0), (FAILS, 1)])
def test_failed_tests_run_once_more_with_the_same_options(tests: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(OPTION)
    (tmp_path / "test_it.py").write_text(tests)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.twice", "--tier", "scale", "--rootdir", str(tmp_path), "-n", "1"],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "xdist.plugin",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code, ended.stdout
    assert ("UNSTEADY" in ended.stdout) == (code == 0)
