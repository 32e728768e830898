"""Providers of models that an admin connects while the app runs, and the default model that an admin chooses.

    connect ─▶ a test request ─▶ the key, sealed in the vault ─▶ an entry of the store ─▶ every process, within a second

Settings and environment have precedence: a provider of theirs cannot be connected, and a default model of theirs stays.
No document can send a connected key anywhere, since its secret has no hosts: only the client of its provider sends it.
A client with an address that an admin typed reaches only what `[http]` in the settings allows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.sealed_entries import delete_sealed, read_for_change, sealed_name, write_sealed
from pointsman.context import AppContext
from pointsman.errors import CallerError, FieldInvalid
from pointsman.etags import content_etag, delete_after, etag_of, matched_entry, put_after
from pointsman.extras import install_hint, is_importable, is_installed
from pointsman.models.prices import listed_models
from pointsman.models.provider import HANDLE, KINDS, Provider, ProviderSettings
from pointsman.models.transport import PydanticModels, is_scripted, split_name
from pointsman.operations.model_ping import ModelPing, ping_model
from pointsman.ports import Clock
from pointsman.settings import Settings
from pointsman.store.api import ConfigStore
from pointsman.values import Instant
from pointsman.workflows.models import provider_for

PROVIDER: Final = "model-provider"
"""Kind of the entries, one for each provider; their keys are its names."""
DEFAULT: Final = "model-default"
"""Kind and key of the entry of the default model."""
NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
"""It becomes a part of a host name."""
MODEL_CHARS_MAX: Final = 200
KNOWN_FOR_S: Final = 1.0
TYPED_ADDRESS: Final = frozenset(
    {"openai", "anthropic", "google", "mistral", "azure", "ollama", "vllm"}
    | {"openai-compatible", "openai-compatible-responses"}
)
"""Kinds whose client can be limited to the addresses that `[http]` allows."""
SUGGESTED: Final[Mapping[str, str]] = {
    "openai": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "google": "gemini-2.5-flash",
    "groq": "llama-3.3-70b-versatile",
    "mistral": "mistral-small-latest",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "openrouter": "openai/gpt-5-mini",
    "deepseek": "deepseek-chat",
}
"""Model to suggest for a kind of provider."""
OFFERED: Final = (
    "openai",
    "anthropic",
    "google",
    "groq",
    "mistral",
    "bedrock",
    "ollama",
    "vllm",
    "openai-compatible",
    "azure",
    "openrouter",
    "deepseek",
    "openai-compatible-responses",
)
"""Kinds in the order in which they are offered."""
LISTED_MAX: Final = 80


class ProviderInvalid(FieldInvalid):
    """The connection of a provider is incomplete, or one of its parts is invalid."""

    code: ClassVar[str] = "provider-invalid"


class ProviderInSettings(CallerError):
    """The settings or the environment configure the provider, and have precedence."""

    code: ClassVar[str] = "provider-in-settings"


class NoSuchProvider(CallerError):
    """No provider of that name is connected."""

    code: ClassVar[str] = "no-such-provider"


class StoredProvider(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored record of a connected provider, without its key."""

    name: str
    kind: str
    base_url: str = ""
    region: str = ""
    api_version: str = ""
    secret: str = ""
    """Name of the secret that holds its key; empty: it needs none."""
    changed: Instant = Instant(0.0)
    by: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """Where its key is sent."""
        return self.kind, self.base_url, self.region

    @property
    def settings(self) -> ProviderSettings:
        keys = (f"{HANDLE}{self.secret}",) if self.secret else ()
        return ProviderSettings(
            kind=self.kind, base_url=self.base_url, region=self.region, api_version=self.api_version, keys=keys
        )


class StoredDefault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored default model."""

    model: str
    changed: Instant = Instant(0.0)
    by: str = ""


class ProviderKindView(TypedDict):
    """A kind of provider that can be connected."""

    kind: str
    needsKey: bool
    needsAddress: bool
    takesAddress: bool
    takesRegion: bool
    installed: bool
    install: str
    """Command that installs its client; empty: it is installed."""
    models: list[str]
    """Known models."""
    suggested: str
    """Model to suggest; empty: none."""
    setBy: str | None
    """What configures a provider of this name already: `settings`, or an environment variable; null: nothing."""


class ProviderKinds(TypedDict):
    """The kinds of providers that can be connected."""

    kinds: list[ProviderKindView]


class ProviderConnection(TypedDict):
    """Result of connecting a provider."""

    saved: bool
    """False: its model did not answer the test, and nothing was changed."""
    ping: ModelPing | None
    """Result of the test; null: there was none."""
    default: str | None
    """The default model now."""


class ConnectionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an admin enters to connect a provider."""

    kind: str
    key: str | None = None
    """None: the key that it has already."""
    base_url: str = ""
    region: str = ""
    api_version: str = ""
    model: str = ""
    """Model to test, and to use as the default model; without its provider."""
    default: bool = False
    test: bool = True


class StoredProviders:
    """Connected providers of one store, for `PydanticModels`. They are read again at most once a second."""

    def __init__(self, entries: ConfigStore, settings: Settings, clock: Clock) -> None:
        self._entries = entries
        self._settings = settings
        self._clock = clock
        self._read_at = float("-inf")
        self._state: tuple[object, ...] = ()
        self.version = 0
        self.providers: Mapping[str, Provider] = {}
        self.records: Mapping[str, StoredProvider] = {}
        self.default = ""
        self.default_etag = ""
        """ETag of the chosen default model; empty: none is chosen."""

    async def refresh(self) -> None:
        """Read the entries and the secrets, if that was more than a second ago."""
        now = self._clock.now()
        if self._read_at <= now < self._read_at + KNOWN_FOR_S:
            return
        records = {one.name: one for one in await self._records() if not set_by(self._settings, one.name)}
        default = await self._entries.find(DEFAULT, DEFAULT)
        await self._settings.refresh(at_once=records != self.records)  # The key of a new one was stored before it.
        keys = {name: provider_for(self._settings, name, one.settings).keys for name, one in records.items()}
        self._read_at = now
        state = (records, keys, None if default is None else default.value)
        if state == self._state:
            return
        self._state, self.records = state, records
        self.providers = {name: open_provider(self._settings, one) for name, one in records.items()}
        self.default = "" if default is None else msgspec.convert(default.value, StoredDefault).model
        self.default_etag = "" if default is None else etag_of(content_etag(default.value))
        self.version += 1

    def changed(self) -> None:
        """Read the entries at the next `refresh`, because this process changed them."""
        self._read_at = float("-inf")

    async def _records(self) -> list[StoredProvider]:
        return [msgspec.convert(entry.value, StoredProvider) for entry in await self._entries.list(PROVIDER)]


def set_by(settings: Settings, name: str) -> str:
    """Return what configures a provider in place of a connection: `settings` or a variable; empty: nothing does."""
    return "settings" if name in settings.providers else settings.providers_by_key().get(name, "")


def open_provider(settings: Settings, record: StoredProvider, key: str | None = None) -> Provider:
    """Return a provider with its key. Its client connects to a typed address only as `[http]` allows."""
    provider = provider_for(settings, record.name, record.settings)
    if key is not None:
        provider = replace(provider, keys=(key,))
    if not record.base_url:
        return provider
    from pointsman.tools.egress.http_calls import EgressTransport  # Deferred: it loads an HTTP client.

    return replace(provider, http=EgressTransport(settings.http.egress_policy()))


def provider_kinds(settings: Settings) -> ProviderKinds:
    """Return the kinds of providers that can be connected, in the order in which they are offered."""
    return {"kinds": [_kind(settings, kind) for kind in OFFERED]}


def _kind(settings: Settings, name: str) -> ProviderKindView:
    kind = KINDS[name]
    installed = is_installed("agents") and is_importable(kind.client)
    listed = listed_models(name)[:LISTED_MAX]
    suggested = SUGGESTED.get(name, "")
    return {
        "kind": name,
        "needsKey": kind.needs_key,
        "needsAddress": kind.needs_address,
        "takesAddress": name in TYPED_ADDRESS,
        "takesRegion": name == "bedrock",
        "installed": installed,
        "install": "" if installed else install_hint(kind.extra),
        "models": [*dict.fromkeys([*([suggested] if suggested else []), *listed])],
        "suggested": suggested,
        "setBy": set_by(settings, name) or None,
    }


async def connect_provider(
    app: AppContext, name: str, request: ConnectionRequest, *, by: str, match: str | None = None
) -> ProviderConnection:
    """Test a provider and store it, with its key sealed. Takes effect at once here, and within a second elsewhere.

    `match`: see `etags.match_etag`. Raises `ProviderInvalid`, `ProviderInSettings`, `RevisionMoved`, and the errors of
    `Vault.set`.
    """
    _check(app.settings, name, request)
    what, stored = f"the provider {name!r}", _connected(app)
    entry = await read_for_change(app, PROVIDER, name, match, what)
    before = None if entry is None else msgspec.convert(entry.value, StoredProvider)
    await stored.refresh()
    record = StoredProvider(
        name=name,
        kind=request.kind,
        base_url=request.base_url.strip(),
        region=request.region,
        api_version=request.api_version,
        secret="" if before is None else before.secret,
        changed=Instant(app.clock.now()),
        by=by,
    )
    key = None if request.key is None else request.key.strip()
    _check_key(record, before, key)
    ping = None
    if request.test:
        ping = await _test(app, record, key, request.model)
        if not ping["ok"]:
            return {"saved": False, "ping": ping, "default": app.services.models.choice.default or None}
    if key:
        record = msgspec.structs.replace(record, secret=sealed_name(f"MODEL_KEY_{name}"))
    entered = {record.secret: key} if key else {}
    replaced = [one for one in _secret_of(before) if one != record.secret]
    value = msgspec.to_builtins(record)
    await write_sealed(app, PROVIDER, name, value, before=entry, entered=entered, replaced=replaced, by=by, what=what)
    stored.changed()
    await app.services.models.refresh()
    if request.default:
        await choose_default(app, f"{name}:{request.model}", by=by)
    return {"saved": True, "ping": ping, "default": app.services.models.choice.default or None}


async def disconnect_provider(app: AppContext, name: str, *, match: str | None = None) -> None:
    """Delete a connected provider with its key, and the default model if it is one of this provider. `match`: see
    `etags.match_etag`. Raises `NoSuchProvider`, `RevisionMoved`."""
    stored = _connected(app)
    entry = await app.store.entries.find(PROVIDER, name)
    if entry is None:
        raise NoSuchProvider(f"no provider {name[:60]!r} is connected", hint="GET /api/models lists the providers.")
    await delete_sealed(
        app,
        PROVIDER,
        name,
        match=match,
        replaced=lambda one: _secret_of(msgspec.convert(one.value, StoredProvider)),
        what=f"the provider {name!r}",
    )
    if stored.default.partition(":")[0] == name:
        await app.store.entries.delete(DEFAULT, DEFAULT)
    stored.changed()
    await app.services.models.refresh()


async def choose_default(app: AppContext, model: str, *, by: str, match: str | None = None) -> None:
    """Use this model for agents without one; empty: none. `match`: see `etags.match_etag`. Raises `ProviderInSettings`
    if the settings name one, `ModelUnusable`, `RevisionMoved`."""
    settings, entries, what = app.settings, app.store.entries, "the default model"
    if app.services.model or settings.model:
        where = settings.sources.get("model", "an option of the command")
        raise ProviderInSettings(
            f"{where} sets the default model {app.services.model or settings.model!r}, which has precedence",
            hint="Remove `model` there and restart the server; then choose a default model here.",
        )
    after = await matched_entry(entries, DEFAULT, DEFAULT, match, what)
    if not model:
        await delete_after(entries, DEFAULT, DEFAULT, after=after, what=what)
    else:
        _check_model(model)
        if is_scripted(model):
            raise ProviderInvalid("the scripted model cannot be chosen", hint="Start the server with --model scripted.")
        split_name(model)
        await app.services.models.refresh()
        app.services.models.check([model])
        record = StoredDefault(model=model, changed=Instant(app.clock.now()), by=by)
        await put_after(entries, DEFAULT, DEFAULT, msgspec.to_builtins(record), after=after, what=what)
    _connected(app).changed()
    await app.services.models.refresh()


def _secret_of(record: StoredProvider | None) -> list[str]:
    """Return the secret with the key of a provider; none if it has none."""
    return [record.secret] if record is not None and record.secret else []


def connected_records(app: AppContext) -> Mapping[str, StoredProvider]:
    """Return the connected providers in use."""
    found = app.services.models.connected
    return found.records if isinstance(found, StoredProviders) else {}


def provider_etag(record: StoredProvider) -> str:
    """Return the ETag of a connected provider."""
    return etag_of(content_etag(msgspec.to_builtins(record)))


def default_etag(app: AppContext) -> str:
    """Return the ETag of the chosen default model; empty: none is chosen."""
    found = app.services.models.connected
    return found.default_etag if isinstance(found, StoredProviders) else ""


def _connected(app: AppContext) -> StoredProviders:
    found = app.services.models.connected
    assert isinstance(found, StoredProviders), "wiring gives every app its connected providers"
    return found


def _check(settings: Settings, name: str, request: ConnectionRequest) -> None:
    """Raise `ProviderInvalid` for parts that cannot be used, `ProviderInSettings`."""
    if NAME.fullmatch(name) is None:
        hint = "Use 1 to 40 lower-case letters, digits and hyphens; it must begin with a letter."
        raise ProviderInvalid(f"{name[:60]!r} is not a valid name of a provider", hint=hint, field="name")
    if request.kind not in OFFERED:
        raise ProviderInvalid(
            f"{request.kind[:60]!r} cannot be connected", hint=f"Known: {', '.join(OFFERED)}.", field="kind"
        )
    if name in KINDS and name != request.kind:
        hint = "Choose another name."
        raise ProviderInvalid(f"{name!r} is the name of another kind of provider", hint=hint, field="name")
    if source := set_by(settings, name):
        where = (
            settings.sources.get("providers", "pointsman.toml") if source == "settings" else f"the variable {source}"
        )
        raise ProviderInSettings(
            f"{where} configures the provider {name!r}, and has precedence",
            hint="Remove it there and restart the server, or connect another provider.",
        )
    if request.model:
        _check_model(request.model)
    elif request.default or request.test:
        hint = "Name the model to test, and to use as the default model."
        raise ProviderInvalid("the model is missing", hint=hint, field="model")
    if request.region and REGION.fullmatch(request.region) is None:
        raise ProviderInvalid(
            f"{request.region[:60]!r} is not a region", hint="For example: eu-central-1.", field="region"
        )
    _check_address(settings, request)


def _check_address(settings: Settings, request: ConnectionRequest) -> None:
    address = request.base_url.strip()
    if not address:
        if KINDS[request.kind].needs_address:
            raise ProviderInvalid(
                "the address is missing", hint="For example: http://127.0.0.1:11434/v1.", field="baseUrl"
            )
        return
    if request.kind not in TYPED_ADDRESS:
        hint = "Leave it empty, or connect it as openai-compatible."
        raise ProviderInvalid(
            f"a provider of the kind {request.kind!r} has a fixed address", hint=hint, field="baseUrl"
        )
    import httpx2

    from pointsman.tools.egress.addresses import AddressRefused  # Deferred: they load an HTTP client.
    from pointsman.tools.egress.http_calls import admit

    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        hint = "Write https://host/path."
        raise ProviderInvalid("the address is not a web address", hint=hint, field="baseUrl") from None
    if url.query or url.fragment:
        hint = "Write https://host/path."
        raise ProviderInvalid("the address has a query or a fragment", hint=hint, field="baseUrl")
    try:
        admit(url, settings.http.egress_policy())
    except AddressRefused as why:
        raise ProviderInvalid(str(why), hint=why.hint, field="baseUrl") from None


def _check_model(model: str) -> None:
    if len(model) > MODEL_CHARS_MAX or not model.isprintable() or " " in model:
        raise ProviderInvalid(
            "the name of the model is not valid", hint="Write it as its provider does.", field="model"
        )


def _check_key(record: StoredProvider, before: StoredProvider | None, key: str | None) -> None:
    """Raise `ProviderInvalid` without a key that is needed. A stored key is never sent to another address than the one
    it was entered for."""
    if key:
        return
    has_key = before is not None and bool(before.secret)
    if has_key and before is not None and before.place != record.place:
        hint = "Paste the key."
        raise ProviderInvalid("the address changed, so the key must be entered again", hint=hint, field="key")
    if KINDS[record.kind].needs_key and not has_key:
        raise ProviderInvalid("the key is missing", hint="Paste an API key of the provider.", field="key")


async def _test(app: AppContext, record: StoredProvider, key: str | None, model: str) -> ModelPing:
    provider = open_provider(app.settings, record, key or None)
    models = PydanticModels(providers={record.name: provider}, prices=app.settings.price_list)
    try:
        return await ping_model(models, f"{record.name}:{model}")
    finally:
        await models.close()
