"""Sections of the settings, except those of single tools and models."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, get_args

from msgspec.structs import replace
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from pointsman.definition.model.base import Duration
from pointsman.models.prices import Price
from pointsman.ports import Quota, SecretRule
from pointsman.tools.egress.addresses import read_host
from pointsman.tools.mail import MAIL_PORTS, MailAddressInvalid, address_of
from pointsman.values import Seconds

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import EgressPolicy, Outgoing


HOST_NAME: Final = r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"


class ServerSettings(BaseModel):
    """Address and limits of the server. Flags of `pointsman serve` win."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    host: str = Field(default="127.0.0.1", min_length=1, max_length=253)
    port: int = Field(default=8000, ge=0, le=65_535)
    url: str = Field(default="", pattern=r"^(https?://[^/?#\s]+(/[^?#\s]*)?)?$", max_length=500)
    """Address at which people reach the server, such as `https://pointsman.example.org`; links in notices begin with
    it."""
    names: tuple[Annotated[str, Field(pattern=HOST_NAME)], ...] = ()
    """Host names of the server, for example behind a proxy. It then rejects other names and requires a key of every
    caller."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted."""
    drain: Duration = Duration(Seconds(1.0))
    """How long running steps may continue when the server stops. Steps that are not finished then are repeated."""
    body_bytes_max: int = Field(default=64_000_000, ge=1_000)
    """Limit of a request of a caller who may send files; other operations accept less."""
    webhook_bytes_max: int = Field(default=1_000_000, ge=1_000, le=16_000_000)
    """Limit of a call of a webhook, which is read before its signature can be checked."""
    connections: int = Field(default=10_000, ge=1)
    """Connections at once; fewer if the process may not open so many files."""
    connections_per_address: int = Field(default=1_000, ge=1)
    """Connections at once from one address; this machine and `proxies` are exempt."""


RoleName: TypeAlias = Literal["viewer", "operator", "editor", "admin"]
Algorithm: TypeAlias = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]


class OidcSettings(BaseModel):
    """An identity provider whose tokens authenticate callers."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    issuer: str = Field(min_length=1)
    """Issuer as in its tokens (`iss`)."""
    audience: str = Field(min_length=1)
    """Required audience of a token (`aud`)."""
    jwks: str = ""
    """Public keys of the provider: a file or an address; empty: the address from its discovery document."""
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256"), min_length=1)
    name_claim: str = "sub"
    role_claim: str = "roles"
    """A claim, or the path to it: `realm_access.roles`."""
    groups_claim: str = "groups"
    roles: dict[str, RoleName] = Field(default_factory=dict[str, RoleName])
    """Role name of the provider -> role here."""
    default_role: RoleName | None = None
    """Role for users without a role claim; None: access is denied."""
    leeway: Duration = Duration(Seconds(60.0))
    """Tolerated difference between the clocks."""
    client_id: str = ""
    """Client id of this server at the provider; empty: only tokens are accepted, browsers cannot log in with it."""
    client_secret: str = ""
    """The secret or its handle (`secret.NAME`); empty: the provider does not require one of a client with PKCE."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    """Scopes that a login requests."""
    label: str = Field(default="", max_length=60)
    """Name shown to people; empty: the host of the issuer."""


class AccessSettings(BaseModel):
    """Access of people and their rate limits."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    new_workflows: Literal["private", "everyone"] = "everyone"
    """Initial sharing of a new workflow."""
    login: Duration = Duration(Seconds(43_200.0))
    """How long a browser stays logged in."""
    oidc: OidcSettings | None = None
    requests_per_s: float = Field(default=200.0, gt=0)
    """Sustained rate of each caller with a key."""
    burst: int = Field(default=2_000, ge=1)
    """Requests of each caller that may arrive at once."""
    wrong_keys_per_minute: int = Field(default=60, ge=1)
    """Rate for each address, and the number allowed at once."""
    webhook_calls_per_minute: int = Field(default=6_000, ge=1)
    """Rate for each address, signed or not, and the number allowed at once."""
    streams: int = Field(default=500, ge=1)
    """Open streams of each caller."""
    starts_per_minute: int = Field(default=6_000, ge=1)
    """Rate at which each caller may start executions, and the number allowed at once."""


def _host(text: str) -> str:
    read_host(text)
    return text


class SecretSettings(BaseModel):
    """A secret of the settings. `NAME = "value"` is one without hosts, so documents cannot send it anywhere."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    value: str = Field(default="", repr=False)
    """Empty: the environment or the store has the value, and this section only limits its use."""
    hosts: tuple[Annotated[str, AfterValidator(_host)], ...] = ()
    """Hosts that http nodes may send it to: `api.example.com`, `*.example.com`, `http://localhost:8080`."""
    tools: tuple[str, ...] = ()
    """Patterns of tools whose parameters may name it."""
    workflows: tuple[str, ...] = ()
    """Saved workflows that may use it, by id or `id@revision`. Empty: any."""
    groups: tuple[str, ...] = ()
    """Only saved workflows whose `allowedGroups` are all among these may use it. Empty: any."""

    @property
    def rule(self) -> SecretRule:
        return SecretRule(hosts=self.hosts, tools=self.tools, workflows=self.workflows, groups=self.groups)


class VaultSettings(BaseModel):
    """Location of the vault keys. `POINTSMAN_VAULT_KEYS` in the environment wins, then `keys`, then the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    keys: tuple[str, ...] = Field(default=(), repr=False)
    """The newest first: new values are encrypted with it; all of them decrypt."""
    key_file: Path | None = None
    """One key per line, the newest first, readable only by its owner; None: `vault.key` beside the user's settings."""


class ConnectionSettings(BaseModel):
    """What admins may connect in the web app."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    mcp_commands: tuple[Annotated[tuple[str, ...], Field(min_length=1)], ...] = ()
    """Commands of MCP servers that admins may start on this machine, each a list of the program and its arguments.
    `*` in one stands for any text."""


class DocumentSettings(BaseModel):
    """Limits for reading, checking, converting or editing one document in a server."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    workers: int = Field(default=2, ge=0, le=64)
    """Processes that work on documents. 0: the server does it itself, without the limits below."""
    seconds: float = Field(default=5.0, gt=0, le=3600)
    """Processor time for one document, whatever its size."""
    seconds_per_mb: float = Field(default=5.0, ge=0, le=3600)
    """More processor time for each megabyte of the document."""
    memory_mb: int = Field(default=1500, ge=200, le=1_000_000)
    """Memory of each worker process."""


Level: TypeAlias = Literal["minimal", "standard", "full"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""From the least to the most detailed level."""
REDACTED: Final = (
    "*password*",
    "*passwd*",
    "*passphrase*",
    "*secret*",
    "*token",
    "*apikey*",
    "*privatekey*",
    "*credential*",
    "authorization",
    "cookie",
    "setcookie",
)


class ObservabilitySettings(BaseModel):
    """Redaction level of what is observed of executions, and fields that are always redacted."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    level: Level = "standard"
    """Level of workflows that do not declare one."""
    at_most: Level = "full"
    """Upper bound of the levels that workflows declare."""
    history: bool = True
    """Whether the leader adds ended executions to the tables of usage and of the search."""
    redact: tuple[str, ...] = REDACTED
    """Patterns of the names of fields whose values are always redacted; case, `-` and `_` are ignored."""

    def level_for(self, declared: Level | None) -> Level:
        """Return the level of an execution whose workflow declares this one."""
        return LEVELS[min(LEVELS.index(declared or self.level), LEVELS.index(self.at_most))]


class LogSettings(BaseModel):
    """Logs that `serve` and `worker` write to standard error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    access: bool = True
    """Whether requests are logged."""


class MetricsSettings(BaseModel):
    """Access to `/metrics`, and its granularity."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    key: str = Field(default="", repr=False)
    """Key that gives access to `/metrics` only; best a handle: `secret.NAME`."""
    workflows_max: int = Field(default=200, ge=0, le=10_000)
    """Number of workflows with metrics of their own; the others are counted together."""


class TelemetrySettings(BaseModel):
    """Destination of OpenTelemetry traces and metrics."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    endpoint: str
    """Collector, OTLP over HTTP: `http://localhost:4318`."""
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """Headers of every request; values may be handles: `secret.NAME`."""
    service: str = "pointsman"
    traces: bool = True
    metrics: bool = True
    sample: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """The share of executions that are traced."""
    propagate: bool = True
    """Whether http nodes and HTTP tools send the header `traceparent`."""


class RetentionRule(BaseModel):
    """How long ended executions are kept. `"30d"` is an age; a plain number is a count."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    age: Duration | None = None
    """Age since the end."""
    count: int | None = Field(default=None, ge=0)
    """How many executions of each workflow are kept, the newest."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        if isinstance(value, bool):
            return value
        return {"count": value} if isinstance(value, int) else {"age": value} if isinstance(value, str) else value


class StatusRetention(BaseModel):
    """Retention by status. Executions with an absent status are kept for ever."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    completed: RetentionRule | None = None
    failed: RetentionRule | None = None
    cancelled: RetentionRule | None = None


class Retention(StatusRetention):
    """Retention for all workflows, and for single ones by their ids."""

    workflows: dict[str, StatusRetention] = Field(default_factory=dict[str, StatusRetention])


INTERVAL_S_MIN: Final = 60.0


class RecipientSettings(BaseModel):
    """A person, or a channel of several people, who receives notices and may answer by their links."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field(min_length=1, max_length=200)
    """Name as in `approvers`; answers by a link are recorded under it."""
    address: str = ""
    """Mail address; only for the format `mail`."""
    groups: tuple[str, ...] = ()
    """Groups of the recipient, as in `approvers`."""
    language: str = ""
    """Language of the notices; empty: that of the destination."""

    @field_validator("address")
    @classmethod
    def _mail_address(cls, address: str) -> str:
        try:
            return address_of(address) if address else ""
        except MailAddressInvalid as why:
            raise ValueError(str(why)) from None


class NotificationSettings(BaseModel):
    """A destination of notices, and which ones it receives."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal["json", "slack", "teams", "mail"] = "json"
    """`json`: a signed webhook. `slack`, `teams`: a message for a webhook of that product. `mail`: by the server of
    `[mail]`."""
    url: str = ""
    """The address of the webhook; not for the format `mail`."""
    secret: str = Field(default="", repr=False)
    """Key that signs webhooks; best a handle: `secret.NAME`."""
    events: tuple[Literal["gate", "completed", "failed", "cancelled", "interrupted"], ...] = ("gate", "failed")
    workflows: tuple[str, ...] = ("*",)
    """Patterns of workflow ids."""
    recipients: tuple[RecipientSettings, ...] = ()
    """With the format `mail`, everybody who receives mail: about gates, if the gate asks them. With other formats at
    most one: the person or channel behind the address."""
    answer_links: bool = False
    """Whether notices of gates with `byLink` contain a link with which the recipient answers without an account."""
    link_lifetime: Duration = Duration(Seconds(7 * 86_400.0))
    """How long such a link is valid."""
    reminder_interval: Duration | None = None
    """How long after a notice of a gate that is still open a reminder follows; None: no reminders."""
    reminders_max: int = Field(default=3, ge=1, le=100)
    """How many reminders follow the notice of a gate."""
    digest_interval: Duration | None = None
    """Period whose notices are sent to each recipient as one message; None: each notice is sent at once."""
    language: str = ""
    """Language of gate messages; empty, or not translated by the author: the language of the execution."""
    private: bool = False
    """Whether addresses inside this network, and plain http, are allowed."""

    @model_validator(mode="after")
    def _consistent(self) -> NotificationSettings:
        is_mail = self.format == "mail"
        names = [recipient.name for recipient in self.recipients]
        if is_mail and (self.url or not names or not all(recipient.address for recipient in self.recipients)):
            raise ValueError("`mail` needs `recipients` with an `address` each, and has no `url`")
        if not is_mail and (not self.url or len(names) > 1 or any(one.address for one in self.recipients)):
            raise ValueError(f"`{self.format}` needs a `url`, and has at most one recipient, without `address`")
        if len(names) != len({*names}):
            raise ValueError("`recipients` has a name twice")
        if self.answer_links and not names:
            raise ValueError("`answer_links` needs `recipients`: answers are recorded under their names")
        if self.digest_interval is not None and self.format == "json":
            raise ValueError("`digest_interval` is for the formats slack, teams and mail")
        for name in ("reminder_interval", "digest_interval"):
            value: Duration | None = getattr(self, name)
            if value is not None and value.seconds < INTERVAL_S_MIN:
                raise ValueError(f"`{name}` is at least one minute")
        return self

    def recipient(self, name: str) -> RecipientSettings | None:
        """Return a recipient of mail by name; with other formats, whose notices name nobody, the only one."""
        if self.format != "mail" and not name:
            return next(iter(self.recipients), None)
        return next((one for one in self.recipients if one.name == name), None)


class PriceSettings(BaseModel):
    """Prices of a model, in US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    cache_read: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of input from the provider's cache; None: the price of other input."""
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @property
    def price(self) -> Price:
        return Price(**self.model_dump())


class HttpSettings(BaseModel):
    """Limits of outgoing calls whose address is data."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Allowed internal networks."""
    ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = ()
    """Allowed ports in addition to 80 and 443."""
    plain: bool = True
    """Whether http is allowed in addition to https."""
    timeout: Duration = Duration(Seconds(30.0))
    """Limit of a whole call."""
    body_bytes_max: int = Field(default=10_000_000, ge=1)

    def outgoing(self) -> Outgoing:
        """Return an HTTP client with these limits."""
        from pointsman.tools.egress.http_calls import Outgoing  # Deferred: it loads an HTTP client.

        return Outgoing(self.egress_policy(), timeout_s=self.timeout.seconds, body_bytes_max=self.body_bytes_max)

    def egress_policy(self) -> EgressPolicy:
        """Return the addresses that calls may go to."""
        from pointsman.tools.egress.http_calls import WEB_PORTS, EgressPolicy  # Deferred: it loads an HTTP client.

        return EgressPolicy(networks=self.networks, ports=WEB_PORTS | {*self.ports}, plain=self.plain)

    def mail_policy(self) -> EgressPolicy:
        """Return the addresses that an entered mail server may have."""
        return replace(self.egress_policy(), ports=MAIL_PORTS | {*self.ports})


class EmbeddingSettings(BaseModel):
    """Embedding model for the semantic search of memory."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    model: str
    """`provider:name`."""
    dimensions: int | None = Field(default=None, ge=1, le=16_000)
    """Dimensions to request of its vectors; None: the default of the model."""
    similarity_min: float = Field(default=0.25, ge=-1, le=1)
    """Minimum similarity of a match."""

    @field_validator("model")
    @classmethod
    def _named(cls, model: str) -> str:
        provider, _, name = model.partition(":")
        if not provider or not name:
            raise ValueError(f"{model!r} names no provider: write provider:name, such as openai:text-embedding-3-small")
        return model


class MemorySettings(BaseModel):
    """Limits of memory for each owner: an execution, a conversation, a person, a workflow, a shared name."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    keys_max: int = Field(default=10_000, ge=1, le=1_000_000)
    value_bytes_max: int = Field(default=1_000_000, ge=1, le=50_000_000)
    """Size of one value, as JSON."""
    earlier_values_max: int = Field(default=20, ge=0, le=1000)
    """How many earlier values of a key are kept."""
    embeddings: EmbeddingSettings | None = None
    """Semantic search; None: search by words only."""

    @property
    def quota(self) -> Quota:
        return Quota(self.keys_max, self.value_bytes_max, self.earlier_values_max)
