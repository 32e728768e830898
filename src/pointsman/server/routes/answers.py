"""How operations describe their answers: the usual one, and the errors that callers should expect."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from pointsman.server.problems import MEDIA_TYPE
from pointsman.server.shapes import ProblemDocument

Described: TypeAlias = dict[int | str, dict[str, Any]]

_EVERYWHERE: Final = (401, 403, 422)
"""Without a key, without the role, with parameters that are none."""
_BAD_BODY: Final = (400, 413, 415)


def answers(shape: type[BaseModel], *errors: int, status: int = 200, body: bool = False) -> Described:
    """The answers of an operation. `body`: it reads one."""
    found: Described = {status: {"model": shape, "description": HTTPStatus(status).phrase}}
    return found | refusals(*errors, body=body)


def refusals(*errors: int, body: bool = False) -> Described:
    """The errors of an operation."""
    every = sorted({*_EVERYWHERE, *errors, *(_BAD_BODY if body else ())})
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemDocument.__name__}"}}},
        }
        for status in every
    }
