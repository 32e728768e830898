"""Settings of an MCP server: a local command or a URL. Workflows cannot define servers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration
from pointsman.values import Seconds

NAME = r"^[A-Za-z_][\w-]{0,30}$"


class McpServerDescription(BaseModel):
    """One server."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    command: tuple[str, ...] = ()
    """The program and its arguments, spoken to by its standard input and output."""
    env: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """All it sees of the environment beside what finds programs and home. Values may be handles: `secret.NAME`."""
    url: str = ""
    """Or where it listens (streamable HTTP)."""
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """Values may be handles."""
    tools: tuple[str, ...] = ("*",)
    """Patterns of the tools that may be called."""
    requires_approval: tuple[str, ...] = ()
    """Patterns of those that a person must agree to first."""
    timeout: Duration = Duration(Seconds(60.0))
    """Of a connection, and of a call."""

    @model_validator(mode="after")
    def _one_way(self) -> McpServerDescription:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either `command` or `url`")
        return self
