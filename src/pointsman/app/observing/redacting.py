"""What is never told: fields by their names, secrets by their values, wherever they stand.

Journals are not redacted: what a step was given must be the same when it is performed again. What leaves them for
streams, logs, traces and the history does so through here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import translate
from typing import Final

from pointsman.models.redaction import CHARS_MIN, FROM_ENVIRONMENT, MASK
from pointsman.settings import HANDLE, PREFIX, KeptSecrets, Settings
from pointsman.values import Json, JsonObject

ENV: Final = "env:"
NAMES_MAX: Final = 10_000
_SIGNS: Final = str.maketrans("", "", "-_ ")


class Redactor:
    """Rewrites JSON. Gives back what it was given where nothing had to go."""

    def __init__(self, names: Iterable[str] = (), secrets: Iterable[str] = (), kept: KeptSecrets | None = None) -> None:
        """`names` are patterns of fields, `secrets` values; `kept`: more of them, which may become more."""
        patterns = [translate(name.casefold().translate(_SIGNS)) for name in names]
        self._names = re.compile("|".join(patterns)) if patterns else None
        self._asked: dict[str, bool] = {}
        self._given = frozenset(secrets)
        self._kept = kept
        self._seen: frozenset[str] = frozenset()
        self._secrets = _any_of(self._given)

    def __call__(self, value: JsonObject) -> JsonObject:
        return {name: self.value(name, one) for name, one in value.items()}

    def value(self, name: str, value: Json) -> Json:
        """The value of a field."""
        return MASK if value is not None and self._is_named_so(name) else self.json(value)

    def _is_named_so(self, name: str) -> bool:
        """Whether a field of this name is never told. The same names are asked for again and again."""
        known = self._asked.get(name)
        if known is None:
            if len(self._asked) >= NAMES_MAX:
                self._asked.clear()
            found = self._names is not None and self._names.match(name.casefold().translate(_SIGNS)) is not None
            known = self._asked[name] = found
        return known

    def json(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(name, one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.json(one) for one in value]
        return value

    def text(self, text: str) -> str:
        if self._kept is not None and self._kept.seen is not self._seen:
            self._seen = self._kept.seen
            self._secrets = _any_of(self._given | self._seen)
        return text if self._secrets is None else self._secrets.sub(MASK, text)


def _any_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    # Longest first: one secret may begin with another.
    known = sorted({one for one in secrets if len(one) >= CHARS_MIN}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, known))) if known else None


def redactor_for(settings: Settings) -> Redactor:
    """What the settings call secret, by name and by value."""
    return Redactor(settings.observability.redact, secrets_of(settings), settings.kept)


def secrets_of(settings: Settings) -> Iterator[str]:
    """The values of everything that is secret here, but for those that are kept in the store."""
    yield from settings.secrets.values()
    yield from settings.vault.keys
    yield from os.environ.get(f"{PREFIX}VAULT_KEYS", "").replace(",", " ").split()
    for name, value in os.environ.items():
        if name.startswith(f"{PREFIX}SECRET_") or name.endswith(FROM_ENVIRONMENT):
            yield value
    for one in _given(settings):
        found = os.environ.get(one.removeprefix(ENV)) if one.startswith(ENV) else one
        # What a handle stands for is above, or kept.
        if found and not found.startswith(HANDLE):
            yield found


def _given(settings: Settings) -> Iterator[str]:
    """Secrets, and handles of some."""
    for provider in settings.providers.values():
        yield from (*provider.keys, *provider.headers.values())
    for one in (*settings.tools.values(), *settings.mcp.values()):
        yield from one.headers.values()
    yield from (one.secret for one in settings.notifications.values())
    yield settings.metrics.key
    if settings.telemetry is not None:
        yield from settings.telemetry.headers.values()
    if settings.mail is not None:
        yield settings.mail.password
    if settings.search is not None:
        yield settings.search.key
