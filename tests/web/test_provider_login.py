"""Login with an identity provider, and messages for a failed login."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect
from pytest_httpserver import HTTPServer

from tests.server import flows
from tests.server.conftest import Served, serving
from tests.server.test_provider import IdentityProvider, settings
from tests.web.conftest import Opens


@pytest.fixture
def provider(httpserver: HTTPServer) -> IdentityProvider:
    one = IdentityProvider(httpserver)
    one.open()
    return one


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path, provider: IdentityProvider) -> AsyncGenerator[Served, None]:
    configured = settings(provider, label="Example ID")
    async with serving(f"sqlite:///{tmp_path}/store.db", settings=configured) as one:
        yield one


async def test_login_with_the_provider_returns_to_the_page_and_a_refusal_is_explained_in_german(
    opens: Opens, served: Served, provider: IdentityProvider
) -> None:
    key = await served.key("root", "admin")
    assert (await served.client.post("/api/workflows", content=flows.CHAIN, headers=key)).status_code == 201
    async with opens("/executions?status=failed", lenient=True) as page:
        await page.get_by_role("link", name="Sign in with Example ID").click()
        await page.wait_for_url(re.compile(r"/executions\?status=.*failed"))
        await expect(page.get_by_role("heading", name="Executions", exact=True)).to_be_visible()
        await expect(page.get_by_text("ada", exact=True)).to_be_visible()
        await page.get_by_role("link", name="Workflows").click()
        await expect(page.get_by_role("link", name="chain", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()
    assert len(provider.asked) == 1
    provider.said |= {"roles": []}
    bob = (await served.key("bob", "viewer"))["authorization"].removeprefix("Bearer ")
    async with opens("/inbox", language="de", lenient=True) as page:
        await page.get_by_role("link", name="Anmelden mit Example ID").click()
        await expect(page.get_by_role("alert")).to_contain_text("keinen Zugang zu diesem Server")
        await page.get_by_label("Schlüssel").fill(bob)
        await page.get_by_role("button", name="Anmelden", exact=True).click()
        await page.wait_for_url("**/inbox")
        await expect(page.get_by_text("bob", exact=True)).to_be_visible()
