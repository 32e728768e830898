"""Runs an example in virtual time and returns everything visible of it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import msgspec
import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.executions.timeline import timeline
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelReply, ModelRequest, TextCallback
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.scripts import load_script, parse_script

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True, slots=True)
class RunResult:
    """The results of an execution, and the requests to its models."""

    view: JsonObject
    timeline: JsonObject
    asked: tuple[ModelRequest, ...]

    @property
    def path(self) -> list[Json]:
        return cast("list[Json]", self.view["path"])

    @property
    def output(self) -> JsonObject:
        return cast(JsonObject, self.view["output"])

    def asked_of(self, node: str) -> list[ModelRequest]:
        return [request for request in self.asked if request.hints["node"] == node]


@contextmanager
def overheard() -> Generator[list[ModelRequest]]:
    """Record all requests to models."""
    asked: list[ModelRequest] = []
    ask = PydanticModels.ask

    async def listen(self: PydanticModels, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        # The caller continues to change its list.
        asked.append(msgspec.structs.replace(request, messages=[*request.messages]))
        return await ask(self, request, on_text=on_text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PydanticModels, "ask", listen)
        yield asked


def play(
    file: str,
    given: Json,
    *,
    script: str = "script.yaml",
    answers: tuple[GivenAnswer, ...] = (),
    settings: Mapping[str, object] | None = None,
) -> RunResult:
    """Run an example by its path below `examples/`; `script` is the name of a file beside it, or the text of a
    script."""
    path = EXAMPLES / file
    said = parse_script(script) if "\n" in script else load_script(path.parent / script)

    async def run() -> RunResult:
        app = Pointsman(
            settings=Settings.model_validate({**(settings or {}), "store": "memory:"}),
            model="scripted",
            script=said,
            clock=VirtualClock(),
        )
        async with app:
            execution = await app.start(Workflow.load(path), given)
            unused = await drive(execution, answers)
            assert unused == ()
            return RunResult(
                json_of(await execution.view()), json_of(await timeline(app.context, execution.id)), tuple(asked)
            )

    with overheard() as asked:
        return run_virtually(run())
