"""The `Models` port over pydantic-ai's low-level layer: one call in, one reply or one typed failure out.

    ModelRequest ── wire ──▶ pydantic-ai ── httpx ──▶ provider, or the scripted model inside this process
    ModelReply   ◀─ wire ── parts, usage ◀─ JSON or SSE

Its agents and graphs are not used: the loop, the retries and the pacing are ours.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pointsman.engine.failures import Failure
from pointsman.errors import PointsmanError
from pointsman.models.failures import ModelFailed, ModelUnnamed, ModelUnusable
from pointsman.models.providers import Provider, Providers
from pointsman.models.redaction import redacted
from pointsman.models.script import Script
from pointsman.models.scripted import HINTS_HEADER, ScriptedModel, Sleep
from pointsman.ports import Hear, ModelReply, ModelRequest

if TYPE_CHECKING:
    from pydantic_ai.models import Model

SCRIPTED: Final = "scripted"
"""The model that answers from a script, inside this process."""


class PydanticModels:
    """Speaks to models by `provider:name`. Nothing is imported or connected before the first call."""

    def __init__(
        self,
        *,
        providers: Mapping[str, Provider] | None = None,
        default: str = SCRIPTED,
        only: str | None = None,
        script: Script | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`default` answers requests that name no model; `only` answers all, whatever they name."""
        self._providers = Providers(providers)
        self._default = default
        self._only = only
        self._mind = ScriptedModel(script)
        self._sleep = sleep

    async def ask(self, request: ModelRequest, *, on_text: Hear | None = None) -> ModelReply:
        """One call, streamed where someone listens. A model that cannot be asked at all is a `ModelFailed` too."""
        name = self._only or request.model or self._default
        try:
            model = self._open(name, request.key_index)
        except PointsmanError as why:
            raise ModelFailed(Failure(code=why.code, message=str(why), hint=why.hint)) from why
        from pointsman.models.exchange import exchange

        headers = _hints(request) if is_scripted(name) else None
        try:
            return await exchange(model, request, headers=headers, on_text=on_text)
        except ModelFailed as why:
            # Not `from why`: what it came from may hold the key, and reports of bugs print causes.
            raise ModelFailed(redacted(why.failure, self._providers.keys)) from None

    async def close(self) -> None:
        """Hang up. The next call connects again."""
        await self._providers.close()

    def _open(self, name: str, key_index: int | None) -> Model:
        if is_scripted(name):
            return self._providers.open_model(SCRIPTED, SCRIPTED, otherwise=self._scripted)
        provider, _, model = name.partition(":")
        if not name:
            raise ModelUnnamed("no model is named", hint="Set `model` on the agent or `config.defaultModel`.")
        if not model:
            raise ModelUnusable(f"{name!r} names no provider", hint="Write provider:model, such as 'openai:gpt-5'.")
        return self._providers.open_model(provider, model, key_index=key_index)

    def _scripted(self) -> Provider:
        from pointsman.models.scripted_transport import ScriptedTransport

        # A host that cannot exist: whatever went past the transport would go nowhere.
        return Provider(base_url="http://scripted.invalid/v1", http=ScriptedTransport(self._mind, sleep=self._sleep))


def is_scripted(name: str) -> bool:
    """Whether a model's name means the scripted one: `scripted`, or `scripted:` and anything."""
    return name == SCRIPTED or name.startswith(f"{SCRIPTED}:")


def _hints(request: ModelRequest) -> dict[str, str]:
    # Headers are ASCII; only the transport inside this process reads them.
    return {HINTS_HEADER: json.dumps({**request.hints, "purpose": request.purpose})}
