"""HTTP nodes: one request. Secrets are inserted where the document names them, only while the request is sent."""

from __future__ import annotations

from hashlib import sha256
from typing import cast

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.errors import EngineBug, PointsmanError
from pointsman.executors.failures import failure_of, work_failed
from pointsman.executors.secrets import Masks, Revealed, revealed
from pointsman.ports import ExecutionPort, Secrets
from pointsman.redaction import hiding
from pointsman.tools.egress.http_calls import HttpCall, Outgoing
from pointsman.tools.http.messages import ResponseType, failure_of_call, failure_of_status, request_of, result_of
from pointsman.values import Json


class HttpExecutor:
    """Input: {"config": the node's config, evaluated}. Result: {status, headers, data, ok}."""

    def __init__(self, outgoing: Outgoing, secrets: Secrets) -> None:
        self._outgoing = outgoing
        self._secrets = secrets

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        config = command.input.get("config")
        if not isinstance(config, dict):
            raise EngineBug(f"an http step was given {command.input!r}")
        try:
            with run.waiting_for_store():
                revealed_config = await revealed(
                    config, spec.secrets, spec.config, self._secrets, revision=run.revision
                )
        except PointsmanError as why:
            return work_failed(command, failure_of(why))
        masks = revealed_config.masks(self._secrets)
        try:
            # Messages show the address as in the document: a truncated address could reveal a piece of a secret.
            call = request_of(revealed_config.value, key=_key(command, run), said=str(config.get("url")))
        except PointsmanError as why:
            return work_failed(command, masks.failure(failure_of(why)))
        with hiding(*masks):
            return await self._sent(command, call, revealed_config, masks)

    async def _sent(
        self, command: Execute, call: HttpCall, revealed_config: Revealed, masks: Masks
    ) -> WorkDone | WorkFailed:
        """Send the call and report its answer."""
        config = revealed_config.value
        try:
            answer = await self._outgoing.send(call, revealed_config.guards)
            result: Json = result_of(answer, cast("ResponseType | None", config.get("responseType")), masks.data)
        except PointsmanError as why:
            return work_failed(command, masks.failure(failure_of_call(call, why)))
        failure = failure_of_status(call, answer, masks.data)
        if failure is not None and config.get("failOnError") is not False:
            return work_failed(command, masks.failure(failure))
        return WorkDone(step=command.step, attempt=command.attempt, result=masks.json(result))


def _key(command: Execute, run: ExecutionPort) -> str:
    """Return the idempotency key, equal for all attempts of a step: a request whose answer was lost must not be
    repeated."""
    return sha256(f"{run.execution}:{command.step}".encode()).hexdigest()[:32]
