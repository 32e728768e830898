"""`fetch_page`: the text of a web page, without menus and scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pointsman.errors import PointsmanError
from pointsman.ports import ToolSpec
from pointsman.redaction import masked
from pointsman.tools.failures import ToolFailed
from pointsman.tools.pages.config import PageSettings
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Bytes, Json, JsonObject

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import Outgoing


NESTED_MAX = 300
"""Nesting depth above which the main part is not searched for: the search takes quadratic time."""
MAIN_CHARS_MIN = 200
"""A shorter main part is considered a wrong result of the search."""
TEXT_CHARS_MAX = 2_000_000


def bound(seconds: int, memory_bytes: int) -> None:
    """Limit this process where the system supports it; the parent has a timeout as well."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (ImportError, OSError, ValueError):
        pass  # No such limit on this system.


def read(data: bytes, charset: str, *, whole: bool) -> dict[str, str]:
    from resiliparse.extract.html2text import extract_plain_text  # pyright: ignore[reportMissingModuleSource] - compiled
    from resiliparse.parse.encoding import (  # pyright: ignore[reportMissingModuleSource] - compiled
        bytes_to_str,
        detect_encoding,
        map_encoding_to_html5,
    )
    from resiliparse.parse.html import HTMLTree

    guessed = charset or detect_encoding(data, from_html_meta=True) or "utf-8"
    encoding = map_encoding_to_html5(guessed, fallback_utf8=True) or "utf-8"
    tree: Any = HTMLTree.parse(bytes_to_str(data, encoding, errors="replace"))
    text = ""
    if not whole and _nesting(tree) <= NESTED_MAX:
        text = extract_plain_text(tree, main_content=True, links=False, alt_texts=False)
    if len(text) < MAIN_CHARS_MIN:
        text = extract_plain_text(tree, main_content=False, links=False, alt_texts=False)
    return {"title": " ".join((tree.title or "").split())[:500], "text": text.strip()[:TEXT_CHARS_MAX]}


def _nesting(tree: Any) -> int:
    """Return the depth of the tree, computed without recursion."""
    deepest = depth = 0
    node: Any = tree.document
    while node is not None:
        if node.first_child is not None:
            node, depth = node.first_child, depth + 1
            deepest = max(deepest, depth)
            continue
        while node is not None and node.next is None:
            node, depth = node.parent, depth - 1
        node = node.next if node is not None else None
    return deepest


def main() -> None:
    """Run with the arguments: charset or empty, `whole` or `main`, seconds, bytes of memory."""
    charset, part, seconds, memory_bytes = sys.argv[1:5]
    bound(int(seconds), int(memory_bytes))
    said = read(sys.stdin.buffer.read(), charset, whole=part == "whole")
    sys.stdout.buffer.write(json.dumps(said).encode())


if __name__ == "__main__":
    main()


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
