"""An app with a clock that the test sets, which can be closed and opened again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from pointsman.app import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject


class HandClock:
    """A clock that a test sets."""

    def __init__(self, at: str = "2026-01-01T00:00:00+00:00") -> None:
        self.at = seconds(at)
        self._moved = asyncio.Event()

    def now(self) -> float:
        return self.at

    async def sleep_until(self, at: float) -> None:
        while self.at < at:
            moved = self._moved
            await moved.wait()

    def set(self, at: str) -> None:
        self.move(seconds(at) - self.at)

    def move(self, by_s: float) -> None:
        self.at += by_s
        self._moved.set()
        self._moved = asyncio.Event()


def seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


@asynccontextmanager
async def opened(path: Path, clock: HandClock, *, settings: Settings | None = None) -> AsyncGenerator[Pointsman, None]:
    """Open an app on the file; opening it again is a restart."""
    url = f"sqlite:///{path / 'store.db'}"
    async with Pointsman(url, clock=clock, settings=settings if settings is not None else Settings()) as app:
        yield app


def noting(id: str = "report", **more: Json) -> Workflow:
    """Return a workflow that ends at once with its input."""
    nodes: list[Json] = [{"id": "note", "type": "transform", "config": {"set": {"seen": "input"}}}]
    return Workflow.of({"id": id, "nodes": nodes, "edges": [], **more})


def asking(id: str = "ask", **more: Json) -> Workflow:
    """Return a workflow that waits for a person."""
    nodes: list[Json] = [{"id": "gate", "type": "human", "config": {"message": "go on?", "options": ["approve"]}}]
    return Workflow.of({"id": id, "nodes": nodes, "edges": [], **more})


def listening(id: str = "listen", *, match: str | None = None, event: str = "paid", **more: Json) -> Workflow:
    """Return a workflow that waits for an event and ends with its data."""
    config: JsonObject = {"event": event} if match is None else {"event": event, "match": match}
    nodes: list[Json] = [{"id": "wait", "type": "wait", "config": config}]
    return Workflow.of({"id": id, "nodes": nodes, "edges": [], "output": {"got": "nodes.wait.data"}, **more})
