"""Prometheus metrics: a valid format, and access."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openly  # pyright: ignore[reportUnknownVariableType] - untyped
from prometheus_client.parser import text_string_to_metric_families as read_plainly

from pointsman.engine.reports import Usage
from pointsman.executors.call_observers import ModelCalled
from pointsman.models.script import Script
from pointsman.operations.metrics import MODELS_MAX, OTHER, Bounded
from pointsman.ports import ModelReply, ModelRequest
from pointsman.settings import Settings
from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER

KEY = "scrape-4417cafe90"
SCRIPT: Script = parse_script("rules: [{node: first, attempt: 1, fail: 503}, {node: second, text: done}]")


async def samples(served: Served, **labels: str) -> dict[str, float]:
    """Return the samples with these labels, by name."""
    reply = await served.client.get("/metrics")
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, float] = {}
    for family in read_plainly(reply.text):
        for sample in family.samples:
            if labels.items() <= sample.labels.items():
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


async def test_execution_metrics_are_counted_by_workflow(served: Served) -> None:
    for document in (CHAIN, LETTER):
        await served.save(document)
    await served.execute("chain")
    letter = await served.execute("letter", {"goal": "tides"})
    chain = await samples(served, workflow="chain")
    assert chain["pointsman_executions_started_total"] == 1
    assert (await samples(served, workflow="chain", status="completed"))["pointsman_executions_ended_total"] == 1
    assert chain["pointsman_step_seconds_count"] == 2
    assert (await samples(served, happened="opened"))["pointsman_gates_total"] == 1
    assert "pointsman_gates_total" not in await samples(served, happened="answered")
    await served.act(letter, "respond", {"gateId": "review", "action": "approve"})
    assert (await samples(served, happened="answered"))["pointsman_gates_total"] == 1
    whole = await samples(served)
    assert whole["pointsman_model_calls_total"] == 3
    assert whole["pointsman_model_tokens_total"] > 0
    assert whole["pointsman_store_write_seconds_count"] >= 4
    assert whole["pointsman_leader_lag_seconds"] == 0
    assert whole["process_resident_memory_bytes"] > 1e7


async def test_failed_and_successful_attempts_are_counted_separately() -> None:
    async with serving(script=SCRIPT) as served:
        await served.save(CHAIN.replace("config: {prompt: one}", "config: {prompt: one}, execution: {retries: 1}"))
        await served.execute("chain")
        counts = {
            outcome: (await samples(served, workflow="chain", outcome=outcome)).get("pointsman_step_seconds_count", 0)
            for outcome in ("done", "retried", "failed")
        }
        assert counts == {"done": 2, "retried": 1, "failed": 0}
        assert (await samples(served, workflow="chain"))["pointsman_step_retries_total"] == 1


async def test_requests_are_counted_by_operation_and_not_by_path(served: Served) -> None:
    for name in ("exec-a", "exec-b", "../etc", "x" * 90):
        await served.client.get(f"/api/workflows/executions/{name}")
    await served.client.get("/nowhere/at/all")
    operation = "/api/workflows/executions/{eid}"
    assert (await samples(served, operation=operation, status="404"))["pointsman_http_requests_total"] == 3
    text = (await served.client.get("/metrics")).text
    assert "exec-a" not in text
    assert "nowhere" not in text


async def test_open_streams_are_counted(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    async with served.stream(execution) as events:
        await anext(events)
        assert (await samples(served))["pointsman_streams"] == 1
    await served.client.get("/health")


async def test_the_openmetrics_format_is_returned_on_request(served: Served) -> None:
    await served.save(CHAIN)
    await served.execute("chain")
    wanted = {"accept": "application/openmetrics-text; version=1.0.0"}
    reply = await served.client.get("/metrics", headers=wanted)
    assert reply.headers["content-type"].startswith("application/openmetrics-text")
    families = {family.name: family for family in read_openly(reply.text)}
    assert families["pointsman_executions_started"].type == "counter"
    buckets = [s for s in families["pointsman_step_seconds"].samples if s.name.endswith("_bucket")]
    assert [s.value for s in buckets] == sorted(s.value for s in buckets)


@pytest.mark.parametrize(
    ("key", "status"), [(None, 401), (KEY, 200), ("pm_wrong", 401), ("viewer", 403), ("admin", 200)]
)
async def test_metrics_require_the_scrapers_key_or_an_admin(key: str | None, status: int) -> None:
    settings = Settings.model_validate(
        {"delays": False, "metrics": {"key": "secret.SCRAPE"}, "secrets": {"SCRAPE": KEY}}
    )
    async with serving(is_local=False, settings=settings) as served:
        if key in ("viewer", "admin"):
            header = await served.key(key, key)
        else:
            header = {} if key is None else {"authorization": f"Bearer {key}"}
        assert (await served.client.get("/metrics", headers=header)).status_code == status
        listed = await served.client.get("/api/workflows", headers={"authorization": f"Bearer {KEY}"})
        assert listed.status_code == 401, "it opens nothing else"


async def test_every_response_has_a_request_id_and_a_valid_given_id_is_kept(served: Served) -> None:
    brought = await served.client.get("/health", headers={"x-request-id": "abc-1"})
    assert brought.headers["x-request-id"] == "abc-1"
    for bad in ("a b", "x" * 65, "a;b"):
        reply = await served.client.get("/nowhere", headers={"x-request-id": bad})
        assert len(reply.headers["x-request-id"]) == 16


def test_label_values_over_the_bound_count_as_other() -> None:
    bounded = Bounded(2)
    assert [bounded(name) for name in ("a", "b", "c", "d", "a")] == ["a", "b", OTHER, OTHER, "a"]


async def test_models_over_the_bound_share_one_series_and_names_are_escaped(served: Served) -> None:
    calls = served.app.context.services.calls
    usage = Usage(input_tokens=-5, output_tokens=2, model_calls=1)
    for name in ('b"\n\\', *(f"model-{number}" for number in range(MODELS_MAX + 5))):
        request = ModelRequest(model=name)
        calls.tell(ModelCalled(request, ModelReply(model=name, usage=usage), None, 0.0, 1.0))
    counted = await samples(served, model='b"\n\\')
    assert (counted["pointsman_model_calls_total"], counted["pointsman_model_tokens_total"]) == (1, 2)
    assert (await samples(served, model=OTHER))["pointsman_model_calls_total"] == 6


async def test_the_trace_of_a_request_is_stored_with_its_execution_only(served: Served) -> None:
    await served.save(CHAIN)
    good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for given, kept in ((good, good), ("00-nonsense", None)):
        reply = await served.client.post(
            "/api/workflows/chain/execute", json={"input": {}, "wait": True}, headers={"traceparent": given}
        )
        assert reply.json()["trigger"].get("traceparent") == kept
