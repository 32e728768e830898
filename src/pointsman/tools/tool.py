"""What the registry asks of a tool, and what it tells one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from pointsman.ports import ExecutionPort, ToolSpec
from pointsman.values import Bytes, Json, JsonObject

OUTPUT_BYTES_MAX: Final = Bytes(1_000_000)
"""A tool that says nothing else may answer this much, as JSON."""

RESERVED: Final = frozenset({"router", "end", "final_result"})
"""Names of the tools that the engine itself offers to models."""

WORKFLOW_PREFIX: Final = "workflow__"
"""How the names of saved workflows as tools begin."""

Origin: TypeAlias = Literal["function", "plugin", "builtin", "scripted", "http", "command", "mcp", "client", "workflow"]
"""Where a tool comes from; `scripted` ones answer from a script and are shown as such."""


class ToolLimits(Struct, frozen=True, kw_only=True):
    """How much a tool may answer, and how long it may take where that is less than its caller allows."""

    timeout_s: float | None = None
    output_bytes_max: Bytes = OUTPUT_BYTES_MAX


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a tool may know of the call beside its arguments."""

    key: str
    """Idempotency key: a call that is repeated after a crash has the same."""
    execution: str = ""
    run: ExecutionPort | None = None
    """The execution's attempt that calls; None: a call outside of executions."""


class ToolSource(Protocol):
    """Tools that are known once somebody was asked for them. Their names begin with `prefix`."""

    @property
    def prefix(self) -> str: ...

    @property
    def origin(self) -> Origin: ...

    @property
    def lasts(self) -> bool:
        """Whether its tools stay what they are once they were listed; else they are listed each time."""
        ...

    async def listed(self) -> Sequence[Tool]:
        """All of them. Raises `ToolFailed` where nobody answers."""
        ...

    def stand_in(self, name: str) -> Tool | None:
        """The tool of that name before anyone was asked; None: it can be none of them."""
        ...

    async def close(self) -> None:
        """Let go; asked again, it begins again."""
        ...


class Tool(Protocol):
    """One tool. The registry checks the arguments before and the size after; the tool only works."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def limits(self) -> ToolLimits: ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Do it. Raises `ToolFailed` for failures with a name; any other exception is the failure `tool-failed`."""
        ...


def need_of(tool: str) -> str:
    """What a worker must have to call the tool, as `Failure.needs` names it. Saved workflows are in the store, where
    every worker finds them: one that is missing, or that may not be called, is a failure for all."""
    return "" if tool.startswith(WORKFLOW_PREFIX) else f"tool:{tool}"
