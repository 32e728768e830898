"""Structured output: asks a model for JSON that fits a schema, and corrects it at most twice."""

from __future__ import annotations

import msgspec

from pointsman.executors.effect_ledger import Ledger
from pointsman.executors.failures import WorkRefused
from pointsman.executors.model_answers import REASKS_MAX, Expected, Wrong
from pointsman.models.transcript import assistant_message, user_message
from pointsman.ports import ModelRequest
from pointsman.values import Json, JsonObject


async def ask_for_json(ledger: Ledger, request: ModelRequest, schema: JsonObject) -> JsonObject:
    """Return the answer to a question whose schema is an object. Raises `WorkRefused`, `ModelFailed`."""
    expected = Expected(schema, "json")
    messages: list[Json] = [*request.messages]
    reasks = 0
    while True:
        asked = msgspec.structs.replace(request, messages=messages, output_schema=schema)
        reply = await ledger.ask(asked)
        read = expected.read(reply.text)
        if not isinstance(read, Wrong):
            assert isinstance(read.value, dict)  # guaranteed by the schema
            return read.value
        if reasks >= REASKS_MAX:
            raise WorkRefused(expected.given_up(read, reply.text))
        reasks += 1
        if reply.text:
            messages.append(assistant_message(reply, name="", calls=()))
        messages.append(user_message(read))
