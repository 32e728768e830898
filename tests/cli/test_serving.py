"""`pointsman serve` and `pointsman keys`: a server process, and its access control."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.test_processes import started
from tests.patience import PATIENCE_S

STORE = ["--store", "sqlite:///store.db"]


@contextmanager
def server(*more: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Run a server process and yield its address."""
    with started("serve", "--port", "0", "--model", "scripted", *STORE, *more) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("serving http://"), line + process.stderr.read()
        try:
            yield process, line.split()[1]
        finally:
            process.kill()


def test_a_server_runs_workflows_and_ends_on_a_signal(prompt: Prompt) -> None:
    with server() as (process, address), httpx2.Client(base_url=address, timeout=PATIENCE_S) as client:
        assert client.get("/health").json()["status"] == "ok"
        assert client.post("/api/workflows", content=flows.APPROVAL).status_code == 201
        reply = client.post("/api/workflows/letter/execute", json={"input": {"goal": "tides"}, "wait": True})
        execution = reply.json()["executionId"]
        assert reply.json()["status"] == "waiting"
        with client.stream("GET", f"/api/workflows/executions/{execution}/stream") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "id: 1.0"
            process.send_signal(signal.SIGTERM)
            assert "event: workflow.human.required" in [*lines], "the stream is let go, not cut off"
        assert process.wait(timeout=PATIENCE_S) == 0
        assert process.stderr is not None
        *logged, last = process.stderr.read().splitlines()
        assert last == "stopped"
        assert any("workflow.human.required" in line and f"executionId={execution}" in line for line in logged)
        assert any("path=/api/workflows/letter/execute  status=200" in line for line in logged)
        assert "tides" not in "".join(logged)
    assert prompt("show", execution, *STORE, "--json").json["status"] == "waiting"
    assert " by api 'local'\n" in prompt("show", execution, *STORE).out
    assert prompt("answer", execution, "review", '"approve"', *STORE).code == 0
    assert prompt("verify", *STORE).code == 0


def test_the_settings_show_host_and_port_of_flags() -> None:
    Path("pointsman.toml").write_text('[server]\nport = 1\ndrain = "3s"\n', "utf-8")
    with server("--host", "127.0.0.1") as (_, address):
        shown = httpx2.get(f"{address}/api/settings", timeout=PATIENCE_S).json()["settings"]
        (found,) = [one for one in shown if one["name"] == "server"]
        assert (found["value"]["host"], found["value"]["port"], found["value"]["drain"]) == ("127.0.0.1", 0, "3s")
        assert found["source"].endswith("pointsman.toml, --host, --port")


def test_a_second_leader_of_a_store_is_refused_unless_it_stands_by() -> None:
    with server() as (first, address):
        with started("serve", "--port", "0", *STORE) as second:
            _, err = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 1
        assert "[leader-exists]" in err
        with server("--standby") as (_, other):
            assert httpx2.get(f"{other}/ready", timeout=PATIENCE_S).json()["status"] == "ready"
            assert httpx2.post(f"{other}/api/workflows", content=flows.APPROVAL, timeout=PATIENCE_S).status_code == 201
            assert httpx2.get(f"{address}/api/workflows", timeout=PATIENCE_S).json()["workflows"][0]["id"] == "letter"
            first.send_signal(signal.SIGTERM)
            assert first.wait(timeout=PATIENCE_S) == 0
            assert httpx2.get(f"{other}/ready", timeout=PATIENCE_S).json()["status"] == "ready"


def test_a_server_on_other_addresses_requires_keys(prompt: Prompt) -> None:
    refused = prompt("serve", "--host", "0.0.0.0", "--port", "0", *STORE)
    assert refused.code == 1
    assert "[key-required]" in refused.err
    assert "pointsman keys add" in refused.err


def test_a_port_in_use_is_reported(prompt: Prompt) -> None:
    with server() as (_, address):
        port = address.rpartition(":")[2]
        refused = prompt("serve", "--port", port, "--store", "memory:")
    assert (refused.code, "[address-taken]" in refused.err) == (1, True)


def test_creating_and_revoking_keys_is_audited(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    prompt("keys", "add", "ada", "--role", "editor", *STORE)
    prompt("keys", "list", *STORE)
    prompt("keys", "revoke", "ada", *STORE)
    told = prompt("audit", "--json", *STORE).json["deeds"]
    assert [(one["who"], one["entrance"], one["what"], one["target"]) for one in told] == [
        ("grace", "shell", "pointsman keys revoke", "name=ada"),
        ("grace", "shell", "pointsman keys add", "name=ada, role=editor"),
    ]
    assert prompt("verify", *STORE).code == 0


def test_keys_are_created_listed_and_revoked(prompt: Prompt) -> None:
    made = prompt("keys", "add", "ada", "--role", "editor", "--group", "desk", "--days", "30", *STORE)
    token = made.out.strip()
    assert (made.code, token.startswith("pm_"), len(token) > 40) == (0, True, True)
    twice = prompt("keys", "add", "ada", *STORE)
    assert (twice.code, "[key-exists]" in twice.err) == (2, True)
    (listed,) = prompt("keys", "list", "--json", *STORE).json["keys"]
    assert (listed["name"], listed["role"], listed["groups"], listed["usedAt"]) == ("ada", "editor", ["desk"], None)
    assert "ada" in prompt("keys", "list", "--search", "DES", "--role", "editor", *STORE).out
    assert prompt("keys", "list", "--role", "admin", *STORE).out == ""
    assert token.encode() not in b"".join(path.read_bytes() for path in Path().glob("store.db*"))

    with server() as (_, address), httpx2.Client(base_url=address, timeout=PATIENCE_S) as client:
        assert client.get("/api/workflows").status_code == 401
        assert client.get("/api/workflows", headers={"authorization": f"Bearer {token}"}).status_code == 200
    assert prompt("keys", "list", "--json", *STORE).json["keys"][0]["usedAt"] is not None
    assert prompt("keys", "revoke", "ada", *STORE).code == 0
    again = prompt("keys", "revoke", "ada", *STORE)
    assert (again.code, "[no-such-key]" in again.err) == (2, True)
    shown = prompt("keys", "add", "bob", "--json", *STORE)
    assert json.loads(shown.out)["key"].startswith("pm_")


@pytest.mark.parametrize("days", ["0", "-1", "soon"])
def test_a_key_can_expire(prompt: Prompt, days: str) -> None:
    assert prompt("keys", "add", "ada", "--days", days, *STORE).code == 2
