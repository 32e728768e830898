"""Implementation of the `Models` port with pydantic-ai: one call in, one reply or one typed failure out.

    ModelRequest ─┬─ wire ──▶ pydantic-ai ── httpx ──▶ provider
                  └─ the scripted model, inside this process
    ModelReply   ◀── wire ── parts, usage ◀─ JSON or SSE

Only pydantic-ai's low-level layer is used, not its agents and graphs: the agent loop, retries and pacing are
Pointsman's. If a model fails, the next one of its `fallback` is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from pointsman.engine.failures import Failure, failure_by
from pointsman.errors import Outage, PointsmanError
from pointsman.models.call import ModelCaller, TextListener, bounded
from pointsman.models.embedding import Embedded, Embedders
from pointsman.models.failures import ModelFailed, ModelUnnamed, ModelUnusable
from pointsman.models.key_budgets import Days, Spending
from pointsman.models.key_leases import Turns
from pointsman.models.key_pool import KeyPool
from pointsman.models.prices import Prices
from pointsman.models.provider import Provider
from pointsman.models.providers import Providers
from pointsman.models.redaction import key_redaction, redacted
from pointsman.models.script import Script
from pointsman.models.scripted import NAME as SCRIPTED
from pointsman.models.scripted import ScriptedModel, Sleep
from pointsman.ports import Clock, Hear, ModelReply, ModelRequest
from pointsman.redaction import Redaction, head, hiding
from pointsman.values import Json, JsonObject

SAME_ELSEWHERE: Final = frozenset({"model-refused", "model-request-unsupported", "model-unnamed"})
"""Failures caused by the request itself: fallback models are not tried."""

_EXCERPT: Final = 200


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Rules that select the models for a request, from the settings."""

    only: str | None
    """Model that answers all requests, whatever model they name."""
    default: str
    purposes: dict[str, str]
    fallback: tuple[str, ...]

    def names_for(self, request: ModelRequest) -> tuple[str, ...]:
        """Return the models that may answer, in order."""
        if self.only is not None:
            return (self.only,)
        first = request.model or self.purposes.get(request.purpose, "") or self.default
        return tuple(dict.fromkeys((first, *(request.fallback or self.fallback))))


@dataclass(frozen=True, slots=True, eq=False)
class KnownModels:
    """Model names and refusals without providers, for use in another process."""

    choice: ModelChoice
    refusals: dict[str, ModelUnusable | ModelUnnamed]
    """Name -> why the model cannot be called. Others are assumed to be callable."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownModels) and self._compared() == other._compared()

    __hash__ = None  # pyright: ignore[reportAssignmentType] - unhashable, as its dict is

    def _compared(self) -> tuple[object, ...]:
        # Errors are equal only to themselves, their texts to those of the next look-up.
        return self.choice, {name: (why.code, str(why), why.hint) for name, why in self.refusals.items()}

    def names_for(self, request: ModelRequest) -> tuple[str, ...]:
        return self.choice.names_for(request)

    def check(self, names: Sequence[str]) -> None:
        """Raise the refusal as `PydanticModels.check` does."""
        refuse_where_none_answers(names, self.refusals.get)


class PydanticModels:
    """Calls models by `provider:name`. Imports clients and connects only at the first call."""

    def __init__(
        self,
        *,
        providers: Mapping[str, Provider] | None = None,
        default: str = "",
        purposes: Mapping[str, str] | None = None,
        temperatures: Mapping[str, float] | None = None,
        fallback: tuple[str, ...] = (),
        only: str | None = None,
        script: Script | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Clock | None = None,
        spending: Spending | None = None,
        turns: Turns | None = None,
        prices: Prices | None = None,
    ) -> None:
        """Requests without a model use that of their purpose, or else `default`; requests without a temperature use
        that of their purpose, if any.

        `fallback` applies to requests without their own; `only` answers all requests, whatever model they name.
        `spending` stores the usage of keys; None: in this process only. `turns` coordinates shared providers with other
        processes; None: no coordination. `prices` are the operator's own.
        """
        self._providers = Providers(providers, clock=clock, turns=turns)
        self.days = days = Days(spending)
        prices = prices or Prices()
        self._embedders = Embedders(self._providers, days, prices)
        self._caller = ModelCaller(self._providers, clock, days=days, prices=prices)
        self.choice = ModelChoice(only, default, {**(purposes or {})}, fallback)
        self._temperatures = temperatures or {}
        self._addresses: JsonObject = {name: [one.kind, one.base_url] for name, one in (providers or {}).items()}
        self._scripted = ScriptedModel(script, sleep=sleep)

    async def ask(self, request: ModelRequest, *, on_text: Hear | None = None) -> ModelReply:
        """Call a model; stream its text if `on_text` is given. A model that cannot be called also raises `ModelFailed`.

        Fallback models are tried only before the first text was streamed.
        """
        with hiding(redaction := key_redaction(self._providers.keys)):
            return await self._asked(request, TextListener(on_text), redaction)

    async def _asked(self, request: ModelRequest, ear: TextListener, redaction: Redaction) -> ModelReply:
        if request.temperature is None and request.purpose in self._temperatures:
            request = replace(request, temperature=self._temperatures[request.purpose])
        names = self.names_for(request)
        before: list[str] = []
        needs = ""
        for name, following in zip(names, [*names[1:], None], strict=True):
            try:
                reply = await self._ask(name, request, ear)
            except ModelFailed as why:
                # Not `from why`: the original exception may contain the key, and bug reports print causes.
                failure = redacted(why.failure, redaction)
                needs = needs or failure.needs
                if following is None or ear.heard or failure.code in SAME_ELSEWHERE:
                    if failure.needs:  # No model can be called here: prefer a worker that has the first one.
                        failure = replace(failure, needs=needs)
                    raise ModelFailed(_after(failure, before)) from None
                told = f"{failure.code}: {head(failure.message, _EXCERPT)}"
                before.append(f"{name!r} did not answer ({told}): {following!r} was asked")
            else:
                return replace(reply, warnings=(*before, *reply.warnings)) if before else reply
        raise AssertionError("a chain of models has a last one")

    @property
    def basis(self) -> Json:
        """The settings that decide which model answers and how, for comparisons. Contains no keys."""
        choice = self.choice
        chosen: list[Json] = [choice.only, choice.default, {**choice.purposes}, [*choice.fallback]]
        return [*chosen, {**self._temperatures}, self._addresses]

    def pools(self) -> dict[str, KeyPool]:
        """Return the key pools of the providers used so far."""
        return self._providers.pools()

    def reaches(self, name: str) -> bool:
        """Return whether a model can be called: its provider, key and client exist. Does not connect."""
        if is_scripted(name := self.choice.only or name):
            return True
        provider, _, model = name.partition(":")
        try:
            self._providers.model(self._providers.line(provider, model))
        except PointsmanError:
            return False
        return True

    async def embed(
        self, name: str, texts: Sequence[str], *, query: bool = False, dimensions: int | None = None
    ) -> Embedded:
        """Return the embeddings of texts, with the same keys as other calls. Raises `ModelFailed`, `ModelUnusable`."""
        with hiding(redaction := key_redaction(self._providers.keys)):
            try:
                return await self._embedders.embed(name, texts, query=query, dimensions=dimensions)
            except ModelFailed as why:
                raise ModelFailed(redacted(why.failure, redaction)) from None  # The cause may contain the key.

    async def close(self) -> None:
        """Close all connections. A later call connects again."""
        await self._embedders.close()
        await self._providers.close()

    def names_for(self, request: ModelRequest) -> tuple[str, ...]:
        """Return the models that may answer, in order."""
        return self.choice.names_for(request)

    def check(self, names: Sequence[str]) -> None:
        """Raise `ModelUnusable` or `ModelUnnamed` if none of these models can be called. Does not connect: only a call
        shows whether a key is valid."""
        refuse_where_none_answers(names, self.refusal)

    def refusal(self, name: str) -> ModelUnusable | ModelUnnamed | None:
        """Return why this model cannot be called; None: it can."""
        try:
            if not is_scripted(name):
                self._providers.check(*split_name(name))
        except (ModelUnusable, ModelUnnamed) as why:
            return why
        return None

    async def _ask(self, name: str, request: ModelRequest, ear: TextListener) -> ModelReply:
        try:
            if is_scripted(name):
                asked = self._scripted.ask(request, on_text=ear.listening)
                return await bounded(asked, request.timeout_s, name=name)
            return await self._caller.call(self._providers.line(*split_name(name)), request, ear)
        except (ModelFailed, Outage):
            raise
        except PointsmanError as why:
            needs = f"model:{name}" if isinstance(why, ModelUnusable) and ":" in name else ""
            raise ModelFailed(replace(failure_by(why), needs=needs)) from None


def refuse_where_none_answers(
    names: Sequence[str], refusal: Callable[[str], ModelUnusable | ModelUnnamed | None]
) -> None:
    """Raise the refusal of the first model if every model has one."""
    refusals = [refusal(name) for name in names]
    if refusals and refusals[0] is not None and None not in refusals:
        raise refusals[0]


def is_scripted(name: str) -> bool:
    """Return whether a name means the scripted model: `scripted`, or `scripted:` and anything."""
    return name == SCRIPTED or name.startswith(f"{SCRIPTED}:")


def split_name(name: str) -> tuple[str, str]:
    """Return provider and model. Raises `ModelUnnamed` for an empty name, `ModelUnusable` without a provider."""
    if not name:
        hint = "Set `model` on the agent, `config.defaultModel` in the workflow, or `model` in the settings."
        raise ModelUnnamed("no model is named", hint=hint)
    provider, _, model = name.partition(":")
    if not (provider and model):
        raise ModelUnusable(f"{name!r} names no provider", hint="Write provider:model, such as 'openai:gpt-5'.")
    return provider, model


def _after(failure: Failure, before: list[str]) -> Failure:
    if not before:
        return failure
    details: JsonObject = {**(failure.details or {}), "before": [*before]}
    return replace(failure, details=details)
