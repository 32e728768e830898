"""A real browser before a real server: what people see and press."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from playwright.async_api import Page, async_playwright

from pointsman.server.pages import is_built
from tests.server.conftest import Served, serving

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
WAITS_MS: Final = 20_000
AXE: Final = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

Opens: TypeAlias = Callable[..., AbstractAsyncContextManager[Page]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = "no chromium here" if CHROMIUM is None else "" if is_built() else "the web app is not built: make ui"
    for item in items:
        if missing and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    async with serving(f"sqlite:///{tmp_path}/store.db") as one:
        yield one


@pytest.fixture
async def opens(served: Served) -> AsyncGenerator[Opens, None]:
    """Opens a page of the app in a window of its own. What the browser complains of fails the test."""
    async with async_playwright() as player:
        browser = await player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        @asynccontextmanager
        async def open_page(
            path: str = "/",
            *,
            language: str = "en",
            theme: str = "light",
            size: tuple[int, int] = (1280, 800),
            lenient: bool = False,
        ) -> AsyncGenerator[Page, None]:
            context = await browser.new_context(
                viewport={"width": size[0], "height": size[1]},
                locale=language,
                color_scheme="dark" if theme == "dark" else "light",
                bypass_csp=lenient,
            )
            context.set_default_timeout(WAITS_MS)
            page = await context.new_page()
            complaints: list[str] = []
            page.on("pageerror", lambda why: complaints.append(str(why)))
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            await page.goto(f"{served.client.base_url}{path}".replace("//", "/").replace(":/", "://"))
            yield page
            await context.close()
            assert not complaints or lenient, complaints

        yield open_page
        await browser.close()
