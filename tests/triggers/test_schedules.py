"""Schedules start executions when they are due: once each, also across crashes, and according to their policies."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path

import pytest

from pointsman.app import Pointsman
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.triggers.schedules import Fired, NoSuchSchedule, ScheduleExists, ScheduleInvalid
from pointsman.values import JsonObject
from pointsman.workflows.calendar import CronInvalid, TimingInvalid, ZoneUnknown, due_after, timing_of
from pointsman.workflows.revisions import delete_workflow
from tests.installation import HandClock, asking, noting, opened, seconds

pytestmark = pytest.mark.integration


async def count(app: Pointsman) -> int:
    return len(await app.executions())


def told(fired: list[Fired]) -> list[tuple[str, int]]:
    return [(one.outcome, one.count) for one in fired]


async def test_each_due_time_starts_one_execution(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting())
        await app.schedule("report", cron="0 7 * * *", timezone="Europe/Berlin", input={"who": "ann"})
        assert await app.triggers.scheduler.next_due() == seconds("2026-01-01T06:00:00+00:00")
        assert await app.triggers.scheduler.fire(clock.now()) == []
        clock.set("2026-01-01T06:00:10+00:00")
        (fired,) = await app.triggers.scheduler.fire(clock.now())
        assert fired.due == seconds("2026-01-01T06:00:00+00:00")
        assert await app.triggers.scheduler.fire(clock.now()) == []
        started = await app.open(fired.execution)
        assert await started.settled() == "completed"
        assert started.state.setup.input == {"who": "ann"}
        assert (await app.view(started.id))["trigger"] == {"kind": "schedule", "id": "report"}
        assert await count(app) == 1


async def test_a_start_not_recorded_before_a_crash_is_found_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting())
        await app.schedule("report", every=60)
        clock.move(61)

        async def crash(*_: object, **__: object) -> int:
            raise OSError("the power is gone")

        monkeypatch.setattr(app.triggers.schedules, "put", crash)
        with pytest.raises(OSError, match="power"):
            await app.triggers.scheduler.fire(clock.now())
        assert await count(app) == 1
    async with opened(tmp_path, clock) as app:
        assert told(await app.triggers.scheduler.fire(clock.now())) == [("started", 1)]
        assert await count(app) == 1


async def test_a_start_hidden_by_a_crash_is_not_counted_as_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(asking())
        await app.schedule("ask", every=60, missed="skip")
        clock.move(61)

        async def crash(*_: object, **__: object) -> int:
            raise OSError("the power is gone")

        monkeypatch.setattr(app.triggers.schedules, "put", crash)
        with pytest.raises(OSError, match="power"):
            await app.triggers.scheduler.fire(clock.now())
    clock.move(3600)
    async with opened(tmp_path, clock) as app:
        fired = await app.triggers.scheduler.fire(clock.now())
        assert told(fired) == [("missed", 59), ("started", 1), ("skipped", 1)], "the last one is due, and the gate open"
        assert await count(app) == 1


async def test_a_start_hidden_by_a_crash_is_found_after_later_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(asking())
        await app.schedule("ask", every=60)
        clock.move(61)

        async def crash(*_: object, **__: object) -> int:
            raise OSError("the power is gone")

        monkeypatch.setattr(app.triggers.schedules, "put", crash)
        with pytest.raises(OSError, match="power"):
            await app.triggers.scheduler.fire(clock.now())
    async with opened(tmp_path, clock) as app:
        await app.triggers.scheduler.run_now("ask")
        assert told(await app.triggers.scheduler.fire(clock.now())) == [("started", 1)]
        assert await count(app) == 2
        clock.move(60)
        assert told(await app.triggers.scheduler.fire(clock.now())) == [("skipped", 1)]


async def test_a_finished_start_hidden_by_a_crash_blocks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting())
        await app.schedule("report", every=30)
        clock.move(31)
        with monkeypatch.context() as broken:

            async def crash(*_: object, **__: object) -> int:
                raise OSError("the power is gone")

            broken.setattr(app.triggers.schedules, "put", crash)
            with pytest.raises(OSError, match="power"):
                await app.triggers.scheduler.fire(clock.now())
        clock.move(30)
        assert told(await app.triggers.scheduler.fire(clock.now())) == [("started", 1), ("started", 1)]


async def test_two_processes_that_fire_concurrently_start_once(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as one, opened(tmp_path, clock) as other:
        await one.save(noting())
        await one.schedule("report", every=60)
        for round in range(1, 6):
            clock.move(60)
            first, second = await asyncio.gather(*(app.triggers.scheduler.fire(clock.now()) for app in (one, other)))
            assert told([*first, *second]) == [("started", 1)]
            assert await count(one) == round


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ("skip", [("missed", 3)]),
        ("once", [("missed", 2), ("started", 1)]),
        ("all", [("started", 1), ("started", 1), ("started", 1)]),
    ],
)
async def test_missed_times_are_handled_by_the_policy(
    tmp_path: Path, missed: str, expected: list[tuple[str, int]]
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting())
        await app.schedule("report", cron="0 * * * *", missed=missed, overlap="allow")  # pyright: ignore[reportArgumentType] - parametrized
    clock.move(3.5 * 3600)
    async with opened(tmp_path, clock) as app:
        assert told(await app.triggers.scheduler.fire(clock.now())) == expected
        assert await app.triggers.scheduler.next_due() == seconds("2026-01-01T04:00:00+00:00")


async def test_catch_up_runs_are_limited_to_the_window(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting())
        timing = timing_of(cron="0 * * * *")
        await app.triggers.schedules.add("hourly", "report", timing, missed="all", overlap="allow", catch_up_s=7200)
        await app.triggers.schedules.add("once", "report", timing_of(at=clock.now() + 60), catch_up_s=7200)
        clock.move(100.5 * 3600)
        fired = await app.triggers.scheduler.fire(clock.now())
        assert told(fired) == [("missed", 1), ("started", 1), ("started", 1), ("missed", 1)]
        assert (await app.triggers.schedules.get("once")).schedule.next_due() is None


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [("allow", "started"), ("skip", "skipped"), ("queue", "queued"), ("replace", "started")],
)
async def test_an_unfinished_previous_run_is_handled_by_the_policy(tmp_path: Path, overlap: str, expected: str) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(asking())
        await app.schedule("ask", every=60, overlap=overlap)  # pyright: ignore[reportArgumentType] - parametrized
        clock.move(61)
        (first,) = await app.triggers.scheduler.fire(clock.now())
        before = await app.open(first.execution)
        await before.settled()
    clock.move(60)
    async with opened(tmp_path, clock) as app:
        (second,) = await app.triggers.scheduler.fire(clock.now())
        assert second.outcome == expected
        view = await app.view(first.execution)
        assert view["status"] == ("cancelled" if overlap == "replace" else "waiting")


async def test_a_queued_run_starts_after_the_previous_one_even_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(asking())
        await app.schedule("ask", every=60, overlap="queue")
        clock.move(61)
        (first,) = await app.triggers.scheduler.fire(clock.now())
        clock.move(60)
        assert told(await app.triggers.scheduler.fire(clock.now())) == [("queued", 1)]
        assert await app.triggers.scheduler.fire(clock.now()) == [], "it is queued already"
    async with opened(tmp_path, clock) as app:
        before = await app.open(first.execution)
        await before.settled()
        await before.answer("gate", "approve")
        await before.settled()
        (second,) = await app.triggers.scheduler.fire(clock.now())
        assert (second.outcome, second.due) == ("started", first.due + 60)
        assert second.execution != first.execution


async def test_a_paused_schedule_starts_nothing_and_catches_up_nothing(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting())
        await app.schedule("report", every=60)
        await app.triggers.schedules.pause("report")
        clock.move(600)
        assert await app.triggers.scheduler.fire(clock.now()) == []
        assert await app.triggers.scheduler.next_due() is None
    async with opened(tmp_path, clock) as app:
        await app.triggers.schedules.resume("report")
        assert await app.triggers.scheduler.fire(clock.now()) == []
        clock.move(61)
        assert told(await app.triggers.scheduler.fire(clock.now())) == [("started", 1)]


async def test_a_failed_start_is_recorded_and_the_schedule_continues(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting(input={"type": "object", "required": ["goal"]}))
        await app.schedule("report", every=60, input={})
        clock.move(61)
        (fired,) = await app.triggers.scheduler.fire(clock.now())
        assert (fired.outcome, fired.code) == ("failed", "input-invalid")
        assert (await app.triggers.schedules.get("report")).schedule.results == (fired,)
        await app.save(noting())
        clock.move(60)
        assert told(await app.triggers.scheduler.fire(clock.now())) == [("started", 1)]


async def test_a_schedule_can_be_run_manually(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting())
        await app.schedule("report", every=3600)
        await app.triggers.schedules.pause("report")
        fired = await app.triggers.scheduler.run_now("report")
        assert fired.outcome == "started"
        assert (await app.triggers.schedules.get("report")).schedule.results == (fired,)
        assert await app.triggers.schedules.next_times("report", 2) == [clock.now() + 3600, clock.now() + 7200]


TRIGGER: JsonObject = {"id": "morning", "type": "schedule", "cron": "0 7 * * *", "initialData": {"who": "bob"}}


@pytest.mark.requirement("S1-O8")
async def test_schedules_of_a_document_are_active_after_saving_it(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[TRIGGER]))
        await app.triggers.schedules.pause("report/morning")
        await app.save(noting(triggers=[{**TRIGGER, "cron": "0 8 * * *"}]))
        kept = await app.triggers.schedules.get("report/morning")
        assert kept.schedule.paused, "what people paused stays so"
        assert kept.schedule.timing.cron == "0 8 * * *"
        await app.triggers.schedules.resume("report/morning")
        clock.set("2026-01-01T08:00:00+00:00")
        (fired,) = await app.triggers.scheduler.fire(clock.now())
        assert (await app.open(fired.execution)).state.setup.input == {"who": "bob"}
        with pytest.raises(ScheduleInvalid, match="is declared in the document"):
            await app.triggers.schedules.delete("report/morning")
        await app.save(noting(triggers=[{**TRIGGER, "enabled": False}]))
        assert await app.triggers.scheduler.next_due() is None
        await app.save(noting(triggers=[TRIGGER], enabled=False))
        assert await app.triggers.scheduler.next_due() is None
        await app.save(noting(triggers=[TRIGGER]))
        assert await app.triggers.scheduler.next_due() == seconds("2026-01-02T07:00:00+00:00")
        await delete_workflow(app.context, "report")
        assert await app.triggers.schedules.list() == []


async def test_schedules_are_refused_with_the_reason(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        await app.save(noting())
        await app.schedule("report", every=60)
        with pytest.raises(ScheduleExists):
            await app.schedule("report", every=60)
        with pytest.raises(UnknownWorkflow):
            await app.schedule("nobody", every=60)
        with pytest.raises(ScheduleInvalid):
            await app.schedule("report", every=60, id="a/b")
        with pytest.raises(NoSuchSchedule) as refused:
            await app.triggers.schedules.pause("reprot")
        assert "schedules list" in refused.value.hint
        assert "report" not in refused.value.hint
        with pytest.raises(TimingInvalid):
            await app.schedule("report", id="x")
        with pytest.raises(TimingInvalid):
            await app.schedule("report", id="x", every=0.1)


@pytest.mark.parametrize(
    ("cron", "column"),
    [("61 * * * *", 1), ("0  25 * * *", 4), ("0 0 * * MOO", 9), ("0 0 0 * *", 5), ("* * * *", 1), ("", 1)],
)
def test_an_invalid_cron_expression_is_refused_with_the_position(cron: str, column: int) -> None:
    with pytest.raises(CronInvalid) as refused:
        timing_of(cron=cron)
    assert refused.value.column == column


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "9" * 5000, "0 0 1 1 * *", "0 0 */0 * *"])
def test_a_cron_expression_that_never_fires_is_refused(cron: str) -> None:
    with pytest.raises(CronInvalid):
        timing_of(cron=cron)


def test_an_unknown_time_zone_is_refused_with_a_suggestion() -> None:
    for name in ("Europe/Berlinn", "../../etc/passwd"):
        with pytest.raises(ZoneUnknown):
            timing_of(cron="@daily", timezone=name)
    with pytest.raises(ZoneUnknown) as refused:
        timing_of(cron="@daily", timezone="Europe/Berlinn")
    assert "Europe/Berlin" in refused.value.hint


BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        # Clocks go forward on 2026-03-29 from 2:00 to 3:00, and back on 2026-10-25 from 3:00 to 2:00.
        ("30 2 * * *", "2026-03-28T12:00+00:00", ["2026-03-29T01:00+00:00", "2026-03-30T00:30+00:00"]),
        ("0 * * * *", "2026-03-29T00:30+00:00", ["2026-03-29T01:00+00:00", "2026-03-29T02:00+00:00"]),
        ("30 2 * * *", "2026-10-24T12:00+00:00", ["2026-10-25T00:30+00:00", "2026-10-26T01:30+00:00"]),
        ("30 2 * * *", "2026-10-25T01:10+00:00", ["2026-10-26T01:30+00:00", "2026-10-27T01:30+00:00"]),
        ("30 * * * *", "2026-10-25T00:00+00:00", ["2026-10-25T00:30+00:00", "2026-10-25T01:30+00:00"]),
    ],
)
def test_a_clock_change_skips_and_repeats_no_run(cron: str, after: str, expected: list[str]) -> None:
    found = islice(due_after(timing_of(cron=cron, timezone=BERLIN), seconds(after), begin=0.0), 2)
    assert [*found] == [seconds(one) for one in expected]
