"""How each engine is asked, and where its answer has what we want."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from pointsman.redaction import head
from pointsman.tools.search.config import SearchSettings
from pointsman.values import Json, JsonObject

TEXT_CHARS_MAX: Final = 2000
TITLE_CHARS_MAX: Final = 300
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")


def request_to(settings: SearchSettings, query: str, *, hits: int, key: str) -> JsonObject:
    """The request, as `request_of` wants it described."""
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
    """[{"title", "url", "text"}]; None: this is not what the engine answers."""
    listed = answer.get("web", {}) if settings.engine == "brave" and isinstance(answer, dict) else answer
    results = listed.get("results", [] if settings.engine == "brave" else None) if isinstance(listed, dict) else None
    if not isinstance(results, list):
        return None
    return [*_hits(results, "description" if settings.engine == "brave" else "content")][:most]


def _hits(results: list[Json], text: str) -> Iterator[Json]:
    for one in results:
        if isinstance(one, dict) and isinstance(url := one.get("url"), str) and url.startswith(("http://", "https://")):
            yield {
                "title": _plain(one.get("title"), TITLE_CHARS_MAX),
                "url": url,
                "text": _plain(one.get(text), TEXT_CHARS_MAX),
            }


def _plain(said: Json, chars_max: int) -> str:
    """Engines mark what was found by tags."""
    return head(html.unescape(_TAG.sub("", said)), chars_max).strip() if isinstance(said, str) else ""


def _bearer(key: str) -> JsonObject:
    return {"Authorization": f"Bearer {key}"} if key else {}
