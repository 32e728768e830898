"""The native dialect, including older forms that existing files use.

A document with `pointsman: 1` is read unchanged. Any other may use older keys; they are converted to the present ones,
and the old defaults (visits, outputs of gates, output of an end) are written out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final

from pointsman.definition.model.base import EXTENSION_PREFIX, read_duration
from pointsman.definition.model.nodes import CONDITIONS, CONFIG_OF, TYPE_ALIASES, Edge, Node
from pointsman.definition.model.policies import Config, Execution
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import pointer_to
from pointsman.dialects.native.old_nodes import (
    KEPT,
    READ_CONFIG,
    ImportNotes,
    NodePart,
    Part,
    add_output,
    config_keys,
    document_keys,
)
from pointsman.dialects.readers import (
    ImportedDocument,
    Sources,
    WrittenDocument,
    list_of,
    member,
    object_of,
    slug,
    text_of,
    validated,
)
from pointsman.values import Json, JsonObject

_OLD_CONFIG: Final = frozenset({"maxNodes", "maxExecutionTime", "defaultModelId", "maxIterations"})
_OLD_NODE: Final = frozenset(
    {
        *("inputVariables", "outputVariables", "outputVariable", "outputMapping", "inputMapping", "toolId", "modelId"),
        *("dynamicBranches", "aggregation", "inputSchema", "showData", "recordsVar", "itemVariable", "outputVar"),
    }
)
_OLD_VALUES: Final = frozenset({"decision", "human", "memory", "code", "loop"})
"""Types for which the older form has present keys with other values."""
_CAPS: Final = {"maxNodes": 50, "maxExecutionTime": 3_600_000, "maxIterations": 1000}
_NODE_TIME: Final = "30s"
_VISITS: Final = 10
"""Default number of visits of a node in the older format."""
_ROUNDS: Final = 50
"""Default maximum of loop iterations in the older format."""
_BRANCH: Final = re.compile(r"(?:\$\.)?\bresult\.branch\b")
_IS_BRANCH: Final = re.compile(r"\s*(?:\$\.)?result\.branch\s*={2,3}\s*(?:'([^'\\]*)'|\"([^\"\\]*)\"|(true|false))\s*")
_LABELLING: Final = frozenset({"decision", "human", "verifier", "tool_executor"})
"""Types that emit a branch label of their own instead of a result."""
_OWN_TIMEOUT: Final = frozenset({"human", "join", "wait"})
_WORKFLOW_KEYS: Final = document_keys(WorkflowDefinition)
_CONFIG_KEYS: Final = document_keys(Config)
_NODE_KEYS: Final = document_keys(Node)
_EDGE_KEYS: Final = document_keys(Edge)
_EXECUTION_KEYS: Final = document_keys(Execution)
_OF_CONFIG: Final = _CONFIG_KEYS | _OLD_CONFIG


def read(document: JsonObject, *, name: str) -> ImportedDocument:
    """Read a native document. Never raises: invalid parts stay unchanged, and validation reports them."""
    with_id = document if "id" in document else {"id": _id_from(document, name), **document}
    if "pointsman" in document:
        return ImportedDocument(with_id)
    notes = ImportNotes(tolerant=is_old(document))
    flat = flatten(with_id, notes)
    result: JsonObject = {}
    part = Part(dict(with_id), result, "", "", notes)
    nodes, edges = part.take("nodes"), part.take("edges")
    if isinstance(part.said.get("config"), dict):
        result["config"] = _config(object_of(part.take("config")), notes)
    part.keep_rest(_WORKFLOW_KEYS, where="the workflow", place_of=lambda key: "'config'" if key in _OF_CONFIG else "")
    _node_time(result)
    if notes.tolerant:
        _defaults(result, len(flat.nodes))
    result["nodes"] = _nodes(flat, notes) if isinstance(nodes, list) else nodes if nodes is not None else []
    result["edges"] = _edges(edges, flat, notes) if isinstance(edges, list | None) else edges
    return ImportedDocument(result, tuple(notes.losses), Sources(notes.origin))


def write(workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
    """Return the author's own document if it still describes the workflow, else a document in the present format."""
    if original is not None:
        then = validated(read(original, name=workflow.id)).workflow
        if then == workflow:
            return WrittenDocument(original)
    return WrittenDocument(workflow.to_document())


def is_old(document: JsonObject) -> bool:
    """Return whether a document uses keys that only the older format has."""
    if _OLD_CONFIG & object_of(document.get("config")).keys():
        return True
    for node in map(object_of, list_of(document.get("nodes"))):
        config = object_of(node.get("config"))
        if node.get("type") == "prompt" or "parentId" in node or _OLD_NODE & config.keys():
            return True
    return any(_is_old_condition(object_of(edge).get("condition")) for edge in list_of(document.get("edges")))


def _is_old_condition(condition: Json) -> bool:
    fields = object_of(condition)
    expression = fields.get("field", fields.get("expression"))
    return "llmPrompt" in fields or (isinstance(expression, str) and _BRANCH.search(expression) is not None)


def _id_from(document: JsonObject, name: str) -> str:
    stem = re.split(r"[/\\]", name)[-1].partition(".")[0]
    return slug(stem) or slug(text_of(document.get("name")) or "") or "workflow"


def _config(config: JsonObject, notes: ImportNotes) -> JsonObject:
    result: JsonObject = {}
    for key, cap in _CAPS.items():
        value = config.get(key)
        if isinstance(value, int | float) and value > cap:
            notes.warn(
                "above-cap", pointer_to("config", key), f"{key!r} is {value}; the format it is written in allows {cap}"
            )
    limits = Part(dict(config), object_of(config.get("limits")).copy(), "/config", "/config/limits", notes)
    limits.renames(maxNodes="nodes", maxExecutionTime="executionTime", maxIterations="visits")
    part = Part(limits.said, result, "/config", "/config", notes)
    part.take("limits")
    part.rename("defaultModelId", "defaultModel")
    part.keep_rest(_CONFIG_KEYS, where="'config'")
    if limits.made or "limits" in config:
        result["limits"] = limits.made if isinstance(config.get("limits", {}), dict) else config["limits"]
    return result


def _node_time(made: JsonObject) -> None:
    """Set the default of documents without `pointsman: 1`: 30 s for each call and each attempt."""
    config = made.setdefault("config", {})
    limits = config.setdefault("limits", {}) if isinstance(config, dict) else None
    if isinstance(limits, dict) and not _is_short(limits.get("executionTime")):
        limits.setdefault("nodeTime", _NODE_TIME)


def _is_short(execution_time: Json) -> bool:
    """Return whether the whole execution has less time than one node: then the execution limit applies first."""
    try:
        return execution_time is not None and read_duration(execution_time).seconds < read_duration(_NODE_TIME).seconds
    except ValueError:
        return False  # Validation reports it.


def _defaults(made: JsonObject, nodes: int) -> None:
    """Set the defaults of the older format: ten visits of a node, and as many steps as these allow."""
    config = made.setdefault("config", {})
    if not isinstance(config, dict):
        return
    limits = config.setdefault("limits", {})
    if isinstance(limits, dict):
        visits = limits.setdefault("visits", _VISITS)
        if isinstance(visits, int) and "steps" not in limits:
            limits["steps"] = max(1, visits * nodes)


def _nodes(flat: Flat, notes: ImportNotes) -> list[Json]:
    values: list[Json] = []
    for index, node in enumerate(flat.nodes):
        native = pointer_to("nodes", index)
        if node.pointer != native:
            notes.origin[native] = node.pointer
        values.append(_node(node, native, notes))
    return values


def _node(inline_node: InlineNode, native: str, notes: ImportNotes) -> JsonObject:
    if not inline_node.node or _is_of_today(inline_node.node, notes):
        return inline_node.node
    result: JsonObject = {}
    node = Part(dict(inline_node.node), result, inline_node.pointer, native, notes)
    kind = node.said.get("type")
    kind = TYPE_ALIASES.get(kind, kind) if isinstance(kind, str) else ""
    size, _ = node.take("size"), node.take("parentId")
    if isinstance(size, dict):
        position = object_of(node.said.get("position"))
        node.said["position"] = {**position, **size}
    config = node.take("config")
    inner = Part(dict(object_of(config)), {}, f"{inline_node.pointer}/config", f"{native}/config", notes)
    part = NodePart(node, inner, kind, str(node.said.get("id")))
    for key in ("type", "outputs"):
        if key in node.said:
            result[key] = node.take(key)
    if kind in CONFIG_OF and isinstance(config, dict | None):
        _read_config(part)
        if inner.made or config is not None:
            result["config"] = inner.made
    elif config is not None:
        result["config"] = config
    node.keep_rest(
        _NODE_KEYS, where=f"node {part.id!r}", place_of=lambda key: _place_of(key, kind, object_of(inline_node.node))
    )
    return result


def _place_of(key: str, kind: str, node: JsonObject) -> str:
    """Return the part of a node where a key of the node has an effect; empty: none, or the part has it too."""
    if key in _EXECUTION_KEYS:
        return "" if key in object_of(node.get("execution")) else "the node's 'execution'"
    if kind not in CONFIG_OF or key in object_of(node.get("config")) or key.startswith("_"):
        return ""
    # Reading a configuration with the key alone shows whether the type, in its present or older form, has it.
    notes = ImportNotes(tolerant=True)
    inner = Part({key: "x"}, {}, "", "", notes)
    _read_config(NodePart(Part({}, {}, "", "", notes), inner, kind, ""))
    return "" if key in object_of(inner.made.get(KEPT)) else "the node's 'config'"


def _is_of_today(node: JsonObject, notes: ImportNotes) -> bool:
    """Return whether a node certainly has no older key. Most nodes have none, and this makes reading large documents
    much faster."""
    kind, config = node.get("type"), node.get("config", {})
    if notes.tolerant or not isinstance(kind, str) or kind in _OLD_VALUES or not node.keys() <= _NODE_KEYS:
        return False
    return kind in CONFIG_OF and isinstance(config, dict) and config.keys() <= config_keys(kind)


def _read_config(part: NodePart) -> None:
    """Convert the keys that all types share, then those of the type."""
    config, node = part.config, part.node
    if "timeout" in config.said and part.kind not in _OWN_TIMEOUT:
        execution = object_of(node.said.get("execution"))
        node.said["execution"] = {"timeout": config.take("timeout"), **execution}
        if "timeout" not in execution:
            node.notes.origin[f"{node.native}/execution/timeout"] = f"{config.author}/timeout"
    if "chatVisible" in config.said:
        node.put("chatVisible", config.take("chatVisible"), said_as="config/chatVisible")
    progress = config.said.get("progress")
    if isinstance(progress, dict) and part.kind != "progress":
        node.put("progress", object_of(config.take("progress")).get("message"), said_as="config/progress/message")
    if part.kind == "loop":
        _read_loop(part)
    written = config.said.get("outputVariable")
    if isinstance(written, str):
        config.take("outputVariable")
        add_output(part, written, "{result: result}" if part.kind == "code" else "result")
    if part.kind in READ_CONFIG:
        READ_CONFIG[part.kind](part)
    config.keep_rest(config_keys(part.kind) if part.kind else frozenset(config.said), where=f"node {part.id!r}")


def _read_loop(part: NodePart) -> None:
    config = part.config
    mode = config.take("mode")
    config.rename("array", "over", lambda value: f"{value} ?? []" if isinstance(value, str) else value)
    config.renames(itemVariable="as", outputVariable="collect", condition="while")
    config.renames(recordFailuresInto="failuresInto")
    config.rename("onItemError", "onRoundError", lambda value: "skip" if value in ("skip", "continue") else value)
    if mode == "for":
        config.rename("count", "maxIterations")
        if "maxIterations" in config.made:
            config.take("maxIterations")
    elif mode not in (None, "forEach", "while", "until"):
        part.node.made["type"] = f"loop-{mode}"
        part.kind = ""
        return
    rounds = config.said.get("concurrency")
    if rounds is not None:
        hint = "Use a parallel with 'items' and 'maxParallel' for iterations that run at the same time."
        part.node.notes.warn(
            "sequential", f"{config.author}/concurrency", "the iterations of a loop run one after the other", hint=hint
        )
        config.take("concurrency")
    if part.node.notes.tolerant and not {"maxIterations"} & (config.said.keys() | config.made.keys()):
        config.made["maxIterations"] = _ROUNDS


def _edges(edges: Json, flat: Flat, notes: ImportNotes) -> list[Json]:
    kinds = {str(node.node.get("id")): str(node.node.get("type")) for node in flat.nodes}
    values: list[Json] = []
    for index, edge in enumerate(list_of(edges)):
        if not isinstance(edge, dict):
            values.append(edge)
            continue
        if not flat.leaves_from and "condition" not in edge and edge.keys() <= _EDGE_KEYS:
            values.append(edge)
            continue
        source = edge.get("source")
        left = flat.leaves_from.get(source, source) if isinstance(source, str) else source
        pointer = pointer_to("edges", index)
        kind = kinds.get(str(source), "")
        part = Part({**edge, "source": left} if "source" in edge else dict(edge), {}, pointer, pointer, notes)
        if "condition" in part.said:
            part.said["condition"] = _condition(part.said["condition"], str(left), TYPE_ALIASES.get(kind, kind), part)
        part.keep_rest(_EDGE_KEYS, where=f"edge {edge.get('id', index + 1)!r}")
        values.append(part.made)
    for edge, author in flat.edges:
        notes.origin[pointer_to("edges", len(values))] = author
        values.append(edge)
    return values


def _condition(condition: Json, source: str, kind: str, edge: Part) -> Json:
    """Return the present form of a condition. A test of the branch of a labelling node becomes a label condition."""
    if isinstance(condition, str):
        condition = {"type": "expression", "expression": condition}
    if not isinstance(condition, dict):
        return condition
    fields = dict(condition)
    fields.setdefault("type", next((name for name in ("expression", "llm") if fields.get(_ASKS[name])), "always"))
    if fields.get("type") == "llm" and "llmPrompt" in fields:
        prompt = fields.pop("llmPrompt")
        fields.setdefault("prompt", prompt)
        edge.notes.origin[f"{edge.native}/condition/prompt"] = f"{edge.author}/condition/llmPrompt"
    keys = _keys_of_condition(fields.get("type"))
    fields = {key: value for key, value in fields.items() if value not in ("", None) or key in keys}
    return _on_branch(fields, source) if kind in _LABELLING else fields


_ASKS: Final = {"expression": "expression", "llm": "llmPrompt"}


def _keys_of_condition(kind: Json) -> frozenset[str]:
    model = CONDITIONS.get(kind) if isinstance(kind, str) else None
    if model is None:
        return frozenset({"type"})
    return document_keys(model)


def _on_branch(condition: JsonObject, source: str) -> JsonObject:
    field, expression = condition.get("field"), condition.get("expression")
    if condition.get("type") == "equals" and isinstance(field, str) and _BRANCH.fullmatch(field.strip()):
        value = condition.get("value")
        label = str(value).lower() if isinstance(value, bool) else str(value)
        return {"type": "label", "label": label, **_extensions(condition)}
    if condition.get("type") == "expression" and isinstance(expression, str):
        if match := _IS_BRANCH.fullmatch(expression):
            return {"type": "label", "label": match[1] or match[2] or match[3], **_extensions(condition)}
        return {
            **condition,
            "expression": _BRANCH.sub(f"{member('nodes', source)}.branch".replace("\\", r"\\"), expression),
        }
    if isinstance(field, str):
        return {**condition, "field": _BRANCH.sub(f"{member('nodes', source)}.branch".replace("\\", r"\\"), field)}
    return condition


def _extensions(record: JsonObject) -> JsonObject:
    return {key: value for key, value in record.items() if key.startswith(EXTENSION_PREFIX)}


INLINE_DEPTH_MAX: Final = 32


@dataclass(slots=True)
class InlineNode:
    """A node of the author's document, nested or not."""

    node: JsonObject
    pointer: str
    parent: str | None = None


@dataclass(slots=True)
class Flat:
    """All nodes on one level, and the edges that replace the nesting."""

    nodes: list[InlineNode] = field(default_factory=list[InlineNode])
    edges: list[tuple[JsonObject, str]] = field(default_factory=list[tuple[JsonObject, str]])
    """(edge, corresponding pointer in the author's document)."""
    leaves_from: dict[str, str] = field(default_factory=dict[str, str])
    """Parallels with inline branches -> the join that was added behind them."""


def flatten(document: JsonObject, notes: ImportNotes) -> Flat:
    """Return every node of the document on one level. The author's objects are copied before they change."""
    flat = Flat()
    taken = {str(object_of(node).get("id")) for node in list_of(document.get("nodes"))}
    for index, node in enumerate(list_of(document.get("nodes"))):
        _unfold(InlineNode(object_of(node), pointer_to("nodes", index)), flat, taken, notes, depth=0)
    _containers(flat, list_of(document.get("edges")))
    return flat


def _unfold(node: InlineNode, flat: Flat, names: set[str], notes: ImportNotes, *, depth: int) -> None:
    config = object_of(node.node.get("config"))
    flat.nodes.append(node)
    if depth == INLINE_DEPTH_MAX:
        return
    body, branches = config.get("body"), config.get("branches")
    if node.node.get("type") == "loop" and _has_nodes(body):
        where = node.pointer + pointer_to("config", "body")
        ids = _inline(list_of(body), where, node, flat, names, notes, depth=depth)
        node.node = {**node.node, "config": {**config, "body": [*ids]}}
        _chain(str(node.node.get("id")), ids, [], where, flat)
    elif _has_nodes([object_of(branch).get("nodes") for branch in list_of(branches)]):
        _branches(node, flat, names, notes, depth=depth)


def _has_nodes(value: Json) -> bool:
    """Return whether a list holds inline nodes; a list of texts names nodes defined elsewhere."""
    return any(isinstance(entry, dict | list) for entry in list_of(value))


def _inline(
    nodes: list[Json], where: str, holder: InlineNode, flat: Flat, names: set[str], notes: ImportNotes, *, depth: int
) -> list[str]:
    ids: list[str] = []
    for index, entry in enumerate(nodes):
        pointer = where + pointer_to(index)
        if isinstance(entry, str):
            ids.append(entry)
            continue
        node = object_of(entry)
        first_choice = str(node.get("id") or f"{holder.node.get('id')}.{index + 1}")
        name = first_choice
        while name in names:
            name = f"{holder.node.get('id')}.{name}"
        if name != first_choice:
            hint = "Give every node an id of its own."
            notes.warn(
                "renamed-node",
                pointer,
                f"the inner node {first_choice!r} is renamed to {name!r}, because its id is already used",
                hint=hint,
            )
        names.add(name)
        ids.append(name)
        _unfold(InlineNode({**node, "id": name}, pointer), flat, names, notes, depth=depth + 1)
    return ids


def _chain(holder: str, ids: list[str], edges: list[Json], where: str, flat: Flat) -> None:
    """Add edges into the body, through it and back. `edges` are the author's own edges within the body."""
    inner = [(str(object_of(edge).get("source")), str(object_of(edge).get("target"))) for edge in edges]
    entered = {target for _, target in inner}
    left = {source for source, _ in inner}
    for before, after in pairwise(ids):
        if after not in entered:
            flat.edges.append(({"source": before, "target": after}, where))
            left.add(before)
    if ids:
        flat.edges.append(({"source": holder, "target": ids[0], "mark": "body"}, where))
    for last in (node for node in ids if node not in left):
        flat.edges.append(({"source": last, "target": holder, "mark": "continue"}, where))


def _branches(node: InlineNode, flat: Flat, names: set[str], notes: ImportNotes, *, depth: int) -> None:
    """Add a join behind inline branches; the parallel's outgoing edges then start at the join."""
    config = object_of(node.node.get("config"))
    parallel = str(node.node.get("id"))
    join = f"{parallel}.join"
    firsts: list[Json] = []
    for number, branch in enumerate(list_of(config.get("branches"))):
        where = node.pointer + pointer_to("config", "branches", number, "nodes")
        ids = _inline(list_of(object_of(branch).get("nodes")), where, node, flat, names, notes, depth=depth)
        for before, after in pairwise(ids):
            flat.edges.append(({"source": before, "target": after}, where))
        if ids:
            firsts.append(ids[0])
            flat.edges.append(({"source": parallel, "target": ids[0]}, where))
            flat.edges.append(({"source": ids[-1], "target": join}, where))
    closing: JsonObject = {"id": join, "type": "join", "config": {"aggregate": "object"}}
    fields = {key: value for key, value in config.items() if key not in ("branches", "outputVariable")}
    if isinstance(config.get("outputVariable"), str):
        closing["outputs"] = {str(config["outputVariable"]): "result"}
    node.node = {**node.node, "config": {**fields, "branches": firsts}}
    flat.nodes.append(InlineNode(closing, node.pointer))
    flat.leaves_from[parallel] = join


def _containers(flat: Flat, edges: list[Json]) -> None:
    """Make the nodes whose `parentId` names a loop the body of that loop."""
    children: dict[str, list[InlineNode]] = {}
    for node in flat.nodes:
        parent = node.node.get("parentId")
        if isinstance(parent, str):
            children.setdefault(parent, []).append(node)
    loops = {str(nested.node.get("id")): nested for nested in flat.nodes if nested.node.get("type") == "loop"}
    for parent, inside in children.items():
        loop = loops.get(parent)
        if loop is None:
            continue
        members = {str(nested.node.get("id")) for nested in inside}
        own = [edge for edge in edges if _ends(edge) <= members]
        ids = _in_order([str(nested.node.get("id")) for nested in inside], own)
        loop.node = {**loop.node, "config": {**object_of(loop.node.get("config")), "body": [*ids]}}
        _chain(parent, ids, own, loop.pointer, flat)


def _ends(edge: Json) -> set[str]:
    return {str(object_of(edge).get("source")), str(object_of(edge).get("target"))}


def _in_order(ids: list[str], edges: list[Json]) -> list[str]:
    """Sort ids by the edges between them, else in listed order; nodes that a cycle blocks come last."""
    number = {node: index for index, node in enumerate(ids)}
    pairs = {(str(object_of(edge).get("source")), str(object_of(edge).get("target"))) for edge in edges}
    waiting = dict.fromkeys(ids, 0)
    followers: dict[str, list[str]] = {node: [] for node in ids}
    for source, target in pairs:
        if source != target:
            waiting[target] += 1
            followers[source].append(target)
    ready = [number[node] for node in ids if waiting[node] == 0]
    heapify(ready)
    ordered: list[str] = []
    while ready:
        node = ids[heappop(ready)]
        ordered.append(node)
        for follower in followers[node]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heappush(ready, number[follower])
    return ordered + [node for node in ids if waiting[node] > 0]
