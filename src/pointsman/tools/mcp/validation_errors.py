"""What is wrong with an answer of an MCP server, as a sentence. The SDK raises the error of pydantic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    Place = tuple[str | int, ...]


def misfit(why: ValidationError) -> str:
    """Return the first thing that is wrong, and where."""
    errors = why.errors(include_url=False, include_context=False)
    first = errors[0]
    at, branch = _branch(first)
    if branch:
        errors = [one for one in errors if _branch(one)[0] == at]
        other = {_branch(one)[1] for one in errors if one["type"] == "literal_error" and one["loc"][-1] == "type"}
        meant = [one for one in errors if _branch(one)[1] not in other]
        if not meant:
            given = cast("object", first["input"])
            kind = cast("dict[str, object]", given).get("type") if isinstance(given, dict) else given
            return f"`{_path(at)}` is of the unknown type {str(kind)[:40]!r}"
        first = meant[0]
    text = first["msg"]
    path = _path(first["loc"])
    if first["type"] == "missing":
        return f"`{path}` is missing"
    return f"`{path}` {text.removeprefix('Input ')}" if text.startswith("Input ") else f"`{path}`: {text}"


def _branch(error: ErrorDetails) -> tuple[Place, str]:
    """Return where a choice between several models was made, and the model; without a choice, an empty name."""
    for index, part in enumerate(error["loc"]):
        if _is_model(part):
            return error["loc"][:index], str(part)
    return error["loc"], ""


def _is_model(part: str | int) -> bool:
    """Names of models begin with capitals, names of fields do not."""
    return isinstance(part, str) and part[:1].isupper()


def _path(place: Sequence[str | int]) -> str:
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not _is_model(part):
            path += f".{part}" if path else part
    return path or "result"
