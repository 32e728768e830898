"""Work nodes: the input of the executor, resolved from the data, and the policies around its attempts.

Planners and verifiers make several model calls; records make none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from pointsman.definition.model.agents import MEMORY_TOOLS, AgentConfig, Guardrail
from pointsman.definition.model.base import Text, written
from pointsman.definition.model.control import DecisionConfig
from pointsman.definition.model.nodes import Node, queue_of
from pointsman.definition.model.policies import DEFAULTS, Config, Execution, Limits
from pointsman.definition.model.work import (
    CodeConfig,
    MemoryConfig,
    PlannerConfig,
    StructuredRecordConfig,
    ToolConfig,
    VerifierConfig,
)
from pointsman.engine.actions import TIMED_BY_CALL, ConstantValue, Retry, Value, WorkAction, WorkSpec
from pointsman.engine.compile.formulas import EdgeQuestion, FormulaCompiler
from pointsman.engine.plan import OutputWrite
from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.templates import SecretText, check_address, compile_template
from pointsman.values import Json, JsonObject

RETRY_JITTER: Final = 0.1
"""±10 %, so that retries of many executions do not happen at the same moment."""


def document_of(config: object) -> JsonObject:
    """Return a configuration as it is written in the document."""
    plain = _plain(written(config))
    return plain if isinstance(plain, dict) else {}


def _plain(value: object) -> Json:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast(dict[str, object], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast(Sequence[object], value)]
    return cast(Json, value)


def retry_of(execution: Execution | None, config: Config | None) -> Retry:
    """Return the retry policy of a node: its own, otherwise the one that `errorHandling` implies."""
    retrying = config is not None and config.error_handling == "retry"
    retries = DEFAULTS.retries_when_retrying if retrying else DEFAULTS.retries
    wait, factor = DEFAULTS.retry_delay, DEFAULTS.backoff
    if execution is not None:
        retries = retries if execution.retries is None else execution.retries
        wait = wait if execution.retry_delay is None else execution.retry_delay.seconds
        factor = factor if execution.backoff is None else execution.backoff
    on = frozenset(execution.retry_on) if execution is not None and execution.retry_on is not None else None
    return Retry(retries=retries, wait_s=wait, factor=factor, jitter=RETRY_JITTER, on=on)


def on_failure_of(execution: Execution | None, config: Config | None) -> str:
    """Return the policy for a step whose attempts have all failed."""
    if execution is not None and execution.error_handler is not None:
        return execution.error_handler
    return "llm_recovery" if config is not None and config.error_handling == "llm_recovery" else "fail"


class Times(NamedTuple):
    """Time limits of work, in seconds."""

    model_call: float
    tool_call: float
    """Limit of a tool without its own time, and of an attempt of work that calls neither models nor tools."""
    most: float | None
    """The operator's cap; None: no cap."""

    def of_node(self, own: float) -> Times:
        """Return the limits for a node with an `execution.timeout`: a call may take as long as the attempt."""
        longest = own if self.most is None else min(own, self.most)
        return Times(max(self.model_call, longest), max(self.tool_call, longest), self.most)


def call_times(times: Times) -> dict[str, Json]:
    """Return the settings with which an executor limits the calls of a node."""
    return {"modelCallTime": times.model_call, "toolCallTime": times.tool_call, "callTimeMost": times.most}


def times_of(config: Config | None, operator: Limits) -> Times:
    """Return the author's `nodeTime` or the defaults, capped by the operator."""
    limits = config.limits if config is not None else None
    own = None if limits is None or limits.node_time is None else limits.node_time.seconds
    most = None if operator.node_time is None else operator.node_time.seconds
    model, tool = (DEFAULTS.model_call_time, DEFAULTS.node_time) if own is None else (own, own)
    return Times(model, tool, None) if most is None else Times(min(model, most), min(tool, most), most)


def resolved_agent(config: AgentConfig, agents: dict[str, AgentConfig]) -> tuple[AgentConfig, str]:
    """Return an agent completed by the saved agent that it names, and that name. Values of the node win."""
    name = config.agent or ""
    named = agents.get(name)
    if named is None:
        return config, name
    fields = {key: getattr(config, key) for key in config.model_fields_set if getattr(config, key) is not None}
    return named.model_copy(update={**fields, "agent": name}), name


def agent_input(config: AgentConfig, formulas: FormulaCompiler, mapped_inputs: Value | None) -> Value:
    """Return `{system, prompt, inputs, guardrails?, files?}`: templates rendered over data and inputs."""
    system = _rendered(config.system, formulas)
    prompt = _rendered(config.prompt, formulas)
    messages = formulas.value(config.messages) if config.messages is not None else None
    guardrails = guardrails_of(config, formulas)
    files = [formulas.value(path) for path in config.input_files or ()]
    remembers = any(name in MEMORY_TOOLS for name in config.tools or ())
    sources = formulas.sources
    named = any(
        _SOURCES.search(text)
        for texts in (config.system, config.prompt)
        if texts
        for text in texts.languages().values()
    )

    def resolve(env: Environment) -> Json:
        inputs = mapped_inputs(env) if mapped_inputs is not None else None
        if sources:
            env.names = {"sources": sources, **env.names}
        if isinstance(inputs, dict):
            env.names = {**env.names, **inputs}
        result: JsonObject = {
            "system": system(env) if system is not None else None,
            "prompt": prompt(env) if prompt is not None else None,
        }
        if sources and not named:
            own = result["system"]
            result["system"] = (
                f"{own}\n\nSources:\n\n{sources}" if isinstance(own, str) and own else f"Sources:\n\n{sources}"
            )
        if isinstance(inputs, dict):
            result["inputs"] = inputs
        elif prompt is None:
            result["inputs"] = env.names.get("input")
        if messages is not None:
            result["messages"] = messages(env)
        if guardrails is not None:
            result["guardrails"] = guardrails(env)
        if files:
            result["files"] = [file(env) for file in files]
        if env.item_key is not None:
            result["item"] = env.item_key
        if remembers:
            result["memory"] = _memory_of(config, env)
        return result

    return resolve


_SOURCES: Final = re.compile(r"\{[^{}]*\bsources\b")
"""Matches a text that places the workflow's sources itself."""


def _memory_of(config: AgentConfig, env: Environment) -> JsonObject:
    """Return the memory that the tools of an agent can access: `{scopes, namespace, session, user}`."""
    memory = config.memory
    execution = env.names.get("execution")
    scopes = (memory.scopes if memory is not None else None) or ("session",)
    return {
        "scopes": [*scopes],
        "namespace": memory.namespace if memory is not None else None,
        "session": env.names.get("session"),
        "user": execution.get("by") if isinstance(execution, dict) else None,
    }


def _rendered(text: Text | None, formulas: FormulaCompiler) -> Value | None:
    return formulas.rendered(text) if text is not None else None


def decision_input(config: DecisionConfig, formulas: FormulaCompiler) -> Value:
    """Return the input of a decision by model, which is an agent that must choose."""
    prompt = _rendered(config.llm_prompt, formulas)

    def resolve(env: Environment) -> Json:
        return {"system": None, "prompt": prompt(env) if prompt is not None else None, "value": env.names.get("result")}

    return resolve


def judge_input(questions: list[EdgeQuestion]) -> Value:
    """Return the questions on a node's edges, as one request."""

    def resolve(env: Environment) -> Json:
        return {
            "questions": [
                {"edge": question.edge, "prompt": question.prompt(env), "model": question.model}
                for question in questions
            ],
            "value": env.names.get("result"),
        }

    return resolve


def tool_input(config: ToolConfig, formulas: FormulaCompiler, inputs: Value | None) -> Value:
    """Return `{tool, parameters}`; without explicit parameters, the node's inputs are the parameters."""
    parameters = formulas.tree(config.parameters) if config.parameters is not None else inputs
    if parameters is None or isinstance(parameters, ConstantValue):
        return ConstantValue({"tool": config.tool, "parameters": parameters.value if parameters is not None else {}})
    return lambda env: {"tool": config.tool, "parameters": parameters(env)}


def memory_input(config: MemoryConfig, formulas: FormulaCompiler) -> Value:
    """Return `{scope, operation, key, value, namespace, query, limit, section, ttl, session, user}`."""
    key, namespace, query = (
        formulas.rendered(text) if text is not None else None for text in (config.key, config.namespace, config.query)
    )
    value = formulas.value(config.value) if config.value is not None else None

    def resolve(env: Environment) -> Json:
        result: JsonObject = {"scope": config.scope, "operation": config.operation}
        if env.names.get("session") is not None:
            result["session"] = env.names["session"]
        execution = env.names.get("execution")
        if config.scope == "user" and isinstance(execution, dict) and "by" in execution:
            result["user"] = execution["by"]
        result["key"] = key(env) if key is not None else ""
        if config.operation in ("set", "append"):
            result["value"] = value(env) if value is not None else env.names.get("result")
        for name, part in (("namespace", namespace), ("query", query)):
            if part is not None:
                result[name] = part(env)
        if config.limit is not None:
            result["limit"] = config.limit
        if config.section is not None:
            result["section"] = config.section
        if config.ttl is not None and config.operation in ("set", "append"):
            result["ttl"] = config.ttl.seconds
        return result

    return resolve


def code_input(config: CodeConfig, formulas: FormulaCompiler, given: Value | None) -> Value:
    """Return `{inputs}`: the variables of the code."""
    inputs = formulas.mapping(config.inputs) or given
    return lambda env: {"inputs": inputs(env) if inputs is not None else {}}


def secrets_of_request(config: JsonObject, formulas: FormulaCompiler) -> tuple[SecretText, ...]:
    """Return the positions of secrets of an HTTP node. Raises `SecretNotAllowed` for one in the host of the URL."""
    secrets = formulas.secrets(config)
    for secret in secrets:
        if secret.pointer == ("url",):
            check_address(secret, str(config["url"]))
    return secrets


def other_input(config: JsonObject, formulas: FormulaCompiler, inputs: Value | None) -> Value:
    """Return the input of any other type: its configuration with rendered templates, and the node's inputs."""
    tree = formulas.tree(config)

    def resolve(env: Environment) -> Json:
        result: JsonObject = {"config": tree(env), "value": env.names.get("result")}
        if inputs is not None:
            result["inputs"] = inputs(env)
        return result

    return resolve


def work_of(
    node: Node, spec: WorkSpec, resolve: Value, config: Config | None, *, times: Times, **more: bool
) -> WorkAction:
    """Return a work node with its policies.

    The time limit applies per call for work that calls models or tools, otherwise per attempt.
    """
    execution = node.execution
    own = None if execution is None or execution.timeout is None else execution.timeout.seconds
    timeout = own if own is not None else None if spec.kind in TIMED_BY_CALL else times.tool_call
    if own is not None:
        spec = replace(spec, settings={**spec.settings, **call_times(times.of_node(own))})
    delay = execution.delay.seconds if execution is not None and execution.delay is not None else 0.0
    return WorkAction(
        spec=spec,
        input=resolve,
        timeout_s=timeout,
        own_time=own is not None,
        retry=retry_of(execution, config),
        on_failure=on_failure_of(execution, config),  # pyright: ignore[reportArgumentType] - the model's own words
        delay_s=delay,
        cache=(execution.cache if execution is not None else None) or "off",
        queue=queue_of(node.placement),
        **more,
    )


OF_TASKS: Final = ("task", "goal", "results")
"""Extra names in a task template: the task, the goal and the results of previous tasks."""


def planner_input(
    config: PlannerConfig, agents: dict[str, AgentConfig], formulas: FormulaCompiler, inputs: Value | None
) -> Value:
    """Return `{goal, system, agents?, task?}`.

    The tasks do not exist yet: their templates are passed unrendered, with the data that they read.
    """
    goal = formulas.rendered(config.goal)
    system = formulas.rendered(config.system) if config.system is not None else None
    tasks = _task_template(config, formulas)
    about: JsonObject = {name: _about(agents.get(name), formulas) for name in config.agents or ()}

    def resolve(env: Environment) -> Json:
        _know(env, inputs)
        result: JsonObject = {"goal": goal(env), "system": system(env) if system is not None else None}
        if about:
            result["agents"] = about
        if tasks is not None:
            result["task"] = tasks(env)
        return result

    return resolve


def verifier_input(node: str, config: VerifierConfig, formulas: FormulaCompiler, inputs: Value | None) -> Value:
    """Return `{criteria, system, value, before}`; `before` is the verdict on the previous version."""
    criteria = formulas.rendered(config.criteria)
    system = formulas.rendered(config.system) if config.system is not None else None
    judged = formulas.value(config.input) if config.input is not None else None

    def resolve(env: Environment) -> Json:
        _know(env, inputs)
        return {
            "criteria": criteria(env),
            "system": system(env) if system is not None else None,
            "value": judged(env) if judged is not None else env.names.get("result"),
            "before": env.nodes.get(node),
        }

    return resolve


def record_input(config: StructuredRecordConfig, formulas: FormulaCompiler, inputs: Value | None) -> Value:
    """Return `{extraction, source, index}`."""
    parts = {
        "extraction": formulas.value(config.input),
        "source": formulas.value(config.source) if config.source is not None else None,
        "index": formulas.value(config.index) if config.index is not None else None,
    }

    def resolve(env: Environment) -> Json:
        _know(env, inputs)
        return {name: value(env) for name, value in parts.items() if value is not None}

    return resolve


def outputs_of(node: Node, formulas: FormulaCompiler) -> tuple[OutputWrite, ...]:
    """Return the writes of a node; a record node also appends to its list of records."""
    outputs = formulas.outputs(node.outputs)
    if isinstance(node.config, StructuredRecordConfig):
        return (*outputs, replace(formulas.write(node.config.records, "result"), reduce="append"))
    return outputs


def _know(env: Environment, given: Value | None) -> None:
    inputs = given(env) if given is not None else None
    if isinstance(inputs, dict):
        env.names = {**env.names, **inputs}


def _about(agent: AgentConfig | None, formulas: FormulaCompiler) -> str:
    """Return the description of an agent for a planner: the agent's system prompt."""
    return "" if agent is None or agent.system is None else agent.system.in_(formulas.language)


def _task_template(config: PlannerConfig, formulas: FormulaCompiler) -> Value | None:
    """Return `{system, prompt, spelling, asNames, declared, state, names, nodes, config}`: the texts and the data that
    they read.
    """
    template = config.task_template
    if template is None:
        return None
    places = formulas.inside(*OF_TASKS)
    texts: JsonObject = {
        name: text.in_(formulas.language)
        for name, text in (("system", template.system), ("prompt", template.prompt))
        if text is not None
    }
    as_names: list[Json] = [*sorted(places.names.as_names)]
    declared: list[Json] = [*sorted(places.names.declared)] if any("{ " in str(text) for text in texts.values()) else []
    fixed: JsonObject = {**texts, "spelling": formulas.spelling, "asNames": as_names, "declared": declared}
    reads = [
        read
        for text in texts.values()
        for read in compile_template(str(text), names=places.names, spelling=formulas.spelling).reads
        if read.root not in OF_TASKS
    ]
    return lambda env: {**fixed, **data_read_by(reads, env)}


def data_read_by(reads: list[PathRead], env: Environment) -> JsonObject:
    """Return the part of the data that some paths read, grouped by its source."""
    roots: dict[str, JsonObject] = {"state": {}, "nodes": {}, "names": {}, "config": {}}
    data: list[tuple[str, Mapping[str, Json]]] = [("state", env.state), ("names", env.names), ("config", env.config)]
    for root, (key, *_) in ((read.root, read.path or (None,)) for read in reads):
        match root:
            case "state" if key is None:
                roots["state"] |= env.state
            case "state":  # a bare name may be in state, names or config
                where = next(((place, some) for place, some in data if key in some), None)
                if where is not None:
                    roots[where[0]][str(key)] = where[1][str(key)]
            case "nodes" | "config":
                some = env.nodes if root == "nodes" else env.config
                roots[root] |= {name: some[name] for name in ([*some] if key is None else [str(key)]) if name in some}
            case _ if root in env.names:
                roots["names"][root] = env.names[root]
            case _:
                pass
    return {**roots}


OF_ANSWERS: frozenset[str] = frozenset({"text", "result"})
"""Names that have a value only after the agent has answered."""


Known: TypeAlias = Callable[[Environment], Json]


def guardrails_of(config: AgentConfig, formulas: FormulaCompiler) -> Value | None:
    """Return `{before: […], after: […], asNames, state, nodes, names, config}`, with one entry per rule in its list.

    An entry is the result of an expression (`before` only), the rendered prompt of a question, or null.
    """
    guardrails = config.guardrails
    if guardrails is None:
        return None
    of_answers = formulas.inside("text")
    before = [_known(rule, formulas, at_once=True) for rule in guardrails.before or ()]
    after = [_known(rule, formulas, at_once=False) for rule in guardrails.after or ()]
    reads = [
        read
        for rule in guardrails.after or ()
        if rule.expression is not None
        for read in compile_expression(rule.expression, names=of_answers.names).reads
        if read.root not in OF_ANSWERS
    ]
    as_names: list[Json] = [*sorted(of_answers.names.as_names)]

    def resolve(env: Environment) -> Json:
        return {
            "before": [guard(env) for guard in before],
            "after": [guard(env) for guard in after],
            "asNames": as_names,
            **data_read_by(reads, env),
        }

    return resolve


def _known(rule: Guardrail, formulas: FormulaCompiler, *, at_once: bool) -> Known:
    if rule.prompt is not None:
        return formulas.rendered(rule.prompt)
    if rule.expression is not None and at_once:
        return formulas.test(rule.expression)
    return lambda env: None
