"""Checks of model names: no provider, an unknown provider, or a misspelling."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from pointsman.definition.checks.repairs import meant, nearest, question
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, error, warning
from pointsman.definition.text_locations import sites_of
from pointsman.models.model_names import LISTED, OTHERS, full_name, is_listed, is_provider, listed_models
from pointsman.models.provider_kinds import KINDS
from pointsman.models.transport import is_scripted

SUGGESTED_MAX: Final = 20
"""Different names for which similar ones are searched."""
_FORM: Final = "Write provider:model, such as 'openai:gpt-5'."


def model_name_problems(
    workflow: WorkflowDefinition, providers: Collection[str], model: str | None
) -> Iterator[Problem]:
    """Yield the problems of a workflow's model names. `providers`: those of the settings. If one `model` answers all
    agents, all problems are warnings."""
    told: dict[str, Problem | None] = {}
    for pointer, name in _named(workflow):
        if "{" in name or "$" in name or is_scripted(name):
            continue
        if name not in told:
            told[name] = _problem(name, providers, suggests=len(told) < SUGGESTED_MAX)
        problem = told[name]
        if problem is None:
            continue
        near = None if problem.fix is None else problem.fix[0]["value"]
        fix = meant(pointer, near) if isinstance(near, str) else None
        yield replace(problem, pointer=pointer, fix=fix, severity="warning" if model else problem.severity)


def _named(workflow: WorkflowDefinition) -> Iterator[tuple[str, str]]:
    if workflow.config is not None and workflow.config.default_model is not None:
        yield "/config/defaultModel", workflow.config.default_model
    yield from ((site.pointer, site.text) for site in sites_of(workflow) if site.kind == "model")


def _problem(name: str, providers: Collection[str], *, suggests: bool) -> Problem | None:
    """Return the problem of one name, without a position. Its fix holds the suggested name."""
    provider, colon, rest = name.partition(":")
    if not colon or not rest:
        near = _full(name, suggests=suggests)
        found = error("unknown-model", "", f"the model {name!r} names no provider", hint=question(near, _FORM))
    elif provider in providers:
        return None  # An operator's own server may have any models.
    elif not is_provider(provider):
        near = nearest(provider, {*KINDS, *OTHERS, *providers}) if suggests else None
        near = None if near is None else f"{near}:{rest}"
        hint = question(near, "Name a provider that exists, or add it under [providers] in pointsman.toml.")
        found = error("unknown-model", "", f"there is no provider {provider!r} here ({name!r})", hint=hint)
    elif is_listed(provider, rest):
        return None
    else:
        near = nearest(rest, listed_models(provider)) if suggests else None
        near = None if near is None else f"{provider}:{near}"
        hint = question(near, "It may be new, or private. See `pointsman models`.")
        message = f"the model {name!r} is not among the known models of {provider!r}"
        found = warning("unknown-model", "", message, hint=hint)
    return replace(found, fix=meant("", near))


def _full(name: str, *, suggests: bool) -> str | None:
    """Return the full name that a name without a provider probably means."""
    if (found := full_name(name)) is not None or not suggests:
        return found
    for provider in ("openai", "anthropic", "google", "mistral", "deepseek", "groq"):
        assert provider in LISTED, "these are listed"
        if (near := nearest(name, listed_models(provider))) is not None:
            return f"{provider}:{near}"
    return None
