"""How much is told of what happens, to whom, and what never is."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

Level: TypeAlias = Literal["minimal", "standard", "full"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""From the one that tells least to the one that tells most."""

REDACTED: Final = (
    "*password*",
    "*passwd*",
    "*passphrase*",
    "*secret*",
    "*token",
    "*apikey*",
    "*privatekey*",
    "*credential*",
    "authorization",
    "cookie",
    "setcookie",
)


class ObservabilitySettings(BaseModel):
    """How much is told of executions, and what never is."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    level: Level = "standard"
    """Of workflows that say none."""
    at_most: Level = "full"
    """Whatever a workflow says."""
    history: bool = True
    """Whether what ended is taken into the tables of usage and the search, by whoever keeps the store."""
    redact: tuple[str, ...] = REDACTED
    """Patterns of the names of fields whose values are never told; without case, `-` and `_`."""

    def level_for(self, said: Level | None) -> Level:
        """The level of an execution whose workflow says this."""
        return LEVELS[min(LEVELS.index(said or self.level), LEVELS.index(self.at_most))]


class LogSettings(BaseModel):
    """What `serve` and `keep` write to standard error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    access: bool = True
    """Whether requests are logged."""


class MetricsSettings(BaseModel):
    """Who may read `/metrics`, and how fine it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    key: str = Field(default="", repr=False)
    """Opens `/metrics` and nothing else; best a handle: `secret.NAME`."""
    workflows_max: int = Field(default=200, ge=0, le=10_000)
    """So many workflows are told apart; the others are counted together."""


class TelemetrySettings(BaseModel):
    """Where OpenTelemetry traces and metrics go."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    endpoint: str
    """Of a collector, OTLP over HTTP: `http://localhost:4318`."""
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """Sent with everything; values may be handles: `secret.NAME`."""
    service: str = "pointsman"
    traces: bool = True
    metrics: bool = True
    sample: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """The share of executions that are traced."""
    propagate: bool = True
    """Whether http nodes and HTTP tools say which trace they belong to."""
