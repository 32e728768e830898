"""Secrets in shortened texts: masking happens before the cut, so no part of a secret remains on either side."""

from __future__ import annotations

import logging
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.engine.reports import ToolCall
from pointsman.models import exchange
from pointsman.models.failures import MESSAGE_CHARS_MAX, key_redaction
from pointsman.models.provider_http import RawResponse
from pointsman.redaction import MASK, head, hiding, redaction_of, tail, unfinished
from pointsman.settings import Settings
from pointsman.settings.sections import HttpSettings
from pointsman.tool_output import CHARS_MAX, apart_from_tools
from pointsman.tools.http.messages import EXCERPT
from pointsman.tools.mcp.process import CHARS_MAX as STDERR_CHARS_MAX
from pointsman.tools.mcp.process import Stderr
from pointsman.tools.tool import Tool
from pointsman.values import Json, JsonObject
from tests.tools.outgoing.peer import answer, peering

SECRET = "sK-Live-51cAnArY0Zq2Xw4Vr6Ts8PuN"
"""Each piece has a capital letter or a dash: ids, times and hashes contain none by accident."""
PIECE = 6
PIECES = [SECRET[at : at + PIECE] for at in range(len(SECRET) - PIECE + 1)]
Say = Callable[[str], object]


def pieces_in(text: str) -> list[str]:
    return [piece for piece in PIECES if piece in text]


def print_it(text: str) -> None:
    print(text)  # noqa: T201 - what is tested


def print_letters(text: str) -> None:
    for letter in text:
        print(letter, end="")  # noqa: T201 - what is tested


def log_it(text: str) -> None:
    logging.getLogger("tool").warning("%s", text)


def settings(**more: object) -> Settings:
    secrets = {"KEY": {"value": SECRET, "tools": ["*"], "hosts": ["*"]}}
    return Settings.model_validate({"secrets": secrets, "delays": False, **more})


async def told(flow: Workflow, given: Settings, *tools: Tool, store: str = "memory:") -> str:
    """Return everything that is displayed and stored of an execution."""
    async with Pointsman(store, tools=tools, settings=given, model="scripted") as app:
        with apart_from_tools():
            execution = await app.start(flow, {})
            await execution.settled()
        rows = [row async for row in app.storage.export(execution.id)]
        return str(await app.state_and_events(execution.id)) + b"".join(rows).decode()


def calling(name: str, **parameters: Json) -> Workflow:
    node: JsonObject = {"id": "call", "type": "tool", "config": {"tool": name, "parameters": parameters}}
    return Workflow.of({"id": "flow", "nodes": [node], "edges": []})


@pytest.mark.parametrize("cut", range(0, len(SECRET) + 4, 3))
def test_truncation_at_any_position_leaves_no_part_of_a_secret(cut: int) -> None:
    text = f"ab{SECRET}cd"
    with hiding(redaction_of(frozenset({SECRET}))):
        assert not pieces_in(head(text, cut) + tail(text, cut) + unfinished(text[:cut]))
        assert head("plain text", 5) + tail("plain text", 4) == "plaintext"


def test_nested_secret_blocks_add_up() -> None:
    with hiding(redaction_of(frozenset({SECRET}))), hiding(redaction_of(frozenset({"another-secret"}))):
        assert head(f"{SECRET} another-secret", 20) == f"{MASK} {MASK}"


@pytest.mark.parametrize("say", [print_it, print_letters, log_it])
@pytest.mark.parametrize("shift", [5, 16, 30])
@pytest.mark.parametrize("fails", [True, False])
async def test_the_tail_of_tool_output_has_no_part_of_a_secret(say: Say, shift: int, fails: bool) -> None:
    @tool
    def talk(key: str) -> str:
        """Print more than is stored."""
        say(f"{'x' * 50}{key}{'y' * (CHARS_MAX - shift)}")
        if fails:
            raise ValueError("it fails")
        return "done"

    seen = await told(calling("talk", key="secret.KEY"), settings(), talk)
    assert "yyyy" in seen
    assert not pieces_in(seen)


async def test_many_adjacent_secrets_leave_no_part_of_the_first() -> None:
    @tool
    def talk(key: str) -> str:
        """Print one secret after another."""
        print(f"{key} " * 400)  # noqa: T201 - what is tested
        raise ValueError("it fails")

    assert not pieces_in(await told(calling("talk", key="secret.KEY"), settings(), talk))


@pytest.mark.parametrize("length", [445, 455, 1990, 7980])
async def test_messages_and_tracebacks_of_tools_are_masked_before_truncation(length: int) -> None:
    @tool
    def fail(key: str) -> str:
        """Raise a long message."""
        raise ValueError(f"{'x' * length}{key}{'y' * 10_000}")

    seen = await told(calling("fail", key="secret.KEY"), settings(), fail)
    assert "xxxx" in seen
    assert not pieces_in(seen)


@pytest.mark.parametrize("shift", [4, 20])
@pytest.mark.integration
async def test_the_body_of_a_refused_request_is_masked_before_truncation(shift: int) -> None:
    async with peering() as peer:
        body = f"{'x' * (EXCERPT - shift)}{SECRET}{'y' * 100}".encode()
        peer.answers["/"] = answer(body, "content-type: text/plain", status="403 Forbidden")
        http = HttpSettings(networks=(IPv4Network("127.0.0.0/8"),), ports=(peer.port,))
        node: JsonObject = {"id": "get", "type": "http", "config": {"url": f"{peer.url}/", "method": "GET"}}
        flow = Workflow.of({"id": "flow", "nodes": [node], "edges": []})
        seen = await told(flow, settings(http=http))
    assert "xxxx" in seen
    assert not pieces_in(seen)


@pytest.mark.integration
async def test_the_parts_of_a_page_split_no_secret() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(f"{'x' * 180}{SECRET}{'y' * 300}".encode(), "content-type: text/plain")
        http = HttpSettings(networks=(IPv4Network("127.0.0.0/8"),), ports=(peer.port,))
        given = settings(http=http, pages={"hosts": ["127.*"], "chars_max": 200})
        seen = await told(calling("fetch_page", url=f"{peer.url}/"), given)
        assert "xxxx" in seen
        assert not pieces_in(seen)


@pytest.mark.integration
async def test_the_address_of_a_page_is_masked_before_truncation() -> None:
    question = "sK-Live-51cAnArY?0Zq2Xw4Vr6Ts8PuN"
    async with peering() as peer:
        peer.answers["/sK-Live-51cAnArY"] = answer(b"no", status="404 Not Found")
        http = HttpSettings(networks=(IPv4Network("127.0.0.0/8"),), ports=(peer.port,))
        given = settings(http=http, pages={"hosts": ["127.*"]}).model_copy()
        secrets = {"KEY": {"value": question, "tools": ["*"], "hosts": ["*"]}}
        given = Settings.model_validate({**given.model_dump(exclude_unset=True), "secrets": secrets})
        seen = await told(calling("fetch_page", url=f"{peer.url}/{{secret.KEY}}"), given)
    assert "http-status" in seen
    assert not pieces_in(seen)


@pytest.mark.parametrize("cut", [SECRET[:4], SECRET[:20]])
def test_the_response_of_a_provider_is_masked_before_truncation(cut: str) -> None:
    sent = RawResponse(status=500, body=bytearray(f"x {SECRET} y {cut}".encode()), is_cut=True)
    with hiding(key_redaction([SECRET])):
        assert sent.text == f"x {MASK} y"
        said = cast("Callable[[object], str]", vars(exchange)["_excerpt"])
        assert not pieces_in(said(f"{'x' * (MESSAGE_CHARS_MAX - len(cut))}{SECRET}"))


@pytest.mark.parametrize("shift", [4, 20])
def test_the_tail_of_a_servers_standard_error_has_no_part_of_a_secret(shift: int) -> None:
    stderr = Stderr(redaction_of(frozenset({SECRET})).text)
    stderr.file.write(f"{SECRET}{'y' * (STDERR_CHARS_MAX - shift)}\n")
    stderr.settle()
    assert "yyyy" in stderr.tail()
    assert not pieces_in(stderr.tail())


async def test_a_tried_tool_returns_no_secret(tmp_path: Path) -> None:
    from pointsman.workflows.tool_verbs import try_tool  # Beside its only use.

    @tool
    def repeat(fail: bool) -> str:
        """Repeat a secret of the settings."""
        if fail:
            raise ValueError(f"{'x' * 470}{SECRET}")
        return SECRET

    async with Pointsman("memory:", tools=[repeat], settings=settings(), model="scripted") as app:
        seen = [await try_tool(app.context, "repeat", {"fail": fail}) for fail in (True, False)]
        with pytest.raises(Exception, match="failed"):
            await app.tools.call(ToolCall(id="1", name="repeat", arguments={"fail": True}), key="k")
    assert seen[1]["result"] == MASK
    assert not pieces_in(str(seen))
