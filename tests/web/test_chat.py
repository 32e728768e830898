"""The chat: turns that stream, show who works and what they call, ask people, are stopped, and survive a reload."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from pointsman.settings import Settings
from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.server.test_sessions import PICTURE
from tests.web.conftest import AXE, WAITS_MS, Opens

DESK: Final = """\
pointsman: 1
id: desk
name: {en: Help desk, de: Auskunft}
description: Answers questions about ships.
config: {conversational: true}
nodes:
  - {id: plan, type: agent, name: Planner, chatVisible: false, config: {}}
  - {id: answer, type: agent, name: Answerer, config: {tools: [find_ships]}}
edges: [{source: plan, target: answer}]
"""
ASKS: Final = """\
pointsman: 1
id: asks
config: {conversational: true}
nodes:
  - {id: ask, type: human, config: {message: "May I look it up?", options: [{value: approve}, {value: reject}]}}
  - {id: look, type: agent, config: {}}
edges: [{source: ask, target: look, condition: {type: label, label: approve}}]
"""
POEM: Final = """\
pointsman: 1
id: poem
name: Poet
input: {type: object, required: [goal], properties: {goal: {type: string}}}
output: {poem: text}
nodes: [{id: write, type: agent, config: {prompt: "A poem about {goal}"}, outputs: {text: result}}]
"""
STEERED: Final = """\
pointsman: 1
id: steered
config: {conversational: true, humanInLoop: real_time}
nodes:
  - {id: slow, type: agent, config: {}}
  - {id: next, type: agent, config: {}}
edges: [{source: slow, target: next}]
"""
LONG: Final = " ".join(f"word{number}" for number in range(3000))
SCRIPT: Final = f"""\
rules:
  - {{node: plan, contains: which ships, text: "an inner thought: which ships"}}
  - {{node: plan, contains: slowly, text: "an inner thought: slowly"}}
  - {{node: plan, contains: broken, text: "an inner thought: broken"}}
  - {{node: plan, text: an inner thought}}
  - {{node: answer, contains: slowly, tokenDelay: 0.02s, text: "{LONG}"}}
  - {{node: answer, contains: broken, times: 1, fail: {{status: 400}}}}
  - {{node: answer, contains: broken, text: Mended.}}
  - {{node: answer, contains: which ships, toolCalls: [{{name: find_ships, arguments: {{port: Oslo}}}}]}}
  - {{node: answer, contains: Nordlys, text: "**Two** ships wait:\\n\\n- Nordlys\\n- Fram\\n\\n```\\nberth 4\\n```"}}
  - {{node: answer, text: Good day.}}
  - {{node: look, text: I looked it up.}}
  - {{node: write, text: The tide is high.}}
  - {{node: slow, tokenDelay: 0.02s, text: "{LONG}"}}
tools:
  find_ships: {{result: [Nordlys, Fram]}}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    store = f"sqlite:///{tmp_path}/store.db"
    async with serving(store, script=parse_script(SCRIPT), settings=Settings(delays=True)) as one:
        for document in (DESK, ASKS, POEM, STEERED, PICTURE):
            await one.save(document)
        yield one


@pytest.fixture(autouse=True)
def patient() -> None:
    """A turn takes as long as it takes."""
    expect.set_options(timeout=WAITS_MS)


async def say(page: Page, words: str) -> None:
    await page.get_by_label("Message", exact=True).fill(words)
    await page.get_by_label("Message", exact=True).press("Enter")


@pytest.mark.requirement("S1-O15")
async def test_turns_show_who_works_what_they_call_and_say_and_hide_what_is_not_for_people(
    opens: Opens, served: Served
) -> None:
    async with opens("/chat") as page:
        await page.get_by_role("link", name="Help desk").click()
        await say(page, "Tell me which ships wait")
        await expect(page.get_by_text("Two", exact=True)).to_have_css("font-weight", "700")
        await expect(page.get_by_text("Fram", exact=True)).to_be_visible()
        await expect(page.get_by_role("button", name="Copy the code")).to_be_visible()
        await page.get_by_text("find_ships").click()
        await expect(page.get_by_text('"port": "Oslo"')).to_be_visible()
        await page.get_by_text("one step").click()
        await expect(page.get_by_role("article").get_by_text("Answerer")).to_be_visible()
        await expect(page.get_by_text("Planner")).to_have_count(0)
        await expect(page.get_by_text("an inner thought")).to_have_count(0)
        await page.get_by_label("Message", exact=True).press("ArrowUp")
        await expect(page.get_by_label("Message", exact=True)).to_have_value("Tell me which ships wait")
        await say(page, "Hello")
        await expect(page.get_by_text("Good day.")).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("article")).to_have_count(2)
        await expect(page.get_by_text("Good day.")).to_be_visible()
        session = page.url.rpartition("/")[2]
    told = (await served.client.get(f"/api/sessions/{session}")).json()
    assert [one["content"] for one in told["messages"] if one["role"] == "user"] == [
        "Tell me which ships wait",
        "Hello",
    ]


@pytest.mark.requirement("S1-O15")
async def test_a_mention_offers_workflows_and_starts_the_one_that_is_named(opens: Opens, served: Served) -> None:
    async with opens("/chat/desk") as page:
        await say(page, "Hello")
        await expect(page.get_by_text("Good day.")).to_be_visible()
        await expect(page.get_by_role("status").filter(has_text="Help desk has answered.")).to_have_count(1)
        await page.get_by_label("Message", exact=True).press_sequentially("@po")
        await expect(page.get_by_role("option", name="Poet @poem")).to_be_visible()
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Message", exact=True)).to_have_value("@poem ")
        await page.keyboard.type("tides")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("The tide is high.")).to_be_visible()
        await expect(page.get_by_role("article", name="tides").get_by_text("@poem")).to_be_visible()
        session = page.url.rpartition("/")[2]
    listed = (await served.client.get(f"/api/workflows/executions?session={session}")).json()["executions"]
    assert [one["workflowId"] for one in listed] == ["poem", "desk"]


async def test_a_reload_in_the_middle_of_a_sentence_loses_and_repeats_nothing_and_it_can_be_stopped(
    opens: Opens, served: Served
) -> None:
    async with opens("/chat/desk") as page:
        await say(page, "slowly please")
        await expect(page.get_by_text("word20 ")).to_be_visible()
        await expect(page.get_by_text("Answerer at work…")).to_be_visible()
        await page.wait_for_url("**/chat/desk/chat-*")
        await page.reload()
        await expect(page.get_by_text("word30 ")).to_be_visible()
        heard = (await page.locator(".markdown").inner_text()).split()
        assert heard[:-1] == [f"word{number}" for number in range(len(heard) - 1)]
        await page.get_by_label("Message", exact=True).press("Escape")
        await expect(page.get_by_role("button", name="Say it again")).to_be_visible()
        await expect(page.get_by_role("article").get_by_text("cancelled").last).to_be_visible()
        await say(page, "Hello")
        await expect(page.get_by_text("Good day.")).to_be_visible()


async def test_what_a_person_is_asked_is_answered_in_the_chat(opens: Opens, served: Served) -> None:
    async with opens("/chat/asks") as page:
        await say(page, "How deep is the fjord?")
        await expect(page.get_by_role("heading", name="May I look it up?", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("I looked it up.")).to_be_visible()
        await expect(page.get_by_role("heading", name="May I look it up?", exact=True)).to_have_count(0)


async def test_what_fails_says_what_to_do_and_is_tried_again(opens: Opens, served: Served) -> None:
    async with opens("/chat/desk") as page:
        await say(page, "broken")
        await expect(page.get_by_role("alert")).to_be_visible()
        await page.get_by_role("button", name="Try again").click()
        await expect(page.get_by_text("Mended.")).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)


async def test_who_works_is_told_something_meanwhile(opens: Opens, served: Served) -> None:
    async with opens("/chat/steered") as page:
        await say(page, "Begin")
        await expect(page.get_by_text("word5 ")).to_be_visible()
        await expect(page.get_by_placeholder("Say something while it works…")).to_be_visible()
        await say(page, "Keep it short")
        await expect(page.get_by_label("Message", exact=True)).to_have_value("")
        execution = (await served.client.get("/api/workflows/executions")).json()["executions"][0]["executionId"]
        events = (await served.client.get(f"/api/workflows/executions/{execution}/events")).json()["events"]
        assert any("Keep it short" in str(event) for event in events)
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_role("button", name="Say it again")).to_be_visible()


async def test_files_go_along_where_the_workflow_takes_them(opens: Opens, served: Served, tmp_path: Path) -> None:
    file = tmp_path / "harbour.png"
    file.write_bytes(b"\x89PNG")
    async with opens("/chat/picture") as page:
        await page.get_by_label("Attach a file").set_input_files(file)
        await say(page, "What is this?")
        await expect(page.get_by_role("article").get_by_text("harbour.png")).to_be_visible()


async def test_conversations_are_found_named_and_deleted(opens: Opens, served: Served) -> None:
    async with opens("/chat/desk") as page:
        talks = page.get_by_role("navigation", name="Conversations")
        await say(page, "Hello")
        await expect(talks.get_by_role("link", name="Hello")).to_be_visible()
        await talks.get_by_role("button", name="What can be done with “Hello”").click()
        await page.get_by_role("menuitem", name="Rename").click()
        await page.get_by_label("Title").fill("Greetings")
        await page.get_by_role("button", name="Save").click()
        await expect(talks.get_by_role("link", name="Greetings")).to_be_visible()
        await talks.get_by_role("searchbox").fill("nothing like it")
        await expect(page.get_by_text("Nothing of that was said.")).to_be_visible()
        await talks.get_by_role("searchbox").fill("greet")
        await talks.get_by_role("button", name="What can be done with “Greetings”").click()
        await page.get_by_role("menuitem", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="Whom do you want to talk to?", exact=True)).to_be_visible()
        await expect(page.get_by_role("dialog")).to_have_count(0)
    assert (await served.client.get("/api/sessions")).json()["sessions"] == []


async def test_the_chat_is_there_for_everybody_and_on_a_phone(opens: Opens, served: Served) -> None:
    async with opens("/chat", language="de", size=(390, 844), lenient=True) as page:
        await page.get_by_role("link", name="Auskunft").click()
        await page.get_by_label("Nachricht", exact=True).fill("Tell me which ships wait")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Fram", exact=True)).to_be_visible()
        wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not wide, "nothing is cut off or scrolls sideways"
        await page.add_script_tag(path=AXE)
        rules = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']"
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            found = await page.evaluate(f"axe.run('main', {{runOnly: {rules}}})")
            assert [(theme, one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
