"""`fetch_page`: the text of a web page, without menus and scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pointsman.errors import PointsmanError
from pointsman.ports import ToolSpec
from pointsman.redaction import masked
from pointsman.tools.failures import ToolFailed
from pointsman.tools.pages.config import PageSettings
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Bytes, Json, JsonObject

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import Outgoing

NAME: Final = "fetch_page"
DESCRIPTION: Final = "Fetch a page of the web as text. A long one comes in parts: go on with `from` at `next`."
SECONDS_TO_READ: Final = 30.0
BYTES_PER_CHAR: Final = 6
"""Maximum length of a character in JSON, when escaped."""

PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "minLength": 1, "maxLength": 4000},
        "from": {"type": "integer", "minimum": 0, "description": "Where in the text to begin."},
        "part": {"enum": ["main", "whole"], "description": "`whole`: with menus and the like."},
    },
    "required": ["url"],
    "additionalProperties": False,
}


class FetchPageTool:
    """Fetches one page per call. Does not cache pages."""

    def __init__(self, settings: PageSettings, *, outgoing: Callable[[PageSettings], Outgoing]) -> None:
        """`outgoing` is called at the first request, because it loads an HTTP client."""
        self.name = NAME
        self._settings = settings
        self._outgoing = outgoing
        self.limits = ToolLimits(
            timeout_s=settings.timeout.seconds + SECONDS_TO_READ,
            output_bytes_max=Bytes(settings.chars_max * BYTES_PER_CHAR + 10_000),
        )
        self.spec = ToolSpec(name=NAME, description=DESCRIPTION, parameters=PARAMETERS, idempotent=True)

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Fetch a page; return {"url", "title", "text", "next"?}. Raises `ToolFailed`."""
        from pointsman.tools.egress.http_calls import HttpCall  # Loads an HTTP client.
        from pointsman.tools.http.responses import failure_of_call, failure_of_status
        from pointsman.tools.pages.text import read_page

        call = HttpCall(
            method="GET", url=str(arguments["url"]), headers={"accept": "text/html, text/*;q=0.9, */*;q=0.1"}
        )
        try:
            answer = await self._outgoing(self._settings).send(call)
        except PointsmanError as why:
            raise ToolFailed(failure_of_call(call, why)) from why
        failure = failure_of_status(call, answer)
        if failure is not None:
            raise ToolFailed(failure)
        page = await read_page(answer, "whole" if arguments.get("part") == "whole" else "main")
        begins = arguments.get("from")
        start = begins if isinstance(begins, int) else 0
        ends = start + self._settings.chars_max
        text = masked(page.text)
        found: JsonObject = {"url": answer.url, "title": page.title, "text": text[start:ends]}
        return {**found, "next": ends} if ends < len(text) else found
