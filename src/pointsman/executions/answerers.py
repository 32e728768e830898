"""Who really answered: the models and keys of an execution's calls, as the record of its effects tells.

A definition names a model and a key; a fallback, a key that is cooling down or a number beyond the last key make it
another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pointsman.executions.timeline import Span
from pointsman.store.api import EffectStore
from pointsman.values import ExecutionId, Json, JsonObject

Answerers: TypeAlias = Mapping[str, JsonObject]
"""Node -> `{modelsUsed, keysUsed}`, each sorted, each once."""


async def answerers_of(effects: EffectStore, execution: ExecutionId, spans: Iterable[Span]) -> Answerers:
    """One read for each attempt that paid for something."""
    nodes = {f"{span.step}:{span.attempt}": span.step.node for span in spans if span.kind == "work"}
    models: dict[str, set[str]] = {}
    keys: dict[str, set[int]] = {}
    for attempt in await effects.attempts(execution):
        node = nodes.get(attempt)
        if node is None:
            continue
        for value in (await effects.recorded(execution, attempt)).values():
            reply = value[2] if isinstance(value, list) and len(value) == 3 and value[0] == "model" else None
            if not isinstance(reply, dict):
                continue
            if isinstance(model := reply.get("model"), str) and model:
                models.setdefault(node, set()).add(model)
            if isinstance(key := reply.get("key"), int):
                keys.setdefault(node, set()).add(key)
    return {node: _used(models.get(node, set()), keys.get(node, set())) for node in models.keys() | keys.keys()}


def _used(models: set[str], keys: set[int]) -> JsonObject:
    named: list[Json] = [*sorted(models)]
    numbered: list[Json] = [*sorted(keys)]
    return {"modelsUsed": named, "keysUsed": numbered}
