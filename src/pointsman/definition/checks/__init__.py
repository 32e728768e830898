"""Static checks of a workflow. One file per group of problems.

    workflow ── analyse ──▶ graph ──┐
             ── compile ──▶ formulas ┴─▶ checks ──▶ problems, with native pointers, in no particular order

The checks never stop at the first problem and never raise on a workflow.
"""

from __future__ import annotations

from itertools import chain

from pointsman.definition.checks.conflicts import check_conflicts
from pointsman.definition.checks.dataflow import check_dataflow
from pointsman.definition.checks.endings import check_compensation, check_endings
from pointsman.definition.checks.formulas import check_types_of, read_formulas
from pointsman.definition.checks.placeholders import check_fixed_texts, check_placeholders
from pointsman.definition.checks.references import check_agents, check_references
from pointsman.definition.checks.results import check_arguments, check_results, check_schemas
from pointsman.definition.checks.routing import check_routing
from pointsman.definition.checks.scoping import check_joining, check_scoping
from pointsman.definition.checks.settings import (
    check_approvers,
    check_effects,
    check_placements,
    check_settings,
    check_triggers,
    check_unheeded,
)
from pointsman.definition.checks.subject import UNKNOWN_INSTALLATION, Installation, Subject
from pointsman.definition.graph.analysis import analyse
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, sort_problems


def check(workflow: WorkflowDefinition, *, installation: Installation = UNKNOWN_INSTALLATION) -> tuple[Problem, ...]:
    """Return all problems, sorted by pointer. Pointers and fixes refer to the native document."""
    subject = Subject(workflow, analyse(workflow), installation)
    formulas = read_formulas(subject)
    return sort_problems(
        chain(
            check_references(subject),
            check_endings(subject),
            check_scoping(subject),
            check_routing(subject),
            check_agents(subject),
            check_settings(subject),
            check_approvers(subject),
            check_placements(subject),
            check_arguments(subject),
            check_triggers(subject),
            check_effects(subject),
            check_unheeded(subject),
            check_compensation(subject),
            check_schemas(subject),
            formulas.problems,
            check_types_of(subject, formulas),
            check_results(subject, formulas),
            check_placeholders(subject, formulas),
            check_fixed_texts(subject),
            check_dataflow(subject, formulas),
            check_joining(subject, formulas),
            check_conflicts(subject, formulas),
        )
    )
