"""The five fields of a cron schedule: whether each of them means something. When it is due is not known here."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cronsim.cronsim import CronSimError, Field

CRON_CHARS_MAX: Final = 200
EXAMPLE: Final = "Minute, hour, day of month, month, day of week: `0 7 * * 1-5` is 7:00 on weekdays."
FIELDS: Final = (
    (Field.MINUTE, "minute", 60),
    (Field.HOUR, "hour", 24),
    (Field.DAY, "day of month", 31),
    (Field.MONTH, "month", 12),
    (Field.DOW, "day of week", 7),
)
"""The parser of each field, its name, and how many values it has: a longer step than that is a slip."""
_STEP: Final = re.compile(r"/([0-9]+)")
NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Words that stand for a schedule."""


class CronFault(NamedTuple):
    """A defect of a schedule; `column` is its position, from 1."""

    message: str
    column: int = 1


def five_fields(text: str) -> str:
    """The schedule that a word stands for, or the text itself."""
    return NAMED.get(text.strip().lower(), text)


def cron_fault(text: str) -> CronFault | None:
    """The first thing that is wrong; None: each field means something."""
    if len(text) > CRON_CHARS_MAX:
        return CronFault(f"a schedule has at most {CRON_CHARS_MAX} characters, not {len(text)}")
    parts = five_fields(text).split()
    if len(parts) != len(FIELDS):
        return CronFault(f"{text!r} is not a schedule: it has {len(parts)} fields instead of five")
    column = 0
    for part, (field, name, values) in zip(parts, FIELDS, strict=True):
        column = five_fields(text).index(part, column)
        try:
            field.parse(part.upper())
        except CronSimError:
            return CronFault(f"{part!r} is not a valid {name} (column {column + 1} of {text!r})", column + 1)
        if any(int(step) > values for step in _STEP.findall(part)):
            message = f"the step of {part!r} is longer than all values of the {name}: {values}"
            return CronFault(f"{message} (column {column + 1} of {text!r})", column + 1)
        column += len(part)
    return None
