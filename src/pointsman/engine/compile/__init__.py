"""Compiler: turns a workflow definition into a plan. The only package of the engine that reads definitions.

    workflow ─ analyse ─▶ graph ┐
             ─ formulas ────────┼─▶ PlanNode per node, PlanEdge per edge ─▶ Plan
             ─ policies ────────┘

Every expression and template is parsed here, and not again at run time. The checker rejects workflows with errors
before they reach the compiler; a defect that it does not find raises `AuthorError`.
"""

from pointsman.engine.compile.plans import compile_workflow

__all__ = ["compile_workflow"]
