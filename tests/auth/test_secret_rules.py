"""Rules of secrets: the hosts, tools, workflows and groups that may use them. Without a rule of an admin, none may."""

from __future__ import annotations

from ipaddress import IPv4Network

import httpx2
import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.vault import SecretInvalid
from pointsman.ports import SecretRule
from pointsman.settings import Settings, SettingsInvalid, load_settings
from pointsman.settings.sections import HttpSettings
from pointsman.tools.egress.addresses import host_allowed, read_host
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.saving import save_as
from tests.tools.outgoing.peer import Peer, answer, peering

CANARY = "canary-of-the-rules-7a/2+b"


def settings(*ports: int, **rule: Json) -> Settings:
    http = HttpSettings(networks=(IPv4Network("127.0.0.0/8"),), ports=ports)
    return Settings.model_validate({"http": http, "delays": False, "secrets": {"TOKEN": {"value": CANARY, **rule}}})


def asking(url: str, **config: Json) -> Workflow:
    node: JsonObject = {"id": "ask", "type": "http", "config": {"url": url, **config}}
    return Workflow.of({"id": "asks", "nodes": [node], "edges": []})


async def ended(app: Pointsman, workflow: Workflow | str) -> tuple[str, JsonObject]:
    execution = await app.start(workflow, {})
    await execution.settled()
    view = await app.view(execution.id)
    errors = view["errors"]
    assert isinstance(errors, list)
    error: Json = json_of(errors[0]) if errors else {}
    assert isinstance(error, dict)
    return str(view["status"]), error


async def outcome(given: Settings, workflow: Workflow) -> tuple[str, JsonObject]:
    async with Pointsman("memory:", settings=given, model="scripted") as app:
        return await ended(app, workflow)


EVERY_PLACE: list[JsonObject] = [
    {"headers": {"Authorization": "Bearer {secret.TOKEN}"}},
    {"query": {"key": "secret.TOKEN"}},
    {"method": "POST", "body": {"deep": [{"key": "secret.TOKEN"}]}},
    {"method": "POST", "body": "text {secret.TOKEN}"},
    {"auth": {"type": "basic", "username": "ada", "password": "secret.TOKEN"}},
    {"auth": {"type": "bearer", "token": "secret.TOKEN"}},
]


@pytest.mark.integration
@pytest.mark.parametrize("config", EVERY_PLACE, ids=str)
async def test_a_secret_without_hosts_is_sent_nowhere(config: JsonObject) -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b"{}")
        status, error = await outcome(settings(peer.port), asking(f"{peer.url}/", **config))
        assert (status, error["code"], peer.asked) == ("failed", "secret-refused", [])
        assert f"pointsman secrets allow TOKEN --host http://127.0.0.1:{peer.port}" in str(error["hint"])
        assert "[secrets.TOKEN]" in str(error["hint"])


@pytest.mark.integration
@pytest.mark.parametrize("config", EVERY_PLACE, ids=str)
async def test_a_secret_is_sent_only_to_its_host(config: JsonObject) -> None:
    async with peering() as peer, peering() as stranger:
        peer.answers["/"] = stranger.answers["/"] = answer(b"{}")
        given = settings(peer.port, stranger.port, hosts=[peer.url])
        assert (await outcome(given, asking(f"{peer.url}/", **config)))[0] == "completed"
        status, error = await outcome(given, asking(f"{stranger.url}/", **config))
        assert (status, error["code"]) == ("failed", "secret-refused")
        assert (len(peer.asked), stranger.asked) == (1, [])


@pytest.mark.integration
@pytest.mark.parametrize("where", ["{secret.TOKEN}", "x?k={secret.TOKEN}"])
async def test_a_secret_in_the_address_is_checked_too(where: str) -> None:
    async with peering() as peer:
        status, error = await outcome(settings(peer.port), asking(f"{peer.url}/{where}"))
        assert (status, error["code"], peer.asked) == ("failed", "secret-refused", [])


async def redirected(peer: Peer, stranger: Peer, location: str, **config: Json) -> tuple[str, JsonObject]:
    peer.answers["/"] = answer(b"", f"location: {location}", status="302 Found")
    stranger.answers["/taken"] = answer(b"{}")
    given = settings(peer.port, stranger.port, hosts=[peer.url])
    return await outcome(given, asking(f"{peer.url}/", headers={"Authorization": "Bearer {secret.TOKEN}"}, **config))


@pytest.mark.integration
async def test_a_redirect_does_not_send_the_secret_to_another_host() -> None:
    async with peering() as peer, peering() as stranger:
        for taken in (CANARY, "canary-of-the-rules-7a%2F2%2Bb", "canary-of-the-rules-7a%2f2%2bb"):
            status, error = await redirected(peer, stranger, f"{stranger.url}/taken?key={taken}")
            assert (status, error["code"], stranger.asked) == ("failed", "secret-refused", [])


@pytest.mark.integration
async def test_a_redirect_without_the_secret_is_followed() -> None:
    async with peering() as peer, peering() as stranger:
        status, _ = await redirected(peer, stranger, f"{stranger.url}/taken?signed=1")
        assert status == "completed"
        assert "canary" not in stranger.asked[0]


@pytest.mark.parametrize(
    ("host", "url", "allowed"),
    [
        ("api.example.com", "https://api.example.com/x", True),
        ("api.example.com", "https://API.Example.COM./x", True),
        ("API.example.com.", "https://api.example.com:443/", True),
        ("api.example.com", "http://api.example.com/", False),
        ("api.example.com", "https://api.example.com:8443/", False),
        ("api.example.com", "https://evil-api.example.com/", False),
        ("api.example.com", "https://api.example.com.evil.org/", False),
        ("api.example.com", "https://api.example.com@evil.org/", False),
        ("api.example.com", "https://evil.org/api.example.com", False),
        ("api.example.com", "https://evil.org?api.example.com", False),
        ("api.example.com", "https://evil.org#api.example.com", False),
        ("api.example.com:8443", "https://api.example.com:8443/", True),
        ("api.example.com:8443", "https://api.example.com/", False),
        ("api.example.com:*", "https://api.example.com:9999/", True),
        ("http://api.example.com", "http://api.example.com/", True),
        ("http://api.example.com", "https://api.example.com/", False),
        ("*.example.com", "https://a.example.com/", True),
        ("*.example.com", "https://a.b.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("*.example.com", "https://notexample.com/", False),
        ("münchen.example", "https://xn--mnchen-3ya.example/", True),
        ("xn--mnchen-3ya.example", "https://MÜNCHEN.example/", True),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/", True),
        ("http://127.0.0.1:8080", "http://2130706433:8080/", False),
        ("https://[::1]:8443", "https://[::1]:8443/", True),
        ("*", "http://anywhere.example:81/", True),
    ],
)
def test_hosts_are_compared_with_the_outgoing_request(host: str, url: str, *, allowed: bool) -> None:
    assert host_allowed(httpx2.URL(url), [host]) is allowed


@pytest.mark.parametrize(
    "host",
    [
        "",
        "*.com",
        "https://",
        "ftp://a.example",
        "a.example/path",
        "ada@a.example",
        "a b.example",
        "a.*.example",
        "a.example:99999",
        "**",
        "*.",
    ],
)
def test_an_invalid_host_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="host"):
        read_host(host)
    with pytest.raises(ValueError, match="host"):
        settings(hosts=[host])


def noting(seen: list[str]) -> object:
    @tool
    async def note(key: str) -> str:
        """Take a note."""
        seen.append(key)
        return "noted"

    return note


NOTING: JsonObject = {"id": "n", "type": "tool", "config": {"tool": "note", "parameters": {"key": "secret.TOKEN"}}}


@pytest.mark.parametrize(
    ("rule", "status"),
    [({}, "failed"), ({"hosts": ["*"]}, "failed"), ({"tools": ["other"]}, "failed"), ({"tools": ["no*"]}, "completed")],
)
async def test_a_tool_receives_a_secret_only_if_named(rule: JsonObject, status: str) -> None:
    seen: list[str] = []
    flow = Workflow.of({"id": "notes", "nodes": [NOTING], "edges": []})
    async with Pointsman("memory:", tools=[noting(seen)], settings=settings(**rule), model="scripted") as app:  # type: ignore[list-item] # a tool
        found, error = await ended(app, flow)
    assert found == status
    if status == "failed":
        assert (error["code"], seen) == ("secret-refused", [])
        assert "pointsman secrets allow TOKEN --tool note" in str(error["hint"])
    else:
        assert seen == [CANARY]


def named(id: str, **more: Json) -> Workflow:
    return Workflow.of({"id": id, "nodes": [NOTING], "edges": [], **more})


async def test_only_named_saved_workflows_use_the_secret() -> None:
    """A document with the name of a saved workflow is not that workflow."""
    seen: list[str] = []
    given = settings(tools=["note"], workflows=["letter", "report@1"])
    async with Pointsman("memory:", tools=[noting(seen)], settings=given, model="scripted") as app:  # type: ignore[list-item] # a tool
        for id in ("letter", "other", "report"):
            await app.save(named(id))
        await app.save(named("report", name="changed"))
        assert (await ended(app, "letter"))[0] == "completed"
        assert (await ended(app, "report@1"))[0] == "completed"
        for refused in ("other", "report", named("letter")):
            status, error = await ended(app, refused)
            assert (status, error["code"]) == ("failed", "secret-refused")
    assert seen == [CANARY] * 2


async def test_only_workflows_of_the_groups_use_the_secret() -> None:
    seen: list[str] = []
    given = settings(tools=["note"], groups=["finance", "board"])
    async with Pointsman("memory:", tools=[noting(seen)], settings=given, model="scripted") as app:  # type: ignore[list-item] # a tool
        await app.save(named("ours", allowedGroups=["finance"]))
        await app.save(named("mixed", allowedGroups=["finance", "interns"]))
        await app.save(named("open"))
        assert (await ended(app, "ours"))[0] == "completed"
        for refused in ("mixed", "open", named("ours", allowedGroups=["finance"])):
            status, error = await ended(app, refused)
            assert (status, error["code"]) == ("failed", "secret-refused")
    assert seen == [CANARY]


@pytest.mark.integration
async def test_the_store_can_set_hosts_of_a_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_SECRET_FROM_OUTSIDE", CANARY)
    async with peering() as peer:
        peer.answers["/"] = answer(b"{}")
        flow = asking(f"{peer.url}/", headers={"X-Key": "secret.FROM_OUTSIDE"})
        async with Pointsman("memory:", settings=settings(peer.port), model="scripted") as app:
            assert (await ended(app, flow))[1]["code"] == "secret-refused"
            await app.vault.set("FROM_OUTSIDE", rule=SecretRule(hosts=(peer.url,)))
            assert (await ended(app, flow))[0] == "completed"
        assert CANARY in peer.asked[0]


async def test_a_new_value_keeps_its_rule() -> None:
    async with Pointsman("memory:", settings=settings(), model="scripted") as app:
        await app.vault.set("DOOR", "first-value", rule=SecretRule(hosts=("api.example.com",)))
        await app.vault.set("DOOR", "second-value")
        assert app.settings.rule("DOOR").hosts == ("api.example.com",)
        assert app.settings.secret("DOOR") == "second-value"
        await app.vault.set("DOOR", rule=SecretRule())
        assert (app.settings.rule("DOOR"), app.settings.secret("DOOR")) == (SecretRule(), "second-value")


async def test_a_secret_of_three_characters_is_refused() -> None:
    given = Settings.model_validate({"delays": False, "secrets": {"PIN": {"value": "123", "hosts": ["*"]}}})
    status, error = await outcome(given, asking("https://a.example/", headers={"X": "secret.PIN"}))
    assert (status, error["code"]) == ("failed", "secret-invalid")


def test_settings_accept_a_secret_as_text_or_with_its_rule(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "pointsman.toml"
    file.write_text('[secrets]\nA = "plain-value"\n[secrets.B]\nvalue = "with-rule"\nhosts = ["*.example.com"]\n')
    loaded = load_settings(environment={})
    assert (loaded.secret("A", {}), loaded.rule("A")) == ("plain-value", SecretRule())
    assert (loaded.secret("B", {}), loaded.rule("B")) == ("with-rule", SecretRule(hosts=("*.example.com",)))
    assert "plain-value" not in repr(loaded)
    assert "with-rule" not in repr(loaded)
    file.write_text('[secrets.B]\nvalue = "with-rule"\nhosts = ["*.com"]\n')
    with pytest.raises(SettingsInvalid, match=r"secrets\.B\.hosts"):
        load_settings(environment={})


async def test_a_rule_of_the_settings_cannot_be_changed_in_the_store() -> None:
    """It would have no effect."""
    given = settings(hosts=["api.example.com"])
    async with Pointsman("memory:", settings=given, model="scripted") as app:
        with pytest.raises(SecretInvalid, match="the settings define"):
            await app.vault.set("TOKEN", rule=SecretRule(hosts=("*",)))
        await app.vault.set("TOKEN", "another-value")
        assert app.settings.rule("TOKEN").hosts == ("api.example.com",)


async def test_a_workflow_cannot_be_saved_for_foreign_groups() -> None:
    """Otherwise an editor could write a workflow with the secrets of another group, and let an event start it."""
    eve = Caller(name="eve", role="editor", groups=("interns",))
    async with Pointsman("memory:", settings=settings(), model="scripted") as app:
        document: JsonObject = {"id": "hers", "nodes": [], "edges": [], "allowedGroups": ["finance"]}
        with pytest.raises(NotAllowed, match="finance"):
            await save_as(app.context, eve, Workflow.of(document), draft=True)


@pytest.mark.parametrize(
    "url",
    [
        "https://{secret.TOKEN}.example.org/",
        "https://example.org:{secret.TOKEN}/",
        "https://{secret.TOKEN}@example.org/",
        "https://example.org{secret.TOKEN}/",
        "{secret.TOKEN}{secret.TOKEN}/",
        "{secret.TOKEN}.example.org/",
        "//{secret.TOKEN}/",
        "https:{secret.TOKEN}",
    ],
)
async def test_a_host_cannot_contain_a_secret(url: str) -> None:
    async with Pointsman("memory:", settings=settings(80), model="scripted") as app:
        (problem,) = (await app.check(asking(url))).problems
    assert (problem.code, problem.pointer) == ("secret-not-allowed", "/nodes/0/config/url")


@pytest.mark.parametrize(
    "url", ["secret.TOKEN", "{secret.TOKEN}", "{secret.TOKEN}/path", "https://example.org?k={secret.TOKEN}"]
)
async def test_a_secret_can_be_the_whole_address_or_follow_its_host(url: str) -> None:
    async with Pointsman("memory:", settings=settings(80), model="scripted") as app:
        assert not (await app.check(asking(url))).problems


@pytest.mark.integration
@pytest.mark.parametrize(
    "secret", ["canary-of/the?rules#cut@here", "http://canary:of?the-rules", "http://h:canary/of-the?rules"]
)
@pytest.mark.parametrize("url", ["{}/deep/{secret.TOKEN}", "{secret.TOKEN}"])
@pytest.mark.parametrize("reply", [b"", answer(b"", status="500 No"), answer(b"{", "content-type: application/json")])
async def test_messages_show_no_part_of_a_secret_in_an_address(secret: str, url: str, reply: bytes) -> None:
    async with peering() as peer:
        paths = ("/deep/canary-of/the", "/deep/http://canary:of", "/deep/http://h:canary/of-the")
        peer.answers.update(dict.fromkeys(paths, reply))
        given = settings(peer.port, hosts=["*"], value=secret)
        status, error = await outcome(given, asking(url.replace("{}", peer.url)))
    assert status == "failed"
    assert "canary" not in str(error)


@pytest.mark.parametrize("way", ["move", "fork", "move to a draft", "fork to a draft"])
async def test_an_execution_with_another_definition_has_the_secrets_of_that_definition(way: str) -> None:
    """An editor could otherwise continue an execution of an allowed workflow with steps of their own."""
    seen: list[str] = []
    gate: JsonObject = {"id": "gate", "type": "human", "config": {"message": "go on?", "options": ["approve"]}}
    edges: list[Json] = [{"source": "gate", "target": "n"}]
    given = settings(tools=["note"], workflows=["letter"])
    async with Pointsman("memory:", tools=[noting(seen)], settings=given, model="scripted") as app:  # type: ignore[list-item] # a tool
        done: JsonObject = {"id": "n", "type": "end"}
        await app.save(Workflow.of({"id": "letter", "nodes": [gate, done], "edges": edges}))
        own = Workflow.of({"id": "mine", "nodes": [gate, NOTING], "edges": edges})
        await app.save(own)
        draft = Workflow.of({"id": "letter", "nodes": [gate, NOTING], "edges": edges})
        execution = await app.start("letter", {})
        await execution.settled()
        to = draft if way.endswith("draft") else "mine"
        if way.startswith("move"):
            await app.move(execution.id, to)
        else:
            execution = await app.fork(execution.id, to=to)
            await execution.settled()
        await execution.answer("gate", "approve")
        assert await execution.settled() == "failed"
        (error,) = (await app.view(execution.id))["errors"]
        assert error["code"] == "secret-refused"
    assert seen == []
