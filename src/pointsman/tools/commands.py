"""Command tools: local programs that the operator names, run in the sandbox. The result is the standard output.

    argv = ["/usr/bin/grep", "--count", ["--max-count", "{most}"], "--", "{word}"]

A placeholder is a whole argument, never a part of one, and no shell is involved. An inner list is left out as a whole
if its argument is missing. Each value stays one argument and cannot become an option.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from typing import Annotated, Final, Literal, cast

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration, Size
from pointsman.engine.failures import Failure
from pointsman.json_meter import JsonUnreadable, TooMuchJson, decode_json
from pointsman.ports import ToolSpec
from pointsman.redaction import tail
from pointsman.tools.http.tool import AnObject
from pointsman.tools.sandbox.limits import (
    FILES_MAX,
    Job,
    OutputTooLarge,
    Preference,
    ProcessResult,
    SandboxLimits,
)
from pointsman.tools.sandbox.process import SandboxTimeout, bounded, sandbox_for
from pointsman.tools.tool import CORRECT_ARGUMENTS, ToolContext, ToolFailed, ToolLimits
from pointsman.values import Bytes, Json, JsonObject, Seconds

NAME: Final = r"^[A-Za-z_][\w-]{0,63}$"
"""The tool names that model providers accept."""

PLACE: Final = re.compile(r"\{([A-Za-z_][\w-]*)\}")


def _absolute(value: object) -> object:
    if not isinstance(value, str) or not value.startswith("/"):
        raise ValueError("must be an absolute path")
    return value


AbsolutePath = Annotated[str, BeforeValidator(_absolute)]
Argument = str | Annotated[tuple[str, ...], Field(min_length=1)]


class CommandDescription(BaseModel):
    """One command."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    description: str = ""
    argv: Annotated[tuple[Argument, ...], Field(min_length=1)]
    """The program by its absolute path, then its arguments."""
    stdin: str = ""
    """Standard input: `"{name}"`, or nothing."""
    parameters: AnObject = Field(default_factory=dict[str, object])
    """JSON Schema of the arguments. Absent: one text for each placeholder."""
    output: Literal["text", "json"] = "text"
    exit_codes: Annotated[tuple[Annotated[int, Field(ge=0, le=255)], ...], Field(min_length=1)] = (0,)
    """Exit codes that mean success."""
    read: tuple[AbsolutePath, ...] = ()
    """Paths that it may read, besides programs and libraries of this machine."""
    timeout: Duration = Duration(Seconds(30.0))
    memory: Size = Size(Bytes(256_000_000))
    """Memory limit of each of its processes."""
    output_max: Size = Size(Bytes(1_000_000))
    files: Size = Size(Bytes(0))
    """Space for its private files, which are deleted when it ends. The program starts in that directory."""
    files_max: int = Field(default=FILES_MAX, ge=1, le=1_000_000)
    """Maximum number of its files, directories and links."""
    processes: int = Field(default=1, ge=1, le=256)
    """Maximum number of processes; 1: it cannot start others."""
    requires_approval: bool = False
    idempotent: bool = False

    @model_validator(mode="after")
    def _sound(self) -> CommandDescription:
        program = self.argv[0]
        if not isinstance(program, str) or not program.startswith("/") or PLACE.search(program):
            raise ValueError("`argv` must begin with the absolute path of a program, without a placeholder")
        for text in (*(one for argument in self.argv for one in _texts(argument)), self.stdin):
            if PLACE.search(text) and not PLACE.fullmatch(text):
                raise ValueError(f"{text!r}: a placeholder such as {{name}} must be a whole argument")
        if self.stdin and not PLACE.fullmatch(self.stdin):
            raise ValueError('`stdin` must be one placeholder: "{name}"')
        if constant := next((one for one in self.argv if isinstance(one, tuple) and not placeholder_names(one)), None):
            raise ValueError(f"{[*constant]!r}: a list inside `argv` must contain a placeholder")
        properties = self.parameters.get("properties")
        if isinstance(properties, dict) and (unknown := {*self.places} - {*cast("dict[str, object]", properties)}):
            raise ValueError(f"`parameters` does not describe {', '.join(sorted(unknown))}")
        return self

    @property
    def program(self) -> str:
        return cast("str", self.argv[0])

    @property
    def places(self) -> list[str]:
        """The names of all placeholders, in order."""
        names = [name for argument in self.argv for name in placeholder_names(argument)]
        return list(dict.fromkeys([*names, *placeholder_names(self.stdin)]))

    @property
    def schema_of_arguments(self) -> JsonObject:
        if self.parameters:
            return cast("JsonObject", self.parameters)
        optional = {
            name for argument in self.argv if isinstance(argument, tuple) for name in placeholder_names(argument)
        }
        required: list[Json] = [name for name in self.places if name not in optional]
        return {
            "type": "object",
            "properties": {name: {"type": "string"} for name in self.places},
            "required": required,
            "additionalProperties": False,
        }


def _texts(argument: Argument) -> tuple[str, ...]:
    return (argument,) if isinstance(argument, str) else argument


def placeholder_names(argument: Argument) -> list[str]:
    """Return the names of the placeholders in an argument."""
    return [match[1] for text in _texts(argument) if (match := PLACE.fullmatch(text))]


BYTES_MAX: Final = 100_000
"""Maximum size of one argument; the kernel accepts little more."""
ALL_BYTES_MAX: Final = 1_000_000
"""Maximum size of all arguments together."""
END_OF_OPTIONS: Final = "--"


def filled(described: CommandDescription, arguments: JsonObject) -> tuple[str, ...]:
    """Return the arguments after the program. Raises `ToolFailed`."""
    names: list[str] = []
    for argument in described.argv[1:]:
        names += _argument(argument, arguments, is_data=END_OF_OPTIONS in names)
    if sum(len(name.encode()) + 1 for name in names) > ALL_BYTES_MAX:
        raise _wrong(f"the arguments have more than {ALL_BYTES_MAX} bytes")
    return tuple(names)


def standard_input(described: CommandDescription, arguments: JsonObject) -> bytes:
    """Return the standard input: a string as it is, other values as JSON. Raises `ToolFailed`."""
    place = PLACE.fullmatch(described.stdin)
    value = None if place is None else arguments.get(place[1])
    if value is None:
        return b""
    return _encoded(value) if isinstance(value, str) else msgspec.json.encode(value)


def _argument(argument: Argument, arguments: JsonObject, *, is_data: bool) -> Iterator[str]:
    texts = (argument,) if isinstance(argument, str) else argument
    names = [place[1] for text in texts if (place := PLACE.fullmatch(text))]
    if any(arguments.get(name) is None for name in names):
        return
    for text in texts:
        place = PLACE.fullmatch(text)
        if place is None:
            yield text
        else:
            yield from _value(place[1], arguments[place[1]], is_data=is_data)


def _value(name: str, value: Json, *, is_data: bool) -> Iterator[str]:
    """Yield the value as arguments; a list becomes several."""
    match value:
        case list():
            for element in value:
                if isinstance(element, list):
                    raise _wrong(f"the argument {name!r} is a list of lists")
                yield from _value(name, element, is_data=is_data)
        case bool():
            yield "true" if value else "false"
        case int() | float():
            yield str(value)
        case str():
            yield _text(name, value, is_data=is_data)
        case _:
            raise _wrong(f"the argument {name!r} is neither a text, a number nor a list of them")


def _text(name: str, value: str, *, is_data: bool) -> str:
    if value.startswith("-") and not is_data:
        raise _wrong(f"the argument {name!r} begins with a dash, so the program would read it as an option")
    if "\0" in value:
        raise _wrong(f"the argument {name!r} contains a character that program arguments cannot contain")
    if len(_encoded(value)) > BYTES_MAX:
        raise _wrong(f"the argument {name!r} has more than {BYTES_MAX} bytes")
    return value


def _encoded(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise _wrong("a text contains half a character (a lone surrogate)") from None


def _wrong(message: str) -> ToolFailed:
    return ToolFailed(Failure(code="tool-arguments", message=message, hint=CORRECT_ARGUMENTS))


ERROR_CHARS_MAX: Final = 500
ESCAPED: Final = 6
"""Maximum number of JSON bytes for one byte of text."""


class CommandTool:
    """A command tool."""

    def __init__(self, name: str, described: CommandDescription, *, sandbox: Preference) -> None:
        self.name = name
        self.limits = ToolLimits(output_bytes_max=Bytes(described.output_max.bytes * ESCAPED + 2))
        self.spec = ToolSpec(
            name=name,
            description=described.description,
            parameters=described.schema_of_arguments,
            idempotent=described.idempotent,
            requires_approval=described.requires_approval,
        )
        self._described = described
        self._sandbox: Preference = sandbox

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Run the command; return its output as text or JSON. Raises `ToolFailed`, `SandboxMissing`,
        `SandboxFailed`."""
        described = self._described
        job = self._job(filled(described, arguments))
        stdin = standard_input(described, arguments)
        sandbox = await asyncio.to_thread(sandbox_for, job, self._sandbox)
        if not os.access(described.program, os.X_OK):
            hint = f"Install it, or correct `commands.{self.name}.argv` in the settings."
            raise _failed("command-missing", f"the program {described.program!r} does not exist", hint=hint)
        try:
            ended = await bounded(sandbox, job, stdin)
        except SandboxTimeout:
            message = f"the command {self.name!r} did not end within {job.bounds.seconds:g} s"
            hint = f"Request less, or raise `commands.{self.name}.timeout` in the settings."
            raise _failed("tool-timeout", message, retryable=True, hint=hint) from None
        except OutputTooLarge:
            message = f"the command {self.name!r} printed more than {job.bounds.output_bytes} bytes"
            hint = f"Request less, or raise `commands.{self.name}.output_max`."
            raise _failed("tool-output-too-large", message, hint=hint) from None
        if ended.code not in described.exit_codes:
            raise _failed("command-failed", f"the command {self.name!r} {_how(ended)}")
        return self._answer(ended.output)

    def _job(self, arguments: tuple[str, ...]) -> Job:
        described = self._described
        bounds = SandboxLimits(
            seconds=described.timeout.seconds,
            memory_bytes=described.memory.bytes,
            output_bytes=described.output_max.bytes,
            files_bytes=described.files.bytes,
            files_max=described.files_max,
            processes=described.processes,
        )
        return Job(program=described.program, arguments=arguments, bounds=bounds, readable=described.read)

    def _answer(self, output: bytes) -> Json:
        if self._described.output == "text":
            return output.decode(errors="replace").removesuffix("\n")
        try:
            return decode_json(output)
        except TooMuchJson as why:
            raise _failed("command-output", f"what the command {self.name!r} printed {why}") from None
        except JsonUnreadable as why:
            raise _failed("command-output", f"the output of the command {self.name!r} is not JSON: {why}") from None


def _how(result: ProcessResult) -> str:
    output = tail((result.errors.strip() or result.output.strip()).decode(errors="replace"), ERROR_CHARS_MAX)
    if result.code < 0:
        ending = f"was ended by {_signal(-result.code)}"
    else:
        ending = f"ended with {result.code}"
    return f"{ending}: {output}" if output else ending


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"the signal {number}"


def _failed(code: str, message: str, *, retryable: bool = False, hint: str = "") -> ToolFailed:
    return ToolFailed(Failure(code=code, message=message, retryable=retryable, hint=hint))
