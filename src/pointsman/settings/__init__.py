"""Settings: one file, the environment, flags; later wins. Every value knows where it came from.

pointsman.toml (working directory, else the user's configuration)  <  POINTSMAN_*  <  flags
"""

from __future__ import annotations

import fnmatch
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Protocol, TypeAlias, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.policies import Limits
from pointsman.definition.problems import did_you_mean
from pointsman.errors import OperatorError
from pointsman.models.prices import Prices
from pointsman.models.provider import ProviderSettings
from pointsman.models.provider_kinds import configured_by
from pointsman.ports import SecretRule
from pointsman.settings.access import AccessSettings
from pointsman.settings.documents import DocumentSettings
from pointsman.settings.observability import LogSettings, MetricsSettings, ObservabilitySettings, TelemetrySettings
from pointsman.settings.sections import HttpSettings, MemorySettings, NotificationSettings, PriceSettings, Retention
from pointsman.settings.server import ServerSettings
from pointsman.settings.vault import SecretSettings, VaultSettings
from pointsman.tools.client_tools import ClientToolDescription
from pointsman.tools.commands.config import NAME as COMMAND_NAME
from pointsman.tools.commands.config import CommandDescription
from pointsman.tools.files.config import FileSettings
from pointsman.tools.http.config import NAME, HttpToolDescription
from pointsman.tools.mail.config import MailSettings
from pointsman.tools.mcp.config import NAME as MCP_NAME
from pointsman.tools.mcp.config import McpServerDescription
from pointsman.tools.pages.config import PageSettings
from pointsman.tools.sandbox.config import SandboxSettings
from pointsman.tools.search.config import SearchSettings
from pointsman.tools.sql.config import NAME as SQL_NAME
from pointsman.tools.sql.config import DatabaseDescription

FILE: Final = "pointsman.toml"
PREFIX: Final = "POINTSMAN_"
HANDLE: Final = "secret."
PRICED: Final = r"^[^:\s]+:\S+$"
"""How a model is named that has a price: `provider:model`."""


class SettingsInvalid(OperatorError):
    """The settings file or an environment variable cannot be used."""

    code: ClassVar[str] = "settings-invalid"


HttpTools: TypeAlias = dict[Annotated[str, Field(pattern=NAME)], HttpToolDescription]
"""By name."""


def _secret(value: object) -> object:
    return {"value": value} if isinstance(value, str) else value


if TYPE_CHECKING:
    Secret: TypeAlias = SecretSettings | str
    """As it may be given; read, it is a `SecretSettings` (`Settings.own_secrets`)."""
else:
    Secret = Annotated[SecretSettings, BeforeValidator(_secret)]


class KeptSecrets(Protocol):
    """Secrets that are kept elsewhere than in the settings."""

    @property
    def seen(self) -> frozenset[str]:
        """The values of all that were known, so that they are never told. Another set once there is more in it."""
        ...

    async def refresh(self) -> None:
        """Look whether they have changed. Cheap."""
        ...

    def secret(self, name: str) -> str | None:
        """The secret of that name; None: there is none. Raises where there is one that cannot be read."""
        ...

    def rule(self, name: str) -> SecretRule:
        """Where documents may send the secret of that name, whoever has its value."""
        ...


class Settings(BaseModel):
    """What an operator decides for one installation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    store: str = ""
    """Address of the store; empty: a SQLite file in the user's data directory."""
    model: str = ""
    """Model of agents that name none; empty: such agents cannot run. `scripted`: the scripted model answers every
    agent, whatever model a workflow names."""
    models: dict[str, str] = Field(default_factory=dict[str, str])
    """Purpose (`generation`, `validation`, `judge`, …) -> the model of agents of that purpose that name none."""
    temperatures: dict[str, Annotated[float, Field(ge=0, le=2)]] = Field(default_factory=dict[str, float])
    """Purpose -> the temperature of calls of that purpose that name none."""
    fallback: tuple[str, ...] = ()
    """Models to ask where one cannot answer whose agent names no others, in order."""
    language: str = "en"
    pipeline: str = "agentforge"
    """The workflow that `POST /run` and `run --command` run: the saved one, else the built-in one of that name."""
    delays: bool = True
    """False: the pauses before steps (`execution.delay`) are left out. For tests, and models without rate limits."""
    providers: dict[str, ProviderSettings] = Field(default_factory=dict[str, ProviderSettings])
    prices: dict[Annotated[str, Field(pattern=PRICED)], PriceSettings] = Field(default_factory=dict[str, PriceSettings])
    """What models cost here, by `provider:model` or `provider:*`, before the list of prices is asked."""
    variables: dict[str, str] = Field(default_factory=dict[str, str])
    """What `${NAME}` in definitions stands for."""
    variables_from_env: tuple[str, ...] = ("AGENT_ID_*", "MODEL")
    """Patterns of environment variables that definitions may name."""
    values: dict[str, object] = Field(default_factory=dict[str, object])
    """Read-only settings of expressions (`config.<name>`)."""
    secrets: dict[str, Secret] = Field(default_factory=dict[str, "Secret"], repr=False)
    """What handles (`secret.NAME`) stand for, and where they may go; `POINTSMAN_SECRET_NAME` wins."""
    vault: VaultSettings = VaultSettings()
    """The keys of the secrets that the store keeps."""
    notifications: dict[str, NotificationSettings] = Field(default_factory=dict[str, NotificationSettings])
    """Addresses that are told what happens, by name."""
    limits: Limits = Field(default_factory=Limits)
    """What no execution may exceed, whatever its workflow says and whoever raises a limit."""
    http: HttpSettings = HttpSettings()
    """Where calls may go whose address is data: http nodes, HTTP tools."""
    memory: MemorySettings = MemorySettings()
    """How much is remembered."""
    tools: HttpTools = Field(default_factory=dict[str, HttpToolDescription])
    """HTTP tools."""
    commands: dict[Annotated[str, Field(pattern=COMMAND_NAME)], CommandDescription] = Field(
        default_factory=dict[str, CommandDescription]
    )
    """Programs of this machine as tools, by name. They run in the sandbox."""
    mcp: dict[Annotated[str, Field(pattern=MCP_NAME)], McpServerDescription] = Field(
        default_factory=dict[str, McpServerDescription]
    )
    """MCP servers, by name."""
    sql: dict[Annotated[str, Field(pattern=SQL_NAME)], DatabaseDescription] = Field(
        default_factory=dict[str, DatabaseDescription]
    )
    """Databases that the tool `sql` may read, by name."""
    search: SearchSettings | None = None
    """The engine of the tool `web_search`."""
    pages: PageSettings = PageSettings()
    """What the tool `fetch_page` may fetch."""
    allow_email_sending: bool = False
    """Whether the tool `send_email` may send anything."""
    mail: MailSettings | None = None
    """By which server it does."""
    client_tools: dict[Annotated[str, Field(pattern=NAME)], ClientToolDescription] = Field(
        default_factory=dict[str, ClientToolDescription]
    )
    """Tools that the caller carries out."""
    files: FileSettings | None = None
    """Where executions keep files."""
    authoring: Literal["off", "viewer", "operator", "editor"] = "off"
    """What agents may do to saved workflows by tools, under the name of whoever started them."""
    tool_files: tuple[str, ...] = ()
    """Files with more of them, as `pointsman tools import` writes them."""
    sandbox: SandboxSettings = SandboxSettings()
    """What code nodes and commands run in."""
    agents: dict[str, AgentConfig] = Field(default_factory=dict[str, AgentConfig])
    """Agents of this installation, by id."""
    retention: Retention = Retention()
    """How long executions that ended are kept, for `pointsman gc`."""
    observability: ObservabilitySettings = ObservabilitySettings()
    """How much is told of executions, and what never is."""
    logs: LogSettings = LogSettings()
    """What `serve` and `keep` write to standard error."""
    metrics: MetricsSettings = MetricsSettings()
    """Who may read `/metrics`, and how fine it is."""
    telemetry: TelemetrySettings | None = None
    """Where OpenTelemetry traces and metrics go."""

    access: AccessSettings = AccessSettings()
    """Who is let in by the server."""
    server: ServerSettings = ServerSettings()
    """Where the server listens, under which names, and how it ends."""
    documents: DocumentSettings = DocumentSettings()
    """What a document of a caller may cost the server."""
    _kept: KeptSecrets | None = PrivateAttr(default=None)
    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict[str, str])

    @property
    def sources(self) -> Mapping[str, str]:
        """Where each that is set was set: a file, a variable, a flag."""
        return self._sources

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite:///{data_directory() / 'pointsman.db'}"

    def kept_at(self, store: str | None) -> Settings:
        """The same with another store; None: with its own. Raises `SettingsInvalid` for an empty address: a variable
        that is not set must not send anybody to another store than the one that was meant."""
        if store == "":
            raise SettingsInvalid("the address of the store is empty", hint="Leave it out for a file of yours.")
        return self if store is None else self.model_copy(update={"store": store})

    def with_kept(self, kept: KeptSecrets) -> Settings:
        """The same, and these secrets behind their own."""
        found = self.model_copy()
        found._kept = kept
        return found

    def served_at(self, host: str | None, port: int | None) -> Settings:
        """The same, where flags say where to listen."""
        flags = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
        if not flags:
            return self
        told = [self.sources.get("server", "default"), *(f"--{name}" for name in flags)]
        found = self.model_copy(update={"server": self.server.model_copy(update=flags)})
        return found.with_sources({**self.sources, "server": ", ".join(told)})

    def with_sources(self, sources: Mapping[str, str]) -> Settings:
        """The same, and where each that is set was set."""
        found = self.model_copy()
        found._sources = sources
        return found

    @property
    def own_secrets(self) -> Mapping[str, SecretSettings]:
        """The secrets of these settings, and the rules of others."""
        return cast("Mapping[str, SecretSettings]", self.secrets)

    @property
    def kept(self) -> KeptSecrets | None:
        """The secrets behind those of the settings."""
        return self._kept

    @property
    def price_list(self) -> Prices:
        """The operator's own prices, before those that everybody pays."""
        return Prices({name: one.price for name, one in self.prices.items()})

    def granted(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables definitions may use, with their values."""
        env = os.environ if environment is None else environment
        found = {
            name: value
            for name, value in env.items()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.variables_from_env)
        }
        return {**found, **self.variables}

    async def refresh(self) -> None:
        """Before secrets are asked for: look whether those kept elsewhere have changed."""
        if self._kept is not None:
            await self._kept.refresh()

    def secret(self, name: str, environment: Mapping[str, str] | None = None) -> str | None:
        """The secret of that name: of the environment, these settings, or kept behind them; None: there is none.
        Raises what `KeptSecrets.secret` raises."""
        env = os.environ if environment is None else environment
        known = self.own_secrets.get(name)
        own = env.get(f"{PREFIX}SECRET_{name}") or (known.value if known is not None else "")
        return own or (None if self._kept is None else self._kept.secret(name))

    def rule(self, name: str) -> SecretRule:
        """Where documents may send the secret of that name: as these settings say, else as the store does."""
        known = self.own_secrets.get(name)
        if known is not None and known.rule != SecretRule():
            return known.rule
        return SecretRule() if self._kept is None else self._kept.rule(name)

    def resolved(self, secret: str) -> str | None:
        """A secret that may be a handle; None: there is none of that name."""
        return self.secret(secret.removeprefix(HANDLE)) if secret.startswith(HANDLE) else secret or None

    def has_provider(self, environment: Mapping[str, str] | None = None) -> bool:
        """Whether any real model could be asked."""
        return bool(self.providers or self.providers_by_key(environment))

    def providers_by_key(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Provider -> the environment variable that configures it."""
        return configured_by(os.environ if environment is None else environment)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and for each key that is set where it was set."""

    settings: Settings
    sources: Mapping[str, str] = field(default_factory=dict[str, str])


def data_directory() -> Path:
    """Where this user's data are kept; made by whoever writes there."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "pointsman"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "pointsman"


def make_data_directory() -> None:
    """Raises `SettingsInvalid` where it cannot be made."""
    try:
        data_directory().mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise SettingsInvalid(
            f"the data directory {data_directory()} cannot be made: {why.strerror}",
            hint="Say where executions are kept: --store sqlite:///file.db.",
        ) from None


def config_directory() -> Path:
    """Where this user's settings are."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "pointsman"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "pointsman"


def load_settings(*, flags: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None) -> Loaded:
    """Read file, environment and flags. Raises `SettingsInvalid`, which names the key and its source."""
    env = os.environ if environment is None else environment
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for path in (config_directory() / FILE, *_here()):
        for key, value in _file(path).items():
            values[key], sources[key] = value, str(path)
    for key in ("store", "model", "language", "delays"):
        if (value := env.get(PREFIX + key.upper())) is not None:
            values[key], sources[key] = value, PREFIX + key.upper()
    for key, value in (flags or {}).items():
        if value is not None:
            values[key], sources[key] = value, f"--{key}"
    try:
        return Loaded(Settings.model_validate(values).with_sources(sources), sources)
    except ValidationError as why:
        first = why.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        source = sources.get(str(first["loc"][0]), FILE) if first["loc"] else FILE
        unknown = first["type"] == "extra_forbidden"
        message = "there is no such setting" if unknown else first["msg"]
        near = did_you_mean(key, Settings.model_fields) if unknown else ""
        raise SettingsInvalid(
            f"{key} in {source}: {message}", hint=f"{near} See docs/reference/settings.md.".strip()
        ) from None


def _here() -> list[Path]:
    """The file in the working directory, which may have been deleted meanwhile."""
    try:
        return [Path.cwd() / FILE]
    except FileNotFoundError:
        return []


def _file(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as why:
        raise SettingsInvalid(f"{path} cannot be read: {why}", hint="Repair it, or move it away.") from None
