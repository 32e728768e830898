"""`pointsman init`: writes a starter project that runs and passes its tests offline."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

import click

from pointsman.cli.options import json_option
from pointsman.cli.printing import print_json, say
from pointsman.errors import CallerError, OperatorError

SETTINGS: Final = """\
# Settings of this directory. `pointsman settings` shows all of them with their values.
model = "scripted"                   # offline, invented answers; a real one: "openai:gpt-5-mini"
store = "sqlite:///pointsman.db"

[tools]
python = ["tools"]                   # functions of tools.py
"""
WORKFLOW: Final = """\
pointsman: 1
id: letter
entry: draft
input:
  type: object
  required: [topic]
  properties:
    topic: {type: string}
output: {letter: letter, words: words}
nodes:
  - id: draft
    type: agent
    config: {prompt: "Write a short letter about {topic}."}
    outputs: {letter: result}
  - id: count
    type: tool
    config: {tool: count_words, parameters: {text: "{letter}"}}
    outputs: {words: result}
  - id: review
    type: human
    config:
      message: Send this letter?
      show: [letter, words]
      options: [{value: approve}, {value: again, label: Write it again}]
  - {id: done, type: end}
edges:
  - {source: draft, target: count}
  - {source: count, target: review}
  - {source: review, target: done, condition: {type: label, label: approve}}
  - {source: review, target: draft, condition: {type: label, label: again}}
"""
SCRIPT: Final = """\
# Answers of the model for tests, and for `pointsman run letter.yaml --script script.yaml`.
rules:
  - {node: draft, visit: 1, text: "Dear all, the ships are late."}
  - {node: draft, visit: 2, text: "Dear all, the ships come on Friday."}
"""
TEST: Final = """\
# `pointsman test .` runs these cases: offline, in memory, without waiting.
workflow: letter.yaml
script:
  rules:
    - {node: draft, visit: 1, text: "Dear all, the ships are late."}
    - {node: draft, visit: 2, text: "Dear all, the ships come on Friday."}
  tools: {count_words: {result: 6}}  # tests call no function of tools.py
input: {topic: ships}
cases:
  - name: an approved letter is the output
    answers: {review: approve}
    expect:
      path: [draft, count, review, done]
      output: {letter: "Dear all, the ships are late.", words: 6}
  - name: a refused letter is written again
    answers: {review: [again, approve]}
    expect:
      output: {letter: "Dear all, the ships come on Friday."}
  - name: the letter waits for a person
    expect: {waiting: review}
"""
TOOLS: Final = '''\
"""Tools of the workflows in this directory. The signature and the docstring of a function become its schema."""

from pointsman import tool


@tool
def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())
'''
FILES: Final = {
    "pointsman.toml": SETTINGS,
    "letter.yaml": WORKFLOW,
    "script.yaml": SCRIPT,
    "letter.test.yaml": TEST,
    "tools.py": TOOLS,
}
NEXT: Final = """\
Next{directory}:
  pointsman run letter.yaml --script script.yaml -i topic=ships
  pointsman answer last review approve
  pointsman test ."""


class FileExists(CallerError):
    """A file that the command would write exists already. Nothing was written."""

    code: ClassVar[str] = "file-exists"


class DirectoryUnwritable(OperatorError):
    """The directory or a file in it cannot be written."""

    code: ClassVar[str] = "directory-unwritable"


@click.command()
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@json_option
def init(directory: Path, *, as_json: bool) -> None:
    """Write a starter project: a workflow with an agent, a tool and a gate, its test, its script and settings.

    It runs and passes its test offline. Existing files are never overwritten: if one of the names is taken,
    nothing is written.
    """
    written = write_project(directory)
    if as_json:
        print_json({"directory": str(directory), "files": [*written]})
        return
    for name in written:
        say(f"wrote {directory / name}")
    click.echo(NEXT.format(directory="" if directory == Path() else f", in {directory}"))


def write_project(directory: Path) -> list[str]:
    """Write the files of the starter project and return their names.

    Raises `FileExists` before anything is written, and `DirectoryUnwritable`.
    """
    taken = [name for name in FILES if (directory / name).exists()]
    if taken:
        raise FileExists(
            f"{', '.join(map(repr, taken))} exist in {str(directory)!r}; nothing was written",
            hint="Name an empty directory: pointsman init DIR",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            with (directory / name).open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except OSError as why:
        name = str(why.filename or directory)
        raise DirectoryUnwritable(
            f"{name!r} cannot be written: {why.strerror}", hint="Name a directory in which you may write."
        ) from None
    return [*FILES]
