"""A cache of the most recently used values, bounded by their size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

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
