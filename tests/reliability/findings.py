"""What an experiment of the scorecard is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Tier: TypeAlias = Literal["pr", "long"]
"""`pr`: before every change is taken, minutes on two cores · `long`: hours are allowed."""

SEED: Final = 1


class Finding(NamedTuple):
    """What came of one experiment."""

    figure: str
    """The figures, in a few words."""
    violations: tuple[str, ...] = ()
    """What must not be, one line each, with whatever reproduces it. Empty: it holds."""

    late: tuple[str, ...] = ()
    """What took longer than promised: it breaks a row, and no test, whose machine may be anybody's."""

    @property
    def complaints(self) -> tuple[str, ...]:
        return self.violations + self.late

    @property
    def holds(self) -> bool:
        return not self.complaints


class NotHere(Exception):
    """This machine cannot run the experiment; the message says why."""


class Row(NamedTuple):
    """One experiment. `examine(size, seed)` is the same in the same place for the same arguments, as far as it can."""

    name: str
    experiment: str
    must_show: str
    sizes: Mapping[Tier, int]
    unit: str
    """What `sizes` counts."""
    examine: Callable[[int, int], Finding]
    test_size: int | None = None
    """The size in which `make test` runs it, where the whole tier would take too long."""
