"""Inputs of composed work: planners and verifiers, which make several model calls, and records, which make none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.work import PlannerConfig, StructuredRecordConfig, VerifierConfig
from pointsman.engine.actions import Value
from pointsman.engine.compile.formulas import FormulaCompiler
from pointsman.engine.plan import OutputWrite
from pointsman.expressions.environment import Environment
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.templates import compile_template
from pointsman.values import Json, JsonObject

OF_TASKS: Final = ("task", "goal", "results")
"""Extra names in a task template: the task, the goal and the results of previous tasks."""


def planner_input(
    config: PlannerConfig, agents: dict[str, AgentConfig], formulas: FormulaCompiler, given: Value | None
) -> Value:
    """Return `{goal, system, agents?, task?}`.

    The tasks do not exist yet: their templates are passed unrendered, with the data that they read.
    """
    goal = formulas.rendered(config.goal)
    system = formulas.rendered(config.system) if config.system is not None else None
    tasks = _task_template(config, formulas)
    about: JsonObject = {name: _about(agents.get(name), formulas) for name in config.agents or ()}

    def resolve(env: Environment) -> Json:
        _know(env, given)
        found: JsonObject = {"goal": goal(env), "system": system(env) if system is not None else None}
        if about:
            found["agents"] = about
        if tasks is not None:
            found["task"] = tasks(env)
        return found

    return resolve


def verifier_input(node: str, config: VerifierConfig, formulas: FormulaCompiler, given: Value | None) -> Value:
    """Return `{criteria, system, value, before}`; `before` is the verdict on the previous version."""
    criteria = formulas.rendered(config.criteria)
    system = formulas.rendered(config.system) if config.system is not None else None
    judged = formulas.value(config.input) if config.input is not None else None

    def resolve(env: Environment) -> Json:
        _know(env, given)
        return {
            "criteria": criteria(env),
            "system": system(env) if system is not None else None,
            "value": judged(env) if judged is not None else env.names.get("result"),
            "before": env.nodes.get(node),
        }

    return resolve


def record_input(config: StructuredRecordConfig, formulas: FormulaCompiler, given: Value | None) -> Value:
    """Return `{extraction, source, index}`."""
    parts = {
        "extraction": formulas.value(config.input),
        "source": formulas.value(config.source) if config.source is not None else None,
        "index": formulas.value(config.index) if config.index is not None else None,
    }

    def resolve(env: Environment) -> Json:
        _know(env, given)
        return {name: value(env) for name, value in parts.items() if value is not None}

    return resolve


def outputs_of(node: Node, formulas: FormulaCompiler) -> tuple[OutputWrite, ...]:
    """Return the writes of a node; a record node also appends to its list of records."""
    said = formulas.outputs(node.outputs)
    if isinstance(node.config, StructuredRecordConfig):
        return (*said, replace(formulas.write(node.config.records, "result"), reduce="append"))
    return said


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
    said = config.task_template
    if said is None:
        return None
    places = formulas.inside(*OF_TASKS)
    texts: JsonObject = {
        name: text.in_(formulas.language)
        for name, text in (("system", said.system), ("prompt", said.prompt))
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
    return lambda env: {**fixed, **seen_by(reads, env)}


def seen_by(reads: list[PathRead], env: Environment) -> JsonObject:
    """Return the part of the data that some paths read, grouped by its source."""
    found: dict[str, JsonObject] = {"state": {}, "nodes": {}, "names": {}, "config": {}}
    data: list[tuple[str, Mapping[str, Json]]] = [("state", env.state), ("names", env.names), ("config", env.config)]
    for root, (key, *_) in ((read.root, read.path or (None,)) for read in reads):
        match root:
            case "state" if key is None:
                found["state"] |= env.state
            case "state":  # a bare name may be in state, names or config
                where = next(((place, some) for place, some in data if key in some), None)
                if where is not None:
                    found[where[0]][str(key)] = where[1][str(key)]
            case "nodes" | "config":
                some = env.nodes if root == "nodes" else env.config
                found[root] |= {name: some[name] for name in ([*some] if key is None else [str(key)]) if name in some}
            case _ if root in env.names:
                found["names"][root] = env.names[root]
            case _:
                pass
    return {**found}
