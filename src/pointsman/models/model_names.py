"""Known model names, without asking a provider.

The price list contains the models of the large providers. Self-hosted servers may use any names.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pointsman.extras import is_importable
from pointsman.models.provider_kinds import KINDS

LISTED: Final = {
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "google-gla": "google",
    "google-vertex": "google",
    "groq": "groq",
    "mistral": "mistral",
    "deepseek": "deepseek",
}
"""Provider -> id in the price list, which has nearly all of its models."""
OTHERS: Final = frozenset(
    {"alibaba", "bedrock-mantle", "cerebras", "cohere", "crusoe", "fireworks", "gateway", "github", "github-copilot"}
    | {"google-cloud", "google-gla", "google-vertex", "grok", "heroku", "huggingface", "litellm", "meta", "moonshotai"}
    | {"nebius", "ovhcloud", "sambanova", "snowflake", "together", "vercel", "xai", "zai"}
)
"""Providers without a kind of their own: pydantic-ai configures them from the environment."""
_FAMILIES: Final = {
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "google",
    "mistral": "mistral",
    "codestral": "mistral",
    "deepseek": "deepseek",
}
"""Beginning of a model name -> provider."""


def is_provider(name: str) -> bool:
    """Return whether a provider of this name can be used without settings."""
    return name in KINDS or name in OTHERS


@lru_cache(maxsize=1024)
def is_listed(provider: str, model: str) -> bool:
    """Return whether the list has this model, does not cover its provider, or is not installed."""
    listed = LISTED.get(provider)
    if listed is None or not is_importable("genai_prices") or model.startswith("ft:") or f"'{model}'" in _text():
        return True
    from genai_prices.data import providers  # Takes 0.25 s: only for names that the text of the list lacks.

    found = next((one for one in providers if one.id == listed), None)
    return found is None or found.find_model(model.lower()) is not None


@cache
def _text() -> str:
    spec = find_spec("genai_prices")
    if spec is None or spec.origin is None:
        return ""
    return Path(spec.origin).with_name("data.py").read_text(encoding="utf-8")


@cache
def listed_models(provider: str) -> tuple[str, ...]:
    """Return the models of a provider in the list; none if it is not installed."""
    if not is_importable("genai_prices"):
        return ()
    from genai_prices.data import providers

    listed = LISTED.get(provider, provider)
    return tuple(sorted(model.id for one in providers if one.id == listed for model in one.models))


def full_name(bare: str) -> str | None:
    """Return `provider:model` for a name without provider, if the list has it at one of the large providers."""
    if not is_importable("genai_prices"):
        return None
    families = [provider for start, provider in _FAMILIES.items() if bare.lower().startswith(start)]
    for provider in dict.fromkeys((*families, "openai", "anthropic", "google", "mistral", "deepseek")):
        if is_listed(provider, bare):
            return f"{provider}:{bare}"
    return None
