"""Outcome of an audited action, read from its answer: the ids that the action created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAMES: Final = ("executionId", "id", "name", "revision")
"""Members of an answer that name something."""


def named_in(answer: Mapping[str, object]) -> dict[str, object]:
    """Return the members of an answer that name something."""
    return {name: answer[name] for name in NAMES if isinstance(answer.get(name), str | int)}


def fresh_in(named: Mapping[str, object], target: str) -> str:
    """Return the names in an answer that the target of the action does not contain. Empty if the action created nothing
    that has a name."""
    known = {one.partition("=")[2] for one in target.split(", ")}
    fresh = [f"{name}={value}" for name, value in named.items() if str(value) not in known]
    return ", ".join(fresh) if set(named) != {"revision"} else ""
