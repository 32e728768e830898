"""Settings of who is let in, and to what."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from pointsman.definition.quantities import Duration
from pointsman.values import Seconds


class AccessSettings(BaseModel):
    """Who is let in, and for how long."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    new_workflows: Literal["private", "everyone"] = "everyone"
    """Who sees a workflow beside its owner until that is changed."""
    login: Duration = Duration(Seconds(43_200.0))
    """How long a browser stays logged in."""
