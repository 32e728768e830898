"""pytest plugin: apps in memory, stubs for models, tools, HTTP and MCP, virtual time, recorded answers of real models.

    def test_a_letter_is_written(pointsman, scripted_model, virtual_clock):
        scripted_model.answer("Dear all", node="write")
        pointsman.stub_http("fetch", data={"ships": 3})

        async def story():
            async with pointsman(tools=[price]) as app:
                assert await (await app.run("letter.yaml", {"goal": "ships"})).output() == {"letter": "Dear all"}

        virtual_clock.run(story())

Nothing reaches outside: a call without a stub is refused and fails the test. pytest loads this module at every start,
so that everything else is imported by the fixtures.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

if TYPE_CHECKING:
    from pointsman.app import Pointsman
    from pointsman.models.recording import ModelRecording
    from pointsman.settings import Settings
    from pointsman.tools.conversion import ToolLike
    from pointsman.values import Json, JsonObject

T = TypeVar("T")

RECORD: Final = "--record-models"
RECORDINGS: Final = "recordings"
"""Directory of recorded answers, beside the tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that records the answers of real models."""
    group = parser.getgroup("pointsman")
    group.addoption(
        RECORD, action="store_true", help="Call the models of tests with `recorded_models`, and store their answers."
    )


class ModelScript:
    """The answers of the scripted model, and tools that it may call, in the order in which they are added."""

    def __init__(self) -> None:
        self.rules: list[Json] = []
        self.tools: dict[str, JsonObject] = {}

    def answer(self, text: str = "", *, node: str | None = None, **rule: Json) -> None:
        """Add an answer. `rule`: further keys of a rule of a script, such as `contains`, `visit`, `json` or `fail`."""
        entry: JsonObject = {**({"text": text} if text else {}), **({} if node is None else {"node": node}), **rule}
        self.rules.append(entry)

    def text(self) -> str:
        """Return the script as JSON."""
        import msgspec

        return msgspec.json.encode({"rules": self.rules, "tools": self.tools}).decode()


class VirtualTime:
    """Time in which nothing waits: timers fire as soon as nothing else happens."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on an event loop of its own, in virtual time. Not inside another event loop."""
        from pointsman.testing.clock import run_virtually

        return run_virtually(work)


class AppFactory:
    """Makes apps for one test: in memory, with the scripted model, isolated from everything outside."""

    def __init__(self, script: ModelScript, recording: ModelRecording | None, *, virtual: bool) -> None:
        self._script, self._recording, self._virtual = script, recording, virtual
        self._http: dict[str, JsonObject] = {}
        self._allowed: set[str] = set()
        self.refused: list[str] = []
        """The calls without a stub, in order."""

    def stub_tool(self, name: str, result: Json = None, **script: Json) -> None:
        """Give a tool a result. `script`: further keys of a tool of a script, such as `results` or `parameters`."""
        self._script.tools[name] = {"result": result, **script}

    def stub_mcp(self, server: str, tool: str, result: Json = None, **script: Json) -> None:
        """Give a tool of an MCP server a result; the server is not started."""
        self.stub_tool(f"{server}__{tool}", result, **script)

    def stub_http(
        self, node: str, *, status: int = 200, data: Json = None, headers: dict[str, str] | None = None
    ) -> None:
        """Give an http node an answer. `node`: its id, or `METHOD URL`."""
        self._http[node] = {"status": status, "data": data, "headers": dict(headers or {})}

    def allow(self, name: str) -> None:
        """Let a tool or an http node reach outside."""
        self._allowed.add(name)

    def __call__(
        self,
        *,
        tools: Sequence[ToolLike] = (),
        settings: Settings | None = None,
    ) -> Pointsman:
        """Return an app, for `async with`. `tools` are allowed; without `settings`, those of the user do not count."""
        from pointsman.app import Pointsman
        from pointsman.executions.isolation import Isolation
        from pointsman.settings import Settings
        from pointsman.testing.clock import VirtualClock
        from pointsman.tools.conversion import as_tool
        from pointsman.workflows.scripts import parse_script

        made = [as_tool(one) for one in tools]
        is_scripted = self._recording is None
        app = Pointsman(
            "memory:",
            tools=made,
            model="scripted" if is_scripted else None,
            script=parse_script(self._script.text()) if is_scripted or self._script.tools else None,
            settings=settings if settings is not None else Settings(delays=self._virtual),
            clock=VirtualClock() if self._virtual else None,
        )
        allowed = {*self._allowed, *(one.name for one in made)}
        app.isolation = Isolation(allowed, self._http, self.refused, self._recording)
        return app


@pytest.fixture
def scripted_model() -> ModelScript:
    """The answers of the scripted model; without any, it answers by itself."""
    return ModelScript()


@pytest.fixture
def virtual_clock() -> VirtualTime:
    """Virtual time: `virtual_clock.run(coroutine)`. Apps of the test use its clock."""
    return VirtualTime()


@pytest.fixture
def recorded_models(request: pytest.FixtureRequest) -> Generator[ModelRecording, None, None]:
    """Recorded answers of real models, from `recordings/MODULE/TEST.json` beside the test. `--record-models` calls the
    models and writes the file, with secrets masked."""
    from pointsman.auth.redaction import redactor_for
    from pointsman.models.recording import ModelRecording
    from pointsman.settings import load_settings

    path = Path(request.path).parent / RECORDINGS / Path(request.path).stem / f"{request.node.name}.json"
    recording = ModelRecording(
        path, records=bool(request.config.getoption(RECORD)), redact=redactor_for(load_settings()).json
    )
    yield recording
    recording.close()


@pytest.fixture
def pointsman(request: pytest.FixtureRequest, scripted_model: ModelScript) -> Generator[AppFactory, None, None]:
    """Make apps: `async with pointsman(tools=[…]) as app`. A refused call fails the test."""
    recording = request.getfixturevalue("recorded_models") if "recorded_models" in request.fixturenames else None
    factory = AppFactory(scripted_model, recording, virtual="virtual_clock" in request.fixturenames)
    yield factory
    if factory.refused:
        pytest.fail("\n".join(["calls without a stub:", *factory.refused]), pytrace=False)
