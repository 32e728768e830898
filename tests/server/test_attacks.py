"""What those try who know how servers are broken into: other names, planted cookies, bombs, ways out of a folder."""

from __future__ import annotations

import gzip
from typing import Final

import pytest

from pointsman.server.desk import COOKIE
from tests.server.conftest import Served
from tests.server.flows import CHAIN

EVIL: Final = "https://evil.example"
LAYERS: Final = 9
BOMB: Final = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{','.join(['*' + chr(97 + at)] * LAYERS)}]\n" for at in range(LAYERS)
)
XML: Final = '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><definitions>&b;</definitions>'
BOMBS: Final = {
    "aliases": BOMB.encode(),
    "levels of JSON": b"[" * 5_000,
    "levels of YAML": "\n".join(" " * depth + "a:" for depth in range(3_000)).encode(),
    "packed": gzip.compress(b"a" * 1_000_000),
    "entities": XML.encode(),
}


@pytest.mark.parametrize("host", ["localhost@evil.example", "[::1", "", "evil.example:80@localhost.evil", "LOCALHOST."])
async def test_who_is_called_by_another_name_does_not_answer(served: Served, host: str) -> None:
    reply = await served.client.get("/api/workflows", headers={"host": host})
    assert (reply.status_code, reply.json()["code"]) == (403, "origin-refused")


async def test_what_a_caller_says_it_was_called_by_is_told_to_nobody(served: Served) -> None:
    headers = {"x-forwarded-host": "evil.example", "x-forwarded-proto": "https", "forwarded": "host=evil.example"}
    reply = await served.client.post("/api/workflows", content=CHAIN, headers=headers)
    assert (reply.status_code, reply.headers["location"]) == (201, "/api/workflows/chain")
    assert "evil" not in reply.text + str(reply.headers)


@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost.evil.example", "http://127.0.0.1.evil.example"])
async def test_no_page_of_others_is_told_that_it_may_ask(served: Served, origin: str) -> None:
    asked = {"origin": origin, "access-control-request-method": "PUT"}
    for method, headers in (("OPTIONS", asked), ("GET", {"origin": origin}), ("POST", {"origin": origin})):
        reply = await served.client.request(method, "/api/workflows", headers=headers)
        assert not [name for name in reply.headers if name.startswith("access-control-")], method
    assert reply.status_code == 403


async def test_a_cookie_that_was_planted_is_not_what_one_is_let_in_by(served: Served) -> None:
    key = (await served.key("root", "admin"))["authorization"].removeprefix("Bearer ")
    planted = {"cookie": f"{COOKIE}=planted-by-somebody", "origin": str(served.client.base_url).rstrip("/")}
    reply = await served.client.post("/api/login", json={"key": key}, headers=planted)
    assert reply.status_code == 200
    assert "planted" not in reply.headers["set-cookie"]
    assert {"HttpOnly", "Secure", "SameSite=strict"} <= set(reply.headers["set-cookie"].split("; "))
    served.client.cookies.clear()
    again = await served.client.get("/api/workflows", headers={"cookie": planted["cookie"]})
    assert again.status_code == 401


@pytest.mark.parametrize("what", BOMBS)
async def test_a_bomb_is_a_document_with_a_mistake(served: Served, what: str) -> None:
    reply = await served.client.post("/api/workflows", content=BOMBS[what])
    assert (reply.status_code, reply.json()["code"]) == (422, "workflow-invalid")
    assert len(reply.content) < 10_000, "what is said of it is no bomb either"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/..%2f..%2f..%2fapplication.py",
        "/assets/%2e%2e/%2e%2e/application.py",
        "/..%5c..%5capplication.py",
        "//evil.example/workflows",
        "/%5cevil.example",
        "/workflows/../application.py",
    ],
)
async def test_nothing_outside_is_read_and_nobody_is_sent_there(served: Served, path: str) -> None:
    reply = await served.client.get(path)
    assert reply.status_code in (200, 404)
    assert "location" not in reply.headers
    assert "ROUTERS" not in reply.text
