"""Known attacks on servers: host names, planted cookies, decompression bombs, path traversal."""

from __future__ import annotations

import asyncio
import gzip
from typing import Final

import pytest

from pointsman.server.context import COOKIE
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


@pytest.mark.parametrize(
    "host",
    [
        "localhost@evil.example",
        "evil.example:80@localhost",
        "[::1",
        "::1",
        "[::1%25lo]",
        "",
        "localhost/path",
        "localhost?",
        "localhost#",
        "localhost:",
        "localhost:x",
        "localhost:123456",
        "localhost, evil.example",
        "local host",
        "l\u00f6calhost",
        "http://localhost",
        "localhost:65536",
        "127.0.0.1:99999",
        "[::1]:70000",
    ],
)
async def test_invalid_host_header_is_a_bad_request(served: Served, host: str) -> None:
    reply = await served.client.get("/api/workflows", headers={b"host": host.encode()})
    assert (reply.status_code, reply.json()["code"]) == (400, "host-invalid")


@pytest.mark.parametrize(
    "sent", ["", "Host: localhost\r\nHost: evil.example\r\n", "Host: localhost\r\nhost: localhost\r\n"]
)
async def test_missing_or_repeated_host_header_is_a_bad_request(served: Served, sent: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.client.base_url.port)
    writer.write(f"GET /api/workflows HTTP/1.1\r\n{sent}Connection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"host-invalid" in answer


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "LOCALHOST.",
        "127.0.0.1.evil.example",
        "127.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "xn--lcalhost-n4a",
        "[::2]:80",
    ],
)
async def test_a_request_for_another_host_name_is_refused(served: Served, host: str) -> None:
    reply = await served.client.get("/api/workflows", headers={"host": host})
    assert (reply.status_code, reply.json()["code"]) == (403, "origin-refused")


@pytest.mark.parametrize("host", ["localhost", "LocalHost:80", "127.0.0.1:65535", "[::1]", "[::1]:8000"])
async def test_requests_for_the_names_of_this_machine_are_answered(served: Served, host: str) -> None:
    assert (await served.client.get("/api/workflows", headers={"host": host})).status_code == 200


async def test_a_forged_host_name_appears_in_no_response(served: Served) -> None:
    root = await served.key("root", "admin")
    headers = {"x-forwarded-host": "evil.example", "x-forwarded-proto": "https", "forwarded": "host=evil.example"}
    reply = await served.client.post("/api/workflows", content=CHAIN, headers=headers | root)
    assert (reply.status_code, reply.headers["location"]) == (201, "/api/workflows/chain")
    assert "evil" not in reply.text + str(reply.headers)


FORWARDED: Final = (
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Anything",
    "X-Real-IP",
    "Via",
    "CF-Connecting-IP",
    "CF-Ray",
    "True-Client-IP",
    "X-Original-Host",
    "X-Scheme",
    "Front-End-Https",
    "X-Varnish",
    "Tailscale-User-Login",
    "X-Amz-Cf-Id",
    "X-AppEngine-User-IP",
    "SSL-Client-Cert",
    "X-Goog-Authenticated-User-Email",
    "X-MS-Client-Principal-Name",
    "X-Auth-Request-User",
    "X-Remote-User",
    "Remote-User",
    "X-Authentik-Username",
    "X-Pomerium-Jwt-Assertion",
    "X-WebAuth-User",
    "Incap-Client-IP",
    "X-Sucuri-ClientIP",
    "X-Akamai-Edgescape",
)


@pytest.mark.parametrize("header", FORWARDED)
async def test_a_proxy_does_not_turn_remote_callers_into_local_admins(served: Served, header: str) -> None:
    headers = {header: "198.51.100.7"}
    for method, path in (("GET", "/api/settings"), ("POST", "/api/workflows"), ("POST", "/mcp")):
        reply = await served.client.request(method, path, headers=headers)
        assert (reply.status_code, reply.json()["code"]) == (403, "proxy-unknown"), (method, path)
        assert "`names` and `proxies`" in reply.json()["hint"]
    root = await served.key("root", "admin")
    assert (await served.client.get("/api/settings", headers=headers)).status_code == 401
    assert (await served.client.get("/api/settings", headers=headers | root)).status_code == 200


async def test_a_request_in_the_version_of_proxies_is_not_local(served: Served) -> None:
    """By default, nginx forwards in HTTP/1.0, with the name of the upstream as `Host` and no header of a proxy."""
    port = served.client.base_url.port
    for version, status in (("1.0", b"403"), ("1.1", b"200")):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET /api/workflows HTTP/{version}\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        answer = await reader.read()
        writer.close()
        assert answer.split(b" ")[1] == status
        assert (b"proxy-unknown" in answer) is (version == "1.0")


@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost.evil.example", "http://127.0.0.1.evil.example"])
async def test_cross_origin_requests_get_no_permission(served: Served, origin: str) -> None:
    asked = {"origin": origin, "access-control-request-method": "PUT"}
    for method, headers in (("OPTIONS", asked), ("GET", {"origin": origin}), ("POST", {"origin": origin})):
        reply = await served.client.request(method, "/api/workflows", headers=headers)
        assert not [name for name in reply.headers if name.startswith("access-control-")], method
    assert reply.status_code == 403


async def test_a_planted_cookie_grants_no_access(served: Served) -> None:
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
async def test_a_document_bomb_is_refused_as_an_invalid_document(served: Served, what: str) -> None:
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
async def test_paths_and_redirects_do_not_leave_the_server(served: Served, path: str) -> None:
    reply = await served.client.get(path)
    assert reply.status_code in (200, 404)
    assert "location" not in reply.headers
    assert "ROUTERS" not in reply.text
