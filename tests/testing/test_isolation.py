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
    assert "external-call-refused" in why
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
    assert all("external-call-refused" in why and "'shop'" in why for why in found)


def test_a_script_answers_for_a_tool(tmp_path: Path) -> None:
    script = "script: {tools: {shop: {result: sold}}}\nexpect: {output: sold}\n"
    assert failures(tmp_path, TOOL.replace("TOOL", "shop"), script) == ()


def test_a_tool_of_the_script_answers_before_a_tool_of_the_settings(
    tmp_path: Path, url: str, httpserver: HTTPServer
) -> None:
    shop = SHOP.replace("URL", url).replace("PORT", str(httpserver.port))
    script = "script: {tools: {shop: {result: sold}}}\nexpect: {output: sold}\n"
    assert failures(tmp_path, TOOL.replace("TOOL", "shop"), shop + script) == ()
    assert httpserver.log == []


@pytest.mark.parametrize("stubbed", [True, False])
def test_an_mcp_server_is_not_started(tmp_path: Path, stubbed: bool) -> None:
    started = tmp_path / "started"
    server = f"settings: {{mcp: {{shop: {{command: [touch, '{started}']}}}}}}\n"
    script = "script: {tools: {shop__find: {result: [apple]}}}\nexpect: {output: [apple]}\n"
    found = failures(tmp_path, TOOL.replace("TOOL", "shop__find"), server + (script if stubbed else ""))
    assert not started.exists()
    assert (found == ()) is stubbed
    assert all("external-call-refused" in why and "'shop__find'" in why for why in found)


def test_no_mail_is_sent(tmp_path: Path) -> None:
    flow = TOOL.replace("TOOL", "send_email").replace("{}", "{to: a@b.org, subject: s, body: b}")
    settings = "settings: {allow_email_sending: true, mail: {host: 127.0.0.1, port: 9, sender: a@b.org}}\n"
    [why] = failures(tmp_path, flow, settings)
    assert "external-call-refused" in why
    assert "'send_email'" in why


def test_no_notification_is_sent(tmp_path: Path, url: str, httpserver: HTTPServer) -> None:
    address = f"{{url: '{url}', events: [gate, completed], private: true}}"
    settings = f"settings: {{notifications: {{desk: {address}}}, http: {{networks: [127.0.0.0/8], plain: true}}}}\n"
    flow = "id: asks\nnodes:\n  - {id: gate, type: human, config: {message: Go on?}}\nedges: []\n"
    assert failures(tmp_path, flow, settings + "answers: {gate: approve}\n") == ()
    assert httpserver.log == []


def test_an_event_stays_in_the_store_of_the_test(tmp_path: Path) -> None:
    flow = "id: tells\nnodes:\n  - {id: emit, type: emit, config: {event: done, data: {n: 1}}}\nedges: []\n"
    expect = "expect: {events: [{kind: emitted, name: done}]}\n"
    assert failures(tmp_path, flow, expect) == ()


@pytest.mark.parametrize("stub", ["{staus: 500}", "{status: '500'}", "{status: 5}", "{body: 7}", "{status: true}", "7"])
def test_a_misspelt_stub_is_refused_with_its_key(tmp_path: Path, url: str, stub: str) -> None:
    [why] = failures(tmp_path, HTTP.format(url=url), f"http: {{fetch: {stub}}}\n")
    assert "http.fetch" in why
    assert ("Did you mean 'status'?" in why) is ("staus" in stub)


AGENT = """
id: buyer
nodes:
  - {id: buy, type: agent, config: {prompt: Buy it., tools: [shop]}}
edges: []
"""
CALLS = "script: {rules: [{node: buy, call: 1, toolCalls: [{name: shop, arguments: {}}]}, {node: buy, text: done}]}\n"


@pytest.mark.parametrize(
    ("expect", "passes"), [("", False), ("expect: {output: done}\n", False), ("allow: shop\n", True)]
)
def test_a_refused_call_of_an_agent_fails_the_test(
    tmp_path: Path, url: str, httpserver: HTTPServer, expect: str, passes: bool
) -> None:
    shop = SHOP.replace("URL", url).replace("PORT", str(httpserver.port))
    found = failures(tmp_path, AGENT, shop + CALLS + expect)
    assert (found == ()) is passes
    assert all("external-call-refused" in why and "'shop'" in why and "allow: [shop]" in why for why in found)


@pytest.mark.parametrize("tool", ["shop", "web_search", "shop__find"])
def test_a_call_of_a_tool_that_only_the_users_settings_have_fails_the_test(tmp_path: Path, tool: str) -> None:
    """The user's settings do not apply in a test: the tool is unknown or disabled there, and the agent continues."""
    agent, calls = AGENT.replace("shop", tool), CALLS.replace("shop", tool)
    [why] = failures(tmp_path, agent, calls)
    assert "external-call-refused" in why
    assert f"'{tool}'" in why
    stub = calls.replace("script: {", f"script: {{tools: {{{tool}: {{fail: sold out}}}}, ")
    assert failures(tmp_path, agent, stub) == ()


@pytest.mark.parametrize(
    ("keys", "named"),
    [("http: {fech: {status: 200}}\n", "http.fech"), ("allow: fech\n", "allow: 'fech'")],
)
def test_a_stub_or_permission_for_nothing_is_refused(tmp_path: Path, url: str, keys: str, named: str) -> None:
    [why] = failures(tmp_path, HTTP.format(url=url), keys)
    assert named in why
    assert "Did you mean 'fetch'?" in why


def test_a_refused_request_whose_node_continues_fails_the_test(tmp_path: Path, url: str) -> None:
    flow = HTTP.format(url=url).replace("type: http,", "type: http, execution: {errorHandler: continue},")
    [why] = failures(tmp_path, flow, "")
    assert "external-call-refused" in why
    assert failures(tmp_path, flow, "http: {fetch: {status: 404}}\n") == ()


def test_a_refusal_that_the_test_expects_passes(tmp_path: Path, url: str) -> None:
    expect = "expect: {status: failed, errors: [external-call-refused]}\n"
    assert failures(tmp_path, HTTP.format(url=url), expect) == ()


def test_an_unknown_key_of_a_test_names_the_one_that_was_meant(tmp_path: Path, url: str) -> None:
    [why] = failures(tmp_path, HTTP.format(url=url), "expect: {ouput: 7}\n")
    assert "expect.ouput: there is no such key. Did you mean 'output'?" in why
    [why] = failures(tmp_path, HTTP.format(url=url), "settings: {providers: {openai: {base_ulr: 'http://x'}}}\n")
    assert "settings.providers.openai.base_ulr: there is no such setting. Did you mean 'base_url'?" in why
