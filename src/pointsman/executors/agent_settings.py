"""Settings of an agent node, read from the JSON of its config."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from pointsman.engine.actions import WorkSpec
from pointsman.engine.failures import Failure
from pointsman.executors.failures import WorkRefused
from pointsman.models.transcript import text_of
from pointsman.ports import ReasoningEffort
from pointsman.values import JsonObject

ITERATIONS: Final = 10
"""Most rounds of model and tools if the agent sets no limit."""


class HistorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the earlier conversation an agent receives. The plan decides how far back it goes."""

    window: int | None = None
    summarize: bool | None = None
    tokens: int | None = None
    scopes: tuple[str, ...] | None = None


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The part of an agent's config that its loop needs. Other keys are ignored here."""

    model: str | None = None
    fallback: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    max_iterations: int | None = None
    output_schema: JsonObject | None = None
    result: Literal["text", "json", "auto"] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    key_index: int | None = None
    purpose: str | None = None
    thinking: ReasoningEffort | None = None
    memory: HistorySettings = HistorySettings()
    guardrails: JsonObject | None = None

    @property
    def iterations_max(self) -> int:
        return ITERATIONS if self.max_iterations is None else self.max_iterations


def agent_settings(spec: WorkSpec) -> AgentSettings:
    """Raises `WorkRefused` for a config that no check can have passed."""
    try:
        said = msgspec.convert(spec.config, AgentSettings)
    except msgspec.ValidationError as why:
        message = f"the config of {spec.node!r} cannot be used: {why}"
        raise WorkRefused(Failure(code="config-wrong", message=message)) from why
    if said.result is None and spec.settings.get("auto") is True:
        return msgspec.structs.replace(said, result="auto")
    return said


def model_of(spec: WorkSpec, settings: AgentSettings) -> str:
    """Return the agent's model, else the workflow's; empty: the installation chooses."""
    return settings.model or text_of(spec.settings.get("defaultModel"))
