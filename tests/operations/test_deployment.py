"""Findings of `doctor` about a deployment: readable files, keys without expiry, proxies, leftover files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pointsman.app import Pointsman
from pointsman.auth.keys import Keys
from pointsman.auth.people import Logins
from pointsman.operations.health import HealthFinding, deployment
from pointsman.settings import Settings
from pointsman.values import Instant, Seconds
from tests.installation import HandClock, asking

pytestmark = pytest.mark.integration

DAY_S = 86_400.0


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def installed(tmp_path: Path, clock: HandClock, **settings: Any) -> Pointsman:
    return Pointsman(f"sqlite:///{tmp_path / 'store.db'}", settings=Settings.model_validate(settings), clock=clock)


async def found(app: Pointsman) -> dict[str, HealthFinding]:
    return {one.code: one async for one in deployment(app.context) if one.code != "open-file"}


async def test_keys_without_expiry_and_expired_keys_are_reported(tmp_path: Path) -> None:
    clock = HandClock()
    async with installed(tmp_path, clock) as app:
        assert await found(app) == {}
        keys = Keys(app.store.entries, app.clock)
        await keys.make("ada", "admin")
        await keys.make("bo", "viewer", expires=Instant(clock.now() + DAY_S))
        assert "ada" in (await found(app))["endless-keys"].message
        clock.move(2 * DAY_S)
        told = await found(app)
        assert ("bo" in told["expired-keys"].message, "bo" in told["endless-keys"].message) == (True, False)


@pytest.mark.parametrize(
    ("server", "codes"),
    [
        ({}, set[str]()),
        ({"host": "0.0.0.0"}, {"no-tls"}),
        ({"names": ["flows.example.org"]}, {"proxy-unknown"}),
        ({"names": ["flows.example.org"], "proxies": ["127.0.0.1/32"]}, set[str]()),
    ],
)
async def test_the_reachability_of_a_server_is_checked(tmp_path: Path, server: dict[str, Any], codes: set[str]) -> None:
    clock = HandClock()
    async with installed(tmp_path, clock, server=server) as app:
        await Keys(app.store.entries, app.clock).make("ada", "admin", expires=Instant(clock.now() + DAY_S))
        assert {*await found(app)} == codes


@pytest.mark.requirement("S1-112")
async def test_files_of_unknown_executions_are_reported_and_kept(tmp_path: Path) -> None:
    """Another store may know them."""
    clock, files = HandClock(), tmp_path / "files"
    async with installed(tmp_path, clock, files={"directory": str(files)}) as app:
        execution = await app.start(asking())
        await execution.settled()
        for name in (execution.id, "exec-nobody", "exec-young"):
            (files / name).mkdir(parents=True)
            os.utime(files / name, (clock.now(), clock.now()))
        clock.move(3601.0)
        os.utime(files / "exec-young", (clock.now(), clock.now()))
        told = (await found(app))["left-over-files"]
        assert ("exec-nobody" in told.message, execution.id in told.message, "young" in told.message) == (
            True,
            False,
            False,
        )
        await app.storage.collect()
        assert (files / "exec-nobody").exists()


async def test_world_readable_files_are_reported(tmp_path: Path) -> None:
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.getuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o001)
    async with installed(tmp_path, HandClock()) as app:
        path = tmp_path / "store.db"
        (tmp_path / "pointsman.toml").write_text('[secrets]\nX = "hush"\n')
        (tmp_path / "pointsman.toml").chmod(0o644)
        path.chmod(0o646)
        told = {one.hint: one async for one in deployment(app.context) if one.code == "open-file"}
        assert {one.severity for one in told.values()} == {"warning"}
        assert len(told) == 2
        path.chmod(0o640)
        (tmp_path / "pointsman.toml").chmod(0o600)
        assert [one async for one in deployment(app.context)] == []


@pytest.mark.requirement("S1-112")
async def test_logins_that_have_expired_are_collected(tmp_path: Path) -> None:
    clock = HandClock()
    async with installed(tmp_path, clock) as app:
        keys = Keys(app.store.entries, clock)
        token = await keys.make("ada", "admin")
        caller = await keys.caller(token)
        assert caller is not None
        await Logins(app.store.entries, clock, keys, lasts=Seconds(60.0)).begin(caller, key=token)
        assert (await app.storage.collect(dry_run=True)).logins == 0
        clock.move(61.0)
        assert (await app.storage.collect()).logins == 1
        assert await app.store.entries.list("login") == []
