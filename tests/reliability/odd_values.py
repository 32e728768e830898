"""Values at the limits of JSON, and very large ones: each is read back exactly, or is refused with a code.

Every value takes the whole path: from a tool into the state and the store, and back in another process.
"""

from __future__ import annotations

import asyncio
import tempfile
from typing import Final

from pointsman import Pointsman, Workflow
from pointsman.errors import PointsmanError
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from tests.reliability.findings import Finding

MEGABYTE: Final = 1_000_000
LEVELS: Final = 64


def nested(levels: int) -> Json:
    value: Json = "deep"
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


VALUES: Final[dict[str, Json]] = {
    "30-digit integer": 10**29 + 7,
    "negative 30-digit integer": -(10**29) - 7,
    "integer beyond a double": 2**63 + 1,
    "smallest double": 5e-324,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "lone surrogate": "\ud800",
    "lone surrogate as a key": {"\udfff": 1},
    "NUL": "a\u0000b",
    "astral": "🌍" * 100,
    "64 levels": nested(LEVELS),
    "5000 levels": nested(5_000),
    "empty": [{}, [], "", None],
    "key that is empty": {"": {"": 1}},
    "one megabyte": "x" * MEGABYTE,
}

DOCUMENT: Final[JsonObject] = {
    "id": "odd",
    "nodes": [
        {"id": "bring", "type": "tool", "config": {"tool": "bring"}, "outputs": {"kept": "result"}},
        {"id": "pass", "type": "transform", "config": {"set": {"again": "kept"}}},
    ],
    "edges": [{"source": "bring", "target": "pass"}],
    "output": {"kept": "kept", "again": "again"},
}


async def through(store: str, value: Json) -> tuple[str, Json]:
    """Return the status, and the value as another app reads it. A refusal has the status `refused CODE`."""

    async def bring() -> object:
        """Return the value."""
        return value

    bringing = tool(output_bytes_max=200 * MEGABYTE)(bring)
    try:
        async with Pointsman(store, tools=[bringing], model="scripted") as pointsman:
            execution = await pointsman.start(Workflow.of(DOCUMENT), {})
            await execution.settled()
            name = execution.id
        async with Pointsman(store, model="scripted") as pointsman:
            state, _ = await pointsman.state_and_events(name)
    except PointsmanError as why:
        return f"refused {why.code}", None
    if state.outcome.failure is not None:
        return f"refused {state.outcome.failure.code}", None
    return state.status, state.outcome.output


def wrong_with(name: str, value: Json, status: str, output: Json) -> str | None:
    if status.startswith("refused "):
        return None if len(status) > len("refused ") else f"{name}: refused without a code"
    if status != "completed":
        return f"{name}: {status}"
    if output != {"kept": value, "again": value} or type_of(output) != type_of({"kept": value, "again": value}):
        return f"{name}: came back as something else"
    return None


def type_of(value: Json) -> str:
    """Return the types of all parts, because 1 is not 1.0."""
    return repr(value)[:10_000]


async def pass_all(store: str) -> tuple[list[str], int]:
    violations, refused = list[str](), 0
    for number, (name, value) in enumerate(VALUES.items()):
        status, output = await through(f"{store}-{number}", value)
        refused += status.startswith("refused ")
        wrong = wrong_with(name, value, status, output)
        violations += [wrong] if wrong else []
    return violations, refused


def examine(size: int, seed: int) -> Finding:
    """Test every value on SQLite."""
    with tempfile.TemporaryDirectory() as name:
        violations, refused = asyncio.run(pass_all(f"sqlite:///{name}/store"))
    exact = len(VALUES) - refused - len(violations)
    return Finding(f"{exact} exact, {refused} refused by name, {len(violations)} wrong", tuple(violations))
