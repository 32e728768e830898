"""`pointsman test`: workflow tests as files, in virtual time, with the report of a test runner."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

PASSING = """\
workflow: letter.yaml
script: {rules: [{node: write, text: Dear all}]}
input: {goal: ships}
cases:
  - name: it is sent
    answers: {review: approve}
    expect:
      path: [write, review, send]
      output: {letter: Dear all}
      outputExactly: {letter: Dear all, tone: null}
      state: {goal: ships}
      events: [{kind: gate_opened, node: review}, {kind: completed}]
  - name: it is written again first
    answers: {review: [again, {action: approve, comment: now}]}
    expect: {pathContains: [review, write, send]}
  - name: it waits
    expect: {waiting: review}
  - name: the model fails
    script: {rules: [{node: write, fail: 400}]}
    expect: {status: failed, errors: [{nodeId: write}]}
  - name: a broken one is refused
    workflow: broken.yaml
    expect: {problems: dangling-edge}
"""


@pytest.fixture(autouse=True)
def workflows() -> None:
    written("letter.yaml", flows.APPROVAL)
    written("broken.yaml", flows.BROKEN)
    written("waits.yaml", flows.WAITS)


def test_passing_tests_exit_with_code_0(prompt: Prompt) -> None:
    written("letter.test.yaml", PASSING)
    printed = prompt("test", ".")
    assert printed.code == 0, printed.out
    assert "✓ it is sent" in printed.out
    assert "5 passed" in printed.out


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        ("{status: failed}", "status: expected failed, was completed"),
        ("{output: {letter: Hi}}", 'output.letter: expected "Hi", was "Dear all"'),
        ("{output: {colour: red}}", 'output.colour: expected "red", is absent'),
        ("{outputExactly: {letter: Dear all}}", "output: expected exactly"),
        ("{output: null}", "output: expected null"),
        ("{path: [write, send]}", 'path: expected ["write", "send"], was ["write", "review", "send"]'),
        ("{pathContains: [send, write]}", 'path: "write" does not come in this order'),
        ("{state: {goal: trains}}", 'state.goal: expected "trains", was "ships"'),
        ("{events: [{kind: failed}]}", 'events: {"kind": "failed"} does not come'),
        ("{errors: [timeout]}", 'errors: expected ["timeout"], were []'),
        ("{waiting: review}", 'waiting: expected ["review"], was []'),
        ("{problems: dead-end}", 'problems: expected ["dead-end"], was []'),
    ],
)
def test_differences_are_printed_and_exit_with_code_1(prompt: Prompt, expect: str, told: str) -> None:
    head = "workflow: letter.yaml\nscript: {rules: [{node: write, text: Dear all}]}\ninput: {goal: ships}\n"
    written("one.test.yaml", f"{head}answers: {{review: approve}}\nexpect: {expect}\n")
    printed = prompt("test", "one.test.yaml")
    assert printed.code == 1
    assert told in printed.out


def test_an_unused_answer_fails_the_test(prompt: Prompt) -> None:
    written("one.test.yaml", "workflow: waits.yaml\nanswers: {gate: yes}\nsignals: {door: {}}\n")
    assert prompt("test", ".").code == 1


def test_waits_take_no_real_time(prompt: Prompt) -> None:
    slow = "pointsman: 1\nid: slow\nnodes: [{id: nap, type: wait, config: {duration: 30d}}]\nedges: []\n"
    written("slow.yaml", slow)
    written("slow.test.yaml", "workflow: slow.yaml\nexpect: {path: [nap]}\n")
    printed = prompt("test", "slow.test.yaml", "--json")
    assert (printed.code, printed.json["passed"]) == (0, 1)
    assert printed.json["seconds"] < 10


def test_an_unanswered_gate_times_out_in_virtual_time(prompt: Prompt) -> None:
    text = flows.APPROVAL.replace('message: "Send it?"', 'message: "Send it?", timeout: 7d, onTimeout: approve')
    written("letter.yaml", text)
    assert "error" not in prompt("check", "letter.yaml").out
    head = "workflow: letter.yaml\ninput: {goal: x}\n"
    written("early.test.yaml", f"{head}timePasses: 6d\nexpect: {{waiting: review}}\n")
    written("late.test.yaml", f"{head}timePasses: 8d\nexpect: {{path: [write, review, send]}}\n")
    assert prompt("test", ".").code == 0


def test_signals_and_sub_workflows_can_be_tested(prompt: Prompt) -> None:
    outer = "pointsman: 1\nid: outer\nnodes: [{id: call, type: workflow, config: {workflow: chain}}]\nedges: []\n"
    written("outer.yaml", outer)
    written("chain.yaml", flows.CHAIN)
    written("outer.test.yaml", "workflow: outer.yaml\nsaved: chain.yaml\nexpect: {path: [call]}\n")
    written("waits.test.yaml", "workflow: waits.yaml\nsignals: {door: {who: ada}}\nexpect: {path: [knock, open]}\n")
    assert prompt("test", ".").code == 0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("workflow: letter.yaml\nexpects: {}\n", "one.test.yaml:2:1"),
        ("workflow: letter.yaml\nexpect: {state: 7}\n", "one.test.yaml:2:"),
        ("workflow: [", "one.test.yaml:1:11"),
        ("- workflow: letter.yaml\n", "is an object"),
        ("input: {}\n", "names no workflow"),
        ("workflow: letter.yaml\ntimePasses: 7\n", "one.test.yaml:2:1"),
        ("workflow: letter.yaml\ntimePasses: soon\n", "one.test.yaml:2:1"),
        ("workflow: letter.yaml\nanswers: {review: {data: 1}}\n", "answers.review: action"),
        ("workflow: letter.yaml\nscript: none.yaml\n", "file-unreadable"),
        ("workflow: letter.yaml\nscript: {rule: []}\n", "script-refused"),
        ("workflow: letter.yaml\nsettings: {colour: red}\n", "settings.colour"),
        ("workflow: none.yaml\n", "file-unreadable"),
    ],
)
def test_an_invalid_test_file_is_a_failed_test_with_a_position(prompt: Prompt, text: str, place: str) -> None:
    written("one.test.yaml", text.replace("letter.yaml\nanswers", "letter.yaml\ninput: {goal: x}\nanswers"))
    printed = prompt("test", ".")
    assert printed.code == 1
    assert place in printed.out
    assert "Traceback" not in printed.out + printed.err


def test_the_junit_report_counts_and_explains_failures(prompt: Prompt) -> None:
    written("a.test.yaml", PASSING)
    written("b.test.yaml", 'workflow: letter.yaml\ninput: {goal: "\\u0007"}\nexpect: {status: failed}\n')
    assert prompt("test", ".", "--junit", "report.xml").code == 1
    suite = ElementTree.fromstring(Path("report.xml").read_bytes())
    assert (suite.get("tests"), suite.get("failures")) == ("6", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "status: expected failed" in str(failure.get("message"))


def test_tests_are_filtered_by_name(prompt: Prompt) -> None:
    written("letter.test.yaml", PASSING)
    assert [one["name"] for one in prompt("test", ".", "-k", "waits", "--json").json["tests"]] == ["it waits"]


def test_finding_no_tests_exits_with_code_2(prompt: Prompt) -> None:
    printed = prompt("test", ".")
    assert (printed.code, "no tests in" in printed.err) == (2, True)
