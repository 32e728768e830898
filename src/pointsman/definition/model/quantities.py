"""Lengths of time and sizes: read with or without a unit, always written with one."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from pointsman.definition.model.base import value_schema
from pointsman.values import Bytes, Seconds

_MS_OF: Final = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_CHARS_MAX: Final = 100
_DURATION: Final = r"(?:[0-9]{1,15}(?:\.[0-9]{1,6})?\s*(?:ms|s|min|m|h|d)\s*)+"
_DURATION_PART: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*(ms|s|min|m|h|d)\s*")
_WHOLE_DURATION: Final = re.compile(_DURATION)
_DURATION_MS_MAX: Final = 100 * 366 * 86_400_000
"""A hundred years; what is longer is a slip of the unit."""
_FINE_S: Final = 100.0
"""Lengths below it are kept to the nanosecond, others to the millisecond: what is written is read again as it was."""

_BYTES_OF: Final = {
    "B": 1,
    "KB": 1_000,
    "MB": 1_000_000,
    "GB": 1_000_000_000,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
}
_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([kKMG]?i?B)")
_SIZE_MAX: Final = 1 << 50


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time. In documents `30s`, `300000ms`, `1h30m`; a bare number is milliseconds."""

    seconds: Seconds

    def __str__(self) -> str:
        return write_duration(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return value_schema(cls, read_duration, write_duration)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        number = {"type": "number", "minimum": 0, "maximum": _DURATION_MS_MAX, "description": "Milliseconds."}
        return {"anyOf": [{"type": "string", "maxLength": _CHARS_MAX, "pattern": f"^\\s*{_DURATION}$"}, number]}


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """A size. In documents `50MB`, `64KiB`; a bare number is bytes."""

    bytes: Bytes

    def __str__(self) -> str:
        return write_size(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return value_schema(cls, read_size, write_size)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        number = {"type": "integer", "minimum": 0, "maximum": _SIZE_MAX, "description": "Bytes."}
        return {"anyOf": [{"type": "string", "maxLength": _CHARS_MAX, "pattern": f"^\\s*{_SIZE.pattern}\\s*$"}, number]}


def read_duration(value: object) -> Duration:
    """Raises ValueError with the spellings that would do."""
    if isinstance(value, str) and len(value) <= _CHARS_MAX and _WHOLE_DURATION.fullmatch(value.lstrip()):
        amount_ms = sum(float(number) * _MS_OF[unit] for number, unit in _DURATION_PART.findall(value))
    elif isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and math.isfinite(value):
        amount_ms = value
    else:
        raise ValueError("must be a length of time such as '30s', '5m' or '1h30m' (a bare number is milliseconds)")
    if amount_ms > _DURATION_MS_MAX:
        raise ValueError("must not be longer than a hundred years")
    seconds = amount_ms / 1000
    return Duration(Seconds(round(seconds, 9 if seconds < _FINE_S else 3)))


def write_duration(duration: Duration) -> str:
    """The largest unit that divides it: `5m`, `90s`, `1500ms`."""
    amount_ms = duration.seconds * 1000
    whole = round(amount_ms)
    if not math.isclose(amount_ms, whole, rel_tol=1e-12, abs_tol=1e-9):
        return f"{amount_ms:.6f}".rstrip("0") + "ms"
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if whole % _MS_OF[unit] == 0) if whole else "s"
    return f"{whole // _MS_OF[unit]}{unit}"


def read_size(value: object) -> Size:
    """Raises ValueError with the spellings that would do."""
    if isinstance(value, str) and len(value) <= _CHARS_MAX and (found := _SIZE.fullmatch(value.strip())):
        size = round(float(found[1]) * _BYTES_OF[found[2].upper()])
    elif isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        size = value
    else:
        raise ValueError("must be a size such as '50MB' or '64KiB' (a bare number is bytes)")
    if size > _SIZE_MAX:
        raise ValueError("must not be larger than 1024 TiB")
    return Size(Bytes(size))


def write_size(size: Size) -> str:
    unit = next(
        unit for unit in ("GiB", "GB", "MiB", "MB", "KiB", "KB", "B") if size.bytes % _BYTES_OF[unit.upper()] == 0
    )
    return f"{size.bytes // _BYTES_OF[unit.upper()]}{unit}" if size.bytes else "0B"
