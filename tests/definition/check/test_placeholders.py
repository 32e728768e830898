"""Unresolved placeholders: which are reported, which are not, and the repairs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pointsman.definition.checks import check
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.values import Json, JsonObject


def document(prompt: Json, **more: Json) -> JsonObject:
    properties: JsonObject = {"topic": {}, "score": {}, "items": {}}
    return {
        "pointsman": 1,
        "id": "x",
        "input": {"type": "object", "required": [*properties], "properties": properties},
        "nodes": [
            {"id": "s", "type": "start"},
            {"id": "a", "type": "agent", "config": {"model": "scripted", "prompt": prompt}},
            {"id": "e", "type": "end"},
        ],
        "edges": [{"source": "s", "target": "a"}, {"source": "a", "target": "e"}],
        **more,
    }


def problems(source: JsonObject) -> list[Problem]:
    workflow, wrong = WorkflowDefinition.from_document(source)
    assert workflow is not None
    assert not wrong
    return [one for one in check(workflow) if one.code == "literal-placeholder"]


@pytest.mark.parametrize(
    ("prompt", "repaired"),
    [
        ("About { subject }.", "About {subject}."),
        ("{score:.2f} of {len(items)}", "{score | round(2)} of {{ len(items) }}"),
        ("{topic!r} and $.topic", "{topic} and {topic}"),
        ("{score + 1}, {topic or 'x'}", "{{ score + 1 }}, {{ topic or 'x' }}"),
        ("{{ topic ~ '!' }}", None),
        ("{{formatDate topic}} {{> header}} {{../name}}", None),
        ("Dear {{ first name }},", None),
        ("{topic|frobnicate}", None),
        ("{score:>10}", None),
        ("Dear {customer name},", None),
        ("{Top ic} and {{ top-ic x }}", None),
        ("{the score of it}", None),
        ("About {} and {}.", None),
        ("Topic: {0}", None),
        ("{0.name}, {:.2f}, {1:N2}, {!r}", None),
        ("About {{0}}.", None),
        ("About {topic()}.", "About {topic}."),
        ("About {topic.upper()}.", "About {topic | upper}."),
        ("About {unknown()}.", None),
    ],
)
def test_a_text_that_looks_like_a_placeholder_is_reported_with_its_repair(prompt: str, repaired: str | None) -> None:
    (problem,) = problems(document(prompt))
    assert (problem.severity, problem.pointer) == ("warning", "/nodes/1/config/prompt")
    assert (problem.fix[0]["value"] if problem.fix else None) == repaired
    if repaired is not None:
        assert "{ " in repaired or problems(document(repaired)) == []


def test_a_placeholder_without_a_name_is_replaced_by_the_only_field() -> None:
    schema: JsonObject = {"type": "object", "required": ["topic"], "properties": {"topic": {}}}
    for prompt, repaired in (("About {}.", "About {topic}."), ("{:.2f} %", "{topic | round(2)} %"), ("{} {}", None)):
        (problem,) = problems(document(prompt, input=schema))
        assert (problem.fix[0]["value"] if problem.fix else None) == repaired


@pytest.mark.parametrize(
    "prompt",
    [
        'Answer as {"title": "…", "tags": ["a"], "sub": {"x": 1}}.',
        "Answer as {title, summary}, with {} and {{}} and {1, 2}.",
        "function f(x) { return x; } () => { x } const { y } = z; import { a } from 'b'",
        "```js\nif (x) { topic2 }\nlet a = { b }\n```",
        "a \\{ other } and \\{{ other }}",
        'style={{color: "red"}} {{"a": 1}}',
        "{yes|no} {low|high}",
        "costs $5.00, see $.html",
        "{topic} { topic } {{ topic | upper }}",
        "$\\frac{a}{b}$ {*} {-1}",
        "An empty object {}, return {}, x = {}, f({}), `{}`, or {} if there are none.",
        '{"a": {}, "b": [{}], "c": "{}", "d": {"0": {}}}',
        "x^{2}, \\d{3}, [a-z]{2}, \\frac{1}{2}, a_{0}",
        "() => {foo()}; f() {bar()}",
    ],
)
def test_json_and_code_are_not_reported(prompt: str) -> None:
    assert problems(document(prompt)) == []


@pytest.mark.parametrize(
    ("prompt", "repaired"),
    [
        ("<%= topic %> <%topic%>", "{topic} {topic}"),
        ("[[topic]] and [[ topic ]]", "{topic} and {topic}"),
        ("$(topic), %(topic)s", "{topic}, {topic}"),
        ("{% topic %} {$topic} {{= topic }}", "{topic} {topic} {topic}"),
        ("About ${topic}.", "About {topic}."),
        ("About ${{ topic }}.", "About {{ topic }}."),
        ("={{ topic }}", "{{ topic }}"),
        ("About $topic, $score.", "About {topic}, {score}."),
        ("About ｛topic｝ ｛ score ｝", "About {topic} {score}"),
        ("About %topic%, <<topic>> and $[score].", "About {topic}, {topic} and {score}."),
    ],
)
def test_a_placeholder_in_the_spelling_of_another_language_is_reported(prompt: str, repaired: str) -> None:
    (problem,) = problems(document(prompt))
    assert problem.fix
    assert problem.fix[0]["value"] == repaired
    assert problems(document(repaired)) == []


@pytest.mark.parametrize(
    "prompt",
    [
        "<% other %> [[wiki page]] [[other]] $(date) %(other)s {% raw %} {$this} {{=}}",
        "costs ${price} or $ {topic}",
        "{{ $.topic }} and ${$.topic}",
        "#{topic} @{topic} x={{topic}}",
        "costs $5, a$topic, \\\\$topic, $other, $$topic",
    ],
)
def test_intended_braces_are_not_reported(prompt: str) -> None:
    properties: JsonObject = {"topic": {}, "price": {"type": "number"}}
    schema: JsonObject = {"type": "object", "required": [*properties], "properties": properties}
    assert [one for one in problems(document(prompt, input=schema)) if "{{=}}" not in one.message] == []


@pytest.mark.parametrize(
    ("prompt", "repaired"),
    [
        ("About {topic.", "About {topic}."),
        ("About {{topic and {score}", "About {{ topic }} and {score}"),
        ("About {{ topic }.", "About {{ topic }}."),
        ("About { topic }}.", "About {{ topic }}."),
        ("About { topic }} and {score}}", "About {{ topic }} and {{ score }}"),
        ("About {topic | upper}}.", "About {{ topic | upper }}."),
        ("About {topic\nand {score}", "About {topic}\nand {score}"),
        ("About {topic|} {|score}", "About {topic} {score}"),
        ("About {\u200btopic\u200b}", "About {topic}"),
        ("About {\n  topic\n}.", "About {topic}."),
        ("About {topic[0:3]}.", "About {{ topic[0:3] }}."),
    ],
)
def test_a_malformed_placeholder_is_reported(prompt: str, repaired: str) -> None:
    (problem,) = problems(document(prompt))
    assert problem.fix
    assert problem.fix[0]["value"] == repaired
    assert problems(document(repaired)) == []


@pytest.mark.parametrize(
    "prompt",
    ['{"a": {topic}}', '{"a": {{topic}}}', "{topic} :-}", "{other and {topic}", "\\{topic and more {score}"],
)
def test_braces_around_a_placeholder_are_not_reported(prompt: str) -> None:
    assert problems(document(prompt)) == []


def test_templates_are_checked_everywhere() -> None:
    wrong = "x { other }"
    nodes: list[Json] = [
        {"id": "s", "type": "start"},
        {"id": "a", "type": "agent", "config": {"prompt": {"en": wrong, "de": "gut"}, "system": wrong}},
        {"id": "t", "type": "tool", "config": {"tool": "t", "parameters": {"a": [wrong], "b": "state.topic"}}},
        {"id": "g", "type": "human", "config": {"message": wrong, "options": [{"value": "ok"}]}},
        {"id": "h", "type": "http", "config": {"url": "https://a.b/c", "headers": {"X": wrong}, "body": {"c": wrong}}},
        {"id": "m", "type": "emit", "config": {"event": "e", "data": {"d": wrong}}},
        {"id": "r", "type": "template-render", "config": {"template": wrong}},
        {"id": "p", "type": "progress", "config": {"message": wrong}},
        {"id": "e", "type": "end"},
    ]
    ids = ["s", "a", "t", "g", "h", "m", "r", "p", "e"]
    edges: list[Json] = [{"source": one, "target": two} for one, two in pairwise(ids)]
    found = problems(document("", nodes=nodes, edges=edges))
    assert [one.pointer for one in found] == [
        "/nodes/1/config/prompt/en",
        "/nodes/1/config/system",
        "/nodes/2/config/parameters/a/0",
        "/nodes/2/config/parameters/b",
        "/nodes/3/config/message",
        "/nodes/4/config/body/c",
        "/nodes/4/config/headers/X",
        "/nodes/5/config/data/d",
        "/nodes/6/config/template",
        "/nodes/7/config/message",
    ]
    assert found[3].fix == ({"op": "replace", "path": "/nodes/2/config/parameters/b", "value": "{state.topic}"},)


def test_a_placeholder_in_a_plain_text_of_a_gate_is_reported() -> None:
    approvers: JsonObject = {"users": ["ada", "{topic}"], "groups": ["{{ topic }}"]}
    options: list[Json] = [{"value": "ok"}, {"value": "{topic}", "label": {"en": "No {topic}"}}, {"value": "{x}"}]
    gate: JsonObject = {"message": "{topic}?", "options": options, "approvers": approvers}
    nodes: list[Json] = [
        {"id": "s", "type": "start"},
        {"id": "a", "name": "About {topic}", "type": "human", "config": gate},
        {"id": "e", "type": "end"},
    ]
    assert {one.pointer for one in problems(document("", nodes=nodes))} == {
        "/nodes/1/name",
        "/nodes/1/config/options/1/value",
        "/nodes/1/config/options/1/label",
        "/nodes/1/config/approvers/users/1",
        "/nodes/1/config/approvers/groups/0",
    }


def test_a_placeholder_in_a_string_of_an_expression_is_reported() -> None:
    edges: list[Json] = [
        {"source": "s", "target": "a", "condition": {"type": "expression", "expression": "'{{topic}}' == 'x'"}},
        {"source": "a", "target": "e", "condition": {"type": "expression", "expression": "{{topic}} == '{\"a\": 1}'"}},
    ]
    assert [one.pointer for one in problems(document("x", edges=edges))] == ["/edges/0/condition/expression"]


def test_a_search_string_of_a_function_is_not_reported() -> None:
    looked_for = "contains(topic, '{topic}') ? join(topic.split('{topic}'), '') : replace(topic, '{topic}', 'x')"
    edges: list[Json] = [
        {"source": "s", "target": "a", "condition": {"type": "expression", "expression": f"({looked_for}) == 'x'"}},
        {"source": "a", "target": "e", "condition": {"type": "expression", "expression": "upper('{topic}') == 'X'"}},
    ]
    assert [one.pointer for one in problems(document("x", edges=edges))] == ["/edges/1/condition/expression"]


def test_a_placeholder_with_spaces_is_fixed_to_its_field() -> None:
    properties: JsonObject = {"customer_name": {}, "order number": {}}
    schema: JsonObject = {"type": "object", "required": [*properties], "properties": properties}
    (problem,) = problems(document("Dear {Customer Name}: {order number}, {{ order number }}", input=schema))
    repaired = 'Dear {customer_name}: {state["order number"]}, {{state["order number"]}}'
    assert problem.fix
    assert problem.fix[0]["value"] == repaired
    assert problems(document(repaired, input=schema)) == []


@pytest.mark.parametrize("prompt", [r"\\frac{a b}{c d}", "x{two words}", "{}", "{ }"])
def test_braces_in_formulas_are_not_reported(prompt: str) -> None:
    assert problems(document(prompt)) == []
