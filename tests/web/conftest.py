"""A real browser with a real server: the tests see and press what people see and press."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from pointsman.server.pages import is_built
from tests.server.conftest import Served, serving

PROGRAMS: Final = ("chromium-headless-shell", "chromium", "chromium-browser")
"""Supported browsers, the cheapest first: the headless shell uses a third less processor time."""
CHROMIUM: Final = next(filter(None, map(shutil.which, PROGRAMS)), None)
WAITS_MS: Final = 45_000
AXE: Final = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

REFUSALS: Final = ("Failed to load resource:",)
"""Messages that the browser itself logs for refused requests and for an unreachable server."""

expect.set_options(timeout=WAITS_MS)

Opens: TypeAlias = Callable[..., AbstractAsyncContextManager[Page]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = "no chromium here" if CHROMIUM is None else "" if is_built() else "the web app is not built: make ui"
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        if missing:
            item.add_marker(pytest.mark.skip(reason=missing))
        if pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    async with serving(f"sqlite:///{tmp_path}/store.db") as one:
        yield one


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(pytestconfig: pytest.Config) -> AsyncGenerator[Browser, None]:
    """One browser for all tests: each window is isolated, and the start of a browser takes a second."""
    async with async_playwright() as player:
        late_ms = pytestconfig.getoption("late")
        browser = await player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], slow_mo=late_ms)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def opens(browser: Browser, served: Served, pytestconfig: pytest.Config) -> AsyncGenerator[Opens, None]:
    """Opens a page of the app in an isolated window. Messages that the browser logs fail the test. A `lenient` window
    may have refused requests, and accepts scripts of the test; messages that a test provokes (`told`) must occur.
    `before` is a script that runs before all scripts of the app: it changes the browser.
    """

    @asynccontextmanager
    async def open_page(
        path: str = "/",
        *,
        language: str = "en",
        theme: str = "light",
        size: tuple[int, int] = (1280, 800),
        lenient: bool = False,
        told: tuple[str, ...] = (),
        before: str = "",
        zone: str | None = None,
    ) -> AsyncGenerator[Page, None]:
        context = await browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            locale=language,
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",  # Drawing the frames of animations took a third of the browser's processor time.
            bypass_csp=lenient,
            timezone_id=zone,
        )
        await context.add_init_script(before)
        context.set_default_timeout(WAITS_MS)
        page = await context.new_page()
        if slower := pytestconfig.getoption("weak"):
            devtools = await context.new_cdp_session(page)
            rate = {"rate": slower}
            await devtools.send("Emulation.setCPUThrottlingRate", rate)  # pyright: ignore[reportUnknownMemberType] - untyped there
        complaints: list[str] = []
        page.on("pageerror", lambda why: complaints.append(str(why)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        await page.goto(f"{served.client.base_url}{path}".replace("//", "/").replace(":/", "://"))
        try:
            yield page
        finally:
            await context.close()
        wrong = [one for one in complaints if not (lenient and one.startswith(REFUSALS))]
        assert [one for one in wrong if not any(part in one for part in told)] == []
        assert [part for part in told if not any(part in one for one in wrong)] == []

    yield open_page


async def screenshot(page: Page, name: str, *, fits: bool = False) -> None:
    """Save a screenshot for the documentation, on request (`make screenshots`); `fits`: of a whole graph."""
    if folder := os.environ.get("POINTSMAN_PICTURES"):
        if fits:
            await page.get_by_role("button", name="Fit view").click()
        await page.wait_for_timeout(500)  # The graph moves; nothing in the page states that it has arrived.
        path = Path(folder) / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        await page.screenshot(path=path)
