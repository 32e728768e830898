"""Small documents in the graph dialect: all agents are equal except for their nodes."""

from __future__ import annotations

from pointsman.values import Json, JsonObject


def agent(name: str, writes: str | None = None, /, **reads: Json) -> JsonObject:
    """An agent that reads state paths and writes its result to one."""
    node: JsonObject = {"id": name, "type": "agent", "agent_id": "one"}
    if reads:
        node["inputs"] = reads
    if writes is not None:
        node["outputs"] = {"result": writes}
    return node


def edge(source: str, target: str, condition: str | None = None) -> JsonObject:
    found: JsonObject = {"from_node": source, "to_node": target}
    return found if condition is None else {**found, "condition": condition}


def graph(nodes: list[JsonObject], edges: list[JsonObject], **head: Json) -> JsonObject:
    """Return a graph document; the first node is the entry."""
    return {
        "name": "Graph",
        "entry_node_id": nodes[0]["id"],
        "agents": {"one": {"model": "scripted", "system": "You help."}},
        "nodes": [*nodes],
        "edges": [*edges],
        **head,
    }
