"""Pages are true: commands print the shown output, quoted files match, Python runs, links exist."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from pointsman.cli.error_boundary import run_guarded
from pointsman.models.provider import KEYS_OF_PROVIDERS
from tests.docs.console import Block, CommandOutput, Terminal, blocks_of, commands_of, shown_in
from tests.sandboxes import why_no_box

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
]
INTEROP = ("langchain_core", "langgraph")
"""Libraries with a lock of their own, `tests/interop/requirements.lock`."""
BLOCKS: Final = [(page, block) for page in PAGES for block in blocks_of(page)]
TUTORIALS: Final = frozenset({"docs/tutorial.md", "docs/tutorial/first-workflow.md"})
IN_ORDER: Final = [
    page
    for page in PAGES
    if str(page.relative_to(ROOT)) in TUTORIALS or any(block.file for known, block in BLOCKS if known == page)
]
"""Pages whose blocks are run in order, in one directory and one store."""
LINK: Final = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def each(name: str, chosen: list[tuple[Path, Block]]) -> pytest.MarkDecorator:
    ids = [f"{page.relative_to(ROOT)}:{block.line}" for page, block in chosen]
    return pytest.mark.parametrize(("page", name), chosen, ids=ids)


def is_program(block: Block) -> bool:
    return block.language == "python" and "import " in block.text and not block.about


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the repository's files, without settings or keys."""
    for name in [*os.environ]:
        if name.startswith("POINTSMAN_") or name in KEYS_OF_PROVIDERS:
            monkeypatch.delenv(name)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("POINTSMAN_MODEL", "scripted")  # The pages tell their readers to set it.
    monkeypatch.setenv("POINTSMAN_DELAYS", "false")
    monkeypatch.setenv("COLUMNS", "120")
    here = tmp_path / "here"
    here.mkdir()
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (here / entry.name).symlink_to(entry)
    monkeypatch.chdir(here)
    return tmp_path


def run(words: list[str]) -> CommandOutput:
    """Run a command; both streams are in the order of a terminal. `pointsman` and programs run in this process."""
    if words[0] == "pytest":
        done = subprocess.run(
            [sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return CommandOutput(done.stdout, done.returncode)
    with io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) as terminal:
        with contextlib.redirect_stdout(terminal), contextlib.redirect_stderr(terminal):
            code = run_program(words[1]) if words[0] == "python" else run_guarded(commands_words(words))
        terminal.seek(0)
        return CommandOutput(terminal.read(), code)


def commands_words(words: list[str]) -> list[str]:
    """Return the arguments of a command of Pointsman."""
    assert words[0] == "pointsman", f"a page can run pointsman, python FILE and pytest, not {words[0]!r}"
    return words[1:]


def run_program(file: str) -> int:
    runpy.run_path(file, run_name="__main__")
    return 0


@pytest.mark.integration
@each("block", [(page, block) for page, block in BLOCKS if block.language == "console" and page not in IN_ORDER])
def test_a_console_prints_what_the_page_shows(page: Path, block: Block, at_home: Path) -> None:
    if block.about == "sandbox" and (why := why_no_box()):
        pytest.skip(why)
    assert [*commands_of(block.text)] != []
    assert Terminal(run).play(block.text) == ""


@each("block", [(page, block) for page, block in BLOCKS if "/" in block.about])
def test_a_quotation_matches_its_file(page: Path, block: Block) -> None:
    assert block.text in (ROOT / block.about).read_text(encoding="utf-8")


@pytest.mark.integration
@each("block", [(page, block) for page, block in BLOCKS if is_program(block) and page not in IN_ORDER])
def test_python_blocks_run(page: Path, block: Block, at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = [name for name in INTEROP if f"from {name}." in block.text and find_spec(name) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed: make .venv/interop.stamp")
    exec(compile(block.text, f"{page.name}:{block.line}", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own page
    assert capsys.readouterr().out != ""


@pytest.mark.integration
@pytest.mark.parametrize("page", IN_ORDER, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_can_be_worked_through_in_one_store(
    page: Path, at_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later blocks use the files and the executions of earlier ones."""
    monkeypatch.setattr(sys, "path", [str(Path.cwd()), *sys.path])
    terminal = Terminal(run)
    for block in (one for known, one in BLOCKS if known == page):
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            assert terminal.play(block.text) == ""
        elif is_program(block):
            test_python_blocks_run(page, block, at_home, capsys)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_existing_pages(page: Path) -> None:
    linked = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in linked if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    ("shows", "output", "fits"),
    [
        (("a", "b"), "a\nb\n", True),
        (("a",), "a\nb\n", False),
        (("a", "…"), "a\nb\nc\n", True),
        (("…", "c"), "a\nb\nc\n", True),
        (("took … s",), "took 1.3 s\n", True),
        (("a.c",), "abc\n", False),
        ((), "", True),
        ((), "a\n", False),
    ],
)
def test_shown_output_is_compared_line_by_line(*, shows: tuple[str, ...], output: str, fits: bool) -> None:
    assert shown_in(shows, output) is fits
