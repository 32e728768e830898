"""Reads and the writes that feed them: never written, written only later, possibly missing.

`Order` answers whether a write may happen before a node reads, and whether it must. The dominator tree answers most
queries in O(1); a walk, cached per set of writers, answers the rest. A budget bounds all walks together: beyond it the
answer is the one that reports no problem.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import Final

from pointsman.definition.checks.conflicts import dotted, overlap
from pointsman.definition.checks.formulas import FormulaRead, Formulas, Keys, Writing
from pointsman.definition.checks.routing import always_taken
from pointsman.definition.checks.subject import Subject
from pointsman.definition.graph.walks import reach
from pointsman.definition.model.control import HumanConfig, LoopConfig, ParallelConfig, StartConfig
from pointsman.definition.model.work import UnboundConfig
from pointsman.definition.naming_rules import GRAPH_FIELDS, compensations_of
from pointsman.definition.problems import JsonPatchOp, Problem, add_at, error, note, question, replace_at, warning
from pointsman.values import JsonObject

BUILT_IN: Final = frozenset({"messages", "next"})
COMPARISONS_MAX: Final = 300_000
"""Pairs of a write and a path that are compared. Beyond it, all paths under one name count as the same."""

_OPERATION: Final = re.compile(r"(/nodes/\d+/config/operations)/(\d+)/")
ITEM_ROOTS: Final = frozenset({"item", "index", "key"})


def check_dataflow(subject: Subject, formulas: Formulas) -> Iterator[Problem]:
    flow = _Flow(subject, formulas)
    for reading in formulas.readings:
        yield from flow.check(reading)
    yield from flow.undeclared()
    yield from flow.edited_in_vain(formulas)
    yield from flow.written_undeclared(formulas)
    for position, node in enumerate(subject.nodes):
        if isinstance(node.config, LoopConfig):
            yield from flow.loop(position, node.config)


class _Flow:
    """Writes and reads by field, and the fields that exist from the start."""

    def __init__(self, subject: Subject, formulas: Formulas) -> None:
        self.subject = subject
        self.order = Order(subject)
        self.undoing = compensations_of(subject.workflow)
        self.writings: dict[str, list[Writing]] = defaultdict(list)
        for writing in formulas.writings:
            self.writings[str(writing.keys[0])].append(writing)
        self.readings: dict[int, list[FormulaRead]] = defaultdict(list)
        for reading in formulas.readings:
            if reading.place.node is not None:
                self.readings[reading.place.node].append(reading)
        self._undeclared: dict[str, FormulaRead] = {}
        self._writers: dict[Keys, frozenset[int]] = {}
        self._below: dict[str, dict[str | None, list[Writing]]] = {}
        self._comparisons_left = COMPARISONS_MAX
        self.given, self.is_open = self._initial_fields()

    def _initial_fields(self) -> tuple[frozenset[str], bool]:
        """Return the fields that exist at the start, and whether callers may give others."""
        workflow = self.subject.workflow
        schema = workflow.input_schema
        properties = (schema or {}).get("properties")
        fields = set(properties) if isinstance(properties, dict) else set[str]()
        fields |= {
            pattern.split(".")[0] for pattern, about in (workflow.state or {}).items() if about.default is not None
        }
        fields.update((workflow.config.settings or ()) if workflow.config else ())
        for node in workflow.nodes:
            if isinstance(node.config, StartConfig):
                fields.update(node.config.defaults or ())
            if isinstance(node.config, HumanConfig):
                fields.add(f"humanResponse_{node.id.replace('-', '_')}")
        for trigger in workflow.triggers or ():
            fields.update(trigger.initial_data or ())
        if workflow.dialect == "graph":
            fields |= GRAPH_FIELDS
        if workflow.sources:
            fields.add("sources")
        plugins = any(isinstance(node.config, UnboundConfig) for node in workflow.nodes)
        additional = (schema or {"additionalProperties": True}).get("additionalProperties", False)
        return frozenset(fields) | BUILT_IN, plugins or additional is not False or not isinstance(properties, dict)

    def check(self, reading: FormulaRead) -> Iterator[Problem]:
        read, node = reading.read, reading.place.node
        if node is not None and (not self.subject.reached(node) or self.subject.graph.ids[node] in self.undoing):
            return  # a compensation can run after any write
        match read.root:
            case "state":
                if read.path and isinstance(read.path[0], str):
                    yield from self.field(reading, read.path[0])
            case "nodes":
                if read.path and isinstance(read.path[0], str):
                    yield from self.node_result(reading, read.path[0])
            case root if root in ITEM_ROOTS or root == "loop":
                if node is not None and not self.has_items(reading, node, root):
                    message = f"{self.where(reading)} reads `{root}`, but is not inside a {self.around(root)}"
                    hint = self.before_branches(reading, root) or "Move it inside, or read another value."
                    yield warning("outside-of-items", reading.place.pointer, message, hint=hint)
            case _:
                pass

    def around(self, root: str) -> str:
        return "loop" if root == "loop" else "parallel or loop"

    def has_items(self, reading: FormulaRead, node: int, root: str) -> bool:
        graph, one = self.subject.graph, self.subject.nodes[node]
        if one.type in ("loop", "join") or (one.type == "parallel" and reading.place.edge is None):
            return True
        return node in self.loop_bodies or (root != "loop" and bool(graph.scopes[node]))

    @cached_property
    def loop_bodies(self) -> frozenset[int]:
        return frozenset(node for shape in self.subject.graph.loops.values() for node in shape.body)

    def before_branches(self, reading: FormulaRead, name: str) -> str:
        """Return the hint for a condition that reads a parallel's item on an edge out of that parallel; else empty."""
        place = reading.place
        config = self.subject.nodes[place.node].config if place.node is not None else None
        if place.edge is None or not isinstance(config, ParallelConfig) or name not in {*ITEM_ROOTS, config.as_}:
            return ""
        opener = self.subject.node(place.node) if place.node is not None else ""
        return (
            f"Conditions on the edges of {opener} choose its branches before a branch has an item: {name!r} of "
            f"{opener} is not available yet. Put a decision after the edge, or filter `items`."
        )

    def where(self, reading: FormulaRead) -> str:
        place = reading.place
        if place.edge is not None:
            return self.subject.edge(place.edge)
        return self.subject.node(place.node) if place.node is not None else "the workflow"

    def field(self, reading: FormulaRead, name: str) -> Iterator[Problem]:
        if name in self.given or name.startswith("_"):
            return
        writers = self.writers(reading.read.path)
        if not writers:
            yield from self.never_written(reading, name)
            return
        place, path = reading.place, dotted(reading.read.path)
        if place.node is None:
            return
        own = place.edge is not None
        if place.node in writers and self.written_above(reading):
            return
        if not self.order.may_precede(writers, place.node, own=own):
            writer_names = self.subject.listed(writers)
            message = f"{self.where(reading)} reads {path!r}, which only {writer_names} writes, and never before it"
            lax = self.subject.imported or self.is_open or reading.read.guarded
            make = warning if lax else error
            yield make("read-before-written", place.pointer, message, hint="Move the write before the read.")
        elif reading.demands and not self.order.must_precede(writers, place.node, own=own):
            message = f"{self.where(reading)} needs {path!r}, but not every path to it writes it"
            hint = f"It is written by {self.subject.listed(writers)}. Write {{{path}?}} if it may be missing."
            yield warning("maybe-missing", place.pointer, message, hint=hint)

    def written_above(self, reading: FormulaRead) -> bool:
        """Return whether an earlier operation of the same transform writes what this one reads."""
        at = _operation(reading.place.pointer)
        return at is not None and any(
            (other := _operation(one.pointer)) is not None and other[0] == at[0] and other[1] < at[1]
            for one in self.writings.get(str(reading.read.path[0]), ())
            if one.node == reading.place.node and overlap(one.keys, reading.read.path)
        )

    def writers(self, path: Keys) -> frozenset[int]:
        """Return the nodes that write this path, or something around or inside it."""
        nodes = self._writers.get(path)
        if nodes is None:
            writings = self._candidates(path)
            self._comparisons_left -= len(writings)
            certain = self._comparisons_left < 0  # the budget is used up: assume that every candidate writes the path
            nodes = frozenset(writing.node for writing in writings if certain or overlap(writing.keys, path))
            self._writers[path] = nodes
        return nodes

    def _candidates(self, path: Keys) -> list[Writing]:
        """Return the writes that may overlap a path: those under its first key, and of these those under its second."""
        name = str(path[0])
        writings = self.writings.get(name, [])
        if len(path) < 2 or path[1] is None or len(writings) < 2:
            return writings
        below = self._below.get(name)
        if below is None:
            below = self._below[name] = defaultdict(list)
            for writing in writings:
                second = writing.keys[1] if len(writing.keys) > 1 else None
                below[None if second is None else str(second)].append(writing)
        return [*below.get(str(path[1]), ()), *below.get(None, ())]

    def never_written(self, reading: FormulaRead, name: str) -> Iterator[Problem]:
        if reading.read.guarded:
            return
        path = dotted(reading.read.path)
        early = self.before_branches(reading, name)
        near = None if early else self.subject.nearest(name, self.fields)
        partly = self.writings.get(name, [])
        if self.is_open and near is None and not partly and not self.subject.imported:
            self._undeclared.setdefault(name, reading)
            return
        if early:
            hint = early
        elif partly:
            hint = f"Only {', '.join(sorted({repr(dotted(one.keys)) for one in partly}))} is written."
        elif self.subject.workflow.dialect == "graph":
            hint = question(near, "Its value comes from the settings (`config`).")
        else:
            hint = question(near, "Declare it in `input` if callers provide it, or write it before.")
        make = warning if self.subject.imported or self.is_open or partly else error
        message = f"{self.where(reading)} reads {path!r}, which nothing writes"
        fix = self.renamed(reading, name, near) if near is not None and not partly else None
        yield make("never-written", reading.place.pointer, message, hint=hint, fix=fix)

    @cached_property
    def fields(self) -> frozenset[str]:
        """Names of all fields that exist at the start or are written."""
        return frozenset({*self.given, *self.writings} - BUILT_IN)

    def undeclared(self) -> Iterator[Problem]:
        """Report fields that only callers can give, in a workflow that does not declare its input."""
        early = {name: self.before_branches(reading, name) for name, reading in self._undeclared.items()}
        names = sorted(name for name in self._undeclared if not early[name])
        schema: JsonObject = {"type": "object", "properties": {name: {} for name in names}}
        fix = add_at("/input", schema) if names and self.subject.input_schema is None else None
        for name, reading in self._undeclared.items():
            message = f"{self.where(reading)} reads {name!r}, which nothing writes: callers must give it"
            hint = early[name] or "Declare it in `input`, so that it is requested and checked."
            own = None if early[name] else fix
            yield warning("undeclared-input", reading.place.pointer, message, hint=hint, fix=own)

    def edited_in_vain(self, formulas: Formulas) -> Iterator[Problem]:
        """Report fields that people may edit and that nothing else in the workflow uses."""
        read = {
            str(reading.read.path[0])
            for reading in formulas.readings
            if reading.read.root == "state" and reading.read.path
        }
        declared = {pattern.split(".")[0] for pattern in self.subject.workflow.state or {}}
        by_nodes = {str(writing.keys[0]) for writing in formulas.writings if "/editable/" not in writing.pointer}
        declared_fields = self.given | read | declared | by_nodes
        written = {str(writing.keys[0]) for writing in formulas.writings if writing.certain}
        candidates = {*self.given, *declared, *written} - BUILT_IN
        for writing in formulas.writings:
            name = str(writing.keys[0])
            if "/editable/" not in writing.pointer or name in declared_fields:
                continue
            near = self.subject.nearest(name, candidates)
            message = f"people may edit {name!r} at {self.subject.node(writing.node)}, but no node writes or reads it"
            hint = question(near, "Name a field that a step before it writes.")
            fix = replace_at(writing.pointer, near) if near is not None and writing.keys == (name,) else None
            yield warning("editable-field-unused", writing.pointer, message, hint=hint, fix=fix)

    def written_undeclared(self, formulas: Formulas) -> Iterator[Problem]:
        """Note fields that are written but not declared, if the
        state declares any. The state is open: that is allowed."""
        workflow = self.subject.workflow
        declared = {pattern.split(".")[0] for pattern in workflow.state or {}}
        if not declared and workflow.dialect != "graph":
            return
        fields, reported = self.given | declared, set[str]()
        candidates = fields - BUILT_IN
        for writing in formulas.writings:
            name = str(writing.keys[0])
            if not writing.certain or name in fields or name in reported or name.startswith("_"):
                continue
            reported.add(name)
            message = f"{self.subject.node(writing.node)} writes {name!r}, which `state` does not declare"
            hint = question(
                self.subject.nearest(name, candidates),
                "Declare it in `state`, or ignore this: undeclared fields are allowed.",
            )
            yield note("undeclared-field", writing.pointer, message, hint=hint)

    def renamed(self, reading: FormulaRead, name: str, near: str) -> tuple[JsonPatchOp, ...] | None:
        """Return a fix: the whole text with the name corrected. None
        if the name is not in the text in the form that was read."""
        text, at = reading.place.text, text_at(reading, name)
        if at is None:
            return None
        return replace_at(reading.place.pointer, text[:at] + near + text[at + len(name) :])

    def node_result(self, reading: FormulaRead, name: str) -> Iterator[Problem]:
        graph, place = self.subject.graph, reading.place
        if name not in graph.index:
            if reading.read.guarded:
                return
            near = self.subject.nearest(name, graph.index)
            hint = question(near, "Name a node of this workflow.")
            make = warning if self.subject.imported else error
            fix = self.renamed(reading, name, near) if near else None
            message = f"{self.where(reading)} reads the result of node {name!r}, which does not exist"
            yield make("unknown-node-read", place.pointer, message, hint=hint, fix=fix)
        elif place.node is not None:
            writer = frozenset({graph.index[name]})
            # The outputs of a node are evaluated after its step, when its own result is known.
            own = place.edge is not None or "/outputs/" in place.pointer
            if not self.order.may_precede(writer, place.node, own=own):
                message = f"{self.where(reading)} reads the result of node {name!r}, which never runs before it"
                make = warning if self.subject.imported or reading.read.guarded else error
                yield make("read-before-written", place.pointer, message, hint="Move it behind that node.")

    def loop(self, position: int, config: LoopConfig) -> Iterator[Problem]:
        """Report loops whose rounds cannot differ: the same inputs and results until the limit stops them."""
        shape = self.subject.graph.loops.get(position)
        if shape is None or not shape.body or config.over is not None or not self.subject.reached(position):
            return
        written = [one for node in shape.body for one in self.writings_of.get(node, ())]
        reads = [reading.read for node in shape.body for reading in self.readings.get(node, ()) if self.takes(reading)]
        works = any(self.subject.nodes[node].type in ("agent", "tool", "code", "http") for node in shape.body)
        if not works or not reads or any(read.root not in ("state", "input", "config") for read in reads):
            return
        if not self.feeds(written, [read.path for read in reads if read.root == "state"]):
            what = ", ".join(sorted({repr(dotted(read.path)) for read in reads})[:4])
            message = f"the body of {self.subject.node(position)} writes nothing that it reads ({what})"
            hint = "Every round reads the same data. Add a step that writes one of its inputs, or remove the loop."
            yield warning("loop-changes-nothing", self.subject.at_node(position), message, hint=hint)

    @cached_property
    def writings_of(self) -> dict[int, list[Writing]]:
        """Writes by node."""
        writings: dict[int, list[Writing]] = defaultdict(list)
        for some in self.writings.values():
            for one in some:
                writings[one.node].append(one)
        return writings

    def feeds(self, written: list[Writing], paths: list[Keys]) -> bool:
        """Return whether one of the writes changes one of the paths. True if the budget is used up."""
        by_name: dict[str, list[Keys]] = defaultdict(list)
        for path in dict.fromkeys(paths):
            by_name[str(path[0]) if path else ""].append(path)
        for one in written:
            near = [*by_name.get(str(one.keys[0]), ()), *by_name.get("", ())]
            self._comparisons_left -= len(near) + 1
            if self._comparisons_left < 0 or any(overlap(one.keys, path) for path in near):
                return True
        return False

    def takes(self, reading: FormulaRead) -> bool:
        """Return whether a node reads this from outside: not from its named inputs, its result or its edges."""
        place = reading.place
        inputs = self.subject.nodes[place.node].inputs if place.node is not None else None
        return place.edge is None and "/outputs/" not in place.pointer and reading.read.root not in (inputs or {})


def _operation(pointer: str) -> tuple[str, int] | None:
    """Return the list of operations that contains the pointer, and the number of the operation."""
    match = _OPERATION.match(pointer)
    return None if match is None else (match[1], int(match[2]))


def text_at(reading: FormulaRead, name: str) -> int | None:
    """Return the offset of the name in the formula's text."""
    at = reading.place.text.find(name, reading.read.offset, reading.read.offset + reading.read.length)
    return at if at >= 0 else None


VISITS_MAX: Final = 100_000
VISITS_PER_NODE_MAX: Final = 30

WRITERS_CHECKED_MAX: Final = 8
"""Maximum number of writers that are queried one by one; for more, one walk answers for all readers."""


class Order:
    """Order of the nodes of one graph."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.graph = subject.graph
        self._after: dict[frozenset[int], set[int]] = {}
        self._dry: dict[frozenset[int], set[int]] = {}
        self._visits_left = VISITS_MAX + VISITS_PER_NODE_MAX * len(subject.nodes)
        self._awaited: dict[int, int] = {}

    def may_precede(self, writers: frozenset[int], reader: int, *, own: bool) -> bool:
        """Return whether a writer can be done before the reader starts. `own`: the reader's own write counts."""
        if own and reader in writers:
            return True
        if self._dominated(writers, reader):
            return True
        after = self._after.get(writers)
        if after is None:
            if self._visits_left < 0:
                return True
            targets = chain.from_iterable(self.graph.links.targets(writer) for writer in writers)
            after = self._after[writers] = reach(self.graph.links.targets, targets)
            self._visits_left -= len(after)
        return reader in after

    def must_precede(self, writers: frozenset[int], reader: int, *, own: bool) -> bool:
        """Return whether every route to the reader passes a writer. If branches are joined, one of them is enough."""
        if own and reader in writers:
            return True
        if self._dominated(writers, reader):
            return True
        dry = self._dry.get(writers)
        if dry is None:
            if self._visits_left < 0:
                return True
            dry = self._dry[writers] = self._without(writers)
            self._visits_left -= len(dry)
        return reader not in dry

    def _dominated(self, writers: frozenset[int], reader: int) -> bool:
        if len(writers) > WRITERS_CHECKED_MAX:
            return False
        tree = self.graph.dominance
        return any(writer != reader and tree.dominates(writer, reader) for writer in writers)

    def _without(self, writers: frozenset[int]) -> set[int]:
        """Return the nodes that can be entered before any writer was passed."""
        graph = self.graph
        heads = [*(() if graph.entry is None else (graph.entry,)), *graph.links.handlers]
        dry = set(heads)
        arrived: dict[int, set[int]] = {}
        waiting = [(head, -1) for head in dry]
        done: set[int] = set()
        while waiting:
            node, arrival = waiting.pop()
            for edge in self._onwards(node, arrival, writers):
                if edge in done:
                    continue
                done.add(edge)
                target = graph.edges[edge].target
                if target < 0:
                    continue
                arrived.setdefault(target, set()).add(edge)
                if len(arrived[target]) < self._needed(target):
                    continue
                if target not in dry or target in graph.loops:
                    dry.add(target)
                    waiting.append((target, edge))
        return dry

    def _onwards(self, node: int, arrival: int, writers: frozenset[int]) -> tuple[int, ...]:
        if node in writers:
            return ()
        shape = self.graph.loops.get(node)
        config = self.subject.nodes[node].config
        if shape is None or not isinstance(config, LoopConfig) or config.while_ is not None or config.over is not None:
            return self.graph.out[node]
        # Unless the loop has a condition before the first round, its exit follows at least one round.
        return self.graph.out[node] if arrival in shape.back_edges else shape.body_edges

    def _needed(self, node: int) -> int:
        """Return how many routes must have arrived before the node starts."""
        needed = self._awaited.get(node)
        if needed is None:
            needed = self._awaited[node] = self._expected(node) if self._waits(node) else 0
        return needed

    def _expected(self, node: int) -> int:
        reached = (edge for edge in self.graph.into[node] if self.graph.edges[edge].source >= 0)
        return sum(self.subject.reached(self.graph.edges[edge].source) for edge in reached)

    def _waits(self, node: int) -> bool:
        """Return whether a node waits for several routes that were
        all taken: the join of a parallel, or of a plain split."""
        if node in self.graph.closes:
            return True
        if len(self.graph.into[node]) < 2 or node in self.graph.loops or self.subject.nodes[node].trigger == "each":
            return False
        above = self.graph.dominance.immediate[node]
        if not 0 <= above < len(self.graph.ids) or self.subject.routings[above] != "all":
            return False
        taken = [
            edge_number
            for edge_number in self.graph.out[above]
            if always_taken(self.subject, self.graph.edges[edge_number])
        ]
        return len(taken) > 1 and len(taken) == len(self.graph.out[above])
