"""Graph algorithms on numbers, against exhaustive search."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.definition.graph.walks import NOWHERE, components, cycles, dominator_tree, reach

Graph = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(1, 14))
    ends = st.integers(0, size - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=size * 3))
    made: Graph = [[] for _ in range(size)]
    for source, target in pairs:
        made[source].append(target)
    return made


def backwards(graph: Graph) -> Graph:
    made: Graph = [[] for _ in graph]
    for source, targets in enumerate(graph):
        for target in targets:
            made[target].append(source)
    return made


@given(graphs())
@settings(max_examples=300)
def test_a_dominator_is_on_every_path_to_a_node(graph: Graph) -> None:
    tree = dominator_tree(graph, backwards(graph), 0)
    reached = reach(lambda node: graph[node], (0,))
    without = {node: reach(lambda one: graph[one], (0,), avoid=(node,)) for node in reached}
    for node in reached:
        for other in reached:
            assert tree.dominates(node, other) == (node == other or other not in without[node])
    for node in range(len(graph)):
        above = tree.immediate[node]
        assert (above == NOWHERE) == (node == 0 or node not in reached)
        if above != NOWHERE:
            strict = [one for one in reached if one != node and tree.dominates(one, node)]
            assert all(tree.dominates(one, above) for one in strict)


@given(graphs())
@settings(max_examples=200)
def test_components_contain_nodes_that_reach_each_other(graph: Graph) -> None:
    after = [reach(lambda one: graph[one], (node,)) for node in range(len(graph))]
    parts = components(graph)
    assert sorted(node for part in parts for node in part) == list(range(len(graph)))
    for part in parts:
        for node in part:
            assert set(part) == {other for other in after[node] if node in after[other]}
    place = {node: number for number, part in enumerate(parts) for node in part}
    assert all(place[target] <= place[source] for source, targets in enumerate(graph) for target in targets)
    round_and_round = {node for part in cycles(graph) for node in part}
    assert round_and_round == {node for node in range(len(graph)) if any(node in after[to] for to in graph[node])}


def test_a_very_deep_graph_is_walked_without_recursion() -> None:
    size = 50_000
    chain: Graph = [[node + 1] for node in range(size - 1)] + [[0]]
    assert components(chain) == [list(range(size))]
    assert dominator_tree(chain, backwards(chain), 0).dominates(0, size - 1)
