"""Typed gates: what a gate shows and what it takes as an answer, as Python types.

review = Gate("review", shows=Draft, takes=Verdict)
draft = execution.shown(review)
await execution.answer(review, "approve", Verdict(stars=5))
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pointsman.json_conversion import JsonType
from pointsman.values import Json

Shown = TypeVar("Shown")
Answer = TypeVar("Answer")


class Gate(Generic[Shown, Answer]):
    """The gate of a node, with the Python types of what it shows and of the data of an answer."""

    def __init__(self, node: str, *, shows: type[Shown], takes: type[Answer]) -> None:
        """`node`: id of the node, or of one of its gates. Raises `TypeUnusable`."""
        self.node = node
        self._shows = JsonType(shows, what=f"what the gate {node!r} shows")
        self._takes = JsonType(takes, what=f"the answer to the gate {node!r}")

    def read(self, shown: Json) -> Shown:
        """Return what the gate shows. Raises `TypeMismatch`."""
        return self._shows.read(shown)

    def written(self, data: Answer | None) -> Json:
        """Return the data of an answer as JSON; None: the answer has no data. Raises `TypeMismatch`."""
        return None if data is None else self._takes.write(data)
