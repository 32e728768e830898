"""The registry of tools: lookup by name, checked arguments, limits of time and size."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import date
from importlib.metadata import EntryPoint
from typing import Annotated, Any

import pytest
from pydantic import Field

from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.store.errors import StoreUnreachable
from pointsman.tools import registry as registry_module
from pointsman.tools.functions import tool
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.scripted import canned_tools
from pointsman.tools.tool import Origin, Tool, ToolContext, ToolFailed, ToolInvalid, ToolNameTaken, ToolNotLoaded
from pointsman.values import Json, JsonObject
from pointsman.workflows.tools import calculator


@dataclass
class Hit:
    title: str
    on: date


@tool
async def web_search(query: str, limit: Annotated[int, Field(ge=1, description="Most hits.")] = 5) -> list[Hit]:
    """Search the web."""
    return [Hit(query, date(2026, 1, 2))] * min(limit, 2)


@tool(idempotent=True)
def when(day: date, idempotency_key: str, context: ToolContext) -> str:
    """Return a day."""
    return (
        f"{day:%d.%m.%Y} {idempotency_key} {context.execution} {threading.current_thread() is threading.main_thread()}"
    )


@tool(timeout_s=0)
async def endless() -> None:
    """Never answer."""
    await asyncio.Event().wait()


@tool(output_bytes_max=10)
async def talkative() -> str:
    """Return too much."""
    return "x" * 20


@tool
async def broken() -> None:
    """Raise."""
    raise KeyError("lost")


@tool
async def times_out_inside() -> None:
    """Raise its own timeout."""
    raise TimeoutError("upstream")


@tool
async def picky() -> None:
    """Raise a specific failure."""
    raise ToolFailed(Failure(code="quota-spent", message="no more today", retryable=False))


@tool
async def odd() -> Any:
    """Return a value that is not JSON."""
    return threading.Lock()


@tool
async def infinite() -> list[float | None]:
    """Return a number that JSON does not have."""
    return [None, float("inf")]


REGISTRY = ToolRegistry(
    [web_search, when, endless, talkative, broken, times_out_inside, picky, odd, infinite, calculator], plugins=False
)


async def call(name: str, arguments: JsonObject | None = None, registry: ToolRegistry = REGISTRY) -> Json:
    return await registry.call(ToolCall(id="c1", name=name, arguments=arguments or {}), key="k1")


async def failure(name: str, arguments: JsonObject | None = None, registry: ToolRegistry = REGISTRY) -> Failure:
    with pytest.raises(ToolFailed) as caught:
        await call(name, arguments, registry)
    return caught.value.failure


def test_the_signature_and_the_docstring_become_the_schema() -> None:
    spec = REGISTRY.find("web_search")
    assert spec is not None
    assert (spec.description, spec.side, spec.idempotent) == ("Search the web.", "server", False)
    assert spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["query"],
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "default": 5, "description": "Most hits."},
        },
    }


def test_parameters_filled_by_the_engine_are_hidden_from_models() -> None:
    spec = REGISTRY.find("when")
    assert spec is not None
    assert spec.parameters["properties"] == {"day": {"type": "string", "format": "date"}}


async def test_results_of_any_type_become_json() -> None:
    assert await call("web_search", {"query": "port", "limit": 1}) == [{"title": "port", "on": "2026-01-02"}]


async def test_a_plain_function_runs_in_a_thread_with_typed_arguments_and_its_key() -> None:
    assert await call("when", {"day": "2026-11-21"}) == "21.11.2026 k1  False"


async def test_a_decorated_tool_stays_a_function() -> None:
    assert await web_search("port", limit=1) == [Hit("port", date(2026, 1, 2))]
    assert web_search.__doc__ == "Search the web."


@pytest.mark.parametrize(
    ("name", "arguments", "code", "retryable", "says"),
    [
        ("web_search", {}, "tool-arguments", False, '"query" is a required property'),
        ("web_search", {"query": "a", "limit": 0}, "tool-arguments", False, "at limit: 0 is less than"),
        ("web_search", {"query": "a", "lmit": 1}, "tool-arguments", False, "'lmit' was unexpected"),
        ("when", {"day": "tomorrow"}, "tool-arguments", False, "day"),
        ("websearch", {}, "unknown-tool", False, "no tool named 'websearch'"),
        ("endless", {}, "tool-timeout", True, "within 0 s"),
        ("talkative", {}, "tool-output-too-large", False, "22 bytes; the maximum is 10"),
        ("broken", {}, "tool-failed", True, "KeyError: 'lost'"),
        ("times_out_inside", {}, "tool-failed", True, "TimeoutError: upstream"),
        ("picky", {}, "quota-spent", False, "no more today"),
        ("odd", {}, "tool-failed", False, "not JSON"),
        ("infinite", {}, "tool-failed", False, "not JSON"),
        ("calculator", {"expression": "1 +"}, "tool-arguments", False, ""),
        ("calculator", {"expression": "1 / 0"}, "tool-arguments", False, ""),
    ],
)
@pytest.mark.requirement("S1-106")
async def test_every_failure_has_a_code_and_a_retry_flag(
    name: str, arguments: JsonObject, code: str, retryable: bool, says: str
) -> None:
    found = await failure(name, arguments)
    assert (found.code, found.retryable) == (code, retryable)
    assert says in found.message


async def test_cancelling_a_call_cancels_the_tool() -> None:
    waiting, stopped = asyncio.Event(), asyncio.Event()

    @tool(name="waits")
    async def waits() -> None:
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            stopped.set()

    task = asyncio.create_task(call("waits", registry=ToolRegistry([waits], plugins=False)))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


@pytest.mark.parametrize(
    ("expression", "value"), [("(3 + 4) * 2.5", 17.5), ("round(10 / 3, 2)", 3.33), ("max([1, 7, 3])", 7)]
)
async def test_the_calculator_calculates(expression: str, value: float) -> None:
    assert await call("calculator", {"expression": expression}) == value


@pytest.mark.parametrize("name", ["router", "end", "final_result"])
@pytest.mark.requirement("T0-4")
def test_reserved_tool_names_are_refused(name: str) -> None:
    with pytest.raises(ToolInvalid):
        tool(name=name)(lambda: None)
    with pytest.raises(ToolInvalid):
        ToolRegistry(canned_tools({name: {"result": 1}}))


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolNameTaken):
        ToolRegistry([web_search, web_search])


def test_parameters_that_cannot_be_described_are_refused() -> None:
    def nameless(*words: str) -> None: ...
    def locked(lock: threading.Lock) -> None: ...

    for misdefined in (tool(nameless), tool(locked)):
        with pytest.raises(ToolInvalid):
            _ = misdefined.spec


async def test_scripted_tools_answer_by_arguments_and_count_and_are_marked() -> None:
    search: JsonObject = {
        "description": "Search.",
        "results": [
            {"when": {"query": "port"}, "result": ["harbour"], "times": 1},
            {"contains": "strike", "fail": {"code": "index-down", "message": "down", "retryable": True}},
            {"when": {"query": "port"}, "result": []},
        ],
    }
    registry = ToolRegistry(plugins=False)
    for canned in canned_tools({"search": search, "weather": {"result": "sunny"}, "down": {"fail": "it is down"}}):
        registry.add(canned, origin="scripted")
    assert [await call("search", {"query": "port"}, registry) for _ in range(2)] == [["harbour"], []]
    assert await call("weather", {"anything": 1}, registry) == "sunny"
    assert await failure("search", {"query": "strike"}, registry) == Failure(
        code="index-down", message="down", retryable=True
    )
    assert (await failure("search", {"query": "x"}, registry)).code == "tool-not-scripted"
    assert (await failure("down", {}, registry)).message == "it is down"
    assert registry.origin("search") == "scripted"


async def test_tools_of_installed_packages_are_loaded_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def announced(**_: str) -> list[EntryPoint]:
        return [
            EntryPoint("calculator", "pointsman.workflows.tools:calculator", "pointsman.tools"),
            EntryPoint("gone", "no_such_package:tool", "pointsman.tools"),
            EntryPoint("several", "pointsman.tools.tool:RESERVED", "pointsman.tools"),
        ]

    monkeypatch.setattr(registry_module, "entry_points", announced)
    registry = ToolRegistry()
    assert registry.names() == ("calculator", "gone", "several")
    assert await call("calculator", {"expression": "2 * 3"}, registry) == 6
    assert registry.origin("calculator") == "plugin"
    with pytest.raises(ToolNotLoaded, match="'gone'"):
        registry.find("gone")
    with pytest.raises(ToolNotLoaded, match="RESERVED' cannot be a tool: a 'frozenset' object is not a tool"):
        registry.find("several")


def test_functions_are_tools() -> None:
    tools: list[Tool] = [web_search, calculator]
    assert [each.name for each in tools] == ["web_search", "calculator"]


async def test_a_store_outage_does_not_fail_the_tool() -> None:
    @tool
    async def reads() -> None:
        """Read the store."""
        raise StoreUnreachable("the server is away")

    with pytest.raises(StoreUnreachable):
        await call("reads", registry=ToolRegistry([reads], plugins=False))


class Listing:
    """A source whose tools are listed each time."""

    origin: Origin = "workflow"
    lasts = False

    def __init__(self, prefix: str, *names: str) -> None:
        self.prefix = prefix
        self.names = [*names]

    async def listed(self) -> list[Tool]:
        return [*canned_tools({name: {"result": name} for name in self.names})]

    def stand_in(self, name: str) -> Tool | None:
        return None

    def retire(self) -> None:
        """Nothing: there is no connection."""

    async def close(self) -> None:
        """Nothing: there is no connection."""


async def test_listing_a_source_again_removes_only_the_tools_of_that_source() -> None:
    (own,) = canned_tools({"a__own": {"result": 1}})
    tools = ToolRegistry(plugins=False)
    tools.add(own, origin="workflow")
    first, second = Listing("a__", "a__x", "a__y"), Listing("b__", "b__x")
    tools.add_source(first)
    tools.add_source(second)
    await tools.prepare_all()
    first.names = ["a__y", "a__z"]
    await tools.prepare(["a__z"])
    assert {"a__own", "a__y", "a__z", "b__x"} <= {*tools.names()}
    assert "a__x" not in tools.names()
