"""The cost of a check is linear in the document. It is counted in calls, so that the speed of the machine does not
matter."""

from __future__ import annotations

import json
from collections.abc import Callable
from cProfile import Profile
from typing import Final

import pytest

from pointsman.definition import problems
from pointsman.definition.problems import PROBLEMS_MAX
from pointsman.definition.reading.documents import read_document
from pointsman.dialects.writers import yaml_text
from pointsman.values import Json, JsonObject
from pointsman.workflows.conversion import converted
from pointsman.workflows.sources import Workflow
from tests.checking import check_document

GROWTH_MAX: Final = 6.0
"""For a document of four times the size. A quadratic cost would be sixteen."""
SMALL: Final = 100
BUDGETS: Final = (
    "definition.graph.analysis.VISITS_MAX",
    "definition.graph.scopes.BODY_VISITS_MAX",
    "definition.checks.dataflow.VISITS_MAX",
)
"""Limits of walks whose cost may be quadratic for small documents; lowered here, so that small documents exceed
them."""

Made = Callable[[int], JsonObject]


def chain(count: int) -> JsonObject:
    nodes: list[Json] = [{"id": f"n{i}", "type": "agent", "config": {"prompt": "Go."}} for i in range(count)]
    edges: list[Json] = [{"source": f"n{i}", "target": f"n{i + 1}"} for i in range(count - 1)]
    return {"pointsman": 1, "id": "x", "nodes": nodes, "edges": edges}


def over(nodes: int, edges: list[tuple[str, str]]) -> JsonObject:
    written: list[Json] = [{"source": source, "target": target} for source, target in edges]
    return {**chain(nodes), "edges": written}


def each_node(count: int, change: Callable[[int], JsonObject]) -> JsonObject:
    made = chain(count)
    nodes: list[Json] = [
        {"id": f"n{i}", "type": "agent", "config": {"prompt": "Go."}, **change(i)} for i in range(count)
    ]
    return {**made, "nodes": nodes}


def fan(count: int) -> list[tuple[str, str]]:
    return [("n0", f"n{i}") for i in range(1, count - 1)] + [(f"n{i}", f"n{count - 1}") for i in range(1, count - 1)]


def parallel(count: int) -> JsonObject:
    ends: JsonObject = {"id": f"n{count - 1}", "type": "join"}
    inner: list[Json] = [
        {"id": f"n{i}", "type": "agent", "config": {"prompt": "Go."}, "outputs": {"same": "result"}}
        for i in range(1, count - 1)
    ]
    return {**over(count, fan(count)), "nodes": [{"id": "n0", "type": "parallel"}, *inner, ends]}


def loops(count: int) -> JsonObject:
    nodes: list[Json] = [{"id": "start", "type": "start"}]
    edges = [("start", "l0")]
    for i in range(count):
        nodes.append({"id": f"l{i}", "type": "loop", "config": {"maxIterations": 3}})
        nodes.append({"id": f"b{i}", "type": "agent", "config": {"prompt": "Go."}})
        edges += [(f"l{i}", f"b{i}"), (f"b{i}", f"l{i}"), (f"l{i}", f"l{i + 1}")]
    return {**over(1, edges[:-1]), "nodes": nodes}


def nested_loops(count: int) -> JsonObject:
    made = loops(count)
    inward = [("start", "l0"), *((f"l{i}", f"l{i + 1}") for i in range(count - 1)), (f"l{count - 1}", "b0")]
    outward = [("b0", f"l{count - 1}"), *((f"l{i + 1}", f"l{i}") for i in range(count - 1))]
    return {**made, "edges": over(1, [*inward, *outward])["edges"]}


def decision(count: int) -> JsonObject:
    cases: list[Json] = [{"label": f"l{i}", "when": "x > 1"} for i in range(count)]
    edges: list[Json] = [{"source": "n0", "target": f"n{i + 1}", "label": f"m{i}"} for i in range(count)]
    made = chain(count + 1)
    nodes = made["nodes"]
    assert isinstance(nodes, list)
    return {**made, "edges": edges, "nodes": [{"id": "n0", "type": "decision", "config": {"cases": cases}}, *nodes[1:]]}


def misspelt_conditions(count: int) -> JsonObject:
    edges: list[Json] = [
        {"source": f"n{i}", "target": f"n{i + 1}", "condition": {"type": f"expresion{i}"}} for i in range(count - 1)
    ]
    return {**chain(count), "edges": edges}


def named_agents(count: int, called: str) -> JsonObject:
    agents: JsonObject = {f"a{i}": {"prompt": "Go."} for i in range(count)}
    return {**each_node(count, lambda i: {"config": {"agent": f"{called}{i}"}}), "agents": agents}


def reducers(count: int) -> JsonObject:
    fields: JsonObject = {f"s{i}": {"reduce": "append"} for i in range(count)}
    written = each_node(count, lambda i: {"config": {"prompt": f"{{s{i - 1}}}"}, "outputs": {f"s{i}": "result"}})
    return {**written, "state": fields}


def full(count: int) -> JsonObject:
    side = int(count**0.5)
    return over(side, [(f"n{a}", f"n{b}") for a in range(side) for b in range(side) if a != b])


def compensated(count: int) -> JsonObject:
    undo: list[Json] = [{"id": f"u{i}", "type": "agent", "config": {"prompt": "Undo."}} for i in range(count)]
    nodes = each_node(count, lambda i: {"compensate": f"u{i}"})["nodes"]
    assert isinstance(nodes, list)
    return {**chain(count), "nodes": [*nodes, *undo]}


def fields(n: int, **about: Json) -> JsonObject:
    """Return the described fields of an object."""
    return {"type": "object", "properties": {f"field{i}": {"type": "string", **about} for i in range(n)}}


def start_with(**config: Json) -> JsonObject:
    """Return a chain after a start node."""
    made = chain(2)
    nodes, edges = made["nodes"], made["edges"]
    assert isinstance(nodes, list)
    assert isinstance(edges, list)
    start: JsonObject = {"id": "start", "type": "start", "config": config}
    return {**made, "nodes": [start, *nodes], "edges": [{"source": "start", "target": "n0"}, *edges]}


SHAPES: Final[dict[str, Made]] = {
    "input fields": lambda n: {**chain(2), "input": fields(n)},
    "input fields with defaults": lambda n: {**chain(2), "input": fields(n, default="x")},
    "input fields with wrong defaults": lambda n: {**chain(2), "input": fields(n, default=5)},
    "inputs of a start node": lambda n: start_with(inputs=fields(n), defaults={f"field{i}": "x" for i in range(n)}),
    "fields of the state": lambda n: {**chain(2), "state": {f"field{i}": {"default": 1} for i in range(n)}},
    "misread input fields": lambda n: {
        **each_node(n, lambda i: {"config": {"prompt": f"{{feild{i}}} {{input.field{i}}}"}}),
        "input": fields(n),
    },
    "form fields": lambda n: each_node(
        2, lambda _: {"type": "human", "config": {"message": "Go on?", "form": fields(n)}}
    ),
    "outputs": lambda n: {**chain(2), "output": {f"field{i}": f"nodes.n0.field{i}" for i in range(n)}},
    "chain": chain,
    "fan-out": lambda n: over(n, fan(n)),
    "self edges": lambda n: over(2, [("n0", "n0")] * n),
    "dangling edges from one node": lambda n: over(2, [("n0", f"m{i}") for i in range(n)]),
    "dangling edges to one name": lambda n: over(n, [(f"n{i}", "m") for i in range(n)]),
    "dangling edges of their own": lambda n: over(n, [(f"n{i}", f"m{i}") for i in range(n)]),
    "unknown keys": lambda n: {**chain(2), **{f"unknown{i}": 1 for i in range(n)}},
    "unknown keys of nodes": lambda n: each_node(n, lambda i: {f"promt{i}": 1}),
    "wrong nodes": lambda n: {**chain(2), "nodes": [*range(n)]},
    "wrong types": lambda n: each_node(n, lambda i: {"type": f"agnt{i}"}),
    "wrong values": lambda n: each_node(n, lambda _: {"config": {"prompt": 5}}),
    "misspelt conditions": misspelt_conditions,
    "duplicate ids": lambda n: each_node(n, lambda _: {"id": "n0"}),
    "misspelt references": lambda n: each_node(n, lambda i: {"config": {"prompt": f"{{nodes.m{i}x.output}}"}}),
    "agents": lambda n: named_agents(n, "a"),
    "misspelt agents": lambda n: named_agents(n, "b"),
    "tools": lambda n: each_node(n, lambda i: {"config": {"prompt": "Go.", "tools": [f"tool{i}"]}}),
    "hand-offs": lambda n: each_node(n, lambda i: {"config": {"prompt": "Go.", "handoffs": [f"n{i // 2}", f"m{i}"]}}),
    "reducers": reducers,
    "one field written by all branches": parallel,
    "loops": loops,
    "nested loops": nested_loops,
    "labels": decision,
    "compensations": compensated,
}


def calls_of(made: JsonObject) -> int:
    """Return the number of function calls of a check, including those written in C."""
    text = json.dumps(made)
    check_document(read_document(json.dumps(chain(3))))  # Imports and cached values do not count.
    profile = Profile()
    profile.runcall(check_document, read_document(text))
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_number_of_calls_is_linear(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for budget in BUDGETS:
        monkeypatch.setattr(f"pointsman.{budget}", 500)
    small, large = (calls_of(SHAPES[shape](count)) for count in (SMALL, 4 * SMALL))
    assert large / small < GROWTH_MAX


def spelled(name: str, count: int) -> str:
    """Return a chain in a dialect, or in YAML."""
    text = json.dumps(chain(count))
    return yaml_text(chain(count)) if name == "YAML" else str(converted(Workflow(text), name).text)


def calls_for(text: str, dialect: str | None) -> int:
    profile = Profile()
    profile.runcall(lambda: check_document(read_document(text), dialect=dialect))
    return sum(entry.callcount for entry in profile.getstats())


CALLS_MAX: Final = {
    "chain": 380,
    "fan-out": 280,
    "agents": 420,
    "tools": 420,
    "loops": 290,
    "compensations": 360,
    "reducers": 670,
    "labels": 1_100,
    "nested loops": 1_600,
    "misspelt references": 1_900,
    "duplicate ids": 1_250,
}
"""Function calls per node or edge, a quarter above the measured number."""
SPELLED_CALLS_MAX: Final = {"rows": 920, "graph": 1_320, "steps": 940, "plan": 850, "YAML": 800}


@pytest.mark.parametrize("shape", CALLS_MAX)
def test_a_node_costs_few_calls(shape: str) -> None:
    made = SHAPES[shape](4 * SMALL)
    parts = max(len(part) for part in (made["nodes"], made["edges"]) if isinstance(part, list))
    calls_of(SHAPES[shape](4))  # Cached values do not count.
    assert calls_of(made) / parts < CALLS_MAX[shape]


@pytest.mark.parametrize("name", SPELLED_CALLS_MAX)
def test_a_node_in_another_dialect_costs_few_calls(name: str) -> None:
    dialect = None if name == "YAML" else name
    small, large = spelled(name, SMALL), spelled(name, 4 * SMALL)
    calls_for(small, dialect)  # Imports and cached values do not count.
    few, many = calls_for(small, dialect), calls_for(large, dialect)
    assert many / few < GROWTH_MAX
    assert many / (4 * SMALL) < SPELLED_CALLS_MAX[name]


def test_messages_are_built_only_for_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    shorten = problems.shortened

    def counted(text: str) -> str:
        built.append(text)
        return shorten(text)

    monkeypatch.setattr(problems, "shortened", counted)
    assert check_document(read_document(json.dumps(chain(SMALL)))).problems == ()
    assert not built
    found = check_document(read_document(json.dumps(each_node(SMALL, lambda i: {"type": f"agnt{i}"})))).problems
    assert len(built) <= 4 * len(found)


def test_the_cost_of_a_complete_graph_is_linear_in_its_edges() -> None:
    small, large = (calls_of(full(nodes * nodes)) / (nodes * nodes) for nodes in (20, 40))
    assert large < 2 * small


@pytest.mark.parametrize("shape", ["dangling edges of their own", "unknown keys of nodes", "wrong nodes"])
def test_problems_are_listed_up_to_a_limit_and_counted_beyond(shape: str) -> None:
    found = check_document(read_document(json.dumps(SHAPES[shape](2 * PROBLEMS_MAX)))).problems
    assert len(found) <= PROBLEMS_MAX + 1
    (rest,) = [problem for problem in found if problem.code == "more-problems"]
    assert int(rest.message.split()[0]) >= PROBLEMS_MAX - 10


def test_errors_are_listed_before_warnings() -> None:
    made = over(2, [("n0", "n0")] * (2 * PROBLEMS_MAX))
    found = check_document(read_document(json.dumps({**made, "entry": "gone"}))).problems
    assert "unknown-node" in {problem.code for problem in found}
    assert not check_document(read_document(json.dumps({**made, "entry": "gone"}))).ok
