"""Interface of the experiments of the scorecard, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Tier: TypeAlias = Literal["pr", "long"]
"""`pr`: runs before each change is merged, minutes on two cores; `long`: may run for hours."""

SEED: Final = 1


class Finding(NamedTuple):
    """The result of one experiment."""

    figure: str
    """The figures as a short text."""
    violations: tuple[str, ...] = ()
    """Violations, one per line, with the data that reproduces each. Empty: the property holds."""

    late: tuple[str, ...] = ()
    """Measurements that exceeded a promised time. They fail a row of the scorecard, but no test, because the test
    machine may be slow.
    """

    @property
    def complaints(self) -> tuple[str, ...]:
        return self.violations + self.late

    @property
    def holds(self) -> bool:
        return not self.complaints


class NotHere(Exception):
    """Raised if this machine cannot run the experiment; the message states the reason."""


class Row(NamedTuple):
    """One experiment. `examine(size, seed)` behaves the same for the same arguments as far as possible."""

    name: str
    experiment: str
    must_show: str
    sizes: Mapping[Tier, int]
    unit: str
    """The unit of `sizes`."""
    examine: Callable[[int, int], Finding]
    test_size: int | None = None
    """The size for `make test`, if the `pr` tier would take too long."""
    is_scale: bool = False
    """Whether it is a test of the scale tier only."""
