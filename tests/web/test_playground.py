"""The playground: a prompt runs with several models side by side, as executions."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_execution import node


async def test_a_prompt_runs_for_two_inputs_side_by_side_and_becomes_an_agent(opens: Opens, served: Served) -> None:
    saved = await served.client.post("/api/agents", json={"name": "writer", "agent": {"system": "You write."}})
    assert saved.status_code == 201, saved.text
    async with opens("/playground") as page:
        await page.get_by_label("System prompt").fill("Be brief.")
        await page.get_by_label("User prompt").fill("About {{topic}} in {{place}}")
        await page.get_by_role("button", name="Add column").click()
        await page.get_by_label("Kind of column 2").select_option("Agent")
        await page.get_by_label("Agent 2").fill("writer")
        await page.get_by_label("Agent 2").blur()
        await page.get_by_role("button", name="Add input").click()
        for nth, topic in enumerate(("tides", "moon"), start=1):
            row = page.get_by_role("group", name=f"Input {nth}")
            await row.get_by_label("topic").fill(topic)
            await row.get_by_label("place").fill("Emden")
        await page.get_by_label("Limit per answer").fill("0.5")
        await page.get_by_role("button", name="Run", exact=True).click()
        answers = page.get_by_role("article")
        await expect(answers).to_have_count(4)
        await expect(answers.get_by_text("completed", exact=True)).to_have_count(4)
        await expect(answers.get_by_text("About tides in Emden")).to_have_count(2)
        await expect(page.get_by_role("article", name="writer").get_by_text("About moon in Emden")).to_be_visible()
        await page.reload()
        await expect(answers.get_by_text("completed", exact=True)).to_have_count(4)
        await page.get_by_role("button", name="Save as agent").click()
        await page.get_by_role("dialog").get_by_label("Name").fill("writer")
        await page.get_by_role("button", name="Save revision").click()
        await page.wait_for_url("**/agents/writer")
    agent = (await served.client.get("/api/agents/writer")).json()
    assert (agent["revision"], agent["agent"]["system"]) == (2, "Be brief.")
    runs = (await served.client.get("/api/workflows/executions?trials=true&workflow=playground")).json()["executions"]
    assert len(runs) == 4
    ran = (await served.client.get(f"/api/workflows/executions/{runs[0]['executionId']}/workflow")).json()["document"]
    assert (ran["tags"], ran["config"]["limits"]) == (["playground"], {"costUsd": 0.5})
    assert (await served.client.get("/api/workflows/executions")).json()["executions"] == []


async def test_a_model_call_of_an_execution_opens_in_the_playground(opens: Opens, served: Served) -> None:
    braces = "Write about {goal}, as \\\\{text} in \\\\{\\\\{braces}}"
    await served.save(flows.LETTER.replace('prompt: "Write about {goal}"', f'system: Be brief., prompt: "{braces}"'))
    execution = await served.execute("letter", {"goal": "tides"})
    async with opens(f"/executions/{execution}") as page:
        await node(page, "write").click()
        await page.get_by_role("button", name="Open in playground").click()
        await page.wait_for_url("**/playground")
        await expect(page.get_by_label("System prompt")).to_have_value("Be brief.")
        await expect(page.get_by_label("Model 1")).to_have_value("scripted")
        await page.get_by_role("button", name="Run", exact=True).click()
        answer = page.get_by_role("article", name="scripted")
        await expect(answer.get_by_text("completed", exact=True)).to_be_visible()
    (run,) = (await served.client.get("/api/workflows/executions?trials=true&workflow=playground")).json()["executions"]
    events = (await served.client.get(f"/api/workflows/executions/{run['executionId']}/events")).json()["events"]
    (step,) = [event for event in events if event["kind"] == "step_started"]
    assert step["input"] == {"system": "Be brief.", "prompt": "Write about tides, as {text} in {{braces}}"}
