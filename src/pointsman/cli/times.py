"""Times at the prompt: instants in local time with their offset, distances from now, and times that a person types."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final, cast

import click

from pointsman.definition.model.base import read_duration
from pointsman.values import Json

UNITS: Final = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
"""Seconds -> unit, the largest first."""
TIME_CHARS: Final = len("2026-11-21 21:00:00+00:00")


def when(at: Json) -> str:
    """Return an instant (unix seconds) in local time, with its offset from UTC."""
    return datetime.fromtimestamp(cast(float, at), UTC).astimezone().isoformat(" ", "seconds")


def distance(at: Json, now: float | None = None) -> str:
    """Return the distance of an instant from now, in its largest unit, rounded down: `3 min ago`, `in 2 h`, `now`."""
    seconds = cast(float, at) - (time.time() if now is None else now)
    for size, unit in UNITS:
        if abs(seconds) >= size:
            number = int(abs(seconds) // size)
            return f"in {number} {unit}" if seconds > 0 else f"{number} {unit} ago"
    return "now"


def when_and_distance(at: Json) -> str:
    """Return an instant with its distance from now: `2026-11-21 21:00:00+00:00 (3 min ago)`."""
    return f"{when(at)} ({distance(at)})"


class TimeOrAge(click.ParamType[float]):
    """An instant as unix seconds: a date or time in ISO 8601, local unless it names its zone; or a duration before now,
    such as `2h`."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        try:
            return datetime.fromisoformat(text).timestamp()  # A time without a zone is local.
        except (ValueError, OverflowError, OSError):
            pass
        try:
            return time.time() - read_duration(text).seconds
        except ValueError:
            self.fail(f"{text!r} is not a time. Write {TIME_HELP}.", param, ctx)


TIME: Final = TimeOrAge()
TIME_HELP: Final = "2026-11-21T21:00 (local), …T21:00+01:00, or 2h for two hours ago"
