"""One document, read and checked at once."""

from __future__ import annotations

from dataclasses import dataclass

from pointsman.definition.checks.subject import UNKNOWN_INSTALLATION, Installation
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.definition.reading.documents import Document
from pointsman.dialects.detect import ReadDocument, read_workflow
from pointsman.workflows.checking import found_in, positioned_problems


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """A document and its problems. `workflow` is None if the structure has errors."""

    workflow: WorkflowDefinition | None
    problems: tuple[Problem, ...]
    """Sorted by position."""
    dialect: str | None
    read: ReadDocument

    @property
    def ok(self) -> bool:
        """Whether the workflow can be executed: no problem is an error."""
        return self.workflow is not None and not any(problem.severity == "error" for problem in self.problems)


def check_document(
    document: Document,
    *,
    dialect: str | None = None,
    name: str = "",
    known: Installation = UNKNOWN_INSTALLATION,
    drop_dangling: bool = False,
) -> CheckedDocument:
    """Read the only workflow of a document and check it. `drop_dangling` disables edges with a missing end."""
    read = read_workflow(document, dialect=dialect, name=name)
    workflow, found = found_in(read, installation=known, drop_dangling=drop_dangling)
    return CheckedDocument(workflow, positioned_problems(read, found), read.dialect, read)
