"""Semantic search in memory with an embedding model, and search without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pydantic import ValidationError

from pointsman.app import Pointsman, Workflow
from pointsman.chat.memories import EmbeddingsOff, memory_page
from pointsman.operations.model_catalogue import list_models, ping_models
from pointsman.settings import Settings
from pointsman.store.errors import VectorsDiffer
from pointsman.values import Json, JsonObject
from tests.chat.embeddings import KEY, POISON, Places
from tests.http_server import http_server

HINT = "searched by words only"


@pytest.fixture
def places() -> Iterator[Places]:
    with http_server() as server:
        yield Places(server)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return str(request.getfixturevalue("postgres_url"))


def settings(places: Places, **more: Json) -> Settings:
    embeddings: JsonObject = {"model": "own:small", **more}
    provider: JsonObject = {"base_url": places.address, "keys": [KEY]}
    return Settings.model_validate({"providers": {"own": provider}, "memory": {"embeddings": embeddings}})


def parts(folder: Path) -> list[bytes]:
    """Return the files of a store; none for a store that is not a file."""
    return [path.read_bytes() for path in folder.glob("store.db*")]


def noting(operation: str = "append", **config: Json) -> Workflow:
    node: JsonObject = {"scope": "user", "operation": operation, "key": "log", "value": "text", **config}
    schema: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}}
    document = {"id": "desk", "input": schema, "nodes": [{"id": "do", "type": "memory", "config": node}], "edges": []}
    return Workflow.parse(json.dumps(document), name="desk")


async def test_semantic_search_finds_other_words_even_after_a_restart(
    store_url: str, places: Places, tmp_path: Path
) -> None:
    async with Pointsman(store_url, settings=settings(places)) as app:
        ann = app.memory.of("user", "ann")
        for key, value in (("one", "her puppy is called Rex"), ("two", "the car is red"), ("three", "rain tomorrow")):
            await ann.set(key, value)
        await app.memory.of("user", "ben").set("one", "his dog is called Max")
    async with Pointsman(store_url, settings=settings(places)) as app:
        found = await app.memory.of("user", "ann").search("which dog")
        assert [(one.key, one.value) for one in found] == [("one", "her puppy is called Rex")]
        execution = await app.start(noting("search", query="{text}"), {"text": "a pet, or a motor"}, by="ann")
        result = await execution.output()
        assert isinstance(result, list)
        assert sorted(str(one["key"]) for one in result if isinstance(one, dict)) == ["one", "two"]
        assert await app.store.verify() == []
    assert all("Max" not in text for text in places.texts if "Rex" in text)
    assert not any(KEY.encode() in part for part in parts(tmp_path))


async def test_search_combines_words_and_meaning_and_follows_changes(store_url: str, places: Places) -> None:
    async with Pointsman(store_url, settings=settings(places)) as app:
        ann = app.memory.of("user", "ann")
        await ann.set("breed", "Weimaraner")
        await ann.set("pets", "a dog")
        finding = await ann.find("Weimaraner puppy")
        assert ({one.key for one in finding.values}, finding.warnings) == ({"breed", "pets"}, ())
        await ann.set("pets", "a car by now")
        assert [one.key for one in await ann.search("puppy")] == []
        assert [one.key for one in await ann.search("motor")] == ["pets"]
        asked = len(places.asked)
        await ann.set("pets", "a car by now")
        await ann.search("motor")
        assert len(places.asked) == asked + 1, "only what was searched for: the same value keeps its vector"
        await ann.clear()
        assert await ann.search("motor") == []


async def test_a_failing_embedding_model_does_not_fail_writes_and_search_reports_words_only(
    store_url: str, places: Places
) -> None:
    places.status = 503
    async with Pointsman(store_url, settings=settings(places)) as app:
        assert await (await app.start(noting(), {"text": "a dog"}, by="ann")).output() == ["a dog"]
        execution = await app.start(noting("search", query="dog"), {}, by="ann")
        assert await execution.output() == [{"key": "log", "value": ["a dog"]}]
        told = json.dumps(await execution.view())
        assert HINT in told
        assert "model-unavailable" in told
        finding = await app.memory.of("user", "ann").find("puppy")
        assert finding.values == []
        assert HINT in finding.warnings[0]
        page = await memory_page(app.memory.of("user", "ann"), search="puppy", after=None, limit=5)
        assert HINT in json.dumps(page.get("warnings"))
        places.status = 401
        finding = await app.memory.of("user", "ann").find("puppy")
        assert KEY not in finding.warnings[0]
        assert "model-unauthorized" in finding.warnings[0]
    places.status = 200
    async with Pointsman(store_url, settings=settings(places)) as app:
        finding = await app.memory.of("user", "ann").find("puppy")
        assert [one.key for one in finding.values] == ["log"], "what has no vector gets one when it is looked for"
        assert finding.warnings == ()


async def test_a_value_that_cannot_be_embedded_does_not_block_others(store_url: str, places: Places) -> None:
    async with Pointsman(store_url, settings=settings(places)) as app:
        ann = app.memory.of("user", "ann")
        places.status = 503
        for key, value in (("a", "a dog"), ("b", f"{POISON} puppy"), ("c", "a car")):
            await ann.set(key, value)
        await ann.search("rain")
        places.status = 200
        assert [one.key for one in await ann.search("pet")] == ["a"]
        assert {one.key for one in await ann.search("puppy")} == {"a", "b"}, "it is still found by its words"
        asked = len(places.asked)
        await ann.search("rain")
        assert len(places.asked) == asked + 1, "it is not tried again before it changes"


async def test_vectors_of_another_length_are_an_error_with_a_hint(store_url: str, places: Places) -> None:
    async with Pointsman(store_url, settings=settings(places)) as app:
        await app.memory.of("user", "ann").set("pets", "a dog")
        await app.memory.of("user", "ann").search("puppy")
    places.numbers = 6
    async with Pointsman(store_url, settings=settings(places)) as app:
        ann = app.memory.of("user", "ann")
        with pytest.raises(VectorsDiffer, match=r"'own:small' have 6 numbers, the stored ones have 4") as caught:
            await ann.search("puppy")
        assert "pointsman memory reindex" in caught.value.hint
        await ann.set("cars", "a car")
        execution = await app.start(noting("search", query="puppy"), {}, by="ann")
        assert await execution.settled() == "failed"
        assert "memory-vectors-differ" in json.dumps(await execution.view())
        assert await app.memory.reindex() == 2
        assert [one.key for one in await ann.search("puppy")] == ["pets"]
    async with Pointsman(store_url, settings=settings(places, dimensions=5)) as app:
        found = await app.memory.of("user", "ann").search("puppy")
        assert [one.key for one in found] == ["pets"], "other dimensions are another model"


@pytest.mark.integration
async def test_no_embedding_is_requested_or_stored_without_an_embedding_model(tmp_path: Path, places: Places) -> None:
    provider: JsonObject = {"base_url": places.address, "keys": [KEY]}
    plain = Settings.model_validate({"providers": {"own": provider}})
    async with Pointsman(f"sqlite:///{tmp_path}/store.db", settings=plain) as app:
        await app.memory.of("user", "ann").set("pets", "a dog")
        assert await app.memory.of("user", "ann").search("puppy") == []
        with pytest.raises(EmbeddingsOff):
            await app.memory.reindex()
        assert await app.store.vectors.clear() == 0
    assert places.asked == []


@pytest.mark.integration
@pytest.mark.parametrize("least", [0.99, -1.0])
async def test_the_similarity_threshold_is_a_setting(places: Places, least: float) -> None:
    async with Pointsman("memory:", settings=settings(places, similarity_min=least)) as app:
        ann = app.memory.of("user", "ann")
        await ann.set("pets", "a dog")
        await ann.set("sky", "rain")
        expected = {0.99: ["pets"], -1.0: ["pets", "sky"]}[least]
        assert [one.key for one in await ann.search("puppy")] == expected


@pytest.mark.integration
async def test_the_scripted_model_requests_no_embeddings(places: Places) -> None:
    async with Pointsman("memory:", settings=settings(places), model="scripted") as app:
        ann = app.memory.of("user", "ann")
        await ann.set("pets", "a dog")
        assert [one.key for one in await ann.search("dog")] == ["pets"]
        assert [one.key for one in await ann.search("puppy")] == []
    assert places.asked == []


@pytest.mark.integration
async def test_the_embedding_model_is_listed_and_pinged(places: Places) -> None:
    async with Pointsman("memory:", settings=settings(places)) as app:
        listed = list_models(app.context)["models"]
        assert [(one["name"], one["uses"]) for one in cast("list[JsonObject]", listed)] == [
            ("own:small", ["embeddings of memory"])
        ]
        [answered] = await ping_models(app.context)
        assert (answered["name"], answered["ok"]) == ("own:small", True)
        places.status = 401
        [refused] = await ping_models(app.context)
        assert cast("JsonObject", refused.get("failure"))["code"] == "model-unauthorized"
        assert KEY not in json.dumps(refused)


@pytest.mark.integration
@pytest.mark.parametrize("model", ["small", ":small", "own:", ""])
def test_an_embedding_model_without_a_provider_is_refused_by_name(model: str, places: Places) -> None:
    with pytest.raises(ValidationError, match="names no provider: write provider:name"):
        settings(places, model=model)


async def test_embedding_usage_of_a_search_counts_for_the_execution_and_its_budget(
    store_url: str, places: Places
) -> None:
    async with Pointsman(store_url, settings=settings(places)) as app:
        await app.memory.of("user", "ann").set("pets", "a dog")
        await app.memory.of("user", "ann").search("puppy")
        execution = await app.start(noting("search", query="puppy"), {}, by="ann")
        await execution.settled()
        usage = execution.state.usage
        assert (usage.model_calls, usage.input_tokens) == (1, 3)
        asked = len(places.asked)
    async with Pointsman(store_url, settings=settings(places)) as app:
        kept = (await app.open(execution.id)).state.usage
        assert (kept.model_calls, kept.input_tokens) == (1, 3)
        document = json.loads(noting("search", query="puppy").document.text)
        node = document["nodes"][0]
        document["nodes"] = [node, {**node, "id": "more"}]
        document["edges"] = [{"source": "do", "target": "more"}]
        document["config"] = {"limits": {"modelCalls": 1}}
        stopped = await app.start(Workflow.parse(json.dumps(document), name="twice"), {}, by="ann")
        await stopped.settled()
        assert (len(places.asked), stopped.state.usage.model_calls) == (asked + 1, 1)
        assert stopped.state.status != "completed"


async def test_embeddings_count_towards_the_daily_limit_of_keys(store_url: str, places: Places) -> None:
    limited: JsonObject = {"base_url": places.address, "keys": [KEY], "day": {"calls": 2}}
    embeddings: JsonObject = {"model": "own:small"}
    own = Settings.model_validate({"providers": {"own": limited}, "memory": {"embeddings": embeddings}})
    async with Pointsman(store_url, settings=own) as app:
        ann = app.memory.of("user", "ann")
        await ann.set("pets", "a dog")
        assert (await ann.find("puppy")).warnings == ()
    async with Pointsman(store_url, settings=own) as app:
        finding = await app.memory.of("user", "ann").find("puppy")
        assert "model-key-budget-spent" in finding.warnings[0]
    assert len(places.asked) == 2, "one to place it, one to look for it"
