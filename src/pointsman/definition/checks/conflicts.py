"""Conflicts between steps that may run at once: two write the same path, or one reads what another writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, combinations, product
from typing import Final, TypeAlias

from pointsman.definition.checks.formulas import FormulaRead, Formulas, Keys, Writing, read_formulas
from pointsman.definition.checks.routing import always_taken, taken_together
from pointsman.definition.checks.subject import Subject
from pointsman.definition.graph.analysis import MANY, Concurrent, Graph, Region, concurrent
from pointsman.definition.graph.walks import reach
from pointsman.definition.model.control import HumanConfig, ParallelConfig
from pointsman.definition.model.work import StructuredRecordConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, error, note, warning

COMPARISONS_MAX: Final = 200_000
"""Nodes visited and paths compared for pairs of steps. Beyond it no further pairs are compared."""
MEETINGS_MAX: Final = 1_000
"""Pairs of steps that are reported."""

_Classes: TypeAlias = "dict[int, list[Writing]]"


def check_conflicts(subject: Subject, formulas: Formulas) -> Iterator[Problem]:
    pairs = _concurrent(subject)
    if not pairs.regions:
        return
    data = _Data(subject, formulas)
    for region in pairs.regions:
        yield from data.conflicts(region, data.writers(region, data.writings))
        if region.scoped:
            yield from (data.approval_race(region, *race) for race in data.races(region, human_only=True))
        else:
            yield from (data.race(region, *race) for race in data.races(region))
    if not pairs.complete or data.comparisons_left < 0:
        hint = "Move parts of it into sub-workflows to have them checked."
        yield note("too-large-to-check", "/nodes", "not everything was checked for write conflicts", hint=hint)


def races_in(workflow: WorkflowDefinition, graph: Graph) -> dict[str, tuple[Keys, ...]]:
    """Return node -> the paths it reads that a step running at the same time may write."""
    subject = Subject(workflow, graph)
    regions = [region for region in _concurrent(subject).regions if not region.scoped]
    if not regions:
        return {}
    data = _Data(subject, read_formulas(subject))
    result: dict[str, dict[Keys, None]] = defaultdict(dict)
    for region in regions:
        for reading, _ in data.races(region):
            assert reading.place.node is not None
            result[graph.ids[reading.place.node]][reading.read.path] = None
    return {node: tuple(paths) for node, paths in result.items()}


def _concurrent(subject: Subject) -> Concurrent:
    graph = subject.graph

    @cache
    def always(edge: int) -> bool:
        return always_taken(subject, graph.edges[edge])

    return concurrent(
        graph,
        always=always,
        together=lambda one, other: taken_together(subject, one, other),
        repeated=lambda node: _over_items(subject, node),
    )


def _over_items(subject: Subject, node: int) -> bool:
    config = subject.nodes[node].config
    return isinstance(config, ParallelConfig) and config.items is not None


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Two writes that may happen at once; the same one twice for a node that runs several times at once."""

    one: Writing
    other: Writing
    certain: bool


class _Data:
    """Reads and writes of all nodes, by field."""

    def __init__(self, subject: Subject, formulas: Formulas) -> None:
        self.subject = subject
        self.comparisons_left = COMPARISONS_MAX
        self.seen: set[tuple[str, int, int]] = set()
        self.reducers = _Reducers(subject)
        self.writings: dict[int, list[Writing]] = defaultdict(list)
        """Writes that would overwrite each other."""
        self.seen_writings: dict[int, list[Writing]] = defaultdict(list)
        """Writes that no other step should read meanwhile. The reducer `last`
        permits it; in imported workflows every reducer does, as in their systems."""
        for writing in formulas.writings:
            reducer = self.reducers.of(writing.keys)
            if reducer is None or not (reducer == "last" or subject.imported):
                self.seen_writings[writing.node].append(writing)
            if reducer is None and not self.appends(writing):
                self.writings[writing.node].append(writing)
        self.readings: dict[int, list[FormulaRead]] = defaultdict(list)
        for reading in formulas.readings:
            if reading.place.node is not None and reading.read.root == "state" and reading.read.path:
                self.readings[reading.place.node].append(reading)

    def appends(self, writing: Writing) -> bool:
        """Return whether the write only ever appends to a list: a structured record."""
        config = self.subject.nodes[writing.node].config
        return isinstance(config, StructuredRecordConfig) and writing.pointer.endswith("/config/records")

    def writers(self, region: Region, writings: Mapping[int, list[Writing]]) -> dict[str, _Classes]:
        """Return field -> the writes to it inside the region, by class: only different classes can conflict."""
        writers: dict[str, _Classes] = defaultdict(lambda: defaultdict(list))
        for node in sorted(region.branch.keys() & writings.keys()):
            for writing in writings[node]:
                writers[str(writing.keys[0])][region.branch[node]].append(writing)
        return writers

    def conflicts(self, region: Region, writers: dict[str, _Classes]) -> Iterator[Problem]:
        for classes in writers.values():
            for meeting in self.meetings(region, classes):
                key = ("write", meeting.one.node, meeting.other.node)
                if key not in self.seen:
                    self.seen.add(key)
                    yield self.conflict(region, meeting)
                if len(self.seen) > MEETINGS_MAX:
                    self.comparisons_left = -1
                if self.comparisons_left < 0:
                    return

    def meetings(self, region: Region, classes: _Classes) -> Iterator[_Meeting]:
        for branch, writings in classes.items() if region.scoped else ():
            # Branches over items write under their own keys; copies of one node in several branches do not.
            for writing in writings if branch == MANY or region.repeated else ():
                if branch == MANY or not writing.by_item:
                    yield _Meeting(writing, writing, writing.node in region.certain and writing.certain)
        for first, second in combinations([branch for branch in classes if branch != MANY], 2):
            for one, other in product(classes[first], classes[second]):
                self.comparisons_left -= 1
                if self.comparisons_left < 0:
                    return
                if overlap(one.keys, other.keys) and self.at_once(region, one.node, other.node):
                    certain = {one.node, other.node} <= region.certain and one.certain and other.certain
                    yield _Meeting(one, other, certain)

    def at_once(self, region: Region, one: int, other: int) -> bool:
        """Return whether two nodes of different classes may run at once. They do
        not if one leads to the other: where routes meet, the later node waits."""
        if region.scoped:
            return True
        self.comparisons_left -= len(region.branch)
        if self.comparisons_left < 0:
            return False
        return not self.leads(region, one, other) and not self.leads(region, other, one)

    def leads(self, region: Region, one: int, other: int) -> bool:
        links = self.subject.graph.links
        return other in reach(links.targets, (one,), within=region.branch)

    def conflict(self, region: Region, meeting: _Meeting) -> Problem:
        one, other = meeting.one, meeting.other
        path = dotted(one.keys if len(one.keys) <= len(other.keys) else other.keys)
        subject, opener = self.subject, self.subject.node(region.opener)
        where = f"behind {opener}" if not region.scoped else f"in the branches of {opener}"
        if one is other:
            message = f"{subject.node(one.node)} runs several times at once {where}, and writes {path!r} each time"
        else:
            writers_text = f"{subject.node(one.node)} and {subject.node(other.node)}"
            message = f"{writers_text} may run at once {where}, and both write {path!r}"
        hint = f"Give it a reducer (`state: {{{path}: {{reduce: append}}}}`), or write to different paths."
        if region.scoped and region.repeated:
            hint = (
                f"Omit the output and read the join's `result`, give {path!r} a reducer, or write one key for each "
                f"branch: `{path}.current_fanout_item`."
            )
        make = error if meeting.certain and not subject.imported else warning
        return make("write-conflict", other.pointer, message, hint=hint)

    def races(self, region: Region, *, human_only: bool = False) -> Iterator[tuple[FormulaRead, Writing]]:
        """Yield each read with a write that may happen at the same time. `human_only`: only reads by gates."""
        writers = self.writers(region, self.seen_writings)
        for node in sorted(region.branch.keys() & self.readings.keys()) if writers else ():
            if human_only and not isinstance(self.subject.nodes[node].config, HumanConfig):
                continue
            for reading in self.readings[node]:
                classes = writers.get(str(reading.read.path[0]), {})
                others = (some for branch, some in classes.items() if branch != region.branch[node])
                for writing in chain.from_iterable(others):
                    self.comparisons_left -= 1
                    if self.comparisons_left < 0 or len(self.seen) > MEETINGS_MAX:
                        self.comparisons_left = -1
                        return
                    key = (f"read {dotted(reading.read.path)}", node, writing.node)
                    if key in self.seen or not overlap(reading.read.path, writing.keys):
                        continue
                    if self.at_once(region, node, writing.node):
                        self.seen.add(key)
                        yield reading, writing

    def race(self, region: Region, reading: FormulaRead, writing: Writing) -> Problem:
        subject, node = self.subject, reading.place.node
        assert node is not None
        message = (
            f"{subject.node(node)} reads {dotted(reading.read.path)!r} "
            f"while {subject.node(writing.node)} may write it: both run behind {subject.node(region.opener)}"
        )
        certain = {node, writing.node} <= region.certain and writing.certain
        make = error if certain and not subject.imported else warning
        return make(
            "read-race", reading.place.pointer, message, hint="Read it before the split, or after the branches join."
        )

    def approval_race(self, region: Region, reading: FormulaRead, writing: Writing) -> Problem:
        subject, node = self.subject, reading.place.node
        assert node is not None
        message = (
            f"{subject.node(node)} asks for approval of {dotted(reading.read.path)!r}, but "
            f"{subject.node(writing.node)} writes it in another branch of {subject.node(region.opener)}: "
            "after the join it may differ from what was approved"
        )
        hint = "Ask before the split or after the join, or write to another path."
        return warning("approval-race", reading.place.pointer, message, hint=hint)


class _Reducers:
    """Reducers of the state by path: a tree of keys, so that
    looking up one of thousands costs no more than one of few."""

    def __init__(self, subject: Subject) -> None:
        self._root = _Level()
        self._known: dict[Keys, str | None] = {}
        patterns = [("messages", "append")]
        patterns += [(pattern, about.reduce or "set") for pattern, about in (subject.workflow.state or {}).items()]
        for order, (pattern, reducer) in enumerate(patterns):
            if reducer != "set":
                level = self._root
                for key in pattern.split("."):
                    level = level.inner.setdefault(key, _Level())
                level.how = level.how or (order, reducer)

    def of(self, keys: Keys) -> str | None:
        """Return the reducer of the path, which merges all writes; None if it has none. The first declared one wins."""
        if keys not in self._known:
            levels = [self._root]
            for key in keys:
                levels = [inner for level in levels for inner in level.matching(key)]
            reducers = [level.how for level in levels if level.how is not None]
            self._known[keys] = min(reducers)[1] if reducers else None
        return self._known[keys]


@dataclass(slots=True)
class _Level:
    """One key of the patterns, with the keys that follow it."""

    inner: dict[str, _Level] = field(default_factory=dict[str, "_Level"])
    how: tuple[int, str] | None = None

    def matching(self, key: str | int | None) -> Iterator[_Level]:
        """Return the levels below for a key; None stands for any key."""
        if key is None:
            yield from self.inner.values()
            return
        for name in {str(key), "*"}:
            if name in self.inner:
                yield self.inner[name]


def overlap(one: Keys, other: Keys) -> bool:
    """Return whether one path is equal to or inside the other. None stands for any key."""
    return all(a is None or b is None or str(a) == str(b) for a, b in zip(one, other, strict=False))


def dotted(keys: Keys) -> str:
    return ".".join("current_fanout_item" if key is None else str(key) for key in keys)
