"""Checking a source: what reading found and what the checker finds, told about the author's document."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pointsman.app.model_names import model_name_problems
from pointsman.app.model_uses import model_problems
from pointsman.app.shelf.documents import PREFIX as BUILT_IN
from pointsman.app.shelf.documents import shipped
from pointsman.app.sources import Workflow
from pointsman.app.variables import substituted, variables_in
from pointsman.app.workflow_tools import PREFIX
from pointsman.definition.agents import AgentConfig
from pointsman.definition.check.subject import Known, ToolFacts
from pointsman.definition.problems import Problem, did_you_mean, error, pointer_to, warning
from pointsman.definition.sites import sites_of
from pointsman.definition.work import UnboundConfig
from pointsman.definition.workflow import Workflow as Definition
from pointsman.dialects.checked import found_in, told
from pointsman.models.transport import PydanticModels, is_scripted
from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry
from pointsman.values import JsonObject

OF_AN_AGENT: Final = re.compile(r"/tools/\d+$")
"""Where an agent lists a tool."""


@dataclass(frozen=True, slots=True)
class Checked:
    """All problems of a source, sorted by place. `workflow` is what would run: repaired under leniency."""

    problems: tuple[Problem, ...]
    dialect: str | None
    workflow: Definition | None

    @property
    def ok(self) -> bool:
        """No errors; warnings and notes do not count."""
        return not any(problem.severity == "error" for problem in self.problems)

    def to_json(self) -> JsonObject:
        """As `check --json` prints it."""
        return {
            "ok": self.ok,
            "dialect": self.dialect,
            "problems": [problem.to_json() for problem in self.problems],
        }


def check_workflow(
    source: Workflow,
    *,
    settings: Settings,
    tools: ToolRegistry,
    workflows: Collection[str],
    lenient: bool,
    model: str | None,
    models: PydanticModels,
    offered: Collection[str] = (),
    hidden: Collection[str] = (),
) -> Checked:
    """Everything that is wrong, at once. `workflows`, and of those that are tools the `offered`, may be suggested.
    `hidden`: tools that are checked as if they did not exist."""
    read = source.read
    if read.workflow is None:
        return Checked(read.problems, read.dialect, None)
    known = replace(
        known_of(settings, KnownTools(tools, offered, hidden), workflows), node_types=_performed(read.workflow)
    )
    workflow, found = found_in(read, known=known, drop_dangling=lenient)
    assert workflow is not None
    names = [*model_name_problems(workflow, settings, model)]
    misnamed = {problem.pointer for problem in names if problem.severity == "error"}
    missing = [*model_problems(models, workflow, settings.agents, model, settings.granted())]
    if lenient or is_scripted(model or ""):
        found = [softened(problem) for problem in found]
    found += [*_variables(workflow, settings), *_granted_agents(workflow, settings)]
    found += [*_not_ours(workflow), *names]
    found += [*_unpriced(workflow, settings, model), *_too_many_nodes(workflow, settings)]
    found += [problem for problem in missing if problem.pointer not in misnamed]
    if workflow.triggers:
        from pointsman.app.triggers.problems import trigger_problems  # Most workflows need no calendar.

        found += trigger_problems(workflow)
    return Checked(told(read, found), read.dialect, workflow)


def workflow_tools_in(source: Workflow) -> list[str]:
    """The tools it names that may be saved workflows."""
    if source.read.workflow is None or PREFIX not in source.document.text:
        return []
    named = (site.text for site in sites_of(source.read.workflow) if site.kind == "tool")
    return [name for name in named if name.startswith(PREFIX)]


def called_again(source: Workflow, durability: str, settings: Settings, tools: ToolRegistry) -> list[Problem]:
    """The tools that may be called twice when it is started with this durability, whatever its own is."""
    if source.read.workflow is None:
        return []
    known = replace(known_of(settings, KnownTools(tools), ()), durability=durability)
    _, found = found_in(source.read, known=known, drop_dangling=True)
    return [problem for problem in found if problem.code == "not-idempotent"]


def softened(problem: Problem) -> Problem:
    """Under leniency, and where the scripted model answers, agents and their tools need not be known: an execution
    does not call them.

    A `tool` node has no model that could do without its tool: that stays an error.
    """
    played = problem.code == "unknown-agent" or (
        problem.code in ("unknown-tool", "tool-off") and OF_AN_AGENT.search(problem.pointer) is not None
    )
    return replace(problem, severity="warning") if played else problem


class KnownTools(Mapping[str, ToolFacts]):
    """The tools of an installation. A tool is looked at when somebody asks about it: there may be thousands. Of saved
    workflows only those are listed that are `offered`: not everybody may know of the others. The `hidden` do not
    exist."""

    def __init__(self, tools: ToolRegistry, offered: Collection[str] = (), hidden: Collection[str] = ()) -> None:
        self._tools = tools
        self._offered = offered
        self._hidden = hidden

    def __getitem__(self, name: str) -> ToolFacts:
        spec = None if name in self._hidden else self._tools.find(name)
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
        return (name for name in self._tools.names() if name in self._offered or not name.startswith(PREFIX))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True  # Some come with us; nobody has to count.


def known_of(settings: Settings, tools: KnownTools, workflows: Collection[str]) -> Known:
    """What this installation has."""
    agents = {name: frozenset(agent.tools or ()) for name, agent in settings.agents.items()}
    return Known(tools=tools, agents=agents, workflows=workflows)


def _performed(workflow: Definition) -> Collection[str]:
    """The kinds of work that installed packages do; asked only where a node is of a type that is not built in."""
    if not any(isinstance(node.config, UnboundConfig) for node in workflow.nodes):
        return ()
    from pointsman.executors.registry import announced_kinds  # Most checks need no executors.

    return announced_kinds()


def _variables(workflow: Definition, settings: Settings) -> list[Problem]:
    """Variables that nobody grants, at every place that names them."""
    granted = settings.granted()
    return [
        error(
            "unresolved-variable",
            pointer,
            f"the variable {name!r} is not granted",
            hint=f"{did_you_mean(name, granted)} Put it under [variables] in pointsman.toml, or give --var.".strip(),
        )
        for pointer, name in variables_in(workflow.to_document())
        if name not in granted
    ]


def _not_ours(workflow: Definition) -> list[Problem]:
    """An id of the shelf on a document that is not what stands there."""
    if not workflow.id.startswith(BUILT_IN):
        return []
    ours = shipped(workflow.id)
    if ours is not None and ours.definition == workflow:
        return []
    message = f"ids that begin with {BUILT_IN!r} are those of workflows that come with the product"
    return [error("built-in-id", "/id", message, hint="Take another id.")]


def _unpriced(workflow: Definition, settings: Settings, model: str | None) -> Iterator[Problem]:
    """A budget of money that cannot see what some models cost."""
    config = workflow.config
    limits = config.limits if config is not None else None
    if config is None or limits is None or limits.cost_usd is None:
        return
    prices = settings.price_list
    agents = [node.config for node in workflow.nodes if isinstance(node.config, AgentConfig)]
    agents += [*(workflow.agents or {}).values()]
    named = {model} if model else {agent.model or config.default_model or settings.model for agent in agents}
    for name in sorted(one for one in named if one and "{" not in one and not is_scripted(one)):
        provider, _, rest = name.partition(":")
        if rest and prices.cost_usd(provider, rest, input_tokens=1, output_tokens=1) is None:
            message = f"nobody knows what {name!r} costs: `costUsd` cannot see it"
            hint = "Give its price under [prices] in the settings, or limit `tokens` or `modelCalls` as well."
            yield warning("cost-unknown", "/config/limits/costUsd", message, hint=hint)


def _too_many_nodes(workflow: Definition, settings: Settings) -> Iterator[Problem]:
    most = settings.limits.nodes
    count = sum(node.type != "note" for node in workflow.nodes)
    if most is not None and count > most:
        message = f"the workflow has {count} nodes, and the operator allows {most}"
        yield error("too-many-nodes", "/nodes", message, hint="Move parts of it into sub-workflows.")


def _granted_agents(workflow: Definition, settings: Settings) -> list[Problem]:
    """Agents named by a variable, whose value is no agent that is known: they have a model and no role."""
    granted = settings.granted()
    known = {*settings.agents, *(workflow.agents or {})}
    found: list[Problem] = []
    for position, node in enumerate(workflow.nodes):
        named = node.config.agent if isinstance(node.config, AgentConfig) else None
        meant = substituted(named, granted)
        if named is not None and isinstance(meant, str) and meant != named and meant not in known:
            message = f"{named} is {meant!r}, and there is no such agent here: the model plays it without a role"
            hint = f"Describe it under [agents.{meant}] in pointsman.toml."
            found.append(warning("unknown-agent", pointer_to("nodes", position, "config", "agent"), message, hint=hint))
    return found
