"""Every code block is run or checked: each language has a rule, and blocks without a rule are refused.

console, saved files, programs     run: `test_docs.py`
quotations of files                compared with them: `test_docs.py`
`wrong`, `right`                   checked as examples of problems: `test_problems_reference.py`
yaml                               a workflow or a part of one: its keys and types are right; other kinds are named
toml                               settings: they are accepted
sh, indented commands              commands of Pointsman exist, with these options
json                               can be read; `…` stands for any text
py                                 programs that need a server or another product: they can be compiled
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
from ruamel.yaml import YAML

from pointsman.cli.entry import root
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.reading.documents import read_document
from pointsman.settings import Settings, load_settings
from pointsman.testing.cases import WorkflowCase
from tests.checking import check_document
from tests.docs.console import Block
from tests.docs.test_docs import BLOCKS, ROOT, each, is_program

SHAPE: Final = frozenset(
    {"bad-value", "duplicate-key", "missing-key", "out-of-range", "shape", "unknown-key", "unreadable", "wrong-type"}
)
"""Problems that a part of a workflow must not have; others come from what it leaves out."""
SHOWN: Final = frozenset({"", "mermaid", "nginx", "text"})
"""Languages of blocks that show something which is neither a program nor a document of Pointsman."""
OTHER_FILES: Final = frozenset({"prometheus", "script", "test"})
"""Kinds of YAML files besides workflows."""
OTHER_SETTINGS: Final = frozenset({"restate"})
"""Products whose TOML files are shown: they can be read."""
INDENTED: Final = re.compile(r"^    (pointsman .+)$", re.MULTILINE)
FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
WORKFLOW_KEYS: Final = frozenset(field.alias or name for name, field in WorkflowDefinition.model_fields.items())


def is_elsewhere(block: Block) -> bool:
    return bool(
        block.language == "console"
        or block.file
        or "/" in block.about
        or block.about in ("wrong", "right")
        or is_program(block)
    )


CHECKED: Final = [(page, block) for page, block in BLOCKS if not is_elsewhere(block)]


def of(language: str, *about: str) -> list[tuple[Path, Block]]:
    return [
        (page, block) for page, block in CHECKED if block.language == language and (not about or block.about in about)
    ]


def test_every_block_has_a_rule() -> None:
    ruled = {"json", "py", "python", "sh", "toml", *SHOWN}
    without = [
        f"{page.relative_to(ROOT)}:{block.line}"
        for page, block in CHECKED
        if not (
            (block.language in ruled and not block.about)
            or (block.language == "yaml" and (not block.about or block.about in OTHER_FILES))
            or (block.language == "toml" and block.about in OTHER_SETTINGS)
        )
    ]
    assert without == [], "give the block one of the forms of this module"


def read_yaml(text: str) -> Any:
    reader: Any = YAML(typ="safe")
    return reader.load(text)


def document_of(block: Block) -> dict[str, Any]:
    """Return a whole workflow for a part of one: nodes, keys of a node, or keys of the workflow."""
    data = read_yaml(block.text)
    if "nodes" not in data and block.text.lstrip().startswith("-"):
        data = {"nodes": data}
    elif not data.keys() <= WORKFLOW_KEYS or "outputSchema" in str(data.get("config", "")):
        data = {"nodes": [{"id": "part", "type": "agent", **data}]}
    return {"id": "example", "nodes": [], "edges": [], **data}


@each("block", of("yaml", ""))
def test_a_part_of_a_workflow_has_right_keys_and_types(page: Path, block: Block) -> None:
    document = document_of(block)
    if "config" in document and not is_right(document):  # `config` of a node
        document = {
            "id": "example",
            "nodes": [{"id": "part", "type": "agent", "config": document["config"]}],
            "edges": [],
        }
    assert shape_problems(document) == []


def is_right(document: dict[str, Any]) -> bool:
    return not shape_problems(document)


def shape_problems(document: dict[str, Any]) -> list[str]:
    problems = check_document(read_document(json.dumps(document).encode()), name="example").problems
    return [f"{one.code}: {one.message}" for one in problems if one.code in SHAPE]


@each("block", of("yaml", "test"))
def test_a_workflow_test_has_right_keys(page: Path, block: Block) -> None:
    known = {field.alias or name for name, field in WorkflowCase.model_fields.items()} | {"cases"}
    assert read_yaml(block.text).keys() <= known


@each("block", of("toml"))
def test_settings_of_a_page_are_accepted(
    page: Path, block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tomllib.loads(block.text).keys() == {"project"} or block.about in OTHER_SETTINGS:
        return  # pyproject.toml, or a file of another product
    (tmp_path / "pointsman.toml").write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    assert load_settings(environment={}) != Settings()


@each("block", of("json"))
def test_json_can_be_read(page: Path, block: Block) -> None:
    assert json.loads(block.text)


@each("block", [*of("py"), *of("python")])
def test_a_program_that_is_not_run_can_be_compiled(page: Path, block: Block) -> None:
    assert compile(block.text, f"{page.name}:{block.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def commands_in(text: str) -> Iterator[str]:
    """Yield the commands of Pointsman in a shell script, without redirections, pipes and substitutions."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|\|\||[|;&#]|(?<=\s)\d?[<>]+\s*\S+", outside_quotes(line)):
            words = part.strip()
            if words.startswith("pointsman "):
                yield restored(words)


def outside_quotes(line: str) -> str:
    """Replace the signs of the shell within quotes by letters of a private range."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", lambda quoted: quoted[0].translate(HIDDEN), line)


HIDDEN: Final = {ord(sign): 0xE000 + number for number, sign in enumerate("&|;<>#")}
SHOWN_AGAIN: Final = {hidden: chr(sign) for sign, hidden in HIDDEN.items()}


def restored(words: str) -> str:
    return words.translate(SHOWN_AGAIN)


SCRIPTS: Final = [
    *((page, command) for page, block in of("sh") for command in commands_in(block.text)),
    *(
        (page, command)
        for page in sorted({page for page, _ in BLOCKS})
        if page.name != "cli.md"
        for command in commands_in("\n".join(INDENTED.findall(FENCE.sub("", page.read_text(encoding="utf-8")))))
    ),
]


@pytest.mark.parametrize(
    ("page", "command"), SCRIPTS, ids=[f"{page.name}-{number}" for number, (page, _) in enumerate(SCRIPTS)]
)
def test_a_command_exists_with_these_options(page: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    parse(shlex.split(command))


def parse(words: list[str]) -> None:
    """Read a command line without performing it. Raises `click.UsageError`; files need not exist."""
    command: click.Command = root
    context, arguments = click.Context(root, info_name="pointsman"), words[1:]
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        name, found, arguments = command.resolve_command(context, arguments)
        assert found is not None
        command, context = found, click.Context(found, info_name=name, parent=context)
    missing = ""
    try:
        command.make_context(context.info_name, arguments, parent=context.parent)
    except click.exceptions.Exit:
        pass  # --version
    except click.BadParameter as why:
        missing = why.message
    assert missing == "" or "does not exist" in missing


def test_a_wrong_option_is_found() -> None:
    parse(["pointsman", "run", "letter.yaml", "-q"])
    with pytest.raises(click.UsageError):
        parse(["pointsman", "run", "letter.yaml", "--loud"])


def test_commands_are_found_in_scripts() -> None:
    script = "pass x | pointsman secrets set X\npointsman list && pointsman show exec-1 > file # why\ncurl -f x"
    assert [*commands_in(script)] == ["pointsman secrets set X", "pointsman list", "pointsman show exec-1"]
