"""Times of schedules: cron in a time zone, a fixed interval, or one instant.

Cron expressions follow Debian's cron. When clocks go forward, fixed times within the skipped hour are due once, right
after it. When clocks go back, fixed times are due only the first time; hourly schedules and those of every so many
minutes continue by elapsed time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import ClassVar, Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from msgspec import Struct

from pointsman.definition.model.base import read_duration
from pointsman.definition.model.cron import EXAMPLE, cron_fault, five_fields
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, did_you_mean, error, pointer_to
from pointsman.engine.instants import instant_text, seconds_of
from pointsman.errors import CallerError

EVERY_S_MIN: Final = 1.0
"""Shortest interval: schedules do not replace timers in programs."""


class CronInvalid(CallerError):
    """The text is not a valid cron expression. `column` is the position of the error, counted from 1."""

    code: ClassVar[str] = "cron-invalid"

    def __init__(self, message: str, *, hint: str = EXAMPLE, column: int = 1) -> None:
        super().__init__(message, hint=hint)
        self.column = column


class ZoneUnknown(CallerError):
    """No time zone has this name."""

    code: ClassVar[str] = "zone-unknown"


class TimingInvalid(CallerError):
    """A schedule needs exactly one of cron, every and at, each within its bounds."""

    code: ClassVar[str] = "timing-invalid"


class Timing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule with exactly one of `cron`, `every_s` and `at`. Create it with `timing_of`, which checks this."""

    cron: str | None = None
    every_s: float | None = None
    at: float | None = None
    """Unix seconds."""
    timezone: str = "UTC"
    """IANA time zone of `cron`."""

    def __str__(self) -> str:
        if self.cron is not None:
            return f"{self.cron} ({self.timezone})"
        if self.every_s is not None:
            return f"every {self.every_s:g} s"
        return f"at {instant_text(self.at or 0.0)}"


def timing_of(
    *, cron: str | None = None, every_s: float | None = None, at: float | None = None, timezone: str = "UTC"
) -> Timing:
    """Return a checked `Timing`. Raises `TimingInvalid`, `CronInvalid`, `ZoneUnknown`."""
    options_set = [name for name, value in (("cron", cron), ("every", every_s), ("at", at)) if value is not None]
    if len(options_set) != 1:
        options = " and ".join(options_set) or "nothing"
        raise TimingInvalid(
            f"a schedule needs exactly one of cron, every and at, but was given {options}", hint=EXAMPLE
        )
    if every_s is not None and not every_s >= EVERY_S_MIN:
        raise TimingInvalid(f"every {every_s:g} s is too frequent", hint=f"Use at least {EVERY_S_MIN:g} s.")
    zone = zone_of(timezone)
    if cron is not None:
        check_cron(cron, zone)
    return Timing(cron=cron, every_s=every_s, at=at, timezone=timezone)


@cache
def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of this name. Raises `ZoneUnknown`."""
    # Compare with the list first: `ZoneInfo` makes the name part of a file path.
    if name not in available_timezones():
        near = did_you_mean(name, available_timezones())
        raise ZoneUnknown(f"there is no time zone {name!r}", hint=f"{near} Names are like `Europe/Berlin`.".strip())
    return ZoneInfo(name)


def check_cron(text: str, zone: ZoneInfo) -> None:
    """Check a cron expression. Raises `CronInvalid` with the field and the column."""
    fault = cron_fault(text)
    if fault is not None:
        raise CronInvalid(fault.message, column=fault.column)
    try:
        first = next(_cron_after(text, zone, 0.0), None)
    except CronSimError:
        first = None
    if first is None:
        raise CronInvalid(f"{text!r} is never due", hint="No date matches all of its fields.")


def due_after(timing: Timing, after: float, *, begin: float) -> Iterator[float]:
    """Yield the due times later than `after`, in order. `every` counts from `begin`."""
    if timing.cron is not None:
        yield from _cron_after(timing.cron, zone_of(timing.timezone), after)
    elif timing.every_s is not None:
        number = max(int((after - begin) // timing.every_s), 0)
        while True:
            number += 1
            # Multiply instead of adding up, so that rounding errors do not accumulate.
            yield begin + number * timing.every_s
    elif timing.at is not None and timing.at > after:
        yield timing.at


def _cron_after(text: str, zone: ZoneInfo, after: float) -> Iterator[float]:
    last = after
    for due in CronSim(five_fields(text), datetime.fromtimestamp(after, UTC).astimezone(zone)):
        at = due.timestamp()
        # In an hour that occurs twice, cron's local time presents a past time as a future one.
        if at > last:
            yield at
            last = at


def timing_in_words(*, cron: str | None, every: str | None, at: str | None, timezone: str) -> Timing:
    """Return a `Timing` as `timing_of` does, from texts: `every` is a duration (`15m`), `at` an instant
    (`2027-01-31T12:00Z`)."""
    try:
        every_s = None if every is None else read_duration(every).seconds
    except ValueError as why:
        raise TimingInvalid(
            f"{every!r} is not a duration: {why}", hint="Use a number with a unit: `90s`, `15m`."
        ) from None
    instant = None if at is None else seconds_of(at)
    if at is not None and instant is None:
        raise TimingInvalid(f"{at!r} is not a point in time", hint="Use ISO 8601, such as 2027-01-31T12:00:00Z.")
    return timing_of(cron=cron, every_s=every_s, at=instant, timezone=timezone)


def trigger_problems(workflow: WorkflowDefinition) -> Iterator[Problem]:
    for position, trigger in enumerate(workflow.triggers or ()):
        at = pointer_to("triggers", position)
        try:
            zone = zone_of(trigger.timezone or "UTC")
            if trigger.cron and cron_fault(trigger.cron) is None:
                check_cron(trigger.cron, zone)
        except ZoneUnknown as why:
            yield error("zone-unknown", f"{at}/timezone", str(why), hint=why.hint)
        except CronInvalid as why:
            yield error("cron-invalid", f"{at}/cron", str(why), hint=why.hint)
