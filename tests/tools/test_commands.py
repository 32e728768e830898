"""Commands: programs that the operator allows, run in the sandbox with the arguments of a call."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.settings import Settings
from pointsman.tools.commands import CommandDescription, filled, standard_input
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject
from pointsman.workflows.tools import registry_for
from tests.sandboxes import BOXES, BoxName, box_or_skip, needs_box, take_boxes_away

SH = "/bin/sh"
PYTHON = str(Path(sys.executable).resolve())


def described(*argv: str | tuple[str, ...], **more: object) -> CommandDescription:
    return CommandDescription.model_validate({"argv": argv, **more})


def arguments_of(command: CommandDescription, **arguments: Json) -> tuple[str, ...]:
    return filled(command, arguments)


def refusal(command: CommandDescription, **arguments: Json) -> str:
    with pytest.raises(ToolFailed) as caught:
        filled(command, arguments)
    assert caught.value.failure.code == "tool-arguments"
    return caught.value.failure.message


async def answer(command: CommandDescription, *, box: str = "auto", **arguments: Json) -> Json:
    settings = Settings.model_validate({"commands": {"it": command}, "sandbox": {"box": box}})
    return await registry_for(settings, ()).call(ToolCall(id="1", name="it", arguments=arguments), key="k")


async def failure(command: CommandDescription, *, box: str = "auto", **arguments: Json) -> Failure:
    with pytest.raises(ToolFailed) as caught:
        await answer(command, box=box, **arguments)
    return caught.value.failure


def test_a_placeholder_is_one_argument_with_any_content() -> None:
    command = described("/bin/echo", "{text}", "last")
    assert arguments_of(command, text="a b; rm -rf / $(id) `id` 'x\"\n") == ("a b; rm -rf / $(id) `id` 'x\"\n", "last")
    assert arguments_of(command, text="") == ("", "last")
    assert arguments_of(command, text=5) == ("5", "last")
    assert arguments_of(command, text=-5) == ("-5", "last")
    assert arguments_of(command, text=True) == ("true", "last")
    assert arguments_of(command, text="{text}") == ("{text}", "last")


def test_a_list_is_several_arguments() -> None:
    assert arguments_of(described("/bin/cat", "{files}"), files=["a", "b c", 3]) == ("a", "b c", "3")
    assert arguments_of(described("/bin/cat", "{files}"), files=[]) == ()


def test_a_missing_argument_is_omitted_with_its_list() -> None:
    command = described("/usr/bin/head", ("--lines", "{most}"), "--", "{file}")
    assert arguments_of(command, file="a", most=3) == ("--lines", "3", "--", "a")
    assert arguments_of(command, file="a") == ("--", "a")
    assert arguments_of(command, file="a", most=None) == ("--", "a")
    assert command.schema_of_arguments["required"] == ["file"]


def test_an_argument_never_becomes_an_option() -> None:
    assert "would read it as an option" in refusal(described("/bin/tar", "{what}"), what="--checkpoint-action=exec=sh")
    assert "would read it as an option" in refusal(described("/bin/tar", "{what}"), what=["a", "-rf"])
    assert arguments_of(described("/bin/cat", "--", "{what}"), what="-rf") == ("--", "-rf")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a\0b", "a character that program arguments cannot contain"),
        ("x" * 100_001, "more than 100000 bytes"),
        ("日" * 40_000, "more than 100000 bytes"),
        (["x" * 90_000] * 12, "the arguments have more than 1000000 bytes"),
        ("\ud800", "half a character"),
        ({"a": 1}, "is neither a text, a number nor a list of them"),
        ([["a"]], "a list of lists"),
    ],
)
def test_an_argument_that_no_program_can_receive_is_refused(value: Json, message: str) -> None:
    assert message in refusal(described("/bin/echo", "{value}"), value=value)


def test_standard_input_is_text_or_json() -> None:
    command = described("/bin/cat", stdin="{body}")
    assert standard_input(command, {"body": "as it is"}) == b"as it is"
    assert standard_input(command, {"body": {"a": [1]}}) == b'{"a":[1]}'
    assert standard_input(command, {}) == b""


@pytest.mark.parametrize(
    ("argv", "more", "message"),
    [
        (["grep", "{word}"], {}, "absolute path"),
        (["{program}"], {}, "absolute path"),
        (["/bin/{program}"], {}, "without a placeholder"),
        ([], {}, "at least 1 item"),
        (["/bin/echo", "--name={name}"], {}, "must be a whole argument"),
        (["/bin/echo", ["--verbose"]], {}, "must contain a placeholder"),
        (["/bin/cat"], {"stdin": "Dear {name}"}, "whole argument"),
        (["/bin/cat"], {"stdin": "text"}, "`stdin` must be one placeholder"),
        (["/bin/echo", "{a}"], {"parameters": {"type": "object", "properties": {"b": {}}}}, "does not describe a"),
        (["/bin/cat"], {"read": ["data"]}, "must be an absolute path"),
        (["/bin/cat"], {"shell": True}, "Extra inputs"),
    ],
)
def test_an_impossible_command_is_refused(argv: list[object], more: JsonObject, message: str) -> None:
    with pytest.raises(ValidationError, match=message.replace("[", r"\[")):
        CommandDescription.model_validate({"argv": argv, **more})


@pytest.mark.integration
@needs_box
@pytest.mark.requirement("S1-08", "S1-144", "S1-104")
async def test_a_command_returns_the_output_of_its_program() -> None:
    assert await answer(described("/bin/echo", "{text}"), text="x" * 100_000) == "x" * 100_000
    assert await answer(described("/bin/echo", "{text}"), text="hello $HOME *") == "hello $HOME *"
    assert await answer(described("/bin/cat", stdin="{text}"), text="as\nit is\n") == "as\nit is"
    assert await answer(described("/bin/cat", stdin="{value}", output="json"), value="[1, null]") == [1, None]
    assert await answer(described(SH, "-c", "exit 1", exit_codes=(0, 1))) == ""


@pytest.mark.integration
@needs_box
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (described(SH, "-c", "echo no such thing >&2; exit 3"), "command-failed", "ended with 3: no such thing"),
        (described(SH, "-c", "echo half; exit 3"), "command-failed", "ended with 3: half"),
        (described("/nowhere/program"), "command-missing", "the program '/nowhere/program' does not exist"),
        (described("/bin/echo", "no json", output="json"), "command-output", "is not JSON"),
        (described("/bin/sleep", "60", timeout="200ms"), "tool-timeout", "did not end within 0.2 s"),
        (described("/usr/bin/yes", output_max="10KB"), "tool-output-too-large", "printed more than 10000 bytes"),
        (described(SH, "-c", "while :; do echo x >&2; done", output_max="10KB"), "tool-output-too-large", "10000"),
    ],
)
async def test_a_failed_command_reports_the_reason(command: CommandDescription, code: str, message: str) -> None:
    told = await failure(command)
    assert told.code == code
    assert message in told.message


@pytest.mark.integration
async def test_errors_of_the_sandbox_are_not_output_of_the_program() -> None:
    box_or_skip("bubblewrap")
    search = described("/bin/grep", "--", "{word}", "/nowhere/book", read=["/nowhere/book"], exit_codes=(0, 1))
    told = await failure(search, box="bubblewrap", word="x")
    assert told.code == "sandbox-failed"
    assert "/nowhere/book" in told.message
    pretends = described(SH, "-c", "echo 'bwrap: no' >&2; exit 1", exit_codes=(0, 1))
    assert (await failure(pretends, box="bubblewrap")).code == "sandbox-failed"


@pytest.mark.integration
@needs_box
async def test_a_command_reads_only_paths_that_the_operator_allows(tmp_path: Path) -> None:
    open_, closed = tmp_path / "open", tmp_path / "closed"
    for directory in (open_, closed):
        directory.mkdir()
        (directory / "notes").write_text("notes of " + directory.name)
    command = described("/bin/cat", "{file}", read=[str(open_)])
    assert await answer(command, file=str(open_ / "notes")) == "notes of open"
    assert (await failure(command, file=str(closed / "notes"))).code == "command-failed"
    (open_ / "way").symlink_to(closed / "notes")
    assert (await failure(command, file=str(open_ / "way"))).code == "command-failed"
    assert await failure(described(SH, "-c", 'echo x > "$0"', "{file}", read=[str(open_)]), file=str(open_ / "notes"))
    assert (open_ / "notes").read_text() == "notes of open"


@pytest.mark.integration
@needs_box
async def test_a_command_that_the_sandbox_cannot_confine_is_refused() -> None:
    box_or_skip("landlock")
    for asked, lacking in (({"processes": 5}, "a program that starts others"), ({"files": "1MB"}, "files of its own")):
        told = await failure(described("/bin/echo", "x", **asked), box="landlock")
        assert (told.code, told.message) == ("sandbox-missing", f"the sandbox 'landlock' does not support {lacking}")


@pytest.mark.requirement("T1-5")
async def test_no_command_runs_without_a_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    take_boxes_away(monkeypatch)
    made = tmp_path / "made"
    assert (await failure(described("/usr/bin/touch", "{file}"), file=str(made))).code == "sandbox-missing"
    assert os.listdir(tmp_path) == []


@pytest.mark.integration
@pytest.mark.parametrize("box", BOXES)
async def test_arguments_reach_the_program_unchanged(box: BoxName) -> None:
    box_or_skip(box)
    program = "import sys, json; print(json.dumps(sys.argv[1:]))"
    texts = {"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}}
    more = {"output": "json", "read": [sys.base_prefix], "parameters": texts}
    command = described(PYTHON, "-I", "-S", "-c", program, "--", "{words}", **more)
    words: list[Json] = ["a b", "", "$(id)", "'", '"', "\\", "\n", "-x", "*", "日本", "%s", "{words}"]
    assert await answer(command, box=box, words=words) == ["--", *words]
