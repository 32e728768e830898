"""Wrong arguments of the public methods: an error that names the argument, and none from inside the package.

The methods are found by introspection, so that a new one is tested as soon as it exists.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast

import httpx2
import pytest

from pointsman import Client, Execution, Gate, Pointsman, PointsmanError, Workflow, tool
from pointsman.arguments import CallInvalid
from pointsman.auth.callers import LOCAL
from pointsman.client.executions import RemoteExecution
from pointsman.context import AppNotOpen
from pointsman.definition.problems import WorkflowInvalid
from pointsman.json_conversion import NotJson
from pointsman.session import Session
from pointsman.settings import Settings
from pointsman.sync import Client as SyncClient
from pointsman.sync import Pointsman as SyncPointsman
from pointsman.tools.tool import ToolInvalid
from pointsman.values import JsonObject
from pointsman.workflows.builder import NodeBuilder, WorkflowBuilder

GATE: Final[JsonObject] = {"id": "w", "nodes": [{"id": "a", "type": "human", "config": {"message": "?"}}], "edges": []}
INTERNAL: Final = (AttributeError, KeyError, TypeError, AssertionError, RecursionError, ValueError)
"""Errors that must not come from inside the package."""
EXCLUDED: Final = frozenset({"acting_as", "leading", "close"})
"""Methods for faces and for processes that execute, and the end of the object."""


class Odd:
    """Cannot be written as JSON."""


async def number() -> int:
    return 1


UNAWAITED: Final[list[Coroutine[Any, Any, int]]] = []
"""Coroutines that a test gave as wrong arguments."""


def unawaited() -> Coroutine[Any, Any, int]:
    UNAWAITED.append(number())
    return UNAWAITED[-1]


@pytest.fixture(autouse=True)
def coroutines_are_closed() -> Iterator[None]:
    """Close coroutines that cycles still refer to: otherwise a collection in a later test warns of them there."""
    yield
    for coroutine in UNAWAITED:
        coroutine.close()
    UNAWAITED.clear()


def cycle() -> list[object]:
    items: list[object] = []
    items.append(items)
    return items


WRONG: Final[dict[str, Callable[[], object]]] = {
    "None": lambda: None,
    "int": lambda: 7,
    "list": lambda: [1],
    "str": lambda: "text",
    "bytes": lambda: b"text",
    "class": lambda: Odd,
    "coroutine": unawaited,
    "object": Odd,
    "dict of objects": lambda: {"a": Odd()},
    "keys": lambda: {1: 2},
    "set of objects": lambda: {Odd()},
    "cycle": cycle,
}


def methods(cls: type[object]) -> list[str]:
    """Return the names of the public methods of a class that have parameters."""
    members = [(name, inspect.getattr_static(cls, name)) for name in dir(cls) if not name.startswith("_")]
    return [name for name, member in members if not isinstance(member, property) and callable(getattr(cls, name))]


def calls(method: Callable[..., object], make: Callable[[], object]) -> Iterator[Callable[[], object]]:
    """Yield calls with the wrong value: for all required parameters, and for each other one."""
    parameters = [one for one in inspect.signature(method).parameters.values() if one.name != "app"]
    required = [one for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    named = {one.name for one in parameters if one.default is one.empty and one.kind is one.KEYWORD_ONLY}
    several = [make()] if any(one.kind is one.VAR_POSITIONAL for one in parameters) else []
    if required or several or named:
        yield partial(method, *(make() for _ in required), *several, **{name: make() for name in named})
    for parameter in parameters:
        if parameter.default is not parameter.empty:
            yield partial(method, *("text" for _ in required), **{parameter.name: make()})


async def outcome(call: Callable[[], object]) -> None:
    """Perform a call to its end; errors of the package are expected."""
    with suppress(PointsmanError):
        result = call()
        if isinstance(result, Coroutine):
            await result
        elif isinstance(result, AsyncIterator):
            await anext(cast("AsyncIterator[object]", result), None)


OBJECTS: Final[dict[str, Callable[[Pointsman], object]]] = {
    "Pointsman": lambda app: app,
    "Storage": lambda app: app.storage,
    "Memories": lambda app: app.memory,
    "OneMemory": lambda app: app.memory.of("user", "ann", namespace="notes"),
    "Schedules": lambda app: app.triggers.schedules,
    "Events": lambda app: app.triggers.events,
    "Webhooks": lambda app: app.triggers.webhooks,
}


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", [*OBJECTS, "Execution"])
async def test_a_method_of_the_app_refuses_wrong_arguments(
    name: str, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "pointsman.executions")  # A class as a watcher raises at each event.
    async with Pointsman("memory:", settings=Settings()) as app:
        execution = await app.run(GATE)
        await app.save(Workflow.of(GATE))
        target = execution if name == "Execution" else OBJECTS[name](app)
        for method in methods(type(target)):
            if method in EXCLUDED:
                continue
            for call in calls(getattr(target, method), WRONG[wrong]):
                try:
                    await asyncio.wait_for(outcome(call), 60)
                except INTERNAL as why:
                    pytest.fail(f"{name}.{method} with {wrong}: {why!r}")


def is_refused(call: Callable[[], object]) -> bool:
    """Return whether a call is refused at once; a coroutine that it makes does not run."""
    try:
        made = call()
    except (CallInvalid, NotJson):
        return True
    if isinstance(made, Coroutine):
        made.close()
    return False


def odd_calls(method: Callable[..., object]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield a call without arguments, one with an unknown argument, and one for each way to pass objects."""
    parameters = [*inspect.signature(method).parameters.values()]
    required = [one for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    named = [one.name for one in parameters if one.default is one.empty and one.kind is one.KEYWORD_ONLY]
    if required or named:
        yield "nothing", method
    yield "an unknown argument", partial(method, *(Odd() for _ in required), nothing_of_this_name=1)
    several = [one for one in parameters if one.kind is one.VAR_POSITIONAL]
    if required or several:
        yield "objects", partial(method, *(Odd() for _ in [*required, *several]), **dict.fromkeys(named, "text"))
    for one in parameters:
        if one.name in named or one.default is not one.empty:
            options: dict[str, object] = {**dict.fromkeys(named, "text"), one.name: Odd()}
            yield one.name, partial(method, *("text" for _ in required), **options)


DOMAINS: Final = sorted(name for name, member in vars(Session).items() if isinstance(member, property))
FOR_FACES: Final = frozenset({"metrics: objects"})
"""Its argument is an object of the server, whose type is not imported with the verbs."""


@pytest.mark.parametrize("domain", [name for name in DOMAINS if name != "caller"])
async def test_a_verb_refuses_wrong_arguments_before_it_does_anything(domain: str) -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        verbs: object = getattr(app.acting_as(LOCAL), domain)
        found = {name: getattr(verbs, name) for name in vars(type(verbs)) if not name.startswith("_")}
        accepted = [
            f"{name}: {what}"
            for name, method in found.items()
            if inspect.signature(method).parameters
            for what, call in odd_calls(method)
            if not is_refused(call)
        ]
    assert {*accepted} <= FOR_FACES


async def test_the_error_of_a_verb_names_verb_and_argument() -> None:
    wrong: Any = 42
    async with Pointsman("memory:", settings=Settings()) as app:
        verbs = app.acting_as(LOCAL)
        with pytest.raises(CallInvalid, match=r"ExecutionVerbs\.start\(\): 'workflow' is an int; expected str"):
            await verbs.executions.start(wrong)
        assert await verbs.access.audit_entries() == ([], None)


def not_found(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(404, json={"type": "urn:pointsman:error:unknown-execution", "code": "unknown-execution"})


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("wrong", WRONG)
async def test_a_method_of_the_client_refuses_wrong_arguments(wrong: str) -> None:
    async with Client("http://server", transport=httpx2.MockTransport(not_found)) as client:
        for target in (client, client.execution("exec-1")):
            for method in methods(type(target)):
                if method in EXCLUDED:
                    continue
                for call in calls(getattr(target, method), WRONG[wrong]):
                    try:
                        await asyncio.wait_for(outcome(call), 60)
                    except INTERNAL as why:
                        pytest.fail(f"{type(target).__name__}.{method} with {wrong}: {why!r}")


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_method_without_await_refuses_wrong_arguments(wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "pointsman.executions")  # As above.
    client = SyncClient("http://server", transport=httpx2.MockTransport(not_found))
    with SyncPointsman("memory:", settings=Settings()) as app, client:
        execution, remote = app.run(GATE), client.execution("exec-1")
        kinds = {Pointsman: app, Execution: execution, Client: client, RemoteExecution: remote}
        for kind, target in kinds.items():
            for method in methods(kind):
                if method in EXCLUDED or method in getattr(type(target), "OMITTED", ()):
                    continue
                for call in calls(getattr(target, method), WRONG[wrong]):
                    try:
                        with suppress(PointsmanError):
                            made = call()
                            if isinstance(made, Iterator):
                                next(cast("Iterator[object]", made), None)
                    except INTERNAL as why:
                        pytest.fail(f"{kind.__name__}.{method} with {wrong}: {why!r}")


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("cls", [WorkflowBuilder, NodeBuilder])
def test_a_method_of_the_builder_refuses_wrong_arguments(cls: type[object], wrong: str) -> None:
    for method in methods(cls):
        options = builder_options(method) if cls is WorkflowBuilder else []
        for option in [None, *options]:
            workflow = Workflow.build("desk")
            target = workflow if cls is WorkflowBuilder else workflow.agent("first", prompt="Go.")
            function = getattr(target, method)
            type_of_node = ("text",) if method == "node" else ()
            try:
                with suppress(PointsmanError):
                    if option is not None:
                        function("a", *type_of_node, **{option: WRONG[wrong]()})
                    for call in calls(function, WRONG[wrong]) if option is None else ():
                        with suppress(PointsmanError):
                            call()
            except INTERNAL as why:
                pytest.fail(f"{method} {option} with {wrong}: {why!r}")


def builder_options(method: str) -> list[str]:
    """Return some options of a kind of nodes, and one that no kind has."""
    names = (
        "after",
        "name",
        "inputs",
        "outputs",
        "execution",
        "metadata",
        "tools",
        "tool",
        "options",
        "set",
        "nothing",
    )
    return [*names] if "options" in inspect.signature(getattr(WorkflowBuilder, method)).parameters else []


def as_tool(value: Any) -> object:
    return tool()(value)


def with_tool(value: Any) -> object:
    return Pointsman("memory:", tools=[value])


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("wrong", WRONG)
def test_constructors_refuse_wrong_arguments(wrong: str) -> None:
    functions: list[Callable[..., object]] = [
        *(Workflow, Workflow.parse, Workflow.load, Workflow.of, Workflow.build, Workflow.of(GATE).typed),
        *(partial(Gate[Any, Any], shows=dict, takes=dict), Pointsman, Client, tool, as_tool),
        with_tool,
    ]
    for function in functions:
        for call in calls(function, WRONG[wrong]):
            try:
                with suppress(PointsmanError):
                    call()
            except INTERNAL as why:
                pytest.fail(f"{function} with {wrong}: {why!r}")


@pytest.mark.parametrize(
    ("value", "described", "hint"),
    [
        ("text", "a str", "Workflow.load(path)"),
        (None, "None", "Workflow.of"),
        (Workflow, "the class 'Workflow'", "Pass an object: `Workflow(…)`"),
        (Odd(), "an object of 'Odd'", "Workflow.parse(text)"),
    ],
)
async def test_the_error_names_method_argument_value_and_next_step(value: Any, described: str, hint: str) -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(CallInvalid, match=r"Pointsman\.save") as refused:
            await app.save(value)
    assert str(refused.value) == f"Pointsman.save(): 'workflow' is {described}; expected Workflow"
    assert hint in refused.value.hint


async def test_a_coroutine_that_was_not_awaited_is_refused_without_a_second_warning() -> None:
    given: Any = number()
    async with Pointsman("memory:", settings=Settings()) as app:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(CallInvalid, match="a coroutine of 'number'") as refused:
                await app.view(given)
            del given
    assert "`await`" in refused.value.hint


async def test_the_error_is_raised_at_the_call_even_without_await() -> None:
    wrong: Any = 7
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(CallInvalid):
            app.view(wrong)  # pyright: ignore[reportUnusedCoroutine] - it raises before there is a coroutine


async def test_an_option_that_does_not_exist_is_refused_with_the_near_one() -> None:
    options: Any = {"sesion": "desk"}
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(CallInvalid, match="has no argument 'sesion'") as refused:
            await app.start(GATE, **options)
        assert await app.executions() == []
    assert "Did you mean 'session'?" in refused.value.hint


async def test_a_missing_argument_is_named_with_the_signature() -> None:
    missing: Any = ()
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(CallInvalid, match="missing a required argument: 'workflow'") as refused:
            await app.save(*missing)
    assert "`Pointsman.save(workflow" in refused.value.hint


def test_the_synchronous_app_refuses_the_same() -> None:
    wrong: Any = "text"
    with SyncPointsman("memory:", settings=Settings()) as app, pytest.raises(CallInvalid, match="'workflow' is a str"):
        app.save(wrong)


def test_a_synchronous_app_is_not_made_of_wrong_arguments() -> None:
    make: Any = SyncPointsman
    with pytest.raises(CallInvalid, match=r"Pointsman\(\): too many positional arguments"):
        make("memory:", "text")
    with pytest.raises(CallInvalid, match="unexpected keyword argument 'tool'"):
        make("memory:", tool=[])


async def test_an_app_that_is_not_open_is_refused() -> None:
    with pytest.raises(AppNotOpen, match="the app is not open"):
        await Pointsman("memory:", settings=Settings()).run(GATE)


async def test_a_watcher_that_raises_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fails(event: object) -> None:
        raise RuntimeError("of the application")

    async with Pointsman("memory:", settings=Settings()) as app:
        app.watch(fails)
        assert (await app.run(GATE)).status == "waiting"
    assert "of the application" in caplog.text


def test_a_cycle_in_an_option_is_refused_with_its_line() -> None:
    with pytest.raises(WorkflowInvalid, match=r"contains itself") as refused:
        Workflow.build("desk", config={"a": cycle()})
    assert refused.value.problems[0].file == __file__


def test_a_coroutine_or_a_text_is_not_a_tool() -> None:
    wrong: Any = "text"
    with pytest.raises(ToolInvalid, match="a str is not a function"):
        tool()(wrong)
