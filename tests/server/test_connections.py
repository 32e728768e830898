"""Bytes that a connection sends before its caller is known: raw, as HTTP clients do not send them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from ipaddress import IPv4Network
from typing import Final

import pytest

from pointsman.auth.rate_limiter import TooManyRequests
from pointsman.operations.logs import LogThrottle
from pointsman.server import connections
from pointsman.server.bodies import BYTES_OF, Unchecked
from pointsman.server.connections import ConnectionTable
from pointsman.server.serving import ACCEPT_FAILED, ACCEPT_LOG, exception_handler
from tests.patience import PATIENCE_S
from tests.server import documented_operations
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN

HOST: Final = "host: localhost\r\n"
CLOSE: Final = f"{HOST}connection: close\r\n\r\n"


@pytest.fixture(autouse=True)
def _short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LINGER_S", 0.2)


@pytest.fixture
async def keyed() -> AsyncGenerator[Served, None]:
    """Yield a server that requires keys."""
    async with serving(is_local=False) as one:
        await one.key("root", "admin")
        yield one


async def opened(served: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", served.client.base_url.port)


async def answered(served: Served, sent: str | bytes) -> bytes:
    """Return the answer of a server until it closes the connection."""
    reader, writer = await opened(served)
    writer.write(sent if isinstance(sent, bytes) else sent.encode())
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    return answer


def first(answer: bytes) -> tuple[int, str]:
    """Return status and body of the first answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body.decode()


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        ("GET / HTTP/1.1\r\n" + HOST + "a: b\r\n" * 200, 431, "head-too-large"),
        ("GET / HTTP/1.1\r\n" + HOST + "a:b\r\n" * 50_000, 431, "head-too-large"),
        ("GET / HTTP/1.1\r\n" + HOST + "a: " + "b" * 40_000, 431, "head-too-large"),
        ("GET / HTTP/1.1\r\n" + HOST + "b" * 40_000, 431, "head-too-large"),
        ("GET / HTTP/1.1\r\n" + HOST + "a: " + "b" * 17_000 + "\r\nc: " + "d" * 17_000, 431, "head-too-large"),
        ("GET /" + "b" * 30_000, 414, "address-too-long"),
        ("GET /?" + "b" * 300_000, 414, "address-too-long"),
        ("\r\n" * 30_000, 431, "head-too-large"),
        ("\x16\x03\x01 TLS\r\n\r\n", 400, "request-malformed"),
        ("GET / HTTP/3.7\r\n\r\n", 400, "request-malformed"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "request-malformed"),
        ("CONNECT evil.example:443 HTTP/1.1\r\n" + CLOSE, 400, "request-malformed"),
        ("GET http://evil.example/ HTTP/1.1\r\n" + CLOSE, 400, "request-malformed"),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, str) else None,
)
async def test_a_head_over_the_limits_is_refused_and_closes_the_connection(
    served: Served, head: str, status: int, code: str
) -> None:
    found, body = first(await answered(served, head))
    assert (found, code in body) == (status, True)


async def test_the_head_of_an_answer_is_sent_in_one_piece_with_its_body(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []

    def write(transport: connections.ClientTransport, data: bytes) -> None:
        write_all(transport, data)
        written.append(data)

    write_all = connections.ClientTransport.send_now
    monkeypatch.setattr(connections.ClientTransport, "send_now", write)
    assert first(await answered(served, f"GET /health HTTP/1.1\r\n{CLOSE}"))[0] == 200
    (whole,) = written
    assert whole.startswith(b"HTTP/1.1 200")
    assert whole.endswith(b"}")


SMUGGLED: Final = {
    "two lengths": "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "equal lengths": "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "a list of lengths": "Content-Length: 3, 3\r\n\r\nabc",
    "length and chunks": "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "chunked is not last": "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "unknown encoding": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "space before colon": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a line goes on": "X: a\r\n b\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "negative length": "Content-Length: -3\r\n\r\n",
    "length with a sign": "Content-Length: +3\r\n\r\nabc",
    "hexadecimal length": "Content-Length: 0x3\r\n\r\nabc",
    "huge length": "Content-Length: 99999999999999999999999\r\n\r\n",
    "bare line feeds": "Content-Length: 0\n\n",
    "carriage return in a value": "X: a\rTransfer-Encoding: chunked\r\n\r\n",
    "null in a value": "X: a\0b\r\n\r\n",
    "chunk without size": "Transfer-Encoding: chunked\r\n\r\nx\r\n",
    "huge chunk size": "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
}


@pytest.mark.parametrize("what", SMUGGLED)
async def test_ambiguous_framing_is_refused_and_closes_the_connection(served: Served, what: str) -> None:
    request = f"POST /api/login HTTP/1.1\r\n{HOST}Content-Type: application/json\r\n{SMUGGLED[what]}"
    follow = f"GET /api/me HTTP/1.1\r\n{CLOSE}"
    answer = await answered(served, request + follow)
    assert first(answer)[0] == 400, answer[:200]
    assert len(re.findall(rb"HTTP/1\.1 \d", answer)) == 1, "nothing behind it is a request"


async def test_trailers_are_not_headers(keyed: Served) -> None:
    key = (await keyed.key("ada", "viewer"))["authorization"]
    body = f"POST /api/logout HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: {key}\r\n\r\n"
    answer = await answered(keyed, body + f"GET /api/me HTTP/1.1\r\n{CLOSE}")
    assert answer.count(b"HTTP/1.1 401 ") == 2


@pytest.mark.parametrize(
    "body",
    ["1;" + "a=b;" * 600_000, "1\r\na\r\n0\r\n" + "a: b\r\n" * 500, "0\r\na: " + "b" * 2_000_000],
    ids=["extensions", "trailers", "one trailer"],
)
async def test_a_body_of_mere_framing_is_refused(served: Served, body: str) -> None:
    head = f"POST /api/login HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n"
    status, _ = first(await answered(served, head + body))
    assert status in (400, 431)


async def test_a_body_of_small_chunks_is_read(served: Served) -> None:
    body = '{"key": "pm_none"}'
    chunks = "".join(f"1\r\n{one}\r\n" for one in body) + "0\r\n\r\n"
    head = f"POST /api/login HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    status, said = first(await answered(served, f"{head}Connection: close\r\n\r\n{chunks}"))
    assert (status, "not-signed-in" in said) == (401, True)


async def test_pipelined_requests_over_the_limit_are_refused_after_the_answers(served: Served) -> None:
    answer = await answered(served, f"GET /health HTTP/1.1\r\n{HOST}\r\n" * 5_000)
    assert answer.count(b"HTTP/1.1 200 ") == connections.PIPELINED_MAX + 1
    last = answer[answer.rindex(b"HTTP/1.1 ") :]
    assert last.startswith(b"HTTP/1.1 400 ")
    assert b"more than 32 requests wait on this connection" in last
    some = f"GET /health HTTP/1.1\r\n{HOST}\r\n" * 10 + f"GET /health HTTP/1.1\r\n{CLOSE}"
    assert (await answered(served, some)).count(b"HTTP/1.1 200 ") == 11


@pytest.mark.parametrize("protocol", ["websocket", "h2c", "anything"])
async def test_upgrade_is_ignored_without_body_and_refused_with_one(served: Served, protocol: str) -> None:
    asked = (
        f"{HOST}Connection: upgrade\r\nUpgrade: {protocol}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YQ==\r\n"
    )
    reader, writer = await opened(served)
    writer.write(f"GET /health HTTP/1.1\r\n{asked}\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    writer.close()
    smuggled = f"GET /api/me HTTP/1.1\r\n{CLOSE}"
    sent = f"POST /api/login HTTP/1.1\r\n{asked}Content-Length: {len(smuggled)}\r\n\r\n{smuggled}"
    answer = await answered(served, sent)
    assert first(answer)[0] == 400
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_late_heads_and_slow_bodies_time_out(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    monkeypatch.setattr(connections, "BODY_S", 0.3)
    monkeypatch.setattr(connections, "TICK_S", 0.05)
    began = asyncio.get_running_loop().time()
    half = f"GET /health HTTP/1.1\r\n{HOST}x"
    body = f"POST /api/login HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    silent, late, slow = await asyncio.gather(*(answered(served, one) for one in ("", half, body)))
    assert silent == b""
    assert [first(one)[0] for one in (late, slow)] == [408, 408]
    reader, writer = await opened(served)
    for _ in range(200):
        with suppress(OSError):
            writer.write(b"G" if _ == 0 else b"E")
            await writer.drain()
        if reader.at_eof():
            break
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1_000), 0.05)
    assert reader.at_eof(), "a byte now and then does not extend the time"
    writer.close()
    assert asyncio.get_running_loop().time() - began < PATIENCE_S


OPERATIONS: Final = [
    "POST /api/workflows",
    "PUT /api/workflows/chain",
    "POST /api/workflows/chain/execute",
    "POST /api/workflows/chain/execute/files",
    "POST /api/workflows/executions/import",
    "POST /api/workflows/check",
    "POST /v1/chat/completions",
    "POST /v1/responses",
    "POST /run/chain",
    "POST /mcp",
]


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_key_is_required_before_the_body_is_read(keyed: Served, operation: str) -> None:
    head = f"{operation} HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nContent-Length: 63000000\r\n"
    answer = await answered(keyed, f"{head}Expect: 100-continue\r\n\r\n")
    assert first(answer)[0] in (401, 404)
    assert b"100 Continue" not in answer
    assert b"\r\nconnection: close\r\n" in answer


async def test_an_answer_before_the_body_ends_the_connection(keyed: Served) -> None:
    """A client that waited for `100 Continue` sends its next request where the server expects the body."""
    head = f"POST /api/workflows HTTP/1.1\r\n{HOST}Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
    reader, writer = await opened(keyed)
    writer.write(head.encode())
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.write(f"GET /health HTTP/1.1\r\n{CLOSE}".encode())
        answer += await reader.read()
    writer.close()
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_connection_stays_open_after_the_refusal_of_a_complete_request(keyed: Served) -> None:
    sent = f"POST /api/workflows HTTP/1.1\r\n{HOST}Content-Length: 2\r\n\r\n{{}}GET /health HTTP/1.1\r\n{CLOSE}"
    answer = await answered(keyed, sent)
    assert (answer.count(b"HTTP/1.1 401 "), answer.count(b"HTTP/1.1 200 ")) == (1, 1)


async def test_the_role_is_checked_before_the_body_is_read(keyed: Served) -> None:
    key = (await keyed.key("ada", "viewer"))["authorization"]
    for operation in ("POST /api/workflows", "POST /api/workflows/executions/import"):
        head = f"{operation} HTTP/1.1\r\n{HOST}Authorization: {key}\r\nContent-Length: 6300000\r\n\r\n"
        status, said = first(await answered(keyed, head))
        assert (status, "not-allowed" in said) == (403, True)


async def test_the_body_limit_depends_on_the_operation(keyed: Served) -> None:
    root = (await keyed.key("ada", "admin"))["authorization"]
    await keyed.client.post("/api/workflows", content=CHAIN, headers={"authorization": root})
    for operation, most in (
        ("POST /api/login", 64_000),
        ("POST /api/webhooks/none", 1_000_000),
        ("POST /api/workflows/executions/exec-none/pause", 2_000_000),
        ("POST /api/workflows", 16 * 1024 * 1024),
        ("POST /api/workflows/chain/execute", 64_000_000),
        ("POST /mcp", 16 * 1024 * 1024),
    ):
        head = f"{operation} HTTP/1.1\r\n{HOST}Authorization: {root}\r\nContent-Type: application/json\r\n"
        status, said = first(await answered(keyed, f"{head}Content-Length: {most + 1}\r\n\r\n"))
        assert (status, "body-too-large" in said) == (413, True), operation
        assert str(most) in said


async def test_a_body_with_too_many_values_is_refused(served: Served) -> None:
    await served.save(CHAIN)
    body = b'{"input": {"a": [' + b"1," * 250_001 + b"1]}}"
    headers = {"content-type": "application/json"}
    reply = await served.client.post("/api/workflows/chain/execute", content=body, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (400, "body-invalid")
    text = b'{"input": {"a": "' + b"[,{," * 500_000 + b'"}}'
    reply = await served.client.post("/api/workflows/chain/execute", content=text, headers=headers)
    assert reply.status_code == 202, "what stands in a text is not a value"


def test_body_limits_name_existing_operations() -> None:
    there = {one.name for one in documented_operations.OPERATIONS}
    assert set(BYTES_OF) <= there


async def test_a_client_that_is_still_sending_receives_the_refusal(keyed: Served) -> None:
    for _ in range(20):
        reader, writer = await opened(keyed)
        head = f"POST /api/workflows HTTP/1.1\r\n{HOST}Content-Length: 500000\r\n\r\n"
        writer.write(head.encode() + b"x" * 500_000)
        with suppress(OSError):
            await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
        writer.close()


class OpenConnection:
    """A connection in the table."""

    def __init__(self, address: str = "198.51.100.7", *, is_admitted: bool = False) -> None:
        self.address = address
        self.is_admitted = is_admitted
        self.is_given_up = False

    def give_up(self) -> None:
        self.is_given_up = True


def test_a_new_connection_replaces_the_longest_idle_one() -> None:
    table = ConnectionTable(3)
    first_, second, third, fourth = OpenConnection(), OpenConnection(), OpenConnection(), OpenConnection()
    assert all(table.add(one) for one in (first_, second, third))
    table.waits(first_)
    assert table.add(fourth)
    assert [one.is_given_up for one in (first_, second, third, fourth)] == [False, True, False, False]


def test_connections_without_a_key_are_closed_before_those_of_callers() -> None:
    table = ConnectionTable(2)
    caller, stranger, other = OpenConnection(), OpenConnection(), OpenConnection()
    assert table.add(caller)
    assert table.add(stranger)
    caller.is_admitted = True
    assert table.add(other)
    assert (caller.is_given_up, stranger.is_given_up) == (False, True)


def test_busy_connections_are_not_closed() -> None:
    table = ConnectionTable(1)
    busy, late = OpenConnection(), OpenConnection()
    assert table.add(busy)
    table.works(busy)
    assert not table.add(late)
    table.remove(late)
    table.remove(busy)
    assert table.add(OpenConnection())


def test_one_address_gets_a_share_of_the_connections() -> None:
    table = ConnectionTable(100, most_per_address=2, proxies=(IPv4Network("10.0.0.0/8"),))
    assert [table.add(OpenConnection("198.51.100.7")) for _ in range(3)] == [True, True, False]
    assert [table.add(OpenConnection("198.51.100.8")) for _ in range(2)] == [True, True]
    assert all(table.add(OpenConnection(one)) for one in ["127.0.0.1"] * 5 + ["10.1.2.3"] * 5)


async def test_bodies_without_a_key_share_bounded_memory() -> None:
    unchecked = Unchecked(most=10)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"123456", "more_body": False}

    held = await unchecked.read(receive)
    with pytest.raises(TooManyRequests):
        await unchecked.read(receive)
    unchecked.release(held)
    assert await unchecked.read(receive) == b"123456"


def test_log_lines_caused_by_outsiders_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    throttle = LogThrottle(each=2, period_s=60.0, clock=lambda: now)
    with caplog.at_level(logging.WARNING, "pointsman"):
        for _ in range(1_000):
            throttle.say(logging.WARNING, "http.refused", {"code": "a"})
        throttle.say(logging.WARNING, "http.refused", {"code": "b"})
        now = 61.0
        throttle.say(logging.WARNING, "http.refused", {"code": "a"})
    assert len(caplog.records) == 4
    assert getattr(caplog.records[-1], "told", None) == {"code": "a", "omitted": 998}


async def test_failed_accepts_are_logged_once_and_other_errors_reach_the_loop(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ACCEPT_LOG, "_kinds", {})
    others: list[object] = []
    handle = exception_handler(lambda loop, context: others.append(context))
    with caplog.at_level(logging.ERROR, "pointsman"):
        for _ in range(2_000):
            handle(
                asyncio.get_running_loop(), {"message": ACCEPT_FAILED, "exception": OSError(24, "Too many open files")}
            )
        handle(asyncio.get_running_loop(), {"message": "other"})
    assert len(caplog.records) == 1
    assert others == [{"message": "other"}]


async def test_answers_reach_a_slow_reader_in_parts(served: Served) -> None:
    reader, writer = await opened(served)
    writer.write(f"GET /api/openapi.json HTTP/1.1\r\n{CLOSE}".encode())
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
        while more := await reader.read():
            answer += more
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head.lower()
