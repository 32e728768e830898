"""Caller addresses in forwarding headers count only from the proxies in the settings."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from pointsman.server.serving import Server, configured, listening
from pointsman.settings.sections import ServerSettings
from tests.patience import PATIENCE_S

SAID = {"x-forwarded-for": "198.51.100.7", "x-forwarded-proto": "https"}


async def who_calls(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the caller as the server determines it."""
    request = Request(scope)
    client = request.client.host if request.client is not None else ""
    await JSONResponse({"client": client, "scheme": request.url.scheme})(scope, receive, send)


async def asked(settings: ServerSettings) -> Any:
    with listening("127.0.0.1", 0) as listener:
        server = Server(configured(who_calls, settings), lambda: None)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
            reply = await client.get(f"http://127.0.0.1:{listener.getsockname()[1]}/", headers=SAID)
        server.should_exit = True
        await task
    return reply.json()


@pytest.mark.parametrize("proxies", [[], ["10.0.0.0/8"], ["::1/128"]])
async def test_forwarded_headers_of_unknown_senders_are_ignored(proxies: list[str]) -> None:
    settings = ServerSettings.model_validate({"proxies": proxies})
    assert await asked(settings) == {"client": "127.0.0.1", "scheme": "http"}


@pytest.mark.parametrize("proxies", [["127.0.0.1"], ["10.0.0.0/8", "127.0.0.0/8"]])
async def test_forwarded_headers_of_a_configured_proxy_are_trusted(proxies: list[str]) -> None:
    settings = ServerSettings.model_validate({"proxies": proxies})
    assert await asked(settings) == {"client": "198.51.100.7", "scheme": "https"}
