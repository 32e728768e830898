"""Commands as tools. The result is the standard output of the program."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Final

from pointsman.engine.failures import Failure
from pointsman.json_meter import JsonUnreadable, TooMuchJson, decode_json
from pointsman.ports import ToolSpec
from pointsman.redaction import tail
from pointsman.tools.commands.arguments import filled, standard_input
from pointsman.tools.commands.config import CommandDescription
from pointsman.tools.failures import ToolFailed
from pointsman.tools.sandbox.limits import Job, Preference, SandboxLimits
from pointsman.tools.sandbox.process import OutputTooLarge, ProcessResult, TookTooLong, bounded
from pointsman.tools.sandbox.selection import box_for
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Bytes, Json, JsonObject

SAID_CHARS_MAX: Final = 500
ESCAPED: Final = 6
"""Maximum number of JSON bytes for one byte of text."""


class CommandTool:
    """A command tool."""

    def __init__(self, name: str, described: CommandDescription, *, box: Preference) -> None:
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
        self._box: Preference = box

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Run the command; return its output as text or JSON. Raises `ToolFailed`, `SandboxMissing`, `BoxFailed`."""
        described = self._described
        job = self._job(filled(described, arguments))
        given = standard_input(described, arguments)
        box = await asyncio.to_thread(box_for, job, self._box)
        if not os.access(described.program, os.X_OK):
            hint = f"Install it, or correct `commands.{self.name}.argv` in the settings."
            raise _failed("command-missing", f"there is no program {described.program!r}", hint=hint)
        try:
            ended = await bounded(box, job, given)
        except TookTooLong:
            message = f"the command {self.name!r} did not end within {job.bounds.seconds:g} s"
            hint = f"Ask for less, or raise `commands.{self.name}.timeout` in the settings."
            raise _failed("tool-timeout", message, retryable=True, hint=hint) from None
        except OutputTooLarge:
            message = f"the command {self.name!r} said more than {job.bounds.output_bytes} bytes"
            hint = f"Ask for less, or raise `commands.{self.name}.output_max`."
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
            raise _failed("command-output", f"what the command {self.name!r} said is no JSON: {why}") from None


def _how(ended: ProcessResult) -> str:
    said = tail((ended.errors.strip() or ended.output.strip()).decode(errors="replace"), SAID_CHARS_MAX)
    if ended.code < 0:
        how = f"was ended by {_signal(-ended.code)}"
    else:
        how = f"ended with {ended.code}"
    return f"{how}: {said}" if said else how


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"the signal {number}"


def _failed(code: str, message: str, *, retryable: bool = False, hint: str = "") -> ToolFailed:
    return ToolFailed(Failure(code=code, message=message, retryable=retryable, hint=hint))
