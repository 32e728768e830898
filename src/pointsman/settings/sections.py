"""The sections of the settings that belong to no tool or model of their own."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pointsman.definition.model.quantities import Duration
from pointsman.models.prices import Price
from pointsman.ports import Quota
from pointsman.values import Seconds


class Keep(BaseModel):
    """How long executions that ended are kept. `"30d"` is an age, a number alone a count."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    age: Duration | None = None
    """Since they ended."""
    count: int | None = Field(default=None, ge=0)
    """The newest of each workflow."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        if isinstance(value, bool):
            return value
        return {"count": value} if isinstance(value, int) else {"age": value} if isinstance(value, str) else value


class StatusRetention(BaseModel):
    """By how they ended. What is absent is kept for ever."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    completed: Keep | None = None
    failed: Keep | None = None
    cancelled: Keep | None = None


class Retention(StatusRetention):
    """For all workflows, and for single ones by their ids."""

    workflows: dict[str, StatusRetention] = Field(default_factory=dict[str, StatusRetention])


class NotificationSettings(BaseModel):
    """Where to post what happens, and what of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    url: str
    secret: str = Field(default="", repr=False)
    """Signs what is posted; best a handle: `secret.NAME`."""
    events: tuple[Literal["gate", "completed", "failed", "cancelled", "interrupted"], ...] = ("gate", "failed")
    workflows: tuple[str, ...] = ("*",)
    """Patterns of ids."""
    language: str = ""
    """Of what a gate asks, for whoever reads there; empty, or not written by the author: that of the execution."""
    private: bool = False
    """Addresses inside this network, and plain http, are meant."""


class PriceSettings(BaseModel):
    """What a model costs: US dollars for a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    cache_read: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Of the input what the provider had read before; absent: as the rest of it."""
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @property
    def price(self) -> Price:
        return Price(**self.model_dump())


class HttpSettings(BaseModel):
    """Where calls may go whose address is data, and how much may come of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Inside networks that are meant."""
    ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = ()
    """Beside 80 and 443."""
    plain: bool = True
    """Whether http is allowed beside https."""
    timeout: Duration = Duration(Seconds(30.0))
    """Of a whole call."""
    body_bytes_max: int = Field(default=10_000_000, ge=1)


class EmbeddingSettings(BaseModel):
    """Which model says what remembered values mean."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    model: str
    """`provider:name`."""
    dimensions: int | None = Field(default=None, ge=1, le=16_000)
    """How many numbers its vectors shall have; absent: as many as they have."""
    similarity_min: float = Field(default=0.25, ge=-1, le=1)
    """What means less like a query is not found by it."""

    @field_validator("model")
    @classmethod
    def _named(cls, model: str) -> str:
        provider, _, name = model.partition(":")
        if not provider or not name:
            raise ValueError(f"{model!r} names no provider: write provider:name, such as openai:text-embedding-3-small")
        return model


class MemorySettings(BaseModel):
    """How much is remembered, for each owner: an execution, a conversation, a person, a workflow, a shared name."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    keys_max: int = Field(default=10_000, ge=1, le=1_000_000)
    value_bytes_max: int = Field(default=1_000_000, ge=1, le=50_000_000)
    """Of one value, as JSON."""
    earlier_values_max: int = Field(default=20, ge=0, le=1000)
    """Of one key: how many values that it had before are kept."""
    embeddings: EmbeddingSettings | None = None
    """Searching by meaning; absent: by words alone."""

    @property
    def quota(self) -> Quota:
        return Quota(self.keys_max, self.value_bytes_max, self.earlier_values_max)
