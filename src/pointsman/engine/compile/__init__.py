"""Compile: a workflow becomes a plan. The only place of the engine that reads definitions.

    workflow ─ analyse ─▶ graph ┐
             ─ formulas ────────┼─▶ PlanNode per node, PlanEdge per edge ─▶ Plan
             ─ policies ────────┘

Every text is parsed here and nowhere later. A workflow that has errors is refused by the checker before it comes here;
what is wrong all the same raises `AuthorError`.
"""

from pointsman.engine.compile.plans import compile_workflow

__all__ = ["compile_workflow"]
