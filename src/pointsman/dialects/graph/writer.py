"""Writing of any workflow as a graph: paths as outputs, marks as conditions; everything else is listed as lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import Duration, Model
from pointsman.definition.model.control import DecisionConfig, JoinConfig, LoopConfig, ParallelConfig, StartConfig
from pointsman.definition.model.nodes import Edge, Node, OnLabel, Otherwise, When
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, pointer_to
from pointsman.dialects.graph.flow import (
    BARRIER_S,
    CHAINED,
    CONCAT_SEPARATOR,
    LIMITS,
    NO_ITEMS,
    NODE_TYPES,
    ONE_ITEM,
    OUTPUT,
    STITCH_HEADER,
    STITCH_SEPARATOR,
    STRATEGIES,
    branch_is,
    outputs_path,
)
from pointsman.dialects.readers import list_of, object_of
from pointsman.dialects.writers import (
    NEVER_LOST,
    InlineAgents,
    Rendered,
    condition_text,
    document_of,
    edge_keys,
    extension_of,
    loss,
    lost_fields,
    node_keys,
    outgoing,
    type_of,
)
from pointsman.values import Json, JsonObject

_HEAD: Final = NEVER_LOST | {
    *("name", "description", "version", "enabled", "tags", "entry", "config", "input", "output", "state", "agents")
}
_NODE: Final = frozenset(
    ("id", "type", "name", "description", "position", "inputs", "outputs", "execution", "routing", "skipWhen", "config")
)
_EDGE: Final = frozenset(("id", "source", "target", "condition", "label", "mark"))
_WORD_OF: Final[Mapping[str, str]] = {native: word for word, native in NODE_TYPES.items()}
_MARKS: Final[Mapping[str, str]] = {
    "body": "loop_body",
    "continue": "loop_continue",
    "exit": "loop_exit",
    "break": "loop_exit",
}


def render(workflow: WorkflowDefinition) -> Rendered:
    writing = _GraphWriting(workflow)
    keys = node_keys(workflow)
    nodes = {key: writing.node(index) for index, key in enumerate(keys)}
    edges = {
        key: writing.edge(index)
        for index, key in enumerate(edge_keys(workflow))
        if "from" not in extension_of(workflow.edges[index], "graph")
    }
    head = writing.head()
    return Rendered(head, nodes, edges, tuple(writing.losses))


class _GraphWriting:
    def __init__(self, workflow: WorkflowDefinition) -> None:
        self.workflow = workflow
        self.out = outgoing(workflow)
        self.agents = InlineAgents(workflow)
        self.types = {node.id: node.type for node in workflow.nodes}
        self.deciding = {node.id: _branch_lists(node) for node in workflow.nodes if node.type == "decision"}
        self.losses: list[Problem] = list(lost_fields(workflow, _HEAD, "", "graph"))

    def head(self) -> JsonObject:
        workflow = self.workflow
        fields = document_of(workflow)
        head: JsonObject = {"id": workflow.id}
        for native, word in {"name": "name", "description": "description", "version": "version"}.items():
            if native in fields:
                head[word] = fields[native]
        if "enabled" in fields:
            head["is_active"] = fields["enabled"]
        for field in ("tags", "state"):
            if field in fields:
                head[field] = fields[field]
        if workflow.entry is not None:
            head["entry_node_id"] = workflow.entry
        limits, config = self._config()
        head |= {"limits": limits} if limits else {}
        head |= {"config": config} if config else {}
        if "input" in fields:
            head["input_schema"] = fields["input"]
        if agents := self.agents.documents():
            head["agents"] = agents
        self._check_output()
        extension = extension_of(workflow, "graph")
        own_limits = object_of(extension.pop("limits", None))
        return {**head, **extension, **({"limits": {**limits, **own_limits}} if own_limits else {})}

    def _config(self) -> tuple[JsonObject, JsonObject]:
        """Return the limits for which the dialect has words, and the rest as a native `config`."""
        config = document_of(self.workflow.config)
        native = object_of(config.pop("limits", None))
        limits: JsonObject = {}
        for name, (word, _) in LIMITS.items():
            if (value := native.pop(name, None)) is not None:
                limits[word] = _milliseconds(self.workflow) if name == "executionTime" else value
        if native:
            config["limits"] = native
        if config.get("errorHandling") == "retry":
            del config["errorHandling"]
        return limits, config

    def _check_output(self) -> None:
        output = self.workflow.output
        configs = [node.config for node in self.workflow.nodes]
        branches = {name for config in configs if isinstance(config, ParallelConfig) for name in config.branches or ()}
        ends = [node.type for node in self.workflow.nodes if not self.out[node.id] and node.id not in branches]
        implied = "latest" if ends and all(kind == "join" for kind in ends) else OUTPUT
        if output is not None and output != implied:
            hint = "A graph returns final, drafts or latest."
            self.losses.append(loss("/output", "this output", "graph", hint=hint))

    def node(self, index: int) -> JsonObject:
        node, at = self.workflow.nodes[index], f"/nodes/{index}"
        self.losses.extend(lost_fields(node, _NODE, at, "graph"))
        writing = GraphNode(node, at, self.agents, self.out[node.id], is_entry=node.id == self.workflow.entry)
        extension = extension_of(node, "graph")
        writing.params.update(object_of(extension.pop("params", None)))
        writing.prune_branches()
        word = _WORD_OF.get(node.type)
        write_config = CONFIG_WRITERS.get(node.type)
        if write_config is not None:
            write_config(writing)
        else:
            hint = "The native type is written, but other readers of graphs do not support it."
            self.losses.append(loss(f"{at}/type", type_of(node), "graph", hint=hint))
            writing.native_config()
        if node.routing == "label" or (node.routing == "first" and len(self.out[node.id]) > 1):
            hint = "Every edge whose condition holds is taken."
            self.losses.append(loss(f"{at}/routing", f"routing {node.routing!r}", "graph", hint=hint))
        made = writing.finished(word or node.type)
        self.losses.extend(writing.losses)
        return {**made, **extension}

    def edge(self, index: int) -> JsonObject:
        edge, at = self.workflow.edges[index], f"/edges/{index}"
        self.losses.extend(lost_fields(edge, _EDGE, at, "graph"))
        row: JsonObject = {"from_node": edge.source, "to_node": edge.target}
        fields = document_of(edge)
        for field in ("id", "label"):
            if field in fields:
                row[field] = fields[field]
        condition = _MARKS[edge.mark] if edge.mark is not None else self._condition(edge, at)
        if condition:
            row["condition"] = condition
        return {**row, **extension_of(edge, "graph")}

    def _condition(self, edge: Edge, at: str) -> str:
        match edge.condition:
            case Otherwise() if self.types.get(edge.source) == "decision":
                return ""
            case _ if self.deciding.get(edge.source) and (is_branch(edge, "true") or is_branch(edge, "false")):
                return ""
            case OnLabel(label=label) if self.types.get(edge.source) == "decision" and label in ("true", "false"):
                question = f"{edge.source} condition result"
                return question if label == "true" else f"not ({question})"
            case condition:
                text = condition_text(condition, edge.source)
        if text is None:
            hint = "The written edge is always taken."
            kind = condition.type if condition is not None else ""
            self.losses.append(loss(f"{at}/condition", f"a condition of type {kind!r}", "graph", hint=hint))
        return text or ""


def _branch_lists(node: Node) -> Collection[Json]:
    params = object_of(extension_of(node, "graph").get("params"))
    return [*list_of(params.get("true_nodes")), *list_of(params.get("false_nodes"))]


def _milliseconds(workflow: WorkflowDefinition) -> Json:
    limits = workflow.config.limits if workflow.config is not None else None
    time = limits.execution_time if limits is not None else None
    return round(time.seconds * 1000) if isinstance(time, Duration) else None


ERROR_STRATEGIES: Final = ("fail", "continue")
_STRATEGY_OF: Final[Mapping[str, str]] = {native: word for word, native in STRATEGIES.items()}
_RESULT: Final = "result"


class GraphNode:
    """A node being written. `params` takes the values without a field of their own."""

    def __init__(self, node: Node, at: str, agents: InlineAgents, out: Sequence[Edge], *, is_entry: bool) -> None:
        self.node = node
        self.at = at
        self.agents = agents
        self.out = out
        self.is_entry = is_entry
        self.made: JsonObject = {}
        self.params: JsonObject = {}
        self.losses: list[Problem] = []

    def finished(self, word: str) -> JsonObject:
        fields = document_of(self.node)
        head: JsonObject = {"id": self.node.id, "type": word}
        if "name" in fields:
            head["label"] = fields["name"]
        if "description" in fields:
            head["description"] = fields["description"]
        if "position" in fields:
            self.params["position"] = fields["position"]
        if "skipWhen" in fields:
            self.params["skip_condition"] = fields["skipWhen"]
        self._execution(object_of(fields.get("execution")))
        if self.params:
            self.made["params"] = self.params
        return {**head, **self.made}

    def _execution(self, settings: JsonObject) -> None:
        execution = self.node.execution
        if execution is not None and execution.timeout is not None:
            self.made["timeout_ms"] = round(execution.timeout.seconds * 1000)
        if settings.get("errorHandler") in ERROR_STRATEGIES:
            self.made["error_strategy"] = settings["errorHandler"]
        own = {
            key: value
            for key, value in settings.items()
            if key != "timeout" and not (key == "errorHandler" and value in ERROR_STRATEGIES)
        }
        if own:
            self.made["execution"] = own

    def lose(self, config: Model, *fields: str) -> None:
        self.losses.extend(lost_fields(config, fields, f"{self.at}/config", "graph"))

    def prune_branches(self) -> None:
        """Remove targets without an edge from `true_nodes`, `false_nodes` and `body_node_id`."""
        for branch in ("true", "false"):
            targets = list_of(self.params.get(f"{branch}_nodes"))
            there = {edge.target for edge in self.out if is_branch(edge, branch)}
            if targets:
                self.params[f"{branch}_nodes"] = [target for target in targets if target in there]
        if "body_node_id" in self.params and self.params["body_node_id"] not in [edge.target for edge in self.out]:
            del self.params["body_node_id"]

    def native_config(self) -> None:
        self.params = {**document_of(self.node.config), **self.params}
        for field in ("inputs", "outputs"):
            if (value := document_of(self.node).get(field)) is not None:
                self.made[field] = value

    def agent(self) -> None:
        config = self.node.config
        assert isinstance(config, AgentConfig), "the type decides the configuration"
        self.made["agent_id"] = self.agents.name_for(config, self.node.id, beside=("result",))
        if config.result not in (None, "auto"):
            self.losses.append(loss(f"{self.at}/config/result", f"result {config.result!r}", "graph"))
        self._inputs(chained=True)
        self._outputs()

    def _inputs(self, *, chained: bool) -> None:
        inputs = dict(self.node.inputs or {})
        if chained and inputs in ({"input": CHAINED}, {"goal": "goal"} if self.is_entry else {}):
            return
        texts = {name: text for name, text in inputs.items() if not self._is_parameter(name, text)}
        if texts:
            self.made["inputs"] = {name: _input_value(text) for name, text in texts.items()}

    def _is_parameter(self, name: str, text: str) -> bool:
        value = self.params.get(name)
        return value is not None and text in (value, json.dumps(value, ensure_ascii=False))

    def _outputs(self) -> None:
        outputs: JsonObject = {}
        whole: list[str] = []
        for path, expression in (self.node.outputs or {}).items():
            if expression == _RESULT and path in ("latest", outputs_path(self.node.id)):
                continue
            name = expression.removeprefix(f"{_RESULT}.")
            if expression == _RESULT:
                whole.append(path)
            elif name != expression and name.isidentifier() and name not in outputs:
                outputs[name] = path
            else:
                hint = "Only the result and its fields can be written."
                self.losses.append(loss(f"{self.at}/outputs{pointer_to(path)}", f"{expression!r}", "graph", hint=hint))
        words = ("merged", _RESULT) if self.node.type == "join" else (_RESULT, "merged")
        for word, path in zip(words, whole, strict=False):
            outputs[word] = path
        for path in whole[len(words) :]:
            self.losses.append(loss(f"{self.at}/outputs{pointer_to(path)}", "a third copy of the result", "graph"))
        if outputs:
            self.made["outputs"] = outputs

    def fanout(self) -> None:
        config = self.node.config
        assert isinstance(config, ParallelConfig), "the type decides the configuration"
        branches = config.branches if config.branches is not None else [edge.target for edge in self.out]
        self.made["branches"] = [*branches]
        if config.items is not None and config.items not in (NO_ITEMS, ONE_ITEM):
            items = config.items.removesuffix(f" ?? {NO_ITEMS}").removesuffix(f" ?? {ONE_ITEM}")
            self.params["fanout_items"] = _input_value(items)
        if config.max_parallel is not None:
            self.params["max_parallel"] = config.max_parallel
        self.lose(config, "branches", "items", "maxParallel", "onNoItems", "duplicateKeys")

    def loop(self) -> None:
        config = self.node.config
        assert isinstance(config, LoopConfig), "the type decides the configuration"
        if config.while_ is not None:
            self.made["loop_condition"] = config.while_
        if config.max_iterations is not None:
            self.made["max_iters"] = config.max_iterations
        self.lose(config, "while", "maxIterations", "bodyEnd")

    def conditional(self) -> None:
        config = self.node.config
        assert isinstance(config, DecisionConfig), "the type decides the configuration"
        if config.expression is not None:
            self.made["condition"] = config.expression
        self.lose(config, "expression")

    def merge(self) -> None:
        config = self.node.config
        assert isinstance(config, JoinConfig), "the type decides the configuration"
        extension = object_of(document_of(config).get("x-graph"))
        fields = document_of(config)
        if (key := extension.get("merge_key", config.merge_key)) is not None:
            self.params["merge_key"] = key
        if "expectedKeys" in fields:
            self.params["expected_keys"] = fields["expectedKeys"]
        self._timeout(config)
        self._strategy(config, extension)
        self._inputs(chained=False)
        self._outputs()
        fields_written = ("mergeKey", "expectedKeys", "timeout", "onTimeout", "aggregate", "separator", "template")
        self.lose(config, *fields_written)

    def _timeout(self, config: JoinConfig) -> None:
        if config.timeout is None:
            return
        seconds = config.timeout.seconds
        if not (seconds == BARRIER_S and config.expected_keys is not None):
            self.params["timeout"] = round(seconds * 1000) if seconds >= 1 else seconds
        if config.on_timeout != "continue":
            self.losses.append(loss(f"{self.at}/config/onTimeout", "failing on a timeout", "graph"))

    def _strategy(self, config: JoinConfig, extension: JsonObject) -> None:
        aggregate = config.aggregate or "list"
        if extension.get("strategy") == "custom_template":
            self.params |= {"strategy": "custom_template", "template": extension.get("template")}
            return
        word = _STRATEGY_OF.get(aggregate)
        if word is None:
            hint = "The branches' results are collected in a list."
            self.losses.append(loss(f"{self.at}/config/aggregate", f"{aggregate!r}", "graph", hint=hint))
            word = "collect_list"
        self.params.setdefault("strategy", word)
        usual = STITCH_SEPARATOR if aggregate == "stitch" else CONCAT_SEPARATOR
        if config.separator not in (None, usual):
            self.params["separator"] = config.separator
        template = config.template.value if config.template is not None else None
        if isinstance(template, str) and template != f"{STITCH_HEADER}\n{{result}}":
            self.params["header_template"] = template.removesuffix("\n{result}")

    def start(self) -> None:
        config = self.node.config
        assert isinstance(config, StartConfig), "the type decides the configuration"
        if config.set not in (None, {"latest": "goal"}):
            self.losses.append(loss(f"{self.at}/config/set", "'set'", "graph"))
        self.lose(config, "set")


CONFIG_WRITERS: Final[Mapping[str, Callable[[GraphNode], None]]] = {
    "agent": GraphNode.agent,
    "parallel": GraphNode.fanout,
    "loop": GraphNode.loop,
    "decision": GraphNode.conditional,
    "join": GraphNode.merge,
    "start": GraphNode.start,
}


def is_branch(edge: Edge, label: str) -> bool:
    match edge.condition:
        case OnLabel(label=branch):
            return branch == label
        case When(expression=expression):
            return expression == branch_is(label, edge.source)
        case _:
            return False


def _input_value(expression: str) -> Json:
    """Return an expression as an input: literals other than texts become their value, others stay texts."""
    try:
        value: Json = json.loads(expression)
    except ValueError:
        return expression
    return expression if isinstance(value, str) else value
