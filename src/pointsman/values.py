"""Shared value types: JSON, ids, durations, sizes.

This module knows nothing about workflows; every other module may import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NewType, TypeAlias, cast

# The type is recursive, which the decoder of stored structs cannot resolve at run time: there it accepts any JSON.
if TYPE_CHECKING:
    Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
else:
    Json = Any
"""A JSON value. Only the function that creates it may change it."""

JsonObject: TypeAlias = dict[str, Json]


JsonView: TypeAlias = Mapping[str, object]
"""A JSON object that is only read: a typed view (a TypedDict of JSON values) or a `JsonObject`."""


def json_of(view: JsonView) -> JsonObject:
    """Return a view as a `JsonObject`: type checkers keep the two apart."""
    return cast("JsonObject", view)


Path: TypeAlias = tuple[str | int, ...]
"""A position in JSON: keys and indexes, outermost first."""

CONTAINERS: Final = (dict, list)
"""Container types, for `isinstance` in hot code: `dict | list` there creates a new object each time."""

NodeId = NewType("NodeId", str)
"""The id of a node within one workflow. An opaque text, never a path."""

WorkflowId = NewType("WorkflowId", str)
"""The id of a workflow within one store. An opaque text, never a path."""

ExecutionId = NewType("ExecutionId", str)
"""`exec-` and 26 characters that sort by time. An opaque text, never a path."""

Seconds = NewType("Seconds", float)
"""A duration."""

Instant = NewType("Instant", float)
"""A point in time: seconds since 1970-01-01 UTC. It enters the engine inside reports only."""

Bytes = NewType("Bytes", int)
"""A size: bytes of the JSON text in UTF-8."""

END: Final = "END"
"""The reserved label and target that ends an execution."""
