"""A test that fails beside a model server shows the server's log: else nobody learns why the server failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
TESTS = """
from pathlib import Path
import pytest
from tests.local_model.server import ModelServer

@pytest.fixture
def local_model():
    Path("log").write_text("slot 0: out of memory")
    return ModelServer("http://127.0.0.1:1", Path("log"))

def test_fails(local_model): assert local_model.address == ""

def test_passes(local_model): assert local_model.address != ""
"""


def test_the_log_of_the_model_server_stands_in_the_report_of_a_failed_test(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = requirement\n")
    (tmp_path / "test_all.py").write_text(TESTS)
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "tests.conftest", "test_all.py"]
    surroundings = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    ended = subprocess.run(program, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert ended.stdout.count("slot 0: out of memory") == 1
    assert "log of local_model" in ended.stdout
