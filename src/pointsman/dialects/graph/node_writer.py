"""Writing of a node in the graph dialect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import Model
from pointsman.definition.model.control import DecisionConfig, JoinConfig, LoopConfig, ParallelConfig, StartConfig
from pointsman.definition.model.edges import Edge, OnLabel, When
from pointsman.definition.model.nodes import Node
from pointsman.definition.problems import Problem, pointer_to
from pointsman.dialects.foreign_fields import list_of, object_of
from pointsman.dialects.graph.keywords import (
    BARRIER_S,
    CHAINED,
    CONCAT_SEPARATOR,
    NO_ITEMS,
    ONE_ITEM,
    STITCH_HEADER,
    STITCH_SEPARATOR,
    STRATEGIES,
    branch_is,
    outputs_path,
)
from pointsman.dialects.inline_agents import InlineAgents
from pointsman.dialects.losses import document_of, loss, lost_fields
from pointsman.values import Json, JsonObject

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
        said = document_of(self.node)
        head: JsonObject = {"id": self.node.id, "type": word}
        if "name" in said:
            head["label"] = said["name"]
        if "description" in said:
            head["description"] = said["description"]
        if "position" in said:
            self.params["position"] = said["position"]
        if "skipWhen" in said:
            self.params["skip_condition"] = said["skipWhen"]
        self._execution(object_of(said.get("execution")))
        if self.params:
            self.made["params"] = self.params
        return {**head, **self.made}

    def _execution(self, said: JsonObject) -> None:
        execution = self.node.execution
        if execution is not None and execution.timeout is not None:
            self.made["timeout_ms"] = round(execution.timeout.seconds * 1000)
        if said.get("errorHandler") in ERROR_STRATEGIES:
            self.made["error_strategy"] = said["errorHandler"]
        own = {
            key: value
            for key, value in said.items()
            if key != "timeout" and not (key == "errorHandler" and value in ERROR_STRATEGIES)
        }
        if own:
            self.made["execution"] = own

    def lose(self, config: Model, *known: str) -> None:
        self.losses.extend(lost_fields(config, known, f"{self.at}/config", "graph"))

    def prune_branches(self) -> None:
        """Remove targets without an edge from `true_nodes`, `false_nodes` and `body_node_id`."""
        for branch in ("true", "false"):
            kept = list_of(self.params.get(f"{branch}_nodes"))
            there = {edge.target for edge in self.out if is_branch(edge, branch)}
            if kept:
                self.params[f"{branch}_nodes"] = [target for target in kept if target in there]
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
        said = {name: text for name, text in inputs.items() if not self._is_parameter(name, text)}
        if said:
            self.made["inputs"] = {name: _input_value(text) for name, text in said.items()}

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
        kept = object_of(document_of(config).get("x-graph"))
        said = document_of(config)
        if (key := kept.get("merge_key", config.merge_key)) is not None:
            self.params["merge_key"] = key
        if "expectedKeys" in said:
            self.params["expected_keys"] = said["expectedKeys"]
        self._timeout(config)
        self._strategy(config, kept)
        self._inputs(chained=False)
        self._outputs()
        known = ("mergeKey", "expectedKeys", "timeout", "onTimeout", "aggregate", "separator", "template")
        self.lose(config, *known)

    def _timeout(self, config: JoinConfig) -> None:
        if config.timeout is None:
            return
        seconds = config.timeout.seconds
        if not (seconds == BARRIER_S and config.expected_keys is not None):
            self.params["timeout"] = round(seconds * 1000) if seconds >= 1 else seconds
        if config.on_timeout != "continue":
            self.losses.append(loss(f"{self.at}/config/onTimeout", "failing on a timeout", "graph"))

    def _strategy(self, config: JoinConfig, kept: JsonObject) -> None:
        aggregate = config.aggregate or "list"
        if kept.get("strategy") == "custom_template":
            self.params |= {"strategy": "custom_template", "template": kept.get("template")}
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
        case OnLabel(label=said):
            return said == label
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
