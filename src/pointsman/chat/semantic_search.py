"""Semantic search of memory: finds values by their meaning as well as by their words.

    a value changes ─▶ in the background: texts without a vector ─▶ the model ─▶ vectors, stored beside the values
    a search        ─▶ the same, for its owner; then the query's vector ─▶ the nearest ─┐
                    └▶ full text ───────────────────────────────────────────────────────┴▶ one ranking

Vectors are derived data: no step that writes memory waits for one, or fails because of a missing one. If the model is
unavailable, a search uses words alone and returns a warning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from pointsman.errors import Outage, PointsmanError
from pointsman.models.embedding import AT_ONCE, Embedded
from pointsman.models.failures import ModelFailed
from pointsman.ports import Clock, MemoryMatches
from pointsman.settings.sections import EmbeddingSettings
from pointsman.store.api import Store
from pointsman.store.records import Embedding, Holding, UnembeddedValue
from pointsman.store.remembered_values import texts
from pointsman.values import Json

CHARS_MAX: Final = 8_000
"""Maximum length of an embedded text: more does not fit into the context window of most models."""
PATIENCE_S: Final = 30.0
"""How long a search waits for missing embeddings before it proceeds without them."""
RANK: Final = 60
"""Smoothing constant of ranks: see Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (2009)."""
UNSAID: Final = frozenset({"model-rejected", "model-context-too-long", "model-refused"})
"""Errors with which a model rejects a text permanently."""


class Embed(Protocol):
    async def __call__(
        self, name: str, texts: Sequence[str], *, query: bool = False, dimensions: int | None = None
    ) -> Embedded:
        """Return a vector of each text. Raises `ModelFailed`, `ModelUnusable`."""
        ...


class SemanticIndex:
    """Semantic index of the memory of one store."""

    def __init__(self, store: Store, clock: Clock, embed: Embed, settings: EmbeddingSettings) -> None:
        self._store = store
        self._clock = clock
        self._embed = embed
        self._settings = settings
        self._placing: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._waiting: set[tuple[str, str]] = set()
        """Owners whose memory may have changed since their task last read it."""

    @property
    def model(self) -> str:
        """The name under which vectors are stored: vectors of other lengths count as those of another model."""
        bound = self._settings.dimensions
        return self._settings.model if bound is None else f"{self._settings.model}/{bound}"

    def changed(self, scope: str, namespace: str) -> None:
        self._placed(scope, namespace)

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int, within: str = "", at: float = 0.0
    ) -> MemoryMatches:
        deep = 2 * limit
        words = await self._store.memory.search(scope, namespace, text, limit=deep, within=within, at=at)
        warnings: list[str] = []
        try:
            task = self._placed(scope, namespace)
            await asyncio.wait({task}, timeout=PATIENCE_S)
            if task.done():
                task.result()
            else:
                warnings.append("some values have no embeddings yet: they were searched by words only")
            [vector], usage = await self._embedded([text], query=True)
        except Outage:
            raise
        except (ModelFailed, PointsmanError) as why:
            if why.code == "memory-vectors-differ":
                raise
            code = why.failure.code if isinstance(why, ModelFailed) else why.code
            return MemoryMatches(words[:limit], (f"searched by words only: {code}: {why}",))
        near = await self._store.vectors.nearest(scope, namespace, self.model, vector, limit=deep, within=within, at=at)
        by_meaning = [(one.key, one.value) for one in near if one.similarity >= self._settings.similarity_min]
        return MemoryMatches(merged(words, by_meaning)[:limit], tuple(warnings), usage)

    async def reindex(self, owners: Sequence[Holding]) -> int:
        """Compute all vectors again and return their number. Raises the errors of the model."""
        await self._store.vectors.clear()
        return sum([await self._place(owner.scope, owner.namespace) for owner in owners])

    async def close(self) -> None:
        """Stop the background tasks. The next search computes the missing vectors."""
        for task in (tasks := [*self._placing.values()]):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _placed(self, scope: str, namespace: str) -> asyncio.Task[None]:
        """Ensure that all values of an owner get vectors, and return the task: one for all callers."""
        owner = (scope, namespace)
        self._waiting.add(owner)
        if owner not in self._placing:
            task = self._placing[owner] = asyncio.create_task(self._place_waiting(owner))
            # Retrieved to silence asyncio: a search meets the same error again and reports it.
            task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return self._placing[owner]

    async def _place_waiting(self, owner: tuple[str, str]) -> None:
        try:
            while owner in self._waiting:
                self._waiting.discard(owner)
                await self._place(*owner)
        finally:
            del self._placing[owner]

    async def _place(self, scope: str, namespace: str) -> int:
        vectors, count = self._store.vectors, 0
        while missing := await vectors.missing(scope, namespace, self.model, limit=AT_ONCE, at=self._clock.now()):
            placed = await self._vectors_of(missing)
            await vectors.place(scope, namespace, self.model, placed)
            count += len(missing)
        return count

    async def _vectors_of(self, missing: Sequence[UnembeddedValue]) -> list[Embedding]:
        try:
            vectors, _ = await self._embedded([embedded_text(one) for one in missing], query=False)
        except ModelFailed as why:
            if why.failure.code not in UNSAID:
                raise
            if len(missing) == 1:
                return [Embedding(missing[0].key, missing[0].mark, ())]
            # One of them is rejected: each is tried alone, so that the others get vectors.
            return [placed for one in missing for placed in await self._vectors_of([one])]
        return [Embedding(one.key, one.mark, vector) for one, vector in zip(missing, vectors, strict=True)]

    async def _embedded(self, passages: Sequence[str], *, query: bool) -> Embedded:
        return await self._embed(self._settings.model, passages, query=query, dimensions=self._settings.dimensions)


def embedded_text(value: UnembeddedValue) -> str:
    """Return the text of a value, including its key."""
    return " ".join([value.key, *texts(value.value)])[:CHARS_MAX]


def merged(*rankings: Sequence[tuple[str, Json]]) -> list[tuple[str, Json]]:
    """Merge rankings into one by reciprocal rank fusion: a value near the top of several rankings comes first."""
    scores: dict[str, float] = {}
    values: dict[str, Json] = {}
    for ranking in rankings:
        for rank, (key, value) in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (RANK + rank)
            values[key] = value
    return [(key, values[key]) for key in sorted(scores, key=lambda key: (-scores[key], key))]
