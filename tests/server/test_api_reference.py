"""The API reference: the page, its policy, and the document that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.server import pages
from tests.server.conftest import Served


async def test_the_page_needs_no_key_and_allows_only_scripts_of_this_server(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.html").write_text("app", "utf-8")
    (tmp_path / "api.html").write_text("reference", "utf-8")
    monkeypatch.setattr(pages, "BUILT", tmp_path)
    reply = await served.client.get("/api/docs")
    assert (reply.status_code, reply.text) == (200, "reference")
    assert reply.headers["content-type"].startswith("text/html")
    assert "script-src 'self';" in reply.headers["content-security-policy"]
    document = (await served.client.get("/api/openapi.json")).json()
    assert "/api/workflows/executions/{eid}/move" in document["paths"]


async def test_without_a_build_the_page_names_the_document_and_how_to_build_it(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "BUILT", tmp_path)
    reply = await served.client.get("/api/docs")
    assert reply.status_code == 404
    assert "/api/openapi.json" in reply.text
    assert "make ui" in reply.text
