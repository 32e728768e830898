"""JSON Schema of scripts, for validation and for completion in editors."""

from __future__ import annotations

from typing import Final

from pointsman.values import JsonObject

_TEXT: Final[JsonObject] = {"type": "string"}
_POSITIVE: Final[JsonObject] = {"type": "integer", "minimum": 1}
_DURATION: Final[JsonObject] = {"type": ["string", "number"]}
_OBJECT: Final[JsonObject] = {"type": "object"}

_CALL: Final[JsonObject] = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": _TEXT, "arguments": _OBJECT},
}
_STATUS: Final[JsonObject] = {"type": "integer", "minimum": 400, "maximum": 599}
_BREAK: Final[JsonObject] = {"enum": ["timeout", "connection"]}
_FAIL: Final[JsonObject] = {
    "oneOf": [
        _STATUS,
        _BREAK,
        {
            "type": "object",
            "required": ["status"],
            "additionalProperties": False,
            "properties": {
                "status": {"oneOf": [_STATUS, _BREAK]},
                "retryAfter": _DURATION,
                "message": _TEXT,
            },
        },
    ]
}
_USAGE: Final[JsonObject] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"inputTokens": {"type": "integer", "minimum": 0}, "outputTokens": {"type": "integer", "minimum": 0}},
}
_ANSWER_KEYS: Final[JsonObject] = {
    "text": _TEXT,
    "json": {},
    "toolCalls": {"type": "array", "items": _CALL},
    "next": _TEXT,
    "end": {"type": "boolean"},
    "fail": _FAIL,
    "delay": _DURATION,
    "tokenDelay": _DURATION,
    "usage": _USAGE,
}
_WHEN_KEYS: Final[JsonObject] = {
    "node": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    "agent": _TEXT,
    "purpose": _TEXT,
    "visit": _POSITIVE,
    "round": _POSITIVE,
    "call": _POSITIVE,
    "attempt": _POSITIVE,
    "branch": {"type": "integer", "minimum": 0},
    "item": {"type": ["string", "number"]},
    "contains": _TEXT,
    "matches": _TEXT,
    "times": _POSITIVE,
}
_CANNED_KEYS: Final[JsonObject] = {
    "when": _OBJECT,
    "contains": _TEXT,
    "times": _POSITIVE,
    "result": {},
    "fail": {
        "oneOf": [
            _TEXT,
            {
                "type": "object",
                "required": ["message"],
                "additionalProperties": False,
                "properties": {"code": _TEXT, "message": _TEXT, "retryable": {"type": "boolean"}},
            },
        ]
    },
}
SCRIPT_SCHEMA: Final[JsonObject] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Script of the scripted model",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    **_WHEN_KEYS,
                    **_ANSWER_KEYS,
                    "answers": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "object", "additionalProperties": False, "properties": _ANSWER_KEYS},
                    },
                },
            },
        },
        "tools": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "description": _TEXT,
                    "parameters": _OBJECT,
                    "requiresApproval": {"type": "boolean"},
                    **_CANNED_KEYS,
                    "results": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "object", "additionalProperties": False, "properties": _CANNED_KEYS},
                    },
                },
            },
        },
    },
}
