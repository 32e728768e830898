"""The source files for the house rules: those that git tracks or would track."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TEXT_SUFFIXES: Final = {
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".jsonc",
    ".txt",
    ".cfg",
    ".ts",
    ".tsx",
    ".css",
    "",
}


@cache
def files(*roots: str, suffixes: frozenset[str] = frozenset({".py"})) -> tuple[Path, ...]:
    """Return files below `roots` (without roots: all), relative to the root of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *roots]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    paths = (Path(line) for line in dict.fromkeys(listed))
    return tuple(path for path in paths if path.suffix in suffixes and (ROOT / path).is_file())


@cache
def read_text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(read_text(path), filename=str(path))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def classes(path: Path) -> Iterator[ast.ClassDef]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ClassDef):
            yield node
