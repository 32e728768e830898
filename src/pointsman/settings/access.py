"""Settings of who is let in, and to what."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from pointsman.definition.model.quantities import Duration
from pointsman.values import Seconds

RoleName: TypeAlias = Literal["viewer", "operator", "editor", "admin"]
Algorithm: TypeAlias = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]


class OidcSettings(BaseModel):
    """An identity provider whose tokens let people in."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    issuer: str = Field(min_length=1)
    """As its tokens name it."""
    audience: str = Field(min_length=1)
    """For whom a token must be."""
    jwks: str = ""
    """Its keys: a file or an address; empty: where the issuer says that they are."""
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256"), min_length=1)
    name_claim: str = "sub"
    role_claim: str = "roles"
    """A claim, or the way to it: `realm_access.roles`."""
    groups_claim: str = "groups"
    roles: dict[str, RoleName] = Field(default_factory=dict[str, RoleName])
    """What the provider calls a role -> what it is here."""
    default_role: RoleName | None = None
    """Of whom no role is said; none: they are not let in."""
    leeway: Duration = Duration(Seconds(60.0))
    """How far clocks may be apart."""
    client_id: str = ""
    """What the provider calls this server; empty: browsers do not log in with it, only tokens are taken."""
    client_secret: str = ""
    """Itself, or its handle (`secret.NAME`); empty: the provider wants none of a client that proves itself (PKCE)."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    """What a login asks for."""
    label: str = Field(default="", max_length=60)
    """What people call it; empty: the host of the issuer."""


class AccessSettings(BaseModel):
    """Who is let in, and for how long."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    new_workflows: Literal["private", "everyone"] = "everyone"
    """Who sees a workflow beside its owner until that is changed."""
    login: Duration = Duration(Seconds(43_200.0))
    """How long a browser stays logged in."""
    oidc: OidcSettings | None = None
    requests_per_s: float = Field(default=200.0, gt=0)
    """Of each caller that is asked for a key, for long."""
    burst: int = Field(default=2_000, ge=1)
    """And at once."""
    wrong_keys_per_minute: int = Field(default=60, ge=1)
    """From each address; as many at once."""
    webhook_calls_per_minute: int = Field(default=6_000, ge=1)
    """From each address, signed or not; as many at once."""
    streams: int = Field(default=500, ge=1)
    """That each caller may have open."""
    starts_per_minute: int = Field(default=6_000, ge=1)
    """Executions that each caller may begin; as many at once."""
