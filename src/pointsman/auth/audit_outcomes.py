"""What came of a deed, read off its answer: the ids of what is new, as the audit log tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAMES: Final = ("executionId", "id", "name", "revision")
"""Members of an answer that name something."""


def named_in(answer: Mapping[str, object]) -> dict[str, object]:
    """What it names."""
    return {name: answer[name] for name in NAMES if isinstance(answer.get(name), str | int)}


def fresh_in(named: Mapping[str, object], target: str) -> str:
    """Of what an answer names, what the deed did not name itself. Empty: nothing came of it that has a name."""
    known = {one.partition("=")[2] for one in target.split(", ")}
    fresh = [f"{name}={value}" for name, value in named.items() if str(value) not in known]
    return ", ".join(fresh) if set(named) != {"revision"} else ""
