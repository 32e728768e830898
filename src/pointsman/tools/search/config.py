"""Settings of the search engine.

[search]
engine = "searxng"                  needs `url`        ·  "tavily", "brave": need `key`
url = "http://searx.internal:8080"
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration
from pointsman.values import Seconds

ADDRESSES: Final = {
    "tavily": "https://api.tavily.com/search",
    "brave": "https://api.search.brave.com/res/v1/web/search",
}


class SearchSettings(BaseModel):
    """Which engine, where it is and who pays."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    engine: Literal["searxng", "tavily", "brave"]
    url: str = ""
    """Where it is; needed of SearXNG. May be inside this network: it is the operator's own word."""
    key: str = Field(default="", repr=False)
    """Best a handle: `secret.NAME`."""
    hits_max: int = Field(default=10, ge=1, le=50)
    timeout: Duration = Duration(Seconds(20.0))

    @model_validator(mode="after")
    def _complete(self) -> SearchSettings:
        if self.engine == "searxng" and not self.url:
            raise ValueError("`url` is missing: where is this SearXNG?")
        if self.engine != "searxng" and not self.key:
            raise ValueError(f"`key` is missing: {self.engine} wants one")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("`url` must begin with http:// or https://")
        return self

    @property
    def address(self) -> str:
        """The address of the search endpoint."""
        if self.engine == "searxng":
            return f"{self.url.rstrip('/').removesuffix('/search')}/search"
        return self.url or ADDRESSES[self.engine]
