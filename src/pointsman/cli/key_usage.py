"""How the keys of models stand, as lines: what they paid for today, of how much, and whether they rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from pointsman.cli.printing import shown
from pointsman.cli.results import when
from pointsman.values import JsonObject

ELSEWHERE: Final = "calls under way are counted by the process that makes them: see the page Models of a server"


def paying_lines(told: JsonObject) -> Iterator[str]:
    """A line for each key, and what is not known here."""
    yield "keys, of today (UTC):"
    for provider in cast("list[JsonObject]", told["providers"]):
        if provider["missing"]:
            yield f"  {shown(provider['name']):24} {shown(provider['missing'], chars_max=200)}"
        for key in cast("list[JsonObject]", provider["keys"]):
            yield f"  {shown(key['id']):24} {_standing(key):32} {_paid(key)}".rstrip()
    yield ELSEWHERE


def _standing(key: JsonObject) -> str:
    until = f" until {when(key['until'])}" if key["until"] is not None else ""
    name = f" ({shown(key['name'])})" if key["name"] else ""
    return f"{key['condition']}{until}{name}"


def _paid(key: JsonObject) -> str:
    """What a key without a limit paid for elsewhere is not known here."""
    most = cast("JsonObject | None", key["mostToday"])
    if most is None:
        return "no limit of the day"
    paid = cast("JsonObject", key["today"])
    told = [
        f"{written_amount(name, paid[name])} of {written_amount(name, most[name])}{unit}"
        for name, unit in (("calls", " calls"), ("tokens", " tokens"), ("costUsd", ""))
        if most[name] is not None
    ]
    return ", ".join(told)


def written_amount(name: str, value: object) -> str:
    """Dollars, or a number."""
    return f"${value:.4f}" if name == "costUsd" else f"{value:g}" if isinstance(value, float) else f"{value}"
