"""Workflow tests as files, run offline, in memory, with the scripted model, in virtual time.

workflow: agentforge.yaml           # beside this file
script: script.yaml                 # answers of the scripted model: a file, or the rules themselves
input: {goal: ships}
answers: {review: [reject, approve]}
expect: {status: completed, path: [write, review, write, review], output: {status: approved}}
cases:                              # each case overrides some of the above
  - {name: no one objects, answers: {review: approve}, expect: {pathContains: [review]}}
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, cast

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from pointsman.app import Execution, Pointsman, Workflow
from pointsman.definition.model.base import read_duration
from pointsman.definition.model.work import HttpConfig
from pointsman.definition.problems import Problem, did_you_mean, error, pointer_to, sort_problems
from pointsman.definition.reading.documents import BYTES_MAX, read_document
from pointsman.errors import AuthorError, PointsmanError, sentences
from pointsman.executions.isolation import ExternalCallRefused, Isolation
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.models.script import Script
from pointsman.runtime.dependencies import SystemClock
from pointsman.settings import Settings, wrong_field
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.builtin import shipped
from pointsman.workflows.scripts import load_script, parse_script

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

ENDINGS: Final = (".test.yaml", ".test.yml", ".test.json")


class TestRefused(AuthorError):
    """A file is not a valid workflow test. `problems` lists all its defects."""

    code: ClassVar[str] = "test-refused"
    __test__: ClassVar[bool] = False

    def __init__(self, message: str, *, problems: Sequence[Problem] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)


def _listed(value: object) -> object:
    return value if value is None or isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType] - pydantic looks into it


def _duration(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be a number with a unit, such as 8d")
    return read_duration(value).seconds


Seconds = Annotated[float, BeforeValidator(_duration)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
ScriptedAnswers = Annotated[tuple[str | JsonObject, ...], BeforeValidator(_listed)]


class Expect(_Part):
    """The expected outcome. Fields that are not set are not checked."""

    status: str | None = None
    """Without it: `completed`, unless problems, errors or waiting are expected."""
    output: Json = None
    """Of objects the named members, everything else exactly."""
    output_exactly: Json = None
    path: tuple[str, ...] | None = None
    """The nodes of finished steps, all of them, in order."""
    path_contains: Texts = ()
    """These, in this order; others may stand between them."""
    state: JsonObject = {}
    """The named members."""
    events: tuple[JsonObject, ...] = ()
    """These, in this order, each with these members; others may stand between them."""
    errors: tuple[str | JsonObject, ...] | None = None
    """Codes, or objects {code, nodeId …}: all of them, in order."""
    waiting: Texts | None = None
    """The nodes at whose gates it waits."""
    problems: Texts | None = None
    """Codes of errors that `check` finds: then it is not run."""


class HttpAnswer(_Part):
    """The response of a service that is not called."""

    status: Annotated[int, Field(strict=True, ge=100, le=599)] = 200
    data: Json = None
    headers: dict[str, str] = Field(default_factory=dict[str, str])


class PersonAnswer(_Part):
    """The answer of a person at a gate."""

    action: str
    data: Json = None
    comment: str = ""
    by: str = ""
    """The name of the person, for gates with `approvers`."""
    groups: Texts = ()


class WorkflowCase(_Part):
    """One test. A case of a list takes fields that it does not set from the file."""

    name: str = ""
    workflow: str = ""
    """A file, from the directory of the test; or the id of a built-in workflow."""
    dialect: str | None = None
    lenient: bool = False
    script: str | JsonObject | None = None
    input: Json = None
    answers: dict[str, ScriptedAnswers] = Field(default_factory=dict[str, ScriptedAnswers])
    """Node -> the answers at its gates, one after another: an action, or {action, data, comment, by, groups}."""
    signals: JsonObject = {}
    """Events delivered, in order, while it waits: name -> data."""
    time_passes: Seconds | None = None
    """So much time passes after that (`8d`): what is left open may time out."""
    saved: Texts = ()
    """Workflow files to save before: those it calls."""
    settings: JsonObject = {}
    """Settings of this test. Those of the user do not count."""
    http: dict[str, HttpAnswer] = Field(default_factory=dict[str, HttpAnswer])
    """Responses for http nodes: node, or `METHOD URL` -> {status, data, headers}."""
    allow: Texts = ()
    """Tools, and http nodes, that may reach outside."""
    session: str | None = None
    by: str = ""
    """The person who starts the execution, and owns its memory of the scope `user`."""
    expect: Expect = Expect()


class TestFile(WorkflowCase):
    """A file of tests."""

    __test__: ClassVar[bool] = False

    cases: tuple[JsonObject, ...] = ()


def find_tests(paths: Sequence[Path]) -> Iterator[Path]:
    """Return the test files among the paths and below the directories, sorted."""
    for path in paths:
        if path.is_dir():
            yield from sorted(one for one in path.rglob("*") if one.name.endswith(ENDINGS) and one.is_file())
        else:
            yield path


def read_tests(path: Path) -> tuple[WorkflowCase, ...]:
    """Return the cases of a file. Raises `TestRefused`."""
    try:
        with path.open("rb") as stream:
            data = stream.read(BYTES_MAX + 1)
    except OSError as why:
        raise TestRefused(f"{str(path)!r} cannot be read: {why.strerror}") from None
    document = read_document(data, name=path.name)
    if not document.is_readable:
        raise _refused(path, [p for p in document.problems if p.severity == "error"])
    value = document.value
    if not isinstance(value, dict):
        raise TestRefused(f"{path}: a workflow test is an object", hint="It has at least `workflow`.")
    try:
        file = TestFile.model_validate(value)
        named = {key: one for key, one in value.items() if key not in ("cases", "name")}
        made = [WorkflowCase.model_validate({**named, **case}) for case in file.cases] or [
            WorkflowCase.model_validate(named)
        ]
    except ValidationError as why:
        found = [_problem(TestFile, one) for one in why.errors()]
        raise _refused(path, [document.placed(problem) for problem in found]) from None
    if nameless := [number for number, case in enumerate(made, start=1) if not case.workflow]:
        raise TestRefused(f"{path}: case {nameless[0]} names no workflow", hint="Add `workflow: file`.")
    base = file.name or path.name.partition(".test.")[0]
    return tuple(
        case.model_copy(update={"name": case.name or (base if len(made) == 1 else f"{base} {number}")})
        for number, case in enumerate(made, start=1)
    )


def _problem(model: type[BaseModel], wrong: ErrorDetails) -> Problem:
    message, hint = wrong_field(model, wrong, "key")
    return error("test-value", pointer_to(*wrong["loc"]), f"{_dotted(wrong)}: {message}", hint=hint)


def _dotted(wrong: ErrorDetails) -> str:
    return ".".join(map(str, wrong["loc"]))


def _refused(path: Path, problems: Sequence[Problem]) -> TestRefused:
    found = sort_problems(problems)
    first = found[0]
    return TestRefused(f"{path}:{first.line}:{first.column}: {first.message}", problems=found, hint=first.hint)


SHOWN_MAX = 300


def differences(expected: Json, found: Json, at: str) -> Iterator[str]:
    """Return where `found` differs from the expected value: of objects only the named members count."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key not in found:
                yield f"{at}.{key}: expected {shown(value)}, is absent"
            else:
                yield from differences(value, found[key], f"{at}.{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (wanted, actual) in enumerate(zip(expected, found, strict=True)):
            yield from differences(wanted, actual, f"{at}[{number}]")
    elif not same(expected, found):
        yield f"{at}: expected {shown(expected)}, was {shown(found)}"


def same(one: Json, other: Json) -> bool:
    """Return whether two values are equal as JSON: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def fits(expected: Json, found: Json) -> bool:
    return not any(differences(expected, found, ""))


def missing_in_order(expected: Sequence[Json], found: Sequence[Json]) -> Json | None:
    """Return the first of `expected` that does not occur in `found` after the previous ones; None if all do."""
    rest = iter(found)
    for wanted in expected:
        if not any(fits(wanted, actual) for actual in rest):
            return wanted
    return None


def shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


IN_MEMORY: Final = "memory:"


@dataclass(frozen=True, slots=True)
class WorkflowTestResult:
    """The result of one test. Without failures it passed."""

    file: Path
    name: str
    failures: tuple[str, ...]
    seconds: float
    """In real time."""


def run_file(path: Path) -> Iterator[WorkflowTestResult]:
    """Run the tests of a file. An unusable file counts as one failed test."""
    try:
        cases = read_tests(path)
    except TestRefused as why:
        messages = [f"{path}:{p.line}:{p.column}: {sentences(p.message, p.hint)}" for p in why.problems] or [
            sentences(str(why), why.hint)
        ]
        yield WorkflowTestResult(path, path.name, tuple(messages), 0.0)
        return
    for case in cases:
        began = time.perf_counter()
        failures = run_case(case, path.parent)
        yield WorkflowTestResult(path, case.name, failures, time.perf_counter() - began)


def run_case(case: WorkflowCase, directory: Path, *, store: str = IN_MEMORY) -> tuple[str, ...]:
    """Run one test and return its failures. In a store other than memory, time is real and pauses are skipped."""
    virtual = store == IN_MEMORY and not case.allow  # Calls to the outside take real time.
    try:
        app = Pointsman(
            settings=Settings.model_validate({**case.settings, "store": store, "delays": virtual}),
            model="scripted",
            script=_script(case, directory),
            clock=VirtualClock() if virtual else SystemClock(),
        )
        app.isolation = Isolation(case.allow, {name: answer.model_dump() for name, answer in case.http.items()})
        source = shipped(case.workflow) or Workflow.load(directory / case.workflow, dialect=case.dialect)
        saved = [Workflow.load(directory / one) for one in case.saved]
        work = _run(app, source, saved, case)
        return tuple(run_virtually(work) if virtual else asyncio.run(work))
    except ValidationError as why:
        first = why.errors()[0]
        return (f"settings.{_dotted(first)}: {sentences(*wrong_field(Settings, first, 'setting'))}",)
    except PointsmanError as why:
        return (f"{why.code}: {sentences(str(why), why.hint)}",)


def _script(case: WorkflowCase, directory: Path) -> Script | None:
    if case.script is None:
        return None
    if isinstance(case.script, str):
        return load_script(directory / case.script)
    return parse_script(msgspec.json.encode(case.script).decode())


async def _run(app: Pointsman, source: Workflow, saved: list[Workflow], case: WorkflowCase) -> list[str]:
    async with app:
        for one in saved:
            await app.save(one)
        if case.expect.problems is not None:
            checked = await app.check(source, lenient=case.lenient)
            codes: list[Json] = [p.code for p in checked.problems if p.severity == "error"]
            return _unlike("problems", [*case.expect.problems], codes)
        if unfit := [*_names_of_nothing(app, case, source, *saved)]:
            return unfit
        execution = await app.start(source, case.input, session=case.session, by=case.by, lenient=case.lenient)
        unused = await _drive(execution, case)
        view = await execution.view()
        events = [event async for event in execution.journal(follow=False)]
    found = [*_mismatches(case.expect, json_of(view), events)]
    if app.isolation is not None:
        found += _unexpected_refusals(app.isolation, case.expect, found)
    return [*found, *(f"answers: no gate of {one.node!r} opened for {one.action!r}" for one in unused)]


def _names_of_nothing(app: Pointsman, case: WorkflowCase, *workflows: Workflow) -> Iterator[str]:
    """Return the failures for stubs and permissions whose name no http node or tool has."""
    nodes = [node.id for one in workflows for node in one.definition.nodes if isinstance(node.config, HttpConfig)]
    for name in case.http:
        if name not in nodes and " " not in name:
            yield sentences(f"http.{name}: there is no http node of this name", did_you_mean(name, nodes))
    for name in case.allow:
        if name not in nodes and app.tools.origin(name) is None and "__" not in name:
            yield sentences(f"allow: {name!r} is neither a tool nor an http node", did_you_mean(name, nodes))


async def _drive(execution: Execution, case: WorkflowCase) -> tuple[GivenAnswer, ...]:
    answers = tuple(_answer(node, one) for node, scripted_answers in case.answers.items() for one in scripted_answers)
    answers = await drive(execution, answers)
    for name, data in case.signals.items():
        await execution.signal(name, data)
        answers = await drive(execution, answers)
    if case.time_passes is not None:
        await asyncio.sleep(case.time_passes)
        answers = await drive(execution, answers)
    return answers


def _answer(node: str, scripted_answer: str | JsonObject) -> GivenAnswer:
    if isinstance(scripted_answer, str):
        return GivenAnswer(node, scripted_answer)
    try:
        answer = PersonAnswer.model_validate(scripted_answer)
    except ValidationError as why:
        message, hint = wrong_field(PersonAnswer, why.errors()[0], "key")
        raise TestRefused(f"answers.{node}: {_dotted(why.errors()[0])}: {message}", hint=hint) from None
    return GivenAnswer(node, answer.action, answer.data, answer.comment, answer.by, answer.groups)


def _mismatches(expect: Expect, view: JsonObject, events: list[JsonObject]) -> Iterator[str]:
    status = expect.status or ("completed" if expect.errors is None and expect.waiting is None else None)
    if status is not None and view["status"] != status:
        yield f"status: expected {status}, was {view['status']}{_because(view)}"
    named = expect.model_fields_set
    if "output" in named:
        yield from differences(expect.output, view["output"], "output")
    if "output_exactly" in named and not same(expect.output_exactly, view["output"]):
        yield f"output: expected exactly {shown(expect.output_exactly)}, was {shown(view['output'])}"
    if expect.path is not None:
        yield from _unlike("path", [*expect.path], cast("list[Json]", view["path"]))
    if (lost := missing_in_order(expect.path_contains, cast("list[Json]", view["path"]))) is not None:
        yield f"path: {shown(lost)} does not come in this order; was {shown(view['path'])}"
    yield from differences(expect.state, view["state"], "state")
    if (lost := missing_in_order(expect.events, events)) is not None:
        yield f"events: {shown(lost)} does not come in this order"
    if expect.errors is not None:
        yield from _errors(expect.errors, cast("list[JsonObject]", view["errors"]))
    if expect.waiting is not None:
        waiting: list[Json] = [cast(JsonObject, gate)["nodeId"] for gate in cast("list[Json]", view["waiting"])]
        yield from _unlike("waiting", [*expect.waiting], waiting)


def _errors(expected: tuple[str | JsonObject, ...], found: list[JsonObject]) -> Iterator[str]:
    wanted: list[JsonObject] = [{"code": one} if isinstance(one, str) else one for one in expected]
    if len(wanted) != len(found) or not all(fits(one, actual) for one, actual in zip(wanted, found, strict=True)):
        actual: list[Json] = [
            {"code": one["code"], "nodeId": one["nodeId"], "message": one["message"]} for one in found
        ]
        yield f"errors: expected {shown([*expected])}, were {shown(actual)}"


def _unexpected_refusals(isolation: Isolation, expect: Expect, found: Sequence[str]) -> list[str]:
    """Return the refused calls that the outcome does not show, such as those whose failure a model received."""
    code = ExternalCallRefused.code
    wanted = [one if isinstance(one, str) else one.get("code") for one in expect.errors or ()]
    if code in wanted or any(code in one for one in found):
        return []
    return [f"{code}: {one}" for one in dict.fromkeys(isolation.refused)]


def _because(view: JsonObject) -> str:
    errors = cast("list[JsonObject]", view["errors"])
    waiting = cast("list[JsonObject]", view["waiting"])
    if errors:
        last = errors[-1]
        where = f" in {last['nodeId']}" if last["nodeId"] is not None else ""
        return f": {last['code']}{where}: {sentences(str(last['message']), str(last['hint']))}"
    return f" at {', '.join(str(gate['nodeId']) for gate in waiting)}" if waiting else ""


def _unlike(what: str, expected: list[Json], found: list[Json]) -> list[str]:
    return [] if expected == found else [f"{what}: expected {shown(expected)}, was {shown(found)}"]
