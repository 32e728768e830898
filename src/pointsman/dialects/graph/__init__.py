"""The graph dialect: snake_case nodes and edges, state paths as inputs and outputs, fan-outs, loops and merges.

{name, entry_node_id, nodes: [{id, type, agent_id, inputs, outputs, params}],
 edges: [{from_node, to_node, condition}], limits: {max_steps, timeout_ms, max_parallel, max_iters}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pointsman.definition.model.nodes import CONFIG_OF
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.naming_rules import GRAPH_FIELDS
from pointsman.definition.problems import did_you_mean, pointer_to
from pointsman.dialects.graph.flow import (
    BARRIER_S,
    CHAINED,
    CONCAT_SEPARATOR,
    ITERATIONS,
    LIMITS,
    NO_ITEMS,
    NODE_TYPES,
    ONE_ITEM,
    OUTPUT,
    STITCH_HEADER,
    STITCH_SEPARATOR,
    STRATEGIES,
    WORDS,
    DataFlow,
    GraphEdgeReader,
    GraphShape,
    data_flow,
    expression_of,
    merged_path,
    outputs_path,
    shape_of,
    state_of,
    state_path,
    template_expression,
    with_results,
)
from pointsman.dialects.graph.writer import render
from pointsman.dialects.readers import (
    ForeignReader,
    ImportedDocument,
    Record,
    WrittenDocument,
    agents_of,
    is_name,
    key_of,
    list_of,
    number_of,
    object_of,
    records,
    workflow_id,
)
from pointsman.dialects.writers import Dialect, write_with
from pointsman.expressions.environment import ROOTS
from pointsman.values import Json, JsonObject


def read(document: JsonObject, *, name: str) -> ImportedDocument:
    """Return the native document of a graph, with the dialect's defaults written out."""
    reading = ForeignReader("graph")
    head = Record(document, "", WORDS)
    shape = shape_of(
        records(head.take("nodes"), "/nodes", WORDS, reading), records(head.take("edges"), "/edges", WORDS, reading)
    )
    flow = data_flow(shape)
    native: JsonObject = {"pointsman": 1}
    workflow_id(head, reading, native, name=name, names=("workflow_id", "id"))
    native["dialect"] = "graph"
    _read_head(native, head, reading)
    limits = reading.inside(head, "limits")
    native["config"] = _config(head, limits, reading)
    entry = native.get("entry")
    native["input"] = _input(head, shape, flow, reading, entry=entry)
    native["output"] = _output(shape)
    ids = [str(record.value.get("id")) for record in shape.nodes if record.value.get("type") in ("agent", "merge")]
    native["state"] = {**state_of(flow, ids), **object_of(head.take("state"))}
    reader = GraphNodeReader(
        shape, flow, reading, entry=entry, iterations=reading.count(limits, "max_iters") or ITERATIONS
    )
    native["nodes"] = [reader.read(index, record) for index, record in enumerate(shape.nodes)]
    native["edges"] = GraphEdgeReader(shape, reading, entry).read()
    reading.keep(native, "", head, limits=limits.left() or None)
    return reading.done(native)


def write(workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
    """Return the workflow as a graph, with a list of losses."""
    return write_with(DIALECT, workflow, original)


def _read_head(native: JsonObject, head: Record, reading: ForeignReader) -> None:
    for field in ("name", "description"):
        reading.move(native, "", field, head, field)
    reading.version(native, head)
    reading.move(native, "", "enabled", head, "is_active")
    reading.move(native, "", "tags", head, "tags")
    reading.move(native, "", "entry", head, "entry_node_id")
    agents = agents_of(head.take("agents"), "/agents", reading)
    if agents is not None:
        native["agents"] = agents


def _config(head: Record, limits: Record, reading: ForeignReader) -> JsonObject:
    """Return the dialect's limits and its three retries, unless the document or its native `config` overrides them."""
    result: JsonObject = {}
    for native, (word, default) in LIMITS.items():
        result[native] = default
        reading.move(result, "/config/limits", native, limits, word)
    strategy = head.value.get("error_strategy")
    config: JsonObject = {"errorHandling": "retry"}
    if strategy in ("fail", "stop"):
        head.taken.add("error_strategy")
        config["errorHandling"] = "fail"
    own = object_of(head.take("config"))
    limits_said: JsonObject = {**result, **object_of(own.get("limits"))}
    return {**config, **own, "limits": limits_said}


def _input(head: Record, shape: GraphShape, flow: DataFlow, reading: ForeignReader, *, entry: Json) -> JsonObject:
    input_schema = head.take("input_schema")
    if isinstance(input_schema, dict):
        reading.origin["/input"] = head.at("input_schema")
        return input_schema
    head.taken.discard("input_schema")
    chained = any(
        record.value.get("type") in ("agent", "start") and not record.value.get("inputs") for record in shape.nodes
    )
    schema: JsonObject = {"type": "object", "properties": {"goal": {"type": "string"}}}
    if chained or flow.reads_state("goal"):
        schema["required"] = ["goal"]
    return schema


def _output(shape: GraphShape) -> str:
    """Return the output: of a graph that ends in merges their result, of any other graph the first present of final,
    drafts, latest."""
    going_on = {key_of(link.source) for link in shape.links}
    for record in shape.nodes:
        going_on.update(key_of(branch) for branch in list_of(record.value.get("branches")))
    ends = [record.value.get("type") for record in shape.nodes if key_of(record.value.get("id")) not in going_on]
    return "latest" if ends and all(kind == "merge" for kind in ends) else OUTPUT


def _read(document: JsonObject, name: str) -> ImportedDocument:
    return read(document, name=name)


DIALECT: Final = Dialect("graph", WORDS, _read, render)


_STRATEGIES_OF_ERRORS: Final[Mapping[str, str]] = {
    "fail": "fail",
    "stop": "fail",
    "continue": "continue",
    "skip": "continue",
}


class GraphNodeReader:
    """Reads nodes one by one. It has the whole shape, because a node's meaning depends on its edges."""

    def __init__(
        self, shape: GraphShape, flow: DataFlow, reading: ForeignReader, *, entry: Json, iterations: Json
    ) -> None:
        self.shape = shape
        self.flow = flow
        self.reading = reading
        self.entry = entry
        self.iterations = iterations

    def read(self, index: int, record: Record) -> JsonObject:
        at = f"/nodes/{index}"
        self.reading.origin[at] = record.pointer
        node: JsonObject = {}
        params = self.reading.inside(record, "params")
        self.reading.move(node, at, "id", record, "id")
        kind = record.take("type")
        node["type"] = NODE_TYPES.get(kind, kind) if isinstance(kind, str) else kind
        self.reading.move(node, at, "name", record, "label")
        self.reading.move(node, at, "description", record, "description")
        self.reading.move(node, at, "position", params, "position")
        self._policies(node, at, record, params)
        match kind:
            case "agent":
                self._agent(node, at, record, params)
            case "fanout":
                self._fanout(node, at, record, params)
            case "loop":
                self._loop(node, at, record)
            case "conditional":
                self._conditional(node, at, record, params)
            case "merge":
                self._merge(node, at, record, params)
            case "start":
                node["config"] = {"set": {"latest": "goal"}}
            case _:
                self._other(node, at, record, params)
        left = params.left()
        self.reading.keep(node, at, record, params=left or None)
        return node

    def _policies(self, node: JsonObject, at: str, record: Record, params: Record) -> None:
        if (skip := params.take("skip_condition")) is not None:
            text = with_results(skip) if isinstance(skip, str) else skip
            self.reading.put(node, at, "skipWhen", text, params.at("skip_condition"))
        execution: JsonObject = {}
        own = record.value.get("execution")
        if isinstance(own, dict):  # In native form, as the document's `config`: the dialect has no retries for a node.
            record.taken.add("execution")
            for key, value in own.items():
                self.reading.put(execution, f"{at}/execution", key, value, record.at("execution") + pointer_to(key))
        self.reading.move(execution, f"{at}/execution", "timeout", record, "timeout_ms")
        strategy = record.value.get("error_strategy")
        if isinstance(strategy, str) and strategy in _STRATEGIES_OF_ERRORS:
            record.taken.add("error_strategy")
            handler = _STRATEGIES_OF_ERRORS[strategy]
            self.reading.put(execution, f"{at}/execution", "errorHandler", handler, record.at("error_strategy"))
        if execution:
            node["execution"] = execution

    def _agent(self, node: JsonObject, at: str, record: Record, params: Record) -> None:
        config: JsonObject = {"result": "auto"}
        self.reading.move(config, f"{at}/config", "agent", record, "agent_id")
        if "agent" not in config:
            hint = "Give it an 'agent_id'."
            self.reading.error("agent-missing", record.pointer, f"the agent node {_id(record)} names no agent", hint)
        node["config"] = config
        inputs = self._inputs(record, at)
        for name, value in params.left().items():
            inputs.setdefault(name, self._parameter(value))
            self.reading.origin.setdefault(f"{at}/inputs{pointer_to(name)}", params.at(name))
        if not inputs and record.value.get("id") == self.entry:
            inputs["goal"] = "goal"
        elif not inputs:
            inputs["input"] = CHAINED
        node["inputs"] = inputs
        self._outputs(node, record, at)

    def _parameter(self, value: Json) -> str:
        """Return a parameter as an expression: a path if its first key is state, else a literal."""
        if isinstance(value, str) and state_path(value).split(".")[0].split("[")[0] in self.flow.roots:
            return value
        return json.dumps(value, ensure_ascii=False)

    def _inputs(self, record: Record, at: str) -> JsonObject:
        declared = record.take("inputs")
        if declared is not None and not isinstance(declared, dict):
            self.reading.error("wrong-type", record.at("inputs"), "must be an object {name: path}")
        inputs: JsonObject = {}
        for name, value in object_of(declared).items():
            source = record.at("inputs") + pointer_to(name)
            self.reading.put(inputs, f"{at}/inputs", name, expression_of(value), source)
        return inputs

    def _outputs(self, node: JsonObject, record: Record, at: str) -> None:
        """Read outputs as state path -> expression. Every agent and merge also writes `latest` and its own output."""
        declared = record.take("outputs")
        if declared is not None and not isinstance(declared, dict):
            self.reading.error("wrong-type", record.at("outputs"), "must be an object {name: path}")
        outputs: JsonObject = {}
        for name, path in object_of(declared).items():
            source = f"{record.at('outputs')}{pointer_to(name)}"
            if not isinstance(path, str) or not path:
                self.reading.error("wrong-type", source, "must be the path of a state field, as a text")
                continue
            value = "result" if name in ("result", "merged") else f"result.{name}"
            self.reading.put(outputs, f"{at}/outputs", state_path(path), value, source)
        outputs.setdefault("latest", "result")
        if isinstance(node_id := record.value.get("id"), str):
            outputs.setdefault(outputs_path(node_id), "result")
        node["outputs"] = outputs

    def _fanout(self, node: JsonObject, at: str, record: Record, params: Record) -> None:
        config: JsonObject = {"duplicateKeys": "number"}
        self.reading.move(config, f"{at}/config", "branches", record, "branches")
        self.reading.move(config, f"{at}/config", "maxParallel", params, "max_parallel")
        branches = list_of(config.get("branches"))
        items, inputs = params.take("fanout_items"), object_of(record.value.get("inputs"))
        several = len(branches) > 1
        if items is not None:
            self._items(config, at, record, items, params.at("fanout_items"), several=several)
        elif (items := inputs.get("items")) is not None:
            record.taken.add("inputs")
            self._items(config, at, record, items, f"{record.at('inputs')}/items", several=several)
        else:
            self._without_items(config, at, record, several=several)
        node["config"] = config
        self._check_branches(record, branches)

    def _items(self, config: JsonObject, at: str, record: Record, items: Json, source: str, *, several: bool) -> None:
        """Set the items of a fan-out. If the author's path has no value, the default items apply."""
        expression = expression_of(items)
        if isinstance(items, str):
            expression = f"{expression} ?? {NO_ITEMS if several else ONE_ITEM}"
            if several:
                config["onNoItems"] = "branches"
            root = state_path(items).split(".")[0].split("[")[0]
            if is_name(root) and root not in self.flow.roots | GRAPH_FIELDS | ROOTS.keys():
                message = f"the fan-out {_id(record)} takes its items from {items!r}, which no node writes"
                hint = "Give it as an input, or name a field that a node before it writes."
                self.reading.warning("never-written", source, message, hint)
        self.reading.put(config, f"{at}/config", "items", expression, source)

    def _without_items(self, config: JsonObject, at: str, record: Record, *, several: bool) -> None:
        config["items"] = NO_ITEMS if several else ONE_ITEM
        if several:
            config["onNoItems"] = "branches"
        self.reading.origin[f"{at}/config/items"] = record.pointer
        message = f"the fan-out {_id(record)} names no items"
        else_ = "each branch runs once, with its own id as the item" if several else "one branch runs, for 'default'"
        hint = f"It takes state.fanout_items, state.targets or config.reporter_ids, whichever has some; else {else_}."
        self.reading.note("fanout-without-items", record.pointer, message, hint)

    def _check_branches(self, record: Record, branches: list[Json]) -> None:
        """Warn about differences between branches and edges: a branch is started even if no edge leads to it."""
        targets = [link.target for link in self.shape.leaving(record.value.get("id"))]
        drawn = [branch for branch in branches if branch in targets]
        for branch in branches if drawn else ():
            if branch not in targets:
                message = f"{branch!r} is a branch of {_id(record)}, but only other branches have an edge"
                hint = "The branch is started nevertheless. Add the edge, or remove it from 'branches'."
                self.reading.warning("branch-edge-mismatch", record.at("branches"), message, hint)
        for target in targets:
            if branches and drawn and target not in branches:
                message = f"the edge from {_id(record)} to {target!r} is not a branch"
                hint = "The edge is taken in each branch after the branch has ended."
                self.reading.warning("branch-edge-mismatch", record.at("branches"), message, hint)

    def _loop(self, node: JsonObject, at: str, record: Record) -> None:
        config: JsonObject = {"bodyEnd": "exit"}
        condition = record.take("loop_condition")
        text = with_results(condition) if isinstance(condition, str) else condition
        self.reading.put(config, f"{at}/config", "while", text or None, record.at("loop_condition"))
        self.reading.move(config, f"{at}/config", "maxIterations", record, "max_iters")
        config.setdefault("maxIterations", self.iterations)
        node["config"] = config

    def _conditional(self, node: JsonObject, at: str, record: Record, params: Record) -> None:
        node["routing"] = "all"
        condition = record.take("condition")
        config: JsonObject = {}
        text = with_results(condition) if isinstance(condition, str) else condition
        self.reading.put(config, f"{at}/config", "expression", text or None, record.at("condition"))
        node["config"] = config
        links = self.shape.leaving(record.value.get("id"))
        if "expression" not in config and not any(link.is_conditional for link in links):
            hint = "Give it a 'condition', or put conditions on its edges."
            self.reading.error(
                "condition-missing", record.pointer, f"{_id(record)} has no condition to decide on", hint
            )
        conditions = [link.condition for link in links if isinstance(link.condition, str)]
        own = f"{record.value.get('id')} condition result"
        if (
            isinstance(condition, str)
            and conditions
            and not any(text == condition or own in text for text in conditions)
        ):
            message = f"the condition of {_id(record)} is not on any of its edges, which alone decide the route"
            hint = f"Write {own!r} on the corresponding edge."
            self.reading.warning("condition-disagrees", record.at("condition"), message, hint)

    def _merge(self, node: JsonObject, at: str, record: Record, params: Record) -> None:
        config: JsonObject = {}
        inputs = object_of(record.value.get("inputs"))
        source, merge_path = params.at("merge_key"), params.take("merge_key")
        if merge_path is None and (merge_path := inputs.get("items")) is not None:
            source = f"{record.at('inputs')}/items"
        if isinstance(merge_path, str) and merge_path:
            self._merge_key(config, at, record, state_path(merge_path), source)
        self._strategy(config, params)
        self.reading.move(config, f"{at}/config", "expectedKeys", params, "expected_keys")
        timeout = params.take("timeout")
        if timeout is None and "expectedKeys" in config:
            timeout = BARRIER_S
        if timeout is not None:
            seconds = number_of(timeout)
            unit = "s" if seconds is not None and seconds < 1000 else "ms"
            value: Json = timeout if seconds is None else f"{seconds:g}{unit}"
            self.reading.put(config, f"{at}/config", "timeout", value, params.at("timeout"))
            config["onTimeout"] = "continue"
        node["config"] = config
        if inputs:
            node["inputs"] = self._inputs(record, at)
        self._outputs(node, record, at)

    def _merge_key(self, config: JsonObject, at: str, record: Record, merge_path: str, source: str) -> None:
        path = merged_path(record, self.shape, self.flow, merge_path)
        self.reading.put(config, f"{at}/config", "mergeKey", path, source)
        if path == merge_path:
            return
        message = f"{_id(record)} merges {merge_path!r}, which no node writes"
        instead = f"what the branches write, {path!r}" if path else "the results of its branches"
        self.reading.warning("merge-key-unwritten", source, message, f"It takes {instead}.")
        record.taken.add("merge_key")
        config["x-graph"] = {"merge_key": merge_path}

    def _strategy(self, config: JsonObject, params: Record) -> None:
        strategy = params.take("strategy")
        separator = params.take("separator")
        if strategy == "custom_template":
            template = params.take("template")
            config["aggregate"] = template_expression(template if isinstance(template, str) else "{items}")
            config["x-graph"] = {**object_of(config.get("x-graph")), "strategy": strategy, "template": template}
            return
        if strategy is not None and key_of(strategy) not in STRATEGIES:
            hint = f"{did_you_mean(str(strategy), STRATEGIES)} Known are {', '.join([*STRATEGIES, 'custom_template'])}."
            message = f"has the unknown merge strategy {strategy!r}; it concatenates"
            self.reading.warning("unknown-strategy", params.at("strategy"), message, hint.strip())
            params.taken.discard("strategy")
        config["aggregate"] = aggregate = STRATEGIES.get(str(strategy), "concat")
        if aggregate in ("concat", "stitch"):
            config["separator"] = separator or (STITCH_SEPARATOR if aggregate == "stitch" else CONCAT_SEPARATOR)
        if aggregate == "stitch":
            header = params.take("header_template")
            config["template"] = f"{header if isinstance(header, str) else STITCH_HEADER}\n{{result}}"

    def _other(self, node: JsonObject, at: str, record: Record, params: Record) -> None:
        """Read a node of a native type, configured in `params` or `config`; report other types as unknown."""
        kind = record.value.get("type")
        if isinstance(kind, str) and kind in CONFIG_OF:
            config = node["config"] = {}
            for record_part in (params, self.reading.inside(record, "config")):
                for key, value in record_part.left().items():
                    self.reading.put(config, f"{at}/config", key, value, record_part.at(key))
                record_part.taken.update(record_part.value)
            for field in ("inputs", "outputs"):
                self.reading.move(node, at, field, record, field)
        elif isinstance(kind, str) and "|" in kind:
            hint = "This is a sketch of a schema, not a workflow: '|' lists the possible values. Choose one."
            self.reading.error("schema-sketch", record.at("type"), f"{kind!r} is a list of types, not a type", hint)
        elif isinstance(kind, str):
            hint = f"{did_you_mean(kind, NODE_TYPES)} Known are {', '.join(NODE_TYPES)}.".strip()
            self.reading.error("unknown-node-type", record.at("type"), f"has the unknown node type {kind!r}", hint)


def _id(record: Record) -> str:
    return repr(record.value.get("id"))
