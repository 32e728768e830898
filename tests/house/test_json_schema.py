"""JSON Schemas are untrusted input: one module compiles them."""

from __future__ import annotations

import ast

from tests.house.sources import files, read_text

LIBRARIES = {"jsonschema", "jsonschema_rs", "fastjsonschema", "referencing"}


def imported(node: ast.AST) -> set[str]:
    """Return the packages that a statement imports."""
    match node:
        case ast.ImportFrom(module=str(module)):
            return {module.split(".")[0]}
        case ast.Import(names=names):
            return {name.name.split(".")[0] for name in names}
        case _:
            return set()


def test_only_one_module_imports_the_validator_library() -> None:
    found = {
        str(path)
        for path in files("src")
        for node in ast.walk(ast.parse(read_text(path)))
        if imported(node) & LIBRARIES
    }
    assert found == {"src/pointsman/definition/json_schema.py"}
