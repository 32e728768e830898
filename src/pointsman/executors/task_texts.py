"""The texts of planned tasks: templates that wait for tasks nobody knew when the step began."""

from __future__ import annotations

from typing import Literal, cast

import msgspec

from pointsman.expressions.environment import Environment
from pointsman.expressions.names import Names
from pointsman.expressions.templates import compile_template
from pointsman.models.transcript import as_text, text_of
from pointsman.values import Json, JsonObject


class Given(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the plan gives along: the texts, and the data that they read."""

    system: str | None = None
    prompt: str | None = None
    spelling: Literal["single", "double"] = "double"
    as_names: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    state: JsonObject = {}
    nodes: JsonObject = {}
    names: JsonObject = {}
    config: JsonObject = {}


class TaskTexts:
    """What the agent of a task is told. Without a template: the goal, the task, and what came of those before."""

    def __init__(self, given: Json, goal: str) -> None:
        self._given = Given() if given is None else msgspec.convert(given, Given)
        self._goal = goal

    def of(self, task: JsonObject, before: list[JsonObject]) -> tuple[str, str]:
        """System and prompt. Raises `ExpressionError` for a `{x}` that is not there."""
        prompt = (
            self._told(task, before) if self._given.prompt is None else self._filled(self._given.prompt, task, before)
        )
        return "" if self._given.system is None else self._filled(self._given.system, task, before), prompt

    def _filled(self, text: str, task: JsonObject, before: list[JsonObject]) -> str:
        given = self._given
        names: JsonObject = {**given.names, "task": task, "goal": self._goal, "results": cast("list[Json]", before)}
        env = Environment(given.state, given.nodes, names, given.config)
        known = Names(frozenset(given.as_names), declared=frozenset(given.declared))
        template = compile_template(text, names=known, spelling=given.spelling)
        return template.render(env).text

    def _told(self, task: JsonObject, before: list[JsonObject]) -> str:
        parts = [f"Goal:\n{self._goal}", f"Your task: {text_of(task['title'])}\n{text_of(task['description'])}"]
        if before:
            done = "\n\n".join(f"{text_of(one['title'])}:\n{as_text(one['result'])}" for one in before)
            parts.append(f"What came of the tasks before:\n\n{done}")
        return "\n\n".join(parts)
