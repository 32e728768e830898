"""A provider: its kind, address, keys, pacing and budget; and its settings.

Kinds have the names that pydantic-ai uses, and state their requirements and usual environment variables. A client is
imported at the first call of one of its models.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration
from pointsman.definition.problems import did_you_mean
from pointsman.models.failures import ModelUnusable
from pointsman.models.key_pool import DayLimit, Pacing
from pointsman.values import Seconds

if TYPE_CHECKING:
    import httpx2


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
    result: dict[str, str] = {}
    for name, kind in KINDS.items():
        variable = next((variable for variable in kind.variables if environment.get(variable)), None)
        if variable is not None and variable not in result.values():
            result[name] = variable
    return result


FROM_ENVIRONMENT: Final = "env:"
HANDLE: Final = "secret."
"""Prefix of secret handles. Handles are resolved earlier; a remaining one is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Connection data and limits of a provider."""

    kind: str = COMPATIBLE
    base_url: str = ""
    """Address, such as `http://127.0.0.1:8080/v1`. Empty: the usual address of its kind."""
    keys: tuple[str, ...] = field(default=(), repr=False)
    """API keys, or `env:NAME` for an environment variable. Empty: those of the environment, or no key."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    pacing: Pacing = field(default_factory=Pacing)
    day: DayLimit | None = None
    """Daily budget of each key."""
    shared: bool = False
    """Whether other processes use its keys too, so that calls are coordinated with them."""
    retries: int = 1
    """Retries of a call that was rate-limited or that the service could not answer, before any text was streamed."""
    api_version: str = ""
    region: str = ""
    http: httpx2.AsyncBaseTransport | None = field(default=None, repr=False)
    """Transport of requests; None: the network."""

    def key_variable(self, environment: Mapping[str, str] | None = None) -> str | None:
        """Return the environment variable of its kind that holds its key; None: none is set."""
        env = os.environ if environment is None else environment
        return next((name for name in KINDS[self.kind].keys if env.get(name, "").strip()), None)

    def resolved(self, label: str, environment: Mapping[str, str] | None = None) -> Provider:
        """Return the provider with keys and address from the environment. Raises `ModelUnusable` for missing ones."""
        env = os.environ if environment is None else environment
        kind = KINDS[self.kind]
        keys = [_key(label, key, env) for key in self.keys]
        if not keys:
            variable = self.key_variable(env)
            keys = [] if variable is None else [env[variable].strip()]
        if not keys and kind.needs_key:
            message = f"the provider {label!r} has no key"
            raise ModelUnusable(message, hint=f"Set {kind.keys[0]}, or `keys` under [providers.{label}].")
        base_url = self.base_url or env.get(kind.address, "")
        if not base_url and kind.needs_address:
            address_hint = f"{kind.address}, or " if kind.address else ""
            message = f"the provider {label!r} has no address"
            raise ModelUnusable(message, hint=f"Set {address_hint}`base_url` under [providers.{label}].")
        return replace(self, keys=tuple(keys), base_url=base_url)


def _key(label: str, key: str, environment: Mapping[str, str]) -> str:
    if key.startswith(HANDLE):
        message = f"a key of the provider {label!r} refers to the secret {key!r}, which is not set"
        raise ModelUnusable(message, hint=f"Set POINTSMAN_SECRET_{key.removeprefix(HANDLE)}, or `secrets`.")
    if not key.startswith(FROM_ENVIRONMENT):
        return key
    name = key.removeprefix(FROM_ENVIRONMENT)
    if not (value := environment.get(name, "").strip()):
        message = f"a key of the provider {label!r} refers to the variable {name!r}, which is not set"
        raise ModelUnusable(message, hint=f"Set it, or remove it from `keys` under [providers.{label}].")
    return value


class DaySettings(BaseModel):
    """The amount that each key may spend on one day (UTC), in all processes that share the store."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)


class ProviderSettings(BaseModel):
    """A provider of models: a known kind, or any service that speaks one of the known wires."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: str = ""
    """Absent: the kind of its name; with an address, a service that speaks the Chat Completions wire."""
    base_url: str = ""
    keys: tuple[Annotated[str, Field(min_length=1)], ...] = Field(default=(), repr=False)
    """Each the key itself, `env:NAME`, or a handle (`secret.NAME`)."""
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    strategy: Literal["fixed", "rotation"] = "fixed"
    interval: Duration = Duration(Seconds(0.0))
    key_interval: Duration = Duration(Seconds(0.0))
    concurrency: int | None = Field(default=None, ge=1)
    calls_max: int | None = Field(default=None, ge=0)
    day: DaySettings | None = None
    rest_max: Duration = Duration(Seconds(3600.0))
    shared: bool = False
    """All processes that share the store keep the pace together."""
    retries: int = Field(default=1, ge=0, le=10)
    api_version: str = ""
    region: str = ""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.kind and self.kind not in KINDS:
            near = did_you_mean(self.kind, KINDS)
            raise ValueError(f"{self.kind!r} is not a kind of provider. {near} Known: {', '.join(KINDS)}.")
        return self

    def provider(self, label: str) -> Provider:
        """Return the provider that the settings describe."""
        kind = self.kind or (COMPATIBLE if self.base_url or label not in KINDS else label)
        pacing = Pacing(
            interval_s=self.interval.seconds,
            key_interval_s=self.key_interval.seconds,
            concurrency=self.concurrency,
            calls_max=self.calls_max,
            rest_s_max=self.rest_max.seconds,
            rotates=self.strategy == "rotation",
        )
        return Provider(
            kind=kind,
            base_url=self.base_url,
            keys=self.keys,
            day=None if self.day is None else DayLimit(**self.day.model_dump()),
            headers=self.headers,
            pacing=pacing,
            shared=self.shared,
            retries=self.retries,
            api_version=self.api_version,
            region=self.region,
        )
