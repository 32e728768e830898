"""Bounded collections in memory: a cache of the most recently used values, and counts of uses."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Keeps the most recently used values whose sizes add up to at most `size_max`.

    A value that alone exceeds the bound is not kept.
    """

    def __init__(self, size_max: int, size_of: Callable[[V], int] = lambda _: 1) -> None:
        """`size_of`: by default each value has the size 1."""
        self._size_max = size_max
        self._size_of = size_of
        self._values: OrderedDict[K, V] = OrderedDict()
        self._size = 0

    def get(self, key: K) -> V | None:
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: K, value: V) -> None:
        self.drop(key)
        size = self._size_of(value)
        if size > self._size_max:
            return
        self._values[key] = value
        self._size += size
        while self._size > self._size_max:
            self.drop(next(iter(self._values)))

    def drop(self, key: K) -> None:
        if key in self._values:
            self._size -= self._size_of(self._values.pop(key))


COUNTS_MAX: Final = 10_000
"""Maximum number of counts; the least recently used are dropped first."""


class UseCounts:
    """Counts of limited uses, such as those of a scripted answer with `times`, for calls outside executions.

    An execution counts the uses of its own calls (`ExecutionPort.use`), across processes and forks.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def use(self, what: str, *, most: int | None = None) -> int | None:
        """Count a use, and return the number of uses before it. None: there were `most` already, nothing is counted."""
        before = self._counts.pop(what, 0)
        is_spent = most is not None and before >= most
        self._counts[what] = before if is_spent else before + 1
        while len(self._counts) > COUNTS_MAX:
            del self._counts[next(iter(self._counts))]
        return None if is_spent else before
