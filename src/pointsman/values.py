"""The words everyone shares: JSON, ids, durations, sizes.

Nothing here knows anything about workflows; every other module may import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NewType, TypeAlias

# The type is recursive, which the decoder of stored structs cannot follow at run time: there it takes any JSON.
if TYPE_CHECKING:
    Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
else:
    Json = Any
"""A JSON value. Treated as immutable by everyone but the one function that built it."""

JsonObject: TypeAlias = dict[str, Json]

Path: TypeAlias = tuple[str | int, ...]
"""A place in JSON: keys and positions, outermost first."""

CONTAINERS: Final = (dict, list)
"""The values that hold others, for `isinstance` where it matters: `dict | list` there makes a new object each time."""

NodeId = NewType("NodeId", str)
"""A node's id inside one workflow. An opaque text, never a path."""

WorkflowId = NewType("WorkflowId", str)
"""A workflow's id inside one store. An opaque text, never a path."""

ExecutionId = NewType("ExecutionId", str)
"""`exec-` and 26 characters that sort by time. An opaque text, never a path."""

Seconds = NewType("Seconds", float)
"""A length of time."""

Instant = NewType("Instant", float)
"""A point in time: seconds since 1970-01-01 UTC. It enters the core inside reports only."""

Bytes = NewType("Bytes", int)
"""A size: bytes of the JSON text in UTF-8."""

END: Final = "END"
"""The reserved label and target that ends an execution."""
