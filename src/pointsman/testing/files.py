"""Test files: which workflow runs, with which answers, and which outcome is expected.

workflow: agentforge.yaml           # beside this file
script: script.yaml                 # answers of the scripted model: a file, or the rules themselves
input: {goal: ships}
answers: {review: [reject, approve]}
expect: {status: completed, path: [write, review, write, review], output: {status: approved}}
cases:                              # each case overrides some of the above
  - {name: no one objects, answers: {review: approve}, expect: {pathContains: [review]}}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from pointsman.definition.model.quantities import read_duration
from pointsman.definition.problems import Problem, error, pointer_to, sort_problems
from pointsman.definition.reading.documents import BYTES_MAX, read_document
from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject

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
Said = Annotated[tuple[str | JsonObject, ...], BeforeValidator(_listed)]


class Expect(_Part):
    """What must come of it. What is absent is not looked at."""

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


class WorkflowCase(_Part):
    """One test. In a list of cases, what is absent is as the file says."""

    name: str = ""
    workflow: str = ""
    """A file, from the directory of the test; or the id of a built-in workflow."""
    dialect: str | None = None
    lenient: bool = False
    script: str | JsonObject | None = None
    input: Json = None
    answers: dict[str, Said] = Field(default_factory=dict[str, Said])
    """Node -> what is said at its gates, one after another: an action, or {action, data, comment}."""
    signals: JsonObject = {}
    """Events delivered, in order, while it waits: name -> data."""
    time_passes: Seconds | None = None
    """So much time passes after that (`8d`): what is left open may time out."""
    saved: Texts = ()
    """Workflow files to save before: those it calls."""
    settings: JsonObject = {}
    """Settings of this test. Those of the user do not count."""
    http: dict[str, JsonObject] = Field(default_factory=dict[str, JsonObject])
    """What http nodes are answered: node, or `METHOD URL` -> {status, data, headers}."""
    allow: Texts = ()
    """Tools, and http nodes, that may reach outside."""
    session: str | None = None
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
        found = [_problem(list(one["loc"]), one["msg"]) for one in why.errors()]
        raise _refused(path, [document.placed(problem) for problem in found]) from None
    if nameless := [number for number, case in enumerate(made, start=1) if not case.workflow]:
        raise TestRefused(f"{path}: case {nameless[0]} names no workflow", hint="Add `workflow: file`.")
    base = file.name or path.name.partition(".test.")[0]
    return tuple(
        case.model_copy(update={"name": case.name or (base if len(made) == 1 else f"{base} {number}")})
        for number, case in enumerate(made, start=1)
    )


def _problem(parts: list[str | int], message: str) -> Problem:
    return error("test-value", pointer_to(*parts), f"{'.'.join(map(str, parts))}: {message}")


def _refused(path: Path, problems: Sequence[Problem]) -> TestRefused:
    found = sort_problems(problems)
    first = found[0]
    return TestRefused(f"{path}:{first.line}:{first.column}: {first.message}", problems=found, hint=first.hint)
