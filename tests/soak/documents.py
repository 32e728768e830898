"""Thousands of broken documents: each has problems with positions, none causes a traceback. The scorecard runs many
more.

python -m tests.soak.documents [COUNT] [SEED]
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from random import Random

from pointsman.engine.compile import compile_workflow
from pointsman.errors import AuthorError
from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry
from pointsman.workflows.checking import CheckFacts, KnownTools, check_workflow
from pointsman.workflows.models import models_for
from pointsman.workflows.sources import Workflow
from tests.soak.mutations import good_documents, mutated

SHOWN = 12


@dataclass
class Figures:
    """The results of the documents."""

    documents: int = 0
    refused: int = 0
    compiled: int = 0
    codes: Counter[str] = field(default_factory=Counter[str])
    slowest_s: float = 0.0
    misplaced: list[str] = field(default_factory=list[str])
    """Problems without a line, a column or a message: there must be none."""


@cache
def facts() -> CheckFacts:
    """Return an installation without packages or settings."""
    tools = KnownTools(ToolRegistry(plugins=False))
    return CheckFacts(
        agents={},
        granted={},
        tools=tools,
        tool_names=[*tools],
        workflows=(),
        providers=frozenset(),
        models=models_for(Settings(), model="scripted", script=None),
        model="scripted",
    )


def examined(data: bytes, figures: Figures) -> None:
    """Read, check and, if it is valid, compile one document. Any exception is a bug."""
    began = time.process_time()
    source = Workflow.parse(data, name="broken")
    problems = check_workflow(source, facts()).problems
    figures.documents += 1
    for problem in problems:
        figures.codes[problem.code] += 1
        if problem.line is None or problem.column is None or not problem.message:
            figures.misplaced.append(f"{problem.code} at {problem.pointer!r}")
    if not any(problem.severity == "error" for problem in problems):
        try:
            compile_workflow(source.definition)
            figures.compiled += 1
        except AuthorError as why:
            figures.misplaced.append(f"passed the check and does not compile: {why}")
    else:
        figures.refused += 1
        assert any(problem.severity == "error" for problem in problems), "refused without a reason"
    figures.slowest_s = max(figures.slowest_s, time.process_time() - began)


def examine(count: int, seed: int) -> Figures:
    """Break and examine that many documents. Raises with the seed of the document that raised."""
    good = good_documents()
    figures = Figures()
    for number in range(count):
        one = f"{seed}:{number}"
        data = mutated(good, Random(one))
        try:
            examined(data, figures)
        except Exception as why:
            raise AssertionError(f"document {one} raised {why!r}; its bytes: {data[:200]!r} …") from why
    return figures


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    began = time.perf_counter()
    figures = examine(count, seed)
    sys.stdout.write(
        f"documents {figures.documents}, refused {figures.refused}, compiled {figures.compiled}, "
        f"slowest {figures.slowest_s * 1000:.0f} ms of CPU, {time.perf_counter() - began:.0f} s in all\n"
    )
    for code, times in figures.codes.most_common(SHOWN):
        sys.stdout.write(f"  {times:6} {code}\n")
    for one in figures.misplaced[:SHOWN]:
        sys.stdout.write(f"MISPLACED {one}\n")
    return 1 if figures.misplaced else 0


if __name__ == "__main__":
    sys.exit(main())
