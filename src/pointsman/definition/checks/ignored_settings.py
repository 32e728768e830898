"""What a document says and nobody heeds yet: it is kept and written back, and said so instead of being passed over."""

from __future__ import annotations

from collections.abc import Iterator

from pointsman.definition.checks.subject import Subject
from pointsman.definition.model.work import TemplateRenderConfig
from pointsman.definition.problems import Problem, warning


def check_unheeded(subject: Subject) -> Iterator[Problem]:
    """One warning for each."""
    for position, node in enumerate(subject.nodes):
        if node.progress is not None:
            message = f"{subject.node(position)} has a text for `progress`, which nobody is told"
            hint = "Put a node of the type `progress` before it."
            yield warning("not-heeded", subject.at_node(position, "progress"), message, hint=hint)
        if isinstance(node.config, TemplateRenderConfig) and node.config.artifact_name is not None:
            message = f"{subject.node(position)} names an artifact, and its text becomes the result alone"
            hint = "Write it with a tool node behind it: `write_file`."
            yield warning("not-heeded", subject.at_node(position, "config", "artifactName"), message, hint=hint)
