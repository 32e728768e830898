"""Who speaks: `provider:model` names found, their keys in turn, their clients opened by the first call and kept.

A name in the settings is what they say. Another is a known kind with its usual environment variables, else one that
only pydantic-ai knows, configured as it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pointsman.definition.problems import did_you_mean
from pointsman.models.failures import ModelUnusable
from pointsman.models.key_budgets import DayLimit
from pointsman.models.key_leases import Turns
from pointsman.models.key_pool import KeyPool
from pointsman.models.provider import Provider
from pointsman.models.provider_kinds import KINDS
from pointsman.ports import Clock

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from pointsman.models.clients import Closing


@dataclass(frozen=True, slots=True)
class ModelRoute:
    """How one model is reached."""

    provider: str
    model: str
    settings: Provider | None
    """Absent: only pydantic-ai knows it."""
    pool: KeyPool

    @property
    def retries(self) -> int:
        return 1 if self.settings is None else self.settings.retries

    @property
    def day(self) -> DayLimit | None:
        """What each key may pay for on one day; None: nobody limits it."""
        return None if self.settings is None else self.settings.day

    @property
    def key_count(self) -> int:
        return 0 if self.settings is None else len(self.settings.keys)

    @property
    def wait_s(self) -> float:
        """Before the same is tried again, where the provider names no time."""
        interval = 0.0 if self.settings is None else self.settings.pacing.interval_s
        return 2 * interval or 1.0


class Providers:
    """Opens models and keeps them open. One client per model and key, one pool of keys per provider."""

    def __init__(
        self, known: Mapping[str, Provider] | None = None, *, clock: Clock | None = None, turns: Turns | None = None
    ) -> None:
        """`turns`: where those agree with other processes that share their keys."""
        self._known = dict(known or {})
        self._turns = turns
        self._clock = clock
        self._reached: dict[str, tuple[Provider | None, KeyPool]] = {}
        self._open: dict[tuple[str, str, int], Model] = {}
        self._connections: list[Closing] = []

    @property
    def keys(self) -> list[str]:
        """All of them: they must not be shown."""
        reached = [settings for settings, _ in self._reached.values() if settings is not None]
        return [key for provider in (*self._known.values(), *reached) for key in provider.keys]

    def line(self, provider: str, model: str, *, otherwise: Callable[[], Provider] | None = None) -> ModelRoute:
        """How a model is reached; `otherwise` describes a provider that nothing else does. Raises `ModelUnusable`."""
        if provider not in self._reached:
            settings = self._known.get(provider)
            if settings is None and otherwise is not None:
                settings = otherwise()
            if settings is None and provider in KINDS:
                settings = Provider(kind=provider)
            if settings is not None:
                settings = settings.resolved(provider)
            pacing = None if settings is None else settings.pacing
            keys = 1 if settings is None else len(settings.keys)
            turns = self._turns if settings is not None and settings.shared else None
            pool = KeyPool(provider, keys=keys, pacing=pacing, clock=self._clock, turns=turns)
            self._reached[provider] = settings, pool
        return ModelRoute(provider, model, *self._reached[provider])

    def check(self, provider: str, model: str) -> None:
        """Raise `ModelUnusable` where the model cannot be called from here: an unknown provider, no key, no address, a
        client that is not installed. Connects to nothing."""
        settings = self._known.get(provider)
        if settings is None and provider in KINDS:
            settings = Provider(kind=provider)
        if settings is None:
            self._check_unknown(provider, model)
            return
        settings.resolved(provider)
        kind = KINDS[settings.kind]
        if not _is_installed(kind.client):
            raise ModelUnusable(
                f"the client for the provider {provider!r} is not installed",
                hint=f"Install it: pip install 'pointsman[{kind.extra}]'.",
            )

    def _check_unknown(self, provider: str, model: str) -> None:
        """A provider that only pydantic-ai may know: its client is built, as the first call would build it."""
        from pointsman.models.clients import infer

        try:
            infer(provider, model)
        except ModelUnusable as why:
            near = did_you_mean(provider, {*self._known, *KINDS})
            raise ModelUnusable(str(why), hint=f"{near} {why.hint}".strip()) from None

    def pools(self) -> dict[str, KeyPool]:
        """Of the providers that were asked so far."""
        return {name: pool for name, (_, pool) in self._reached.items()}

    def model(self, line: ModelRoute, key: int = 0) -> Model:
        """The client that speaks with that key. Raises `ModelUnusable`: a part that is not installed, a variable."""
        place = (line.provider, line.model, key)
        if place not in self._open:
            self._open[place] = self._connect(line, key)
        return self._open[place]

    async def close(self) -> None:
        """Hang up. Models opened here are of no use afterwards; what is opened next begins anew."""
        connections, self._connections = self._connections, []
        pools = [pool for _, pool in self._reached.values()]
        self._open.clear()
        self._reached.clear()
        for pool in pools:
            await pool.close()
        for one in connections:
            await one.aclose()

    def _connect(self, line: ModelRoute, key: int) -> Model:
        from pointsman.models.clients import infer, open_model

        if line.settings is None:
            return infer(line.provider, line.model)
        secret = line.settings.keys[key] if line.settings.keys else None
        opened = open_model(line.provider, line.model, line.settings, key=secret)
        if opened.connections is not None:
            self._connections.append(opened.connections)
        return opened.model


@cache
def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # The package around a nested module is missing.
        return False
