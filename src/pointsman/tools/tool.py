"""Interfaces between the registry and tools, and the errors of tools.

`ToolFailed` carries the `Failure` that a step reports or a model receives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError, OperatorError
from pointsman.ports import ExecutionPort, ToolSpec
from pointsman.values import Bytes, Json, JsonObject

OUTPUT_BYTES_MAX: Final = Bytes(1_000_000)
"""Default maximum size of a result as JSON."""

RESERVED: Final = frozenset({"router", "end", "final_result"})
"""Names of tools that the engine itself offers to models."""

WORKFLOW_PREFIX: Final = "workflow__"
"""Prefix of saved workflows as tools."""

Origin: TypeAlias = Literal["function", "plugin", "builtin", "scripted", "http", "command", "mcp", "client", "workflow"]
"""Origin of a tool; `scripted` tools answer from a script and are marked as such."""


class ToolLimits(Struct, frozen=True, kw_only=True):
    """Maximum size of a tool's result, and its own timeout if shorter than the caller's."""

    timeout_s: float | None = None
    output_bytes_max: Bytes = OUTPUT_BYTES_MAX


class ToolContext(Struct, frozen=True, kw_only=True):
    """Context of a call, besides its arguments."""

    key: str
    """Idempotency key: a call repeated after a crash has the same key."""
    execution: str = ""
    run: ExecutionPort | None = None
    """Access to the attempt of the calling execution; None: the call is not part of an execution."""


class ToolSource(Protocol):
    """A source of tools that must be listed first. Their names begin with `prefix`."""

    @property
    def prefix(self) -> str: ...

    @property
    def origin(self) -> Origin: ...

    @property
    def lasts(self) -> bool:
        """Whether one listing is enough; otherwise the tools are listed each time."""
        ...

    async def listed(self) -> Sequence[Tool]:
        """Return all tools. Raises `ToolFailed` if the source does not answer."""
        ...

    def stand_in(self, name: str) -> Tool | None:
        """Return a tool of that name before the source was listed; None: the source cannot have it."""
        ...

    async def close(self) -> None:
        """Close connections. A later call opens them again."""
        ...


class Tool(Protocol):
    """A tool. The registry checks the arguments before a call and the size of the result after it."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def limits(self) -> ToolLimits: ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Run the tool. Raises `ToolFailed` for specific failures; other exceptions become `tool-failed`."""
        ...


def need_of(tool: str) -> str:
    """Return what a worker needs to call the tool, in the form of `Failure.needs`. Empty for saved workflows: every
    worker has them in the store, so another worker would fail in the same way."""
    return "" if tool.startswith(WORKFLOW_PREFIX) else f"tool:{tool}"


class ToolFailed(OperatorError):
    """Raised when a tool call fails. Tools may raise it to report a specific failure and whether to retry."""

    code: ClassVar[str] = "tool-failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


class ToolMisdefined(AuthorError):
    """Raised for a function that cannot become a tool because of its name, its parameters or their types."""

    code: ClassVar[str] = "tool-misdefined"


class ToolNameTaken(OperatorError):
    """Raised when two tools with the same name are registered."""

    code: ClassVar[str] = "tool-name-taken"


class ToolNotLoaded(OperatorError):
    """Raised when a tool of an installed package cannot be loaded."""

    code: ClassVar[str] = "tool-not-loaded"
