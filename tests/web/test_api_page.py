"""The page of the API, as a browser shows it."""

from __future__ import annotations

import pytest

from tests.web.conftest import AXE, Opens

RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}"


async def test_an_operation_is_found_and_its_errors_are_read(opens: Opens) -> None:
    async with opens("/api/docs") as page:
        await page.get_by_role("link", name="Go on with another definition").first.click()
        part = page.locator("#executions_move")
        await part.get_by_text("Errors").click()
        assert "move-refused" in await part.inner_text()


@pytest.mark.parametrize(("theme", "size"), [("light", (1280, 800)), ("dark", (1280, 800)), ("light", (390, 844))])
async def test_it_can_be_read_by_everybody(opens: Opens, theme: str, size: tuple[int, int]) -> None:
    async with opens("/api/docs", theme=theme, size=size, lenient=True) as page:
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.add_script_tag(path=AXE)
        found = await page.evaluate(f"axe.run(document, {RULES}).then(said => said.violations.map(one => one.id))")
        assert found == []
