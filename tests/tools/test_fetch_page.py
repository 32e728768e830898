"""`fetch_page`: the text of a page, from allowed hosts, for any hostile page."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import cast

import pytest

from pointsman.app import Pointsman
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.redaction import hiding, redaction_of
from pointsman.settings import Settings
from pointsman.settings.sections import HttpSettings
from pointsman.tools import pages
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject
from tests.tools.outgoing.peer import Peer, answer, peering

pytestmark = pytest.mark.integration

ARTICLE = """<!doctype html><html><head><title> Tides &amp;
power </title><style>b {color: red}</style><script>steal()</script></head>
<body><nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<main><h1>Tides</h1><p>The moon pulls at the sea, and the sea comes twice a day. Whoever builds a wall with doors in it
can let the water in and make it work on its way out. It has been done for more than fifty years in the Rance.</p>
<p>Größe: 240 MW.</p></main><footer>All rights reserved</footer></body></html>"""
HTML = "content-type: text/html; charset=utf-8"


def installed(peer: Peer, **pages: object) -> Pointsman:
    http = HttpSettings(networks=(IPv4Network("127.0.0.0/8"),), ports=(peer.port,))
    return Pointsman(
        "memory:", settings=Settings.model_validate({"http": http, "pages": {"hosts": ["127.*"], **pages}})
    )


async def fetched(
    peer: Peer, path: str = "/", *, pages: JsonObject | None = None, begin: int = 0, **arguments: Json
) -> JsonObject:
    given: JsonObject = {"url": f"{peer.url}{path}", "from": begin, **arguments}
    call = ToolCall(id="1", name="fetch_page", arguments=given)
    return cast("JsonObject", await installed(peer, **(pages or {})).tools.call(call, key="k"))


async def refusal(peer: Peer, path: str = "/", *, pages: JsonObject | None = None, **given: str) -> Failure:
    with pytest.raises(ToolFailed) as caught:
        await fetched(peer, path, pages=pages, begin=0, **given)
    return caught.value.failure


async def test_a_page_is_returned_as_title_and_text() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(ARTICLE.encode(), HTML)
        page = await fetched(peer)
        assert (page["title"], page["url"]) == ("Tides & power", f"{peer.url}/")
        text = str(page["text"])
        assert "The moon pulls at the sea" in text
        assert "Größe: 240 MW." in text
        for other in ("Home", "All rights", "steal", "color", "<p>"):
            assert other not in text
        assert "Home" in str((await fetched(peer, part="whole"))["text"])


async def test_a_secret_split_by_the_reader_is_masked() -> None:
    secret = "sK-Live-51cAnArY0123456789aBcDeF"
    title = f"{'x ' * 245}{secret}"
    async with peering() as peer:
        peer.answers["/"] = answer(ARTICLE.replace("Tides &amp;\npower", title).encode(), HTML)
        with hiding(redaction_of(frozenset({secret}))):
            page = await fetched(peer)
    assert len(str(page["title"])) > 400
    assert secret[:6] not in str(page["title"])


async def test_the_end_of_a_title_does_not_depend_on_whether_it_begins_a_secret() -> None:
    """Otherwise the author of a page could guess a secret character by character."""
    secret = "sK-Live-51cAnArY0123456789aBcDeF"
    titles = set[str]()
    for guess in ("sK-Live-5", "sK-Live-6"):
        async with peering() as peer:
            title = f"{'x' * (500 - len(guess))}{guess}"
            for rest in ("", " and more"):
                peer.answers["/"] = answer(ARTICLE.replace("Tides &amp;\npower", title + rest).encode(), HTML)
                with hiding(redaction_of(frozenset({secret}))):
                    titles.add(str((await fetched(peer))["title"]).removesuffix(guess))
    assert titles == {"x" * 491}


async def test_a_long_page_is_returned_in_parts() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(("<p>" + "0123456789" * 25).encode(), HTML)
        first = await fetched(peer, pages={"chars_max": 100})
        assert (len(str(first["text"])), first["next"]) == (100, 100)
        last = await fetched(peer, pages={"chars_max": 100}, begin=200)
        assert len(str(last["text"])) == 50
        assert "next" not in last


@pytest.mark.parametrize(
    ("headers", "body", "said"),
    [
        ("content-type: text/html; charset=iso-8859-1", "<p>Größe".encode("latin-1"), "Größe"),
        ("content-type: text/html", "<meta charset=windows-1251><p>Привет, мир".encode("cp1251"), "Привет, мир"),
        ("content-type: text/html; charset=no-such", "<meta charset=utf-8><p>Größe".encode(), "Größe"),
        ("content-type: text/html; charset=base64", b"<meta charset=utf-8><p>plain", "plain"),
        ("content-type: text/html; charset=utf-16", "<p>Größe".encode("utf-16"), "Größe"),
        ("content-type: text/plain; charset=shift_jis", "港".encode("shift_jis"), "港"),
        ("content-type: text/plain", b"caf\xe9", "caf\ufffd"),
        ("content-type: application/json", b'{"a": 1}', '{"a": 1}'),
        ("x-nothing: 1", b"<html><p>Untold", "Untold"),
    ],
)
async def test_text_is_decoded_with_its_charset(headers: str, body: bytes, said: str) -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(body, headers)
        assert (await fetched(peer))["text"] == said


async def test_content_that_is_not_text_is_refused() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b"%PDF-1.7 \0\1", "content-type: application/pdf")
        failure = await refusal(peer)
        assert (failure.code, failure.retryable) == ("page-unreadable", False)
        assert "application/pdf" in failure.message
        peer.answers["/bin"] = answer(b"\0\1\2", "content-type: text/plain")
        assert (await refusal(peer, "/bin")).code == "page-unreadable"


async def test_only_allowed_hosts_are_fetched_even_after_redirects() -> None:
    async with peering() as peer:
        failure = await refusal(peer, pages={"hosts": ["*.example.org"]})
        assert (failure.code, peer.asked) == ("address-refused", [])
        peer.answers["/"] = (
            f"HTTP/1.1 302 Found\r\nlocation: http://localhost:{peer.port}/x\r\ncontent-length: 0\r\n\r\n".encode()
        )
        failure = await refusal(peer)
        assert failure.code == "address-refused"
        assert "localhost" in failure.message
        assert len(peer.asked) == 1


async def test_internal_addresses_are_refused_even_if_every_host_is_allowed() -> None:
    async with peering() as peer:
        settings = Settings.model_validate({"pages": {"hosts": ["*"]}, "http": {"ports": [peer.port]}})
        call = ToolCall(id="1", name="fetch_page", arguments={"url": peer.url})
        with pytest.raises(ToolFailed) as caught:
            await Pointsman("memory:", settings=settings).tools.call(call, key="k")
        assert caught.value.failure.code == "address-refused"
        assert (await refusal(peer, url="file:///etc/passwd")).code == "address-refused"


async def test_a_too_large_or_missing_page_is_a_typed_failure() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b"x" * 2000, HTML)
        assert (await refusal(peer, pages={"bytes_max": 1000})).code == "answer-too-large"
        peer.answers["/none"] = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
        assert (await refusal(peer, "/none")).code == "http-status"


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 100_000 + "deep",
        "<b><p>" * 5_000 + "deep",
        "<a " + "x=1 " * 200_000 + ">deep",
        "&" * 500_000 + "deep",
        "<!--" * 100_000 + "-->deep",
        "<p>deep" * 20_000,
    ],
    ids=["nested", "adopted", "attributes", "entities", "comments", "paragraphs"],
)
async def test_hostile_pages_are_read_or_refused_without_hanging(page: str) -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(page.encode(), HTML)
        try:
            read = await fetched(peer, pages={"chars_max": 1_000_000})
        except ToolFailed as why:
            read = {"text": "deep" if why.failure.code == "page-unreadable" else repr(why.failure)}
        assert "deep" in str(read["text"])


async def test_a_reader_that_hangs_or_crashes_is_a_failure_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(ARTICLE.encode(), HTML)
        monkeypatch.setattr(pages, "SECONDS", 0)
        failure = await refusal(peer)
        assert failure.code == "page-unreadable"
        monkeypatch.undo()
        monkeypatch.setattr(pages, "MEMORY_BYTES", 1_000_000)
        assert (await refusal(peer)).code == "page-unreadable"
