"""Scripts: all errors are reported at once with their positions."""

from __future__ import annotations

import pytest

from pointsman.engine.reports import Usage
from pointsman.models.script import Fail, ScriptedAnswer, ScriptedCall, ScriptRefused, ScriptRule, read_script

WRONG = """\
rules:
  - node: Router
    textt: hello
  - visit: 0
  - matches: "("
  - {text: a, json: 1}
  - text: a
    answers: [{text: b}]
  - {delay: soon}
  - {fail: 200}
tools:
  search:
    reslt: 1
"""


def test_every_problem_of_a_script_has_a_position() -> None:
    with pytest.raises(ScriptRefused) as caught:
        read_script(WRONG)
    told = [(problem.line, problem.column, problem.code) for problem in caught.value.problems]
    assert told == [
        (3, 5, "unknown-key"),
        (4, 5, "script-value"),
        (5, 5, "script-pattern"),
        (6, 15, "script-contradiction"),
        (7, 5, "script-contradiction"),
        (9, 6, "script-value"),
        (10, 6, "script-value"),
        (13, 5, "unknown-key"),
    ]
    assert [problem.hint for problem in caught.value.problems if problem.code == "unknown-key"] == [
        "Did you mean 'text'?",
        "Did you mean 'result'?",
    ]


@pytest.mark.parametrize("text", ["", "rules: [", "- a", "rules: {}", "&a [*a]", "null", "rules: [{text: 1}]"])
def test_a_file_that_is_not_a_script_is_refused(text: str) -> None:
    with pytest.raises(ScriptRefused):
        read_script(text)


def test_a_rule_with_every_field_is_read() -> None:
    script = read_script(
        """
        rules:
          - node: write
            agent: writer
            round: 2
            item: 7
            purpose: generation
            times: 3
            toolCalls: [{name: search, arguments: {q: x}}]
            delay: 1m
            tokenDelay: 20
            usage: {inputTokens: 4}
          - fail: {status: 429, retryAfter: 2s, message: busy}
          - answers: [{json: null}, {fail: timeout}, {end: true}]
        """
    )
    assert script.rules == (
        ScriptRule(
            nodes=("write",),
            exact={"agent": "writer", "purpose": "generation"},
            counts={"visit": 2},
            item="7",
            times=3,
            answers=(
                ScriptedAnswer(
                    tool_calls=(ScriptedCall(name="search", arguments={"q": "x"}),),
                    delay_s=60.0,
                    token_delay_s=0.02,
                    usage=Usage(input_tokens=4),
                ),
            ),
        ),
        ScriptRule(answers=(ScriptedAnswer(fail=Fail(status=429, retry_after_s=2.0, message="busy")),)),
        ScriptRule(
            answers=(ScriptedAnswer(has_value=True), ScriptedAnswer(fail=Fail(how="timeout")), ScriptedAnswer(end=True))
        ),
    )


def test_tools_of_a_script_are_read_unchanged() -> None:
    script = read_script(
        '{"tools": {"web_search": {"results": [{"when": {"q": "a"}, "result": 1}, {"fail": "down"}]}}}'
    )
    assert script.tools == {"web_search": {"results": [{"when": {"q": "a"}, "result": 1}, {"fail": "down"}]}}
