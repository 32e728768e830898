"""Traces: independent of the exporting process, complete across restarts, and without open spans while people are
asked."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from pytest_httpserver import HTTPServer

from pointsman.app import Pointsman
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.operations.otel import exporting, telemetry_of
from pointsman.operations.tracing import origin_in, traceparent
from pointsman.settings import Settings
from pointsman.settings.sections import TelemetrySettings
from pointsman.values import JsonObject
from tests.scenarios import installation, written

SETTINGS = TelemetrySettings(endpoint="http://127.0.0.1:1")
LETTER = """\
pointsman: 1
id: letter
input: {type: object}
nodes:
  - {id: write, type: agent, config: {prompt: "Say {goal}", tools: [look]}}
  - {id: review, type: human, config: {message: "Well?", options: [{value: go}]}}
  - {id: send, type: tool, config: {tool: post}}
edges: [{source: write, target: review}, {source: review, target: send}]
"""
SCRIPT = """\
rules:
  - {node: write, call: 1, toolCalls: [{name: look}], usage: {inputTokens: 100, outputTokens: 10}}
  - {node: write, text: done, usage: {inputTokens: 50, outputTokens: 5}}
tools: {look: {result: fog}, post: {results: [{fail: {message: full}}]}}
"""


class CollectedSpans:
    """The spans that a collector received."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []
        self.reader = InMemoryMetricReader()

    @asynccontextmanager
    async def by(self, app: Pointsman, settings: TelemetrySettings = SETTINGS) -> AsyncGenerator[None]:
        self.reader, exporter = InMemoryMetricReader(), InMemorySpanExporter()
        async with exporting(app.context, settings, SimpleSpanProcessor(exporter), self.reader):
            yield
        self.spans += exporter.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        (span,) = [one for one in self.spans if one.name == name]
        return span


def ids(span: ReadableSpan) -> tuple[int, int, int | None]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id, None if span.parent is None else span.parent.span_id


async def test_an_execution_is_a_trace_of_segments_steps_and_calls() -> None:
    heard = CollectedSpans()
    async with installation(SCRIPT) as app, heard.by(app):
        execution = await app.start(written(LETTER), {"goal": "tides"})
        await drive(execution, (GivenAnswer("review", "go"),))
    stretches = [span for span in heard.spans if span.name == "invoke_workflow letter"]
    assert len(stretches) == 2, "one until people were waited for, one from their answer on"
    first, second = stretches
    assert [link.context.span_id for link in second.links] == [ids(first)[1]]
    assert len({ids(span)[0] for span in heard.spans}) == 1
    agent = heard.named("invoke_agent write")
    assert ids(agent)[2] == ids(first)[1]
    assert ids(heard.named("execute_tool look"))[2] == ids(agent)[1]
    calls = [span for span in heard.spans if span.name.startswith("chat ")]
    assert len(calls) == 2
    good = [dict(span.attributes or {}) for span in calls if span.status.status_code is StatusCode.UNSET]
    assert [one["gen_ai.usage.input_tokens"] for one in good] == [100, 50]
    assert {str(one["gen_ai.operation.name"]) for one in good} == {"chat"}
    assert (heard.named("execute_tool post").attributes or {})["error.type"] == "tool-failed"
    assert heard.named("step send").status.status_code is StatusCode.ERROR
    assert second.status.status_code is StatusCode.ERROR
    opened, answered = heard.named("gate opened review"), heard.named("gate answered review")
    assert [link.context.span_id for link in answered.links] == [ids(opened)[1]]
    assert "tides" not in str([span.attributes for span in heard.spans])


@pytest.mark.integration
async def test_another_process_continues_the_trace_and_repeats_no_span(tmp_path: Path) -> None:
    store, heard = f"sqlite:///{tmp_path / 'store.db'}", CollectedSpans()
    async with installation(SCRIPT, store=store) as app, heard.by(app):
        execution = await app.start(written(LETTER), {"goal": "tides"})
        await execution.settled()
    before = [ids(span) for span in heard.spans]
    async with installation(SCRIPT, store=store) as app, heard.by(app):
        await drive(await app.open(execution.id), (GivenAnswer("review", "go"),))
    told = [ids(span) for span in heard.spans]
    assert len({span for _, span, _ in told}) == len(told) > len(before)
    assert len({trace for trace, _, _ in told}) == 1
    answered = heard.named("gate answered review")
    assert [link.context.span_id for link in answered.links] == [ids(heard.named("gate opened review"))[1]]


async def test_a_sub_workflow_is_a_child_span_of_its_step() -> None:
    outer = """\
pointsman: 1
id: outer
nodes: [{id: call, type: workflow, config: {workflow: inner}}]
"""
    inner = "{pointsman: 1, id: inner, nodes: [{id: say, type: agent, config: {prompt: hi}}]}"
    heard = CollectedSpans()
    async with installation() as app, heard.by(app):
        await app.save(written(inner))
        execution = await app.start(written(outer), {})
        assert await execution.settled() == "completed"
    below = heard.named("invoke_workflow inner")
    assert ids(below)[2] == ids(heard.named("step call"))[1]
    assert len({ids(span)[0] for span in heard.spans}) == 1


async def test_a_start_can_name_its_trace() -> None:
    heard = CollectedSpans()
    async with installation() as app, heard.by(app):
        trigger: JsonObject = {"kind": "api", "traceparent": traceparent(0xABC, 0xDEF)}
        flow = "{pointsman: 1, id: one, nodes: [{id: say, type: agent, config: {prompt: hi}}]}"
        await (await app.start(written(flow), {}, trigger=trigger)).settled()
    assert ids(heard.named("invoke_workflow one"))[::2] == (0xABC, 0xDEF)


@pytest.mark.parametrize("given", [None, "", 7, "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "00-ab-cd-01", "x" * 200])
def test_an_invalid_trace_header_is_ignored(given: object) -> None:
    assert origin_in(given) is None


async def test_http_nodes_propagate_their_span_if_enabled(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/there").respond_with_json({})
    node = f"{{id: get, type: http, config: {{url: '{httpserver.url_for('/there')}'}}}}"
    flow = f"{{pointsman: 1, id: web, nodes: [{node}]}}"
    http = {"networks": ["127.0.0.0/8"], "ports": [httpserver.port]}
    heard, said = CollectedSpans(), list[str | None]()
    for wanted in (True, False):
        settings = SETTINGS.model_copy(update={"propagate": wanted})
        async with installation(settings={"http": http}) as app, heard.by(app, settings):
            execution = await app.start(written(flow), {})
            assert await execution.settled() == "completed", execution.state.outcome.failure
        said.append(httpserver.log[-1][0].headers.get("traceparent"))
    first = next(span for span in heard.spans if span.name == "step get")
    trace, span, _ = ids(first)
    assert said == [traceparent(trace, span), None]


async def test_a_configured_fraction_of_executions_is_traced() -> None:
    heard = CollectedSpans()
    async with installation(SCRIPT) as app, heard.by(app, SETTINGS.model_copy(update={"sample": 0.0})):
        await (await app.start(written(LETTER), {"goal": "x"})).settled()
    assert heard.spans == []


async def test_tokens_and_durations_of_calls_follow_the_conventions() -> None:
    heard = CollectedSpans()
    async with installation(SCRIPT) as app, heard.by(app):
        await (await app.start(written(LETTER), {"goal": "x"})).settled()
        data = heard.reader.get_metrics_data()
    assert data is not None
    named = {
        metric.name: metric for one in data.resource_metrics for scope in one.scope_metrics for metric in scope.metrics
    }
    points = json.loads(named["gen_ai.client.token.usage"].to_json())["data"]["data_points"]
    assert {one["attributes"]["gen_ai.token.type"]: one["sum"] for one in points} == {"input": 150, "output": 15}
    assert "gen_ai.client.operation.duration" in named


async def test_spans_and_metrics_are_sent_to_a_collector_over_http(httpserver: HTTPServer) -> None:
    for path in ("/v1/traces", "/v1/metrics"):
        httpserver.expect_request(path, method="POST", headers={"x-key": "abc-secret"}).respond_with_data(b"")
    telemetry = {"endpoint": httpserver.url_for("/"), "headers": {"x-key": "secret.COLLECTOR"}}
    settings = {"telemetry": telemetry, "secrets": {"COLLECTOR": "abc-secret"}}
    async with installation(SCRIPT, settings=settings) as app, telemetry_of(app.context):
        await (await app.start(written(LETTER), {"goal": "x"})).settled()
    bodies = {request.path: request.get_data() for request, response in httpserver.log if response.status_code == 200}
    assert b"invoke_agent write" in bodies["/v1/traces"]
    assert b"gen_ai.client.token.usage" in bodies["/v1/metrics"]


async def test_nothing_is_traced_by_default() -> None:
    async with Pointsman("memory:", settings=Settings()) as app, telemetry_of(app.context):
        assert not app.feed.watched
        assert not app.context.services.calls.is_observed
        assert httpx2.__name__
