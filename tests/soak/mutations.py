"""Broken documents: valid ones with one to four defects; the same ones for the same seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final, cast

from pointsman.values import Json, JsonObject

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("examples", "tests/dialects/corpus", "docs/tutorial")
ENDINGS: Final = (".json", ".yaml", ".jsonc")

HOSTILE: Final[tuple[Json, ...]] = (
    None,
    True,
    -1,
    10**30,
    1e308,
    "",
    "\u0000",
    "\ud800",
    "\u202egnirts",
    "END",
    "${HOME}",
    "{{#each}}",
    "{a.__class__}",
    "$.a[" * 40,
    "(" * 300,
    "x" * 5000,
    "__proto__",
    "../../etc/passwd",
    [],
    {},
    [[[[[[[[]]]]]]]],
    {"type": "agent|fanout|..."},
)
"""Values that are invalid at most places."""

BYTES: Final = (b"\x00", b"\xff", b"\xef\xbb\xbf", b"{", b"}", b'"', b"\\", b",", b"//", b"/*", b"&a *a", b"\n---\n")


def good_documents() -> list[bytes]:
    """Return every workflow document of the repository as bytes, in the order of the paths."""
    files = sorted(
        path
        for source in SOURCES
        for path in (ROOT / source).rglob("*")
        if path.suffix in ENDINGS and path.name != "script.yaml" and not path.name.endswith(".test.yaml")
    )
    return [path.read_bytes() for path in files]


def mutated(good: list[bytes], random: Random) -> bytes:
    """Return one broken document."""
    data = random.choice(good)
    for _ in range(random.randint(1, 4)):
        data = random.choice((_in_bytes, _in_values, _in_values, _in_encoding))(data, random)
    return data


def _in_bytes(data: bytes, random: Random) -> bytes:
    """Cut, duplicate or insert bytes."""
    if not data:
        return random.choice(BYTES)
    at, end = sorted((random.randrange(len(data)), random.randrange(len(data))))
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: data[:at],
        lambda: data[:at] + data[end:],
        lambda: data[:end] + data[at:],
        lambda: data[:at] + random.choice(BYTES) + data[at:],
        lambda: data[:at] + bytes([random.randrange(256)]) + data[at + 1 :],
    )
    return random.choice(ways)()


def _in_encoding(data: bytes, random: Random) -> bytes:
    """Use another encoding, if it is text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    how = random.choice(("utf-16", "utf-32-le", "latin-1", "utf-8-sig", "cp500"))
    return text.encode(how, "replace") if random.random() < 0.3 else data


def _in_values(data: bytes, random: Random) -> bytes:
    """Replace, remove, duplicate, rename or move one value, if it is JSON."""
    try:
        document = cast(Json, json.loads(data))
    except (ValueError, RecursionError):
        return _in_bytes(data, random)
    places = list(_places(document))
    if places:
        holder, key = random.choice(places)
        _break_at(holder, key, [value for value, _ in places], random)
    return json.dumps(document, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")


def _places(value: Json) -> list[tuple[JsonObject | list[Json], str | int]]:
    found: list[tuple[JsonObject | list[Json], str | int]] = []
    waiting: list[Json] = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            found += [(here, key) for key in here]
            waiting += here.values()
        elif isinstance(here, list):
            found += [(here, at) for at in range(len(here))]
            waiting += here
    return found


def _break_at(
    holder: JsonObject | list[Json], key: str | int, others: list[JsonObject | list[Json]], random: Random
) -> None:
    if isinstance(holder, list):
        assert isinstance(key, int)
        ways: tuple[Callable[[], object], ...] = (
            lambda: holder.pop(key),
            lambda: holder.append(holder[key]),
            lambda: holder.__setitem__(key, random.choice(HOSTILE)),
            random.choice((holder.reverse, holder.clear)),
        )
    else:
        assert isinstance(key, str)
        ways = (
            lambda: holder.pop(key),
            lambda: holder.__setitem__(key, random.choice(HOSTILE)),
            lambda: holder.__setitem__(key + "s", holder.pop(key)),
            lambda: holder.__setitem__(key, _copy(random.choice(others))),
            lambda: holder.__setitem__(key, str(holder[key])),
        )
    random.choice(ways)()


def _copy(value: Json) -> Json:
    return cast(Json, json.loads(json.dumps(value)))
