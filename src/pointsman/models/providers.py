"""Providers: resolves `provider:model` names, opens clients at their first use and keeps them open.

A name is looked up in the settings, then among the known kinds with their usual environment variables, and then left to
pydantic-ai with its own configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pointsman.definition.problems import did_you_mean
from pointsman.extras import install_hint, is_importable, is_installed
from pointsman.models.failures import ModelUnusable
from pointsman.models.key_pool import DayLimit, KeyLeases, KeyPool
from pointsman.models.provider import KINDS, Provider
from pointsman.ports import Clock

if TYPE_CHECKING:
    from pointsman.models.clients import Closing, OpenedModel


@dataclass(frozen=True, slots=True)
class ModelRoute:
    """Provider, settings and key pool of one model."""

    provider: str
    model: str
    settings: Provider | None
    """None: only pydantic-ai supports the provider."""
    pool: KeyPool

    @property
    def retries(self) -> int:
        return 1 if self.settings is None else self.settings.retries

    @property
    def day(self) -> DayLimit | None:
        """Daily budget of each key; None: no limit."""
        return None if self.settings is None else self.settings.day

    @property
    def key_count(self) -> int:
        return 0 if self.settings is None else len(self.settings.keys)

    @property
    def wait_s(self) -> float:
        """Seconds before a retry if the provider does not name a time."""
        interval = 0.0 if self.settings is None else self.settings.pacing.interval_s
        return 2 * interval or 1.0


class ConnectedProviders(Protocol):
    """Providers, and a default model, that an admin connects while the app runs."""

    @property
    def version(self) -> int:
        """Changes whenever one of the other values does."""
        ...

    @property
    def providers(self) -> Mapping[str, Provider]: ...

    @property
    def default(self) -> str:
        """Empty: none was chosen."""
        ...

    async def refresh(self) -> None:
        """Read changes by other processes. Cheap."""
        ...


class Providers:
    """Opens models and keeps them open: one client per model and key, one key pool per provider."""

    def __init__(
        self,
        providers: Mapping[str, Provider] | None = None,
        *,
        clock: Clock | None = None,
        leases: KeyLeases | None = None,
    ) -> None:
        """`leases`: coordinates providers that share keys with other processes."""
        self._own = dict(providers or {})
        self._known = self._own
        self._leases = leases
        self._clock = clock
        self._reached: dict[str, tuple[Provider | None, KeyPool]] = {}
        self._open: dict[tuple[str, str, int], OpenedModel] = {}
        self._connections: list[Closing] = []
        self._replaced: list[KeyPool] = []

    def connect(self, providers: Mapping[str, Provider]) -> None:
        """Use these providers beside those of the settings, which have precedence. Replaces the ones given before.

        The next call of a changed provider opens a new client; calls in progress complete with the former one.
        """
        known = {**providers, **self._own}
        for name in known.keys() | self._known.keys():
            if known.get(name) == self._known.get(name):
                continue
            if (reached := self._reached.pop(name, None)) is not None:
                self._replaced.append(reached[1])
            self._open = {place: opened for place, opened in self._open.items() if place[0] != name}
        self._known = known

    @property
    def keys(self) -> list[str]:
        """All known keys, for redaction."""
        reached = [settings for settings, _ in self._reached.values() if settings is not None]
        return [key for provider in (*self._known.values(), *reached) for key in provider.keys]

    def line(self, provider: str, model: str) -> ModelRoute:
        """Return how a model is reached. Raises `ModelUnusable`."""
        if provider not in self._reached:
            settings = self._known.get(provider)
            if settings is None and provider in KINDS:
                settings = Provider(kind=provider)
            if settings is not None:
                settings = settings.resolved(provider)
            pacing = None if settings is None else settings.pacing
            keys = 1 if settings is None else len(settings.keys)
            leases = self._leases if settings is not None and settings.shared else None
            pool = KeyPool(provider, keys=keys, pacing=pacing, clock=self._clock, leases=leases)
            self._reached[provider] = settings, pool
        return ModelRoute(provider, model, *self._reached[provider])

    def check(self, provider: str, model: str) -> None:
        """Raise `ModelUnusable` if the model cannot be called: unknown provider, no key, no address, or client not
        installed. Does not connect."""
        settings = self._known.get(provider)
        if settings is None and provider in KINDS:
            settings = Provider(kind=provider)
        if settings is None:
            self._check_unknown(provider, model)
            return
        settings.resolved(provider)
        kind = KINDS[settings.kind]
        if not (is_installed("agents") and is_importable(kind.client)):
            raise ModelUnusable(
                f"the client for the provider {provider!r} is not installed",
                hint=install_hint(kind.extra),
            )

    def _check_unknown(self, provider: str, model: str) -> None:
        """Check a provider that only pydantic-ai may support, by building its client."""
        from pointsman.models.clients import infer

        try:
            infer(provider, model)
        except ModelUnusable as why:
            near = did_you_mean(provider, {*self._known, *KINDS})
            raise ModelUnusable(str(why), hint=f"{near} {why.hint}".strip()) from None

    def pools(self) -> dict[str, KeyPool]:
        """Return the key pools of the providers used so far."""
        return {name: pool for name, (_, pool) in self._reached.items()}

    def model(self, line: ModelRoute, key: int = 0) -> OpenedModel:
        """Return the client for a key. Raises `ModelUnusable` for a missing package or environment variable."""
        place = (line.provider, line.model, key)
        if place not in self._open:
            self._open[place] = self._connect(line, key)
        return self._open[place]

    async def close(self) -> None:
        """Close all connections. Open models become unusable; a later call opens new ones."""
        connections, self._connections = self._connections, []
        pools = [*self._replaced, *(pool for _, pool in self._reached.values())]
        self._replaced.clear()
        self._open.clear()
        self._reached.clear()
        for pool in pools:
            await pool.close()
        for connection in connections:
            await connection.aclose()

    def _connect(self, line: ModelRoute, key: int) -> OpenedModel:
        from pointsman.models.clients import OpenedModel, infer, open_model

        if line.settings is None:
            return OpenedModel(infer(line.provider, line.model))
        secret = line.settings.keys[key] if line.settings.keys else None
        opened = open_model(line.provider, line.model, line.settings, key=secret)
        if opened.connections is not None:
            self._connections.append(opened.connections)
        return opened
