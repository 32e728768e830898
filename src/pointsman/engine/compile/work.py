"""Work nodes: the input of the executor, resolved from the data, and the policies around its attempts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from pointsman.definition.model.agents import MEMORY_TOOLS, AgentConfig, Guardrail
from pointsman.definition.model.base import written
from pointsman.definition.model.control import DecisionConfig
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.policies import DEFAULTS, Config, Execution, Limits
from pointsman.definition.model.text import Text
from pointsman.definition.model.work import CodeConfig, MemoryConfig, ToolConfig
from pointsman.engine.actions import TIMED_BY_CALL, ConstantValue, Retry, Value, WorkAction, WorkSpec
from pointsman.engine.compile.composed_work import seen_by
from pointsman.engine.compile.edges import EdgeQuestion
from pointsman.engine.compile.formulas import FormulaCompiler
from pointsman.expressions.environment import Environment
from pointsman.expressions.formula import compile_expression
from pointsman.expressions.parameters import SecretText, check_address
from pointsman.values import Json, JsonObject

OF_ANSWERS: frozenset[str] = frozenset({"text", "result"})
"""Names that have a value only after the agent has answered."""

Known: TypeAlias = Callable[[Environment], Json]


def guardrails_of(config: AgentConfig, formulas: FormulaCompiler) -> Value | None:
    """Return `{before: […], after: […], asNames, state, nodes, names, config}`, with one entry per rule in its list.

    An entry is the result of an expression (`before` only), the rendered prompt of a question, or null.
    """
    said = config.guardrails
    if said is None:
        return None
    of_answers = formulas.inside("text")
    before = [_known(rule, formulas, at_once=True) for rule in said.before or ()]
    after = [_known(rule, formulas, at_once=False) for rule in said.after or ()]
    reads = [
        read
        for rule in said.after or ()
        if rule.expression is not None
        for read in compile_expression(rule.expression, names=of_answers.names).reads
        if read.root not in OF_ANSWERS
    ]
    as_names: list[Json] = [*sorted(of_answers.names.as_names)]

    def resolve(env: Environment) -> Json:
        return {
            "before": [one(env) for one in before],
            "after": [one(env) for one in after],
            "asNames": as_names,
            **seen_by(reads, env),
        }

    return resolve


def _known(rule: Guardrail, formulas: FormulaCompiler, *, at_once: bool) -> Known:
    if rule.prompt is not None:
        return formulas.rendered(rule.prompt)
    if rule.expression is not None and at_once:
        return formulas.test(rule.expression)
    return lambda env: None


RETRY_JITTER: Final = 0.1
"""±10 %, so that retries of many executions do not happen at the same moment."""


def document_of(config: object) -> JsonObject:
    """Return a configuration as it is written in the document."""
    found = _plain(written(config))
    return found if isinstance(found, dict) else {}


def _plain(value: object) -> Json:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in cast(dict[str, object], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast(Sequence[object], value)]
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
    said = {key: getattr(config, key) for key in config.model_fields_set if getattr(config, key) is not None}
    return named.model_copy(update={**said, "agent": name}), name


def agent_input(config: AgentConfig, formulas: FormulaCompiler, given: Value | None) -> Value:
    """Return `{system, prompt, inputs, guardrails?, files?}`: templates rendered over data and inputs."""
    system = _rendered(config.system, formulas)
    prompt = _rendered(config.prompt, formulas)
    messages = formulas.value(config.messages) if config.messages is not None else None
    guardrails = guardrails_of(config, formulas)
    files = [formulas.value(path) for path in config.input_files or ()]
    remembers = any(name in MEMORY_TOOLS for name in config.tools or ())
    sources = formulas.sources
    named = any(
        _SOURCES.search(text) for said in (config.system, config.prompt) if said for text in said.languages().values()
    )

    def resolve(env: Environment) -> Json:
        inputs = given(env) if given is not None else None
        if sources:
            env.names = {"sources": sources, **env.names}
        if isinstance(inputs, dict):
            env.names = {**env.names, **inputs}
        found: JsonObject = {
            "system": system(env) if system is not None else None,
            "prompt": prompt(env) if prompt is not None else None,
        }
        if sources and not named:
            own = found["system"]
            found["system"] = (
                f"{own}\n\nSources:\n\n{sources}" if isinstance(own, str) and own else f"Sources:\n\n{sources}"
            )
        if isinstance(inputs, dict):
            found["inputs"] = inputs
        elif prompt is None:
            found["inputs"] = env.names.get("input")
        if messages is not None:
            found["messages"] = messages(env)
        if guardrails is not None:
            found["guardrails"] = guardrails(env)
        if files:
            found["files"] = [file(env) for file in files]
        if env.item_key is not None:
            found["item"] = env.item_key
        if remembers:
            found["memory"] = _memory_of(config, env)
        return found

    return resolve


_SOURCES: Final = re.compile(r"\{[^{}]*\bsources\b")
"""Matches a text that places the workflow's sources itself."""


def _memory_of(config: AgentConfig, env: Environment) -> JsonObject:
    """Return the memory that the tools of an agent can access: `{scopes, namespace, session, user}`."""
    said = config.memory
    execution = env.names.get("execution")
    scopes = (said.scopes if said is not None else None) or ("session",)
    return {
        "scopes": [*scopes],
        "namespace": said.namespace if said is not None else None,
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
            "questions": [{"edge": one.edge, "prompt": one.prompt(env), "model": one.model} for one in questions],
            "value": env.names.get("result"),
        }

    return resolve


def tool_input(config: ToolConfig, formulas: FormulaCompiler, given: Value | None) -> Value:
    """Return `{tool, parameters}`; without explicit parameters, the node's inputs are the parameters."""
    parameters = formulas.tree(config.parameters) if config.parameters is not None else given
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
        found: JsonObject = {"scope": config.scope, "operation": config.operation}
        if env.names.get("session") is not None:
            found["session"] = env.names["session"]
        execution = env.names.get("execution")
        if config.scope == "user" and isinstance(execution, dict) and "by" in execution:
            found["user"] = execution["by"]
        found["key"] = key(env) if key is not None else ""
        if config.operation in ("set", "append"):
            found["value"] = value(env) if value is not None else env.names.get("result")
        for name, part in (("namespace", namespace), ("query", query)):
            if part is not None:
                found[name] = part(env)
        if config.limit is not None:
            found["limit"] = config.limit
        if config.section is not None:
            found["section"] = config.section
        if config.ttl is not None and config.operation in ("set", "append"):
            found["ttl"] = config.ttl.seconds
        return found

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


def other_input(config: JsonObject, formulas: FormulaCompiler, given: Value | None) -> Value:
    """Return the input of any other type: its configuration with rendered templates, and the node's inputs."""
    tree = formulas.tree(config)

    def resolve(env: Environment) -> Json:
        found: JsonObject = {"config": tree(env), "value": env.names.get("result")}
        if given is not None:
            found["inputs"] = given(env)
        return found

    return resolve


def work_of(
    node: Node, spec: WorkSpec, resolve: Value, config: Config | None, *, times: Times, **more: bool
) -> WorkAction:
    """Return a work node with its policies.

    The time limit applies per call for work that calls models or tools, otherwise per attempt.
    """
    execution = node.execution
    timeout = None if spec.kind in TIMED_BY_CALL else times.tool_call
    if execution is not None and execution.timeout is not None:
        timeout = execution.timeout.seconds
    delay = execution.delay.seconds if execution is not None and execution.delay is not None else 0.0
    return WorkAction(
        spec=spec,
        input=resolve,
        timeout_s=timeout,
        own_time=execution is not None and execution.timeout is not None,
        retry=retry_of(execution, config),
        on_failure=on_failure_of(execution, config),  # pyright: ignore[reportArgumentType] - the model's own words
        delay_s=delay,
        cache=(execution.cache if execution is not None else None) or "off",
        **more,
    )
