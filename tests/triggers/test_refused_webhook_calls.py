"""Refused webhook calls: the store lists a limited number of them for all processes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pointsman.app import Pointsman
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.triggers.webhooks import HELD_S, KIND, REFUSED_KEPT, WebhookRefused
from tests.installation import noting

pytestmark = pytest.mark.integration

HOOKED = noting(triggers=[{"id": "hook", "type": "webhook", "path": "issues", "secret": "whsec-0123456789abcdef"}])


def opened(path: Path) -> Pointsman:
    return Pointsman(f"sqlite:///{path / 'store.db'}", settings=Settings(delays=False), clock=VirtualClock())


async def forge(app: Pointsman, *paths: str) -> None:
    for path in paths:
        with pytest.raises(WebhookRefused):
            await app.webhook(path, b"{}", {})


async def kept(app: Pointsman, path: str = "issues") -> int | None:
    """Return the number in the store; None: no entry."""
    entry = await app.store.entries.find(KIND, path)
    if entry is None:
        return None
    assert isinstance(entry.value, list)
    return len(entry.value)


async def until(app: Pointsman, many: int) -> None:
    """Wait until the store has that many. Threads write in real time: another thread gets a turn before virtual time
    advances."""
    while await kept(app) != many:
        await asyncio.to_thread(lambda: None)
        await app.clock.sleep_until(app.clock.now() + HELD_S)


def test_another_process_shows_recently_refused_webhook_calls(tmp_path: Path) -> None:
    async def run() -> int | None:
        async with opened(tmp_path) as here, opened(tmp_path) as there:
            await here.save(HOOKED)
            await forge(here, "issues", "issues")
            found = await kept(there)
            await until(there, 2)
            await forge(here, "issues")
            await until(there, 3)
            return found

    assert run_virtually(run()) is None, "not with the call, or it would tell that the path exists"


def test_refused_calls_survive_a_restart_up_to_their_bound(tmp_path: Path) -> None:
    async def run() -> tuple[list[int | None], int]:
        async with opened(tmp_path) as app:
            await app.save(HOOKED)
            await forge(app, *["issues"] * 30, *(f"guess-{number}" for number in range(30)))
        async with opened(tmp_path) as app:
            entries = await app.store.entries.list(KIND)
            return [await kept(app), await kept(app, "guess-1")], len(entries)

    assert run_virtually(run()) == ([REFUSED_KEPT, None], 1)


def test_refused_calls_of_a_deleted_webhook_are_not_written(tmp_path: Path) -> None:
    async def run() -> int | None:
        async with opened(tmp_path) as app:
            await app.save(HOOKED)
            await forge(app, "issues")
            await app.triggers.drop(HOOKED.definition.id)
            await app.clock.sleep_until(app.clock.now() + HELD_S + 1)
            return await kept(app)

    assert run_virtually(run()) is None


def test_a_call_refused_while_others_are_written_is_written_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> int | None:
        async with Pointsman("memory:", settings=Settings(delays=False), clock=VirtualClock()) as app:
            await app.save(HOOKED)
            entries = app.store.entries
            write = entries.put

            async def write_slowly(*args: Any, **options: Any) -> int:
                monkeypatch.setattr(entries, "put", write)
                await forge(app, "issues")
                return await write(*args, **options)

            monkeypatch.setattr(entries, "put", write_slowly)
            await forge(app, "issues")
            await app.clock.sleep_until(app.clock.now() + 3 * HELD_S)
            return await kept(app)

    assert run_virtually(run()) == 2
