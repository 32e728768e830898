"""The page of the API: all operations, readable without scripts, and nothing that is not escaped."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

from pointsman.server.api_reference import page_of
from pointsman.server.openapi_document import operations_of
from tests.server.conftest import Served


class Seen(HTMLParser):
    """What a browser finds in a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.style = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.attributes |= given.keys()
        self.ids += [str(given["id"])] if "id" in given else []
        self.links += [str(given["href"])] if tag == "a" else []

    def handle_data(self, data: str) -> None:
        if self.lasttag == "style":
            self.style += data


async def test_every_operation_has_its_place_and_every_link_leads_somewhere(served: Served) -> None:
    reply = await served.client.get("/api/docs")
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    document = (await served.client.get("/api/openapi.json")).json()
    seen = Seen(reply.text)
    operations = [str(one["operationId"]) for one in operations_of(document)]
    assert sorted(operations) == sorted(set(seen.ids) - {"operations"})
    assert {link.removeprefix("#") for link in seen.links if link.startswith("#")} == set(seen.ids)
    assert [link for link in seen.links if not link.startswith("#")] == ["/api/openapi.json"]
    for said in ("/api/workflows/executions/{eid}/move", "checkOnly", "move-refused", "Bearer pm_"):
        assert said in reply.text, said


async def test_its_policy_allows_its_own_style_and_nothing_else(served: Served) -> None:
    reply = await served.client.get("/api/docs")
    seen = Seen(reply.text)
    policy = reply.headers["content-security-policy"]
    hashed = b64encode(sha256(seen.style.encode()).digest()).decode()
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{hashed}'"]
    assert seen.tags.isdisjoint({"script", "img", "link", "iframe", "form"})
    assert {one for one in seen.attributes if one == "style" or one.startswith("on")} == set()


def test_what_a_description_says_is_text() -> None:
    hostile = "<script>alert(1)</script> & `a<b`"
    operation: dict[str, Any] = {
        "tags": ["x"],
        "summary": hostile,
        "description": hostile,
        "operationId": "x_y",
        "parameters": [{"name": hostile, "in": "query", "schema": {"enum": [hostile]}, "description": hostile}],
        "responses": {"200": {"description": hostile, "content": {hostile: {"example": hostile, "schema": {}}}}},
    }
    page = page_of(
        {
            "info": {"title": hostile, "version": "1", "description": hostile},
            "tags": [{"name": "x", "description": hostile}],
            "paths": {"/x": {"get": operation}},
            "components": {"schemas": {}},
        }
    )
    assert re.findall(r"<script", page) == []
    assert "<code>a&lt;b</code>" in page
