"""Compiler: turns a workflow definition into a plan. The only package of the engine that reads definitions.

    workflow ─ analyse ─▶ graph ┐
             ─ formulas ────────┼─▶ PlanNode per node, PlanEdge per edge ─▶ Plan
             ─ policies ────────┘

Every expression and template is parsed here, and not again at run time. The checker rejects workflows with errors
before they reach the compiler; a defect that it does not find raises `AuthorError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

from msgspec.structs import replace

from pointsman.definition.checks.conflicts import races_in
from pointsman.definition.graph.analysis import Graph, analyse
from pointsman.definition.graph.walks import NOWHERE, reach
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.policies import Limits as LimitsConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.actions import PlanEdge, WorkAction
from pointsman.engine.compile.control import capped, limits_of
from pointsman.engine.compile.formulas import JUDGE, FormulaCompiler, formulas_of, judge_of, plan_edge
from pointsman.engine.compile.nodes import NodeCompiler
from pointsman.engine.plan import DeclaredField, Durability, Plan, PlanNode
from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject

OUTPUT_FIELDS: Final = {"graph": ("final", "drafts", "latest")}
ENGINE_NAMES: Final = ("_currentStep", "_totalNodes", "_currentNodeIteration")
NO_CAPS: Final = LimitsConfig()
UNCOUNTED: Final = ("start", "end", "note")


def compile_workflow(
    workflow: WorkflowDefinition,
    *,
    agents: Mapping[str, AgentConfig] | None = None,
    settings: Mapping[str, Json] | None = None,
    language: str = "en",
    all_languages: bool = True,
    model: str | None = None,
    caps: LimitsConfig = NO_CAPS,
) -> Plan:
    """Compile a workflow. Agents of the workflow override those of `agents`; no limit exceeds `caps`."""
    original, workflow = workflow, capped(workflow, caps)
    graph, entry = _analysed(workflow)
    formulas = formulas_of(workflow, language, all_languages=all_languages)
    edges = _edges(workflow, graph, formulas)
    by_name = {**(agents or {}), **(workflow.agents or {})}
    compiler = NodeCompiler(workflow, graph, formulas, edges, by_name, model, caps)
    nodes = _nodes(graph, compiler)
    return Plan(
        workflow=workflow.id,
        version=workflow.version or "",
        dialect=workflow.dialect or "native",
        entry=entry,
        nodes=nodes,
        limits=limits_of(workflow, original, caps),
        reducers=formulas.reducers,
        declared=_declared(workflow),
        output=formulas.output(workflow.output),
        output_fields=OUTPUT_FIELDS.get(workflow.dialect or "", ()),
        conversational=compiler.conversational,
        steerable=workflow.config is not None and workflow.config.human_in_loop == "real_time",
        messages=compiler.messages,
        strict=bool(workflow.strict),
        durability=_durability(workflow),
        config={**_settings(workflow), **(settings or {})},
        initial=_initial(workflow),
        reaches=reaches_in(graph, frozenset(nodes)),
        after=after_in(graph),
        leads=leads_in(graph),
        meets=meets_in(graph),
        engine_names=_uses_engine_names(workflow),
        nodes_counted=sum(node.type not in UNCOUNTED for node in workflow.nodes),
        uncounted=frozenset(node.id for node in workflow.nodes if node.type in UNCOUNTED),
        edge_index={edge.id: edge.index for edge in edges.values()},
        edge_source={edge.id: edge.source for edge in edges.values()},
        on_cancel=_on_cancel(workflow),
        on_error=workflow.on_error,
        queues=_queues(nodes),
    )


def _queues(nodes: Mapping[str, PlanNode]) -> dict[str, str]:
    actions = ((id, node.action) for id, node in nodes.items())
    return {id: action.queue for id, action in actions if isinstance(action, WorkAction) and action.queue}


def _durability(workflow: WorkflowDefinition) -> Durability:
    durability = workflow.config.durability if workflow.config is not None else None
    return durability or "step"


def _nodes(graph: Graph, compiler: NodeCompiler) -> dict[str, PlanNode]:
    nodes: dict[str, PlanNode] = {}
    for position, node in enumerate(graph.links.nodes):
        if graph.index[node.id] == position and node.type != "note":
            for plan_node in compiler.nodes(position):
                nodes[plan_node.id] = plan_node
    for id, paths in races_in(compiler.workflow, graph).items():
        if id in nodes:
            nodes[id] = replace(nodes[id], position=replace(nodes[id].position, races=paths))
    return nodes


def _analysed(workflow: WorkflowDefinition) -> tuple[Graph, str]:
    """Return the graph and the id of its entry node."""
    graph = analyse(workflow)
    if graph.entry is None:
        raise AuthorError("the workflow has no nodes", hint="Add a node.")
    _must_have_its_handlers(workflow, graph)
    return graph, graph.ids[graph.entry]


def _must_have_its_handlers(workflow: WorkflowDefinition, graph: Graph) -> None:
    on_limit = workflow.config.on_limit if workflow.config is not None else None
    undoing = ((f"compensate of {node.id!r}", node.compensate) for node in workflow.nodes)
    for key, name in (("onLimit", on_limit), ("onError", workflow.on_error), *undoing):
        if name is not None and name not in graph.index:
            raise AuthorError(f"{key} names {name!r}, which does not exist", hint="Name a node of this workflow.")


def _edges(workflow: WorkflowDefinition, graph: Graph, formulas: FormulaCompiler) -> dict[int, PlanEdge]:
    edges: dict[int, PlanEdge] = {}
    for ref in graph.edges:
        edge = plan_edge(workflow, graph, ref, formulas)
        if edge is not None:
            edges[ref.number] = edge
    return edges


def _on_cancel(workflow: WorkflowDefinition) -> Literal["compensate", "stop"]:
    policy = workflow.config.on_cancel if workflow.config is not None else None
    return policy or "compensate"


def _settings(workflow: WorkflowDefinition) -> JsonObject:
    config = workflow.config
    return dict(config.settings) if config is not None and config.settings is not None else {}


def _initial(workflow: WorkflowDefinition) -> JsonObject:
    """Return the defaults of declared top-level fields."""
    fields = workflow.state or {}
    return {name: field.default for name, field in fields.items() if field.default is not None and "." not in name}


def _declared(workflow: WorkflowDefinition) -> tuple[DeclaredField, ...]:
    fields = (workflow.state or {}).items()
    return tuple(DeclaredField(tuple(p.split(".")), f.schema_) for p, f in fields if f.schema_ is not None)


def _uses_engine_names(workflow: WorkflowDefinition) -> bool:
    if workflow.dialect not in (None, "native"):
        return False
    text = repr(workflow.nodes) + repr(workflow.edges)
    return any(name in text for name in ENGINE_NAMES)


def reaches_in(graph: Graph, nodes: frozenset[str]) -> Callable[[str], frozenset[str]]:
    """See `Plan.reaches`."""
    cache: dict[str, frozenset[str]] = {}

    def reaches(node: str) -> frozenset[str]:
        cached = cache.get(node)
        if cached is None:
            before = {graph.ids[number] for number in _before(graph, graph.index[node])}
            judges = {judge_of(name) for name in before if judge_of(name) in nodes}
            cache[node] = cached = frozenset(before | judges)
        return cached

    return reaches


def after_in(graph: Graph) -> Callable[[Iterable[str]], frozenset[str]]:
    """See `Plan.after`."""

    def after(nodes: Iterable[str]) -> frozenset[str]:
        authored = [node for node in nodes if node.removesuffix(JUDGE) in graph.index]
        behind = [target for node in authored for target in graph.links.targets(_number(graph, node))]
        reachable = reach(graph.links.targets, behind)
        return frozenset(graph.ids[number] for number in reachable if number >= 0)

    return after


def leads_in(graph: Graph) -> Callable[[str, str, str], bool]:
    """See `Plan.leads`."""
    cache: dict[tuple[int, int], set[int]] = {}

    def leads(source: str, target: str, without: str) -> bool:
        goal, closed = _number(graph, target), _number(graph, without) if without else NOWHERE
        reachable = cache.get((goal, closed))
        if reachable is None:
            avoid = (closed, _fork(graph, goal))
            reachable = cache[goal, closed] = reach(graph.links.sources, graph.links.sources(goal), avoid=avoid)
        return _number(graph, source) in reachable

    return leads


def meets_in(graph: Graph) -> Callable[[str, str], bool]:
    """See `Plan.meets`."""
    cache: dict[tuple[str, str], bool] = {}

    def meets(source: str, node: str) -> bool:
        cached = cache.get((source, node))
        if cached is None:
            goal = graph.index[node]
            here = graph.scopes[goal]
            behind = reach(graph.links.targets, graph.links.targets(_number(graph, source)), avoid=(goal,))
            beside = {number for number in behind if graph.scopes[number] == here}
            cached = cache[source, node] = beside <= _before(graph, goal)
        return cached

    return meets


def _before(graph: Graph, node: int) -> set[int]:
    """Return the nodes from which a node can be reached; includes the node itself if it is on a cycle.

    Paths stay inside the scope of the node: a path through the surrounding parallel would start outside the scope, or
    in another instance of the parallel.
    """
    reachable = reach(graph.links.sources, graph.links.sources(node), avoid=(node, _fork(graph, node)))
    if any(target == node or target in reachable for target in graph.links.targets(node)):
        reachable.add(node)
    return reachable


def _fork(graph: Graph, node: int) -> int:
    around = graph.scopes[node]
    return around[-1] if around else NOWHERE


def _number(graph: Graph, node: str) -> int:
    """Return the position of a node; for a hidden judge, the position of the node in front of it."""
    index = graph.index.get(node)
    return graph.index[node.removesuffix(JUDGE)] if index is None else index
