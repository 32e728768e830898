"""The page of the API, as a browser shows it."""

from __future__ import annotations

from tests.web.conftest import AXE, Opens

RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}"


async def test_an_operation_is_found_and_its_errors_are_read(opens: Opens) -> None:
    async with opens("/api/docs") as page:
        await page.get_by_role("link", name="Go on with another definition").first.click()
        part = page.locator("#executions_move")
        await part.get_by_text("Errors").click()
        assert "move-refused" in await part.inner_text()


async def test_it_can_be_read_by_everybody(opens: Opens) -> None:
    async with opens("/api/docs", lenient=True) as page:
        await page.add_script_tag(path=AXE)
        found: dict[str, list[str]] = {}
        for theme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
            await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            told = await page.evaluate(f"axe.run(document, {RULES}).then(said => said.violations.map(one => one.id))")
            found[f"{theme} {width}"] = told
        assert {name: told for name, told in found.items() if told} == {}
