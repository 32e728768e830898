"""The tool `web_search`: search with the operator's search engine.

[search]
engine = "searxng"                  needs `url`        ·  "tavily", "brave": need `key`
url = "http://searx.internal:8080"
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration
from pointsman.engine.failures import Failure
from pointsman.errors import PointsmanError
from pointsman.ports import ToolSpec
from pointsman.redaction import head, redaction_of
from pointsman.tools.tool import ToolContext, ToolFailed, ToolLimits
from pointsman.values import Json, JsonObject, Seconds

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import Outgoing


ADDRESSES: Final = {
    "tavily": "https://api.tavily.com/search",
    "brave": "https://api.search.brave.com/res/v1/web/search",
}


class SearchSettings(BaseModel):
    """Which engine, where it is and who pays."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    engine: Literal["searxng", "tavily", "brave"]
    url: str = ""
    """Address of the service; required for SearXNG. Internal addresses are allowed, because the operator sets it."""
    key: str = Field(default="", repr=False)
    """Preferably a handle: `secret.NAME`."""
    hits_max: int = Field(default=10, ge=1, le=50)
    timeout: Duration = Duration(Seconds(20.0))

    @model_validator(mode="after")
    def _complete(self) -> SearchSettings:
        if self.engine == "searxng" and not self.url:
            raise ValueError("`url` is missing: set it to the address of SearXNG")
        if self.engine != "searxng" and not self.key:
            raise ValueError(f"`key` is missing: {self.engine} requires one")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("`url` must begin with http:// or https://")
        return self

    @property
    def address(self) -> str:
        """The address of the search endpoint."""
        if self.engine == "searxng":
            return f"{self.url.rstrip('/').removesuffix('/search')}/search"
        return self.url or ADDRESSES[self.engine]


TEXT_CHARS_MAX: Final = 2000
TITLE_CHARS_MAX: Final = 300
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")


def request_to(settings: SearchSettings, query: str, *, hits: int, key: str) -> JsonObject:
    """Return the request to the search engine, in the form that `request_of` reads."""
    match settings.engine:
        case "searxng":
            return {"url": settings.address, "query": {"q": query, "format": "json"}, "headers": _bearer(key)}
        case "tavily":
            body: JsonObject = {"query": query, "max_results": hits}
            return {"url": settings.address, "method": "POST", "headers": _bearer(key), "body": body}
        case "brave":
            headers: JsonObject = {"X-Subscription-Token": key, "Accept": "application/json"}
            return {"url": settings.address, "query": {"q": query, "count": hits}, "headers": headers}


def hits_in(settings: SearchSettings, answer: Json, *, most: int) -> list[Json] | None:
    """Return [{"title", "url", "text"}]; None: the response has another form."""
    listed = answer.get("web", {}) if settings.engine == "brave" and isinstance(answer, dict) else answer
    results = listed.get("results", [] if settings.engine == "brave" else None) if isinstance(listed, dict) else None
    if not isinstance(results, list):
        return None
    return [*_hits(results, "description" if settings.engine == "brave" else "content")][:most]


def _hits(results: list[Json], text: str) -> Iterator[Json]:
    for result in results:
        if (
            isinstance(result, dict)
            and isinstance(url := result.get("url"), str)
            and url.startswith(("http://", "https://"))
        ):
            yield {
                "title": _plain(result.get("title"), TITLE_CHARS_MAX),
                "url": url,
                "text": _plain(result.get(text), TEXT_CHARS_MAX),
            }


def _plain(value: Json, chars_max: int) -> str:
    """Return the text without tags, with which search engines mark matches."""
    return head(html.unescape(_TAG.sub("", value)), chars_max).strip() if isinstance(value, str) else ""


def _bearer(key: str) -> JsonObject:
    return {"Authorization": f"Bearer {key}"} if key else {}


NAME: Final = "web_search"
LIMITS: Final = ToolLimits()


class WebSearchTool:
    """Runs one query per call."""

    def __init__(
        self,
        settings: SearchSettings,
        *,
        outgoing: Callable[[SearchSettings], Outgoing],
        resolved: Callable[[str], str | None],
    ) -> None:
        """`outgoing` is called at the first request, because it loads an HTTP client. `resolved` returns the secret of
        a handle."""
        self.name = NAME
        self.limits = LIMITS
        self._settings = settings
        self._outgoing = outgoing
        self._resolved = resolved
        self.spec = ToolSpec(
            name=NAME,
            description="Search the web. Hits have a title, an address and some text.",
            parameters={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "minLength": 1, "maxLength": 1000},
                    "limit": {"type": "integer", "minimum": 1, "maximum": settings.hits_max},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            idempotent=True,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Return [{"title", "url", "text"}], best match first. Raises `ToolFailed`."""
        from pointsman.tools.http.messages import data_of, failure_of_call, failure_of_status, request_of

        limit = arguments.get("limit")
        most = limit if isinstance(limit, int) else self._settings.hits_max
        key = self._key()
        redaction = redaction_of(frozenset({key}))
        call = request_of(
            request_to(self._settings, str(arguments["query"]), hits=most, key=key), key=context.idempotency_key
        )
        try:
            answer = await self._outgoing(self._settings).send(call)
            data = redaction.json(data_of(answer, "json"))
        except PointsmanError as why:
            raise ToolFailed(failure_of_call(call, why)) from why
        failure = failure_of_status(call, answer, redaction.data)
        if failure is not None:
            raise ToolFailed(failure)
        hits = hits_in(self._settings, data, most=most)
        if hits is None:
            message = f"the answer of {self._settings.engine} contains no results"
            raise ToolFailed(Failure(code="search-unreadable", message=message, hint="Check [search] in the settings."))
        return hits

    def _key(self) -> str:
        if not self._settings.key:
            return ""
        key = self._resolved(self._settings.key)
        if key is None:
            message = f"the key of {self._settings.engine} is not set"
            hint = f"Set the secret {self._settings.key!r}, which `search.key` names."
            raise ToolFailed(Failure(code="secret-missing", message=message, hint=hint))
        return key
