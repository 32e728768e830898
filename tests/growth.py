"""How the work of a function grows with its input: the calls that it makes, and the processor time that it takes."""

from __future__ import annotations

from collections.abc import Callable
from cProfile import Profile
from time import thread_time
from typing import Final

TIMES: Final = 4
"""How many times larger the large input is. Quadratic work takes 16 times as many calls, or as much time."""
CALLS_GROWTH_MAX: Final = 5
"""More than 4: a cache or a table that doubles does not always double within the same call."""
CALLS_NOISE: Final = 500
TIME_GROWTH_MAX: Final = 10
TIME_NOISE_S: Final = 0.5
"""Far above what a linear reader of these inputs takes on a busy machine, and far below what a quadratic one takes."""


def check_linear(work: Callable[[int], object], size: int) -> None:
    """Fail if `work(4 * size)` makes or takes more than about 4 times what `work(size)` does. Calls of functions in C
    count; the time covers what happens within one call, such as the search of a pattern."""
    work(size // 2)  # What is imported or compiled once does not count.
    few_calls, short_s = _measured(work, size)
    many_calls, long_s = _measured(work, TIMES * size)
    assert many_calls <= CALLS_GROWTH_MAX * few_calls + CALLS_NOISE, f"{few_calls} calls, then {many_calls}"
    assert long_s < TIME_GROWTH_MAX * short_s + TIME_NOISE_S, f"{short_s:.3f} s, then {long_s:.3f} s"


def _measured(work: Callable[[int], object], size: int) -> tuple[int, float]:
    profile = Profile()
    begun = thread_time()
    profile.runcall(work, size)
    took_s = thread_time() - begun
    return sum(entry.callcount for entry in profile.getstats()), took_s
