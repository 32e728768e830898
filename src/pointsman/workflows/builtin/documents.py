"""The documents on the shelf, read when they are first asked for.

`builtin:deep_research` is the id of the workflow in `deep_research.yaml`, wherever a workflow is named. No other id has
that prefix, so what is saved here and what comes with us never hide each other.
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
"""Made to be called by agents: they are tools by these names."""
EXAMPLES: Final = {"agentforge": "agentforge/agentforge.yaml"}
"""Name -> document among the examples."""
NAMES: Final = tuple(sorted((*TOOLS, *EXAMPLES)))
IDS: Final = tuple(PREFIX + name for name in NAMES)


class ExamplesMissing(OperatorError):
    """The examples that travel with the package are not there."""

    code: ClassVar[str] = "examples-missing"


def is_built_in(workflow: str) -> bool:
    """Whether an id or a reference is one of the shelf's, known or not."""
    return workflow.startswith(PREFIX)


@cache
def shipped(workflow: str) -> Workflow | None:
    """The document of a workflow by its id. Raises `ExamplesMissing`."""
    name = workflow.removeprefix(PREFIX)
    if not is_built_in(workflow) or name not in NAMES:
        return None
    if name in EXAMPLES:
        return with_id(Workflow.load(examples_directory() / EXAMPLES[name]), workflow)
    return Workflow.load(Path(__file__).with_name(f"{name}.yaml"))


@cache
def examples_directory() -> Path:
    """Inside the installed package, else in the source tree it is installed from. Raises `ExamplesMissing`."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / EXAMPLES["agentforge"]).is_file():
            return folder
    raise ExamplesMissing("the examples are not installed with this package", hint="Install it again, with its data.")
