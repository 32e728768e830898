"""mypy on a program that uses the public API. It reads the whole package: longer than most tests together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.typing import sample


def test_mypy_finds_exactly_the_mistakes_of_the_sample_program(tmp_path: Path) -> None:
    command = ["mypy", "--strict", "--warn-unused-ignores", "--cache-dir", str(tmp_path), "--follow-imports=silent"]
    program = [sys.executable, "-m", *command, "--python-version=3.11", sample.__file__]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stdout == "Success: no issues found in 1 source file\n"
