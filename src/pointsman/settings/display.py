"""Settings as shown to people: with their sources, and with secrets masked."""

from __future__ import annotations

from typing import cast

from typing_extensions import TypedDict

from pointsman.settings import Settings
from pointsman.settings.sections import SecretSettings
from pointsman.store.errors import masked_address
from pointsman.values import Json


class ShownSetting(TypedDict):
    """The effective value of a setting, and its source."""

    value: Json
    """Secrets in it are masked."""
    source: str
    """A file, an environment variable, a flag, or `default`."""


class SettingView(ShownSetting):
    """An effective setting."""

    name: str


class SettingsView(TypedDict):
    """The version, the store and the effective settings of an installation."""

    version: str
    store: str
    """The address of the store, without its password."""
    settings: list[SettingView]


def _masked(described: dict[str, object]) -> dict[str, object]:
    """Mask the values of headers and of the environment, which may contain keys."""
    hidden = {
        key: dict.fromkeys(cast("dict[str, str]", described[key]), "***")
        for key in ("headers", "env")
        if key in described
    }
    return {**described, **hidden}


def _secret(one: SecretSettings) -> dict[str, object]:
    rule = one.model_dump(mode="json", exclude={"value"}, exclude_defaults=True)
    return {"value": "***" if one.value else "", **rule}


def shown(settings: Settings) -> dict[str, ShownSetting]:
    """Return the settings with their sources, and with secrets masked."""
    found: dict[str, ShownSetting] = {}
    for key, value in settings.model_dump(mode="json").items():
        if key == "providers":
            value = {
                name: {**p.model_dump(mode="json", exclude={"keys", "headers"}), "keys": len(p.keys)}
                for name, p in settings.providers.items()
            }
        elif key == "notifications":
            value = {
                name: {**one.model_dump(mode="json"), "secret": "***" if one.secret else ""}
                for name, one in settings.notifications.items()
            }
        elif key in ("tools", "mcp"):
            value = {name: _masked(cast("dict[str, object]", one)) for name, one in value.items()}
        elif key == "telemetry" and value is not None:
            value = _masked(value)
        elif key in ("search", "mail", "metrics") and value is not None:
            value = {name: "***" if one and name in ("key", "password") else one for name, one in value.items()}
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
            value = {name: _secret(one) for name, one in settings.own_secrets.items()}
        found[key] = {"value": cast(Json, value), "source": settings.sources.get(key, "default")}
    return found
