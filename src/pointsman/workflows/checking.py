"""Checking of a source: problems found on reading and by the checker, with positions in the author's document.

document ── read_workflow ──▶ workflow ── check ──▶ problems ── positioned_problems ──▶ pointers, line and column
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pointsman.definition.checks import check
from pointsman.definition.checks.references import dropped_edges, ends_missing
from pointsman.definition.checks.subject import UNKNOWN_INSTALLATION, Installation, ToolFacts
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.nodes import Never
from pointsman.definition.model.work import UnboundConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.definition.problems import (
    CheckReport,
    JsonPatchOp,
    Problem,
    did_you_mean,
    error,
    limited,
    pointer_parts,
    pointer_to,
    sort_problems,
    warning,
)
from pointsman.dialects.detect import ReadDocument
from pointsman.dialects.readers import ImportedDocument
from pointsman.models.prices import Prices
from pointsman.models.transport import is_scripted
from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry
from pointsman.values import Json
from pointsman.workflows.builtin import BUILT_IN, shipped
from pointsman.workflows.models import ReachedModels, model_name_problems, model_problems
from pointsman.workflows.sources import Workflow
from pointsman.workflows.tools import PREFIX
from pointsman.workflows.variables import substituted, variables_in


def lenient(workflow: WorkflowDefinition) -> tuple[WorkflowDefinition, tuple[Problem, ...]]:
    """Disable every edge with a missing end. Return the workflow and one warning for each such edge; without such edges
    the workflow is returned unchanged."""
    dangling = {edge for edge, _, _ in ends_missing(workflow)}
    if not dangling:
        return workflow, ()
    edges = tuple(
        edge.model_copy(update={"condition": Never()}) if position in dangling else edge
        for position, edge in enumerate(workflow.edges)
    )
    without = workflow.model_copy(update={"edges": edges})
    return without, tuple(dropped_edges(without))


def found_in(
    read: ReadDocument, *, installation: Installation = UNKNOWN_INSTALLATION, drop_dangling: bool = False
) -> tuple[WorkflowDefinition | None, list[Problem]]:
    """Return the workflow that would run and its problems, with pointers into the native document."""
    workflow = read.workflow
    if workflow is None:
        return None, []
    dropped: tuple[Problem, ...] = ()
    if drop_dangling:
        workflow, dropped = lenient(workflow)
    return workflow, [*dropped, *check(workflow, installation=installation)]


def positioned_problems(read: ReadDocument, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems with positions in the author's document, together with those of reading, sorted by position. At
    most `PROBLEMS_MAX` are listed; a note counts the rest."""
    own = {id(problem) for problem in read.problems}
    listed = limited((*read.problems, *problems))
    return sort_problems(one if id(one) in own else read.placed(repaired(one, read)) for one in listed)


def repaired(problem: Problem, read: ReadDocument) -> Problem:
    """Return the problem with its fix translated to the author's document; without the fix if that is not safe."""
    if problem.fix is None or read.imported is None:
        return problem
    operations = [_translated(operation, read.imported, read.document.value) for operation in problem.fix]
    safe = tuple(operation for operation in operations if operation is not None)
    return replace(problem, fix=safe if len(safe) == len(operations) else None)


def _translated(operation: JsonPatchOp, imported: ImportedDocument, author: Json) -> JsonPatchOp | None:
    """Translate one operation to the author's document; None: the author's document has something else there."""
    native = str(operation["path"])
    pointer = imported.sources.author_pointer(native)
    if operation["op"] == "add":
        return {**operation, "path": pointer} if imported.document.get("dialect") in (None, "native") else None
    there = _value_at(author, pointer)
    if operation["op"] == "replace":
        return {**operation, "path": pointer} if there == _value_at(imported.document, native) else None
    here, holder = pointer_parts(native), pointer_parts(pointer)
    if there is None or len(holder) < 2 or not holder[-2].endswith(here[-2]):
        return None
    return {**operation, "path": pointer}


def _value_at(value: Json, pointer: str) -> Json:
    """Return the value at a pointer; None if there is none."""
    for part in pointer_parts(pointer):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


OF_AN_AGENT: Final = re.compile(r"/tools/\d+$")
"""Pointer to a tool in the list of an agent."""


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """All problems of a source, sorted by position."""

    problems: tuple[Problem, ...]
    dialect: str | None
    source: Workflow | None = None
    """The checked source; None: it was not found."""
    repaired: Definition | None = None
    """With `lenient`: the workflow without its unusable parts."""

    @property
    def ok(self) -> bool:
        """Whether the workflow has no errors; warnings and notes do not count."""
        return not any(problem.severity == "error" for problem in self.problems)

    @property
    def id(self) -> str | None:
        """The id of the workflow; None: it cannot be read."""
        head = None if self.source is None else self.source.outline.head
        return None if head is None else head.id

    @property
    def workflow(self) -> Definition | None:
        """The definition that would run. Reads the source if only another process has read it."""
        if self.repaired is not None or self.source is None:
            return self.repaired
        return self.source.read.workflow

    def to_json(self) -> CheckReport:
        """Return the JSON that `check --json` prints."""
        return {
            "ok": self.ok,
            "dialect": self.dialect,
            "problems": [problem.to_json() for problem in self.problems],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFacts:
    """Facts of an installation about the things that a document names: plain data, for another process."""

    agents: Mapping[str, AgentConfig]
    """Agents of the settings, and the saved agents that the document names."""
    granted: Mapping[str, str]
    """Variable -> value."""
    tools: Mapping[str, ToolFacts]
    """The existing tools that the document and its agents name."""
    tool_names: Collection[str]
    """Tools that may be suggested."""
    workflows: Collection[str]
    """Saved workflows that may be called or suggested."""
    providers: frozenset[str]
    """Providers that the settings describe."""
    models: ReachedModels
    default_model: str = ""
    prices: Prices = field(default_factory=Prices)
    nodes_max: int | None = None
    lenient: bool = False
    model: str | None = None
    """The model that answers every agent, if there is one."""

    @property
    def known(self) -> Installation:
        tools = NamedTools(self.tools, self.tool_names)
        return Installation(tools=tools, agents=tools_of(self.agents), workflows=self.workflows)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check."""

    problems: tuple[Problem, ...]
    repaired: Definition | None = None


def check_workflow(source: Workflow, facts: CheckFacts) -> CheckResult:
    """Job: return all problems of a workflow at once."""
    read = source.read
    if read.workflow is None:
        return CheckResult(source.problems)
    installation = replace(facts.known, node_types=_performed(read.workflow))
    workflow, problems = found_in(read, installation=installation, drop_dangling=facts.lenient)
    assert workflow is not None
    model = facts.model
    names = [*model_name_problems(workflow, facts.providers, model)]
    misnamed = {problem.pointer for problem in names if problem.severity == "error"}
    missing = [*model_problems(facts.models, workflow, facts.agents, model, facts.granted)]
    if facts.lenient or is_scripted(model or ""):
        problems = [softened(problem) for problem in problems]
    problems += [*_variables(workflow, facts), *_granted_agents(workflow, facts)]
    problems += [*_not_ours(workflow), *names]
    problems += [*_unpriced(workflow, facts), *_too_many_nodes(workflow, facts)]
    problems += [problem for problem in missing if problem.pointer not in misnamed]
    if workflow.triggers:
        from pointsman.workflows.calendar import trigger_problems  # Most workflows need no calendar.

        problems += trigger_problems(workflow)
    return CheckResult(positioned_problems(read, problems), workflow if facts.lenient else None)


def called_again(source: Workflow, durability: str, settings: Settings, tools: ToolRegistry) -> list[Problem]:
    """Return the tools that may be called twice if the workflow starts with this durability instead of its own."""
    if source.read.workflow is None:
        return []
    installation = Installation(
        tools=KnownTools(tools), agents=tools_of(settings.agents), workflows=(), durability=durability
    )
    _, problems = found_in(source.read, installation=installation, drop_dangling=True)
    return [problem for problem in problems if problem.code == "not-idempotent"]


def softened(problem: Problem) -> Problem:
    """Return the problem of an unknown agent or of an agent's tool as a warning.

    Under leniency, and if the scripted model answers, agents and their tools need not exist, because an execution does
    not call them. For the tool of a `tool` node the problem stays an error: the node has no model that could do without
    the tool.
    """
    played = problem.code == "unknown-agent" or (
        problem.code in ("unknown-tool", "tool-disabled") and OF_AN_AGENT.search(problem.pointer) is not None
    )
    return replace(problem, severity="warning") if played else problem


class KnownTools(Mapping[str, ToolFacts]):
    """The tools of an installation. A tool is inspected when it is requested: there may be thousands. Iteration omits
    tools that are saved workflows, because not every caller may see them."""

    def __init__(self, tools: ToolRegistry) -> None:
        self._tools = tools

    def __getitem__(self, name: str) -> ToolFacts:
        spec = self._tools.find(name)
        if spec is None:
            raise KeyError(name)
        silent = self._tools.silent(name)
        return ToolFacts(
            client_side=spec.side == "client" or bool(spec.memory),
            idempotent=spec.idempotent,
            requires_approval=spec.requires_approval,
            parameters=None if spec.stands_in or silent is not None else spec.parameters,
            off=spec.off,
            silent="" if silent is None else silent.message,
            hint="" if silent is None else silent.hint,
        )

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._tools.names() if not name.startswith(PREFIX))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True  # The built-in tools always exist; do not count.


@dataclass(frozen=True, slots=True)
class NamedTools(Mapping[str, ToolFacts]):
    """Tools with facts about some of them and only names of the others."""

    facts: Mapping[str, ToolFacts]
    names: Collection[str]
    """Tools that may be suggested."""

    def __getitem__(self, name: str) -> ToolFacts:
        return self.facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __bool__(self) -> bool:
        return True  # The built-in tools always exist; do not count.


def tools_of(agents: Mapping[str, AgentConfig]) -> dict[str, frozenset[str]]:
    """Return agent -> its tools."""
    return {name: frozenset(agent.tools or ()) for name, agent in agents.items()}


def _performed(workflow: Definition) -> Collection[str]:
    """Return the kinds of work that installed packages perform. They are loaded only if a node has a type that is not
    built in."""
    if not any(isinstance(node.config, UnboundConfig) for node in workflow.nodes):
        return ()
    from pointsman.executors.registry import announced_kinds  # Import here: most checks need no executors.

    return announced_kinds()


def _variables(workflow: Definition, facts: CheckFacts) -> list[Problem]:
    """Return an error for each position that names a variable without a value in the settings."""
    granted = facts.granted
    return [
        error(
            "unresolved-variable",
            pointer,
            f"the variable {name!r} is not set",
            hint=f"{did_you_mean(name, granted)} Set it under [variables] in pointsman.toml, or with --var.".strip(),
        )
        for pointer, name in variables_in(workflow.to_document())
        if name not in granted
    ]


def _not_ours(workflow: Definition) -> list[Problem]:
    """Return an error for a document with the id of a built-in workflow that differs from that workflow."""
    if not workflow.id.startswith(BUILT_IN):
        return []
    ours = shipped(workflow.id)
    if ours is not None and ours.definition == workflow:
        return []
    message = f"ids that begin with {BUILT_IN!r} are reserved for built-in workflows"
    return [error("built-in-id", "/id", message, hint="Choose another id.")]


def _unpriced(workflow: Definition, facts: CheckFacts) -> Iterator[Problem]:
    """Yield a warning for each model without a price in a workflow with a limit of cost."""
    config = workflow.config
    limits = config.limits if config is not None else None
    if config is None or limits is None or limits.cost_usd is None:
        return
    agents = [node.config for node in workflow.nodes if isinstance(node.config, AgentConfig)]
    agents += [*(workflow.agents or {}).values()]
    default = config.default_model or facts.default_model
    models = {facts.model} if facts.model else {agent.model or default for agent in agents}
    for name in sorted(model for model in models if model and "{" not in model and not is_scripted(model)):
        provider, _, rest = name.partition(":")
        if rest and facts.prices.cost_usd(provider, rest, input_tokens=1, output_tokens=1) is None:
            message = f"the price of {name!r} is unknown, so `costUsd` does not count its calls"
            hint = "Set its price under [prices] in the settings, or also limit `tokens` or `modelCalls`."
            yield warning("cost-unknown", "/config/limits/costUsd", message, hint=hint)


def _too_many_nodes(workflow: Definition, facts: CheckFacts) -> Iterator[Problem]:
    most = facts.nodes_max
    count = sum(node.type != "note" for node in workflow.nodes)
    if most is not None and count > most:
        message = f"the workflow has {count} nodes; the operator allows {most}"
        yield error("too-many-nodes", "/nodes", message, hint="Move parts of it into sub-workflows.")


def _granted_agents(workflow: Definition, facts: CheckFacts) -> list[Problem]:
    """Return a warning for each agent that a variable names and that does not exist: its model has no role."""
    granted = facts.granted
    agents = {*facts.agents, *(workflow.agents or {})}
    problems: list[Problem] = []
    for position, node in enumerate(workflow.nodes):
        reference = node.config.agent if isinstance(node.config, AgentConfig) else None
        resolved = substituted(reference, granted)
        if reference is not None and isinstance(resolved, str) and resolved != reference and resolved not in agents:
            message = (
                f"{reference} is {resolved!r}, and no agent with this name exists here: "
                "the model acts without a system prompt"
            )
            hint = f"Describe it under [agents.{resolved}] in pointsman.toml."
            problems.append(
                warning("unknown-agent", pointer_to("nodes", position, "config", "agent"), message, hint=hint)
            )
    return problems
