"""Templates: which placeholders are filled in, which stay text, which are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.expressions.environment import Environment, Names
from pointsman.expressions.failures import (
    BadTemplate,
    DataTooDeep,
    ExpressionTooLong,
    MissingValue,
    MixedTypes,
    SecretNotAllowed,
    TextTooLong,
    TooManyVisits,
    UnknownFunction,
)
from pointsman.expressions.template_parser import Spelling
from pointsman.expressions.templates import compile_template
from pointsman.values import Json
from tests.growth import check_linear

STATE: dict[str, Json] = {
    "goal": "tea",
    "triage": {"agent": "sql"},
    "items": [{"name": "a", "n": 1}, {"name": "b", "n": 2}],
    "flags": {"x": True},
    "null": None,
    "score": 75,
    "none": [],
    "ratio": 0.5,
}


def text(source: str, spelling: Spelling = "single", state: dict[str, Json] | None = None) -> str:
    return compile_template(source, spelling=spelling).render(Environment(STATE if state is None else state)).text


@pytest.mark.requirement("S4-19", "T4-3")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Make {goal}.", "Make tea."),
        ("{triage.agent}{items[-1].name}{items.0.name}", "sqlba"),
        ("{$.triage.agent} {state.goal}", "sql tea"),
        ("{score} {ratio} {flags.x} {null}|", "75 0.5 true |"),
        ("{items}", '[{"name": "a", "n": 1}, {"name": "b", "n": 2}]'),
        ("{goal|json} {null|json} {flags|json}", '"tea" null {"x": true}'),
        ("{items|lines}", '{"name": "a", "n": 1}\n{"name": "b", "n": 2}'),
        ("{triage|lines}{goal|lines}", "agent: sqltea"),
        ("{nope?}{nope.x?|json}{goal?}", "tea"),
        ("\\{goal} {goal}", "{goal} tea"),
        ("without braces", "without braces"),
        ("", ""),
    ],
)
def test_paths_are_replaced_by_values(source: str, expected: str) -> None:
    assert text(source) == expected


@pytest.mark.requirement("T2-10")
@pytest.mark.parametrize(
    "source",
    [
        *(
            '{"a": 1}',
            "{ goal }",
            "{}",
            "{",
            "}",
            "{{",
            "{1}",
            "{a b}",
            "{goal",
            "f(x) { return 1; }",
            "{goal!r}",
            "{0}",
        ),
        *("{goal:>10}", "{len(goal)}", "{a + b}", '{"x": {"y": [1]}}', "{yes|no}", "\\frac", "{*}", "{$}"),
    ],
)
def test_a_brace_that_starts_no_path_is_text(source: str) -> None:
    assert text(source, state={}) == source


def test_json_around_a_path_stays_json() -> None:
    assert json.loads(text('{"q": {score}, "deep": {"g": {goal|json}}}')) == {"q": 75, "deep": {"g": "tea"}}


@pytest.mark.requirement("T4-3")
@given(st.text(max_size=40), st.sampled_from(["single", "double"]))
def test_a_value_is_never_read_as_a_template(value: str, spelling: Spelling) -> None:
    state: dict[str, Json] = {"v": value, "goal": "SECRET", "vs": [value, "{{v}}{goal}"]}
    assert text("<{v}|{v}>", spelling, state) == f"<{value}|{value}>"
    if spelling == "double":
        source = "{{v}}{{#each vs}}{{this}}{{/each}}${$.v}"
        assert text(source, spelling, state) == f"{value}{value}{{{{v}}}}{{goal}}{value}"


class Everything(dict[str, Json]):
    """A state in which every field exists and is empty."""

    def get(self, key: str, default: object = None) -> Json:
        return ""


@given(st.text(alphabet='{}ab$#/|?\\ \n0"!@', max_size=40))
def test_any_text_is_a_template_in_single_braces(source: str) -> None:
    rendered = compile_template(source).render(Environment(Everything()))
    assert len(rendered.text) <= len(source)
    assert rendered.missing == ()


BLOCKS = ["{{", "}}", "{{#if a}}", "{{/if}}", "{{else}}", "a", "{{#each b}}", "{{/each}}", "{{!", "\n "]


@given(st.lists(st.sampled_from(BLOCKS)).map("".join))
def test_any_blocks_are_balanced_or_refused(source: str) -> None:
    refused: BadTemplate | None = None
    try:
        compile_template(source, spelling="double").render(Environment({"a": "x", "b": [1, 2]}))
    except BadTemplate as why:
        refused = why
    if source.count("{{#") != source.count("{{/"):
        assert refused is not None
    if refused is not None:
        assert source.startswith("{{", refused.offset)


def test_a_missing_value_fails_with_every_name_and_the_first_place() -> None:
    with pytest.raises(MissingValue) as failed:
        text("ok {goal} {nope} {triage.x} {nope}")
    assert (failed.value.offset, failed.value.length) == (11, 4)
    assert "'nope', 'triage.x'" in str(failed.value)


@pytest.mark.requirement("S1-O9")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{goal}} {{ triage.agent }} {{{goal}}} {goal}", "tea sql tea tea"),
        ("${$.data.goal} ${$.triage.agent}", "tea sql"),
        ("${HOME}", "$x"),
        ("{{#if items}}yes{{/if}}{{#if none}}no{{/if}}{{#if nope}}no{{/if}}", "yes"),
        ("{{#if none}}a{{else}}b{{/if}}{{#unless none}}c{{else}}d{{/unless}}", "bc"),
        ("{{#each items}}{{@index}}{{this.name}}{{#unless @last}}, {{/unless}}{{/each}}", "0a, 1b"),
        ("{{#each items}}{{name}}={{goal}};{{/each}}", "a=tea;b=tea;"),
        (
            "{{#each triage}}{{@key}}:{{this}}{{/each}}{{#each none}}x{{else}}empty{{/each}}{{#each nope}}x{{/each}}",
            "agent:sqlempty",
        ),
        ("{{#each items}}{{@number}}. {{this.name}} {{/each}}", "1. a 2. b "),
        ("{{#each items}}{{#each this}}{{this}}{{/each}}{{@index}}{{#if @first}}!{{/if}} {{/each}}", "a10! b21 "),
        ('{{#compare score ">" 80}}high{{else}}low{{/compare}}', "low"),
        ("{{#compare triage.agent '===' \"sql\"}}yes{{/compare}}{{#compare flags.x '==' true}}!{{/compare}}", "yes!"),
        ('{{#each items}}{{#compare n "<" 2}}{{name}}{{/compare}}{{/each}}', "a"),
        ("{{! a note }}x\\{{goal}}", "x{{goal}}"),
        ("{{items|json}}{{nope?}}", '[{"name": "a", "n": 1}, {"name": "b", "n": 2}]'),
        ("{{goal}}}} {{{{goal}}}}", "tea}} {tea}"),
        ("{{_currentStep}} of {{_totalNodes}}", "2 of 5"),
    ],
)
def test_templates_in_double_braces_have_blocks(source: str, expected: str) -> None:
    env = Environment({**STATE, "HOME": "x"}, names={"_currentStep": 2, "_totalNodes": 5})
    assert compile_template(source, spelling="double").render(env).text == expected


def test_a_block_tag_alone_on_its_line_removes_the_line() -> None:
    source = "list:\n  {{#each items}}\n  - {{name}}\n  {{/each}}\nend {{#if goal}}x{{/if}}\n"
    assert text(source, "double") == "list:\n  - a\n  - b\nend x\n"


def test_a_missing_value_in_double_braces_is_empty_and_reported() -> None:
    rendered = compile_template("{{goal}} {{nope}} {{nope.x?}} ${$.gone} {{nope}}", spelling="double").render(
        Environment(STATE)
    )
    assert rendered == ("tea    ", ("nope", "$.gone"))


@pytest.mark.parametrize(
    ("source", "offset"),
    [
        ("a {{#if x}} b", 2),
        ("{{/if}}", 0),
        ("{{#if a}}{{/each}}", 9),
        ("{{else}}", 0),
        ("{{#if a}}{{else}}{{else}}{{/if}}", 17),
        ("{{#with a}}{{/with}}", 0),
        ("{{#if}}{{/if}}", 0),
        ("{{#if a >}}{{/if}}", 9),
        ("{{#if (gt a b)}}{{/if}}", 10),
        ("x {% if a %}y{% endif %}", 2),
        ("x {%- for a in b -%}", 2),
        ("{# note #}", 0),
        ("{{#compare a}}{{/compare}}", 0),
        ('{{#compare a "~" 1}}{{/compare}}', 0),
        ('{{#compare a "<" }}{{/compare}}', 0),
        ("{{#if a}}" * 33, 288),
    ],
)
def test_unbalanced_blocks_are_refused(source: str, offset: int) -> None:
    with pytest.raises(BadTemplate) as refused:
        compile_template(source, spelling="double")
    assert refused.value.offset == offset


def test_a_template_that_is_one_path_keeps_the_type() -> None:
    env = Environment(STATE)
    missing: list[str] = []
    for source in ("{items}", "{{items}}", "{{ items }}", "$.items", "$.data.items", "${$.items}"):
        assert compile_template(source, spelling="double").value(env, missing=missing) == STATE["items"]
    assert compile_template("{items|json}").value(env) == text("{items}")
    assert compile_template(" {score}").value(env) == " 75"
    assert compile_template("$.items").value(env) == "$.items"
    assert missing == []
    assert compile_template("{{nope}}", spelling="double").value(env, missing=missing) is None
    assert compile_template("$.nope", spelling="double").value(env, missing=missing) is None
    assert compile_template("{nope?}").value(env, missing=missing) is None
    assert missing == ["nope", "$.nope"]
    with pytest.raises(MissingValue):
        compile_template("{nope}").value(env)


def test_reads_list_the_paths_of_a_template() -> None:
    template = compile_template("{a.b} {c?} {{#each d}}{{e}}{{this.f}}{{/each}}", spelling="double")
    reads = {(read.path, read.guarded): template.source[read.offset :][: read.length] for read in template.reads}
    assert reads == {(("a", "b"), False): "a.b", (("c",), True): "c", (("d",), True): "d", (("e",), True): "e"}


def test_templates_are_bounded() -> None:
    big: dict[str, Json] = {
        "t": "a" * 600_000,
        "xs": list(range(9_000)),
        "wide": [*map(list[Json], [[0] * 1_000] * 1_000)],
        "deep": nested(),
    }
    with pytest.raises(TextTooLong):
        text("{t}{t}", state=big)
    with pytest.raises(TextTooLong):
        text("{wide}", state=big)
    with pytest.raises(TextTooLong):
        text("{{#each xs}}{{t}}{{/each}}", "double", big)
    with pytest.raises(TooManyVisits):
        text("{{#each xs}}{{#each xs}}{{/each}}{{/each}}", "double", big)
    with pytest.raises(DataTooDeep):
        text("{deep}", state=big)
    with pytest.raises(ExpressionTooLong):
        compile_template("a" * 1_000_001)


def nested() -> Json:
    value: Json = 1
    for _ in range(5_000):
        value = [value]
    return value


def test_each_requires_a_list_or_an_object() -> None:
    with pytest.raises(MixedTypes):
        text("{{#each score}}x{{/each}}", "double")


def test_secrets_are_refused_in_templates() -> None:
    with pytest.raises(SecretNotAllowed):
        compile_template("key: {secret.KEY}")


@pytest.mark.parametrize(
    ("start", "piece", "end"),
    [("", "{", ""), ("{{", " ", "x"), ("{{a", " ", "x"), ("", "{{!", ""), ("", "{a", ""), ("", "{a['", "")],
)
def test_parsing_takes_linear_time(start: str, piece: str, end: str) -> None:
    check_linear(lambda size: compile_template(start + piece * size + end, spelling="double"), 10_000)


@pytest.mark.parametrize("source", ["{" * 100, "{{  x", "{{!" * 100, "{a" * 100, "{a['" * 100])
def test_a_text_without_a_whole_placeholder_is_fixed(source: str) -> None:
    assert compile_template(source, spelling="double").fixed


DECLARED = Names(declared=frozenset({"goal", "items", "score"}))


@pytest.mark.parametrize("spelling", ["single", "double"])
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ goal }} {{goal}} {{- goal -}} !", "tea teatea!"),
        ("( {{~goal~}} ) ( {{-goal-}} ) ({{~ goal ~}}) {{-score}}", "(tea) (tea) (tea) -75"),
        ("{{ goal | upper }}{goal|upper}{goal | upper}{{goal|title}}", "TEATEATEATea"),
        ("{{ items | map(x => x.name) | join(' and ') }}", "a and b"),
        ("{{ items | length }} {{ items|first|json }}", '2 {"name": "a", "n": 1}'),
        ("{{ ratio | round(0) }} {{ score / 2 }} {{ (0 - score) | abs }}", "0.0 37.5 75"),
        ("{{ nope | default('n/a') }} {nope | default('-') | upper} {{ nope ?? 'x' }}", "n/a - x"),
        ("{{ goal | replace('t', 's') | trim | truncate(2) }}", "s…"),
        ("{{ 'high' if score > 80 else 'low' }} {{ score > 80 ? 'high' : 'low' }}", "low low"),
        ("{{ goal.upper() }} {{ upper(goal) + '!' }} {{ items[-1].name }}", "TEA TEA! b"),
        ("{{#if score > 70 and goal}}yes{{else}}no{{/if}}{{#unless items | empty}}!{{/unless}}", "yes!"),
        ("{ goal } {goal } { score | round }", "tea tea 75"),
    ],
)
def test_placeholders_allow_pipes_and_expressions(source: str, expected: str, spelling: Spelling) -> None:
    template = compile_template(source, spelling=spelling, names=DECLARED)
    assert template.render(Environment(STATE)) == (expected, ())


@pytest.mark.parametrize(
    "source",
    [
        "{ nope } { nope | upper }",
        "import { goal } from 'x'",
        "const { goal } = props;",
        "() => { goal }",
        '{{"goal": 1}}',
        "{{formatDate goal}}",
        "{{> header}}",
        "{{ 'goal' }} {{ 3 }}",
        "{low|high}",
    ],
)
def test_braces_of_code_and_unknown_names_stay_unchanged(source: str) -> None:
    assert compile_template(source, names=DECLARED, spelling="double").render(Environment(STATE)).text == source


def test_a_pipe_to_a_function_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(UnknownFunction) as refused:
        compile_template("{{ goal | safe }}")
    assert "remove it" in refused.value.hint


def test_a_missing_piped_value_is_reported_and_renders_empty() -> None:
    rendered = compile_template("<{{ nope | upper }}{{ nope.x | length }}{nope?|json}>").render(Environment(STATE))
    assert rendered == ("<>", ("nope", "nope.x"))
    with pytest.raises(MissingValue, match="'nope'"):
        text("{nope|upper}")


def test_a_parameter_that_is_one_piped_placeholder_keeps_its_type() -> None:
    env = Environment(STATE)
    assert compile_template("{{ items | length }}").value(env) == 2
    assert compile_template("{items | last}").value(env) == {"name": "b", "n": 2}
    assert compile_template("{{ score > 3 }}").value(env) is True
