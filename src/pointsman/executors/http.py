"""HTTP nodes: one request. Its secrets are put in where the document has them, and only for the moment it leaves."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from copy import deepcopy
from hashlib import sha256
from typing import cast

from msgspec.structs import replace

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.kinds import WorkSpec
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.errors import EngineBug, PointsmanError
from pointsman.executors.failures import WorkRefused, failure_of, work_failed
from pointsman.ports import Run, Secrets
from pointsman.tools.outgoing.calls import Outgoing
from pointsman.tools.web.answers import ResponseType, failure_of_call, failure_of_status, result_of, without
from pointsman.tools.web.requests import request_of
from pointsman.values import Json, JsonObject


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
            described, used = self._revealed(config, spec)
            call = request_of(described, key=_key(command, run))
        except PointsmanError as why:
            return work_failed(command, failure_of(why))
        hidden = [*used, *_pairs(described)]
        try:
            answer = without(await self._outgoing.send(call), hidden)
            result = result_of(answer, cast("ResponseType | None", config.get("responseType")))
        except PointsmanError as why:
            return work_failed(command, _hiding(failure_of_call(call, why), hidden))
        failure = failure_of_status(call, answer)
        if failure is not None and config.get("failOnError") is not False:
            return work_failed(command, _hiding(failure, hidden))
        return WorkDone(step=command.step, attempt=command.attempt, result=result)

    def _revealed(self, config: JsonObject, spec: WorkSpec) -> tuple[JsonObject, list[str]]:
        """The config with its secrets, and those. Only where the document has a handle: data that look like one are
        data."""
        used: list[str] = []

        def secret(name: str) -> str:
            value = self._secrets.secret(name)
            if value is None:
                hint = f"Set POINTSMAN_SECRET_{name}, or put it under [secrets] in pointsman.toml."
                raise WorkRefused(Failure(code="secret-missing", message=f"there is no secret {name!r}", hint=hint))
            used.append(value)
            return value

        found = deepcopy(config) if spec.secrets else config
        for text in spec.secrets:
            _put(found, text.pointer, text.revealed(secret))
        return found, used


def _put(tree: Json, at: Sequence[str | int], text: str) -> None:
    *way, last = at
    for part in way:
        tree = cast("dict[str | int, Json]", tree)[part]
    cast("dict[str | int, Json]", tree)[last] = text


def _pairs(described: JsonObject) -> list[str]:
    """Credentials as they look on the wire."""
    auth = described.get("auth")
    if not isinstance(auth, dict) or auth.get("type") != "basic":
        return []
    return [base64.b64encode(f"{auth.get('username')}:{auth.get('password')}".encode()).decode()]


def _hiding(failure: Failure, hidden: list[str]) -> Failure:
    message = failure.message
    for secret in hidden:
        message = message.replace(secret, "***") if secret else message
    return replace(failure, message=message)


def _key(command: Execute, run: Run) -> str:
    """The same for all attempts of a step: one that came through unheard must not be done twice."""
    return sha256(f"{run.execution}:{command.step}".encode()).hexdigest()[:32]
