"""mypy on a program that uses the public API. It reads the whole package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.quick_starts import fresh_starts
from tests.typing import sample

OTHERS: Final = (
    *("anthropic", "anyio", "cryptography", "fastapi", "google", "groq", "lxml", "mcp", "mcp_types", "numpy", "openai"),
    *("opentelemetry", "prometheus_client", "psycopg", "psycopg_pool", "pydantic_ai", "pydantic_graph", "pytest"),
    *("_pytest", "restate", "starlette", "temporalio", "uvicorn"),
)
"""Packages of which no type is in the public API. To read them takes five times as long as all others."""
CONFIGURATION: Final = f"""\
[mypy]
follow_imports = silent
[mypy-{",".join(f"{name}.*" for name in OTHERS)}]
follow_imports = skip
"""


def test_mypy_finds_exactly_the_mistakes_of_the_sample_program(tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text(CONFIGURATION, encoding="utf-8")
    command = ["mypy", "--strict", "--warn-unused-ignores", "--cache-dir", str(tmp_path), "--config-file"]
    program = [sys.executable, "-m", *command, str(tmp_path / "mypy.ini"), "--python-version=3.11", sample.__file__]
    with fresh_starts():
        done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stdout == "Success: no issues found in 1 source file\n"
