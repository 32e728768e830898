"""Settings of the sandbox."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pointsman.definition.model.base import Duration, Size
from pointsman.tools.sandbox.limits import Preference
from pointsman.values import Bytes, Seconds


class SandboxSettings(BaseModel):
    """Which box, and how much the code of code nodes may use of this machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    box: Preference = "auto"
    timeout: Duration = Duration(Seconds(10.0))
    """Of one run of code, whatever its node allows."""
    memory: Size = Size(Bytes(128_000_000))
    result: Size = Size(Bytes(1_000_000))
    """Of what code may leave behind."""
    at_once: int | None = Field(default=None, ge=1, le=1_000)
    """Codes that run at the same time. Absent: one for each processor."""
