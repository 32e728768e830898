"""Settings for fetching pages: which hosts are allowed.

[pages]
hosts = ["*.example.org", "en.wikipedia.org"]        ["*"]: every public host
"""

from __future__ import annotations

import fnmatch
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pointsman.definition.model.base import Duration
from pointsman.values import Seconds


class PageSettings(BaseModel):
    """Without hosts nothing is fetched."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    hosts: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Patterns of names. Where a page leads on to, they hold as well."""
    timeout: Duration = Duration(Seconds(30.0))
    bytes_max: int = Field(default=5_000_000, ge=1, le=50_000_000)
    """Of a page as it comes."""
    chars_max: int = Field(default=20_000, ge=100, le=1_000_000)
    """Of the text handed out at once."""

    def allows(self, host: str) -> bool:
        """Return whether pages of the host may be fetched."""
        return any(fnmatch.fnmatchcase(host.lower().rstrip("."), pattern.lower()) for pattern in self.hosts)
