"""Checking of a document in any dialect, with problems expressed in the author's own words and positions.

document ── read_workflow ──▶ workflow ── check ──▶ problems ── positioned_problems ──▶ pointers, line and column
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pointsman.definition.checks import check
from pointsman.definition.checks.references import dropped_edges, ends_missing
from pointsman.definition.checks.subject import NOTHING_ASKED, Installation
from pointsman.definition.model.nodes import Never
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import JsonPatchOp, Problem, limited, pointer_parts, sort_problems
from pointsman.dialects.detect import ReadDocument
from pointsman.dialects.readers import ImportedDocument
from pointsman.values import Json


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
    read: ReadDocument, *, installation: Installation = NOTHING_ASKED, drop_dangling: bool = False
) -> tuple[WorkflowDefinition | None, list[Problem]]:
    """Return the workflow that would run and its problems, with pointers into the native document."""
    workflow = read.workflow
    if workflow is None:
        return None, []
    dropped: tuple[Problem, ...] = ()
    if drop_dangling:
        workflow, dropped = lenient(workflow)
    return workflow, [*dropped, *check(workflow, installation=installation)]


def positioned_problems(read: ReadDocument, found: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems with positions in the author's document, together with those of reading, sorted by position. At
    most `PROBLEMS_MAX` are listed; a note counts the rest."""
    own = {id(problem) for problem in read.problems}
    listed = limited((*read.problems, *found))
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
