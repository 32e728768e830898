"""Pictures in notebooks: workflows as Mermaid, executions with gates and timeline as HTML without scripts."""

from __future__ import annotations

from html.parser import HTMLParser

from pointsman import Pointsman, Workflow
from pointsman.dialects.export.mermaid import draw
from pointsman.executions.notebook import execution_html
from pointsman.settings import Settings
from pointsman.sync import Pointsman as SyncPointsman
from pointsman.workflows.builder import WorkflowBuilder

EVIL = "<script>alert('x')</script>"


class Tags(HTMLParser):
    """Collects the tags of a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)


def letter() -> WorkflowBuilder:
    wf = Workflow.build("letter")
    first = wf.transform("first", set={"text": f"'{EVIL.replace(chr(39), chr(34))}'"})
    wf.human("review", after=first, message=f"Send {EVIL}?", show=["text"])
    return wf


def test_a_workflow_is_drawn_as_mermaid() -> None:
    workflow = Workflow.of(letter())
    shown = workflow._repr_markdown_()  # pyright: ignore[reportPrivateUsage] - notebooks call it
    assert shown == f"```mermaid\n{draw(workflow.definition)}```\n"


async def test_an_execution_shows_gates_and_timeline_without_markup_of_its_texts() -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        execution = await app.run(letter())
        shown, whole = execution._repr_html_(), await execution.html()  # pyright: ignore[reportPrivateUsage] - notebooks call it
    assert set(Tags(whole).found) <= {"div", "b", "code", "pre", "table", "tr", "td"}
    assert "execution.answer(&#x27;review&#x27;, &#x27;approve&#x27;)" in shown
    assert "waiting" in shown
    assert "table" not in Tags(shown).found
    assert Tags(whole).found.count("tr") >= 1


async def test_a_failed_execution_shows_its_failure() -> None:
    wf = Workflow.build("fails")
    wf.transform("bad", set={"n": "1 / 0"})
    async with Pointsman("memory:", settings=Settings()) as app:
        execution = await app.run(wf)
        shown = execution_html(execution.state)
    failure = execution.state.outcome.failure
    assert failure is not None
    assert f"[{failure.code}]" in shown


def test_the_mirror_without_await_shows_the_timeline() -> None:
    with SyncPointsman("memory:", settings=Settings()) as app:
        execution = app.run(letter())
        execution.answer("review", "approve")
        execution.settled()
        shown = str(getattr(execution, "_repr_html_")())  # noqa: B009 - the stub leaves it out, notebooks call it
    assert "table" in Tags(shown).found
    assert "completed" in shown
