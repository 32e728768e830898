"""One call of one model: get a key, do the exchange, and retry with the same or another key if that can help.

    key ─▶ exchange ─┬─▶ reply
                     ├─ 429, key refused or out of budget: the key rests ─▶ another key, or the same after its rest
                     ├─ the service cannot answer now                    ─▶ pause, retry
                     └─ anything else, or text was streamed              ─▶ `ModelFailed`

Trying a key for the first time does not count as a retry; there are at most `retries` others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from msgspec.structs import replace

from pointsman.engine.failures import Failure
from pointsman.models.failures import ModelFailed
from pointsman.models.key_budgets import BUDGET_SPENT, Days
from pointsman.models.key_pool import PATIENCE_S, REFUSED_S, KeysExhausted, LoopClock
from pointsman.models.prices import Prices
from pointsman.models.providers import ModelRoute, Providers
from pointsman.models.redaction import redacted
from pointsman.ports import Clock, Hear, ModelReply, ModelRequest
from pointsman.redaction import hidden

REFUSED_KEYS: Final = frozenset({"model-unauthorized", "model-quota-exceeded", BUDGET_SPENT})
RATE_LIMITED: Final = "model-rate-limited"
UNANSWERED: Final = frozenset({"model-unavailable", "model-server-error", "model-unreachable"})


class TextListener:
    """Forwards streamed text and records that there was some: a call cannot be retried after that."""

    def __init__(self, hear: Hear | None) -> None:
        self._hear = hear
        self.heard = False

    @property
    def listening(self) -> Hear | None:
        return None if self._hear is None else self._listen

    def _listen(self, text: str, /) -> None:
        assert self._hear is not None
        self.heard = True
        self._hear(text)


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

    async def call(self, line: ModelRoute, request: ModelRequest, ear: TextListener) -> ModelReply:
        """Call a model and return its reply. Raises `ModelFailed`, `ModelUnusable`."""
        left, tried, failure, refused = line.retries, set[int](), None, list[str]()
        while True:
            try:
                key = await line.pool.take(request.key_index)
            except KeysExhausted as why:
                raise ModelFailed(failure or why.failure) from None
            tried.add(key)
            try:
                reply = await self._paid(line, key, request, ear)
            except ModelFailed as why:
                failure = why.failure
                line.pool.failed(key, failure)
                _report(request, failure)
            else:
                _report(request, None)
                return _told(reply, line, key, request.key_index, refused)
            finally:
                line.pool.give_back(key)
            await self._rest(line, key, failure)
            if failure.code == BUDGET_SPENT:
                refused.append(failure.message)
            elif failure.code in REFUSED_KEYS:
                refused.append(f"key {key} of {line.provider!r} is not accepted ({failure.code})")
            following = line.pool.next_key(request.key_index)
            elsewhere = _is_keys_fault(failure) and following is not None and following not in tried
            if not elsewhere:
                left -= 1
            if ear.heard or following is None or left < 0 or not _may_help(failure, elsewhere=elsewhere):
                raise ModelFailed(failure)
            if failure.code in UNANSWERED:
                await self._clock.sleep_until(self._clock.now() + (failure.retry_after_s or line.wait_s))

    async def _paid(self, line: ModelRoute, key: int, request: ModelRequest, ear: TextListener) -> ModelReply:
        """Do the exchange if the key's daily budget allows it. Raises `ModelFailed`, `ModelUnusable`."""
        from pointsman.models.exchange import exchange  # Clients are imported at their first use.

        model, limit = self._providers.model(line, key), line.day
        if (refusal := await self._days.refusal(line.provider, key, limit)) is not None:
            raise ModelFailed(refusal)
        asked = exchange(model, request, on_text=ear.listening)
        reply = await bounded(asked, request.timeout_s, name=f"{line.provider}:{line.model}")
        reply = replace(reply, usage=self._prices.paid(line.provider, line.model, reply.usage))
        await self._days.paid(line.provider, key, limit, reply.usage)
        if limit is None or limit.usd is None or reply.usage.cost_usd is not None:
            return reply
        unpriced = f"no price of {reply.model!r} is known: the dollars of the day do not count it"
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


async def bounded(asked: Awaitable[ModelReply], timeout_s: float | None, *, name: str) -> ModelReply:
    """Return the reply of one exchange within the timeout. Raises `ModelFailed`."""
    bound = asyncio.timeout(timeout_s)
    try:
        async with bound:
            return await asked
    except TimeoutError:
        if not bound.expired():
            raise
        message = f"the model {name!r} did not answer within {timeout_s:g} s"
        hint = "Raise the workflow's `config.limits.nodeTime`, or ask a faster model."
        raise ModelFailed(Failure(code="model-timeout", message=message, retryable=True, hint=hint)) from None


def _is_keys_fault(failure: Failure) -> bool:
    return failure.code == RATE_LIMITED or failure.code in REFUSED_KEYS


def _may_help(failure: Failure, *, elsewhere: bool) -> bool:
    if failure.code in UNANSWERED:
        return (failure.retry_after_s or 0.0) <= PATIENCE_S
    return elsewhere or failure.code == RATE_LIMITED


def _told(reply: ModelReply, line: ModelRoute, key: int, index: int | None, refused: list[str]) -> ModelReply:
    """Return the reply with provider and key, and warnings about deviations from the request."""
    if not line.key_count:
        return replace(reply, provider=line.provider)
    warnings = [*reply.warnings, *refused]
    if index is not None and not line.pool.rotates:
        wanted = index % line.key_count
        if wanted != index:
            warnings.append(
                f"keyIndex {index} is beyond the keys of {line.provider!r} ({line.key_count}): key {wanted} is meant"
            )
        if wanted != key:
            warnings.append(f"key {wanted} of {line.provider!r} cannot be used now: key {key} was")
    return replace(reply, provider=line.provider, key=key, warnings=tuple(warnings))
