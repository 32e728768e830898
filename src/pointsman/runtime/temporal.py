"""Executions placed by Temporal: one small workflow for each execution, and workers that drive.

    front   wake ─▶ signal-with-start ─▶ workflow EXECUTION: due? ─▶ activity `drive` on a worker ─▶ due again, or ended
                                             ▲        └─ durable timer                                     │
                                             └─────────────────────────────────────────────────────────────┘

The workflow knows when to drive its execution, and nothing else. It ends when no time is known: the next wake-up
starts it again. Payloads are execution ids and seconds; every value of the user stays in the store. Times are relative:
the clocks of the store, the workers and Temporal may differ.

Several stores may share a namespace: each has a task queue of its own, and the ids of its workflows begin with its
identity.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Final, Self

from temporalio import activity, workflow
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.common import Priority, RetryPolicy
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import ApplicationError
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from pointsman.errors import PointsmanError
from pointsman.runtime.dispatched import Drive, EngineUnreachable
from pointsman.values import ExecutionId

QUEUE: Final = "pointsman"
"""Begins the names of the task queues, which workflows and `drive` of a store share."""
BEAT_S: Final = 3.0
LOST_S: Final = 12.0
"""A worker without a heartbeat for this long is lost, as an owner without a beat is in the store."""
RPC: Final = timedelta(seconds=5)
DRIVE_MAX: Final = timedelta(days=3650)
"""Temporal requires a bound; an execution may work for as long as its own limits allow."""
RETRIES: Final = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2, maximum_interval=timedelta(seconds=30)
)
"""Without a maximum of attempts: `drive` fails only while the store cannot be used, or with its worker."""


@workflow.defn(name="pointsman-execution")
class ExecutionWorkflow:
    """Drives one execution, which the id of the workflow names, whenever it is due."""

    def __init__(self) -> None:
        self._due: float | None = None

    @workflow.signal(name="wake")
    def wake(self, after_s: float) -> None:
        """Drive the execution after so many seconds, or earlier if it is due earlier."""
        due = workflow.time() + after_s
        self._due = due if self._due is None else min(due, self._due)

    @workflow.run
    async def run(self, after_s: float) -> None:
        self.wake(after_s)
        while self._due is not None:
            await self._until_due()
            self._due = None
            again_s: float | None = await workflow.execute_activity(
                "drive",
                start_to_close_timeout=DRIVE_MAX,
                heartbeat_timeout=timedelta(seconds=LOST_S),
                retry_policy=RETRIES,
                result_type=float | None,  # pyright: ignore[reportArgumentType] - a union is a type hint like any other
            )
            if again_s is not None:
                self.wake(again_s)
            if self._due is not None and workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(max(0.0, self._due - workflow.time()))

    async def _until_due(self) -> None:
        while (due := self._due) is not None and (left_s := due - workflow.time()) > 0:
            with suppress(TimeoutError):
                await workflow.wait_condition(lambda due=due: self._due != due, timeout=left_s)


class TemporalEngine:
    """Temporal as an engine; implements `Engine`."""

    def __init__(self, client: Client, store: str) -> None:
        self._client = client
        self._store = store
        self._queue = f"{QUEUE}-{store}"

    @classmethod
    async def connect(cls, host: str, namespace: str, store: str) -> Self:
        """Connect to a namespace, for a store. Certificates and keys are read from the variables TEMPORAL_* of the
        environment.

        Raises `EngineUnreachable`.
        """
        known = ClientConfig.load_client_connect_config(disable_file=True)
        known["target_host"], known["namespace"] = host, namespace
        try:
            client = await Client.connect(**known, runtime=_runtime())
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace), timeout=RPC)
        except (RPCError, RuntimeError) as why:
            raise _unavailable(host, namespace, why) from None
        return cls(client, store)

    async def wake(self, execution: ExecutionId, due: float, share: str) -> None:
        after_s = max(0.0, due - time.time())
        try:
            await self._client.start_workflow(
                "pointsman-execution",
                after_s,
                id=f"{self._store}-{execution}",
                task_queue=self._queue,
                start_signal="wake",
                start_signal_args=[after_s],
                priority=Priority(fairness_key=share),
                rpc_timeout=RPC,
            )
        except RPCError as why:
            host = self._client.service_client.config.target_host
            raise _unavailable(host, self._client.namespace, why) from None

    async def work(self, drive: Drive, *, executions: int, stopping: asyncio.Event) -> None:
        @activity.defn(name="drive")
        async def drive_one() -> float | None:
            execution = ExecutionId((activity.info().workflow_id or "").removeprefix(f"{self._store}-"))
            beats = asyncio.create_task(_beat())
            try:
                due = await drive(execution)
            except PointsmanError as why:
                raise ApplicationError(why.code, type=why.code) from None  # The message may quote values of users.
            finally:
                beats.cancel()
            return None if due is None else max(0.0, due - time.time())

        worker = Worker(
            self._client,
            task_queue=self._queue,
            workflows=[ExecutionWorkflow],
            activities=[drive_one],
            workflow_runner=UnsandboxedWorkflowRunner(),  # It is deterministic; the sandbox would import all again.
            max_concurrent_activities=executions,
            graceful_shutdown_timeout=timedelta(days=1),  # The caller ends the running calls.
        )
        async with worker:
            await stopping.wait()

    async def close(self) -> None:
        """Do nothing: the client closes with its last reference."""


@cache
def _runtime() -> Runtime:
    """Return the client's threads for this process. Outages are reported by Pointsman, not once for each call."""
    logging = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    return Runtime(telemetry=TelemetryConfig(logging=logging))


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT_S)


def _unavailable(host: str, namespace: str, why: RPCError | RuntimeError) -> EngineUnreachable:
    if isinstance(why, RPCError) and why.status is RPCStatusCode.NOT_FOUND:
        return EngineUnreachable(
            f"the Temporal server at {host} has no namespace {namespace!r}",
            hint=f"Create it: temporal operator namespace create {namespace} --address {host}",
        )
    return EngineUnreachable(
        f"no Temporal server can be used at {host}: {why}",
        hint="Start it (`temporal server start-dev`), or correct the address (--runtime, `runtime` in the settings).",
    )
