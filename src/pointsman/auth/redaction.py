"""Redaction of what leaves the journal: fields by their names, secrets by their values in every encoding.

Secrets in the results of calls are masked before they are recorded (`executors.secrets`). Inputs that people give are
recorded as they are, because a repeated step needs the same input. What leaves the journal for streams, logs, traces,
notifications and the history passes through this module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from typing import Final, cast

from pointsman.context import Part
from pointsman.models.failures import KEY_VARIABLE_SUFFIX
from pointsman.redaction import ANYWHERE_CHARS_MIN, MASK, Redaction, redaction_of
from pointsman.settings import HANDLE, PREFIX, SecretSource, Settings
from pointsman.values import Json, JsonObject

ENV: Final = "env:"
NAMES_MAX: Final = 10_000
CONTAINERS: Final = (dict, list)
_SIGNS: Final = str.maketrans("", "", "-_ ")


class Redactor:
    """Redactor of JSON. Returns the given object itself if nothing has to be masked."""

    def __init__(
        self, names: Iterable[str] = (), secrets: Iterable[str] = (), source: SecretSource | None = None
    ) -> None:
        """`names` are patterns of field names, `secrets` are values; `source` provides further values and may grow."""
        patterns = [translate(name.casefold().translate(_SIGNS)) for name in names]
        self._names = re.compile("|".join(patterns)) if patterns else None
        self._asked: dict[str, bool] = {}
        self._redaction = _growing(frozenset(secrets), source)

    def __call__(self, value: JsonObject) -> JsonObject:
        return cast("JsonObject", self.json(value))

    def value(self, name: str, value: Json) -> Json:
        """Return the value of a field, masked if its name or content requires it."""
        return MASK if value is not None and self._is_named_so(name) else self.json(value)

    def _is_named_so(self, name: str) -> bool:
        """Return whether fields of this name are masked. Cached, because the same names recur."""
        matches = self._asked.get(name)
        if matches is None:
            if len(self._asked) >= NAMES_MAX:
                self._asked.clear()
            is_named = self._names is not None and self._names.match(name.casefold().translate(_SIGNS)) is not None
            matches = self._asked[name] = is_named
        return matches

    def json(self, value: Json) -> Json:
        return self._by_name(self._redaction().json(value))

    def _by_name(self, value: Json) -> Json:
        if isinstance(value, dict):
            known = self._asked
            # Every answer, event and log line passes here: known names, plain and empty values cost no call.
            return {
                name: MASK
                if member is not None and (known[name] if name in known else self._is_named_so(name))
                else self._by_name(member)
                if member and isinstance(member, CONTAINERS)
                else member
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [self._by_name(element) if isinstance(element, CONTAINERS) else element for element in value]
        return value

    @property
    def redaction(self) -> Redaction:
        """The redaction of all values known now."""
        return self._redaction()

    def text(self, text: str) -> str:
        return self._redaction().text(text)


def _growing(secrets: frozenset[str], source: SecretSource | None) -> Callable[[], Redaction]:
    """Return a function that returns the redaction of these values and the stored ones, which may have grown between
    calls."""
    learned: frozenset[str] = frozenset()
    current = _redaction_of(secrets)

    def redaction() -> Redaction:
        nonlocal learned, current
        if source is not None and source.seen is not learned:
            learned = source.seen
            current = _redaction_of(secrets | learned)
        return current

    return redaction


def _redaction_of(values: Iterable[str]) -> Redaction:
    """Shorter values are placeholders (`none`, `x`), and would mask ordinary words."""
    return redaction_of(frozenset(value for value in values if len(value) >= ANYWHERE_CHARS_MIN))


def known_redaction(settings: Settings) -> Callable[[], Redaction]:
    """Return a function that returns the redaction of every secret known when it is called."""
    return _growing(frozenset(secrets_of(settings)), settings.stored_secrets)


def redactor_for(settings: Settings) -> Redactor:
    """Return a redactor of the field names and secrets in the settings."""
    return Redactor(settings.observability.redact, secrets_of(settings), settings.stored_secrets)


REDACTOR: Final = Part[Redactor]("redactor", lambda app: redactor_for(app.settings))
"""The redactor of the settings. Reading the environment is slow, so it is done once."""


def secrets_of(settings: Settings) -> Iterator[str]:
    """Yield the values of all secrets of this process, except those in the store."""
    yield from (secret.value for secret in settings.own_secrets.values())
    yield from settings.vault.keys
    yield from os.environ.get(f"{PREFIX}VAULT_KEYS", "").replace(",", " ").split()
    for name, value in os.environ.items():
        if name.startswith(f"{PREFIX}SECRET_") or name.endswith(KEY_VARIABLE_SUFFIX):
            yield value
    for secret in _settings_secrets(settings):
        resolved = os.environ.get(secret.removeprefix(ENV)) if secret.startswith(ENV) else secret
        # Values of handles are yielded above, or are in the store.
        if resolved and not resolved.startswith(HANDLE):
            yield resolved


def _settings_secrets(settings: Settings) -> Iterator[str]:
    """Yield secrets, and handles of secrets, from the settings."""
    for provider in settings.providers.values():
        yield from (*provider.keys, *provider.headers.values())
    for one in (*settings.tools.values(), *settings.mcp.values()):
        yield from one.headers.values()
    yield from (notification.secret for notification in settings.notifications.values())
    yield settings.metrics.key
    if settings.telemetry is not None:
        yield from settings.telemetry.headers.values()
    if settings.mail is not None:
        yield settings.mail.password
    if settings.search is not None:
        yield settings.search.key
