"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import click

from pointsman.cli.error_boundary import OutputMode
from pointsman.definition.model.base import read_duration
from pointsman.definition.problems import did_you_mean
from pointsman.definition.reading.documents import BYTES_MAX, read_document
from pointsman.errors import sentences
from pointsman.executions.opening import GivenAnswer
from pointsman.values import Json, JsonObject

Decorated = TypeVar("Decorated", bound=Callable[..., object])


def _remember_json(ctx: click.Context, param: click.Parameter, value: bool) -> bool:  # noqa: FBT001 - click's signature
    output_mode = ctx.find_root().obj
    if isinstance(output_mode, OutputMode) and value:
        output_mode.json = True
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,
    callback=_remember_json,
    help="Print one JSON object and nothing else on standard output.",
)


def not_empty(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Reject an empty value: an unset shell variable must not select another store, key or conversation."""
    if value == "":
        raise click.BadParameter("the value is empty. Omit the option, or give a value.", ctx, param)
    return value


class ExistingName(click.Path):
    """File name that is not empty."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if value == "":
            self.fail("the name is empty. Omit it, or name a file.", param, ctx)
        return Path(str(value))


store_option = click.option(
    "--store",
    metavar="URL",
    callback=not_empty,
    help="Address of the store: sqlite:///file.db, postgresql://…, memory: (default on Linux: "
    "~/.local/share/pointsman/pointsman.db).",
)
runtime_option = click.option(
    "--runtime",
    metavar="URL",
    callback=not_empty,
    help="Address of the engine that decides which worker drives an execution: temporal://HOST:PORT[/NAMESPACE] "
    "or restate://HOST:PORT (default: the processes that open the store drive).",
)
model_option = click.option(
    "--model",
    metavar="MODEL",
    callback=not_empty,
    help="The model of every agent: provider:name, or scripted (offline, deterministic).",
)


def _remember_tools(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    output_mode = ctx.find_root().obj
    if isinstance(output_mode, OutputMode):
        output_mode.tool_modules = value


_script_option = click.option(
    "--script", metavar="FILE", type=ExistingName(), help="Script with the answers of the scripted model and its tools."
)
_tools_option = click.option(
    "--tools",
    metavar="MODULE",
    multiple=True,
    callback=_remember_tools,
    expose_value=False,
    help="Python module with tools, such as `tools` for tools.py in this directory. May be repeated.",
)


def script_option(command: Decorated) -> Decorated:
    """Add the options for a command that performs workflows: a script, and modules of tools."""
    return _script_option(_tools_option(command))


dialect_option = click.option(
    "--dialect", metavar="NAME", help="native, rows, graph, steps or plan (default: detected)."
)
lenient_option = click.option(
    "--lenient", is_flag=True, help="Ignore edges to missing nodes, with a warning, instead of refusing."
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Show no progress.")


class Pair(click.ParamType[tuple[str, str]]):
    """NAME=VALUE; the value is not parsed."""

    name = "NAME=VALUE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, equals, text = str(value).partition("=")
        if not equals or not name:
            self.fail(f"{str(value)[:60]!r} is not NAME=VALUE.", param, ctx)
        return name, text


class AnswerPair(click.ParamType[GivenAnswer]):
    """NODE=JSON, where JSON is an action or {"action", "data", "comment"}."""

    name = "NODE=JSON"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> GivenAnswer:
        if isinstance(value, GivenAnswer):
            return value
        node, text = Pair().convert(value, param, ctx)
        return answer_of(node, text, param, ctx)


var_option = click.option(
    "--var", "variables", type=Pair(), multiple=True, metavar="NAME=VALUE", help="Value of ${NAME}. Repeatable."
)


by_option = click.option(
    "--as",
    "by",
    default=lambda: os_user(),
    metavar="NAME",
    help="The person who starts it and owns its user memory (default: your login).",
)


def person_options(command: Decorated) -> Decorated:
    """Add the options `--as` and `--group` of the acting person."""
    by = click.option("--as", "--by", "by", default=os_user, metavar="NAME", help="Your name (default: your login).")
    groups = click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group of yours. Repeatable.")
    return by(groups(command))


def os_user() -> str:
    """Return the login of the current user; empty if the system has no name for it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # ImportError: on Windows, where no variable names the user.
        return ""


ANSWER_KEYS: Final = ("action", "data", "comment", "digest")


def answer_of(
    node: str, text: str, param: click.Parameter | None = None, ctx: click.Context | None = None
) -> GivenAnswer:
    """Parse the answer to a gate. A single word is an action."""
    value = value_of(text, what="the answer", param=param, ctx=ctx)
    if isinstance(value, str) and value:
        return GivenAnswer(node, value)
    if isinstance(value, dict):
        action, comment = value.get("action"), value.get("comment", "")
        digest = value.get("digest", "")
        if digest == "" and "digest" in value:
            message = f"the answer for {node!r} has an empty digest. Copy the gate's digest, or omit it."
            raise click.BadParameter(message, ctx, param)
        unknown = sorted(set(value) - {*ANSWER_KEYS})
        if unknown:
            near = did_you_mean(unknown[0], ANSWER_KEYS)
            message = f"the answer for {node!r} has no key {unknown[0]!r}. {near}".rstrip()
            raise click.BadParameter(f"{message} Its keys are {', '.join(ANSWER_KEYS)}.", ctx, param)
        if isinstance(action, str) and isinstance(comment, str) and isinstance(digest, str):
            return GivenAnswer(node, action, value.get("data"), comment, digest=digest)
    raise click.BadParameter(
        f'the answer for {node!r} must be an action such as approve, or {{"action": …, "data": …, "comment": …}}.',
        ctx,
        param,
    )


def length_of_time(text: str | None, option: str) -> float | None:
    """Return the seconds of a duration such as `90s` or `30d`."""
    try:
        return None if text is None else read_duration(text).seconds
    except ValueError as why:
        raise click.BadParameter(f"{text!r} is not a duration: {why}", param_hint=option) from None


def value_of(text: str, *, what: str, param: click.Parameter | None = None, ctx: click.Context | None = None) -> Json:
    """Parse a text that begins like JSON as JSON, and a scalar of JSON as that; return any other text unchanged."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"'):
        document = read_document(stripped)
        if not document.is_readable:
            first = next(problem for problem in document.problems if problem.severity == "error")
            place = f"line {first.line}, column {first.column}: " if first.line else ""
            raise click.BadParameter(f"{what} is not JSON: {place}{sentences(first.message, first.hint)}", ctx, param)
        return document.value
    return scalar_of(text)


def scalar_of(text: str) -> Json:
    """Return true, false, null and finite numbers as JSON values, any other text unchanged."""
    import json

    try:
        value = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def lenient_value(text: str) -> Json:
    """Return the JSON value of a text, or the text if it is not valid JSON."""
    if text.strip()[:1] in ("{", "[", '"'):
        document = read_document(text.strip())
        return document.value if document.is_readable else text
    return scalar_of(text)


def input_of(argument: str | None, fields: tuple[tuple[str, str], ...], schema: JsonObject | None = None) -> Json:
    """Return `--input` with the fields of `-i`. Fields declared as strings by the schema are not parsed: `-i n=12`.

    Raises `UsageError` for a field of `-i` that the schema does not declare, unless it sets `additionalProperties`.
    """
    base = None if argument is None else _input(argument)
    if not fields:
        return base
    if base is not None and not isinstance(base, dict):
        raise click.UsageError("-i adds fields to an object, but --input is not an object")
    merged: JsonObject = dict(base or {})
    for name, _ in fields:
        _must_be_declared(name, schema)
    merged.update((name, _field(text, name, schema)) for name, text in fields)
    return merged


def _must_be_declared(name: str, schema: JsonObject | None) -> None:
    properties = (schema or {}).get("properties")
    if not isinstance(properties, dict) or not properties or name in properties or schema is None:
        return
    if schema.get("additionalProperties") or "patternProperties" in schema:
        return
    near = did_you_mean(name, properties) or f"Its fields: {', '.join(properties)}."
    raise click.UsageError(f"the input of the workflow has no field {name!r}. {near} --input passes other fields.")


def _field(text: str, name: str, schema: JsonObject | None) -> Json:
    value, properties = lenient_value(text), (schema or {}).get("properties")
    field = properties.get(name) if isinstance(properties, dict) else None
    wants_text = isinstance(field, dict) and field.get("type") == "string"
    return text if wants_text and not isinstance(value, str) else value


def _input(text: str) -> Json:
    if text != "-" and not text.startswith("@"):
        return value_of(text, what="--input")
    name = "standard input" if text == "-" else text[1:]
    if not name:
        raise click.BadParameter("the file name after @ is missing.", param_hint="--input")
    try:
        if text == "-":
            data = sys.stdin.buffer.read(BYTES_MAX + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(BYTES_MAX + 1)
    except OSError as why:
        raise click.BadParameter(f"{name!r} cannot be read: {why.strerror}.", param_hint="--input") from None
    if len(data) > BYTES_MAX:
        raise click.BadParameter(
            f"{name!r} is larger than {BYTES_MAX // 1024 // 1024} MiB, the limit for an input. "
            "Store the data where a tool of the workflow can read them, and pass their address.",
            param_hint="--input",
        )
    document = read_document(data, name=name)
    if not document.is_readable:
        first = next(problem for problem in document.problems if problem.severity == "error")
        message = f"{name}:{first.line}:{first.column}: {sentences(first.message, first.hint)}"
        raise click.BadParameter(message, param_hint="--input")
    return document.value
