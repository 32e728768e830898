"""Descriptions of the fields of the models: their docstrings, read from the source on demand.

pydantic can do this for every class at import; it takes longer than everything else an import does.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType

from pointsman.definition.model.base import Model


def descriptions_of(model: type[Model]) -> Mapping[str, str]:
    """Python field name -> description, for the fields that have one."""
    return _in_module(sys.modules[model.__module__]).get(model.__name__, {})


@lru_cache(maxsize=64)
def _in_module(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(module))
    except OSError:  # installed without its source: the models work, only their descriptions are missing
        return {}
    return {found.name: _fields(found) for found in tree.body if isinstance(found, ast.ClassDef)}


def _fields(made: ast.ClassDef) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for field, below in zip(made.body, made.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[field.target.id] = inspect.cleandoc(text)
                case _:
                    pass
    return found
