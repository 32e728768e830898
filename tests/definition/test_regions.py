"""Regions of the graph for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from random import Random

import pytest

from pointsman.definition.graph.analysis import graph_view
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.values import Json


def drawn(text: str, configs: Mapping[str, Json] | None = None) -> WorkflowDefinition:
    """Return a workflow as in `p:parallel>a p>b a>j:join`: nodes by first mention, an agent where no type is given."""
    types: dict[str, str] = {}
    edges: list[Json] = []
    for pair in text.split():
        ends: list[str] = []
        for part in pair.split(">"):
            name, _, kind = part.partition(":")
            types[name] = kind or types.get(name, "agent")
            ends.append(name)
        edges.append({"source": ends[0], "target": ends[1]})
    return workflow(types, edges, configs or {})


def workflow(types: Mapping[str, str], edges: list[Json], configs: Mapping[str, Json]) -> WorkflowDefinition:
    nodes: list[Json] = [{"id": name, "type": kind, "config": configs.get(name, {})} for name, kind in types.items()]
    return WorkflowDefinition.model_validate({"pointsman": 1, "id": "w", "nodes": nodes, "edges": edges})


def regions(definition: WorkflowDefinition) -> dict[str, tuple[str, str | None]]:
    return {one["id"]: (" ".join(one["members"]), one["parent"]) for one in graph_view(definition)["regions"]}


@pytest.mark.parametrize(
    ("text", "configs", "expected"),
    [
        ("s>p:parallel p>a p>b a>c c>j:join b>j j>z", {}, {"p": ("a b c", None)}),
        ("s>l:loop l>a a>b b>l l>z", {}, {"l": ("a b", None)}),
        (
            "s>l:loop l>p:parallel p>a p>b a>j:join b>j j>l l>z",
            {},
            {"l": ("p a b j", None), "p": ("a b", "l")},
        ),
        ("p:parallel>l:loop l>a a>l l>j:join p>b b>j j>z", {}, {"p": ("l a b", None), "l": ("a", "p")}),
        ("p:parallel>q:parallel q>a a>j:join j>z", {}, {"p": ("q a j z", None), "q": ("a", "p")}),
        (
            "p:parallel>q:parallel q>a a>j:join j>z",
            {"j": {"of": "p"}},
            {"p": ("q a", None), "q": ("a", "p")},
        ),
        ("s>p:parallel p>a a>e:end a>j:join j>e", {}, {"p": ("a", None)}),
        ("p:parallel>a a>j:join b>j j>z", {"p": {"branches": ["a", "b"]}}, {"p": ("a b", None)}),
        ("l:loop>z a>b", {"l": {"body": ["a", "b"]}}, {"l": ("a b", None)}),
    ],
)
def test_regions_hold_branches_and_bodies(
    text: str, configs: dict[str, Json], expected: dict[str, tuple[str, str | None]]
) -> None:
    assert regions(drawn(text, configs)) == expected


def test_unreachable_nodes_have_regions() -> None:
    definition = drawn("s:start>z x>p:parallel p>a a>j:join y>l:loop l>b b>l")
    assert regions(definition) == {"p": ("a", None), "l": ("b", None)}


def test_named_branches_and_listed_bodies_imply_edges() -> None:
    fork = graph_view(drawn("p:parallel>z a>j:join b>j", {"p": {"branches": ["a", "b"]}}))
    assert fork["implied"] == [{"source": "p", "target": "a"}, {"source": "p", "target": "b"}]
    loop = graph_view(drawn("l:loop>z a>b", {"l": {"body": ["a", "b"]}}))
    assert loop["implied"] == [{"source": "l", "target": "a"}, {"source": "b", "target": "l"}]


@pytest.mark.parametrize("seed", range(100))
def test_regions_never_overlap_partially(seed: int) -> None:
    random = Random(seed)
    size = 3 + random.randrange(14)
    types = {f"n{at}": random.choice(["parallel", "join", "loop", "agent", "agent", "end"]) for at in range(size)}
    edges: list[Json] = [
        {"source": f"n{random.randrange(size)}", "target": f"n{random.randrange(size)}"} for _ in range(2 * size)
    ]
    found = graph_view(workflow(types, edges, {}))["regions"]
    for one, other in combinations(found, 2):
        both = {*one["members"]} & {*other["members"]}
        assert len(both) in (0, len(one["members"]), len(other["members"]))
    for one in found:
        parents = [other for other in found if other["id"] == one["parent"]]
        assert all({*one["members"]} <= {*parent["members"]} and one["id"] in parent["members"] for parent in parents)
