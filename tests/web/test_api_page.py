"""The API reference in a browser, under the content security policy of the server."""

from __future__ import annotations

from playwright.async_api import Page

from tests.web.conftest import AXE, Opens

NODES = "said => said.violations.flatMap(one => one.nodes.map(node => [one.id, node.html.slice(0, 100)]))"
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}"
OPERATION = "#operations-sessions-sessions_list_chat_workflows"
LOADED = "performance.getEntriesByType('resource').map(one => one.name)"


async def open_operation(page: Page) -> None:
    await page.locator("#operations-tag-sessions").click()
    await page.locator(f"{OPERATION} button").first.click()
    await page.locator(OPERATION).get_by_text("application/problem+json").first.wait_for(state="attached")


async def test_api_page_shows_errors_loads_nothing_from_other_hosts_and_meets_wcag(opens: Opens) -> None:
    async with opens("/api/docs") as page:
        await open_operation(page)
        assert await page.get_by_role("button", name="Try it out").count() == 0
        home = page.url.partition("/api/")[0]
        loaded = await page.evaluate(LOADED)
        assert [url for url in loaded if not url.startswith((f"{home}/", "data:"))] == []
        await page.evaluate(AXE.read_text("utf-8"))
        found: dict[str, list[str]] = {}
        for theme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
            await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            await page.set_viewport_size({"width": width, "height": 800})
            await page.wait_for_function(
                f"document.documentElement.matches('.dark-mode') === {str(theme == 'dark').lower()}"
            )
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            told = await page.evaluate(f"axe.run(document, {RULES}).then({NODES})")
            found[f"{theme} {width}"] = told
        assert {name: told for name, told in found.items() if told} == {}
