"""The HTTP/1.1 transport of providers, against servers that answer byte by byte as each test wants."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest
import trustme

from pointsman.models.http1 import CONNECTIONS_MAX, HEAD_BYTES_MAX, Http1Transport, head_of, transport_for_environment

pytestmark = pytest.mark.integration

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class RawServer:
    """Counts connections, and answers each request by a function."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.connections = 0
        self.requests: list[bytes] = []
        self.closed = asyncio.Event()
        """Set when a client has closed a connection."""
        self.url = ""
        self.tasks: set[asyncio.Task[None] | None] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.tasks.add(asyncio.current_task())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                _, _, rest = head.lower().partition(b"content-length:")
                body = await reader.readexactly(int(rest.split(b"\r\n")[0])) if rest else b""
                self.requests.append(head + body)
                await self._answer(reader, writer)
                await writer.drain()
                if writer.is_closing():
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
        finally:
            writer.close()


@asynccontextmanager
async def answering(
    answer: Answer | bytes, *, authority: trustme.CA | None = None
) -> AsyncGenerator[tuple[RawServer, httpx2.AsyncClient]]:
    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(answer, bytes)
        writer.write(answer)
        if b"content-length: 9" in answer or b"\r\n\r\n" not in answer:
            writer.close()

    made = RawServer(send if isinstance(answer, bytes) else answer)
    ours, theirs = None, None
    if authority is not None:
        ours, theirs = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.configure_trust(ours)  # pyright: ignore[reportUnknownMemberType] - untyped there
        authority.issue_cert("localhost").configure_cert(theirs)  # pyright: ignore[reportUnknownMemberType] - untyped there
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=theirs)
    host = "http://127.0.0.1" if theirs is None else "https://localhost"
    made.url = f"{host}:{server.sockets[0].getsockname()[1]}/v1/chat"
    async with httpx2.AsyncClient(transport=Http1Transport(ours)) as client:
        yield made, client
    server.close()
    await asyncio.gather(*(one for one in made.tasks if one is not None))


@pytest.mark.parametrize("turns", range(12))
async def test_a_request_that_is_cancelled_as_it_connects_leaves_no_socket(turns: int) -> None:
    async with answering(OK) as (server, client):
        request = asyncio.create_task(client.get(server.url))
        for _ in range(turns):
            await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait([request])
        del request
        gc.collect()  # The warning about an unclosed socket fails the test.


async def test_requests_one_after_another_share_a_connection() -> None:
    async with answering(OK) as (server, client):
        for _ in range(3):
            assert (await client.post(server.url, json={"a": 1})).text == "ok"
    assert server.connections == 1
    assert server.requests[0].startswith(b"POST /v1/chat HTTP/1.1\r\n")
    assert server.requests[0].endswith(b'\r\n\r\n{"a":1}')


async def test_requests_at_the_same_time_get_connections_of_their_own() -> None:
    async with answering(OK) as (server, client):
        answers = await asyncio.gather(*(client.get(server.url) for _ in range(5)))
    assert [one.text for one in answers] == ["ok"] * 5
    assert server.connections == 5


async def test_chunked_body_arrives_whole_and_keeps_the_connection() -> None:
    body = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    async with answering(body) as (server, client):
        for _ in range(2):
            assert (await client.get(server.url)).text == "abcde"
    assert server.connections == 1


async def test_body_without_length_ends_with_its_connection() -> None:
    async def until_the_end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        writer.close()

    async with answering(until_the_end) as (server, client):
        assert (await client.get(server.url)).text == "all of it"
        assert (await client.get(server.url)).text == "all of it"
    assert server.connections == 2


async def test_tls_connections_are_shared_and_their_certificates_are_checked() -> None:
    authority = trustme.CA()
    async with answering(OK, authority=authority) as (server, client):
        for _ in range(2):
            assert (await client.post(server.url, content=b"x" * 300_000)).text == "ok"
        assert server.connections == 1
        with pytest.raises(httpx2.ConnectError, match="not valid for"):
            await client.get(server.url.replace("localhost", "127.0.0.1"))
        async with httpx2.AsyncClient(transport=Http1Transport()) as other:
            with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await other.get(server.url)


async def test_informational_responses_are_skipped() -> None:
    async with answering(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK) as (server, client):
        found = await client.get(server.url)
    assert (found.status_code, found.text, "link" in found.headers) == (200, "ok", False)


async def test_body_that_is_cut_off_is_an_error() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc") as (server, client):
        with pytest.raises(httpx2.RemoteProtocolError, match="before the body was complete"):
            await client.get(server.url)


async def test_connection_that_ends_without_a_response_is_an_error() -> None:
    async with answering(b"") as (server, client):
        with pytest.raises(httpx2.RemoteProtocolError, match="without sending a response"):
            await client.get(server.url)


@pytest.mark.parametrize(
    "answer",
    [
        b"220 smtp.example ESMTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * (HEAD_BYTES_MAX + 1) + b"\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    ],
)
async def test_response_that_is_not_plain_http_is_an_error(answer: bytes) -> None:
    async with answering(answer) as (server, client):
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get(server.url)


async def test_bytes_behind_a_response_never_answer_the_next_request() -> None:
    async with answering(OK + b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad") as (server, client):
        assert [(await client.get(server.url)).text for _ in range(2)] == ["ok", "ok"]
    assert server.connections == 2


async def test_connection_that_the_server_closed_is_not_used_again() -> None:
    async def once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK.replace(b"content-length", b"connection: close\r\ncontent-length"))
        writer.close()

    async with answering(once) as (server, client):
        for _ in range(2):
            assert (await client.get(server.url)).text == "ok"
    assert server.connections == 2


async def test_response_that_is_not_read_to_its_end_closes_its_connection() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc") as (server, client):
        async with client.stream("GET", server.url) as found:
            assert await anext(found.aiter_raw()) == b"abc"
        await asyncio.wait_for(server.closed.wait(), 10)


async def test_cancelled_request_closes_its_connection() -> None:
    asked = asyncio.Event()

    async def never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.readexactly(1)

    async with answering(never) as (server, client):
        task = asyncio.create_task(client.get(server.url))
        await asyncio.wait_for(asked.wait(), 10)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await asyncio.wait_for(server.closed.wait(), 10)


async def test_server_that_sends_nothing_is_a_read_timeout() -> None:
    async def never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)

    async with answering(never) as (server, client):
        with pytest.raises(httpx2.ReadTimeout):
            await client.get(server.url, timeout=httpx2.Timeout(10, read=0.01))


async def test_large_bodies_pass_in_both_directions() -> None:
    big = bytes(range(256)) * 20_000

    async def echo(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = server.requests[-1].partition(b"\r\n\r\n")[2]
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    async with answering(echo) as (server, client):
        assert (await client.post(server.url, content=big)).content == big
        assert (await client.post(server.url, content=big)).content == big
    assert server.connections == 1


async def test_body_of_unknown_length_is_sent_in_chunks() -> None:
    async def parts() -> AsyncGenerator[bytes]:
        for part in (b"one", b"", b"two"):
            yield part

    async def read_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.requests.append(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(OK)

    async with answering(read_chunks) as (server, client):
        assert (await client.post(server.url, content=parts())).text == "ok"
    assert server.requests[-1] == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"


async def test_address_without_a_server_is_a_connect_error() -> None:
    async with answering(OK) as (server, _):
        pass
    async with httpx2.AsyncClient(transport=Http1Transport()) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(server.url)


async def test_requests_beyond_the_limit_of_connections_wait_for_one() -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def together(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(server.requests) == CONNECTIONS_MAX:
            arrived.set()
        await go_on.wait()
        writer.write(OK)

    async with answering(together) as (server, client):
        others = [asyncio.create_task(client.get(server.url, timeout=30)) for _ in range(CONNECTIONS_MAX)]
        await asyncio.wait_for(arrived.wait(), 30)
        with pytest.raises(httpx2.PoolTimeout):
            await client.get(server.url, timeout=httpx2.Timeout(30, pool=0.01))
        waiting = asyncio.create_task(client.get(server.url, timeout=30))
        go_on.set()
        assert {one.text for one in await asyncio.gather(waiting, *others)} == {"ok"}


def test_line_breaks_in_headers_are_refused() -> None:
    for value in (b"a\r\nx: y", b"a\nb", b"a\rb", b"a\0b"):
        with pytest.raises(httpx2.LocalProtocolError):
            head_of(httpx2.Request("GET", "http://x/", headers=[(b"a", value)]))


def test_proxies_of_the_environment_are_left_to_httpx2(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(transport_for_environment(), Http1Transport)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert transport_for_environment() is None
