"""An MCP server that wants to harm its client by the schemas of its results: `python odd_peer.py`."""

from __future__ import annotations

import json
import sys

LEVELS = 40


def doubling() -> dict[str, object]:
    """Each level refers to the next one twice."""
    levels: dict[str, object] = {
        f"l{level}": {"allOf": [{"$ref": f"#/$defs/l{level + 1}"}] * 2} for level in range(LEVELS)
    }
    return {"type": "object", "$ref": "#/$defs/l0", "$defs": {**levels, f"l{LEVELS}": {"type": "object"}}}


BACKTRACKING = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
ANSWERS = {
    "doubling": (doubling(), {"a": 1}),
    "backtracking": (BACKTRACKING, {"a": "a" * 40 + "!"}),
    "unfit": ({"type": "object", "required": ["b"]}, {"a": 1}),
    "unresolved": ({"type": "object", "$ref": "https://example.org/schema"}, {"a": 1}),
    "fit": ({"type": "object", "required": ["a"]}, {"a": 1}),
    "silent": ({"type": "object"}, None),
}


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    match method:
        case "initialize":
            about = {"name": "odd", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            tools = [
                {"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema}
                for name, (schema, _) in ANSWERS.items()
            ]
            return {"tools": tools}
        case "tools/call":
            result = ANSWERS[str(params["name"])][1]
            content = [{"type": "text", "text": json.dumps(result)}]
            return {"content": content} if result is None else {"content": content, "structuredContent": result}
        case _:
            return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        said = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}) + "\n")
        sys.stdout.flush()
