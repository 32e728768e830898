"""Fill the placeholders of a command. Each value stays one argument and cannot become an option."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from pointsman.engine.failures import Failure
from pointsman.tools.commands.config import PLACE, Argument, CommandDescription
from pointsman.tools.failures import ToolFailed
from pointsman.values import Json, JsonObject

BYTES_MAX: Final = 100_000
"""Maximum size of one argument; the kernel accepts little more."""
ALL_BYTES_MAX: Final = 1_000_000
"""Maximum size of all arguments together."""
END_OF_OPTIONS: Final = "--"


def filled(described: CommandDescription, arguments: JsonObject) -> tuple[str, ...]:
    """Return the arguments after the program. Raises `ToolFailed`."""
    found: list[str] = []
    for argument in described.argv[1:]:
        found += _argument(argument, arguments, is_data=END_OF_OPTIONS in found)
    if sum(len(one.encode()) + 1 for one in found) > ALL_BYTES_MAX:
        raise _wrong(f"the arguments have more than {ALL_BYTES_MAX} bytes")
    return tuple(found)


def standard_input(described: CommandDescription, arguments: JsonObject) -> bytes:
    """Return the standard input: a string as it is, other values as JSON. Raises `ToolFailed`."""
    place = PLACE.fullmatch(described.stdin)
    value = None if place is None else arguments.get(place[1])
    if value is None:
        return b""
    return _encoded(value) if isinstance(value, str) else msgspec.json.encode(value)


def _argument(argument: Argument, arguments: JsonObject, *, is_data: bool) -> Iterator[str]:
    texts = (argument,) if isinstance(argument, str) else argument
    names = [place[1] for text in texts if (place := PLACE.fullmatch(text))]
    if any(arguments.get(name) is None for name in names):
        return
    for text in texts:
        place = PLACE.fullmatch(text)
        if place is None:
            yield text
        else:
            yield from _value(place[1], arguments[place[1]], is_data=is_data)


def _value(name: str, value: Json, *, is_data: bool) -> Iterator[str]:
    """Yield the value as arguments; a list becomes several."""
    match value:
        case list():
            for one in value:
                if isinstance(one, list):
                    raise _wrong(f"the argument {name!r} is a list of lists")
                yield from _value(name, one, is_data=is_data)
        case bool():
            yield "true" if value else "false"
        case int() | float():
            yield str(value)
        case str():
            yield _text(name, value, is_data=is_data)
        case _:
            raise _wrong(f"the argument {name!r} is no text, no number and no list of them")


def _text(name: str, value: str, *, is_data: bool) -> str:
    if value.startswith("-") and not is_data:
        raise _wrong(f"the argument {name!r} begins with a dash: it would be an option")
    if "\0" in value:
        raise _wrong(f"the argument {name!r} has a character that no argument can have")
    if len(_encoded(value)) > BYTES_MAX:
        raise _wrong(f"the argument {name!r} has more than {BYTES_MAX} bytes")
    return value


def _encoded(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise _wrong("a text has half a character") from None


def _wrong(message: str) -> ToolFailed:
    return ToolFailed(Failure(code="tool-arguments", message=message, hint="Call it again, corrected."))
