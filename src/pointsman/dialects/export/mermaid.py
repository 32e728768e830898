"""Export of a workflow as a Mermaid flowchart. The chart cannot be read back.

Names come from authors and may be hostile: ids are numbers, and labels keep only letters, digits and harmless signs;
every other character is written as a character reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pointsman.definition.graph.analysis import Graph, Regions, analyse, regions_of
from pointsman.definition.graph.links import DANGLING, TO_END, EdgeRef
from pointsman.definition.model.control import DecisionConfig, LoopConfig, ParallelConfig
from pointsman.definition.model.nodes import (
    AnyCondition,
    AskModel,
    Edge,
    Never,
    Node,
    OnError,
    OnLabel,
    Otherwise,
    When,
)
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.dialects.writers import condition_text
from pointsman.values import END

LABEL_MAX: Final = 60

_SHAPES: Final[Mapping[str, tuple[str, str]]] = {
    "start": ("([", "])"),
    "end": ("([", "])"),
    "tool": ("[[", "]]"),
    "tool_executor": ("[[", "]]"),
    "workflow": ("[[", "]]"),
    "http": ("[[", "]]"),
    "decision": ("{", "}"),
    "parallel": ("{{", "}}"),
    "join": ("{{", "}}"),
    "loop": ("[/", "\\]"),
    "human": ("[/", "/]"),
    "memory": ("[(", ")]"),
    "transform": ("(", ")"),
    "code": ("(", ")"),
    "wait": ("((", "))"),
    "emit": (">", "]"),
    "note": ("[\\", "\\]"),
}
_PLAIN: Final = ("[", "]")
_HARMLESS: Final = re.compile(r"[^\w \-.,:/!?+=]", re.ASCII)
_SPACE: Final = re.compile(r"\s+")
_CLASSES: Final = (
    "  classDef gate fill:#fff3c4,stroke:#b7791f",
    "  classDef control fill:#e6f0ff,stroke:#3b6fb6",
    "  classDef missing fill:#ffe0e0,stroke:#c0392b,stroke-dasharray: 4 3",
)
_CLASS_OF: Final[Mapping[str, str]] = {
    "human": "gate",
    "wait": "gate",
    "decision": "control",
    "parallel": "control",
    "join": "control",
    "loop": "control",
}


def draw(workflow: WorkflowDefinition) -> str:
    """Return the flowchart of a workflow. Branches and loop bodies are framed. Dangling edges lead to a dashed box."""
    graph = analyse(workflow)
    regions = regions_of(graph)
    missing = _missing(workflow)
    lines = ["flowchart TD", *_CLASSES, *_nodes(workflow, regions), *_ends(graph, missing)]
    if graph.entry is not None and workflow.nodes and workflow.nodes[graph.entry].type != "start":
        lines += ["  begin((" + _text("start") + "))", f"  begin --> n{graph.entry}"]
    lines += [line for edge in graph.edges if (line := _edge(workflow, edge, missing))]
    return "\n".join(lines) + "\n"


def _nodes(workflow: WorkflowDefinition, regions: Regions) -> Iterator[str]:
    """Yield nodes depth first, each region right after its owner. Iterative, as documents may nest to any depth."""
    children: dict[tuple[int, ...], list[int]] = {}
    for number in range(len(workflow.nodes)):
        children.setdefault(regions.around[number], []).append(number)
    waiting: list[tuple[tuple[int, ...], int | None]] = [((), number) for number in reversed(children.get((), []))]
    while waiting:
        around, number = waiting.pop()
        indent = "  " * (len(around) + 1)
        if number is None:
            yield f"{indent}end"
            continue
        yield indent + _node(number, workflow.nodes[number])
        if number in regions.kinds:
            inner = (*around, number)
            yield f"{indent}subgraph g{number} [{_text(_region_label(workflow.nodes[number]))}]"
            waiting.append((around, None))
            waiting.extend((inner, child) for child in reversed(children.get(inner, [])))


def _node(number: int, node: Node) -> str:
    before, after = _SHAPES.get(node.type, _PLAIN)
    css = _CLASS_OF.get(node.type)
    return f"n{number}{before}{_text(node.label)}{after}" + (f":::{css}" if css else "")


def _region_label(node: Node) -> str:
    match node.config:
        case ParallelConfig(items=items) if items is not None:
            return f"for each of {items}"
        case LoopConfig(over=str(over)):
            return f"one by one: {over}"
        case LoopConfig(while_=str(test)):
            return f"while {test}"
        case LoopConfig(until=str(test)):
            return f"until {test}"
        case LoopConfig(max_iterations=int(rounds)):
            return f"at most {rounds} rounds"
        case _:
            return f"branches of {node.label}"


def _ends(graph: Graph, missing: Mapping[str, str]) -> Iterator[str]:
    if any(edge.target == TO_END for edge in graph.edges):
        yield "  finish(((" + _text("END") + ")))"
    for name, box in missing.items():
        yield f"  {box}[{_text(f'missing: {name}')}]:::missing"


def _missing(workflow: WorkflowDefinition) -> dict[str, str]:
    """Return missing node id -> id of its box, for the ids that edges name."""
    node_ids = {node.id for node in workflow.nodes} | {END}
    names = (name for edge in workflow.edges for name in (edge.source, edge.target) if name not in node_ids)
    return {name: f"m{number}" for number, name in enumerate(dict.fromkeys(names))}


def _edge(workflow: WorkflowDefinition, ref: EdgeRef, missing: Mapping[str, str]) -> str:
    """Return the line of an edge. It is dotted if the edge is implied by the caller, is an error edge, or is never
    taken."""
    written = workflow.edges[ref.number] if ref.number < len(workflow.edges) else None
    source = f"n{ref.source}" if ref.source >= 0 else missing.get(written.source if written else "")
    target = f"n{ref.target}" if ref.target >= 0 else "finish"
    if ref.target == DANGLING:
        target = missing.get(written.target if written else "")
    if source is None or target is None:
        return ""
    label = _edge_label(written, workflow, ref) if written is not None else ref.implied
    arrow = "-.->" if ref.implied == "caller" or ref.kind in ("never", "error") else "-->"
    return f"  {source} {arrow}" + (f"|{_text(label)}|" if label else "") + f" {target}"


def _edge_label(edge: Edge, workflow: WorkflowDefinition, ref: EdgeRef) -> str:
    if edge.mark is not None:
        return edge.mark
    if edge.label is not None:
        return str(edge.label)
    decides = ref.source >= 0 and isinstance(workflow.nodes[ref.source].config, DecisionConfig)
    return _condition_label(edge.condition, edge.source, decides=decides)


def _condition_label(condition: AnyCondition | None, source: str, *, decides: bool) -> str:
    match condition:
        case OnLabel(label=label):
            return label
        case Otherwise():
            return "else"
        case Never():
            return "never"
        case OnError(codes=codes):
            return "on error" + (f" {', '.join(codes)}" if codes else "")
        case AskModel(prompt=prompt):
            return f"asks: {prompt}"
        case When(expression=expression):
            return expression
        case _:
            return condition_text(condition, source) or ("always" if decides else "")


def _text(text: str) -> str:
    """Return a quoted label without syntax characters."""
    one_line = _SPACE.sub(" ", text).strip()
    short = one_line if len(one_line) <= LABEL_MAX else one_line[: LABEL_MAX - 1] + "…"
    return '"' + _HARMLESS.sub(_reference, short) + '"'


def _reference(match: re.Match[str]) -> str:
    """Keep letters of every script; replace control characters and lone surrogates by a space."""
    character = match[0]
    if character.isalnum():
        return character
    return f"#{ord(character)};" if character.isprintable() else " "
