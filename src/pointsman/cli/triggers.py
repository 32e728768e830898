"""Commands for schedules, published events and notifications."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pointsman.cli.app_opening import go, input_schema, installation, session_at_prompt, stoppable
from pointsman.cli.options import Pair, input_of, json_option, model_option, store_option, value_of
from pointsman.cli.printing import print_deleted, print_json, say, shown
from pointsman.cli.references import complete_workflow
from pointsman.cli.times import TIME_CHARS, when, when_and_distance
from pointsman.session import Session

if TYPE_CHECKING:
    from pointsman.triggers.notifications import NoticeView
    from pointsman.triggers.schedules import StoredSchedule
    from pointsman.triggers.views import FiredView, PublishedView, ScheduleView


T = TypeVar("T")

UNDELIVERED: Final = 1
"""Exit code if an event could not be delivered or a run could not start."""


@click.group()
def schedules() -> None:
    """Schedules of saved workflows. `pointsman worker` starts due ones."""


@schedules.command("list")
@json_option
@store_option
def list_(*, as_json: bool, store: str | None) -> None:
    """List all schedules with the next due time and the last result."""

    found = _with(store, lambda session: session.schedules.list())["schedules"]
    if as_json:
        print_json({"schedules": found})
        return
    if not found:
        say("no schedules")
    for one in found:
        _print_schedule(one)


@schedules.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.option("--cron", metavar="FIELDS", help='Five fields, or @daily and the like: "0 7 * * 1-5".')
@click.option("--every", metavar="TIME", help="A length of time: 90s, 15m, 2h.")
@click.option("--at", metavar="INSTANT", help="Once: 2027-01-31T12:00:00Z.")
@click.option("--timezone", default="UTC", metavar="ZONE", help="Time zone of --cron: Europe/Berlin (default: UTC).")
@click.option("--id", "id_", metavar="NAME", help="The schedule's own id (default: the workflow's).")
@click.option(
    "--missed",
    type=click.Choice(["once", "skip", "all"]),
    default="once",
    help="What to do about runs missed while no worker was running.",
)
@click.option(
    "--overlap",
    type=click.Choice(["skip", "allow", "queue", "replace"]),
    default="skip",
    help="What to do if the previous execution has not ended.",
)
@click.option("--input", "input_", metavar="JSON", help="The input: JSON, @file or - for standard input.")
@click.option("-i", "fields", type=Pair(), multiple=True, metavar="KEY=VALUE", help="A field of the input. Repeatable.")
@json_option
@store_option
def add(
    workflow: str,
    *,
    cron: str | None,
    every: str | None,
    at: str | None,
    timezone: str,
    id_: str | None,
    missed: str,
    overlap: str,
    input_: str | None,
    fields: tuple[tuple[str, str], ...],
    as_json: bool,
    store: str | None,
) -> None:
    """Schedule a saved workflow: give one of --cron, --every and --at."""

    async def work(session: Session) -> StoredSchedule:
        from pointsman.workflows.calendar import timing_in_words  # Deferred: time zones take long to load.

        values = input_of(input_, fields, await input_schema(session, workflow) if fields else None)
        return await session.schedules.add(
            workflow,
            timing_in_words(cron=cron, every=every, at=at, timezone=timezone),
            id=id_,
            input=values,
            missed=missed,  # pyright: ignore[reportArgumentType] - click knows the choices
            overlap=overlap,  # pyright: ignore[reportArgumentType] - as above
        )

    _print_stored(_with(store, work), as_json=as_json)


@schedules.command()
@click.argument("schedule")
@json_option
@store_option
def pause(schedule: str, *, as_json: bool, store: str | None) -> None:
    """Pause a schedule. Runs that are due meanwhile are dropped."""

    _print_stored(_with(store, lambda session: session.schedules.pause(schedule)), as_json=as_json)


@schedules.command()
@click.argument("schedule")
@json_option
@store_option
def resume(schedule: str, *, as_json: bool, store: str | None) -> None:
    """Resume a schedule, from now on."""

    _print_stored(_with(store, lambda session: session.schedules.resume(schedule)), as_json=as_json)


@schedules.command()
@click.argument("schedule")
@json_option
@store_option
def delete(schedule: str, *, as_json: bool, store: str | None) -> None:
    """Delete a schedule. Its executions continue. A schedule in a workflow's document is deleted with the
    document."""
    _with(store, lambda session: session.schedules.delete(schedule))
    print_deleted(schedule, as_json=as_json)


@schedules.command("next")
@click.argument("schedule")
@click.option("--count", type=click.IntRange(1, 1000), default=5, metavar="N", help="Number of times (default: 5).")
@json_option
@store_option
def next_(schedule: str, *, count: int, as_json: bool, store: str | None) -> None:
    """Print the next due times, in local time."""
    times = _with(store, lambda session: session.schedules.next_times(schedule, count))
    if as_json:
        print_json({"next": times})
        return
    if not times:
        say(f"{schedule!r} is never due again")
    for at in times:
        click.echo(when_and_distance(at))


@schedules.command()
@click.argument("schedule")
@json_option
@model_option
@store_option
def run(schedule: str, *, as_json: bool, model: str | None, store: str | None) -> int:
    """Start the workflow of a schedule now, and run it until it ends or waits."""

    async def work(session: Session) -> FiredView:
        from pointsman.triggers.views import fired_view  # Deferred as above.

        fired = await session.schedules.run(schedule)
        if fired.execution:
            await (await session.executions.drive(fired.execution)).settled()
        return fired_view(fired)

    result = _with(store, work, model=model)
    if as_json:
        print_json(result)
    else:
        _print_fired(result)
    return UNDELIVERED if result["error"] else 0


@click.command()
@click.argument("name")
@click.argument("json_", metavar="JSON", default="null")
@click.option("--key", default="", metavar="TEXT", help="Idempotency key: under it, the event is delivered once.")
@json_option
@model_option
@store_option
def publish(name: str, json_: str, *, key: str, as_json: bool, model: str | None, store: str | None) -> int:
    """Publish an event to all waiting executions and to event triggers, and run them until they end or wait.

    Executions that start to wait later do not receive it; `pointsman signal` sends an event that is stored.
    """
    data = value_of(json_, what="the event's data")

    async def work(session: Session) -> PublishedView:
        published = await session.triggers.publish(name, data, key=key)
        for execution in (*published["delivered"], *published["started"]):
            await (await session.executions.drive(execution)).settled()
        return published

    result = _with(store, work, model=model)
    if as_json:
        print_json(result)
    else:
        for word, ids in (("delivered", result["delivered"]), ("started", result["started"])):
            for one in ids:
                click.echo(f"{word:9} {shown(one)}")
        if not result["delivered"] and not result["started"]:
            say(f"note: no execution waits for the event {name!r}, and no trigger starts on it")
    for one in result["undelivered"]:
        say(f"not delivered: {shown(one['who'])} [{shown(one['code'])}] {shown(one['message'])}")
        if one["hint"]:
            say(f"  hint: {shown(one['hint'])}")
    return UNDELIVERED if result["undelivered"] else 0


def _with(store: str | None, work: Callable[[Session], Coroutine[Any, Any, T]], *, model: str | None = None) -> T:
    async def within() -> T:
        async with stoppable(), installation(store, model=model) as app:
            return await work(session_at_prompt(app))

    return go(within())


def _print_stored(stored: StoredSchedule, *, as_json: bool) -> None:
    from pointsman.triggers.views import schedule_view  # Deferred as above.

    view = schedule_view(stored)
    if as_json:
        print_json(view)
    else:
        _print_schedule(view)


def _print_schedule(view: ScheduleView) -> None:
    states = {"paused": view["paused"], "switched off": not view["enabled"], "stopped": view["stopped"]}
    rests = next((state for state, holds in states.items() if holds), None)
    due = rests or (when(view["next"]) if view["next"] is not None else "never again")
    click.echo(f"{shown(view['id']):30}  {due:{TIME_CHARS}}  {shown(view['when']):28} {shown(view['workflowId'])}")
    if view["stopped"]:
        click.echo(f"  stopped: {shown(view['stopped'])}")
    for result in view["results"][:1]:
        click.echo("  last: ", nl=False)
        _print_fired(result)


def _print_fired(one: FiredView) -> None:
    error = one["error"]
    details = f" [{error['code']}] {error['message']}" if error else f" {one['note']}" if one["note"] else ""
    many = f" ×{one['count']}" if one["count"] != 1 else ""
    line = f"{when(one['due'])}  {one['outcome']}{many} {one['executionId'] or ''}{details}"
    click.echo(shown(line.rstrip()))
    if error and error["hint"]:
        click.echo(f"  hint: {shown(error['hint'])}")


@click.group()
def notifications() -> None:
    """Notices to the addresses under [notifications]. `pointsman worker` sends them."""


@notifications.command("list")
@json_option
@store_option
def list_notices(*, as_json: bool, store: str | None) -> None:
    """List notices that wait, were sent within the last hour, or were given up."""
    notices = go(_list_notices(store))
    if as_json:
        print_json({"notifications": notices})
        return
    if not notices:
        say("the outbox is empty")
    for notice in notices:
        _print_notice(notice)


async def _list_notices(store: str | None) -> list[NoticeView]:
    async with installation(store) as app:
        return (await session_at_prompt(app).notifications.list())["notices"]


@notifications.command("retry")
@click.argument("notice")
@json_option
@store_option
def retry_notice(notice: str, *, as_json: bool, store: str | None) -> None:
    """Send a notice again that was given up."""
    retried = go(_retry_notice(store, notice))
    if as_json:
        print_json(retried)
    else:
        _print_notice(retried)


async def _retry_notice(store: str | None, notice: str) -> NoticeView:
    from pointsman.triggers.notifications import notice_view  # Deferred: the outbox takes long to load.

    async with installation(store) as app:
        return notice_view(await session_at_prompt(app).notifications.retry(notice))


@notifications.command("revoke-links")
@json_option
@store_option
def revoke_links(*, as_json: bool, store: str | None) -> None:
    """Make all answer links that were sent invalid. New notices contain valid ones."""
    go(_revoke_links(store))
    if as_json:
        print_json({"revoked": True})
    else:
        say("all answer links that were sent are revoked")


async def _revoke_links(store: str | None) -> None:
    async with installation(store) as app:
        await session_at_prompt(app).notifications.revoke_links()


def _print_notice(one: NoticeView) -> None:
    error = f"  {shown(one['error'])}" if one["error"] else ""
    click.echo(f"{one['state']:8} {when(one['at'])}  {shown(one['event']):26} {shown(one['id'])}{error}")
