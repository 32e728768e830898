"""Settings of the whole workflow: limits, persistence, people; contradictions; and settings without effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.checks.routing import actions_of
from pointsman.definition.checks.subject import Subject, listed
from pointsman.definition.model.agents import AgentConfig, AgentMemory
from pointsman.definition.model.control import (
    ControlConfig,
    DecisionConfig,
    HumanConfig,
    ToolExecutorConfig,
    WaitConfig,
)
from pointsman.definition.model.nodes import Node, queue_of
from pointsman.definition.model.policies import Approval, Approvers, Config
from pointsman.definition.model.work import MemoryConfig, TemplateRenderConfig, ToolConfig
from pointsman.definition.model.workflow import Trigger
from pointsman.definition.problems import Problem, error, note, pointer_to, remove_at, warning
from pointsman.expressions.environment import ROOTS

WEBHOOK_SECRET_CHARS_MIN: Final = 16
ADDRESS_WORDS: Final = ("run", "pause", "resume", "times")
"""Last parts of schedule URLs."""
NEEDS: Final = {"schedule": "cron", "webhook": "path", "event": "event"}


def check_triggers(subject: Subject) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for position, trigger in enumerate(subject.workflow.triggers or ()):
        at = pointer_to("triggers", position)
        yield from _when(at, trigger)
        for key, value in (("id", trigger.id), ("path", trigger.path)):
            if value is None:
                continue
            if (key, value) in seen:
                message = f"two triggers have the {key} {value!r}"
                yield error("duplicate-trigger", f"{at}/{key}", message, hint="Rename one of them.")
            seen.add((key, value))
        if trigger.type == "schedule" and trigger.id in ADDRESS_WORDS:
            message = (
                f"over HTTP the schedule of trigger {trigger.id!r} cannot be reached: its id is a reserved word of URLs"
            )
            yield warning("trigger-id-reserved", f"{at}/id", message, hint=f"Other than {', '.join(ADDRESS_WORDS)}.")
        if trigger.type == "webhook":
            yield from _secret(at, trigger)


def _when(at: str, trigger: Trigger) -> Iterator[Problem]:
    missing = NEEDS[trigger.type]
    if not getattr(trigger, missing):
        message = f"trigger {trigger.id!r} of type {trigger.type!r} lacks `{missing}`"
        yield error("trigger-incomplete", at, message, hint=f"Set `{missing}`.")
    elif trigger.cron is not None:
        # Imported here because only documents with schedules need it.
        from pointsman.definition.model.cron import EXAMPLE, cron_fault

        fault = cron_fault(trigger.cron)
        if fault is not None:
            yield error("cron-invalid", f"{at}/cron", fault.message, hint=EXAMPLE)


def _secret(at: str, trigger: Trigger) -> Iterator[Problem]:
    secret = trigger.secret
    if secret is None:
        if trigger.auth is None:
            message = f"the webhook {trigger.id!r} has no secret: it refuses every call"
            hint = "Set `secret`, preferably to a handle: `secret.NAME`. With `auth: none` every program can call it."
            yield warning("webhook-unsigned", at, message, hint=hint)
    elif trigger.auth is not None:
        message = f"the webhook {trigger.id!r} has a secret and `auth: none`"
        yield error("webhook-auth-conflict", f"{at}/auth", message, hint="Remove one of them.")
    elif not secret.startswith("secret.") and len(secret) < WEBHOOK_SECRET_CHARS_MIN:
        message = f"the secret of trigger {trigger.id!r} is shorter than {WEBHOOK_SECRET_CHARS_MIN} characters"
        yield error("weak-secret", f"{at}/secret", message, hint="Use a longer one, best as a handle: `secret.NAME`.")


UNASKABLE: Final = ("transform", "template-render", "progress")
"""Types that take no time although they are not control nodes."""


def check_approvers(subject: Subject) -> Iterator[Problem]:
    config = subject.workflow.config or Config()
    if config.approval is not None:
        yield from _terms(config.approval, "/config/approval", "`config.approval`")
    for position, node in enumerate(subject.nodes):
        if isinstance(node.config, HumanConfig):
            yield from _terms(node.config, subject.at_node(position, "config"), subject.node(position))
        if node.approval is not None:
            yield from _terms(node.approval, subject.at_node(position, "approval"), subject.node(position))
        passes = isinstance(node.config, ControlConfig) and not isinstance(node.config, ToolExecutorConfig)
        if node.requires_approval and (passes or node.type in UNASKABLE):
            message = f"{subject.node(position)} does no work, so it cannot wait for approval before it starts"
            hint = "Put a `human` node before it."
            yield error("approval-unsupported", subject.at_node(position, "requiresApproval"), message, hint=hint)


def check_placements(subject: Subject) -> Iterator[Problem]:
    """Check where nodes are to be performed. A queue without workers is no problem of the document."""
    for position, node in enumerate(subject.nodes):
        if node.placement is None:
            continue
        at = subject.at_node(position, "placement")
        if not queue_of(node.placement):
            message = f"{subject.node(position)} has the placement {node.placement!r}, which names no queue"
            hint = "Write worker:NAME, such as worker:gpu: lower-case letters, digits, `.`, `_` and `-`."
            yield error("placement-invalid", at, message, hint=hint)
        elif not _is_performed(node):
            message = f"{subject.node(position)} does no work of its own, so that its placement has no effect"
            hint = "Give the placement to the nodes that do the work: agents, tools, code, HTTP calls."
            yield error("placement-unsupported", at, message, hint=hint, fix=remove_at(at))


def _is_performed(node: Node) -> bool:
    """Return whether an executor performs the node; sub-workflows place their own nodes."""
    passes = isinstance(node.config, ControlConfig) and not isinstance(node.config, ToolExecutorConfig | DecisionConfig)
    return not passes and node.type not in (*UNASKABLE, "workflow")


def _terms(policy: HumanConfig | Approval, at: str, owner: str) -> Iterator[Problem]:
    if policy.approvers is not None:
        yield from _approvers(policy.approvers, f"{at}/approvers", owner)
    before = policy.approvers
    for number, level in enumerate(policy.escalation or ()):
        where = f"{at}{pointer_to('escalation', number)}"
        yield from _approvers(level.approvers, f"{where}/approvers", owner)
        if level.approvers == before:
            message = f"{owner} escalates to the same people again"
            yield warning(
                "escalation-idle", where, message, hint="Name other people, or give the first ones more time."
            )
        before = level.approvers
    if policy.escalation and policy.timeout is None:
        message = f"{owner} never escalates: the first approvers have unlimited time"
        yield warning("escalation-idle", f"{at}/escalation", message, hint="Set `timeout`.")


def _approvers(approvers: Approvers, at: str, owner: str) -> Iterator[Problem]:
    users, groups = approvers.users, approvers.groups
    if (users is not None or groups is not None) and not users and not groups:
        message = f"{owner} has no possible approver: no user and no group may answer"
        yield error("approvers-empty", at, message, hint="Name a user or a group, or omit `approvers`.")
    elif users and not groups:
        for key, needed in (("quorum", approvers.quorum), ("rejectQuorum", approvers.reject_quorum)):
            if needed is not None and needed > len(set(users)):
                message = f"{needed} answers are needed, and only {len(set(users))} may answer"
                yield error("quorum-unmet", f"{at}/{key}", message, hint="Lower the quorum, or add people.")


EDIT: Final = "edit"
"""Action of a gate that changes its editable fields."""
EPHEMERAL_WAIT_S_MAX: Final = 3600.0
"""Longest wait of an ephemeral execution, in seconds: its process must live longer."""


def check_settings(subject: Subject) -> Iterator[Problem]:
    workflow = subject.workflow
    if workflow.enabled is False:
        hint = "Set `enabled` (in a graph `is_active`) to true."
        message = "the workflow is switched off: it is hidden and cannot be executed"
        yield note("disabled", "/enabled", message, hint=hint)
    if workflow.status == "draft":
        yield note("draft", "/status", "the workflow is a draft: it can be executed as a test only")
    yield from _limits(subject, workflow.config or Config())
    yield from _people(subject, workflow.config or Config())
    yield from _durability(subject, workflow.config or Config())
    yield from _reserved_fields(subject)


def _limits(subject: Subject, config: Config) -> Iterator[Problem]:
    limits = config.limits
    if limits is None:
        return
    count = sum(node.type != "note" for node in subject.nodes)
    if limits.nodes is not None and count > limits.nodes:
        message = f"the workflow has {count} nodes, and its limit is {limits.nodes}"
        yield error("too-many-nodes", "/config/limits/nodes", message, hint="Raise the limit, or use sub-workflows.")
    if limits.execution_time is None:
        return
    whole = limits.execution_time.seconds
    if limits.node_time is not None and limits.node_time.seconds > whole:
        message = "a node may take longer than the whole execution"
        yield warning("timeout-beyond-limit", "/config/limits/nodeTime", message, hint="Raise `executionTime`.")
    for position, node in enumerate(subject.nodes):
        timeout = node.execution.timeout if node.execution is not None else None
        if timeout is not None and timeout.seconds > whole:
            message = f"{subject.node(position)} may take longer than the whole execution"
            at = subject.at_node(position, "execution", "timeout")
            yield warning("timeout-beyond-limit", at, message, hint="Lower it, or raise `limits.executionTime`.")


def _people(subject: Subject, config: Config) -> Iterator[Problem]:
    for position in range(len(subject.nodes)):
        waits = _waits_for_people(subject, position)
        if waits and config.persistence == "none":
            message = f"{waits}, but with `persistence: none` the execution cannot be stored while it waits"
            hint = "Set `persistence: session`."
            yield error("gate-without-persistence", subject.at_node(position), message, hint=hint)
        if waits and config.human_in_loop == "none":
            message = f"{waits}, but humanInLoop is none"
            hint = "Set `humanInLoop: approval_gates`, or remove the gate."
            yield error("gate-without-people", subject.at_node(position), message, hint=hint)
    if subject.conversational and config.persistence == "none":
        message = "a conversation needs its earlier messages, but `persistence: none` stores none"
        yield warning("history-not-stored", "/config/persistence", message, hint="Set `persistence: session`.")
    if config.persistence == "none":
        yield from _ephemeral(subject)
    for position, node in enumerate(subject.nodes):
        match node.config:
            case HumanConfig():
                yield from _gate(subject, position, node.config)
            case AgentConfig() if node.config.memory is not None:
                yield from _reach(subject, position, node.config.memory)
            case MemoryConfig():
                yield from _memory(subject, position, node.config)
            case WaitConfig(duration=None, until=None, event=None):
                message = f"{subject.node(position)} does not wait: it has no event and no duration"
                hint = "Set `duration`, `until` or `event`."
                yield error("wait-without-end", subject.at_node(position), message, hint=hint)
            case _:
                pass


def _waits_for_people(subject: Subject, position: int) -> str:
    """Return how a node may have to wait for a person; empty if it never does."""
    node = subject.nodes[position]
    if node.type == "human" or node.requires_approval:
        return f"{subject.node(position)} waits for a person"
    facts = subject.known.tools or {}
    match node.config:
        case ToolConfig(tool=tool):
            called = [tool]
        case AgentConfig() as agent:
            called = sorted(subject.tools_of(agent) or ())
        case _:
            called = []
    asks = [tool for tool in called if tool in facts and facts[tool].requires_approval and not facts[tool].client_side]
    return f"{subject.node(position)} waits for a person before it calls {listed(asks)}" if asks else ""


def _ephemeral(subject: Subject) -> Iterator[Problem]:
    """Check ephemeral executions: they cannot wait longer than a process lives, and keep no memory."""
    for position, node in enumerate(subject.nodes):
        match node.config:
            case WaitConfig(duration=duration, until=until, event=event):
                if (
                    event is not None
                    or until is not None
                    or (duration is not None and duration.seconds > EPHEMERAL_WAIT_S_MAX)
                ):
                    message = (
                        f"{subject.node(position)} waits for a long time, but with `persistence: none` a "
                        "crash loses the execution"
                    )
                    hint = "Set `persistence: session`, or wait for a `duration` of at most an hour."
                    yield error("wait-without-persistence", subject.at_node(position), message, hint=hint)
            case MemoryConfig() if node.config.scope != "execution":
                message = (
                    f"{subject.node(position)} stores values for other executions, but `persistence: none` "
                    "stores nothing"
                )
                hint = "Set `persistence: long_term`, or remember in the scope of the execution."
                yield warning("memory-not-stored", subject.at_node(position, "config", "scope"), message, hint=hint)
            case _:
                pass


def _memory(subject: Subject, position: int, config: MemoryConfig) -> Iterator[Problem]:
    missing, hint = None, ""
    if config.scope == "shared" and config.namespace is None:
        missing, hint = "the name of the shared memory", "Set `namespace`, or use the scope `workflow`."
    elif config.operation == "search" and config.query is None and config.key is None:
        missing, hint = "the text to search for", "Set `query`."
    elif config.operation != "search" and config.key is None:
        missing, hint = "the key", "Set `key`."
    if missing is not None:
        message = f"{subject.node(position)} lacks {missing}"
        yield error("memory-incomplete", subject.at_node(position, "config"), message, hint=hint)


def _reach(subject: Subject, position: int, memory: AgentMemory) -> Iterator[Problem]:
    if "shared" in (memory.scopes or ()) and memory.namespace is None:
        message = f"{subject.node(position)} does not name the shared memory of its tools"
        at = subject.at_node(position, "config", "memory")
        yield error("memory-incomplete", at, message, hint="Set `namespace`, or use the scope `workflow`.")


def _gate(subject: Subject, position: int, config: HumanConfig) -> Iterator[Problem]:
    actions, at = actions_of(config), subject.at_node(position, "config")
    for index, action in enumerate(actions):
        if action in actions[:index]:
            key = "options" if config.options else "actions"
            message = f"{subject.node(position)} offers {action!r} twice"
            where = f"{at}{pointer_to(key, index)}"
            yield error("duplicate-action", where, message, hint="Remove one of them.", fix=remove_at(where))
    if EDIT in actions and not config.editable and config.form is None:
        key = ("options" if config.options else "actions", actions.index(EDIT))
        message = f"{subject.node(position)} offers {EDIT!r}, but has no editable fields"
        hint = "Name the state paths in `editable`, give the gate a `form`, or remove the action."
        yield warning("edit-without-fields", f"{at}{pointer_to(*key)}", message, hint=hint)
    if config.editable and EDIT not in actions:
        message = f"{subject.node(position)} has editable fields, and does not offer {EDIT!r}"
        hint = f"Add {EDIT!r} to its actions ({', '.join(actions)}), or remove `editable`."
        yield warning("editable-without-edit", f"{at}/editable", message, hint=hint)
    chosen = config.on_timeout
    if chosen is not None and chosen != "fail" and chosen not in actions and chosen not in subject.graph.index:
        message = f"`onTimeout` is {chosen!r}: neither `fail`, nor an action, nor a node"
        hint = f"Its actions are {', '.join(actions)}."
        yield error("unknown-action", f"{at}/onTimeout", message, hint=hint)
    if chosen is not None and config.timeout is None:
        message = f"{subject.node(position)} defines what happens on time-out, but has no `timeout`"
        yield warning("timeout-missing", f"{at}/onTimeout", message, hint="Set `timeout`.")


def _durability(subject: Subject, config: Config) -> Iterator[Problem]:
    tools = subject.known.tools
    mode = subject.known.durability or config.durability
    if mode not in ("async", "exit") or tools is None:
        return
    for location in subject.text_locations:
        if location.kind == "tool" and location.text in tools and not tools[location.text].idempotent:
            message = (
                f"tool {location.text!r} may be called again after a crash: "
                f"`durability: {mode}` does not wait until a step is on disk"
            )
            hint = "Use `durability: step`, or a tool that can be called twice."
            yield warning("not-idempotent", location.pointer, message, hint=hint)


def _reserved_fields(subject: Subject) -> Iterator[Problem]:
    """Report state fields with reserved names. In the dialects steps and graph, fields win over those names."""
    if subject.workflow.dialect in ("steps", "graph"):
        return
    pointers: dict[str, str] = {}
    properties = (subject.input_schema or {}).get("properties")
    for name in properties if isinstance(properties, dict) else ():
        pointers.setdefault(name, "/input" if subject.workflow.input is not None else "/nodes")
    for location in subject.text_locations:
        if location.kind == "path" and location.writes:
            pointers.setdefault(location.text.split(".")[0].split("[")[0], location.pointer)
    for name, pointer in pointers.items():
        if name in ROOTS and name not in ("state", "data"):
            message = f"a field is named {name!r}, which has another meaning in expressions"
            yield warning("reserved-name", pointer, message, hint=f"Read it as `state.{name}`, or rename it.")


def check_unheeded(subject: Subject) -> Iterator[Problem]:
    """Warn of each setting that the engine ignores."""
    for position, node in enumerate(subject.nodes):
        if node.progress is not None:
            message = f"{subject.node(position)} has a `progress` text, which is never sent"
            hint = "Put a node of the type `progress` before it."
            yield warning("field-without-effect", subject.at_node(position, "progress"), message, hint=hint)
        if isinstance(node.config, TemplateRenderConfig) and node.config.artifact_name is not None:
            message = f"{subject.node(position)} has an `artifact`, but its text is only used as the result"
            hint = "Write the file with a tool node after it: `write_file`."
            yield warning(
                "field-without-effect", subject.at_node(position, "config", "artifactName"), message, hint=hint
            )


AT_ONCE: Final = frozenset(
    {"start", "end", "parallel", "join", "loop", "transform", "template-render", "progress", "note"}
)
"""Types that take no time and call nothing."""

WAITING: Final = frozenset({"human", "wait", "emit"})

WAYS: Final = {
    "timeout": "Only work has this setting; a gate, a wait and a join have a `timeout` in their `config`.",
    "delay": "Put a `wait` node before it.",
    "cache": "Only results of work are cached.",
}

OF_CALLS: Final = frozenset({"retries", "retryDelay", "backoff", "retryOn", "errorHandler"})
"""Settings that apply to the call of a sub-workflow; its own nodes have the others."""


def check_effects(subject: Subject) -> Iterator[Problem]:
    if subject.imported:
        return  # importers report the settings they leave out
    for position, node in enumerate(subject.nodes):
        by_model = any(subject.graph.edges[edge_number].kind == "llm" for edge_number in subject.graph.out[position])
        if by_model:
            continue  # routing asks a model, to which these settings apply
        for key in _without_effect(node):
            at = subject.at_node(position, "execution", key)
            message = f"`execution.{key}` has no effect at {subject.node(position)}"
            yield warning("setting-without-effect", at, message, hint=_hint(node, key), fix=remove_at(at))
        if node.compensate is not None and (_at_once(node) or node.type in ("wait", "emit")):
            at = subject.at_node(position, "compensate")
            message = (
                f"`compensate` has no effect at {subject.node(position)}: nodes of this type have no external effects"
            )
            hint = "Put it at the node that does the work."
            yield warning("setting-without-effect", at, message, hint=hint, fix=remove_at(at))
    yield from _more_elsewhere(subject)
    yield from _of_workflow(subject)


def _of_workflow(subject: Subject) -> Iterator[Problem]:
    config = subject.workflow.config
    limits = config.limits if config is not None else None
    spent = (
        limits is not None and (limits.tokens, limits.model_calls, limits.tool_calls, limits.cost_usd) != (None,) * 4
    )
    if config is not None and config.budget is not None and not spent:
        message = "`budget` has no effect: the workflow has no limit for money, tokens or calls"
        hint = "Set `limits.tokens`, `limits.modelCalls`, `limits.toolCalls` or `limits.costUsd`."
        yield warning("setting-without-effect", "/config/budget", message, hint=hint, fix=remove_at("/config/budget"))
    if config is not None and config.on_cancel is not None and all(n.compensate is None for n in subject.nodes):
        message = "`onCancel` has no effect: no node has a compensation"
        at = "/config/onCancel"
        yield warning("setting-without-effect", at, message, hint="Set `compensate` at a node.", fix=remove_at(at))


def _more_elsewhere(subject: Subject) -> Iterator[Problem]:
    """Report options that extend a limit, at gates that no limit leads to."""
    config = subject.workflow.config
    for position, node in enumerate(subject.nodes):
        if not isinstance(node.config, HumanConfig) or (config is not None and config.on_limit == node.id):
            continue
        for number, option in enumerate(node.config.options or ()):
            if option.more is not None:
                at = subject.at_node(position, "config", "options", number, "more")
                message = f"`more` has no effect at {subject.node(position)}: no limit routes to it"
                hint = f"Set `config.onLimit: {node.id}`."
                yield warning("setting-without-effect", at, message, hint=hint, fix=remove_at(at))


def _at_once(node: Node) -> bool:
    return node.type in AT_ONCE or (isinstance(node.config, DecisionConfig) and node.config.llm_prompt is None)


def _without_effect(node: Node) -> list[str]:
    """Return the keys of the node's `execution` that have no effect, spelled as in the document."""
    execution = node.execution
    if execution is None:
        return []
    retry = {
        field.alias or name: getattr(execution, name)
        for name, field in type(execution).model_fields.items()
        if getattr(execution, name) is not None
    }
    if _at_once(node) or node.type in WAITING:
        return [*retry]
    if node.type == "workflow":
        return [key for key, value in retry.items() if key not in OF_CALLS or value == "llm_recovery"]
    return []


def _hint(node: Node, key: str) -> str:
    if node.type == "workflow":
        return "Say it at the nodes of the sub-workflow."
    return WAYS.get(key, "Say it at the nodes that do work.")
