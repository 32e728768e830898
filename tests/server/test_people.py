"""Users and roles, uses of secrets, and the settings of the installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pointsman.settings import load_settings
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN
from tests.server.test_access import LEAST
from tests.server.test_logins import log_in
from tests.server.test_tokens import RSA, public, settings, signed


async def got(served: Served, address: str, headers: dict[str, str]) -> Any:
    reply = await served.client.get(address, headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_people_include_key_holders_and_users_of_the_provider_even_after_a_restart(
    file_store: str, tmp_path: Path
) -> None:
    jwks = tmp_path / "jwks.json"
    jwks.write_bytes(public(RSA))
    async with serving(file_store, settings=settings(str(jwks)), is_local=False) as served:
        root = await served.key("root", "admin")
        await served.key("ada", "viewer", "night")
        bearer = {"authorization": f"Bearer {signed()}"}
        assert (await got(served, "/api/me", bearer))["role"] == "editor"
        assert (await served.client.post("/api/login", json={"key": signed(sub="bob")})).status_code == 200
    async with serving(file_store, settings=settings(str(jwks)), is_local=False) as served:
        found = (await got(served, "/api/people", root))["people"]
        assert [(one["name"], one["role"], one["groups"], one["ways"], one["logins"]) for one in found] == [
            ("ada", "editor", ["desk", "night"], ["key", "token"], 0),
            ("bob", "editor", ["desk"], ["token"], 1),
            ("root", "admin", [], ["key"], 0),
        ]
        assert all(one["seenAt"] is not None for one in found)


async def test_one_user_is_logged_out_everywhere(served: Served) -> None:
    root, ada, bob = (
        await served.key("root", "admin"),
        await served.key("ada", "viewer"),
        await served.key("bob", "viewer"),
    )
    browsers = [await log_in(served, one) for one in (ada, ada, bob)]
    refused = await served.client.delete("/api/logins?name=ada", headers=bob)
    assert (refused.status_code, refused.json()["code"]) == (403, "not-allowed")
    assert (await served.client.delete("/api/logins?name=ada", headers=root)).json() == {"ended": 2}
    seen = [(await served.client.get("/api/me", headers=one)).status_code for one in browsers]
    assert seen == [401, 401, 200]
    assert (await served.client.delete("/api/logins", headers=bob)).json() == {"ended": 1}, "one's own"
    assert (await got(served, "/api/me", bob))["name"] == "bob", "keys stay"


async def test_the_table_of_rights_matches_the_operations(served: Served) -> None:
    rights = (await got(served, "/api/rights", {}))["rights"]
    assert {f"{one['method']} {one['path']}": one["role"] for one in rights} == LEAST
    assert all(one["says"] and one["tag"] for one in rights)


async def test_a_secret_lists_its_users_and_environment_overrides(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = CHAIN.replace("prompt: one", 'prompt: "secret.WEATHER_OLD"').replace("id: chain", "id: other")
    await served.save(calls)
    await served.save(CHAIN.replace("prompt: one", 'prompt: "use secret.WEATHER, please"'))
    agent = {"name": "weatherman", "agent": {"system": "Ask with secret.WEATHER."}}
    made = await served.client.post("/api/agents", json=agent)
    assert made.status_code == 201, made.text
    found = await got(served, "/api/secrets/WEATHER/uses", {})
    assert found == {"workflows": ["chain"], "agents": ["weatherman"], "settings": []}
    monkeypatch.setenv("POINTSMAN_SECRET_MAIL", "canary-in-the-environment")
    listed = await served.client.get("/api/secrets")
    assert {
        "name": "MAIL",
        "source": "environment",
        "hosts": [],
        "tools": [],
        "workflows": [],
        "groups": [],
    } in listed.json()["elsewhere"]
    assert "canary" not in listed.text


async def test_settings_are_returned_with_their_sources_and_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pointsman.toml").write_text(
        'language = "de"\n[secrets]\nMAIL = "canary-mail-1"\n[access.oidc]\nissuer = "https://id.example.com"\n'
        'audience = "a"\nclient_id = "app"\nclient_secret = "canary-client-2"\n'
        '[providers.mine]\nkind = "openai"\nkeys = ["canary-key-3"]\n'
    )
    monkeypatch.chdir(tmp_path)
    loaded = load_settings(environment={"POINTSMAN_DELAYS": "false", "XDG_CONFIG_HOME": str(tmp_path / "none")})
    async with serving(f"sqlite:///{tmp_path}/store.db", settings=loaded, is_local=False) as served:
        root, ada = await served.key("root", "admin"), await served.key("ada", "editor")
        reply = await served.client.get("/api/settings", headers=root)
        told = {one["name"]: one for one in reply.json()["settings"]}
        assert (told["language"]["value"], told["language"]["source"]) == ("de", str(tmp_path / "pointsman.toml"))
        assert told["delays"]["source"] == "POINTSMAN_DELAYS"
        assert told["limits"]["source"] == "default"
        assert told["access"]["value"]["oidc"]["client_secret"] == "***"
        assert "canary" not in reply.text
        assert (await served.client.get("/api/settings", headers=ada)).status_code == 403
