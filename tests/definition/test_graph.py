"""The analysis of graphs: scopes, joins, loop bodies; on drawn shapes and against exhaustive search."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings

from pointsman.definition.graph.analysis import Graph, analyse
from pointsman.definition.graph.links import DANGLING
from pointsman.definition.graph.scopes import SCOPE_DEPTH_MAX
from pointsman.definition.model.control import JoinConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from tests.definition.graphs import codes, drawings, graph, named, scopes, structures


def test_a_join_closes_the_parallel_around_it() -> None:
    made = graph("start -> fan; fan -> a, b; a -> join; b -> join; join -> end")
    assert scopes(made) == {"start": (), "fan": (), "a": ("fan",), "b": ("fan",), "join": (), "end": ()}
    assert made.closes[made.index["join"]] == (made.index["fan"],)
    assert made.join_of == {made.index["fan"]: made.index["join"]}
    assert made.findings == ()


def test_nested_parallels_close_from_the_inside() -> None:
    made = graph("""
        start -> fan1; fan1 -> fan2, a
        fan2 -> b, c; b -> join2; c -> join2
        join2 -> join1; a -> join1; join1 -> end
    """)
    assert scopes(made)["b"] == ("fan1", "fan2")
    assert scopes(made)["join2"] == ("fan1",)
    assert scopes(made)["join1"] == ()
    assert made.findings == ()


def test_a_join_can_close_an_outer_parallel_with_its_inner_ones() -> None:
    made = graph("start -> fan1; fan1 -> fan2; fan2 -> a; a -> join; join -> end", configs={"join": {"of": "fan1"}})
    assert scopes(made)["join"] == ()
    assert [made.ids[opener] for opener in made.closes[made.index["join"]]] == ["fan1", "fan2"]


def test_a_join_without_an_open_parallel_closes_nothing() -> None:
    made = graph("start -> a, b; a -> join; b -> join; join -> end")
    assert (dict(made.closes), made.findings) == ({}, ())


def test_branches_may_end_early_or_skip_nodes() -> None:
    made = graph("""
        start -> fan; fan -> dec, b
        dec -yes-> a; dec -no-> end1; dec -skip-> join
        a -> join; b -> join; join -> end
    """)
    assert made.findings == ()
    assert scopes(made)["end1"] == ("fan",)


def test_branches_of_unequal_length_meet_in_one_plain_node() -> None:
    made = graph("start -> dec; dec -a-> a; dec -b-> b; a -> c; c -> end; b -> end")
    assert made.findings == ()


def test_edges_outside_the_named_branches_are_taken_after_the_join() -> None:
    made = graph("start -> fan; fan -> a, after", configs={"fan": {"branches": ["a"]}})
    fork = made.forks[made.index["fan"]]
    assert [made.edges[edge].target for edge in fork.starts] == [made.index["a"]]
    assert [made.edges[edge].target for edge in fork.after] == [made.index["after"]]
    assert scopes(made)["after"] == ("fan",)


@pytest.mark.requirement("T3-3")
def test_a_named_branch_with_an_edge_starts_once() -> None:
    made = graph("start -> fan; fan -> a; b; a -> join; b -> join", configs={"fan": {"branches": ["a", "b", "a"]}})
    starts = [made.edges[edge] for edge in made.forks[made.index["fan"]].starts]
    assert [(made.ids[edge.target], edge.implied) for edge in starts] == [("a", ""), ("b", "branch")]


def test_an_edge_from_a_branch_past_its_join_is_a_leak() -> None:
    made = graph("start -> fan; fan -> a, b; a -> join; b -> join; join -> z; b -> z")
    (finding,) = made.findings
    assert finding.code == "scope-leak"
    assert made.ids[finding.nodes[0]] == "z"
    assert {made.edges[edge].id for edge in finding.edges} == {"e6", "e7"}


def test_an_end_may_be_reached_from_inside_and_outside() -> None:
    made = graph("start -> fan; fan -> a, b; a -> join; b -> join; join -> end; b -> end")
    assert made.findings == ()
    assert scopes(made)["end"] == ()


def test_a_node_reached_with_and_without_an_open_parallel_is_a_mismatch() -> None:
    made = graph("start -> dec; dec -a-> fan; dec -b-> m; fan -> m; m -> end")
    assert codes(made) == ["scope-mismatch"]


def test_a_loop_reached_from_inside_an_unjoined_parallel_is_a_mismatch() -> None:
    assert codes(graph("start -> loop; loop -> fan; fan -> a; a -> loop; loop -> end")) == ["scope-mismatch"]


def test_a_join_cannot_close_what_is_not_open() -> None:
    made = graph("start -> fan; fan -> a; a -> join; fan2", configs={"join": {"of": "fan2"}})
    assert codes(made) == ["join-of-not-open"]


def test_a_parallel_counts_its_branches_at_one_join() -> None:
    made = graph("start -> fan; fan -> a, b; a -> join1; b -> join2; join1 -> end; join2 -> end")
    assert codes(made) == ["several-joins"]
    assert made.ids[made.join_of[made.index["fan"]]] in {"join1", "join2"}


def test_an_edge_for_failures_leaves_a_parallel_without_opening_it() -> None:
    made = graph("start -> fan; fan -> a; fan -error-> mend; a -> join; join -> z; mend -> z; z -> end")
    assert scopes(made)["mend"] == ()
    assert made.findings == ()


def test_an_edge_that_is_never_taken_reaches_nothing() -> None:
    made = graph("start -> a; a -never-> b; b -> end")
    assert scopes(made)["b"] is None


def test_parallels_nested_too_deeply_are_reported_and_cost_no_memory() -> None:
    depth = 3_000
    made = graph("start -> fan0\n" + "\n".join(f"fan{n} -> fan{n + 1}" for n in range(depth)))
    assert set(codes(made)) == {"too-nested"}
    assert max(len(scope) for scope in made.scopes if scope is not None) == SCOPE_DEPTH_MAX


def test_the_entry_is_start_else_named_else_without_incoming_edges() -> None:
    assert graph("a -> b; start -> b").entry == 2
    assert graph("a -> b; b -> c", entry="b").entry == 1
    assert graph("b -> c; a -> b; notes").entry == 2
    assert graph("a -> b; b -> a").links.entries == ()
    assert graph("forgotten; a -> b").links.entries == (1,)


def test_handlers_are_reachable_without_edges() -> None:
    made = graph("start -> end; helpdesk -> goodbye", config={"onLimit": "helpdesk"})
    assert scopes(made)["goodbye"] == ()


@pytest.mark.requirement("S0-43", "S0-44")
def test_a_tool_executor_without_a_plain_edge_returns_to_its_callers() -> None:
    made = graph("start -> agent1; agent1 -#t-> tools; agent1 -#a-> agent2; agent2 -#t-> tools")
    assert {(made.ids[edge.source], made.ids[edge.target]) for edge in made.edges if edge.implied == "caller"} == {
        ("tools", "agent1"),
        ("tools", "agent2"),
    }


def test_a_tool_executor_follows_its_plain_edge() -> None:
    made = graph("start -> agent1; agent1 -#t-> tools; tools -> agent2")
    assert not any(edge.implied for edge in made.edges)


def test_an_edge_without_an_id_gets_a_unique_one() -> None:
    workflow, _ = WorkflowDefinition.from_document(
        {
            "id": "w",
            "nodes": [{"id": "a", "type": "transform"}, {"id": "b", "type": "transform"}],
            "edges": [{"source": "a", "target": "b"}, {"source": "a", "target": "b"}, {"source": "a", "target": "x"}],
        }
    )
    assert workflow is not None
    made = analyse(workflow)
    assert [edge.id for edge in made.edges] == ["a->b", "a->b 2", "a->x"]
    assert made.edges[2].target == DANGLING


def loop(made: Graph, name: str = "loop") -> tuple[set[str], set[str], set[str]]:
    """Return the ids of the body's nodes, and of the targets of body and exit edges."""
    shape = made.loops[made.index[name]]
    targets = [{made.ids[made.edges[n].target] for n in some} for some in (shape.body_edges, shape.exit_edges)]
    return named(made, shape.body), targets[0], targets[1]


def test_a_loop_body_returns_without_passing_a_dominator() -> None:
    made = graph("start -> loop; loop -> a; a -> b; b -> loop; loop -> z; z -> end")
    assert loop(made) == ({"a", "b"}, {"a"}, {"z"})
    assert [made.edges[n].id for n in made.loops[made.index["loop"]].back_edges] == ["e4"]


def test_the_exit_of_an_inner_loop_is_not_in_its_body() -> None:
    made = graph("start -> loop1; loop1 -> loop2; loop2 -> a; a -> loop2; loop2 -> loop1; loop1 -> end")
    assert loop(made, "loop2") == ({"a"}, {"a"}, {"loop1"})
    assert loop(made, "loop1") == ({"loop2", "a"}, {"loop2"}, {"end"})
    assert made.findings == ()


def test_a_cycle_around_a_loop_is_not_in_its_body() -> None:
    made = graph("start -> a; a -> loop; loop -> b; b -> loop; loop -> c; c -again-> a; c -done-> end")
    assert loop(made) == ({"b"}, {"b"}, {"c"})


def test_marked_edges_define_the_loop_body() -> None:
    made = graph("start -> loop; loop -body-> a; a -> loop; loop -> z; z -redo-> loop; z -done-> end")
    assert loop(made) == ({"a"}, {"a"}, {"z"})


@pytest.mark.requirement("T3-7")
def test_a_loop_without_a_way_back_has_no_body() -> None:
    assert codes(graph("start -> loop; loop -> a; a -> end")) == ["loop-body-ambiguous"]
    assert codes(graph("start -> loop; loop -body-> a; loop -> b; a -> b; b -> loop")) == ["loop-body-ambiguous"]


def test_a_marked_body_that_never_returns_is_found() -> None:
    assert codes(graph("start -> loop; loop -body-> a; loop -> z; a -> z")) == ["loop-never-returns"]


def test_a_listed_body_runs_in_order_and_returns() -> None:
    made = graph("start -> loop; loop -> end; a; b", configs={"loop": {"body": ["a", "b"]}})
    assert loop(made) == ({"a", "b"}, {"a"}, {"end"})
    assert made.findings == ()


def test_a_loop_body_entered_from_outside_is_found() -> None:
    made = graph("start -> dec; dec -x-> loop; dec -y-> b; loop -> a; a -> b; b -> loop; loop -> end")
    assert codes(made) == ["loop-entered-sideways"]


def test_a_loop_can_be_its_own_body() -> None:
    made = graph("start -> loop; loop -> loop; loop -> end")
    assert loop(made) == (set(), {"loop"}, {"end"})
    assert len(made.loops[made.index["loop"]].back_edges) == 1


def test_a_very_long_chain_needs_neither_recursion_nor_a_table_of_pairs() -> None:
    length = 30_000
    made = graph("start -> n0\n" + "\n".join(f"n{n} -> n{n + 1}" for n in range(length)))
    assert made.dominance.dominates(made.index["start"], made.index[f"n{length}"])
    assert made.findings == ()


@given(drawings())
def test_any_graph_can_be_analysed(drawing: str) -> None:
    made = graph(drawing)
    for join, openers in made.closes.items():
        assert all(made.scopes[opener] is not None for opener in openers)
        assert join not in openers
    for node, scope in enumerate(made.scopes):
        assert scope is None or made.links.nodes[node].type != "note" or made.into[node] or node == made.entry


@given(structures())
def test_well_nested_graphs_have_no_problems(drawing: str) -> None:
    made = graph(drawing)
    assert made.findings == ()
    assert scopes(made)["end"] == ()
    assert all(len(shape.body_edges) == 1 and len(shape.exit_edges) == 1 for shape in made.loops.values())
    assert set(made.join_of) == set(made.forks)


def walked_scopes(made: Graph, node: int) -> set[tuple[int, ...]]:
    """Return every set of open parallels that a token can have at `node`, found by trying all ways."""
    entry = made.entry
    assert entry is not None
    seen: set[tuple[int, tuple[int, ...]]] = {(entry, ())}
    waiting = list(seen)
    while waiting:
        here, scope = waiting.pop()
        config = made.links.nodes[here].config
        if isinstance(config, JoinConfig) and scope and here != entry:
            scope = scope[:-1]
        for number in made.out[here]:
            edge = made.edges[number]
            opens = made.links.nodes[here].type == "parallel" and edge.kind != "error"
            state = (edge.target, (*scope, here) if opens else scope)
            if edge.target >= 0 and len(state[1]) < 5 and state not in seen:
                seen.add(state)
                waiting.append(state)
    return {scope for here, scope in seen if here == node}


@given(drawings(nodes_max=6, edges_max=9))
@settings(max_examples=200)
def test_scopes_equal_those_of_an_exhaustive_search(drawing: str) -> None:
    made = graph(drawing)
    every = {node: walked_scopes(made, node) for node in range(len(made.ids))}
    for node, scope in enumerate(made.scopes):
        assert (scope is None) == (not every[node])
    differing = [n for n, found in every.items() if len(found) > 1 and made.links.nodes[n].type != "end"]
    reported = {finding.code for finding in made.findings} & {"scope-leak", "scope-mismatch"}
    assert bool(differing) == bool(reported)
    if not differing:
        for node, found in every.items():
            for before in found if node != made.entry and made.links.nodes[node].type != "end" else ():
                is_join = isinstance(made.links.nodes[node].config, JoinConfig)
                assert made.scopes[node] == (before[:-1] if is_join else before)


def walked_dominators(made: Graph, node: int) -> set[int]:
    """Return the nodes that are on every way from the entry to `node`."""
    entry = made.entry
    assert entry is not None
    found: set[int] = set()
    for without in range(len(made.ids)):
        seen, waiting = {entry} - {without}, [entry] if entry != without else []
        while waiting:
            for target in made.links.targets(waiting.pop()):
                if target not in seen and target != without:
                    seen.add(target)
                    waiting.append(target)
        if node not in seen:
            found.add(without)
    return found


@given(drawings(nodes_max=7, edges_max=14))
@settings(max_examples=200)
def test_dominators_equal_those_found_by_removing_each_node(drawing: str) -> None:
    made = graph(drawing)
    reached = [node for node, scope in enumerate(made.scopes) if scope is not None]
    for node, other in product(reached, reached):
        assert made.dominance.dominates(node, other) == (node in walked_dominators(made, other))


@given(drawings(nodes_max=7, edges_max=14))
@settings(max_examples=200)
def test_loop_bodies_equal_those_found_by_walking_back(drawing: str) -> None:
    made = graph(drawing)
    for node, shape in made.loops.items():
        if made.scopes[node] is None or any(made.edges[n].mark for n in made.out[node]):
            continue
        above = walked_dominators(made, node) - {node}
        returning = {
            start for start in range(len(made.ids)) if start not in above and comes_back(made, start, node, above)
        }
        expected = {n for n in made.out[node] if made.edges[n].target in returning and made.edges[n].kind != "error"}
        assert set(shape.body_edges) == expected
        assert shape.body <= returning - {node}


def comes_back(made: Graph, start: int, loop_node: int, above: set[int]) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        if here == loop_node:
            return True
        for target in made.links.targets(here):
            if target not in seen and target not in above:
                seen.add(target)
                waiting.append(target)
    return False


def test_nodes_after_a_break_are_not_in_the_loop_body() -> None:
    drawing = "a -> loop; loop -body-> b; b -> loop; b -break-> c; c -> a; loop -exit-> c"
    found = graph(drawing, configs={"loop": {"maxIterations": 2}})
    assert {found.ids[node] for node in found.loops[found.index["loop"]].body} == {"b"}
    assert not found.findings
