"""Points in time written as text: ISO 8601 to unix seconds and back, by arithmetic alone."""

from __future__ import annotations

import re
from typing import Final

from pointsman.values import Json

_ISO: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?)?\s*(Z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)
_SECONDS_MAX: Final = 253_402_300_799
"""The end of the year 9999. A greater number is most likely in milliseconds."""
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def seconds_of(value: Json) -> float | None:
    """Return unix seconds of a number or an ISO 8601 text (UTC if it has no offset); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) <= _SECONDS_MAX else None
    match = _ISO.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = (int(match[n] or 0) for n in (4, 5, 6))
    if not (1 <= month <= 12 and 1 <= day <= _days_in(year, month) and hour < 24 and minute < 60 and second < 61):
        return None
    if match[8] not in (None, "Z") and (int(match[8][1:3]) > 23 or int(match[8][-2:]) > 59):
        return None
    whole = ((_day_number(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    return whole + float(match[7] or 0) - _offset(match[8])


def _offset(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (minutes if zone[0] == "+" else -minutes) * 60


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_in(year: int, month: int) -> int:
    return 29 if month == 2 and _is_leap(year) else _DAYS[month - 1]


def _day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar (H. Hinnant, days_from_civil)."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def instant_text(at: float) -> str:
    """Return unix seconds as ISO 8601 in UTC, to the millisecond: `2026-01-01T00:00:00.000Z`."""
    seconds, milliseconds = divmod(round(at * 1000), 1000)
    days, second = divmod(seconds, 86_400)
    year, month, day = _date_of(days)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{milliseconds:03}"
    return f"{year:04}-{month:02}-{day:02}T{clock}Z"


def _date_of(days: int) -> tuple[int, int, int]:
    """The inverse of `_day_number` (H. Hinnant, civil_from_days)."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1
