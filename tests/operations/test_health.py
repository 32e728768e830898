"""Findings of `doctor`, and of `verify` between lists and journals."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from pointsman.app import Pointsman, Workflow
from pointsman.models.provider import ProviderSettings
from pointsman.operations import health
from pointsman.operations.health import damage, findings, repair, sandbox_in_use
from pointsman.settings import Settings
from pointsman.store.coordination import RuntimeFacts
from pointsman.store.sqlite import writer
from pointsman.values import ExecutionId, Json, JsonObject
from tests.installation import HandClock, asking, listening, noting, opened
from tests.sandboxes import take_boxes_away, why_no_box

pytestmark = pytest.mark.integration

HOUR = 3600.0


async def codes(app: Pointsman) -> list[str]:
    return [
        one.code for one in await findings(app.context) if one.code not in ("store", "no-provider", "sandbox-missing")
    ]


def sleeping() -> JsonObject:
    nodes: list[Json] = [{"id": "wait", "type": "wait", "config": {"duration": "2h"}}]
    return {"id": "sleep", "nodes": nodes, "edges": []}


async def test_lists_match_journals_for_every_kind_of_wait(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        for workflow in (noting(), asking(), listening()):
            await (await app.start(workflow)).settled()
            clock.move(1.0)
        await app.start(Workflow.of(sleeping()))
        paused = await app.start(asking("other"))
        await paused.settled()
        await paused.pause()
        assert await damage(app.context) == []
    async with opened(tmp_path, clock) as app:
        assert await damage(app.context) == []
        assert await codes(app) == []


async def test_a_list_that_contradicts_a_journal_is_reported(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        execution = await app.start(asking())
        await execution.settled()
    connection = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    connection.execute("UPDATE summaries SET status = 'completed'")
    connection.close()
    async with opened(tmp_path, HandClock()) as app:
        (line,) = await damage(app.context)
        assert str(execution.id) in line


async def test_stuck_executions_are_reported(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        sleeper = await app.start(Workflow.of(sleeping()))
        asked = await app.start(asking())
        await asked.settled()
        listed = await app.store.executions.find(asked.id)
        assert listed is not None
        running = replace(listed, execution=ExecutionId("exec-running"), status="running", awaits=(), gates=None)
        await app.store.executions.put(running)
        await app.store.executions.put(
            replace(running, execution=ExecutionId("exec-child"), parent=ExecutionId("exec-none"))
        )
    clock.move(3 * HOUR)
    async with opened(tmp_path, clock) as app:
        found = {one.code: one for one in await findings(app.context)}
        assert {"overdue", "stuck", "orphans"} <= set(found)
        assert str(sleeper.id) in found["overdue"].message
        assert "exec-running" in found["stuck"].message
        assert "exec-child" in found["orphans"].message
        assert str(asked.id) not in "".join(one.message for one in found.values()), "a gate may wait for ever"
        assert all(found[code].hint for code in ("overdue", "stuck", "orphans", "nobody-keeps"))
        async with opened(tmp_path, clock) as other:
            keep = await other.store.lead("another process")
            codes_now = {one.code: one for one in await findings(app.context)}
            assert "another process" in codes_now["kept"].message
            assert "nobody-keeps" not in codes_now
            await keep.release()


async def test_unused_blobs_are_reported_and_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "HOLD_S", -1.0)
    async with opened(tmp_path, HandClock()) as app:
        digest = await app.store.blobs.put(b"nobody")
        found = await findings(app.context)
        assert [one.code for one in found if one.fixable] == ["unused-contents"]
        assert [one.code for one in await repair(app.context, found)] == ["unused-contents"]
        assert await app.store.blobs.get(digest) is None
        assert "unused-contents" not in await codes(app)


async def test_a_disk_that_is_nearly_full_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "ROOM_BYTES_MIN", 1 << 60)
    async with opened(tmp_path, HandClock()) as app:
        first = (await findings(app.context))[0]
        assert (first.severity, first.code) == ("error", "little-room")


async def test_an_undelivered_event_is_reported_after_a_day(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        hears = await app.start(listening())
        assert await hears.settled() == "waiting"
        clock.move(23 * HOUR)
        assert "unheard" not in await codes(app)
    clock.move(2 * HOUR)
    async with opened(tmp_path, clock) as app:
        (noted,) = [one for one in await findings(app.context) if one.code == "unheard"]
        assert (noted.severity, str(hears.id) in noted.message, "'paid'" in noted.message) == ("note", True, True)
        assert "pointsman publish paid" in noted.hint


@pytest.mark.requirement("S1-144")
async def test_the_doctor_shows_the_sandbox_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing: JsonObject = {"argv": ["/nowhere/program"]}
    settings = Settings.model_validate({"store": f"sqlite:///{tmp_path}/s.db", "commands": {"gone": missing}})
    async with Pointsman(settings=settings) as app:
        if why := why_no_box():
            pytest.skip(why)
        assert await sandbox_in_use(settings) in ("bubblewrap", "landlock")
        assert ("command-missing", "error") in [(one.code, one.severity) for one in await findings(app.context)]
        take_boxes_away(monkeypatch)
        assert await sandbox_in_use(settings) == ""
        (found,) = [one for one in await findings(app.context) if one.code == "sandbox-missing"]
        assert found.severity == "error"
        assert "it was taken away" in found.message


async def test_processes_with_different_engines_and_limits_of_each_process_are_reported(postgres_url: str) -> None:
    provider = ProviderSettings(base_url="http://127.0.0.1:1/v1", keys=("key",), calls_max=5)
    async with Pointsman(postgres_url, settings=Settings(providers={"own": provider})) as one:
        await one.runtime.ownership.announce(RuntimeFacts(role="server", engine="temporal://one:7233"))
        async with Pointsman(postgres_url, settings=Settings()) as other:
            await other.runtime.ownership.announce(RuntimeFacts(role="worker", engine="restate://two:8080"))
            found = {finding.code: finding.message for finding in await findings(one.context)}
            await other.runtime.ownership.announce(RuntimeFacts(role="worker", engine="temporal://one:7233"))
            later = {finding.code for finding in await findings(one.context)}
    assert "restate://two:8080, temporal://one:7233" in found["engines-differ"]
    assert found["limits-multiply"] == "`concurrency` and `calls_max` of own count in each of 2 processes"
    assert ("engines-differ" in later, "limits-multiply" in later) == (False, True)
    assert found["no-workers"] == "no worker of this store uses temporal://one:7233: what servers start here waits"
    assert "no-workers" not in later
