"""The tool `fetch_page`: the text of a web page, without menus and scripts.

    [pages]
    hosts = ["*.example.org", "en.wikipedia.org"]        ["*"]: every public host

A separate process (`page_reader`) converts HTML; other text is returned as it is.
"""

from __future__ import annotations

import asyncio
import codecs
import fnmatch
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from pointsman.deadlines import wait_uninterrupted
from pointsman.definition.model.base import Duration
from pointsman.engine.failures import Failure
from pointsman.errors import PointsmanError
from pointsman.platforms import least_environment
from pointsman.ports import ToolSpec
from pointsman.redaction import masked, masked_cut
from pointsman.tools.page_reader import TEXT_CHARS_MAX, TITLE_CHARS_MAX
from pointsman.tools.tool import ToolContext, ToolFailed, ToolLimits
from pointsman.values import Bytes, Json, JsonObject, Seconds

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import HttpResponse, Outgoing


class PageSettings(BaseModel):
    """Without hosts nothing is fetched."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    hosts: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Patterns of host names. They apply to redirects too."""
    timeout: Duration = Duration(Seconds(30.0))
    bytes_max: int = Field(default=5_000_000, ge=1, le=50_000_000)
    """Maximum size of a page as received."""
    chars_max: int = Field(default=20_000, ge=100, le=1_000_000)
    """Maximum size of the text returned at once."""

    def allows(self, host: str) -> bool:
        """Return whether pages of the host may be fetched."""
        return any(fnmatch.fnmatchcase(host.lower().rstrip("."), pattern.lower()) for pattern in self.hosts)


NAME: Final = "fetch_page"
DESCRIPTION: Final = (
    "Fetch a page of the web as text. Long pages are returned in parts: continue with `from` set to `next`."
)
SECONDS_TO_READ: Final = 30.0
BYTES_PER_CHAR: Final = 6
"""Maximum length of a character in JSON, when escaped."""

PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "minLength": 1, "maxLength": 4000},
        "from": {"type": "integer", "minimum": 0, "description": "The position in the text to start at."},
        "part": {
            "enum": ["main", "whole"],
            "description": "`whole`: include menus and other parts around the main text.",
        },
    },
    "required": ["url"],
    "additionalProperties": False,
}

READER: Final = Path(__file__).with_name("page_reader.py")
SECONDS: Final = 20
MEMORY_BYTES: Final = 1_000_000_000
READER_OUTPUT_BYTES_MAX: Final = 30_000_000
SHOWN_CHARS_MAX: Final = 2_000_000
SHOWN_TITLE_CHARS_MAX: Final = 500
"""Less than the reader returns: a beginning of a secret at the end of the reader's text is dropped. If that end were
shown, the author of a page could find out a secret character by character."""
NO_CHARSETS: Final = frozenset(
    {"hex", "base64", "bz2", "zlib", "rot13", "quopri", "uu", "idna", "punycode", "undefined"}
)
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
TEXTS: Final = ("/json", "+json", "/xml", "+xml", "/javascript", "/yaml", "/x-yaml")


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
        from pointsman.tools.http.messages import failure_of_call, failure_of_status

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
        text = masked_cut(page.text, TEXT_CHARS_MAX)[:SHOWN_CHARS_MAX]
        title = masked_cut(page.title, TITLE_CHARS_MAX)[:SHOWN_TITLE_CHARS_MAX]
        result: JsonObject = {"url": answer.url, "title": title, "text": text[start:ends]}
        return {**result, "next": ends} if ends < len(text) else result


class WebPage(msgspec.Struct, frozen=True):
    """Title and text of a page."""

    title: str
    text: str


async def read_page(answer: HttpResponse, part: Literal["main", "whole"]) -> WebPage:
    """Return the text of a page. Raises `ToolFailed` if it is not text or cannot be read within the limits."""
    kind, charset = _kind_of(answer)
    if kind in HTML or (not kind and answer.body.lstrip()[:1] == b"<"):
        return await _read_html(answer, charset, part)
    is_text = kind.startswith("text/") or kind.endswith(TEXTS) or not kind
    if is_text and (charset or b"\0" not in answer.body[:1000]):
        return WebPage("", answer.body.decode(charset or "utf-8", errors="replace"))
    raise _unreadable(answer, f"its media type is {kind or 'binary'}, not text")


async def _read_html(answer: HttpResponse, charset: str, part: str) -> WebPage:
    # Isolated mode and no environment: the parser of an untrusted page gets no variables of this process.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(READER),
        charset,
        part,
        str(SECONDS),
        str(MEMORY_BYTES),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=least_environment(),
    )
    try:
        async with asyncio.timeout(SECONDS):
            output = await _exchanged(process, answer.body)
            code = await process.wait()
    except TimeoutError:
        raise _unreadable(answer, f"its text could not be extracted within {SECONDS} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await wait_uninterrupted(process.wait)
    if code != 0:
        raise _unreadable(answer, "its text cannot be found")
    try:
        return msgspec.json.decode(output, type=WebPage)
    except msgspec.MsgspecError:
        raise _unreadable(answer, "its text cannot be found") from None


async def _exchanged(process: asyncio.subprocess.Process, body: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(body)
        await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        pass  # The process has ended; its exit code reports why.
    output = bytearray()
    while part := await process.stdout.read(65_536):
        output += part
        if len(output) > READER_OUTPUT_BYTES_MAX:
            process.kill()
    return bytes(output)


def _kind_of(answer: HttpResponse) -> tuple[str, str]:
    """Return media type and charset of the response; an unknown charset counts as none."""
    kind, _, rest = answer.headers.get("content-type", "").partition(";")
    charset = ""
    for one in rest.split(";"):
        name, _, value = one.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'")
    try:
        # Some codecs are not charsets but convert text to text.
        codec = codecs.lookup(charset) if charset.isascii() and "\0" not in charset else None
        charset = codec.name if codec is not None and codec.name not in NO_CHARSETS else ""
    except LookupError:
        charset = ""
    return kind.strip().lower(), charset


def _unreadable(answer: HttpResponse, why: str) -> ToolFailed:
    message = f"the page {masked(answer.url).partition('?')[0]} cannot be read: {why}"
    return ToolFailed(Failure(code="page-unreadable", message=message, hint="Try another address."))
