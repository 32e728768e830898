"""HTTP nodes: one request. Its secrets are put in where the document has them, and only for the moment it leaves."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import cast

from pointsman.engine.commands import Execute
from pointsman.engine.kinds import WorkSpec
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.errors import EngineBug, PointsmanError
from pointsman.executors.failures import failure_of, work_failed
from pointsman.executors.secrets import hiding, revealed
from pointsman.ports import Run, Secrets
from pointsman.tools.outgoing.calls import Outgoing
from pointsman.tools.web.answers import ResponseType, failure_of_call, failure_of_status, result_of, without
from pointsman.tools.web.requests import request_of
from pointsman.values import JsonObject


class HttpExecutor:
    """Input: {"config": the node's config, filled in}. Result: {status, headers, data, ok}."""

    def __init__(self, outgoing: Outgoing, secrets: Secrets) -> None:
        self._outgoing = outgoing
        self._secrets = secrets

    async def execute(self, command: Execute, spec: WorkSpec, run: Run) -> WorkDone | WorkFailed:
        config = command.input.get("config")
        if not isinstance(config, dict):
            raise EngineBug(f"an http step was given {command.input!r}")
        try:
            described, used = await revealed(config, spec.secrets, spec.config, self._secrets)
            call = request_of(described, key=_key(command, run))
        except PointsmanError as why:
            return work_failed(command, failure_of(why))
        hidden = [*used, *_pairs(described)]
        try:
            answer = without(await self._outgoing.send(call), hidden)
            result = result_of(answer, cast("ResponseType | None", config.get("responseType")))
        except PointsmanError as why:
            return work_failed(command, hiding(failure_of_call(call, why), hidden))
        failure = failure_of_status(call, answer)
        if failure is not None and config.get("failOnError") is not False:
            return work_failed(command, hiding(failure, hidden))
        return WorkDone(step=command.step, attempt=command.attempt, result=result)


def _pairs(described: JsonObject) -> list[str]:
    """Credentials as they look on the wire."""
    auth = described.get("auth")
    if not isinstance(auth, dict) or auth.get("type") != "basic":
        return []
    return [base64.b64encode(f"{auth.get('username')}:{auth.get('password')}".encode()).decode()]


def _key(command: Execute, run: Run) -> str:
    """The same for all attempts of a step: one that came through unheard must not be done twice."""
    return sha256(f"{run.execution}:{command.step}".encode()).hexdigest()[:32]
