"""Memory nodes: owners of memory, changes, and each change once."""

from __future__ import annotations

import pytest

from pointsman.executors.memory import key_in, names_of, prefix_of
from pointsman.store.errors import StoreUnreachable
from pointsman.values import Json, JsonObject
from tests.executors.stage import Stage, StagedRun, agent, work


async def remember(stage: Stage, operation: str, *, step: int = 1, run: StagedRun | None = None, **given: Json) -> Json:
    command = work("memory", {"scope": "session", "session": "s1", "operation": operation, **given}, visit=step)
    return (await stage.done(command, agent(kind="memory", settings={"workflow": "desk"}), run)).result


async def test_memory_is_written_read_searched_and_deleted() -> None:
    stage = Stage()
    assert await remember(stage, "get", key="topic") is None
    assert await remember(stage, "set", key="topic", value={"on": "port"}) == {"on": "port"}
    assert await remember(stage, "get", key="topic") == {"on": "port"}
    assert await remember(stage, "append", key="log", value=1) == [1]
    assert await remember(stage, "append", key="log", value=2) == [1, 2]
    assert await remember(stage, "search", query="port", limit=3) == [{"key": "topic", "value": {"on": "port"}}]
    assert await remember(stage, "delete", key="topic") is True
    assert await remember(stage, "delete", step=2, key="topic") is False


async def test_a_memory_change_is_applied_once_per_step() -> None:
    stage = Stage()
    for _ in range(3):
        assert await remember(stage, "append", key="log", value=1) == [1]
    assert await remember(stage, "append", step=2, key="log", value=1) == [1, 1], "another visit is another step"
    assert await remember(stage, "append", key="log", value="mended") == [1, 1, "mended"], "something else is meant"
    assert await remember(stage, "append", key="log", value=1) == [1], "the answer of then"


async def test_a_store_outage_does_not_fail_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()

    async def away(*_: object, **__: object) -> Json:
        raise StoreUnreachable("the server is away")

    monkeypatch.setattr(stage.memory, "get", away)
    with pytest.raises(StoreUnreachable):
        await remember(stage, "get", key="topic")


@pytest.mark.requirement("S1-73", "S1-44")
async def test_memory_belongs_to_its_execution_session_user_workflow_or_shared_name() -> None:
    stage, spec = Stage(), agent(kind="memory", settings={"workflow": "news-desk"})
    owners: list[JsonObject] = [
        {"scope": "execution"},
        {"scope": "session", "session": "s1"},
        {"scope": "session", "session": "s1", "namespace": "notes"},
        {"scope": "session"},
        {"scope": "user", "user": "ann"},
        {"scope": "user", "user": "ann", "namespace": "notes"},
        {"scope": "workflow"},
        {"scope": "shared", "namespace": "style"},
    ]
    for number, owner in enumerate(owners):
        await stage.done(work("memory", {"operation": "set", "key": "a", "value": number, **owner}), spec)
    kept = [
        (
            one.scope,
            one.namespace,
            [(known.key, known.value) for known in await stage.memory.every(one.scope, one.namespace)],
        )
        for one in await stage.memory.holdings()
    ]
    assert kept == [
        ("execution", "exec-1", [("a", 0)]),
        ("session", "exec-1", [("a", 3)]),
        ("session", "s1", [("a", 1), ("notes/a", 2)]),
        ("shared", "style", [("a", 7)]),
        ("user", "ann", [("a", 4), ("notes/a", 5)]),
        ("workflow", "news-desk", [("a", 6)]),
    ]
    old: list[JsonObject] = [{"scope": "long_term"}, {"scope": "long_term", "namespace": "style"}]
    read = [(await stage.done(work("memory", {"operation": "get", "key": "a", **one}), spec)).result for one in old]
    assert read == [6, 7], "long_term: the workflow's, or a shared one by name"


@pytest.mark.parametrize(
    ("namespace", "key"),
    [("", "secret/pin"), ("", "/pin"), ("secret/", "pin"), ("secret", "/pin"), ("secret%2F", "pin")],
)
async def test_keys_cannot_reach_another_namespace(namespace: str, key: str) -> None:
    stage = Stage()
    await remember(stage, "set", namespace="secret", key="pin", value="1234")
    assert await remember(stage, "get", key=key, namespace=namespace) is None
    await remember(stage, "set", key=key, value="mine", namespace=namespace)
    assert await remember(stage, "get", namespace="secret", key="pin") == "1234"
    assert names_of(key_in(namespace, key)) == (namespace, key)
    assert key_in(namespace, key).startswith(prefix_of(namespace))


async def test_a_search_stays_in_its_namespace_despite_better_hits_elsewhere() -> None:
    stage = Stage()
    for number in range(5):
        await remember(stage, "set", namespace="other", key=f"tea{number}", value="tea tea tea")
    await remember(stage, "set", namespace="mine", key="cup", value="tea, once")
    found = await remember(stage, "search", namespace="mine", query="tea", limit=1)
    assert found == [{"key": "cup", "value": "tea, once"}]
    assert await remember(stage, "search", namespace="min", query="tea") == []
    everywhere = await remember(stage, "search", query="tea", limit=9)
    assert isinstance(everywhere, list)
    assert {"key": "cup", "value": "tea, once", "namespace": "mine"} in everywhere


async def test_a_value_expires_after_its_time_to_live() -> None:
    stage = Stage()
    await remember(stage, "set", key="offer", value="half price", ttl=60)
    [kept] = await stage.memory.every("session", "s1")
    assert kept.expires == pytest.approx(kept.changed + 60)
    assert kept.changed == pytest.approx(stage.clock.now(), abs=1.0)


async def test_a_section_of_a_text_can_be_read_alone() -> None:
    stage = Stage()
    await remember(stage, "set", key="doc", value="# Doc\n## Facts\nIt rains.\n### More\nA lot.\n## Plan\nWait.")
    assert await remember(stage, "get", key="doc", section="Facts") == "It rains.\n### More\nA lot."
    assert await remember(stage, "get", key="doc", section="Nothing") is None


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"operation": "get", "key": ""}, "memory-key-invalid"),
        ({"operation": "get", "key": "a\u0000b"}, "memory-key-invalid"),
        ({"operation": "get", "key": "\ud800"}, "memory-key-invalid"),
        ({"operation": "get", "key": "x" * 501}, "memory-key-invalid"),
        ({"operation": "set", "key": "a", "value": 1, "namespace": "\n"}, "memory-key-invalid"),
        ({"operation": "forget", "key": "a"}, "config-invalid"),
        ({"operation": "get", "key": "a", "scope": "cache"}, "config-invalid"),
        ({"operation": "get", "key": "a", "scope": "user"}, "memory-no-owner"),
        ({"operation": "get", "key": "a", "scope": "shared"}, "memory-no-owner"),
        ({"operation": "set", "key": "a", "value": "x" * 100_000}, "memory-full"),
    ],
)
async def test_unusable_memory_is_a_failure(given: JsonObject, code: str) -> None:
    failure = await Stage().failure(work("memory", {"scope": "session", **given}), agent(kind="memory"))
    assert (failure.code, failure.retryable) == (code, False)
    assert failure.message
    assert code == "config-invalid" or failure.hint


async def test_appending_to_a_value_that_is_not_a_list_fails_without_effect() -> None:
    stage = Stage()
    await remember(stage, "set", key="name", value="Ann")
    command = work("memory", {"scope": "session", "session": "s1", "operation": "append", "key": "name", "value": 1})
    assert (await stage.failure(command, agent(kind="memory"))).code == "memory-not-a-list"
    assert await remember(stage, "get", key="name") == "Ann"
