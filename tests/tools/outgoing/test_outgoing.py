"""A call reaches only addresses that the operator allows, whatever names, redirects and answers contain, and it always
ends."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress

import pytest

from pointsman.tools.egress.addresses import (
    AddressRefused,
    AddressUnreachable,
    AnswerTooLarge,
    AnswerUnreadable,
    RedirectRefused,
    is_outside,
)
from pointsman.tools.egress.http_calls import EgressPolicy, HttpCall, Outgoing
from tests.tools.outgoing.peer import LOOPBACK, Names, answer, inward, peering

INSIDE = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254"),
    *("168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1"),
    *("192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a00:1", "64:ff9b:1::1"),
    *("100::1", "2001::1", "2001:db8::1", "2002:a00:1::", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1"),
    *("fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1"),
)
OUTSIDE = (
    "1.1.1.1",
    "100.63.255.255",
    "172.32.0.1",
    "192.0.1.1",
    "2606:4700::1111",
    "64:ff9b::101:101",
    "2002:101:101::",
)


@pytest.mark.parametrize("text", INSIDE)
def test_an_internal_address_is_recognised_in_every_notation(text: str) -> None:
    assert not is_outside(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", OUTSIDE)
def test_a_public_address_is_not_internal(text: str) -> None:
    assert is_outside(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", INSIDE)
async def test_a_host_with_an_internal_address_is_refused(text: str) -> None:
    names = Names(example_org=[[text]])
    with pytest.raises(AddressRefused, match="internal networks are blocked"):
        await Outgoing(resolve=names).send(HttpCall(method="GET", url="https://example.org/"))
    assert names.looked_up == ["example.org"]


async def test_one_internal_address_among_many_suffices_to_refuse() -> None:
    names = Names(example_org=[["1.1.1.1", "2606:4700::1111", "10.0.0.1"]])
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
        await Outgoing(resolve=names).send(HttpCall(method="GET", url="https://example.org/"))


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.org/", "file:///etc/passwd", "gopher://example.org/", "javascript:alert(1)", "//example.org/"),
        *("http://user@example.org/", "http://user:word@example.org/", "http://example.org@127.0.0.1/"),
        *("http://example.org:22/", "http://example.org:8080/", "https://", "https:///x", "nothing", "http://[::1/"),
        "http://example.org:99999/",
    ],
)
async def test_an_invalid_web_address_is_refused_before_any_lookup(url: str) -> None:
    names = Names(example_org=[["1.1.1.1"]])
    with pytest.raises(AddressRefused):
        await Outgoing(resolve=names).send(HttpCall(method="GET", url=url))
    assert names.looked_up == []


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1", "017700000001", "localhost"])
async def test_other_spellings_of_loopback_are_loopback(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(host: str, *_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(2, 1, 6, "", ("127.0.0.1", 80))]

    monkeypatch.setattr("socket.getaddrinfo", answers)
    with pytest.raises(AddressRefused):
        await Outgoing().send(HttpCall(method="GET", url=f"http://{host}/"))


@pytest.mark.integration
async def test_the_checked_address_is_the_connected_one() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b"here")
        names = Names(rebinding_example=[["127.0.0.1"], ["169.254.169.254"]])
        found = await inward(names).send(HttpCall(method="GET", url=f"http://rebinding.example:{peer.port}/"))
        assert (found.status, found.body) == (200, b"here")
        assert names.looked_up == ["rebinding.example"]
        assert f"Host: rebinding.example:{peer.port}" in peer.asked[0]
        with pytest.raises(AddressRefused, match=r"169\.254\.169\.254"):
            await inward(names).send(HttpCall(method="GET", url=f"http://rebinding.example:{peer.port}/"))


@pytest.mark.integration
@pytest.mark.parametrize(
    "to",
    ["http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/", "http://inside.example/", "ftp://1.1.1.1/"],
)
async def test_a_redirect_passes_the_same_checks(to: str) -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b"", f"location: {to}", status="302 Found")
        with pytest.raises(AddressRefused):
            await inward(Names(inside_example=[["10.0.0.1"]])).send(HttpCall(method="GET", url=f"{peer.url}/"))
        assert len(peer.asked) == 1


@pytest.mark.integration
async def test_a_redirect_to_another_host_drops_credentials() -> None:
    async with peering() as one, peering() as other:
        one.answers["/"] = answer(b"", f"location: {other.url}/there", status="307 Temporary Redirect")
        other.answers["/there"] = answer(b"there")
        headers = {
            "x-api-key": "hidden",
            "authorization": "Bearer hidden",
            "cookie": "a=hidden",
            "accept": "text/plain",
        }
        found = await inward().send(HttpCall(method="GET", url=f"{one.url}/", headers=headers))
        assert (found.body, found.url) == (b"there", f"{other.url}/there")
        assert "hidden" in one.asked[0]
        assert "hidden" not in other.asked[0]
        assert "accept: text/plain" in other.asked[0].lower()
        with pytest.raises(RedirectRefused, match="another host"):
            await inward().send(HttpCall(method="POST", url=f"{one.url}/", body=b"hidden"))
        assert len(other.asked) == 1


@pytest.mark.integration
async def test_a_redirect_on_the_same_host_is_the_same_call() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b"", "location: /there", "set-cookie: a=b", status="308 Permanent Redirect")
        peer.answers["/there"] = answer(b"there")
        call = HttpCall(method="POST", url=f"{peer.url}/", headers={"x-api-key": "mine"}, body=b"sent")
        assert (await inward().send(call)).body == b"there"
        assert "x-api-key: mine" in peer.asked[1]
        assert peer.asked[1].endswith("sent")
        assert "a=b" not in peer.asked[1]


@pytest.mark.integration
async def test_the_number_of_redirects_is_limited() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b"", "location: /", status="302 Found")
        with pytest.raises(RedirectRefused, match="more than 4"):
            await inward().send(HttpCall(method="GET", url=f"{peer.url}/"))
        assert len(peer.asked) == 5


@pytest.mark.integration
async def test_a_compressed_response_is_refused_and_not_decompressed() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(gzip.compress(b"\0" * 50_000_000), "content-encoding: gzip")
        with pytest.raises(AnswerUnreadable, match="gzip"):
            await inward().send(HttpCall(method="GET", url=f"{peer.url}/", headers={"accept-encoding": "gzip"}))
        assert "accept-encoding: identity" in peer.asked[0].lower()


@pytest.mark.integration
async def test_an_endless_response_is_cut_at_its_limit() -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            sent += 65_536
            await writer.drain()

    async with peering() as peer:
        peer.answers["/"] = endless
        with pytest.raises(AnswerTooLarge, match="100000"):
            await inward().send(HttpCall(method="GET", url=f"{peer.url}/"))
    assert sent < 50_000_000


@pytest.mark.integration
@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nx-", b"HTTP/1.1 200 OK\r\ncontent-length: 90000000\r\n\r\n"])
async def test_a_trickling_response_times_out(head: bytes) -> None:
    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)  # Slower than any limit of bytes, faster than any limit of one read.

    async with peering() as peer:
        peer.answers["/"] = dripping
        with pytest.raises(AddressUnreachable, match="within"):
            await inward(timeout_s=0.2).send(HttpCall(method="GET", url=f"{peer.url}/"))


@pytest.mark.integration
async def test_a_silent_server_times_out() -> None:
    over = asyncio.Event()

    async def silent(writer: asyncio.StreamWriter) -> None:
        await over.wait()

    async with peering() as peer:
        peer.answers["/"] = silent
        with pytest.raises(AddressUnreachable, match="within"):
            await inward(timeout_s=0.2).send(HttpCall(method="GET", url=f"{peer.url}/"))
        over.set()


@pytest.mark.integration
@pytest.mark.parametrize("bytes_", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort"])
async def test_a_truncated_response_is_a_failure(bytes_: bytes) -> None:
    async with peering() as peer:
        peer.answers["/"] = bytes_
        with pytest.raises(AddressUnreachable):
            await inward().send(HttpCall(method="GET", url=f"{peer.url}/"))


@pytest.mark.integration
async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with peering() as peer:
        peer.answers["/"] = answer(b"direct")
        assert (await inward().send(HttpCall(method="GET", url=f"{peer.url}/"))).body == b"direct"


@pytest.mark.integration
async def test_an_operator_can_allow_exactly_one_network() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b"meant")
        rules = EgressPolicy(networks=LOOPBACK, ports=frozenset({80, 443, peer.port}))
        assert (await Outgoing(rules).send(HttpCall(method="GET", url=f"{peer.url}/"))).body == b"meant"
        with pytest.raises(AddressRefused):
            await Outgoing(rules).send(HttpCall(method="GET", url="http://10.0.0.1/"))
        with pytest.raises(AddressRefused, match="port 22"):
            await Outgoing(rules).send(HttpCall(method="GET", url="http://127.0.0.1:22/"))


async def test_plain_calls_are_refused_where_encryption_is_required() -> None:
    with pytest.raises(AddressRefused, match="not encrypted"):
        await Outgoing(EgressPolicy(plain=False)).send(HttpCall(method="GET", url="http://1.1.1.1/"))
