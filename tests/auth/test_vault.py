"""Secrets in the store: sealed, used through handles, never returned."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from pointsman import Pointsman, Workflow, tool
from pointsman.auth.keys import NameInvalid
from pointsman.auth.redaction import redactor_for
from pointsman.auth.vault import KNOWN_FOR_S, NoSuchSecret, SecretInvalid
from pointsman.auth.vault_keys import FILE, VARIABLE, SecretUnreadable, VaultKeyInvalid, VaultLocked, make_key
from pointsman.operations.backup import back_up, restore
from pointsman.operations.health import findings
from pointsman.ports import SecretRule
from pointsman.settings import Settings, shown
from pointsman.tools.tool import Tool
from pointsman.values import Instant, Json

RULE = SecretRule(tools=("echo",))
CANARY = "canary-of-the-vault-51c3"
OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


class HandClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def now(self) -> Instant:
        return Instant(self.at)

    async def sleep_until(self, at: float) -> None:
        await asyncio.Event().wait()


class EchoTool:
    """A tool that returns its argument."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def tool(self) -> Tool:
        @tool
        async def echo(key: str) -> Json:
            """Return the argument."""
            self.given.append(key)
            return {"said": f"you have {key}"}

        return echo


FLOW = Workflow.of(
    {
        "id": "door",
        "nodes": [{"id": "echo", "type": "tool", "config": {"tool": "echo", "parameters": {"key": "{secret.DOOR}"}}}],
        "edges": [],
    }
)


@pytest.fixture(autouse=True)
def no_keys_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def installation(
    store: str = "memory:", *keys: str, door: EchoTool | None = None, clock: HandClock | None = None, **more: Json
) -> Pointsman:
    settings = Settings.model_validate({"vault": {"keys": keys}, "delays": False, **more})
    tools = [] if door is None else [door.tool()]
    return Pointsman(store, tools=tools, settings=settings, model="scripted", clock=clock)


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "store").mkdir()
    return f"sqlite:///{tmp_path}/store/store.db"


@pytest.mark.integration
async def test_a_stored_secret_reaches_its_call_even_after_a_restart(url: str) -> None:
    door = EchoTool()
    async with installation(url, OLD) as app:
        await app.vault.set("DOOR", CANARY, by="ada", rule=RULE)
    async with installation(url, OLD, door=door) as app:
        execution = await app.start(FLOW, {})
        assert await execution.output() == {"said": "you have ***"}
        (kept,) = await app.vault.all()
        assert (kept.name, kept.by) == ("DOOR", "ada")
    assert door.given == [CANARY]


@pytest.mark.integration
async def test_no_stored_shown_logged_exported_or_backed_up_data_has_the_secret(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = list[str]()
    async with installation(url, OLD, door=EchoTool()) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
        app.watch(lambda event: seen.append(str(event)))
        execution = await app.start(FLOW, {})
        await execution.output()
        exported = b"".join([line async for line in app.storage.export(execution.id)])
        told = [
            await app.view(execution.id),
            await app.state_and_events(execution.id),
            await app.public_events(execution.id),
        ]
        await back_up(app.context, tmp_path / "backup")
        kept = b"".join(file.read_bytes() for file in (tmp_path / "store").iterdir())
        assert CANARY not in str(told) + str(seen) + caplog.text + str(shown(app.settings))
        assert OLD not in str(shown(app.settings)) + repr(app.settings)
    everything = exported + kept + (tmp_path / "backup").read_bytes()
    assert CANARY.encode() not in everything
    assert OLD.encode() not in everything, "the key is not beside what it seals"
    assert b"secret.DOOR" in exported, "what is kept names the handle"


@pytest.mark.integration
async def test_secrets_of_a_backup_can_be_opened_elsewhere_with_their_key(url: str, tmp_path: Path) -> None:
    async with installation(url, OLD) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
        await back_up(app.context, tmp_path / "backup")
    elsewhere = f"sqlite:///{tmp_path}/elsewhere.db"
    async with installation(elsewhere, OLD) as app:
        await restore(app.context, tmp_path / "backup")
    async with installation(elsewhere, OLD) as app:
        assert app.settings.secret("DOOR") == CANARY


@pytest.mark.integration
async def test_a_new_key_encrypts_later_secrets_and_rotation_the_others(url: str) -> None:
    async with installation(url, OLD) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
    async with installation(url, NEW, OLD) as app:
        assert app.settings.secret("DOOR") == CANARY, "older keys open"
        assert await app.vault.rotate() == 1
        assert [(one.name, one.by) for one in await app.vault.all()] == [("DOOR", "")]
    async with installation(url, NEW) as app:
        assert app.settings.secret("DOOR") == CANARY
    async with installation(url, OLD) as app:
        with pytest.raises(SecretUnreadable, match="DOOR"):
            app.settings.secret("DOOR")
        with pytest.raises(SecretUnreadable):
            await app.vault.rotate()
    async with installation(url, NEW) as app:
        assert app.settings.secret("DOOR") == CANARY, "what could not be opened was left as it was"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("keys", "code"), [((), "vault-locked"), ((NEW,), "secret-unreadable"), (("x",), "vault-key-invalid")]
)
async def test_a_wrong_key_fails_the_step_with_a_code_before_the_tool_call(
    url: str, keys: tuple[str, ...], code: str
) -> None:
    door = EchoTool()
    async with installation(url, OLD) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
    async with installation(url, *keys, door=door) as app:
        execution = await app.start(FLOW, {})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert (execution.state.outcome.failure.code, bool(execution.state.outcome.failure.hint)) == (code, True)
    assert door.given == []


@pytest.mark.integration
async def test_a_changed_secret_applies_to_the_next_call_and_in_other_processes_within_a_second(url: str) -> None:
    clock = HandClock()
    door = EchoTool()
    async with installation(url, OLD, door=door, clock=clock) as here, installation(url, OLD, clock=clock) as there:
        await here.vault.set("DOOR", "first-value", rule=RULE)
        await (await here.start(FLOW, {})).output()
        await here.vault.set("DOOR", "second-value")
        await (await here.start(FLOW, {})).output()
        await there.vault.set("DOOR", "third-value")
        clock.at += KNOWN_FOR_S
        await (await here.start(FLOW, {})).output()
        await there.vault.delete("DOOR")
        clock.at += KNOWN_FOR_S
        last = await here.start(FLOW, {})
        assert await last.settled() == "failed"
        assert last.state.outcome.failure is not None
        assert last.state.outcome.failure.code == "secret-missing"
    assert door.given == ["first-value", "second-value", "third-value"]


async def test_every_opened_secret_is_masked_by_value_even_in_running_executions() -> None:
    async with installation("memory:", OLD) as app:
        redact = redactor_for(app.settings)
        assert redact.text(f"say {CANARY}") == f"say {CANARY}"
        await app.vault.set("DOOR", CANARY, rule=RULE)
        assert redact.text(f"say {CANARY}") == "say ***"
        await app.vault.set("DOOR", "another-value")
        assert redact.text(f"{CANARY}, another-value") == "***, ***"
        assert redactor_for(app.settings).text(f"{OLD} {CANARY}") == "*** ***"


async def test_environment_and_settings_override_stored_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    async with installation("memory:", OLD, secrets={"DOOR": "of-the-settings"}) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
        assert app.settings.secret("DOOR") == "of-the-settings"
        monkeypatch.setenv("POINTSMAN_SECRET_DOOR", "of-the-environment")
        assert app.settings.secret("DOOR") == "of-the-environment"


async def test_an_encrypted_secret_cannot_be_opened_under_another_name() -> None:
    async with installation("memory:", OLD) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
        await app.vault.set("WINDOW", "another-value")
        door, window = await app.store.entries.list("secret")
        assert isinstance(door.value, dict)
        assert isinstance(window.value, dict)
        await app.store.entries.put("secret", "WINDOW", {**window.value, "sealed": door.value["sealed"]})
        await app.vault.delete("DOOR")
        with pytest.raises(SecretUnreadable, match="WINDOW"):
            app.settings.secret("WINDOW")


@pytest.mark.integration
async def test_only_the_first_secret_creates_a_private_key_file(url: str, tmp_path: Path) -> None:
    file = tmp_path / "config" / "pointsman" / FILE
    async with installation(url) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
    assert file.stat().st_mode & 0o777 == 0o600
    async with installation(url) as app:
        assert app.settings.secret("DOOR") == CANARY
        key = file.read_text(encoding="ascii")
        make_key(app.settings.vault)
        assert file.read_text(encoding="ascii").endswith(key), "older keys stay"
        assert await app.vault.rotate() == 1
    file.unlink()
    async with installation(url) as app:
        with pytest.raises(VaultLocked):
            await app.vault.set("WINDOW", "another-value")
    assert not file.exists()


@pytest.mark.integration
async def test_a_key_file_that_others_may_read_is_refused(url: str, tmp_path: Path) -> None:
    async with installation(url) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
    (tmp_path / "config" / "pointsman" / FILE).chmod(0o640)
    async with installation(url) as app:
        with pytest.raises(VaultKeyInvalid, match="other users can read"):
            app.settings.secret("DOOR")


@pytest.mark.parametrize("name", ["", "a b", "1st", "a.b", "ünder", "x" * 101, "a\n"])
async def test_names_that_are_not_valid_handles_are_refused(name: str) -> None:
    async with installation("memory:", OLD) as app:
        with pytest.raises(NameInvalid):
            await app.vault.set(name, CANARY)
        assert await app.vault.all() == []


@pytest.mark.parametrize("value", ["", "short", "x" * 60_001])
async def test_values_that_cannot_be_masked_are_refused_and_not_repeated(value: str) -> None:
    async with installation("memory:", OLD) as app:
        with pytest.raises(SecretInvalid) as refused:
            await app.vault.set("DOOR", value)
        assert not value or value not in str(refused.value)


async def test_an_unknown_secret_cannot_be_deleted() -> None:
    async with installation("memory:", OLD) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
        with pytest.raises(NoSuchSecret) as refused:
            await app.vault.delete("WINDOW")
        assert "'DOOR'" in refused.value.hint


@pytest.mark.integration
async def test_a_damaged_secret_is_refused_on_use_and_can_be_set_again(url: str) -> None:
    async with installation(url, OLD) as app:
        await app.store.entries.put("secret", "DOOR", {"name": "DOOR", "sealed": 7, "changed": "never"})
        await app.vault.set("WINDOW", CANARY)
    async with installation(url, OLD) as app:
        assert [one.name for one in await app.vault.all()] == ["DOOR", "WINDOW"]
        assert app.settings.secret("WINDOW") == CANARY
        with pytest.raises(SecretUnreadable, match="DOOR"):
            app.settings.secret("DOOR")
        await app.vault.set("DOOR", "another-value")
        assert app.settings.secret("DOOR") == "another-value"


async def test_a_lone_surrogate_is_not_a_valid_secret() -> None:
    async with installation("memory:", OLD) as app:
        with pytest.raises(SecretInvalid):
            await app.vault.set("DOOR", "\ud800 and so on")


async def test_concurrent_key_creation_is_refused_and_loses_no_key(tmp_path: Path) -> None:
    file = tmp_path / "config" / "pointsman" / FILE
    settings = Settings().vault
    make_key(settings)
    key = file.read_text(encoding="ascii")
    other = file.with_name(f"{FILE}.new")
    other.touch(0o600)
    with pytest.raises(VaultKeyInvalid, match="cannot be written"):
        make_key(settings)
    assert file.read_text(encoding="ascii") == key
    other.unlink()
    file.chmod(0o644)
    with pytest.raises(VaultKeyInvalid, match="other users can read"):
        make_key(settings)
    assert not other.exists(), "what was refused leaves nothing that refuses the next"


@pytest.mark.integration
async def test_an_unreadable_secret_affects_only_its_users(url: str) -> None:
    async with installation(url, OLD) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
    mcp: Json = {"desk": {"url": "http://127.0.0.1:9/", "headers": {"Authorization": "secret.DOOR"}}}
    providers: Json = {"mine": {"kind": "openai", "base_url": "http://127.0.0.1:9/", "keys": ["secret.DOOR"]}}
    async with installation(url, NEW, mcp=mcp, providers=providers) as app:
        await app.tools.prepare_all()
        done = await app.start(Workflow.of({"id": "none", "nodes": [{"id": "end", "type": "end"}], "edges": []}), {})
        assert await done.settled() == "completed"
        assert redactor_for(app.settings).text("open") == "open"


@pytest.mark.integration
async def test_the_doctor_lists_unreadable_secrets(url: str) -> None:
    async with installation(url, OLD) as app:
        await app.vault.set("DOOR", CANARY, rule=RULE)
        await app.vault.set("BACK", CANARY)
        assert [one.code for one in await findings(app.context) if one.code == "secret-closed"] == []
    async with installation(url, NEW) as app:
        (found,) = [one for one in await findings(app.context) if one.code == "secret-closed"]
        assert (found.severity, "secret.BACK, secret.DOOR" in found.message, bool(found.hint)) == ("error", True, True)
        assert CANARY not in found.message
