"""Workflows that are built in code: they are documents, and errors name the line of the caller's code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from pointsman import Pointsman, Workflow
from pointsman.definition.model.control import Case, HumanOption
from pointsman.definition.model.nodes import CONFIG_OF, Equals, Node
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import WorkflowInvalid
from pointsman.settings import Settings
from pointsman.workflows import builder, node_options
from pointsman.workflows.builder import WorkflowBuilder
from pointsman.workflows.scripts import parse_script

HERE = __file__
LINES = Path(HERE).read_text(encoding="utf-8").splitlines()


@dataclass
class Grade:
    stars: int


def price(article: str) -> float:
    """Return the price of an article."""
    return {"pen": 1.5}[article]


def desk() -> WorkflowBuilder:
    wf = Workflow.build("desk", name={"en": "Desk", "de": "Redaktion"}, output={"draft": "draft"})
    draft = wf.agent("draft", prompt="Write about {topic}", outputs={"draft": "result"})
    wf.human("review", after=draft, message="Good?", show=["draft"], form=Grade).on("reject", draft).on(
        "approve", "END"
    )
    return wf


def every_type() -> WorkflowBuilder:
    """Return a workflow with nodes of every type, a loop, and a parallel with its join."""
    wf = Workflow.build("all", input={"type": "object"}, config={"limits": {"steps": 100}})
    begin = wf.start("begin", set={"n": "0"})
    wf.note("about", text="All types.")
    loop = wf.loop("rounds", after=begin, max_iterations=2)
    wf.transform("count", set={"n": "n + 1"}, after=loop).then(loop)
    each = wf.parallel("each", items="[1, 2]", as_="one")
    loop.then(each)
    wf.tool("price", tool=price, parameters={"article": "pen"}, after=each)
    joined = wf.join("joined", after="price", wait="all", aggregate="list", of=each)
    choice = wf.decision("choice", cases=[Case(when="n > 1", label="many")], default="few", after=joined)
    many = wf.agent("many", prompt="Write", tools=["later"], execution={"retries": 2})
    choice.on("many", many).on("few", "END")
    executor = wf.tool_executor("calls", after=many)
    gate = wf.human("gate", options=[HumanOption(value="go")], timeout="1d", on_timeout=executor, after=executor)
    wait = wf.wait("wait", duration="1s")
    gate.on("go", wait)
    wf.memory("keep", scope="execution", operation="set", key="n", value="n", after=wait)
    wf.workflow("child", workflow="other@1", input={"n": "n"}, after="keep")
    wf.code("code", source="n + 1", inputs={"n": "n"}, after="child")
    wf.emit("emit", event="done", data={"n": "{n}"}, after="code")
    wf.http("http", url="https://example.com", method="GET", after="emit").on_error("emit", codes=["timeout"])
    wf.progress("say", message="Going on", after="http")
    wf.template_render("page", template="# {title}", bind={"title": "n"}, after="say")
    wf.planner("plan", goal="Plan it", max_tasks=3, after="page")
    verifier = wf.verifier("verify", criteria="Complete", after="plan")
    verifier.on("retry", "plan").otherwise("record")
    record = wf.structured_record("record", schema_={"type": "object"}, input="n", records="rows")
    end = wf.end("end", terminate=True, output="rows")
    wf.node("sms", "sms", metadata={"own": True}, after=record)
    record.when("n > 1", end).to(end, condition=Equals(field="n", value=1))
    return wf


@pytest.mark.parametrize("build", [desk, every_type])
def test_a_built_workflow_reads_back_from_yaml(build: Callable[[], WorkflowBuilder]) -> None:
    wf = build()
    built = Workflow.of(wf)
    assert built.problems == ()
    assert Workflow.parse(wf.to_yaml()).definition == built.definition
    assert built.definition.to_document() == wf.to_dict()


def test_every_type_of_nodes_and_every_field_is_an_option() -> None:
    names = {kind: f"{model.__name__.removesuffix('Config')}NodeOptions" for kind, model in CONFIG_OF.items()}
    common = options_of(node_options.NodeOptions)
    assert common - {"after"} == set(Node.model_fields) - {"id", "type", "config"}
    assert options_of(node_options.WorkflowOptions) == set(WorkflowDefinition.model_fields) - {
        *("pointsman", "id", "nodes", "edges", "dialect")
    }
    for kind, model in CONFIG_OF.items():
        method = getattr(WorkflowBuilder, kind.replace("-", "_"))
        taken = getattr(node_options, names[kind], node_options.NodeOptions)
        assert taken.__name__ in method.__annotations__["options"]
        # `inputs` of these two is the option of every node, or of the workflow.
        assert options_of(taken) - common == set(model.model_fields) - common, kind


def options_of(options: type[Any]) -> set[str]:
    return set(get_type_hints(options))


async def test_a_built_workflow_runs_to_its_gate_and_repeats_a_step() -> None:
    script = parse_script("rules: [{node: draft, visit: 1, text: one}, {node: draft, text: two}]")
    async with Pointsman("memory:", settings=Settings(), script=script) as app:
        execution = await app.run(desk(), {"topic": "tides"})
        await execution.answer("review", "reject")
        await execution.settled()
        await execution.answer("review", "approve", Grade(5))
        assert await execution.output() == {"draft": "two"}


def line_of(text: str) -> int:
    (found,) = [at for at, line in enumerate(LINES, 1) if line.endswith(f"# {text}")]
    return found


WRONG: dict[str, Callable[[WorkflowBuilder], object]] = {
    "'config' of node 'a' has no key 'modle'": lambda wf: wf.agent("a", modle="x"),  # pyright: ignore[reportCallIssue, reportUnknownLambdaType] - wrong on purpose
    "must be at least 1": lambda wf: wf.loop("a", max_iterations=0),
    "must be a length of time": lambda wf: wf.wait("a", duration="soon"),
    "node 'a': tool: a lambda has no name": lambda wf: wf.tool("a", tool=lambda: None),
    "node 'a': set.n is a function": lambda wf: wf.transform("a", set={"n": price}),  # pyright: ignore[reportArgumentType] - wrong on purpose
    r"config.settings.x is a value of type object": lambda wf: Workflow.build(
        "b", config={"settings": {"x": object()}}
    ),
    "the node 'draft' belongs to the workflow 'desk', not to 'wrong'": lambda wf: wf.end("a", after=foreign()),
    "the node 'known' was already added at test_builder.py": lambda wf: wf.end("known"),
    "has the unknown condition type": lambda wf: wf.end("a").to("known", condition={"type": "sometimes"}),
}


def foreign() -> builder.NodeBuilder:
    return Workflow.build("desk").agent("draft")


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_call_is_refused_with_its_line(message: str) -> None:
    wf = Workflow.build("wrong")
    wf.end("known")
    with pytest.raises(WorkflowInvalid, match=message) as caught:
        WRONG[message](wf)
    (problem,) = caught.value.problems
    line = next(at for at, text in enumerate(LINES, 1) if f'{message}"' in text)
    assert (problem.file, problem.line) == (HERE, line)
    assert str(caught.value).startswith(f"{HERE}:{line}: ")


async def test_an_error_of_the_graph_names_the_line_that_made_it() -> None:
    wf = Workflow.build("wrong")
    wf.transform("first", set={"n": "1 +"})  # a wrong expression
    wf.end("done", after="frist")  # a wrong id
    async with Pointsman("memory:", settings=Settings()) as app:
        checked = await app.check(Workflow.of(wf))
        found = {problem.code: problem.line for problem in checked.problems if problem.severity == "error"}
        assert found["expression-syntax"] == line_of("a wrong expression")
        assert found["dangling-edge"] == line_of("a wrong id")
        assert {problem.file for problem in checked.problems} == {HERE}
        with pytest.raises(WorkflowInvalid, match=r"test_builder.py:\d+: "):
            await app.start(wf)


async def test_a_typed_built_workflow_still_names_lines() -> None:
    wf = Workflow.build("wrong")
    wf.end("done", output="1 +")  # a wrong output
    typed = Workflow.of(wf).typed(Grade, Grade)
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(WorkflowInvalid, match=rf"test_builder.py:{line_of('a wrong output')}: "):
            await app.start(typed, Grade(1))


def test_a_later_node_changes_only_later_documents() -> None:
    wf = desk()
    before = Workflow.of(wf)
    wf.note("more")
    assert len(Workflow.of(wf).definition.nodes) == len(before.definition.nodes) + 1 == 3
