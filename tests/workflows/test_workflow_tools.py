"""The description of a workflow as a tool for models."""

from __future__ import annotations

import pytest

from pointsman.app import Workflow
from pointsman.workflows.tools import WorkflowTool


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("description: Writes a letter.", "Writes a letter."),
        ("name: {en: Letters, de: Briefe}", "Run the workflow 'Letters'."),
        ("version: 1.0.0", "Run the workflow 'letter'."),
    ],
)
def test_models_receive_the_authors_description_of_a_workflow(said: str, shown: str) -> None:
    source = Workflow.parse(f"pointsman: 1\nid: letter\n{said}\nnodes: [{{id: write, type: agent}}]\n")
    assert WorkflowTool("workflow__letter", source.definition).spec.description == shown
