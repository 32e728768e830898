"""Random graphs with irregular parts, which the well-formed graphs of `pointsman.testing.graphs` do not contain.

A parallel without a join, decisions without a matching edge, inputs that cannot be computed, gates and joins that time
out, a fallback node after a low limit. Their outcome is a race by definition: only the laws that always hold apply.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import cast

from pointsman.engine.plan import Plan
from pointsman.testing.graphs import random_workflow
from pointsman.values import Json, JsonObject
from tests.engine.laws import compiled


@lru_cache(maxsize=256)
def irregular_plan(seed: int) -> Plan | None:
    """Return a plan with irregular parts; None for the few random graphs that are refused."""
    return compiled(irregular_workflow(seed))


def irregular_workflow(seed: int) -> JsonObject:
    document = random_workflow(seed, 5, unruly=True)
    random = Random(seed)
    nodes, edges = cast("list[JsonObject]", document["nodes"]), cast("list[JsonObject]", document["edges"])
    start = str(nodes[0]["id"])
    if random.random() < 0.4:
        _loose_parallel(start, nodes, edges, random)
    if random.random() < 0.3:
        _impossible_inputs(start, nodes, edges, random.choice([1, 2]))
    if random.random() < 0.4:
        _no_way_on(edges)
    _timeouts(nodes, random)
    if random.random() < 0.4:
        nodes.append({"id": "lastly", "type": "tool", "config": {"tool": "look_up"}})
        config = cast("JsonObject", document["config"])
        config["onLimit"] = "lastly"
        config["limits"] = {"steps": random.randint(3, 15)}
    return document


def _loose_parallel(start: str, nodes: list[JsonObject], edges: list[JsonObject], random: Random) -> None:
    """Add branches that only the end of the execution waits for."""
    config: JsonObject = {"items": "input.items", "onBranchError": random.choice(["fail", "continue", "ignore"])}
    nodes.append({"id": "loose", "type": "parallel", "config": config})
    name = random.choice(["tool_loose", "bad_loose", "slow_loose"])
    nodes.append({"id": name, "type": "tool", "config": {"tool": "look_up"}, "outputs": {"log": "result"}})
    edges.append({"source": start, "target": "loose"})
    edges.append({"source": "loose", "target": name})


def _impossible_inputs(start: str, nodes: list[JsonObject], edges: list[JsonObject], count: int) -> None:
    """Add two steps of one row that fail before they begin."""
    for number in range(count):
        name = f"tool_impossible{number}"
        nodes.append({"id": name, "type": "tool", "config": {"tool": "look_up"}, "inputs": {"x": "input.n / 0"}})
        edges.append({"source": start, "target": name})


def _no_way_on(edges: list[JsonObject]) -> None:
    """Remove the default edge of a decision, so that no edge may match."""
    ways = [edge for edge in edges if cast("JsonObject", edge.get("condition") or {}).get("type") == "default"]
    for edge in ways[:1]:
        edges.remove(edge)


def _timeouts(nodes: list[JsonObject], random: Random) -> None:
    for node in nodes:
        config = cast("dict[str, Json]", node["config"])
        if node["type"] == "human" and random.random() < 0.7:
            config["timeout"] = "5s"
            if random.random() < 0.5:
                config["onTimeout"] = "no"
        if node["type"] == "join" and random.random() < 0.3:
            config["timeout"] = "2s"
