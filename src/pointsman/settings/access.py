"""Settings of who is let in, and to what."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from pointsman.definition.quantities import Duration
from pointsman.values import Seconds


class AccessSettings(BaseModel):
    """Who is let in, and for how long."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    login: Duration = Duration(Seconds(43_200.0))
    """How long a browser stays logged in."""
