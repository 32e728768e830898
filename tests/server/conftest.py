"""A real server on a free port, in the event loop of the test, and its clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2
import pytest
import uvicorn.server

from pointsman.app import Pointsman
from pointsman.auth.callers import Role
from pointsman.models.script import Script
from pointsman.server.application import make_application, make_server_context
from pointsman.server.bodies import BODY_BYTES_MAX
from pointsman.server.context import ServerContext
from pointsman.server.serving import Server, configured, listening
from pointsman.settings import Settings
from tests.patience import PATIENCE_S
from tests.server.conformance import check_answer

QUIET = Settings(delays=False)


class FrequentChecks:
    """The `asyncio` module for uvicorn, which checks every 0.1 s whether to exit: here every 10 ms."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(delay / 10)


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """One server-sent event."""

    id: str
    event: str
    data: Any


@dataclass(slots=True)
class Served:
    """A running server and a client."""

    desk: ServerContext
    client: httpx2.AsyncClient
    server: Server

    @property
    def app(self) -> Pointsman:
        return self.desk.app

    async def save(self, document: str) -> str:
        """Save a workflow and return its id."""
        reply = await self.client.post("/api/workflows", content=document)
        assert reply.status_code == 201, reply.text
        return str(reply.json()["id"])

    async def execute(self, workflow: str, input: Any = None, **more: Any) -> str:
        """Start an execution, wait until it is settled, and return its id."""
        body: dict[str, Any] = {"input": {} if input is None else input, "wait": True, **more}
        reply = await self.client.post(f"/api/workflows/{workflow}/execute", json=body)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["executionId"])

    async def act(self, execution: str, verb: str, body: Any = None, *, expect: int = 200) -> Any:
        reply = await self.client.post(f"/api/workflows/executions/{execution}/{verb}", json=body)
        assert reply.status_code == expect, reply.text
        return reply.json()

    async def read(self, execution: str) -> Any:
        reply = await self.client.get(f"/api/workflows/executions/{execution}")
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def ended(self, execution: str) -> Any:
        """Wait for the end of an execution and return its view."""
        await self.read_events(execution)
        return await self.read(execution)

    async def key(self, name: str, role: Role, *groups: str) -> dict[str, str]:
        """Return the header of a new key."""
        return {"authorization": f"Bearer {await self.desk.keys.make(name, role, groups=groups)}"}

    @asynccontextmanager
    async def stream(self, execution: str, *, after: str = "") -> AsyncGenerator[AsyncIterator[StreamedEvent], None]:
        """Open its events as a browser does."""
        headers = {"last-event-id": after} if after else {}
        address = f"/api/workflows/executions/{execution}/stream"
        async with self.client.stream("GET", address, headers=headers, timeout=PATIENCE_S) as reply:
            assert reply.status_code == 200
            assert reply.headers["content-type"].startswith("text/event-stream")
            yield events_in(reply)

    async def read_events(self, execution: str, *, after: str = "") -> list[StreamedEvent]:
        """Return all events until the stream ends."""
        async with self.stream(execution, after=after) as events:
            return [event async for event in events]


async def events_in(reply: httpx2.Response) -> AsyncIterator[StreamedEvent]:
    fields: dict[str, str] = {}
    async for line in reply.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield StreamedEvent(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            fields = {}


@asynccontextmanager
async def serving(
    store: str = "memory:",
    *,
    script: Script | None = None,
    is_local: bool = True,
    settings: Settings = QUIET,
    body_bytes_max: int = BODY_BYTES_MAX,
    model: str | None = "scripted",
) -> AsyncGenerator[Served, None]:
    """`model` answers every agent; None: each agent and the settings name their own."""
    async with (
        Pointsman(store, settings=settings, model=model, script=script) as app,
        serving_app(app, is_local=is_local, body_bytes_max=body_bytes_max) as served,
    ):
        yield served


@asynccontextmanager
async def serving_app(
    app: Pointsman, *, is_local: bool = True, body_bytes_max: int = BODY_BYTES_MAX
) -> AsyncGenerator[Served, None]:
    """Serve an open app."""
    desk = make_server_context(app, is_local=is_local)
    with listening("127.0.0.1", 0) as listener, patch.object(uvicorn.server, "asyncio", FrequentChecks()):
        application = make_application(desk, body_bytes_max=body_bytes_max)
        server = Server(configured(application), desk.disconnect)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        hooks = {"response": [check_answer]}
        async with httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S, event_hooks=hooks) as client:
            try:
                yield Served(desk, client, server)
            finally:
                server.should_exit = True
                await task
    await desk.close()


@pytest.fixture
async def served() -> AsyncGenerator[Served, None]:
    """A server on a store in memory."""
    async with serving() as one:
        yield one


@pytest.fixture
def file_store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"
