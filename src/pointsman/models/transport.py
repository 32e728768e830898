"""Implementation of the `Models` port with pydantic-ai: one call in, one reply or one typed failure out.

    ModelRequest ─┬─ wire ──▶ pydantic-ai ── httpx ──▶ provider
                  └─ the scripted model, inside this process
    ModelReply   ◀── wire ── parts, usage ◀─ JSON or SSE

Only pydantic-ai's low-level layer is used, not its agents and graphs: the agent loop, retries and pacing are
Pointsman's. If a model fails, the next one of its `fallback` is called. A call of one model (`ModelCaller`):

    key ─▶ exchange ─┬─▶ reply
                     ├─ 429, key refused or out of budget: the key rests ─▶ another key, or the same after its rest
                     ├─ the service cannot answer now                    ─▶ pause, retry
                     └─ anything else, or text was streamed              ─▶ `ModelFailed`

Trying a key for the first time does not count as a retry; there are at most `retries` others.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from pointsman.engine.failures import Failure, failure_by
from pointsman.errors import Outage, PointsmanError
from pointsman.models.embedding import Embedded, Embedders
from pointsman.models.failures import ModelFailed, ModelUnnamed, ModelUnusable, key_redaction, redacted
from pointsman.models.key_pool import (
    BUDGET_SPENT,
    PATIENCE_S,
    REFUSED_S,
    Days,
    KeyLeases,
    KeyPool,
    KeysExhausted,
    LoopClock,
    Spending,
)
from pointsman.models.prices import Prices
from pointsman.models.provider import Provider
from pointsman.models.providers import ConnectedProviders, ModelRoute, Providers
from pointsman.models.recording import ModelRecording
from pointsman.models.script import Script
from pointsman.models.scripted import NAME as SCRIPTED
from pointsman.models.scripted import ScriptedModel, Sleep
from pointsman.ports import Clock, ModelReply, ModelRequest, TextCallback
from pointsman.redaction import Redaction, head, hidden, hiding
from pointsman.values import Json, JsonObject

SAME_ELSEWHERE: Final = frozenset({"model-refused", "model-request-unsupported", "model-unnamed"})
"""Failures caused by the request itself: fallback models are not tried."""

_EXCERPT: Final = 200
ENVIRONMENT_S: Final = 1.0
"""Keys that are set in the environment later are masked after this time at the latest."""


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
        leases: KeyLeases | None = None,
        prices: Prices | None = None,
        connected: ConnectedProviders | None = None,
    ) -> None:
        """Requests without a model use that of their purpose, or else `default`; requests without a temperature use
        that of their purpose, if any.

        `fallback` applies to requests without their own; `only` answers all requests, whatever model they name.
        `spending` stores the usage of keys; None: in this process only. `leases` coordinates shared providers with
        other processes; None: no coordination. `prices` are the operator's own. `connected` are providers, and a
        default model where `default` is empty, that may change while this object is used.
        """
        self._providers = Providers(providers, clock=clock, leases=leases)
        self.days = days = Days(spending)
        prices = prices or Prices()
        self._embedders = Embedders(self._providers, days, prices)
        self._caller = ModelCaller(self._providers, clock, days=days, prices=prices)
        self.choice = ModelChoice(only, default, {**(purposes or {})}, fallback)
        self._temperatures = temperatures or {}
        self._own = providers or {}
        self._default = default
        self.connected = connected
        self._version: int = 0
        """The version of `connected` that is in use."""
        self._scripted = ScriptedModel(script, sleep=sleep)
        self.recording: ModelRecording | None = None
        """Answers instead of providers, for tests."""
        self._known: tuple[list[str], float, Redaction] | None = None
        """Keys, until when their redaction can be used, and the redaction."""

    async def ask(self, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        """Call a model; stream its text if `on_text` is given. A model that cannot be called also raises `ModelFailed`.

        Fallback models are tried only before the first text was streamed.
        """
        await self.refresh()
        with hiding(redaction := self._redaction()):
            return await self._ask_chain(request, TextListener(on_text), redaction)

    async def refresh(self) -> None:
        """Use the providers and the default model that are connected now. Cheap; every call does it."""
        if (connected := self.connected) is None:
            return
        await connected.refresh()
        if connected.version != self._version:
            self._version = connected.version
            self._providers.connect(connected.providers)
            self._embedders.reopen()
            self.choice = dataclasses.replace(self.choice, default=self._default or connected.default)

    async def _ask_chain(self, request: ModelRequest, listener: TextListener, redaction: Redaction) -> ModelReply:
        if request.temperature is None and request.purpose in self._temperatures:
            request = replace(request, temperature=self._temperatures[request.purpose])
        names = self.names_for(request)
        before: list[str] = []
        needs = ""
        for name, following in zip(names, [*names[1:], None], strict=True):
            try:
                reply = await self._ask(name, request, listener)
            except ModelFailed as why:
                # Not `from why`: the original exception may contain the key, and bug reports print causes.
                failure = redacted(why.failure, redaction)
                needs = needs or failure.needs
                if following is None or listener.has_text or failure.code in SAME_ELSEWHERE:
                    if failure.needs:  # No model can be called here: prefer a worker that has the first one.
                        failure = replace(failure, needs=needs)
                    raise ModelFailed(_after(failure, before)) from None
                reason = f"{failure.code}: {head(failure.message, _EXCERPT)}"
                before.append(f"{name!r} did not answer ({reason}): {following!r} was used instead")
            else:
                return replace(reply, warnings=(*before, *reply.warnings)) if before else reply
        raise AssertionError("a chain of models has a last one")

    def _redaction(self) -> Redaction:
        """Return the redaction of the keys. The environment is read again after `ENVIRONMENT_S`."""
        keys, now = self._providers.keys, time.monotonic()
        if self._known is None or self._known[0] != keys or now >= self._known[1]:
            self._known = keys, now + ENVIRONMENT_S, key_redaction(keys)
        return self._known[2]

    @property
    def basis(self) -> Json:
        """The settings that decide which model answers and how, for comparisons. Contains no keys."""
        choice = self.choice
        chosen: list[Json] = [choice.only, choice.default, {**choice.purposes}, [*choice.fallback]]
        connected = dict[str, Provider]() if self.connected is None else self.connected.providers
        addresses: JsonObject = {
            name: [provider.kind, provider.base_url] for name, provider in {**connected, **self._own}.items()
        }
        return [*chosen, {**self._temperatures}, addresses]

    def pools(self) -> dict[str, KeyPool]:
        """Return the key pools of the providers used so far."""
        return self._providers.pools()

    def reaches(self, name: str) -> bool:
        """Return whether a model can be called: its provider, key and client exist. Does not connect."""
        if is_scripted(name := self.choice.only or name) or self._replays:
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
        await self.refresh()
        with hiding(redaction := self._redaction()):
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
            if not is_scripted(name) and not self._replays:
                self._providers.check(*split_name(name))
        except (ModelUnusable, ModelUnnamed) as why:
            # It is kept as long as the checked workflow; the traceback would keep all frames of this call.
            return why.with_traceback(None)
        return None

    async def _ask(self, name: str, request: ModelRequest, listener: TextListener) -> ModelReply:
        try:
            if is_scripted(name):
                reply = self._scripted.ask(request, on_text=listener.listening)
                return await bounded(reply, request.timeout_s, name=name)
            if self.recording is None:
                return await self._call(name, request, listener)
            call = partial(self._call, name, request, listener)
            return await self.recording.answer(name, request, call, listener.listening)
        except (ModelFailed, Outage):
            raise
        except PointsmanError as why:
            needs = f"model:{name}" if isinstance(why, ModelUnusable) and ":" in name else ""
            raise ModelFailed(replace(failure_by(why), needs=needs)) from None

    async def _call(self, name: str, request: ModelRequest, listener: TextListener) -> ModelReply:
        return await self._caller.call(self._providers.line(*split_name(name)), request, listener)

    @property
    def _replays(self) -> bool:
        """Whether a file answers, so that no key is needed."""
        return self.recording is not None and not self.recording.records


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
        raise ModelUnnamed("no model is set", hint=hint)
    provider, _, model = name.partition(":")
    if not (provider and model):
        raise ModelUnusable(f"{name!r} has no provider", hint="Write provider:model, such as 'openai:gpt-5'.")
    return provider, model


def _after(failure: Failure, before: list[str]) -> Failure:
    if not before:
        return failure
    details: JsonObject = {**(failure.details or {}), "before": [*before]}
    return replace(failure, details=details)


REFUSED_KEYS: Final = frozenset({"model-unauthorized", "model-quota-exceeded", BUDGET_SPENT})
RATE_LIMITED: Final = "model-rate-limited"
UNANSWERED: Final = frozenset({"model-unavailable", "model-server-error", "model-unreachable"})


class TextListener:
    """Forwards streamed text and records that there was some: a call cannot be retried after that."""

    def __init__(self, callback: TextCallback | None) -> None:
        self._on_text = callback
        self.has_text = False

    @property
    def listening(self) -> TextCallback | None:
        return None if self._on_text is None else self._listen

    def _listen(self, text: str, /) -> None:
        assert self._on_text is not None
        self.has_text = True
        self._on_text(text)


class ModelCaller:
    """Calls models with retries and key scheduling."""

    def __init__(
        self,
        providers: Providers,
        clock: Clock | None = None,
        *,
        days: Days | None = None,
        prices: Prices | None = None,
    ) -> None:
        self._providers = providers
        self._prices = prices or Prices()
        self._days = days or Days()
        self._clock: Clock = clock or LoopClock()

    async def call(self, line: ModelRoute, request: ModelRequest, listener: TextListener) -> ModelReply:
        """Call a model and return its reply. Raises `ModelFailed`, `ModelUnusable`."""
        left, tried, failure, refused = line.retries, set[int](), None, list[str]()
        while True:
            try:
                key = await line.pool.take(request.key_index)
            except KeysExhausted as why:
                raise ModelFailed(failure or why.failure) from None
            tried.add(key)
            try:
                reply = await self._paid(line, key, request, listener)
            except ModelFailed as why:
                failure = why.failure
                line.pool.failed(key, failure)
                _report(request, failure)
            else:
                _report(request, None)
                return _with_warnings(reply, line, key, request.key_index, refused)
            finally:
                line.pool.give_back(key)
            await self._rest(line, key, failure)
            if failure.code == BUDGET_SPENT:
                refused.append(failure.message)
            elif failure.code in REFUSED_KEYS:
                refused.append(f"the provider refuses key {key} of {line.provider!r} ({failure.code})")
            following = line.pool.next_key(request.key_index)
            elsewhere = _is_keys_fault(failure) and following is not None and following not in tried
            if not elsewhere:
                left -= 1
            if listener.has_text or following is None or left < 0 or not _may_help(failure, elsewhere=elsewhere):
                raise ModelFailed(failure)
            if failure.code in UNANSWERED:
                await self._clock.sleep_until(self._clock.now() + (failure.retry_after_s or line.wait_s))

    async def _paid(self, line: ModelRoute, key: int, request: ModelRequest, listener: TextListener) -> ModelReply:
        """Do the exchange if the key's daily budget allows it. Raises `ModelFailed`, `ModelUnusable`."""
        from pointsman.models.exchange import exchange  # Clients are imported at their first use.

        opened, limit = self._providers.model(line, key), line.day
        if (refusal := await self._days.refusal(line.provider, key, limit)) is not None:
            raise ModelFailed(refusal)
        exchanged = exchange(opened.model, request, on_text=listener.listening, wire=opened.wire)
        reply = await bounded(exchanged, request.timeout_s, name=f"{line.provider}:{line.model}")
        reply = replace(reply, usage=self._prices.paid(line.provider, line.model, reply.usage))
        await self._days.paid(line.provider, key, limit, reply.usage)
        if limit is None or limit.usd is None or reply.usage.cost_usd is not None:
            return reply
        unpriced = f"the price of {reply.model!r} is unknown: the daily limit in dollars does not count its calls"
        return replace(reply, warnings=(*reply.warnings, unpriced))

    async def _rest(self, line: ModelRoute, key: int, failure: Failure) -> None:
        if failure.code == RATE_LIMITED:
            wait = line.wait_s if failure.retry_after_s is None else failure.retry_after_s
            line.pool.rest(key, wait, failure)
            await line.pool.tell(key)
        elif failure.code in REFUSED_KEYS:
            line.pool.rest(key, REFUSED_S, failure)


def _report(request: ModelRequest, failure: Failure | None) -> None:
    """Report a failure, with secrets masked, to the attempt that may time out while the call is tried again."""
    if request.run is not None:
        for redaction in hidden() if failure is not None else ():
            failure = failure and redacted(failure, redaction)
        request.run.tries_again(failure)


async def bounded(pending: Awaitable[ModelReply], timeout_s: float | None, *, name: str) -> ModelReply:
    """Return the reply of one exchange within the timeout. Raises `ModelFailed`."""
    bound = asyncio.timeout(timeout_s)
    try:
        async with bound:
            return await pending
    except TimeoutError:
        if not bound.expired():
            raise
        message = f"the model {name!r} did not answer within {timeout_s:g} s"
        hint = "Raise the node's `execution.timeout` or the workflow's `config.limits.nodeTime`, or use a faster model."
        raise ModelFailed(Failure(code="model-timeout", message=message, retryable=True, hint=hint)) from None


def _is_keys_fault(failure: Failure) -> bool:
    return failure.code == RATE_LIMITED or failure.code in REFUSED_KEYS


def _may_help(failure: Failure, *, elsewhere: bool) -> bool:
    if failure.code in UNANSWERED:
        return (failure.retry_after_s or 0.0) <= PATIENCE_S
    return elsewhere or failure.code == RATE_LIMITED


def _with_warnings(reply: ModelReply, line: ModelRoute, key: int, index: int | None, refused: list[str]) -> ModelReply:
    """Return the reply with provider and key, and warnings about deviations from the request."""
    if not line.key_count:
        return replace(reply, provider=line.provider)
    warnings = [*reply.warnings, *refused]
    if index is not None and not line.pool.rotates:
        assigned = index % line.key_count
        if assigned != index:
            warnings.append(
                f"keyIndex {index} is greater than the number of keys of {line.provider!r} "
                f"({line.key_count}): key {assigned} is used"
            )
        if assigned != key:
            warnings.append(f"key {assigned} of {line.provider!r} is not available now: key {key} was used")
    return replace(reply, provider=line.provider, key=key, warnings=tuple(warnings))
