"""Settings that have no effect where they are: reported because their author expects one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.checks.repairs import remove
from pointsman.definition.checks.subject import Subject
from pointsman.definition.model.control import DecisionConfig, HumanConfig
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.work import TemplateRenderConfig
from pointsman.definition.problems import Problem, warning


def check_unheeded(subject: Subject) -> Iterator[Problem]:
    """Warn of each setting that the engine ignores."""
    for position, node in enumerate(subject.nodes):
        if node.progress is not None:
            message = f"{subject.node(position)} has a text for `progress`, which nobody is told"
            hint = "Put a node of the type `progress` before it."
            yield warning("not-heeded", subject.at_node(position, "progress"), message, hint=hint)
        if isinstance(node.config, TemplateRenderConfig) and node.config.artifact_name is not None:
            message = f"{subject.node(position)} names an artifact, and its text becomes the result alone"
            hint = "Write it with a tool node behind it: `write_file`."
            yield warning("not-heeded", subject.at_node(position, "config", "artifactName"), message, hint=hint)


AT_ONCE: Final = frozenset(
    {"start", "end", "parallel", "join", "loop", "transform", "template-render", "progress", "note"}
)
"""Types that take no time and call nothing."""

WAITING: Final = frozenset({"human", "wait", "emit"})

WAYS: Final = {
    "timeout": "Time belongs to work; a gate, a wait and a join have a `timeout` in their `config`.",
    "delay": "Put a `wait` node before it.",
    "cache": "Only work is remembered.",
}

OF_CALLS: Final = frozenset({"retries", "retryDelay", "backoff", "retryOn", "errorHandler"})
"""Settings that apply to the call of a sub-workflow; its own nodes have the others."""


def check_effects(subject: Subject) -> Iterator[Problem]:
    if subject.imported:
        return  # importers report the settings they leave out
    for position, node in enumerate(subject.nodes):
        asked = any(subject.graph.edges[way].kind == "llm" for way in subject.graph.out[position])
        if asked:
            continue  # routing asks a model, to which these settings apply
        for key in _without_effect(node):
            at = subject.at_node(position, "execution", key)
            message = f"`execution.{key}` changes nothing at {subject.node(position)}"
            yield warning("setting-without-effect", at, message, hint=_hint(node, key), fix=remove(at))
        if node.compensate is not None and (_at_once(node) or node.type in ("wait", "emit")):
            at = subject.at_node(position, "compensate")
            message = (
                f"`compensate` changes nothing at {subject.node(position)}: a node of that type does nothing outside"
            )
            hint = "Put it at the node that does the work."
            yield warning("setting-without-effect", at, message, hint=hint, fix=remove(at))
    yield from _more_elsewhere(subject)
    yield from _of_workflow(subject)


def _of_workflow(subject: Subject) -> Iterator[Problem]:
    config = subject.workflow.config
    limits = config.limits if config is not None else None
    spent = (
        limits is not None and (limits.tokens, limits.model_calls, limits.tool_calls, limits.cost_usd) != (None,) * 4
    )
    if config is not None and config.budget is not None and not spent:
        message = "`budget` changes nothing: the workflow has no limit of money, tokens or calls"
        hint = "Set `limits.tokens`, `limits.modelCalls`, `limits.toolCalls` or `limits.costUsd`."
        yield warning("setting-without-effect", "/config/budget", message, hint=hint, fix=remove("/config/budget"))
    if config is not None and config.on_cancel is not None and all(n.compensate is None for n in subject.nodes):
        message = "`onCancel` changes nothing: no node says how it is undone"
        at = "/config/onCancel"
        yield warning("setting-without-effect", at, message, hint="Set `compensate` at a node.", fix=remove(at))


def _more_elsewhere(subject: Subject) -> Iterator[Problem]:
    """Report options that extend a limit, at gates that no limit leads to."""
    config = subject.workflow.config
    for position, node in enumerate(subject.nodes):
        if not isinstance(node.config, HumanConfig) or (config is not None and config.on_limit == node.id):
            continue
        for number, option in enumerate(node.config.options or ()):
            if option.more is not None:
                at = subject.at_node(position, "config", "options", number, "more")
                message = f"`more` changes nothing at {subject.node(position)}: no limit leads there"
                hint = f"Set `config.onLimit: {node.id}`."
                yield warning("setting-without-effect", at, message, hint=hint, fix=remove(at))


def _at_once(node: Node) -> bool:
    return node.type in AT_ONCE or (isinstance(node.config, DecisionConfig) and node.config.llm_prompt is None)


def _without_effect(node: Node) -> list[str]:
    """Return the keys of the node's `execution` that have no effect, spelled as in the document."""
    execution = node.execution
    if execution is None:
        return []
    said = {
        field.alias or name: getattr(execution, name)
        for name, field in type(execution).model_fields.items()
        if getattr(execution, name) is not None
    }
    if _at_once(node) or node.type in WAITING:
        return [*said]
    if node.type == "workflow":
        return [key for key, value in said.items() if key not in OF_CALLS or value == "llm_recovery"]
    return []


def _hint(node: Node, key: str) -> str:
    if node.type == "workflow":
        return "Say it at the nodes of the sub-workflow."
    return WAYS.get(key, "Say it at the nodes that do work.")
