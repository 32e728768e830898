"""Text of fetched pages: HTML is converted by a separate process, other text is returned as it is."""

from __future__ import annotations

import asyncio
import codecs
import sys
from pathlib import Path
from typing import Final, Literal

import msgspec

from pointsman.engine.failures import Failure
from pointsman.redaction import masked
from pointsman.tools.egress.http_calls import HttpResponse
from pointsman.tools.failures import ToolFailed

READER: Final = Path(__file__).with_name("reader.py")
SECONDS: Final = 20
MEMORY_BYTES: Final = 1_000_000_000
SAID_BYTES_MAX: Final = 30_000_000
NO_CHARSETS: Final = frozenset(
    {"hex", "base64", "bz2", "zlib", "rot13", "quopri", "uu", "idna", "punycode", "undefined"}
)
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
TEXTS: Final = ("/json", "+json", "/xml", "+xml", "/javascript", "/yaml", "/x-yaml")


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
    raise _unreadable(answer, f"it is {kind or 'binary'}, not a text")


async def _read_html(answer: HttpResponse, charset: str, part: str) -> WebPage:
    # Isolated mode and an empty environment: the parser of an untrusted page gets no variables of this process.
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
        env={},
    )
    try:
        async with asyncio.timeout(SECONDS):
            said = await _exchanged(process, answer.body)
            code = await process.wait()
    except TimeoutError:
        raise _unreadable(answer, f"its text was not found within {SECONDS} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code != 0:
        raise _unreadable(answer, "its text cannot be found")
    try:
        return msgspec.json.decode(said, type=WebPage)
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
    said = bytearray()
    while part := await process.stdout.read(65_536):
        said += part
        if len(said) > SAID_BYTES_MAX:
            process.kill()
    return bytes(said)


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
        known = codecs.lookup(charset) if charset.isascii() and "\0" not in charset else None
        charset = known.name if known is not None and known.name not in NO_CHARSETS else ""
    except LookupError:
        charset = ""
    return kind.strip().lower(), charset


def _unreadable(answer: HttpResponse, why: str) -> ToolFailed:
    message = f"the page {masked(answer.url).partition('?')[0]} cannot be read: {why}"
    return ToolFailed(Failure(code="page-unreadable", message=message, hint="Try another address."))
