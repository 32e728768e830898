"""Small graphs for tests, written as text: `a -> b, c` is one edge to each.

The id of a node gives its type: `loop1` is a loop, see `TYPE_OF_PREFIX`.
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from pointsman.definition.graph.analysis import Graph, analyse
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.values import Json, JsonObject

TYPE_OF_PREFIX = {
    "start": "start",
    "end": "end",
    "fan": "parallel",
    "join": "join",
    "loop": "loop",
    "dec": "decision",
    "ask": "human",
    "tools": "tool_executor",
    "tool": "tool",
    "agent": "agent",
    "wait": "wait",
    "note": "note",
}
"""Prefix of an id -> the type of the node; any other is a transform, unless the test sets its `type`."""


CONFIG_OF_TYPE: dict[str, JsonObject] = {"tool": {"tool": "look_up"}, "agent": {"prompt": "Go on."}}
"""The required configuration of a type."""


NODE_KEYS = {"inputs", "outputs", "routing", "trigger", "execution", "name", "requiresApproval", "compensate"}
"""Keys of a drawn node's configuration that are the node's own."""


def type_of(node: str) -> str:
    return next((kind for prefix, kind in TYPE_OF_PREFIX.items() if node.startswith(prefix)), "transform")


def document(drawing: str, *, configs: Mapping[str, Mapping[str, Json]] | None = None, **keys: Json) -> JsonObject:
    """The native document of a drawing. Edges may be conditional: `loop -body-> a`, `a -x == 1-> b`, `a -#yes-> b`."""
    nodes: dict[str, JsonObject] = {}
    edges: list[Json] = []

    def node(name: str) -> str:
        if name != "END":
            kind = type_of(name)
            said = dict((configs or {}).get(name, {}))
            own = {key: said.pop(key) for key in NODE_KEYS & said.keys()}
            nodes.setdefault(
                name, {"id": name, "type": kind, **own, "config": {**CONFIG_OF_TYPE.get(kind, {}), **said}}
            )
        return name

    for line in filter(None, (part.strip() for part in drawing.replace(";", "\n").splitlines())):
        left, arrow, right = line.partition("->")
        if not arrow:
            node(line)
            continue
        source, _, said = left.strip().partition(" -")
        for target in (name.strip() for name in right.split(",")):
            edge: JsonObject = {"source": node(source.strip()), "target": node(target), **_said(said.strip())}
            edges.append({"id": f"e{len(edges) + 1}", **edge})
    return {"id": "drawn", "nodes": list(nodes.values()), "edges": edges, **keys}


def _said(words: str) -> JsonObject:
    if not words:
        return {}
    if words in {"body", "exit", "break", "continue"}:
        return {"mark": words}
    if words in {"default", "error", "never", "always"}:
        return {"condition": {"type": words}}
    if words.startswith("#"):
        return {"condition": {"type": "label", "label": words[1:]}}
    return {"condition": {"type": "expression", "expression": words}}


def draw(drawing: str, *, configs: Mapping[str, Mapping[str, Json]] | None = None, **keys: Json) -> WorkflowDefinition:
    workflow, problems = WorkflowDefinition.from_document(document(drawing, configs=configs, **keys))
    assert workflow is not None, problems
    return workflow


def graph(drawing: str, *, configs: Mapping[str, Mapping[str, Json]] | None = None, **keys: Json) -> Graph:
    return analyse(draw(drawing, configs=configs, **keys))


def scopes(made: Graph) -> dict[str, tuple[str, ...] | None]:
    """Return node -> the open parallels around it, by id."""
    return {
        name: None if scope is None else tuple(made.ids[opener] for opener in scope)
        for name, scope in zip(made.ids, made.scopes, strict=True)
    }


def codes(made: Graph) -> list[str]:
    return [finding.code for finding in made.findings]


def named(made: Graph, nodes: frozenset[int] | tuple[int, ...]) -> set[str]:
    return {made.ids[node] for node in nodes}


KINDS = ("fan", "join", "loop", "dec", "ask", "tools", "end", "step", "note")


@st.composite
def drawings(draw_one: st.DrawFn, *, nodes_max: int = 8, edges_max: int = 14) -> str:
    """Draw any graph: every type, any edge, self-loops and unreachable parts included."""
    kinds = draw_one(st.lists(st.sampled_from(KINDS), min_size=1, max_size=nodes_max))
    names = ["start", *(f"{kind}{number}" for number, kind in enumerate(kinds))]
    words = st.sampled_from(["", "", "", "x == 1", "#yes", "default", "body", "exit", "error", "never"])
    ends = st.sampled_from([*names, "END"])
    drawn = draw_one(st.lists(st.tuples(st.sampled_from(names), words, ends), max_size=edges_max))
    return "\n".join(
        [
            *names,
            *(f"{source} -{said}-> {target}" if said else f"{source} -> {target}" for source, said, target in drawn),
        ]
    )


@st.composite
def structures(draw_one: st.DrawFn) -> str:
    """Draw well-nested graphs: sequences, choices, splits, parallels with joins and loops inside each other."""
    lines: list[str] = []
    count = 0

    def fresh(kind: str) -> str:
        nonlocal count
        count += 1
        return f"{kind}{count}"

    def block(entry: str, depth: int) -> str:
        shape = draw_one(st.sampled_from(["step", "chain", "choice", "parallel", "loop"] if depth else ["step"]))
        match shape:
            case "chain":
                return block(block(entry, depth - 1), depth - 1)
            case "choice" | "parallel":
                opener, closer = (fresh("dec"), fresh("step")) if shape == "choice" else (fresh("fan"), fresh("join"))
                lines.append(f"{entry} -> {opener}")
                ends = [block(opener, depth - 1) for _ in range(draw_one(st.integers(1, 3)))]
                lines.extend(f"{last} -> {closer}" for last in ends)
                return closer
            case "loop":
                loop = fresh("loop")
                lines.append(f"{entry} -> {loop}")
                lines.append(f"{block(loop, depth - 1)} -> {loop}")
                after = fresh("step")
                lines.append(f"{loop} -> {after}")
                return after
            case _:
                step = fresh("step")
                lines.append(f"{entry} -> {step}")
                return step

    lines.append(f"{block('start', 4)} -> end")
    return "\n".join(lines)
