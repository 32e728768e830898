"""The history of a long conversation for an agent: what is removed first, what stays together, who pays for a
summary."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.executors.conversation import HistorySettings, TranscriptWindow
from pointsman.executors.effect_ledger import EffectLedger, ExecutorDeps
from pointsman.models.failures import ModelFailed
from pointsman.models.transcript import call_to_json, calls_of, role_of, tool_message
from pointsman.ports import ModelReply, ModelRequest, TextCallback
from pointsman.testing.clock import run_virtually
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from tests.executors.stage import Stage, StagedRun, agent, execute

LONG = "word " * 400
SUMMARISING = """
rules:
  - {purpose: summary, text: They spoke of ships.}
  - {text: Aye.}
"""


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def talk(turns: int) -> list[Json]:
    """Return a conversation that ends with the user."""
    said: list[Json] = []
    for number in range(turns):
        said.append(user(f"question {number}"))
        said.append({"role": "assistant", "content": f"answer {number}", "name": "writer"})
    said.append(user("and now?"))
    return said


def shown(stage: Stage, call: int = -1) -> list[str]:
    return [str(cast("JsonObject", one)["content"]) for one in stage.models.messages[call]]


@pytest.mark.requirement("S1-113")
async def test_a_window_has_the_newest_messages_and_a_note_of_omitted_ones() -> None:
    stage = Stage()
    report = await stage.done(execute(messages=talk(10)), agent(memory={"window": 3, "summarize": False}, prompt=None))
    assert shown(stage) == ["[Earlier messages are left out.]", "question 9", "answer 9", "and now?"]
    assert report.usage is not None
    assert report.usage.model_calls == 1


@pytest.mark.requirement("S1-114")
async def test_a_summary_replaces_older_messages_and_is_paid_once() -> None:
    stage, conversation = Stage(SUMMARISING), talk(10)
    spec = agent(memory={"window": 6})
    report = await stage.done(execute(messages=conversation), spec)
    assert [request.purpose for request in stage.models.requests] == ["summary", "generation"]
    assert "question 0" in shown(stage, 0)[0]
    assert "question 9" not in shown(stage, 0)[0]
    assert shown(stage) == ["[What was said and done before, in short]\nThey spoke of ships.", *shown(stage)[1:]]
    assert shown(stage)[1:] == ["question 9", "answer 9", "and now?"]
    assert [message["role"] for message in cast("tuple[JsonObject, ...]", report.messages)] == ["summary", "assistant"]

    following = Stage(SUMMARISING)
    await following.done(execute(messages=[*conversation, *report.messages, user("go on")]), spec)
    assert [request.purpose for request in following.models.requests] == ["generation"]
    assert shown(following) == [*shown(stage), "Aye.", "go on"]


async def test_a_summary_belongs_to_one_agent_and_conversation() -> None:
    stage, conversation = Stage(SUMMARISING), talk(10)
    report = await stage.done(execute(messages=conversation), agent(memory={"window": 6}))
    other = Stage(SUMMARISING)
    await other.done(execute(node="other", messages=[*conversation, *report.messages, user("x")]), agent(node="other"))
    assert not any("ships" in text for text in shown(other))
    assert len(shown(other)) == len(conversation) + 2
    changed: list[Json] = [user("something else"), *conversation[:-2], user("changed"), *report.messages, user("go on")]
    elsewhere = Stage(SUMMARISING)
    await elsewhere.done(execute(messages=changed), agent(memory={"window": 6}))
    assert [request.purpose for request in elsewhere.models.requests] == ["summary", "generation"]


async def test_old_tool_results_are_truncated_before_summaries() -> None:
    @tool
    def read(page: int) -> str:
        """Read a page."""
        return f"page {page}: {LONG}"

    calls = ", ".join(f"{{toolCalls: [{{name: read, arguments: {{page: {n}}}}}]}}" for n in range(4))
    stage = Stage(f"rules: [{{purpose: summary, text: no}}, {{answers: [{calls}, {{text: Done.}}]}}]", read)
    spec = agent(tools=["read"], memory={"tokens": 1200})
    report = await stage.done(execute(prompt="Read it all."), spec)
    assert report.result == "Done."
    assert {request.purpose for request in stage.models.requests} == {"generation"}
    texts = shown(stage)
    assert texts[0] == "Read it all."
    assert "more characters were cut off]" in texts[2]
    assert texts[-1] == f"page 3: {LONG}"
    assert max(map(len, texts[:-3])) < 500


async def test_a_still_too_long_history_is_summarised_and_keeps_the_task() -> None:
    @tool
    def read(page: int) -> str:
        """Read a page."""
        return f"page {page}: {LONG}"

    calls = ", ".join(f"{{toolCalls: [{{name: read, arguments: {{page: {n}}}}}]}}" for n in range(9))
    script = f"rules: [{{purpose: summary, text: Pages were read.}}, {{answers: [{calls}, {{text: Done.}}]}}]"
    stage, run = Stage(script, read), StagedRun()
    spec = agent(tools=["read"], memory={"tokens": 900})
    report = await stage.done(execute(prompt="Read it all."), spec, run)
    assert report.result == "Done."
    assert "summary" in {request.purpose for request in stage.models.requests}
    assert shown(stage)[0].endswith("Pages were read.")
    assert "Read it all." in shown(stage)

    again, known = Stage(script, read), StagedRun(run.effects.values)
    assert (await again.done(execute(prompt="Read it all."), spec, known)).result == "Done."
    assert (again.models.requests, known.effects.paid) == ([], [])


class Narrow:
    """A model that refuses more than that many characters."""

    def __init__(self, chars_max: int) -> None:
        self.chars_max = chars_max
        self.asked: list[tuple[str, int]] = []

    async def ask(self, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        chars = sum(len(str(cast("JsonObject", one)["content"])) for one in request.messages)
        self.asked.append((request.purpose, chars))
        if chars > self.chars_max:
            raise ModelFailed(Failure(code="model-context-too-long", message="too long", hint="Shorten it."))
        return ModelReply(text="short" if request.purpose == "summary" else "answer")


def narrow(chars_max: int) -> tuple[Stage, Narrow]:
    model = Narrow(chars_max)
    return Stage(models=model), model


@pytest.mark.requirement("S1-113")
async def test_a_conversation_over_the_context_is_shortened_and_sent_again() -> None:
    stage, model = narrow(6_000)
    conversation: list[Json] = [*talk(1), *(user(f"{n} {LONG}") for n in range(5)), user("and now?")]
    run = StagedRun()
    report = await stage.done(execute(messages=conversation), agent(), run)
    assert report.result == "answer"
    assert model.asked[0][0] == "generation"
    assert model.asked[-1][0] == "generation"
    assert model.asked[-1][1] <= 6_000
    assert "too long for the model" in report.warnings[0]

    again, silent = narrow(0)
    assert (await again.done(execute(messages=conversation), agent(), StagedRun(run.effects.values))).result == "answer"
    assert silent.asked == []


async def test_a_conversation_that_still_does_not_fit_is_a_named_failure() -> None:
    stage, model = narrow(100)
    failure = await stage.failure(execute(prompt=LONG), agent())
    assert (failure.code, failure.hint) == ("model-context-too-long", "Shorten it.")
    assert len(model.asked) == 1
    stage, model = narrow(100)
    conversation: list[Json] = [*(user(f"{n} {LONG}") for n in range(3)), user("and now?")]
    assert (await stage.failure(execute(messages=conversation), agent())).code == "model-context-too-long"
    assert len(model.asked) <= 3


@st.composite
def conversations(draw: st.DrawFn) -> list[Json]:
    """Draw turns of users and of an agent with tool calls, several at once."""
    said: list[Json] = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "calls"]))
        words = "w" * draw(st.integers(0, 300))
        if kind != "calls":
            said.append({"role": kind, "content": words, "name": "writer"})
            continue
        ids = [f"{number}.{call}" for call in range(draw(st.integers(1, 3)))]
        calls: list[Json] = [call_to_json(ToolCall(id=one, name="read", arguments={})) for one in ids]
        said.append({"role": "assistant", "content": "", "name": "writer", "toolCalls": calls})
        said += [tool_message(ToolCall(id=one, name="read", arguments={}), words, name="writer") for one in ids]
    said.append(user("and now?"))
    return said


@given(
    conversations(), st.one_of(st.none(), st.integers(1, 8)), st.one_of(st.none(), st.integers(1, 300)), st.booleans()
)
def test_a_call_and_its_results_are_kept_or_removed_together(
    conversation: list[Json], window: int | None, tokens: int | None, summarize: bool
) -> None:
    stage = Stage("rules: [{text: In short.}]")
    memory = HistorySettings(window=window, tokens=tokens, summarize=summarize)
    world = ExecutorDeps(models=stage.models, tools=stage.tools)
    ledger = EffectLedger(world, execute(), agent(), StagedRun())
    history = TranscriptWindow(ledger, memory, ModelRequest(model="scripted"), name="writer")

    async def run() -> list[Json]:
        recalled = await history.recalled(conversation)
        found: list[Json] = [*recalled.opening, *recalled.messages]
        return await history.fitted(found, found[-1])

    found = run_virtually(run())
    assert found[-1] == user("and now?")
    called = [call.id for one in found for call in calls_of(one)]
    answered = [str(cast("JsonObject", one)["toolCallId"]) for one in found if role_of(one) == "tool"]
    assert sorted(called) == sorted(answered)
    if window is None and tokens is None:
        assert found == conversation
