"""Settings of command tools: a program, its arguments with placeholders, and its limits.

    argv = ["/usr/bin/grep", "--count", ["--max-count", "{most}"], "--", "{word}"]

A placeholder is a whole argument, never a part of one, and no shell is involved. An inner list is left out as a whole
if its argument is missing.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration, Size
from pointsman.tools.sandbox.limits import FILES_MAX
from pointsman.values import Bytes, Json, JsonObject, Seconds

NAME: Final = r"^[A-Za-z_][\w-]{0,63}$"
"""The tool names that model providers accept."""

PLACE: Final = re.compile(r"\{([A-Za-z_][\w-]*)\}")


def _absolute(value: object) -> object:
    if not isinstance(value, str) or not value.startswith("/"):
        raise ValueError("must be an absolute path")
    return value


def _object(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("an object is expected")
    return cast("object", value)


AbsolutePath = Annotated[str, BeforeValidator(_absolute)]
Argument = str | Annotated[tuple[str, ...], Field(min_length=1)]


class CommandDescription(BaseModel):
    """One command."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    description: str = ""
    argv: Annotated[tuple[Argument, ...], Field(min_length=1)]
    """The program by its absolute path, then its arguments."""
    stdin: str = ""
    """Its standard input: `"{name}"`, or nothing."""
    parameters: Annotated[dict[str, object], BeforeValidator(_object)] = Field(default_factory=dict[str, object])
    """JSON Schema of the arguments. Absent: a text for each place."""
    output: Literal["text", "json"] = "text"
    exit_codes: Annotated[tuple[Annotated[int, Field(ge=0, le=255)], ...], Field(min_length=1)] = (0,)
    """Those that mean success."""
    read: tuple[AbsolutePath, ...] = ()
    """Paths that it may read beside the programs and libraries of this machine."""
    timeout: Duration = Duration(Seconds(30.0))
    memory: Size = Size(Bytes(256_000_000))
    """Of each of its processes."""
    output_max: Size = Size(Bytes(1_000_000))
    files: Size = Size(Bytes(0))
    """Room for files of its own, gone when it ends. It begins there."""
    files_max: int = Field(default=FILES_MAX, ge=1, le=1_000_000)
    """How many files, directories and links it may have there."""
    processes: int = Field(default=1, ge=1, le=256)
    """1: it starts no other."""
    requires_approval: bool = False
    idempotent: bool = False

    @model_validator(mode="after")
    def _sound(self) -> CommandDescription:
        program = self.argv[0]
        if not isinstance(program, str) or not program.startswith("/") or PLACE.search(program):
            raise ValueError("`argv` begins with the absolute path of a program, without a place in it")
        for text in (*(one for argument in self.argv for one in _texts(argument)), self.stdin):
            if PLACE.search(text) and not PLACE.fullmatch(text):
                raise ValueError(f"{text!r}: a place such as {{name}} is a whole argument")
        if self.stdin and not PLACE.fullmatch(self.stdin):
            raise ValueError('`stdin` is a place: "{name}"')
        if constant := next((one for one in self.argv if isinstance(one, tuple) and not places(one)), None):
            raise ValueError(f"{[*constant]!r}: a list inside `argv` is for a place that may be missing")
        known = self.parameters.get("properties")
        if isinstance(known, dict) and (unknown := {*self.places} - {*cast("dict[str, object]", known)}):
            raise ValueError(f"`parameters` knows nothing of {', '.join(sorted(unknown))}")
        return self

    @property
    def program(self) -> str:
        return cast("str", self.argv[0])

    @property
    def places(self) -> list[str]:
        """The names of all placeholders, in order."""
        found = [name for argument in self.argv for name in places(argument)]
        return list(dict.fromkeys([*found, *places(self.stdin)]))

    @property
    def schema_of_arguments(self) -> JsonObject:
        if self.parameters:
            return cast("JsonObject", self.parameters)
        optional = {name for argument in self.argv if isinstance(argument, tuple) for name in places(argument)}
        required: list[Json] = [name for name in self.places if name not in optional]
        return {
            "type": "object",
            "properties": {name: {"type": "string"} for name in self.places},
            "required": required,
            "additionalProperties": False,
        }


def _texts(argument: Argument) -> tuple[str, ...]:
    return (argument,) if isinstance(argument, str) else argument


def places(argument: Argument) -> list[str]:
    """Return the names of the placeholders in an argument."""
    return [found[1] for text in _texts(argument) if (found := PLACE.fullmatch(text))]
