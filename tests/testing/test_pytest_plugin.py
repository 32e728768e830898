"""The pytest plugin, as users run it: pytest in a process of its own, on files of theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

pytestmark = pytest.mark.integration

SECRET = "sk-a-secret-of-the-environment-1234567890"
STORY = """
from pointsman import Workflow
from pointsman.settings import Settings


def price(article: str) -> float:
    return {"pen": 1.5}[article]


def shop():
    wf = Workflow.build("shop", output={"text": "nodes.write", "price": "nodes.price", "sea": "nodes.sea.data"})
    wait = wf.wait("wait", duration="30d")
    one = wf.tool("price", after=wait, tool=price, parameters={"article": "pen"})
    sea = wf.http("sea", after=one, url="https://example.com/sea")
    found = wf.tool("find", after=sea, tool="docs__search", parameters={"words": "tides"})
    wf.agent("write", after=found, prompt="Write about {nodes.find}")
    return wf
"""
STUBBED = """
def test_shop(pointsman, scripted_model, virtual_clock):
    scripted_model.answer("It is high.", node="write", contains="spring")
    pointsman.stub_http("sea", data={"level": 3})
    pointsman.stub_mcp("docs", "search", "spring tide")

    async def story():
        async with pointsman(tools=[price]) as app:
            execution = await app.run(shop())
            assert await execution.output() == {"text": "It is high.", "price": 1.5, "sea": {"level": 3}}

    virtual_clock.run(story())


def test_refused(pointsman, virtual_clock):
    wf = Workflow.build("refused")
    wf.http("sea", url="https://example.com/sea", execution={"errorHandler": "continue"})

    async def story():
        async with pointsman() as app:
            await app.run(wf)

    virtual_clock.run(story())
"""
RECORDED = """
import asyncio
import os


def test_real(pointsman, recorded_models):
    wf = Workflow.build("real", output="result")
    wf.agent("write", prompt="Write about the tides, for " + os.environ["OPENAI_API_KEY"], model="own:some")
    settings = Settings.model_validate({"providers": {"own": {"base_url": "URL", "retries": 0}}})

    async def story():
        async with pointsman(settings=settings) as app:
            return await (await app.run(wf)).output()

    assert "tide" in asyncio.run(story())
"""


def run(folder: Path, text: str, *options: str) -> str:
    """Run pytest on a file with the text, and return what it printed."""
    (folder / "test_user.py").write_text(STORY + text, encoding="utf-8")
    installed = any(one.name == "pointsman" for one in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "pointsman.testing.pytest_plugin")
    others = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "--asyncio-mode=auto")
    others += ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # A quick start has imported some modules already.
    command = [sys.executable, "-m", "pytest", "-q", str(folder), "--rootdir", str(folder), *plugin, *others, *options]
    environment = {**os.environ, "OPENAI_API_KEY": SECRET}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    return done.stdout + done.stderr


def test_stubs_answer_time_is_virtual_and_other_calls_fail_the_test(tmp_path: Path) -> None:
    printed = run(tmp_path, STUBBED)
    assert "2 passed, 1 error" in printed, printed
    assert "calls without a stub:" in printed
    assert "the http node 'sea' would send 'GET https://example.com/sea'" in printed


def test_answers_of_real_models_are_recorded_without_secrets_and_replayed(
    tmp_path: Path, httpserver: HTTPServer
) -> None:
    message = {"role": "assistant", "content": f"The tide comes, {SECRET}."}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "some", "choices": [choice], "usage": usage}
    httpserver.expect_request("/v1/chat/completions").respond_with_json(reply)
    text = RECORDED.replace("URL", httpserver.url_for("/v1"))
    missing = run(tmp_path, text)
    assert "has no recorded answer of 'own:some'" in missing, missing
    recorded = run(tmp_path, text, "--record-models")
    assert "1 passed" in recorded, recorded
    (file,) = tmp_path.glob("recordings/test_user/test_real.json")
    (call,) = json.loads(file.read_text(encoding="utf-8"))
    assert "The tide comes" in call["reply"]["text"]
    assert SECRET not in file.read_text(encoding="utf-8")
    asked = len(httpserver.log)
    replayed = run(tmp_path, text)
    assert "1 passed" in replayed, replayed
    assert len(httpserver.log) == asked
