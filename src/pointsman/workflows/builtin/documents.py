"""Documents of the built-in workflows, read on first use.

`builtin:deep_research` is the id of the workflow in `deep_research.yaml`, wherever a workflow is named. No saved
workflow can have an id with this prefix, so that saved and built-in workflows never hide each other.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import ClassVar, Final

from pointsman.errors import OperatorError
from pointsman.workflows.builtin.renaming import with_id
from pointsman.workflows.sources import Workflow

PREFIX: Final = "builtin:"
TOOLS: Final = ("deep_research", "iterate", "map_reduce")
"""Workflows made for agents to call: tools by these names."""
EXAMPLES: Final = {"agentforge": "agentforge/agentforge.yaml"}
"""Name -> path of the document below the examples."""
NAMES: Final = tuple(sorted((*TOOLS, *EXAMPLES)))
IDS: Final = tuple(PREFIX + name for name in NAMES)


class ExamplesMissing(OperatorError):
    """The examples that belong to the package are not installed."""

    code: ClassVar[str] = "examples-missing"


def is_built_in(workflow: str) -> bool:
    """Return whether an id or a reference has the prefix of built-in workflows, known or not."""
    return workflow.startswith(PREFIX)


@cache
def shipped(workflow: str) -> Workflow | None:
    """Return the document of a built-in workflow by its id; None: unknown. Raises `ExamplesMissing`."""
    name = workflow.removeprefix(PREFIX)
    if not is_built_in(workflow) or name not in NAMES:
        return None
    if name in EXAMPLES:
        return with_id(Workflow.load(examples_directory() / EXAMPLES[name]), workflow)
    return Workflow.load(Path(__file__).with_name(f"{name}.yaml"))


@cache
def examples_directory() -> Path:
    """Return the directory of the examples: in the installed package, else in the source tree. Raises
    `ExamplesMissing`."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / EXAMPLES["agentforge"]).is_file():
            return folder
    raise ExamplesMissing("the examples are not installed with this package", hint="Install it again, with its data.")
