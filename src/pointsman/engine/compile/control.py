"""Control nodes: compile the nodes that the engine performs itself, and the aggregates of joins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.model import policies
from pointsman.definition.model.base import Duration, Size
from pointsman.definition.model.control import (
    DecisionConfig,
    EmitConfig,
    EndConfig,
    HumanConfig,
    HumanOption,
    JoinConfig,
    LoopConfig,
    ParallelConfig,
    StartConfig,
    WaitConfig,
    WaitRule,
)
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.policies import DEFAULTS, Budget, Config, More
from pointsman.definition.model.policies import Limits as LimitsConfig
from pointsman.definition.model.work import WorkflowCallConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.actions import (
    NO_RETRY,
    UNASKED,
    ApprovalPolicy,
    BranchResult,
    DecisionAction,
    EmitAction,
    EndAction,
    EscalationLevel,
    GateApprovers,
    GateTerms,
    HumanTaskAction,
    JoinAction,
    LoopAction,
    ParallelAction,
    PlanEdge,
    Retry,
    StartAction,
    Test,
    Value,
    WaitAction,
    WorkflowAction,
)
from pointsman.engine.compile.formulas import FormulaCompiler, timeout_label
from pointsman.engine.instants import seconds_of
from pointsman.engine.plan import PlanLimits
from pointsman.expressions.environment import Environment
from pointsman.values import Json, JsonObject

DEFAULT_OF: Final[Mapping[str, float | None]] = {
    "steps": DEFAULTS.steps,
    "visits": DEFAULTS.visits,
    "parallel": DEFAULTS.parallel,
    "executionTime": DEFAULTS.execution_time,
    "retryAfter": DEFAULTS.retry_after,
    "stateSize": DEFAULTS.state_size,
    "costUsd": DEFAULTS.cost_usd,
}
BUDGETS: Final = ("tokens", "modelCalls", "toolCalls", "costUsd")


def capped(workflow: WorkflowDefinition, operator: LimitsConfig) -> WorkflowDefinition:
    """Return the workflow with every limit reduced to the operator's cap."""
    config = workflow.config or Config()
    limits = config.limits or LimitsConfig()
    change: dict[str, object] = {}
    for name, field in LimitsConfig.model_fields.items():
        most, own = getattr(operator, name), getattr(limits, name)
        allowed = amount(own) if own is not None else DEFAULT_OF.get(field.alias or name)
        if own is None and name == "node_time":
            continue  # its default depends on the kind of work: see `compile.work.times_of`
        if most is not None and (allowed is None or allowed > (amount(most) or 0)):
            change[name] = most
    if not change:
        return workflow
    return workflow.model_copy(
        update={"config": config.model_copy(update={"limits": limits.model_copy(update=change)})}
    )


def amount(value: object) -> float | None:
    """Return a limit in the unit of the engine: seconds, bytes, or the number itself."""
    match value:
        case Duration():
            return value.seconds
        case Size():
            return value.bytes
        case int() | float():
            return value
        case _:
            return None


def amounts(limits: LimitsConfig | More | None) -> dict[str, float]:
    """Return the limits that are set, by their names in documents."""
    if limits is None:
        return {}
    values = {
        field.alias or name: amount(getattr(limits, name, None)) for name, field in type(limits).model_fields.items()
    }
    return {name: most for name, most in values.items() if most is not None}


def limits_of(workflow: WorkflowDefinition, original: WorkflowDefinition, operator: LimitsConfig) -> PlanLimits:
    """Return the limits of a `capped` workflow; `original` is the workflow as its author wrote it."""
    config = workflow.config or Config()
    now = amounts(config.limits)
    own = amounts(original.config.limits if original.config is not None else None)
    budget = config.budget or Budget()
    steps = now.get("steps", DEFAULTS.steps)
    return PlanLimits(
        steps=None if steps is None else int(steps),
        parallel=int(now.get("parallel", DEFAULTS.parallel)),
        execution_time_s=now.get("executionTime", DEFAULTS.execution_time),
        deadline_s=now.get("deadline"),
        retry_after_s=now.get("retryAfter", DEFAULTS.retry_after),
        state_bytes=int(now.get("stateSize", DEFAULTS.state_size)),
        budgets=tuple((name, now[name]) for name in BUDGETS if name in now),
        budget_policy=budget.policy or "stop",
        budget_warn_at=0.8 if budget.warn_at is None else budget.warn_at,
        on_limit=config.on_limit,
        sources={name: "definition" if own.get(name) == most else "operator" for name, most in now.items()},
        caps=amounts(operator),
    )


STYLE: Final = {"approve": "primary", "edit": "secondary", "reject": "danger", "skip": "secondary"}
SEEN_BY_WAIT: Final = ("results", "branches", "arrived", "total")
STATUSES: Final = ("completed", "failed", "cancelled")


def start_action(config: StartConfig, formulas: FormulaCompiler) -> StartAction:
    """Compile a start node, which writes initial fields."""
    return StartAction(
        set=tuple((formulas.path(target), formulas.value(source)) for target, source in (config.set or {}).items())
    )


def end_action(config: EndConfig, formulas: FormulaCompiler) -> EndAction:
    """Compile an end node. A status other than the engine's own counts as `completed`."""
    status = config.status if config.status in STATUSES else "completed"
    return EndAction(
        output=formulas.output(config.output),
        terminate=bool(config.terminate),
        status=status,
    )


def decision_action(config: DecisionConfig, formulas: FormulaCompiler) -> DecisionAction | None:
    """Compile a decision by expression or by cases; None if only its edges decide."""
    if config.expression is not None:
        return DecisionAction(branch=formulas.value(config.expression))
    if config.cases is None:
        return None
    cases = [(formulas.test(case.when), case.label) for case in config.cases]

    def branch(env: Environment) -> Json:
        for holds, label in cases:
            if holds(env):
                return label
        return config.default

    return DecisionAction(branch=branch)


def parallel_action(
    config: ParallelConfig, formulas: FormulaCompiler, graph: Graph, node: int, edges: dict[int, PlanEdge]
) -> ParallelAction:
    """Compile a parallel with its branch edges and the join that closes it."""
    shape = graph.forks[node]
    join = graph.join_of.get(node)
    starts = tuple(edges[number] for number in _named_order(config, shape.starts, edges))
    return ParallelAction(
        starts=starts,
        by_id={edge.id: edge for edge in starts},
        items=formulas.value(config.items) if config.items is not None else None,
        item_name=config.as_,
        parallel_max=config.max_parallel,
        on_branch_error=config.on_branch_error or "fail",
        join=graph.ids[join] if join is not None else None,
        after=tuple(edges[number] for number in shape.after if number in edges),
        duplicate_keys=config.duplicate_keys or "fail",
        one_scope=config.on_no_items == "branches",
    )


def _named_order(config: ParallelConfig, starts: tuple[int, ...], edges: dict[int, PlanEdge]) -> list[int]:
    """Return the branch edges in the order of `branches`, if given, with each target once."""
    order: dict[str, int] = {name: place for place, name in enumerate(config.branches or ())}
    targets = [number for number in starts if number in edges]
    by_target: dict[str, int] = {}
    for number in targets:
        by_target.setdefault(edges[number].target, number)
    chosen = list(by_target.values()) if config.branches else targets
    return sorted(chosen, key=lambda n: order.get(edges[n].target, len(order)))


def join_action(config: JoinConfig, formulas: FormulaCompiler, graph: Graph, node: int) -> JoinAction:
    """Compile a join with the parallels that it closes and its aggregate."""
    closes = tuple(graph.ids[opener] for opener in graph.closes.get(node, ()))
    return JoinAction(
        closes=closes,
        wait=_wait_rule(config.wait, formulas),
        wait_sees=_wait_sees(config.wait, formulas),
        cancel_rest=bool(config.cancel_rest),
        aggregate=aggregate_of(config),
        aggregate_value=aggregate_value(config, formulas),
        timeout_s=config.timeout.seconds if config.timeout is not None else None,
        on_timeout="fail" if config.on_timeout == "fail" else "proceed",
        expected_keys=_keys(config.expected_keys),
        expected=formulas.value(config.expected_keys) if isinstance(config.expected_keys, str) else None,
        merge_path=formulas.path(config.merge_key) if config.merge_key is not None else None,
    )


def _keys(keys: tuple[str, ...] | str | None) -> tuple[str, ...]:
    return keys if isinstance(keys, tuple) else ()


def _wait_rule(rule: WaitRule | None, formulas: FormulaCompiler) -> Test | Literal["all", "any"] | int | float:
    if rule is None or rule.kind == "all":
        return "all"
    match rule.kind:
        case "any":
            return "any"
        case "count":
            return int(rule.number)
        case "share":
            return rule.number / 100
        case "expression":
            return formulas.inside(*SEEN_BY_WAIT).test(rule.expression)


def _wait_sees(rule: WaitRule | None, formulas: FormulaCompiler) -> bool:
    if rule is None or rule.kind != "expression":
        return False
    return any(read.root in ("results", "branches") for read in formulas.inside(*SEEN_BY_WAIT).reads(rule.expression))


def loop_action(
    config: LoopConfig, formulas: FormulaCompiler, graph: Graph, node: int, edges: dict[int, PlanEdge]
) -> LoopAction:
    """Compile a loop with its body."""
    shape = graph.loops[node]
    inner = formulas.inside(config.as_) if config.as_ is not None else formulas
    return LoopAction(
        condition=_goes_on(config, inner),
        items=formulas.value(config.over) if config.over is not None else None,
        item_name=config.as_,
        rounds_max=config.max_iterations,
        body=frozenset(graph.ids[number] for number in shape.body),
        body_edges=tuple(edges[number] for number in shape.body_edges if number in edges),
        exit_edges=tuple(edges[number] for number in shape.exit_edges if number in edges),
        back=frozenset(edges[number].id for number in shape.back_edges if number in edges),
        collect=formulas.path(config.collect) if config.collect is not None else None,
        count_into=formulas.path(config.count_into) if config.count_into is not None else None,
        skips_failures=config.on_round_error == "skip",
        failures_into=formulas.path(config.failures_into) if config.failures_into is not None else None,
        ends_with_body=config.body_end == "exit",
    )


def _goes_on(config: LoopConfig, formulas: FormulaCompiler) -> Test | None:
    """Return the loop condition: `while` before each round, `until` before each round except the first."""
    go = formulas.test(config.while_) if config.while_ is not None else None
    stop = formulas.test(config.until) if config.until is not None else None
    if go is None and stop is None:
        return None

    def holds(env: Environment) -> bool:
        if go is not None and not go(env):
            return False
        if stop is None:
            return True
        loop = env.names.get("loop")
        rounds = loop.get("iteration") if isinstance(loop, dict) else 0
        return rounds == 0 or not stop(env)

    return holds


def human_task_action(config: HumanConfig, formulas: FormulaCompiler, nodes: frozenset[str]) -> HumanTaskAction:
    """Compile a gate."""
    options = _options(config, formulas)
    first = str(options[0]["value"])
    on_timeout = config.on_timeout or "fail"
    if on_timeout in nodes and on_timeout not in [str(option["value"]) for option in options]:
        on_timeout = timeout_label(on_timeout)
    terms = terms_of(config.approvers, config.timeout, config.escalation, on_timeout)
    if config.auto_proceed:
        terms = replace(terms, on_timeout=first, timeout_s=0.0 if terms.timeout_s is None else terms.timeout_s)
    message = config.message or config.title
    return HumanTaskAction(
        message=formulas.rendered(message) if message is not None else _silent,
        messages=formulas.rendered_in_all(message),
        options=options,
        form=config.form,
        displayed=_shown(config, formulas),
        editable=tuple(formulas.path(path) for path in config.editable or ()),
        terms=terms,
        limit_raises={option.value: amounts(option.more) for option in config.options or () if option.more is not None},
    )


def _silent(env: Environment) -> Json:
    return ""


def _options(config: HumanConfig, formulas: FormulaCompiler) -> tuple[JsonObject, ...]:
    options: tuple[HumanOption, ...] = tuple(config.options or ())
    if options:
        return tuple(
            {
                "value": option.value,
                "label": option.label.in_(formulas.language) if option.label is not None else option.value,
                **({"labels": dict(labels)} if (labels := formulas.texts(option.label)) else {}),
                **({"style": option.style} if option.style is not None else {}),
            }
            for option in options
        )
    actions: tuple[str, ...] = config.actions or ("approve", "reject")
    return tuple({"value": action, "label": action.capitalize(), "style": STYLE[action]} for action in actions)


def _shown(config: HumanConfig, formulas: FormulaCompiler) -> Value | None:
    if not config.show:
        return None
    parts = [(source, formulas.value(source)) for source in config.show]

    def show(env: Environment) -> Json:
        result: JsonObject = {}
        for source, value in parts:
            result[source] = value(env)
        return result

    return show


def terms_of(
    approvers: policies.Approvers | None,
    timeout: Duration | None,
    escalation: tuple[policies.Escalation, ...] | None,
    on_timeout: str,
) -> GateTerms:
    """Return the conditions of a human task: approvers, deadline and escalation."""
    if timeout is None:
        return GateTerms(approvers=_approvers(approvers) if approvers is not None else None, on_timeout=on_timeout)
    levels = tuple(
        EscalationLevel(approvers=_approvers(level.approvers), timeout_s=(level.timeout or timeout).seconds)
        for level in escalation or ()
    )
    return GateTerms(
        approvers=_approvers(approvers) if approvers is not None else None,
        timeout_s=timeout.seconds,
        on_timeout=on_timeout,
        levels=levels,
    )


def _approvers(approvers: policies.Approvers) -> GateApprovers:
    return GateApprovers(
        groups=approvers.groups,
        users=approvers.users,
        quorum=approvers.quorum or 1,
        reject_quorum=approvers.reject_quorum or 1,
        delegable=approvers.delegable is not False,
        by_link=bool(approvers.by_link),
    )


def approval_of(node: Node, config: Config | None, formulas: FormulaCompiler) -> ApprovalPolicy:
    """Return which work of a node people must approve, and on which conditions."""
    own = node.approval or (config.approval if config is not None else None)
    if own is None:
        return ApprovalPolicy(before=True) if node.requires_approval else UNASKED
    return ApprovalPolicy(
        before=bool(node.requires_approval),
        message=formulas.rendered(own.message) if own.message is not None else None,
        messages=formulas.rendered_in_all(own.message),
        terms=terms_of(own.approvers, own.timeout, own.escalation, own.on_timeout or "fail"),
    )


def wait_action(config: WaitConfig, formulas: FormulaCompiler) -> WaitAction:
    """Compile a wait for a timer or an event."""
    seconds = config.duration.seconds if config.duration is not None else None
    until = formulas.value(config.until) if config.until is not None else None
    return WaitAction(
        duration=(lambda env: seconds) if seconds is not None else None,
        until=(lambda env: seconds_of(until(env))) if until is not None else None,
        event=formulas.rendered(config.event) if config.event is not None else None,
        match=formulas.inside("event").test(config.match) if config.match is not None else None,
        timeout_s=config.timeout.seconds if config.timeout is not None else None,
        goes_on_timeout=config.on_timeout == "continue",
    )


def emit_action(config: EmitConfig, formulas: FormulaCompiler) -> EmitAction:
    """Compile a node that publishes an event."""
    data = formulas.tree(config.data) if config.data is not None else None
    return EmitAction(event=formulas.rendered(config.event), data=data)


def workflow_action(
    config: WorkflowCallConfig,
    inputs: Value | None,
    formulas: FormulaCompiler,
    retry: Retry = NO_RETRY,
    on_failure: str = "fail",
) -> WorkflowAction:
    """Compile a call of a sub-workflow."""
    return WorkflowAction(
        workflow=config.workflow,
        input=formulas.mapping(config.input) or inputs,
        wait=config.mode != "start",
        retry=retry,
        on_failure="continue" if on_failure == "continue" else "fail",
    )


Aggregate = Callable[[list[BranchResult]], Json]


SEPARATOR: Final = "\n\n"


def aggregate_of(config: JoinConfig) -> Aggregate | None:
    """Return the function of a named aggregate; None for the plain list, and for expressions and templates."""
    name = config.aggregate
    order = tuple(config.order or ())
    separator = SEPARATOR if config.separator is None else config.separator
    if name in ("concat", "stitch"):
        return lambda results: separator.join(text_of(result.value) for result in ordered(results, order))
    simple: dict[str, Aggregate] = {
        "object": lambda results: {result.key: result.value for result in ordered(results, order)},
        "merge": lambda results: merged(ordered(results, order)),
        "first": lambda results: ordered(results, order)[0].value if results else None,
        "last": lambda results: ordered(results, order)[-1].value if results else None,
        "vote": lambda results: vote(ordered(results, order)),
    }
    if name in simple:
        return simple[name]
    listed = order or (name == "list" and config.merge_key is not None)  # otherwise the value at the path is the result
    return (lambda results: [result.value for result in ordered(results, order)]) if listed else None


def aggregate_value(config: JoinConfig, formulas: FormulaCompiler) -> Value | None:
    """Return a computed aggregate: an expression, or the template of `stitch`."""
    names = ("list", "object", "merge", "concat", "first", "last", "vote", "stitch")
    if config.template is not None:
        return _stitched(config, formulas)
    if config.aggregate is not None and config.aggregate not in names:
        return formulas.inside("results", "branches", "items", "arrived", "total").value(config.aggregate)
    return None


def _stitched(config: JoinConfig, formulas: FormulaCompiler) -> Value:
    assert config.template is not None
    page = formulas.inside("branches").rendered(config.template)
    separator = SEPARATOR if config.separator is None else config.separator
    order = tuple(config.order or ())

    def stitch(env: Environment) -> Json:
        branches = env.names.get("branches")
        texts: list[str] = []
        for number, branch in enumerate(_in_order(branches if isinstance(branches, list) else [], order)):
            names = {**env.names, "item": branch.get("key"), "key": branch.get("key"), "index": number}
            inner = Environment(
                env.state, env.nodes, {**names, "result": branch.get("result")}, env.config, env.item_key, env.strict
            )
            texts.append(str(page(inner)))
        return separator.join(texts)

    return stitch


def _in_order(branches: Sequence[Json], order: tuple[str, ...]) -> list[JsonObject]:
    objects = [branch for branch in branches if isinstance(branch, dict)]
    return sorted(objects, key=lambda b: order.index(str(b.get("key"))) if str(b.get("key")) in order else len(order))


def ordered(results: list[BranchResult], order: tuple[str, ...]) -> list[BranchResult]:
    """Return results in branch order, with the named keys first."""
    if not order:
        return results
    return sorted(results, key=lambda result: order.index(result.key) if result.key in order else len(order))


def text_of(value: Json) -> str:
    """Return a value as part of a text: strings unchanged, null as an empty string, other values as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def merged(results: list[BranchResult]) -> JsonObject:
    """Merge objects in order; later keys win. A value that is not an object is stored under its branch key."""
    merged_values: JsonObject = {}
    for result in results:
        merged_values |= result.value if isinstance(result.value, dict) else {result.key: result.value}
    return merged_values


def vote(results: list[BranchResult]) -> Json:
    """Return the value that most branches returned; in a tie, the value that arrived first."""
    counts: dict[bytes, int] = {}
    values: dict[bytes, Json] = {}
    for result in results:
        mark = msgspec.json.encode(result.value, order="deterministic")
        counts[mark] = counts.get(mark, 0) + 1
        values.setdefault(mark, result.value)
    return values[max(counts, key=lambda mark: counts[mark])] if counts else None
