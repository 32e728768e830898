"""Workflow tests reach nothing outside, unless the test file has a stub for it or allows it by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from pointsman.testing.cases import run_file

HTTP = """
id: fetch
nodes:
  - {{id: fetch, type: http, config: {{url: "{url}"}}, outputs: {{found: result.data}}}}
edges: []
"""
TOOL = """
id: act
nodes:
  - {id: act, type: tool, config: {tool: TOOL, parameters: {}}}
edges: []
"""
SHOP = """\
settings:
  tools: {shop: {description: Buys., method: GET, url: 'URL'}}
  http: {networks: [127.0.0.0/8], ports: [PORT], plain: true}
"""


def failures(directory: Path, workflow: str, test: str) -> tuple[str, ...]:
    (directory / "flow.yaml").write_text(workflow, encoding="utf-8")
    file = directory / "flow.test.yaml"
    file.write_text(f"workflow: flow.yaml\n{test}", encoding="utf-8")
    [outcome] = run_file(file)
    return outcome.failures


@pytest.fixture
def url(httpserver: HTTPServer) -> str:
    httpserver.expect_request("/").respond_with_json({"price": 7})
    return httpserver.url_for("/")


def test_an_http_node_without_a_stub_is_refused_and_sends_nothing(
    tmp_path: Path, url: str, httpserver: HTTPServer
) -> None:
    port = f"settings: {{http: {{networks: [127.0.0.0/8], ports: [{httpserver.port}], plain: true}}}}\n"
    [why] = failures(tmp_path, HTTP.format(url=url), port)
    assert "outside-refused" in why
    assert "'fetch'" in why
    assert httpserver.log == []


@pytest.mark.parametrize("named", ["fetch", "GET URL"])
def test_a_stub_answers_an_http_node(tmp_path: Path, url: str, httpserver: HTTPServer, named: str) -> None:
    stub = f'http: {{"{named.replace("URL", url)}": {{data: 7}}}}\nexpect: {{state: {{found: 7}}}}\n'
    assert failures(tmp_path, HTTP.format(url=url), stub) == ()
    assert httpserver.log == []


def test_a_stub_may_answer_with_an_error(tmp_path: Path, url: str) -> None:
    stub = "http: {fetch: {status: 404}}\nexpect: {status: failed, errors: [http-status]}\n"
    assert failures(tmp_path, HTTP.format(url=url), stub) == ()


def test_an_http_node_that_is_allowed_sends_its_request(tmp_path: Path, url: str, httpserver: HTTPServer) -> None:
    port = f"settings: {{http: {{networks: [127.0.0.0/8], ports: [{httpserver.port}], plain: true}}}}\n"
    expect = "allow: fetch\nexpect: {state: {found: {price: 7}}}\n"
    assert failures(tmp_path, HTTP.format(url=url), port + expect) == ()
    assert len(httpserver.log) == 1


@pytest.mark.parametrize(("allow", "calls"), [("", 0), ("allow: shop\n", 1)])
def test_a_tool_that_acts_outside_must_be_allowed(
    tmp_path: Path, url: str, httpserver: HTTPServer, allow: str, calls: int
) -> None:
    shop = SHOP.replace("URL", url).replace("PORT", str(httpserver.port))
    found = failures(tmp_path, TOOL.replace("TOOL", "shop"), shop + allow)
    assert len(httpserver.log) == calls
    assert bool(found) is (calls == 0)
    assert all("outside-refused" in why and "'shop'" in why for why in found)


def test_a_script_answers_for_a_tool(tmp_path: Path) -> None:
    script = "script: {tools: {shop: {result: sold}}}\nexpect: {output: sold}\n"
    assert failures(tmp_path, TOOL.replace("TOOL", "shop"), script) == ()
