"""Files of the web app: which are served, with which policy."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pointsman.server import pages
from tests.server.conftest import Served


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a small app, and a file beside it that must not be served."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>the app</title>", "utf-8")
    (folder / "assets" / "main-1a2b.js").write_text("run()", "utf-8")
    (tmp_path / "secret.txt").write_text("secret", "utf-8")
    monkeypatch.setattr(pages, "BUILT", folder)
    return folder


async def test_every_page_path_returns_the_app(served: Served, built: Path) -> None:
    for path in ("/", "/workflows", "/executions/exec-1", "/workflows/news desk"):
        reply = await served.client.get(path)
        assert (reply.status_code, "the app" in reply.text, reply.headers["cache-control"]) == (200, True, "no-cache")
        policy = reply.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe-eval" not in policy
        assert "frame-ancestors 'none'" in policy


async def test_content_hashed_files_are_cached_forever(served: Served, built: Path) -> None:
    reply = await served.client.get("/assets/main-1a2b.js")
    assert (reply.status_code, reply.text) == (200, "run()")
    assert reply.headers["content-type"].startswith("text/javascript")
    assert "immutable" in reply.headers["cache-control"]


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br", "br"),
        ("gzip;q=1.0, br;q=0", "gzip"),
        ("GZIP", "gzip"),
        ("identity", ""),
        ("", ""),
    ],
)
async def test_a_file_is_sent_in_the_best_encoding_that_the_client_accepts(
    served: Served, built: Path, accepted: str, encoding: str
) -> None:
    (built / "assets" / "main-1a2b.js.br").write_bytes(b"brotli")
    (built / "assets" / "main-1a2b.js.gz").write_bytes(gzip.compress(b"run()"))
    headers = {"accept-encoding": accepted}
    async with served.client.stream("GET", "/assets/main-1a2b.js", headers=headers) as reply:
        content = b"".join([part async for part in reply.aiter_raw()])
    assert reply.headers.get("content-encoding", "") == encoding
    assert (reply.headers["vary"], reply.headers["content-type"]) == (
        "accept-encoding",
        "text/javascript; charset=utf-8",
    )
    assert content == {"br": b"brotli", "gzip": gzip.compress(b"run()"), "": b"run()"}[encoding]


async def test_each_encoding_has_an_etag_that_saves_a_second_transfer(served: Served, built: Path) -> None:
    (built / "index.html.gz").write_bytes(gzip.compress(b"<title>the app</title>"))
    plain = await served.client.get("/", headers={"accept-encoding": "identity"})
    small = await served.client.get("/", headers={"accept-encoding": "gzip"})
    assert plain.text == small.text
    assert plain.headers["etag"] != small.headers["etag"]
    known = {"accept-encoding": "gzip", "if-none-match": f'"x", {small.headers["etag"]}'}
    again = await served.client.get("/workflows", headers=known)
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", small.headers["etag"])


async def test_a_compressed_copy_has_no_address_of_its_own(served: Served, built: Path) -> None:
    (built / "assets" / "main-1a2b.js.br").write_bytes(b"brotli")
    assert (await served.client.get("/assets/main-1a2b.js.br")).status_code == 404


@pytest.mark.requirement("S1-105")
@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/secret.txt",
        "/.sources",
        "/workflows/../../secret.txt",
    ],
)
async def test_no_file_outside_of_the_folder_is_served(served: Served, built: Path, path: str) -> None:
    reply = await served.client.get(path)
    assert (reply.status_code, "secret" in reply.text) == (404, False)


async def test_an_unknown_path_in_a_browser_returns_the_app(served: Served, built: Path) -> None:
    """The app shows "Not found"; API requests get JSON errors."""
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    reply = await served.client.get("/worklfows", headers=browser)
    assert (reply.status_code, "the app" in reply.text) == (404, True)
    assert "script-src 'self';" in reply.headers["content-security-policy"]
    for path in ("/api/nowhere", "/v1/nowhere", "/assets/gone.js"):
        reply = await served.client.get(path, headers=browser)
        assert (reply.status_code, "the app" in reply.text) == (404, False), path


async def test_an_unknown_path_for_a_program_returns_json(served: Served, built: Path) -> None:
    for path in ("/api/nowhere", "/assets/gone.js", "/favicon.ico"):
        reply = await served.client.get(path)
        assert (reply.status_code, reply.json()["code"]) == (404, "not-found")
    reply = await served.client.get("/v1/nowhere")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not-found")


async def test_a_missing_build_of_the_app_is_reported_with_the_build_command(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "BUILT", tmp_path / "nothing")
    reply = await served.client.get("/")
    assert (reply.status_code, "make ui" in reply.text) == (200, True)
    assert (await served.client.get("/workflows")).status_code == 404
    assert (await served.client.get("/health")).status_code == 200


@pytest.fixture
def documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a small documentation site, and a file beside it that must not be served."""
    folder = tmp_path / "documentation"
    (folder / "guide").mkdir(parents=True)
    (folder / "index.html").write_text("<title>the start</title>", "utf-8")
    (folder / "guide" / "index.html").write_text("<title>the guide</title>", "utf-8")
    (folder / "guide.md").write_text("# The guide", "utf-8")
    (folder / "script-hashes.txt").write_text("abc=\nxyz=\n", "utf-8")
    (tmp_path / "secret.txt").write_text("secret", "utf-8")
    monkeypatch.setattr(pages, "DOCUMENTATION", folder)
    pages.documentation_headers.cache_clear()
    return folder


async def test_the_documentation_is_served_with_the_hashes_of_its_scripts(served: Served, documentation: Path) -> None:
    start = await served.client.get("/docs/")
    assert (start.status_code, "the start" in start.text) == (200, True)
    assert "script-src 'self' 'sha256-abc=' 'sha256-xyz=';" in start.headers["content-security-policy"]
    assert "the guide" in (await served.client.get("/docs/guide/")).text
    markdown = await served.client.get("/docs/guide.md")
    assert (markdown.text, markdown.headers["content-type"]) == ("# The guide", "text/plain; charset=utf-8")


async def test_a_folder_of_the_documentation_redirects_to_its_address_with_a_slash(
    served: Served, documentation: Path
) -> None:
    for path in ("/docs", "/docs/guide"):
        reply = await served.client.get(path)
        assert (reply.status_code, reply.headers["location"]) == (307, f"{path}/")


@pytest.mark.parametrize(
    "path", ["/docs/../secret.txt", "/docs/..%2fsecret.txt", "/docs/secret.txt", "/docs//etc/hosts"]
)
async def test_no_file_outside_of_the_documentation_is_served(served: Served, documentation: Path, path: str) -> None:
    reply = await served.client.get(path)
    assert (reply.status_code, "secret" in reply.text) == (404, False)


async def test_a_missing_build_of_the_documentation_is_reported_with_the_build_command(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "DOCUMENTATION", tmp_path / "nothing")
    reply = await served.client.get("/docs/")
    assert (reply.status_code, "make docs" in reply.text) == (404, True)


async def test_the_usual_address_of_the_api_document_redirects_to_it(served: Served) -> None:
    reply = await served.client.get("/openapi.json")
    assert (reply.status_code, reply.headers["location"]) == (307, "/api/openapi.json")
