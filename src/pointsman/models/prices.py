"""The price list of `genai-prices`: prices of calls, and names of models without asking a provider.

own price of `provider:model` ─ else of `provider:*` ─ else the list, which is read offline ─ else None: unknown

The list contains the models of the large providers. Self-hosted servers may use any names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from pointsman.engine.reports import Usage
from pointsman.extras import is_importable
from pointsman.models.provider import KINDS

LIST: Final = "genai-prices"
PER: Final = 1_000_000
"""Prices are per this number of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float = 0.0
    cache_read: float | None = None
    """For input tokens read from the provider's cache; None: the price of other input."""
    cache_write: float | None = None

    def of(self, usage: Usage) -> float:
        """Return the cost of a call."""
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        fresh = max(0, usage.input_tokens - read - written)
        cached = read * (self.input if self.cache_read is None else self.cache_read)
        cached += written * (self.input if self.cache_write is None else self.cache_write)
        return (fresh * self.input + cached + usage.output_tokens * self.output) / PER


class Prices:
    """The operator's prices, with the list as fallback."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        """`own`: prices by `provider:model`, or `provider:*` for all other models of a provider."""
        self._own = own or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prices) and self._own == other._own

    def __hash__(self) -> int:
        return hash(tuple(self._own))

    def own(self, provider: str, model: str) -> Price | None:
        """Return the operator's price; None: there is none."""
        return self._own.get(f"{provider}:{model}") or self._own.get(f"{provider}:*")

    def paid(self, provider: str, model: str, usage: Usage) -> Usage:
        """Return the usage, with the cost at the operator's price if there is one."""
        price = self.own(provider, model)
        return usage if price is None else replace(usage, cost_usd=price.of(usage))

    def cost_usd(self, provider: str, model: str, *, input_tokens: int, output_tokens: int) -> float | None:
        """Return the cost of a call; None: unknown."""
        price = self.own(provider, model)
        if price is not None:
            return price.of(Usage(input_tokens=input_tokens, output_tokens=output_tokens))
        return cost_usd(provider, model, input_tokens=input_tokens, output_tokens=output_tokens)


def cost_usd(
    provider: str,
    model: str,
    *,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
) -> float | None:
    """Return the price in US dollars; None if the list lacks the model or is not installed. Input tokens include cached
    ones."""
    if not model or not _has_price(provider, model):
        return None
    from genai_prices import Usage as Used
    from genai_prices import calc_price

    try:
        usage = Used(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read_tokens,
            cache_write_tokens=cache_write_tokens,
        )
        return float(calc_price(usage, model, provider_id=provider or None).total_price)
    except LookupError:
        return None


@lru_cache(maxsize=1024)
def _has_price(provider: str, model: str) -> bool:
    """Return whether the list has the model. The list itself searches all of its models for a name that it lacks."""
    if not is_importable("genai_prices"):
        return False
    from genai_prices import Usage as Used  # Takes 0.5 s: imported only after a real model has answered.
    from genai_prices import calc_price

    try:
        calc_price(Used(), model, provider_id=provider or None)
    except LookupError:
        return False
    return True


def list_version() -> str | None:
    """Return the version of the installed list; None: it is not installed."""
    return version(LIST) if is_importable("genai_prices") else None


def list_day() -> date | None:
    """Return the day the list was installed; its prices are not newer. None: the file times are unknown."""
    found = find_spec("genai_prices")
    if found is None or found.origin is None:
        return None
    day = datetime.fromtimestamp(Path(found.origin).stat().st_mtime, UTC).date()
    return day if day.year >= _FIRST_YEAR else None  # Reproducible images set a fixed, old file time.


_FIRST_YEAR: Final = 2025


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
    # Takes 0.25 s: only for names that the text of the list lacks. Type checkers would evaluate `genai_prices.data`.
    from genai_prices.data_snapshot import get_snapshot

    found = next((provider for provider in get_snapshot().providers if provider.id == listed), None)
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
    from genai_prices.data_snapshot import get_snapshot

    listed, providers = LISTED.get(provider, provider), get_snapshot().providers
    return tuple(sorted(model.id for provider in providers if provider.id == listed for model in provider.models))


def full_name(bare: str) -> str | None:
    """Return `provider:model` for a name without provider, if the list has it at one of the large providers."""
    if not is_importable("genai_prices"):
        return None
    families = [provider for start, provider in _FAMILIES.items() if bare.lower().startswith(start)]
    for provider in dict.fromkeys((*families, "openai", "anthropic", "google", "mistral", "deepseek")):
        if is_listed(provider, bare):
            return f"{provider}:{bare}"
    return None
