"""How much a model may think, in the words of each provider. Slow to import, like `wire`."""

from __future__ import annotations

from typing import Final, Literal, cast

from pydantic_ai.settings import ModelSettings

from pointsman.ports import Thinking

_LEVELS: Final = (("low", 1_024), ("medium", 8_192))
"""The level that a budget of so many tokens is, for providers that know no budgets; above these it is `high`."""

Level = Literal["minimal", "low", "medium", "high"]


def thinking_settings(thinking: Thinking, system: str) -> ModelSettings:
    """`system` is the provider's name. A budget goes to those that know budgets, to others as the nearest level."""
    settings = ModelSettings()
    if thinking.chat_template_kwargs is not None:
        settings["extra_body"] = {"chat_template_kwargs": thinking.chat_template_kwargs}
    if thinking.enabled is False:
        settings["thinking"] = False
    elif thinking.budget is not None and thinking.budget >= 0:
        settings |= _budgeted(thinking.budget, system)
    elif thinking.level is not None:
        settings["thinking"] = cast("Level", thinking.level.lower())
    elif thinking.enabled:
        settings["thinking"] = True
    return settings


def _budgeted(budget: int, system: str) -> ModelSettings:
    if not budget:
        return ModelSettings(thinking=False)
    match system:
        case "anthropic":
            own = {"anthropic_thinking": {"type": "enabled", "budget_tokens": budget}}
        case "google" | "google-gla" | "google-vertex" | "google-cloud":
            own = {"google_thinking_config": {"thinking_budget": budget, "include_thoughts": True}}
        case _:
            level = next((name for name, most in _LEVELS if budget <= most), "high")
            return ModelSettings(thinking=cast("Level", level))
    return cast("ModelSettings", own)
