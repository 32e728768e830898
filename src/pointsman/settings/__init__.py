"""Settings: one file, the environment, flags; later wins. Every value knows where it came from.

pointsman.toml (working directory, else the user's configuration)  <  POINTSMAN_*  <  flags
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError, model_validator
from typing_extensions import TypedDict

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.policies import Limits
from pointsman.definition.problems import did_you_mean
from pointsman.errors import OperatorError
from pointsman.models.prices import Prices
from pointsman.models.provider import ProviderSettings, configured_by
from pointsman.ports import SecretRule
from pointsman.settings.entered import ENTERABLE, EnteredSettings
from pointsman.settings.sections import (
    AccessSettings,
    ConnectionSettings,
    DocumentSettings,
    HttpSettings,
    LogSettings,
    MemorySettings,
    MetricsSettings,
    NotificationSettings,
    ObservabilitySettings,
    PriceSettings,
    Retention,
    SecretSettings,
    ServerSettings,
    TelemetrySettings,
    VaultSettings,
)
from pointsman.store.errors import masked_address
from pointsman.tools.client_tools import ClientToolDescription
from pointsman.tools.commands import NAME as COMMAND_NAME
from pointsman.tools.commands import CommandDescription
from pointsman.tools.files import FileSettings
from pointsman.tools.http.tool import NAME, HttpToolDescription
from pointsman.tools.mail import MailSettings, OutgoingMail
from pointsman.tools.mcp.server import NAME as MCP_NAME
from pointsman.tools.mcp.server import McpServerDescription
from pointsman.tools.pages import PageSettings
from pointsman.tools.sandbox.limits import SandboxSettings
from pointsman.tools.sql.queries import NAME as SQL_NAME
from pointsman.tools.sql.queries import DatabaseDescription
from pointsman.tools.web_search import SearchSettings
from pointsman.values import Json

FILE: Final = "pointsman.toml"
PREFIX: Final = "POINTSMAN_"
HANDLE: Final = "secret."
ENTERED: Final = "app"
"""Source of a setting that an admin entered."""
LOG: Final = logging.getLogger("pointsman")
PRICED: Final = r"^[^:\s]+:\S+$"
"""Pattern of a model name with a price: `provider:model`."""


class SettingsInvalid(OperatorError):
    """The settings file or an environment variable cannot be used."""

    code: ClassVar[str] = "settings-invalid"


HttpTools: TypeAlias = dict[Annotated[str, Field(pattern=NAME)], HttpToolDescription]
"""Tool by name."""


def _as_secret(value: object) -> object:
    return {"value": value} if isinstance(value, str) else value


if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    Secret: TypeAlias = SecretSettings | str
    """Type of the input; after validation it is a `SecretSettings` (`Settings.own_secrets`)."""
else:
    Secret = Annotated[SecretSettings, BeforeValidator(_as_secret)]


class SecretSource(Protocol):
    """Secrets that are kept outside the settings, such as those of the store."""

    @property
    def seen(self) -> frozenset[str]:
        """Values of all secrets ever read, so that they can be redacted. A new set when values are added."""
        ...

    @property
    def is_fresh(self) -> bool:
        """Return whether `refresh` would read nothing now."""
        ...

    async def refresh(self, *, at_once: bool = False) -> None:
        """Read changed secrets again. Cheap. `at_once`: also if they were read a moment ago."""
        ...

    def secret(self, name: str) -> str | None:
        """Return the value of a secret; None if it does not exist. Raises an error if it cannot be read."""
        ...

    def rule(self, name: str) -> SecretRule:
        """Return where documents may send the secret, wherever its value is kept."""
        ...


class Settings(BaseModel):
    """Settings of one installation, made by its operator."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    store: str = ""
    """Address of the store; empty: a SQLite file in the user's data directory."""
    runtime: str = ""
    """Address of the engine that decides which worker drives an execution, such as temporal://HOST:PORT/NAMESPACE.
    Empty: the processes that open the store drive executions."""
    model: str = ""
    """Model of agents without one; empty: such agents cannot run. `scripted`: the scripted model answers every
    agent, whatever model a workflow names."""
    models: dict[str, str] = Field(default_factory=dict[str, str])
    """Purpose (`generation`, `validation`, `judge`, …) -> the model of agents of that purpose without one."""
    temperatures: dict[str, Annotated[float, Field(ge=0, le=2)]] = Field(default_factory=dict[str, float])
    """Purpose -> the temperature of calls of that purpose without one."""
    fallback: tuple[str, ...] = ()
    """Models to call, in order, if the model of an agent without fallbacks of its own cannot answer."""
    language: str = "en"
    pipeline: str = "agentforge"
    """The workflow that `POST /run` and `run --command` run: the saved one, else the built-in one of that name."""
    delays: bool = True
    """False: the pauses before steps (`execution.delay`) are left out. For tests, and models without rate limits."""
    providers: dict[str, ProviderSettings] = Field(default_factory=dict[str, ProviderSettings])
    prices: dict[Annotated[str, Field(pattern=PRICED)], PriceSettings] = Field(default_factory=dict[str, PriceSettings])
    """Prices by `provider:model` or `provider:*`; they take precedence over the list of prices."""
    variables: dict[str, str] = Field(default_factory=dict[str, str])
    """Values of `${NAME}` in definitions."""
    variables_from_env: tuple[str, ...] = ("AGENT_ID_*", "MODEL")
    """Patterns of environment variables that definitions may name."""
    values: dict[str, object] = Field(default_factory=dict[str, object])
    """Read-only settings of expressions (`config.<name>`)."""
    secrets: dict[str, Secret] = Field(default_factory=dict[str, "Secret"], repr=False)
    """Values of handles (`secret.NAME`), and where they may be sent; `POINTSMAN_SECRET_NAME` wins."""
    vault: VaultSettings = VaultSettings()
    """The keys of the secrets that the store keeps."""
    notifications: dict[str, NotificationSettings] = Field(default_factory=dict[str, NotificationSettings])
    """Destinations of notices, by name."""
    limits: Limits = Field(default_factory=Limits)
    """Upper bounds of the limits of every execution, whatever its workflow declares and regardless of raised limits."""
    http: HttpSettings = HttpSettings()
    """Limits of calls whose address is data: http nodes, HTTP tools."""
    memory: MemorySettings = MemorySettings()
    """Limits and search of memory."""
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
    connections: ConnectionSettings = ConnectionSettings()
    """What admins may connect in the web app."""
    sql: dict[Annotated[str, Field(pattern=SQL_NAME)], DatabaseDescription] = Field(
        default_factory=dict[str, DatabaseDescription]
    )
    """Databases that the tool `sql` may read, by name."""
    search: SearchSettings | None = None
    """The engine of the tool `web_search`."""
    pages: PageSettings = PageSettings()
    """Limits of the tool `fetch_page`."""
    allow_email_sending: bool = False
    """Whether the tool `send_email` may send anything."""
    mail: MailSettings | None = None
    """Mail server of the tool `send_email`, and of notices by mail."""
    client_tools: dict[Annotated[str, Field(pattern=NAME)], ClientToolDescription] = Field(
        default_factory=dict[str, ClientToolDescription]
    )
    """Tools that the caller carries out."""
    files: FileSettings | None = None
    """Where executions keep files."""
    authoring: Literal["off", "viewer", "operator", "editor"] = "off"
    """Role of agents that change saved workflows by tools, on behalf of the caller of the execution."""
    tool_modules: tuple[str, ...] = ()
    """Python modules with tools. `[tools] python` in the file sets it."""
    tool_files: tuple[str, ...] = ()
    """Files with further HTTP tools, in the format of `pointsman tools import`."""
    sandbox: SandboxSettings = SandboxSettings()
    """Sandbox of code nodes and commands."""
    agents: dict[str, AgentConfig] = Field(default_factory=dict[str, AgentConfig])
    """Agents of this installation, by id."""
    retention: Retention = Retention()
    """How long ended executions are kept, for `pointsman gc`."""
    observability: ObservabilitySettings = ObservabilitySettings()
    """Redaction level of what is observed of executions."""
    logs: LogSettings = LogSettings()
    """Logs that `serve` and `worker` write to standard error."""
    metrics: MetricsSettings = MetricsSettings()
    """Access to `/metrics`, and its granularity."""
    telemetry: TelemetrySettings | None = None
    """Destination of OpenTelemetry traces and metrics."""

    access: AccessSettings = AccessSettings()
    """Access of people, and their rate limits."""
    server: ServerSettings = ServerSettings()
    """Address, names and limits of the server."""
    documents: DocumentSettings = DocumentSettings()
    """Limits for work on documents of callers."""
    _stored_secrets: SecretSource | None = PrivateAttr(default=None)
    _entered: EnteredSettings | None = PrivateAttr(default=None)
    _applied: tuple[Mapping[str, Json], Settings] | None = PrivateAttr(default=None)
    """The entered values, and a copy of these settings with them."""
    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict[str, str])

    @model_validator(mode="after")
    def _notices_can_be_sent(self) -> Settings:
        for name, one in self.notifications.items():
            if one.format == "mail" and self.mail is None:
                raise ValueError(f"notifications.{name}: the format `mail` needs a mail server: set [mail]")
            if one.answer_links and not self.server.url:
                raise ValueError(f"notifications.{name}: `answer_links` needs `url` under [server]")
        return self

    @property
    def sources(self) -> Mapping[str, str]:
        """Setting -> its source: a file, a variable, a flag."""
        return self._sources

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite:///{data_directory() / 'pointsman.db'}"

    def with_store(self, store: str | None) -> Settings:
        """Return a copy with another store; None: with its own. Raises `SettingsInvalid` for an empty address: an unset
        variable must not select the default store by mistake."""
        if store == "":
            raise SettingsInvalid(
                "the address of the store is empty", hint="Leave it out for the default file in your home directory."
            )
        return self if store is None else self.model_copy(update={"store": store})

    def with_stored_secrets(self, secrets: SecretSource) -> Settings:
        """Return a copy for one app: it looks up secrets here if the settings do not have them, and what admins enter
        takes effect in its `current`."""
        copy = self.model_copy()
        copy._stored_secrets, copy._entered, copy._applied = secrets, EnteredSettings(), None
        return copy

    @property
    def entered(self) -> EnteredSettings | None:
        """What admins entered; None: these settings belong to no app."""
        return self._entered

    @property
    def current(self) -> Settings:
        """These settings with what admins entered, as of the last `refresh`. Read it where a setting of `ENTERABLE` is
        used, and do not keep it."""
        entered = self._entered
        if entered is None or not entered.values:
            return self
        values = entered.values
        if self._applied is None or self._applied[0] is not values:
            self._applied = values, self._with_entered(values)
        return self._applied[1]

    def _with_entered(self, values: Mapping[str, Json]) -> Settings:
        update: dict[str, object] = {}
        for name in ENTERABLE:
            if name not in values or self.fixed_by(name):
                continue
            try:
                update[name] = getattr(Settings.model_validate({name: values[name]}), name)
            except ValidationError:
                LOG.warning("the entered setting %r cannot be read, and is not used", name)
        if "variables" in update:
            update["variables"] = {**cast("dict[str, str]", update["variables"]), **self.variables}
        copy = self.model_copy(update=update)
        copy._entered = copy._applied = None
        copy._sources = {**self._sources, **dict.fromkeys(update, ENTERED)}
        return copy

    def fixed_by(self, name: str) -> str:
        """Return the file, variable or option that has a setting, and therefore has precedence; empty: none has it.

        `variables` is never fixed: single names in it have precedence over the entered ones.
        """
        if name == "variables" or name not in self.model_fields_set:
            return ""
        return self._sources.get(name, FILE)

    @property
    def outgoing_mail(self) -> OutgoingMail | None:
        """The mail server in effect; None: there is none. One that an admin entered obeys `[http]`."""
        now = self.current
        if now.mail is None:
            return None
        return OutgoingMail(now.mail, self.http.mail_policy() if self.mail is None else None)

    def served_at(self, host: str | None, port: int | None) -> Settings:
        """Return a copy with the address of the flags."""
        flags = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
        if not flags:
            return self
        names = [self.sources.get("server", "default"), *(f"--{name}" for name in flags)]
        copy = self.model_copy(update={"server": self.server.model_copy(update=flags)})
        return copy.with_sources({**self.sources, "server": ", ".join(names)})

    def with_sources(self, sources: Mapping[str, str]) -> Settings:
        """Return a copy with these sources."""
        copy = self.model_copy()
        copy._sources = sources
        return copy

    @property
    def own_secrets(self) -> Mapping[str, SecretSettings]:
        """Secrets of these settings, and rules of secrets that are kept elsewhere."""
        return cast("Mapping[str, SecretSettings]", self.secrets)

    @property
    def stored_secrets(self) -> SecretSource | None:
        """Secrets that are kept outside the settings."""
        return self._stored_secrets

    @property
    def price_list(self) -> Prices:
        """Prices, with those of the operator first."""
        return Prices({name: price.price for name, price in self.prices.items()})

    def granted(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables that definitions may use, with their values."""
        env = os.environ if environment is None else environment
        if not self.variables_from_env:
            return {**self.variables}
        fits = _any_of(self.variables_from_env).match
        return {**{name: env[name] for name in env if fits(name)}, **self.variables}

    @property
    def is_fresh(self) -> bool:
        """Return whether `refresh` would read nothing now."""
        sources = (self._entered, self._stored_secrets)  # Each look at a private attribute of a model is slow.
        return all(one is None or one.is_fresh for one in sources)

    async def refresh(self, *, at_once: bool = False) -> None:
        """Read changed secrets that are kept outside the settings, and what admins entered. Call it before `secret` and
        `current`. `at_once`: also if they were read a moment ago."""
        if self._entered is not None:
            before = self._entered.values
            await self._entered.refresh(at_once=at_once)
            at_once = at_once or self._entered.values is not before  # Their secrets were stored before them.
        if self._stored_secrets is not None:
            await self._stored_secrets.refresh(at_once=at_once)

    def secret(self, name: str, environment: Mapping[str, str] | None = None) -> str | None:
        """Return the value of a secret from the environment, these settings or outside them, in this order; None if it
        does not exist. Raises the errors of `SecretSource.secret`."""
        env = os.environ if environment is None else environment
        secret = self.own_secrets.get(name)
        own = env.get(f"{PREFIX}SECRET_{name}") or (secret.value if secret is not None else "")
        return own or (None if self._stored_secrets is None else self._stored_secrets.secret(name))

    def rule(self, name: str) -> SecretRule:
        """Return where documents may send a secret: the rule of these settings, else that of the store."""
        secret = self.own_secrets.get(name)
        if secret is not None and secret.rule != SecretRule():
            return secret.rule
        return SecretRule() if self._stored_secrets is None else self._stored_secrets.rule(name)

    def resolved(self, secret: str) -> str | None:
        """Return the value of a secret or of its handle; None if the handle's secret does not exist."""
        return self.secret(secret.removeprefix(HANDLE)) if secret.startswith(HANDLE) else secret or None

    def has_provider(self, environment: Mapping[str, str] | None = None) -> bool:
        """Return whether a provider is configured."""
        return bool(self.providers or self.providers_by_key(environment))

    def providers_by_key(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return provider -> the environment variable that configures it."""
        return configured_by(os.environ if environment is None else environment)


@lru_cache(maxsize=4096)
@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return one expression for all patterns. Every start of an execution asks it of the whole environment."""
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))


def data_directory() -> Path:
    """Return the data directory of this user; it may not exist yet."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "pointsman"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "pointsman"


def make_data_directory() -> None:
    """Create the data directory. Raises `SettingsInvalid` if that fails."""
    try:
        data_directory().mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise SettingsInvalid(
            f"the data directory {data_directory()} cannot be made: {why.strerror}",
            hint="Name another store: --store sqlite:///file.db.",
        ) from None


def config_directory() -> Path:
    """Return the directory of this user's settings."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "pointsman"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "pointsman"


def load_settings(
    *, flags: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Read file, environment and flags. Raises `SettingsInvalid`, which names the key and its source."""
    env = os.environ if environment is None else environment
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for path in (config_directory() / FILE, *_here()):
        for key, value in _file(path).items():
            values[key], sources[key] = value, str(path)
    for key in ("store", "runtime", "model", "language", "delays"):
        if (value := env.get(PREFIX + key.upper())) is not None:
            values[key], sources[key] = value, PREFIX + key.upper()
    _move_python_tools(values, sources)
    for key, value in (flags or {}).items():
        if value is not None:
            values[key], sources[key] = value, f"--{key}"
    try:
        return Settings.model_validate(values).with_sources(sources)
    except ValidationError as why:
        # A misspelt key comes before the complaint that the right one is missing.
        first = min(why.errors(), key=lambda one: one["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"])
        source = sources.get(str(first["loc"][0]), FILE) if first["loc"] else FILE
        message, near = wrong_field(Settings, first, "setting")
        raise SettingsInvalid(
            f"{key} in {source}: {message}", hint=f"{near} See docs/reference/settings.md.".strip()
        ) from None


def _move_python_tools(values: dict[str, object], sources: dict[str, str]) -> None:
    """Move `[tools] python` to the setting of its own: the other keys of `[tools]` are names of HTTP tools."""
    tools = values.get("tools")
    others = dict(cast("dict[str, object]", tools)) if isinstance(tools, dict) else {}
    if isinstance(others.get("python"), list):
        values["tool_modules"], sources["tool_modules"] = others.pop("python"), sources["tools"]
        values["tools"] = others


def wrong_field(model: type[BaseModel], wrong: ErrorDetails, what: str) -> tuple[str, str]:
    """Return message and suggestion for an error of a model. `what`: the word for one of its fields."""
    if wrong["type"] != "extra_forbidden":
        missing = wrong["type"] == "missing"
        return f"the {what} is missing" if missing else wrong["msg"].removeprefix("Value error, "), ""
    *above, key = wrong["loc"]
    return f"there is no such {what}", did_you_mean(str(key), _fields_at(model, above))


def _fields_at(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """Return the names of the fields at a place in the data of a model; none where the place has no model."""
    here: list[object] = [model]
    for part in place:
        below: list[object] = []
        for alternative in _alternatives(here):
            if isinstance(alternative, type) and issubclass(alternative, BaseModel):
                below += [
                    field.annotation for name, field in alternative.model_fields.items() if part in (name, field.alias)
                ]
            else:
                below += get_args(alternative)[-1:]
        here = below
    models = [
        alternative
        for alternative in _alternatives(here)
        if isinstance(alternative, type) and issubclass(alternative, BaseModel)
    ]
    return [field.alias or name for model in models for name, field in model.model_fields.items()]


def _alternatives(types: Sequence[object]) -> Iterator[object]:
    """Yield the members of unions, and the types below annotations."""
    for one in types:
        if get_origin(one) in (Union, UnionType):
            yield from _alternatives(get_args(one))
        elif get_origin(one) is Annotated:
            yield from _alternatives(get_args(one)[:1])
        else:
            yield one


def _here() -> list[Path]:
    """Return the settings file of the working directory; empty if that directory was deleted."""
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


class ShownSetting(TypedDict):
    """The effective value of a setting, and its source."""

    value: Json
    """Secrets in it are masked."""
    source: str
    """A file, an environment variable, a flag, or `default`."""


def _masked(described: dict[str, object]) -> dict[str, object]:
    """Mask the values of headers and of the environment, which may contain keys."""
    hidden = {
        key: dict.fromkeys(cast("dict[str, str]", described[key]), "***")
        for key in ("headers", "env")
        if key in described
    }
    return {**described, **hidden}


def _masked_secret(settings: SecretSettings) -> dict[str, object]:
    rule = settings.model_dump(mode="json", exclude={"value"}, exclude_defaults=True)
    return {"value": "***" if settings.value else "", **rule}


def shown(settings: Settings) -> dict[str, ShownSetting]:
    """Return the settings with their sources, and with secrets masked."""
    shown_settings: dict[str, ShownSetting] = {}
    for key, value in settings.model_dump(mode="json").items():
        if key == "providers":
            value = {
                name: {**p.model_dump(mode="json", exclude={"keys", "headers"}), "keys": len(p.keys)}
                for name, p in settings.providers.items()
            }
        elif key == "notifications":
            value = {
                name: {**notification.model_dump(mode="json"), "secret": "***" if notification.secret else ""}
                for name, notification in settings.notifications.items()
            }
        elif key in ("tools", "mcp"):
            value = {name: _masked(cast("dict[str, object]", member)) for name, member in value.items()}
        elif key == "telemetry" and value is not None:
            value = _masked(value)
        elif key in ("search", "mail", "metrics") and value is not None:
            value = {
                name: "***" if member and name in ("key", "password") else member for name, member in value.items()
            }
        elif key == "sql":
            value = {
                name: {**one.model_dump(mode="json"), "url": masked_address(one.url)}
                for name, one in settings.sql.items()
            }
        elif key == "store":
            value = masked_address(settings.store_url)
        elif key == "vault":
            value = {**settings.vault.model_dump(mode="json"), "keys": len(settings.vault.keys)}
        elif key == "access" and settings.access.oidc is not None:
            oidc = settings.access.oidc
            hidden = oidc.model_copy(update={"client_secret": "***" if oidc.client_secret else ""})
            value = settings.access.model_copy(update={"oidc": hidden}).model_dump(mode="json")
        elif key == "secrets":
            value = {name: _masked_secret(secret) for name, secret in settings.own_secrets.items()}
        shown_settings[key] = {"value": cast(Json, value), "source": settings.sources.get(key, "default")}
    return shown_settings
