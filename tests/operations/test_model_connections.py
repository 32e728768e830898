"""Models that an admin connects while the app runs: effective at once, sealed, below the settings, without detours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.app import Pointsman, Workflow
from pointsman.auth.callers import LOCAL, Caller, NotAllowed
from pointsman.auth.redaction import REDACTOR
from pointsman.models.failures import ModelUnnamed
from pointsman.operations.model_connections import (
    ConnectionRequest,
    NoSuchProvider,
    ProviderInSettings,
    ProviderInvalid,
    StoredProviders,
)
from pointsman.operations.verbs import OperationVerbs
from pointsman.settings import Settings
from tests.http_server import http_server

pytestmark = pytest.mark.integration
CANARY = "sk-canary-4f1d9c77aa"
OTHER = "sk-canary-second-551"
ASK = Workflow.parse(
    json.dumps({"id": "ask", "nodes": [{"id": "a", "type": "agent", "config": {"prompt": "Say it."}}], "edges": []}),
    name="ask",
)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


class Provider:
    """A service with the Chat Completions wire that accepts the keys of the test, and records them."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.keys: list[str] = []
        server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(self._answer)

    @property
    def address(self) -> str:
        return self.server.url_for("/v1")

    @property
    def settings(self) -> Settings:
        """Settings that allow its address."""
        return Settings.model_validate(
            {"delays": False, "http": {"networks": ["127.0.0.0/8"], "ports": [self.server.port]}}
        )

    def _answer(self, request: Request) -> Response:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.keys.append(key)
        if key not in (CANARY, OTHER):
            said = json.dumps({"error": {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key"}})
            return Response(said, status=401, content_type="application/json")
        message = {"role": "assistant", "content": "ok"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return Response(json.dumps({**reply, "usage": usage}), content_type="application/json")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with http_server() as server:
        yield Provider(server)


def operations(app: Pointsman, caller: Caller = LOCAL) -> OperationVerbs:
    return app.acting_as(caller).operations


def read_again(app: Pointsman) -> None:
    connected = app.context.services.models.connected
    assert isinstance(connected, StoredProviders)
    connected.changed()


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def request(provider: Provider, **changes: Any) -> ConnectionRequest:
    given: dict[str, Any] = {
        "kind": "openai-compatible",
        "key": CANARY,
        "base_url": provider.address,
        "model": "m",
        "default": True,
    }
    return ConnectionRequest(**(given | changes))


async def test_a_connected_model_answers_the_next_execution_also_in_another_process(
    tmp_path: Path, provider: Provider
) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    async with Pointsman(store, settings=provider.settings) as app, Pointsman(store, settings=provider.settings) as two:
        with pytest.raises(ModelUnnamed):
            await app.run(ASK)
        connected = await operations(app).connect_provider("gate-way", request(provider))
        assert connected["saved"]
        assert connected["ping"] is not None
        assert connected["ping"]["ok"]
        assert connected["default"] == "gate-way:m"
        assert await (await app.run(ASK)).output() == "ok"
        assert (await app.dry_run(ASK)).status == "completed"
        assert provider.keys == [CANARY, CANARY], "one test, one step; a dry run calls nothing"
        read_again(two)  # It reads the entries once a second.
        await two.run(ASK)
        assert provider.keys == [CANARY] * 3


async def test_the_key_is_sealed_masked_and_never_returned(tmp_path: Path, provider: Provider) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    async with Pointsman(store, settings=provider.settings) as app:
        verbs = operations(app)
        answers: list[Any] = [await verbs.connect_provider("gw", request(provider))]
        answers += [
            await verbs.models(),
            await verbs.model_keys(),
            await verbs.settings(),
            await verbs.provider_kinds(),
        ]
        answers += [await app.acting_as(LOCAL).secrets.list()]
        answers += [await app.acting_as(LOCAL).access.audit_entries()]
        assert CANARY not in json.dumps(answers, default=str)
        assert CANARY not in app.context[REDACTOR].text(f"it was {CANARY}")
        [secret] = answers[5]["secrets"]
        assert secret["name"].startswith("MODEL_KEY_GW_")
        assert (secret["hosts"], secret["tools"]) == ([], [])
        assert answers[1]["providers"][0]["masked"] == [f"secret.{secret['name']}"]
    assert CANARY.encode() not in files_of(tmp_path)


async def test_a_failed_test_saves_nothing_and_states_what_to_do_without_the_key(provider: Provider) -> None:
    async with Pointsman("memory:", settings=provider.settings) as app:
        wrong = "sk-wrong-canary-0001"
        found = await operations(app).connect_provider("gw", request(provider, key=wrong))
        assert not found["saved"]
        assert found["ping"] is not None
        failure = found["ping"].get("failure")
        assert failure is not None
        assert failure["code"] == "model-unauthorized"
        assert failure["hint"]
        assert wrong not in json.dumps(found)
        assert (await operations(app).models())["providers"] == []
        assert await app.vault.all() == []
        saved = await operations(app).connect_provider("gw", request(provider, key=wrong, test=False))
        assert saved["saved"]


async def test_a_stored_key_is_not_sent_to_another_address(provider: Provider) -> None:
    async with Pointsman("memory:", settings=provider.settings) as app:
        verbs = operations(app)
        await verbs.connect_provider("gw", request(provider))
        elsewhere = request(provider, key=None, base_url=f"{provider.address}/other")
        with pytest.raises(ProviderInvalid, match="key must be entered again"):
            await verbs.connect_provider("gw", elsewhere)
        assert (await verbs.connect_provider("gw", request(provider, key=None)))["saved"], "the same address"
        assert (await verbs.connect_provider("gw", request(provider, key=OTHER)))["saved"]
        await app.run(ASK)
        assert provider.keys[-1] == OTHER, "a new key is used at once"


async def test_internal_addresses_are_refused_unless_the_settings_allow_them(provider: Provider) -> None:
    closed = Settings.model_validate({"http": {"ports": [provider.server.port]}})
    async with Pointsman("memory:", settings=closed) as app:
        found = await operations(app).connect_provider("gw", request(provider))
        assert found["ping"] is not None
        failure = found["ping"].get("failure")
        assert failure is not None
        assert (found["saved"], failure["code"]) == (False, "address-refused")
        assert "networks" in failure["hint"]
        assert (await operations(app).connect_provider("gw", request(provider, test=False)))["saved"]
        failed = await app.run(ASK)
        assert "internal address" in json.dumps(await failed.view())
    assert provider.keys == []


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://10.0.0.8:22/v1"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "https://user:pw@api.example.com/v1"},
        {"base_url": "https://api.example.com/v1?x=1"},
        {"base_url": "https://api.example.com/v1#f"},
        {"base_url": "https://[::1"},
        {"base_url": ""},
        {"kind": "groq", "base_url": "https://evil.example.com"},
        {"kind": "bedrock", "base_url": "", "region": "evil.example.com/"},
        {"kind": "telepathy"},
        {"model": "a b"},
        {"model": "", "default": True},
        {"kind": "openai", "base_url": "", "key": None},
    ],
)
async def test_invalid_connections_are_refused(provider: Provider, changes: dict[str, Any]) -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(ProviderInvalid) as refused:
            await operations(app).connect_provider("gw", request(provider, **changes))
        assert CANARY not in str(refused.value) + refused.value.hint
        assert await app.vault.all() == []


@pytest.mark.parametrize("name", ["", "Gw", "a/b", "a_b", "anthropic", "1a", "x" * 41])
async def test_names_that_mean_something_else_are_refused(provider: Provider, name: str) -> None:
    async with Pointsman("memory:", settings=provider.settings) as app:
        with pytest.raises(ProviderInvalid):
            await operations(app).connect_provider(name, request(provider))


async def test_settings_and_environment_have_precedence(monkeypatch: pytest.MonkeyPatch, provider: Provider) -> None:
    document = {"providers": {"gw": {"base_url": provider.address, "keys": [CANARY]}}, "model": "gw:m"}
    both = provider.settings.model_copy(
        update=dict(Settings.model_validate(document)) | {"http": provider.settings.http}
    )
    async with Pointsman("memory:", settings=both) as app:
        with pytest.raises(ProviderInSettings):
            await operations(app).connect_provider("gw", request(provider))
        with pytest.raises(ProviderInSettings, match="default model"):
            await operations(app).choose_default_model("gw:other")
        found = await operations(app).models()
        assert (found["default"], found["defaultFrom"], found["providers"][0]["source"]) == (
            "gw:m",
            "settings",
            "settings",
        )
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(ProviderInSettings, match="OPENAI_API_KEY"):
            await operations(app).connect_provider("openai", ConnectionRequest(kind="openai", key=OTHER, model="m"))
        await operations(app).choose_default_model("openai:gpt-5-mini")
        found = await operations(app).models()
        assert (found["default"], found["defaultFrom"]) == ("openai:gpt-5-mini", "app")


async def test_disconnecting_ends_the_model_and_deletes_its_key(provider: Provider) -> None:
    async with Pointsman("memory:", settings=provider.settings) as app:
        verbs = operations(app)
        await verbs.connect_provider("gw", request(provider))
        await verbs.disconnect_provider("gw")
        assert await app.vault.all() == []
        assert (await verbs.models())["default"] is None
        with pytest.raises(ModelUnnamed):
            await app.run(ASK)
        with pytest.raises(NoSuchProvider):
            await verbs.disconnect_provider("gw")


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
async def test_only_admins_connect_models(provider: Provider, role: Any) -> None:
    async with Pointsman("memory:", settings=provider.settings) as app:
        verbs = operations(app, Caller(name="eve", role=role, entrance="key"))
        with pytest.raises(NotAllowed):
            await verbs.connect_provider("gw", request(provider))
        with pytest.raises(NotAllowed):
            await verbs.disconnect_provider("gw")
        with pytest.raises(NotAllowed):
            await verbs.choose_default_model("gw:m")
        with pytest.raises(NotAllowed):
            await verbs.provider_kinds()
        entries, _ = await app.acting_as(LOCAL).access.audit_entries()
        assert {(one["who"], one["refused"]) for one in entries} == {("eve", "not-allowed")}
        assert provider.keys == []
