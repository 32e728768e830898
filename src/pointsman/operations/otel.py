"""OpenTelemetry: spans and metrics for a collector. Its SDK is loaded only if the settings enable it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from pointsman.auth.redaction import Redactor, redactor_for
from pointsman.context import AppContext
from pointsman.executors.call_observers import ModelCalled, ToolCalled
from pointsman.extras import need
from pointsman.operations.tracing import Export, TracedExecutors, TraceSpan, Tracing, Value
from pointsman.settings.sections import TelemetrySettings
from pointsman.values import JsonObject
from pointsman.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor


@asynccontextmanager
async def telemetry_of(app: AppContext) -> AsyncGenerator[None, None]:
    """Send traces and metrics as configured until the block ends. Raises `ExtraMissing`."""
    settings = app.settings.telemetry
    if settings is None:
        yield
        return
    need("otel", "The section `telemetry` of the settings")
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    base = settings.endpoint.rstrip("/")
    headers = {name: app.settings.resolved(value) or "" for name, value in settings.headers.items()}
    spans = BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", headers=headers)) if settings.traces else None
    exporter = OTLPMetricExporter(f"{base}/v1/metrics", headers=headers) if settings.metrics else None
    reader = None if exporter is None else PeriodicExportingMetricReader(exporter)
    async with exporting(app, settings, spans, reader):
        yield


@asynccontextmanager
async def exporting(
    app: AppContext, settings: TelemetrySettings, spans: SpanProcessor | None, reader: MetricReader | None
) -> AsyncGenerator[None, None]:
    """Send spans to a processor and metrics to a reader until the block ends."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource

    resource = Resource.create({"service.name": settings.service, "service.version": VERSION})
    redact = redactor_for(app.settings)
    tracing = None if spans is None else Tracing(app, exporter_of(spans, resource, redact), sample=settings.sample)
    meters = None if reader is None else MeterProvider([reader], resource=resource, shutdown_on_exit=False)
    leave = None if meters is None else _measured(app, meters)
    executors = app.runtime.executors
    if tracing is not None and settings.propagate:
        app.runtime.executors = TracedExecutors(executors, tracing)
    try:
        yield
    finally:
        app.runtime.executors = executors
        if tracing is not None and spans is not None:
            await tracing.close()
            spans.shutdown()
        if leave is not None and meters is not None:
            leave()
            meters.shutdown()


def exporter_of(processor: SpanProcessor, resource: Resource, redact: Redactor) -> Export:
    """Return an exporter that converts spans to those of the SDK, without secrets."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

    scope, sampled = InstrumentationScope("pointsman", VERSION), TraceFlags(TraceFlags.SAMPLED)

    def context(trace: int, span: int) -> SpanContext:
        return SpanContext(trace, span, is_remote=False, trace_flags=sampled)

    def export(span: TraceSpan) -> None:
        failure = span.failure
        attributes = span.attributes if failure is None else {**span.attributes, "error.type": failure.code}
        redacted = redact(cast("JsonObject", dict(attributes)))
        processor.on_end(
            ReadableSpan(
                redact.text(span.name),
                context(span.trace, span.id),
                parent=None if span.parent is None else context(span.trace, span.parent),
                resource=resource,
                attributes=cast("dict[str, Value]", redacted),
                links=[Link(context(span.trace, link)) for link in span.links],
                kind=SpanKind.CLIENT if span.client else SpanKind.INTERNAL,
                status=Status(StatusCode.UNSET) if failure is None else Status(StatusCode.ERROR, failure.code),
                start_time=round(span.begin * 1e9),
                end_time=round(span.end * 1e9),
                instrumentation_scope=scope,
            )
        )

    return export


def _measured(app: AppContext, meters: MeterProvider) -> Callable[[], None]:
    """Record the metrics of the OpenTelemetry conventions: durations of calls, and tokens of models. Return a function
    that stops it."""
    meter = meters.get_meter("pointsman", VERSION)
    seconds = meter.create_histogram("gen_ai.client.operation.duration", "s", "Calls of models and tools.")
    tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens that calls of models used.")

    def observe(called: ModelCalled | ToolCalled) -> None:
        failed = {} if called.failure is None else {"error.type": called.failure.code}
        if isinstance(called, ToolCalled):
            labels = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": called.call.name}
            seconds.record(called.end - called.begin, labels | failed)
            return
        reply = called.reply
        model = (reply.model if reply is not None else called.request.model) or "default"
        labels = {"gen_ai.operation.name": "chat", "gen_ai.response.model": model}
        seconds.record(called.end - called.begin, labels | failed)
        if reply is not None:
            tokens.record(reply.usage.input_tokens, labels | {"gen_ai.token.type": "input"})
            tokens.record(reply.usage.output_tokens, labels | {"gen_ai.token.type": "output"})

    return app.services.calls.listen(observe)
