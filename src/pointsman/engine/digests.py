"""Digests identify what a gate shows, so that an answer can name what the person saw.

A digest covers the message in all languages, the options, the form, the displayed data, the present values of editable
fields, and the names and arguments of tool calls. Two gates with one digest show the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, TypeAlias

import msgspec

from pointsman.engine.actions import CallVerdict, ProposedCall
from pointsman.engine.events.waits import GateChanged, GateOpened
from pointsman.engine.state import StepState
from pointsman.values import Json, JsonObject, Path

DIGEST_BYTES: Final = 16

SHORT_CHARS: Final = 8
"""Minimum length of an abbreviated digest that people may type."""

Question: TypeAlias = GateOpened | GateChanged


def values_at(at: StepState, editable: Sequence[Path]) -> tuple[Json, ...]:
    """Return the present values of the editable fields. They are marked as shared: writes copy from now on."""
    if not editable:
        return ()
    at.scope.data.shared()
    return tuple(at.scope.data.at(path) for path in editable)


def digest_of(question: Question, values: Sequence[Json], work: Json = None) -> str:
    """Return the digest of a gate. `values`: of its editable fields; `work`: the work of its step."""
    editable: list[Json] = [[[*path], value] for path, value in zip(question.editable, values, strict=True)]
    calls = question.calls if isinstance(question, GateOpened) else ()
    return _hashed(
        [
            question.message,
            {**question.messages},
            [*question.options],
            question.form,
            question.shown,
            editable,
            [_call(call) for call in calls],
            work,
        ]
    )


def digest_of_call(name: str, arguments: Json) -> str:
    """Return the digest of a tool call: a person's consent is to exactly this call."""
    return _hashed([name, arguments])


def names(text: str, digest: str) -> bool:
    """Return whether a given digest, possibly abbreviated, identifies this one."""
    return len(text) >= SHORT_CHARS and digest.startswith(text)


def is_about(verdict: CallVerdict, name: str, arguments: JsonObject) -> bool:
    """Return whether a verdict is about exactly this call.

    A repeated attempt may propose another call under the same number: also a call of another tool, with the arguments
    that a person substituted. Verdicts of older journals do not name their call.
    """
    if verdict.tool and verdict.tool != name:
        return False
    if not verdict.of or verdict.of == digest_of_call(name, arguments):
        return True
    return verdict.arguments is not None and is_same(verdict.arguments, arguments)


def _call(call: ProposedCall) -> Json:
    return [call.number, call.name, call.arguments]


def _hashed(value: list[Json]) -> str:
    return blake2b(msgspec.json.encode(value, order="sorted"), digest_size=DIGEST_BYTES).hexdigest()


def is_same(first: Json, other: Json) -> bool:
    """Return whether two values are equal in JSON: 1, 1.0 and true differ. Identical objects are not compared in
    depth.
    """
    pending: list[tuple[Json, Json]] = [(first, other)]
    while pending:
        left, right = pending.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pending += [(left[key], right[key]) for key in left]
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pending += zip(left, right, strict=True)
        elif left != right:
            return False
    return True
