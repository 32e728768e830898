"""How the work of a function grows with its input: the calls that it makes, and the processor time that it takes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from cProfile import Profile
from time import thread_time
from typing import Final

WARM_UP: Final = 100
"""The size of a first run, which imports and compiles."""

TIMES: Final = 4
"""How many times larger the large input is. Quadratic work takes 16 times as many calls, or as much time."""
CALLS_GROWTH_MAX: Final = 5
"""More than 4: a cache or a table that doubles does not always double within the same call."""
CALLS_NOISE: Final = 500
TIME_GROWTH_MAX: Final = 10
TIME_NOISE_S: Final = 0.5
"""Far above what a linear reader of these inputs takes on a busy machine, and far below what a quadratic one takes."""


def check_linear(work: Callable[[int], object], size: int) -> None:
    """Fail if `work(4 * size)` takes more than about 4 times what `work(size)` does, or if `work(size)` makes more than
    about 4 times the calls of `work(size / 4)`. Calls of functions in C count, and their profile is the larger cost;
    the time covers what happens within one call, such as the search of a pattern."""
    work(WARM_UP)
    few_calls, many_calls = (_calls(work, part) for part in (size // TIMES, size))
    short_s, long_s = (_seconds(work, part) for part in (size + 1, TIMES * size))  # Results of `size` may be cached.
    assert many_calls <= CALLS_GROWTH_MAX * few_calls + CALLS_NOISE, f"{few_calls} calls, then {many_calls}"
    assert long_s < TIME_GROWTH_MAX * short_s + TIME_NOISE_S, f"{short_s:.3f} s, then {long_s:.3f} s"


def _calls(work: Callable[[int], object], size: int) -> int:
    profile = Profile()
    profile.runcall(work, size)
    return sum(entry.callcount for entry in profile.getstats())


def _seconds(work: Callable[[int], object], size: int) -> float:
    gc.disable()  # A collection takes as long as the tests before it left objects.
    try:
        begun = thread_time()
        work(size)
        return thread_time() - begun
    finally:
        gc.enable()
