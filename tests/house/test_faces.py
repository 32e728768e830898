"""Faces translate requests and call the domains; they do not import the layers below."""

from __future__ import annotations

import ast
from typing import Final

from tests.house.sources import files, parse

BEHIND: Final = {"runtime", "store", "executors", "dialects", "models", "tools", "ports", "engine"}
FACES: Final = ("src/pointsman/cli.py", "src/pointsman/cli", "src/pointsman/mcp.py", "src/pointsman/server")
STREAMING: Final = "src/pointsman/server/streaming/"
"""The broker of the streams reads committed rows and live output: it has no verb to call for them."""


def test_faces_never_reach_behind_the_app() -> None:
    reached: set[str] = set()
    for path in files(*FACES):
        if str(path).startswith(STREAMING):
            continue
        for node in ast.walk(parse(path)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            reached |= {
                f"{path}: {name}"
                for name in modules
                if {*name.split(".")[:2]} > {"pointsman"} and name.split(".")[1] in BEHIND
            }
    assert reached == set()
