"""Order of writes and reads: may a write happen before a node reads, and must it?

The dominator tree answers most queries in O(1); a walk, cached per set of writers, answers the rest. A budget bounds
all walks together: beyond it the answer is the one that reports no problem.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from pointsman.definition.checks.routes import always_taken
from pointsman.definition.checks.subject import Subject
from pointsman.definition.graph.walks import reach
from pointsman.definition.model.control import LoopConfig

VISITS_MAX: Final = 100_000
VISITS_PER_NODE_MAX: Final = 30

WRITERS_ASKED_MAX: Final = 8
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
        if len(writers) > WRITERS_ASKED_MAX:
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
            node, came = waiting.pop()
            for edge in self._onwards(node, came, writers):
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

    def _onwards(self, node: int, came: int, writers: frozenset[int]) -> tuple[int, ...]:
        if node in writers:
            return ()
        shape = self.graph.loops.get(node)
        config = self.subject.nodes[node].config
        if shape is None or not isinstance(config, LoopConfig) or config.while_ is not None or config.over is not None:
            return self.graph.out[node]
        # Unless the loop has a condition before the first round, its exit follows at least one round.
        return self.graph.out[node] if came in shape.back_edges else shape.body_edges

    def _needed(self, node: int) -> int:
        """Return how many routes must have arrived before the node starts."""
        known = self._awaited.get(node)
        if known is None:
            known = self._awaited[node] = self._expected(node) if self._waits(node) else 0
        return known

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
        taken = [way for way in self.graph.out[above] if always_taken(self.subject, self.graph.edges[way])]
        return len(taken) > 1 and len(taken) == len(self.graph.out[above])
