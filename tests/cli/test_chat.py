"""`pointsman chat` in a terminal and with pipes: turns, gates, interruptions, crashes, and two people in one
conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.app import Pointsman
from tests.cli.conftest import Prompt
from tests.cli.terminal import Terminal

TALK = """\
pointsman: 1
id: talk
config: {conversational: true}
nodes: [{id: a, type: agent, name: {en: Ann, de: Anna}, config: {}}]
edges: []
"""
SCRIPT = """\
rules:
  - {node: a, contains: slow, delay: 600s, text: never said}
  - {node: a, contains: bye, text: Farewell., next: END}
  - {node: a, contains: broken, fail: {status: 400}}
  - {node: a, contains: "\u4f60\u597d", text: "\u4f60\u597d\uff01"}
  - {node: a, contains: One, text: "First, said slowly."}
  - {node: a, contains: Two, text: Second.}
"""
GATE = """\
pointsman: 1
id: gated
config: {conversational: true}
nodes:
  - {id: ask, type: human, config: {message: "May I?", actions: [approve, reject]}}
  - {id: a, type: agent, config: {}}
edges: [{source: ask, target: a, condition: {type: label, label: approve}}]
"""


@pytest.fixture
def talk(own_place: Path) -> tuple[str, ...]:
    """The arguments that open the chat in its store."""
    (own_place / "talk.yaml").write_text(TALK, encoding="utf-8")
    (own_place / "gated.yaml").write_text(GATE, encoding="utf-8")
    (own_place / "s.yaml").write_text(SCRIPT, encoding="utf-8")
    return ("chat", "talk.yaml", "--script", "s.yaml", "--store", "sqlite:///talk.db")


async def said(place: Path, session: str) -> list[str]:
    async with Pointsman(f"sqlite:///{place}/talk.db") as app:
        conversation = await app.storage.conversation(session)
    return [str(one["content"]) for one in conversation.messages if isinstance(one, dict)]


def test_piped_input_is_one_turn_per_line_and_prints_only_answers(prompt: Prompt, talk: tuple[str, ...]) -> None:
    printed = prompt(*talk, stdin="One\n\nTwo\n")
    assert (printed.code, printed.out) == (0, "First, said slowly.\nSecond.\n")


@pytest.mark.parametrize("name", ["", "x" * 501, "a\x1b[2J"])
def test_an_invalid_session_id_is_refused(prompt: Prompt, talk: tuple[str, ...], name: str) -> None:
    printed = prompt(*talk, "--session", name, stdin="One\n")
    assert (printed.code, printed.out) == (2, "")
    assert "[input-invalid]" in printed.err
    assert prompt("run", "talk.yaml", "--input", "One", "--session", name).code == 2


def test_chat_refuses_a_workflow_that_is_not_conversational(
    prompt: Prompt, own_place: Path, talk: tuple[str, ...]
) -> None:
    (own_place / "once.yaml").write_text(TALK.replace("true", "false"), encoding="utf-8")
    printed = prompt("chat", "once.yaml", stdin="One\n")
    assert (printed.code, printed.out) == (2, "")
    assert "[not-conversational]" in printed.err


def test_a_failed_turn_of_piped_input_ends_the_command(prompt: Prompt, talk: tuple[str, ...]) -> None:
    printed = prompt(*talk, stdin="One\nbroken\nTwo\n")
    assert (printed.code, printed.out) == (1, "First, said slowly.\n")
    assert "[model-" in printed.err


@pytest.mark.requirement("S0-33")
async def test_answers_are_printed_once_under_the_name_of_the_agent(own_place: Path, talk: tuple[str, ...]) -> None:
    with Terminal(*talk, "--session", "s", cwd=own_place) as person:
        person.expect("you: ")
        person.say("One")
        assert "Ann: First, said slowly." in person.expect("you: ")
        assert person.seen.count("First, said slowly.") == 1
        person.say("\u4f60\u597d")
        assert "Ann: \u4f60\u597d\uff01" in person.expect("you: ")
        person.say("/history")
        assert "you: One\nAnn: First" in person.expect("\u597d\uff01\n")
        person.expect("you: ")
        person.press("d")
        assert person.ends() == 0
    assert await said(own_place, "s") == ["One", "First, said slowly.", "\u4f60\u597d", "\u4f60\u597d\uff01"]


async def test_ctrl_c_cancels_the_turn_and_keeps_the_conversation(own_place: Path, talk: tuple[str, ...]) -> None:
    with Terminal(*talk, "--session", "s", cwd=own_place) as person:
        person.expect("you: ")
        person.say("One")
        person.expect("slowly.\nyou: ")
        person.say("slow, please")
        person.expect("slow, please\n")
        await began(own_place, 2)
        person.press("c")
        person.expect("the conversation is as it was before")
        person.expect("you: ")
        person.say("Two")
        person.expect("Ann: Second.")
        person.expect("you: ")
        person.interrupt("(Ctrl-D leaves)")
        person.expect("you: ")
        person.press("d")
        assert person.ends() == 0
    assert await said(own_place, "s") == ["One", "First, said slowly.", "Two", "Second."]


async def test_a_turn_killed_during_an_answer_continues(own_place: Path, talk: tuple[str, ...]) -> None:
    with Terminal(*talk, "--session", "s", cwd=own_place) as person:
        person.expect("you: ")
        person.say("slow One")
        await began(own_place, 1)
        person.kill()
    (own_place / "s.yaml").write_text(
        SCRIPT.replace("delay: 600s, text: never said", "text: At last."), encoding="utf-8"
    )
    with Terminal(*talk, "--session", "s", cwd=own_place) as person:
        person.expect("continuing exec-")
        person.expect("Ann: At last.")
        person.expect("you: ")
        person.press("d")
        assert person.ends() == 0
    assert await said(own_place, "s") == ["slow One", "At last."]


async def test_a_second_terminal_is_refused_while_a_turn_is_open(own_place: Path, talk: tuple[str, ...]) -> None:
    words = (*talk, "--session", "s")
    with Terminal(*words, cwd=own_place) as one, Terminal(*words, cwd=own_place) as other:
        one.expect("you: ")
        other.expect("you: ")
        one.say("slow")
        await began(own_place, 1)
        other.say("Two")
        assert "[session-busy]" in other.expect("you: ")
        other.say("/cancel")
        other.expect("cancelled exec-")
        other.expect("you: ")
        one.expect("you: ")
        other.say("Two")
        other.expect("Ann: Second.")
        other.expect("you: ")
        one.say("/history")
        one.expect("Ann: Second.")
    assert await said(own_place, "s") == ["Two", "Second."]


async def test_a_gate_is_answered_inline_or_in_a_later_chat(own_place: Path, talk: tuple[str, ...]) -> None:
    words = ("chat", "gated.yaml", *talk[2:], "--session", "s")
    with Terminal(*words, cwd=own_place) as person:
        person.expect("you: ")
        person.say("One")
        person.expect("May I?\n")
        person.expect("ask (approve|reject): ")
        person.press("d")
        person.expect("waiting")
        assert person.ends() == 3
    with Terminal(*words, cwd=own_place) as person:
        person.expect("May I?\n")
        person.say("{perhaps")
        person.expect("is not JSON")
        person.expect("ask (approve|reject): ")
        person.say("maybe")
        person.expect("error [")
        person.expect("ask (approve|reject): ")
        person.say("approve")
        person.expect("First, said slowly.")
        person.expect("you: ")
        person.press("d")
        assert person.ends() == 0
    assert await said(own_place, "s") == ["One", "First, said slowly."]


CALLS = """\
pointsman: 1
id: cashier
config: {conversational: true}
nodes: [{id: pay, type: agent, config: {tools: [transfer]}}]
edges: []
"""
PAYS = """\
rules:
  - {call: 1, toolCalls: [{name: transfer, arguments: {to: ann}}, {name: transfer, arguments: {to: bob}}]}
  - {text: That was it.}
tools: {transfer: {requiresApproval: true, result: paid}}
"""


def test_tool_calls_are_shown_before_they_are_decided(prompt: Prompt, own_place: Path) -> None:
    (own_place / "calls.yaml").write_text(CALLS, encoding="utf-8")
    (own_place / "pays.yaml").write_text(PAYS, encoding="utf-8")
    decided = '{"action": "edit", "data": {"2": false, "3": {"to": "cyd"}}}'
    words = ("chat", "calls.yaml", "--script", "pays.yaml", "--store", "sqlite:///calls.db", "--session", "s")
    printed = prompt(*words, stdin=f"Pay\n{decided}\n")
    assert (printed.code, printed.out) == (0, "That was it.\n")
    assert '  2: transfer {"to": "ann"}\n  3: transfer {"to": "bob"}\n' in printed.err
    (execution,) = prompt("list", "--store", "sqlite:///calls.db", "--json").json["executions"]
    told = prompt("events", execution["executionId"], "--store", "sqlite:///calls.db", "--json").json["events"]
    (reviewed,) = [one["verdicts"] for one in told if one["kind"] == "calls_reviewed"]
    assert [(one["approved"], one.get("arguments")) for one in reviewed] == [(False, None), (True, {"to": "cyd"})]


async def test_an_ended_conversation_is_reopened_only_explicitly(
    prompt: Prompt, own_place: Path, talk: tuple[str, ...]
) -> None:
    with Terminal(*talk, "--session", "s", cwd=own_place) as person:
        person.expect("you: ")
        person.say("bye")
        person.expect("the conversation has ended")
        person.expect("you: ")
        person.say("Two")
        person.expect("[session-closed]")
        person.expect("you: ")
        person.say("/new")
        person.expect("session chat-")
        person.say("Two")
        person.expect("Second.")
        person.say("/quit")
        assert person.ends() == 0
    with Terminal(*talk, "--session", "s", "--reopen", cwd=own_place) as person:
        person.expect("you: ")
        person.say("Two")
        person.expect("Second.")
        person.say("//path")
        person.expect("you: ")
        person.say("/quit")
        assert person.ends() == 0
    assert (await said(own_place, "s"))[:4] == ["bye", "Farewell.", "Two", "Second."]
    assert "/path" in await said(own_place, "s")


async def test_a_failed_turn_is_reported_and_the_conversation_continues(own_place: Path, talk: tuple[str, ...]) -> None:
    with Terminal(*talk, "--session", "s", cwd=own_place) as person:
        person.expect("you: ")
        person.say("broken")
        assert "[model-" in person.expect("you: ")
        person.say("/nonsense")
        person.expect("there is no command '/nonsense'")
        person.say("Two")
        person.expect("Second.")
        person.say("/help")
        person.expect("/cancel")
        person.expect("you: ")
        person.press("d")
        assert person.ends() == 0
    assert await said(own_place, "s") == ["Two", "Second."]


async def began(place: Path, turns: int) -> None:
    """Wait until that many turns have begun and the last one calls its model."""
    async with Pointsman(f"sqlite:///{place}/talk.db") as app:
        while True:
            for one in await app.executions():
                state, _ = await app.state_and_events(one.execution)
                if len(await app.executions()) == turns and not state.ended and state.steps:
                    return


def test_chat_warns_once_about_the_scripted_model(prompt: Prompt, talk: tuple[str, ...]) -> None:
    printed = prompt(*talk, stdin="One\nTwo\n")
    assert printed.code == 0
    assert printed.err.count("the scripted model or a scripted tool answers here: its answers are made up") == 1
