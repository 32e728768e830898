"""Kinds of providers: their requirements and their usual environment variables.

Kinds have the names that pydantic-ai uses. A client is imported at the first call of one of its models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

COMPATIBLE: Final = "openai-compatible"
"""Any service with the Chat Completions wire format, at a custom address."""
COMPATIBLE_RESPONSES: Final = "openai-compatible-responses"
"""Any service with the Responses wire format, at a custom address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Requirements of a kind of provider."""

    keys: tuple[str, ...] = ()
    """Environment variables for its key; the first one that is set counts."""
    address: str = ""
    """Environment variable for its address."""
    needs_key: bool = True
    needs_address: bool = False
    extra: str = "agents"
    """Extra that installs its client: `pip install 'pointsman[EXTRA]'`."""
    client: str = "openai"
    """Module of its client."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables that configure the kind; one of them is enough."""
        return self.keys if self.needs_key or not self.address else (self.address,)


_OPENAI: Final = Kind(keys=("OPENAI_API_KEY",), address="OPENAI_BASE_URL")

KINDS: Final[Mapping[str, Kind]] = {
    "openai": _OPENAI,
    "openai-chat": _OPENAI,
    "openai-responses": _OPENAI,
    "azure": Kind(keys=("AZURE_OPENAI_API_KEY",), address="AZURE_OPENAI_ENDPOINT", needs_address=True),
    "anthropic": Kind(keys=("ANTHROPIC_API_KEY",), address="ANTHROPIC_BASE_URL", extra="anthropic", client="anthropic"),
    "google": Kind(keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"), extra="google", client="google.genai"),
    "groq": Kind(keys=("GROQ_API_KEY",), address="GROQ_BASE_URL", extra="groq", client="groq"),
    "mistral": Kind(keys=("MISTRAL_API_KEY",), extra="mistral", client="mistralai"),
    "bedrock": Kind(keys=("AWS_BEARER_TOKEN_BEDROCK",), needs_key=False, extra="bedrock", client="boto3"),
    "ollama": Kind(keys=("OLLAMA_API_KEY",), address="OLLAMA_BASE_URL", needs_key=False, needs_address=True),
    "vllm": Kind(keys=("VLLM_API_KEY",), address="VLLM_BASE_URL", needs_key=False, needs_address=True),
    "openrouter": Kind(keys=("OPENROUTER_API_KEY",)),
    "deepseek": Kind(keys=("DEEPSEEK_API_KEY",)),
    COMPATIBLE: Kind(needs_key=False, needs_address=True),
    COMPATIBLE_RESPONSES: Kind(needs_key=False, needs_address=True),
}

KEYS_OF_PROVIDERS: Final = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.variables))
"""Environment variables of all kinds; if none is set, no provider is configured by the environment."""


def configured_by(environment: Mapping[str, str]) -> dict[str, str]:
    """Return kind -> the variable that configures it. If kinds share a variable, only the first is returned."""
    found: dict[str, str] = {}
    for name, kind in KINDS.items():
        variable = next((variable for variable in kind.variables if environment.get(variable)), None)
        if variable is not None and variable not in found.values():
            found[name] = variable
    return found
