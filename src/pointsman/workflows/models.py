"""Models of an installation: their setup from the settings, and the models that a workflow calls.

    definition ─▶ uses: position, purpose, model, fallbacks ─▶ `PydanticModels.check` ─▶ nothing, or an error

`check` reports models that cannot be called, and misspelled names, as warnings. A start fails before anything is
written. The setup connects to no provider.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import (
    DecisionConfig,
    EmitConfig,
    EndConfig,
    HumanConfig,
    JoinConfig,
    LoopConfig,
    NoteConfig,
    ParallelConfig,
    StartConfig,
    WaitConfig,
)
from pointsman.definition.model.nodes import AskModel, Node
from pointsman.definition.model.work import (
    PlannerConfig,
    ProgressConfig,
    TemplateRenderConfig,
    TransformConfig,
    VerifierConfig,
)
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, error, nearest, pointer_to, question, rename_fix, warning
from pointsman.definition.text_locations import text_locations_of
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.compile.work import on_failure_of, resolved_agent
from pointsman.engine.plan import PartialRun, Plan
from pointsman.engine.state import ExecutionState, PendingArrival
from pointsman.errors import OperatorError, PointsmanError
from pointsman.models.failures import ModelUnnamed, ModelUnusable
from pointsman.models.key_pool import KeyLeases, Spending
from pointsman.models.prices import LISTED, OTHERS, full_name, is_listed, is_provider, listed_models
from pointsman.models.provider import KINDS, Provider, ProviderSettings
from pointsman.models.providers import ConnectedProviders
from pointsman.models.script import Script
from pointsman.models.transcript import read_call
from pointsman.models.transport import PydanticModels, is_scripted
from pointsman.ports import ModelRequest
from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry
from pointsman.values import Json
from pointsman.workflows.variables import substituted


def models_for(
    settings: Settings,
    *,
    model: str | None,
    script: Script | None,
    spending: Spending | None = None,
    leases: KeyLeases | None = None,
    connected: ConnectedProviders | None = None,
) -> PydanticModels:
    """Return the models of the settings, and those `connected`. Providers are connected to on the first call."""
    return PydanticModels(
        providers={name: provider_for(settings, name, provider) for name, provider in settings.providers.items()},
        default=settings.model,
        purposes=settings.models,
        temperatures=settings.temperatures,
        fallback=settings.fallback,
        only=model,
        script=script,
        spending=spending,
        leases=leases,
        prices=settings.price_list,
        connected=connected,
    )


def provider_for(settings: Settings, name: str, provider_settings: ProviderSettings) -> Provider:
    """Return a provider with its secrets. A handle without a secret stays in place and is rejected on first use."""
    provider = provider_settings.provider(name)
    return replace(provider, keys=tuple(_resolved(settings, key) for key in provider.keys))


def _resolved(settings: Settings, key: str) -> str:
    try:
        return settings.resolved(key) or key
    except OperatorError:
        return key  # An unusable provider must not disable the others.


OFFLINE: Final = (
    "For made-up answers without a provider, use the scripted model: `--model scripted`, or in Python "
    '`Pointsman(model="scripted")`.'
)
"""How to continue without a provider."""
_INSTANT: Final = (
    StartConfig,
    EndConfig,
    ParallelConfig,
    JoinConfig,
    LoopConfig,
    HumanConfig,
    WaitConfig,
    EmitConfig,
    NoteConfig,
    ProgressConfig,
    TransformConfig,
    TemplateRenderConfig,
)
"""Configurations of nodes without external calls: no model is asked for recovery from their failures."""


class ReachedModels(Protocol):
    """The models of an installation, or facts about them."""

    def names_for(self, request: ModelRequest) -> tuple[str, ...]: ...

    def check(self, names: Sequence[str]) -> None:
        """Raise `ModelUnusable` or `ModelUnnamed` if none of the models can be called."""
        ...


@dataclass(frozen=True, slots=True)
class ModelUse:
    """One position in a workflow that calls a model."""

    node: str
    pointer: str
    """The position in the document that names the model, else that of the node."""
    model: str
    """Empty: the model of the purpose, else the installation's default."""
    fallback: tuple[str, ...] = ()
    purpose: str = "generation"


@dataclass(frozen=True, slots=True)
class UnreachableModel:
    """A use whose models, including fallbacks, cannot be called from this installation."""

    use: ModelUse
    names: tuple[str, ...]
    why: ModelUnusable | ModelUnnamed


def model_uses(workflow: WorkflowDefinition, agents: Mapping[str, AgentConfig]) -> Iterator[ModelUse]:
    """Yield every use of a model, in document order. `agents`: those of the installation."""
    all_agents = {**agents, **(workflow.agents or {})}
    default = (workflow.config.default_model if workflow.config is not None else None) or ""
    for position, node in enumerate(workflow.nodes):
        yield from _uses_of_node(workflow, node, pointer_to("nodes", position), all_agents, default)
    for position, edge in enumerate(workflow.edges):
        if isinstance(edge.condition, AskModel):
            at = pointer_to("edges", position, "condition")
            model = edge.condition.model
            yield ModelUse(edge.source, _at(at, "model", model), model or default, purpose="judge")


def _uses_of_node(
    workflow: WorkflowDefinition, node: Node, pointer: str, agents: dict[str, AgentConfig], default: str
) -> Iterator[ModelUse]:
    config, at = node.config, f"{pointer}/config"
    model: str | None = None
    match config:
        case AgentConfig():
            agent, _ = resolved_agent(config, agents)
            model, place = agent.model, _at(at, "model", config.model)
            fallback = tuple(agent.fallback or ())
            yield ModelUse(node.id, place, agent.model or default, fallback, agent.purpose or "generation")
            rules = agent.guardrails
            for rule in () if rules is None else (*(rules.before or ()), *(rules.after or ())):
                if rule.prompt is not None:
                    yield ModelUse(node.id, place, rule.model or agent.model or default, fallback, "guardrail")
        case DecisionConfig() if config.llm_prompt is not None:
            model = config.model
            yield ModelUse(node.id, _at(at, "model", model), model or default, purpose="decision")
        case VerifierConfig():
            model = config.model
            yield ModelUse(node.id, _at(at, "model", model), model or default, purpose="validation")
        case PlannerConfig():
            model, template = config.model, config.task_template
            place = _at(at, "model", model)
            yield ModelUse(node.id, place, model or default, purpose="planning")
            if template is not None or config.synthesize:
                own = template.model if template is not None else None
                yield ModelUse(node.id, place, own or model or default, purpose="task")
            if config.synthesize:
                yield ModelUse(node.id, place, model or default, purpose="synthesis")
        case _:
            pass
    acts = not isinstance(config, _INSTANT) and not (isinstance(config, DecisionConfig) and config.llm_prompt is None)
    if acts and on_failure_of(node.execution, workflow.config) == "llm_recovery":
        yield ModelUse(node.id, pointer, model or default, purpose="recover")


def _at(pointer: str, key: str, value: object) -> str:
    return pointer if value is None else f"{pointer}/{key}"


def still_to_come(plan: Plan, state: ExecutionState, uses: Iterable[ModelUse]) -> Iterator[ModelUse]:
    """Return the uses at nodes whose step is open or failed the execution, and at nodes that can still be reached from
    these."""
    open_ = open_nodes(state)
    to_come = open_ | plan.after(open_)
    return (use for use in performed_in(plan.partial_run, uses) if use.node in to_come)


def is_performed(trial: PartialRun | None, node: str) -> bool:
    """Return whether a partial run may perform a node; without a partial run always true."""
    if trial is None:
        return True
    return node not in trial.mocks and not (trial.until and node not in trial.performed)


def open_nodes(state: ExecutionState) -> set[str]:
    """Return the nodes of open steps, failed work and parked arrivals."""
    parked_at = [parked for scope in state.scopes.values() for parked in scope.parked.values()]
    arrivals = [*state.held_arrivals, *(one for parked in parked_at for one in parked.values())]
    failed = {one.node if isinstance(one, PendingArrival) else one.step.node for one in state.outcome.failed_work}
    return {step.node for step in state.steps} | {arrival.node for arrival in arrivals} | failed


def performed_in(trial: PartialRun | None, uses: Iterable[ModelUse]) -> Iterator[ModelUse]:
    """Return the uses that a partial run may perform; without a partial run all."""
    return (use for use in uses if is_performed(trial, use.node))


def _names_of(models: ReachedModels, use: ModelUse, model: str | None) -> tuple[str, ...]:
    """Return the models that may answer a use, in order. `model`: the model that answers all uses."""
    if model is not None:
        return (model,)
    return models.names_for(ModelRequest(model=use.model, purpose=use.purpose, fallback=use.fallback))


def is_answered_by_script(models: ReachedModels, uses: Iterable[ModelUse], model: str | None) -> bool:
    """Return whether the scripted model is the first choice for one of the uses."""
    return any(is_scripted(_names_of(models, use, model)[0]) for use in uses)


def unreachable(models: ReachedModels, uses: Iterable[ModelUse], model: str | None) -> Iterator[UnreachableModel]:
    """Yield the uses that cannot be answered from this installation, each chain of models once. `model`: the model that
    answers all uses."""
    problems_by_names: dict[tuple[str, ...], ModelUnusable | ModelUnnamed | None] = {}
    for use in uses:
        names = _names_of(models, use, model)
        if names in problems_by_names:
            continue
        problems_by_names[names] = None
        try:
            models.check(names)
        except (ModelUnusable, ModelUnnamed) as why:
            problems_by_names[names] = why
            yield UnreachableModel(use, names, why)


def refuse_unreachable(models: ReachedModels, uses: Iterable[ModelUse], model: str | None) -> None:
    """Raise `ModelUnusable` or `ModelUnnamed` for the first use that cannot be answered from this installation. The
    error names the node and the missing setting."""
    for one in unreachable(models, uses, model):
        raise type(one.why)(message_of(one), hint=hint_of(one.why))


def model_problems(
    models: ReachedModels,
    workflow: WorkflowDefinition,
    agents: Mapping[str, AgentConfig],
    model: str | None,
    granted: Mapping[str, str],
) -> Iterator[Problem]:
    """Yield unreachable models as warnings: a document may be written on a machine where it cannot run."""
    uses = [_filled_in(use, granted) for use in model_uses(workflow, agents)]
    for one in unreachable(models, (use for use in uses if "${" not in use.model), model):
        message, hint = message_of(one), hint_of(one.why)
        unnamed = isinstance(one.why, ModelUnnamed)
        yield warning("model-unnamed" if unnamed else "model-unusable", one.use.pointer, message, hint=hint)


def _filled_in(use: ModelUse, granted: Mapping[str, str]) -> ModelUse:
    names = substituted([use.model, *use.fallback], granted)
    assert isinstance(names, list)
    first, *others = map(str, names)
    return ModelUse(use.node, use.pointer, first, tuple(others), use.purpose)


def message_of(model: UnreachableModel) -> str:
    """Return a message that names the node, the models and the reason."""
    first = model.names[0]
    if isinstance(model.why, ModelUnnamed):
        return f"the node {model.use.node!r} needs a model, but none is configured"
    model_names = f"{first!r}" + (
        f" nor its fallback {', '.join(map(repr, model.names[1:]))}" if len(model.names) > 1 else ""
    )
    verb = "cannot use either" if len(model.names) > 1 else "cannot call"
    return f"the node {model.use.node!r} {verb} {model_names}: {model.why}"


def hint_of(why: PointsmanError) -> str:
    """Return what to add, and how to continue without it."""
    return f"{why.hint.rstrip('.')}. {OFFLINE}"


SUGGESTED_MAX: Final = 20
"""Different names for which similar ones are searched."""
_FORM: Final = "Write provider:model, such as 'openai:gpt-5'."


def model_name_problems(
    workflow: WorkflowDefinition, providers: Collection[str], model: str | None
) -> Iterator[Problem]:
    """Yield the problems of a workflow's model names. `providers`: those of the settings. If one `model` answers all
    agents, all problems are warnings."""
    problems: dict[str, Problem | None] = {}
    for pointer, name in _named(workflow):
        if "{" in name or "$" in name or is_scripted(name):
            continue
        if name not in problems:
            problems[name] = _problem(name, providers, suggests=len(problems) < SUGGESTED_MAX)
        problem = problems[name]
        if problem is None:
            continue
        near = None if problem.fix is None else problem.fix[0]["value"]
        fix = rename_fix(pointer, near) if isinstance(near, str) else None
        yield replace(problem, pointer=pointer, fix=fix, severity="warning" if model else problem.severity)


def _named(workflow: WorkflowDefinition) -> Iterator[tuple[str, str]]:
    if workflow.config is not None and workflow.config.default_model is not None:
        yield "/config/defaultModel", workflow.config.default_model
    yield from (
        (location.pointer, location.text) for location in text_locations_of(workflow) if location.kind == "model"
    )


def _problem(name: str, providers: Collection[str], *, suggests: bool) -> Problem | None:
    """Return the problem of one name, without a position. Its fix holds the suggested name."""
    provider, colon, rest = name.partition(":")
    if not colon or not rest:
        near = _full(name, suggests=suggests)
        problem = error("unknown-model", "", f"the model {name!r} has no provider", hint=question(near, _FORM))
    elif provider in providers:
        return None  # An operator's own server may have any models.
    elif not is_provider(provider):
        near = nearest(provider, {*KINDS, *OTHERS, *providers}) if suggests else None
        near = None if near is None else f"{near}:{rest}"
        hint = question(near, "Name a provider that exists, or add it under [providers] in pointsman.toml.")
        problem = error("unknown-model", "", f"there is no provider {provider!r} ({name!r})", hint=hint)
    elif is_listed(provider, rest):
        return None
    else:
        near = nearest(rest, listed_models(provider)) if suggests else None
        near = None if near is None else f"{provider}:{near}"
        hint = question(near, "It may be new, or private. See `pointsman models`.")
        message = f"the model {name!r} is not among the known models of {provider!r}"
        problem = warning("unknown-model", "", message, hint=hint)
    return replace(problem, fix=rename_fix("", near))


def _full(name: str, *, suggests: bool) -> str | None:
    """Return the full name that a name without a provider probably means."""
    if (full := full_name(name)) is not None or not suggests:
        return full
    for provider in ("openai", "anthropic", "google", "mistral", "deepseek", "groq"):
        assert provider in LISTED, "these are listed"
        if (near := nearest(name, listed_models(provider))) is not None:
            return f"{provider}:{near}"
    return None


WITHOUT_MODEL: Final = frozenset({"tool", "tool_executor", "memory", "code", "http", "structured-record"})
"""Kinds of work that call no model. All other kinds, including those of packages, may call any model of the
installation."""


class CacheBasis:
    """Describes models and tools for the step cache."""

    def __init__(self, models: PydanticModels, tools: ToolRegistry) -> None:
        self._models = models
        self._tools = tools

    def __call__(self, command: Execute, spec: WorkSpec) -> Json:
        """Return the basis of an attempt."""
        models = None if spec.kind in WITHOUT_MODEL else self._models.basis
        return [models, {name: self._tools.identity(name) for name in sorted({*_tools_of(command, spec)})}]


def _tools_of(command: Execute, spec: WorkSpec) -> Iterator[str]:
    """Yield the names of the tools that an attempt may call."""
    listed, one, calls = spec.config.get("tools"), spec.config.get("tool"), command.input.get("calls")
    yield from (name for name in [*(listed if isinstance(listed, list) else []), one] if isinstance(name, str))
    for item in calls if isinstance(calls, list) else []:
        if (call := read_call(item)) is not None:
            yield call.name
