"""Start and end of a server: signals, repeated signals, a kill under load, a standby that takes over."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.test_processes import started

WAITS_S = 60
SLOW = "rules:\n  - {node: first, text: One.}\n  - {node: second, delay: 20s, text: Never.}\n"
SOON = "rules:\n  - {node: first, text: One.}\n  - {node: second, delay: 1s, text: Two.}\n  - {node: third, text: T.}\n"


@contextmanager
def serving(store: list[str], *more: str, script: str = SOON) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Run a server process and yield its address."""
    options = ["--port", "0", "--script", written("script.yaml", script), *store, *more]
    with started("serve", *options) as process:
        try:
            yield process, said(process, "serving http://").split()[1]
        finally:
            process.kill()


def said(process: subprocess.Popen[str], word: str) -> str:
    """Return the line that contains the word."""
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return line
    pytest.fail(f"it ended without saying {word!r}: {process.wait()}")


def begun(address: str, number: int) -> list[str]:
    with httpx2.Client(base_url=address, timeout=WAITS_S) as client:
        client.post("/api/workflows", content=flows.CHAIN)
        replies = [client.post("/api/workflows/chain/execute", json={"input": {}}) for _ in range(number)]
    assert {reply.status_code for reply in replies} == {202}
    return [reply.json()["executionId"] for reply in replies]


def until(address: str, execution: str, event: str) -> None:
    """Read the stream until that event."""
    where = f"/api/workflows/executions/{execution}/stream"
    with httpx2.Client(base_url=address, timeout=WAITS_S) as client, client.stream("GET", where) as stream:
        for line in stream.iter_lines():
            if line == f"event: {event}":
                return
    pytest.fail(f"{execution} never told {event}")


FIRST_ENDED = "workflow.node.complete"
ENDED = "workflow.complete"


def drains(seconds: str) -> None:
    Path("pointsman.toml").write_text(f'[server]\ndrain = "{seconds}"\n')


def test_a_stopping_server_finishes_running_steps_and_starts_no_others(prompt: Prompt) -> None:
    drains("30s")
    store = ["--store", "sqlite:///store.db"]
    with serving(store) as (process, address):
        (execution,) = begun(address, 1)
        until(address, execution, FIRST_ENDED)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=WAITS_S) == 0
    seen = prompt("show", execution, "--json", *store).json
    assert (seen["status"], seen["path"]) == ("stopped", ["first", "second"])


def test_a_second_signal_stops_the_server_at_once(prompt: Prompt) -> None:
    drains("10m")
    store = ["--store", "sqlite:///store.db"]
    with serving(store, script=SLOW.replace("20s", "10m")) as (process, address):
        (execution,) = begun(address, 1)
        until(address, execution, FIRST_ENDED)
        process.send_signal(signal.SIGHUP)
        port = int(address.rpartition(":")[2])
        while is_listening(port):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=WAITS_S) == 0
    assert prompt("show", execution, "--json", *store).json["path"] == ["first"]
    assert prompt("verify", *store).code == 0


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.requirement("S1-112")
def test_a_server_killed_under_load_keeps_everything_it_acknowledged(prompt: Prompt, any_store: list[str]) -> None:
    with serving(any_store, script=SLOW) as (process, address):
        executions = begun(address, 6)
        until(address, executions[-1], FIRST_ENDED)
        process.kill()
        process.wait()
    with serving(any_store) as (process, address):
        for execution in executions:
            until(address, execution, ENDED)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=WAITS_S) == 0
    for execution in executions[:3]:
        shown = prompt("show", execution, "--json", *any_store).json
        assert shown["path"] == ["first", "second", "third"], "what had ended was not done again"
    assert prompt("verify", *any_store).code == 0


def test_a_standby_server_serves_and_takes_over_from_a_killed_leader(any_store: list[str]) -> None:
    with serving(any_store, script=SLOW) as (first, address), serving(any_store, "--standby") as (second, other):
        roles = [httpx2.get(f"{one}/ready", timeout=WAITS_S).json()["leader"] for one in (address, other)]
        assert roles == ["here", "standby"]
        (execution,) = begun(address, 1)
        until(other, execution, FIRST_ENDED)
        first.kill()
        first.wait()
        assert httpx2.get(f"{other}/ready", timeout=WAITS_S).json()["status"] == "ready"
        assert "leading" in said(second, "leading")
        until(other, execution, ENDED)
        assert httpx2.get(f"{other}/ready", timeout=WAITS_S).json()["leader"] == "here"


def test_a_service_manager_is_notified_of_ready_alive_and_stopping(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = tmp_path / "n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(address))
        heard.settimeout(WAITS_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(address))
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        with serving(["--store", "sqlite:///store.db"]) as (process, at):
            words = [heard.recv(200).decode() for _ in range(4)]
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=WAITS_S) == 0
        assert f"READY=1\nSTATUS=Serving {at}" in words
        assert "WATCHDOG=1" in words
        heard.setblocking(False)
        rest = [*words]
        while True:
            try:
                rest.append(heard.recv(200).decode())
            except BlockingIOError:
                break
        assert "STOPPING=1" in rest


def test_a_server_behind_a_proxy_checks_host_and_key(prompt: Prompt) -> None:
    store = ["--store", "sqlite:///store.db"]
    Path("pointsman.toml").write_text('[server]\nnames = ["flows.example.org"]\nport = 0\n')
    refused = prompt("serve", *store)
    assert (refused.code, "[key-required]" in refused.err, "flows.example.org" in refused.err) == (1, True, True)
    token = prompt("keys", "add", "ada", *store).out.strip()
    with serving(store) as (_, address):

        def asked(host: str, **more: str) -> int:
            return httpx2.get(f"{address}/api/workflows", headers={"host": host, **more}, timeout=WAITS_S).status_code

        key = {"authorization": f"Bearer {token}"}
        assert asked("flows.example.org", **key) == 200
        assert asked("FLOWS.example.org:443", **key) == 200
        assert asked("flows.example.org") == 401
        assert asked("elsewhere.example.org", **key) == 403


@pytest.mark.parametrize(
    "wrong", ["port = 70000", 'proxies = ["nowhere"]', 'names = ["a b"]', 'drain = "soon"', "listen = 1"]
)
def test_wrong_settings_are_reported_by_name(prompt: Prompt, wrong: str) -> None:
    Path("pointsman.toml").write_text(f"[server]\n{wrong}\n")
    refused = prompt("serve", "--store", "memory:")
    assert (refused.code, "[settings-invalid]" in refused.err) == (1, True)
    assert f"server.{wrong.split()[0]}" in refused.err
    assert os.path.exists("pointsman.toml")
