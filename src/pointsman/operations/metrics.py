"""Metrics: counters, gauges and histograms, and their Prometheus text format.

    measures.counter("pointsman_steps", "Steps that settled.", "workflow", "outcome").add(1, "news", "done")
    measures.text()  ─▶  pointsman_steps_total{workflow="news",outcome="done"} 1

Label values come from outside (ids, models), and each new one makes every later scrape larger: a bounded label counts
values beyond its bound as `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeAlias, TypeVar

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Labels: TypeAlias = tuple[str, ...]
Sample: TypeAlias = tuple[str, tuple[tuple[str, str], ...], float]
"""Suffix of the name, labels, value."""

OTHER: Final = "other"
SECONDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Bounded:
    """Bound on the number of distinct values of a label."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(value)
        return value


class MetricFamily:
    """All samples of one metric name."""

    kind: Kind = "counter"

    def __init__(self, name: str, help: str, labels: Labels) -> None:
        self.name = name
        self.help = help
        self.labels = labels

    def samples(self) -> Iterator[Sample]:
        raise NotImplementedError

    def named(self, values: Labels, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        return (*zip(self.labels, values, strict=True), *more)


class Counter(MetricFamily):
    """A value that only grows."""

    def __init__(self, name: str, help: str, labels: Labels) -> None:
        super().__init__(name, help, labels)
        self.values: dict[Labels, float] = {}

    def add(self, amount: float, *labels: str) -> None:
        self.values[labels] = self.values.get(labels, 0.0) + amount

    def samples(self) -> Iterator[Sample]:
        for labels, value in self.values.items():
            yield "_total", self.named(labels), value


class Gauge(MetricFamily):
    """A present value, read at each scrape."""

    kind: Kind = "gauge"

    def __init__(
        self, name: str, help: str, labels: Labels, read: Callable[[], Iterable[tuple[Labels, float]]]
    ) -> None:
        super().__init__(name, help, labels)
        self.read = read

    def samples(self) -> Iterator[Sample]:
        for labels, value in self.read():
            yield "", self.named(labels), value


class CounterSource(MetricFamily):
    """A counter whose value is read at each scrape."""

    def __init__(self, name: str, help: str, read: Callable[[], float]) -> None:
        super().__init__(name, help, ())
        self._read = read

    def samples(self) -> Iterator[Sample]:
        yield "_total", (), self._read()


class Histogram(MetricFamily):
    """Cumulative counts of values, by upper bound."""

    kind: Kind = "histogram"

    def __init__(self, name: str, help: str, labels: Labels, bounds: tuple[float, ...] = SECONDS) -> None:
        super().__init__(name, help, labels)
        self._bounds = bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def samples(self) -> Iterator[Sample]:
        for labels, counts in self._counts.items():
            total = 0
            for bound, count in zip((*map(repr, self._bounds), "+Inf"), counts, strict=True):
                total += count
                yield "_bucket", self.named(labels, ("le", bound)), total
            yield "_sum", self.named(labels), self._sums[labels]
            yield "_count", self.named(labels), total


FamilyT = TypeVar("FamilyT", bound=MetricFamily)


class Measures:
    """All metric families of one process."""

    def __init__(self) -> None:
        self.families: list[MetricFamily] = []

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        return self._with(Counter(name, help, labels))

    def gauge(self, name: str, help: str, *labels: str, read: Callable[[], Iterable[tuple[Labels, float]]]) -> Gauge:
        return self._with(Gauge(name, help, labels, read))

    def clock(self, name: str, help: str, *, read: Callable[[], float]) -> CounterSource:
        return self._with(CounterSource(name, help, read))

    def histogram(self, name: str, help: str, *labels: str) -> Histogram:
        return self._with(Histogram(name, help, labels))

    def _with(self, family: FamilyT) -> FamilyT:
        self.families.append(family)
        return family

    def text(self, *, openly: bool = False) -> str:
        """Return the Prometheus text format; with `openly`, the OpenMetrics format."""
        lines: list[str] = []
        for family in self.families:
            name = f"{family.name}_total" if family.kind == "counter" and not openly else family.name
            lines += [f"# HELP {name} {_escaped(family.help)}", f"# TYPE {name} {family.kind}"]
            for suffix, labels, value in family.samples():
                named = ",".join(f'{label}="{_escaped(of)}"' for label, of in labels)
                lines.append(f"{family.name}{suffix}{{{named}}} {_number(value)}")
        if openly:
            lines.append("# EOF")
        return "\n".join((*lines, ""))


def _escaped(text: str) -> str:
    return text.translate(_ESCAPED)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
